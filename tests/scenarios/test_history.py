"""Tests the history of a TApp in the simulator: rollouts, rollbacks, stale caches, deletion."""

import pytest

from simulator.api.store import Propagation
from tests.scenarios.apps import tapp, template
from tests.scenarios.life import Life
from tests.sizes import size

MANY = size(60, 300)


def test_rollback_gets_the_newest_number_and_causes_no_further_write() -> None:
    life = Life().apply(tapp(replicas=2))
    for image in ("web:2", "web:3"):
        life.patch(template=template(image))
    assert life.history() == ["1 default web:1", "2 default web:2", "3 default web:3"]
    life.patch(template=template("web:1"))
    assert life.history() == ["2 default web:2", "3 default web:3", "4 default web:1"]
    assert life.complete
    life.news()
    life.idle()
    assert life.news() == []


def test_promoted_canary_is_a_new_revision_of_the_default_template() -> None:
    life = Life().apply(tapp(replicas=3))
    life.patch(templatePool={"canary": template("web:2")}, templates={"2": "canary"})
    life.patch(template=template("web:2"), templates=None, templatePool=None)
    assert life.history() == ["1 default web:1", "2 canary web:2", "3 default web:2"]


@pytest.mark.parametrize("lag", [0.05, 2.0, 20.0], ids="{} s".format)
def test_stale_cache_of_revisions_causes_at_most_refused_writes(lag: float) -> None:
    """Rolls out several images while the cache shows ControllerRevisions late: in the end the
    history is right.

    The service creates a revision again under the same name if the cache does not show it, which
    the API server refuses.
    """
    life = Life()
    life.world.cache.lag["ControllerRevision"] = lag
    life.apply(tapp(replicas=2))
    for image in ("web:2", "web:1", "web:3"):
        life.begin_patch(template=template(image))
        life.world.run(0.5)
    life.settle()
    assert life.complete
    found = life.history()
    numbers = [line.partition(" ")[0] for line in found]
    assert found[-1].endswith("default web:3")
    assert len(set(numbers)) == len(numbers)
    life.news()
    life.idle()
    assert life.news() == []


def test_refused_revision_does_not_block_pods() -> None:
    """The API server refuses all ControllerRevisions, for example because of a quota: the instances
    still run.
    """
    life = Life()
    life.world.store.fail(50, verb="create", kind="ControllerRevision", code=403)
    life.begin(tapp(replicas=2)).settle(allow_errors=True)
    assert life.statuses == "Running Running"
    assert life.condition("Ready").startswith("True")


def test_old_revision_stays_while_its_new_one_cannot_be_created() -> None:
    """During a rollback whose revision cannot be written again, the revision of the running
    template stays.
    """
    life = Life().apply(tapp(replicas=2))
    life.patch(template=template("web:2"))
    life.world.store.fail(1_000, verb="create", kind="ControllerRevision", code=403)
    life.begin_patch(template=template("web:1"))
    life.world.run(60)
    assert life.history() == ["1 default web:1", "2 default web:2"]


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
def test_history_is_deleted_with_the_tapp(propagation: Propagation) -> None:
    life = Life().apply(tapp(replicas=2))
    life.delete(propagation)
    assert not life.exists
    assert life.history() == []


def test_orphaned_history_does_not_affect_a_new_tapp_of_the_same_name() -> None:
    life = Life().apply(tapp(replicas=0))
    life.patch(replicas=1)
    life.delete("Orphan")
    for name in life.pods:
        life.world.delete("Pod", f"web-{name}", grace_seconds=0)
    life.settle().apply(tapp(replicas=1))
    assert life.history() == ["1 default web:1"] * 2


def test_history_works_with_a_template_for_each_instance() -> None:
    life = Life(check_every=20)
    names = [f"t{number}" for number in range(MANY)]
    pool = {name: template(f"web:{name}") for name in names}
    life.apply(
        tapp(
            replicas=MANY,
            templatePool=pool,
            templates=dict(zip(map(str, range(MANY)), names, strict=True)),
        )
    )
    assert len(life.history()) == MANY
    life.news()
    life.idle(0.5)
    assert life.news() == []
    life.patch(templatePool={"t7": template("web:new")})
    assert life.history()[-1] == f"{MANY + 1} t7 web:new"
    assert len(life.history()) == MANY + 1
