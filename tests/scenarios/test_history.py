"""The history over a TApp's life on the embedded cluster: roll-outs, rollbacks, lag, its end."""

import pytest

from simulator.api.store import Propagation
from tests.scenarios.apps import tapp, template
from tests.scenarios.life import Life
from tests.sizes import size

MANY = size(60, 300)


def test_a_rollback_is_the_newest_again_and_no_pod_is_restarted_for_it() -> None:
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


def test_a_canary_is_promoted() -> None:
    life = Life().apply(tapp(replicas=3))
    life.patch(templatePool={"canary": template("web:2")}, templates={"2": "canary"})
    life.patch(template=template("web:2"), templates=None, templatePool=None)
    assert life.history() == ["1 default web:1", "2 canary web:2", "3 default web:2"]


@pytest.mark.parametrize("lag", [0.05, 2.0, 20.0])
def test_a_cache_that_lags_costs_refused_writes_at_most(lag: float) -> None:
    """A record that it does not show is asked for again, under the same name."""
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


def test_a_refused_record_holds_up_no_pod() -> None:
    """A quota on ControllerRevisions: the TApp has events, and its instances run."""
    life = Life()
    life.world.store.fail(50, verb="create", kind="ControllerRevision", code=403)
    life.begin(tapp(replicas=2)).settle(allow_errors=True)
    assert life.statuses == "Running Running"
    assert life.condition("Ready").startswith("True")


def test_what_cannot_be_recorded_anew_is_not_lost() -> None:
    """A rollback while nothing may be created: the older record of what runs stays until then."""
    life = Life().apply(tapp(replicas=2))
    life.patch(template=template("web:2"))
    life.world.store.fail(1_000, verb="create", kind="ControllerRevision", code=403)
    life.begin_patch(template=template("web:1"))
    life.world.run(60)
    assert life.history() == ["1 default web:1", "2 default web:2"]


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
def test_it_goes_with_the_tapp(propagation: Propagation) -> None:
    life = Life().apply(tapp(replicas=2))
    life.delete(propagation)
    assert not life.exists
    assert life.history() == []


def test_an_orphaned_one_is_not_in_the_way_of_the_next() -> None:
    life = Life().apply(tapp(replicas=0))
    life.patch(replicas=1)
    life.delete("Orphan")
    for name in life.pods:
        life.world.delete("Pod", f"web-{name}", grace_seconds=0)
    life.settle().apply(tapp(replicas=1))
    assert life.history() == ["1 default web:1"] * 2


def test_as_many_templates_as_instances() -> None:
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
