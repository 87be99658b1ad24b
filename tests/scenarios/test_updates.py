"""Tests updates that succeed, stall, are repaired, paused, replaced by another edit, or rolled
back.
"""

import itertools
from typing import Any

import pytest

from tests.scenarios.apps import stored, storing, tapp, template
from tests.scenarios.life import Life, each
from tests.sizes import cases

TWO = {"maxUnavailable": 2}


def pod_writes(verb: str, *numbers: int) -> list[str]:
    """Returns a text such as `update Pod web-0` for the pod of each instance number."""
    return each(f"{verb} Pod", *[f"web-{number}" for number in numbers])


@pytest.fixture
def life() -> Life:
    """Returns a TApp with five instances, of which two may be unavailable."""
    life = Life().apply(tapp(updateStrategy=TWO))
    life.writes()
    life.watch_readiness()
    return life


def images_with_fault(life: Life, fault: str) -> set[str]:
    """Returns the set of images that have a fault in the simulated kubelets: `bad`, `crashing` or
    `unready`.

    Tests add images to the set.
    """
    images: set[str] = getattr(life.world.kubelet.levers, f"{fault}_images")
    return images


@pytest.mark.parametrize("fault", ["bad", "crashing", "unready"])
def test_broken_image_stalls_within_the_budget_and_the_next_template_repairs_it(
    life: Life, fault: str
) -> None:
    images_with_fault(life, fault).add("web:broken")
    life.patch(minReadySeconds=5)  # crashing pods are Ready for a moment
    life.patch(template=template("web:broken"))
    assert life.writes() == pod_writes("update", 0, 1)
    assert life.fewest_ready == 3
    assert (
        "instances 2-4 wait for the budget (maxUnavailable 2 of 5 is used up by instances 0, 1)"
        in life.condition("Progressing")
    )
    if fault != "unready":
        assert life.condition("Degraded").startswith("True InstancesBroken: instance 0: ")
    life.idle()
    assert life.writes() == []
    life.patch(template=template("web:2"))
    assert life.writes() == pod_writes("update", 0, 1, 2, 3, 4)
    assert life.images() == "web:2 web:2 web:2 web:2 web:2"
    assert life.fewest_ready == 3
    assert life.complete


def test_broken_image_can_be_rolled_back(life: Life) -> None:
    born = life.uids()
    images_with_fault(life, "bad").add("web:broken")
    life.patch(template=template("web:broken"))
    life.writes()
    life.patch(template=template("web:1"))
    assert life.writes() == pod_writes("update", 0, 1)
    assert life.uids() == born
    assert life.fewest_ready == 3
    assert life.complete


def test_replacement_that_cannot_start_stalls_within_the_budget(life: Life) -> None:
    images_with_fault(life, "bad").add("web:broken")
    broken = template("web:broken", container={"env": [{"name": "A", "value": "1"}]})
    life.patch(template=broken)
    assert sorted(life.writes()) == sorted(
        [*pod_writes("delete", 0, 1), *pod_writes("create", 0, 1)]
    )
    assert life.fewest_ready == 3
    life.patch(template=template("web:1", container={"env": [{"name": "A", "value": "1"}]}))
    assert life.fewest_ready == 3
    assert life.complete


def test_replaced_pods_keep_their_claims() -> None:
    life = Life().apply(stored())
    claims, born = life.claims(), life.uids()
    life.writes()
    life.patch(template=storing(env=[{"name": "A", "value": "1"}]))
    assert not set(life.uids().values()) & set(born.values())
    assert life.claims() == claims
    assert life.writes() == [
        write
        for number in range(3)
        for write in (*pod_writes("delete", number), *pod_writes("create", number))
    ]


MOMENTS = list(itertools.product([0.05, 0.15, 0.5, 1.0, 1.7, 2.5, 4.0], [0.0, 0.5]))
"""Seconds between the edits, and the lag of the cache in seconds; a fast run takes some."""


@pytest.mark.parametrize(("seconds", "lag"), cases(MOMENTS, MOMENTS[1::4] + MOMENTS[2::4]))
def test_edits_during_a_rollout_do_not_exceed_the_budget(
    life: Life, seconds: float, lag: float
) -> None:
    """Edits the template twice during a rollout, while Metacontroller may see pods late.

    The edits follow each other after `seconds` seconds.
    """
    life.world.cache.lag["Pod"] = lag
    life.begin_patch(template=template("web:2"))
    life.world.run(seconds)
    life.begin_patch(template=template("web:3", container={"env": [{"name": "A", "value": "1"}]}))
    life.world.run(seconds)
    life.patch(template=template("web:4"))
    assert life.images() == "web:4 web:4 web:4 web:4 web:4"
    assert life.fewest_ready == 3
    assert life.complete


def test_pause_during_a_rollout_stops_further_updates_until_it_ends(life: Life) -> None:
    life.begin_patch(template=template("web:2"))
    life.until(lambda: life.images().count("web:2") == 3)
    life.patch(updateStrategy={"paused": True})
    assert life.images() == "web:2 web:2 web:2 web:1 web:1"
    assert (
        life.condition("Progressing")
        == "False Paused: updates of instances 3, 4 are paused (spec.updateStrategy.paused); "
        "`kubectl tapp resume web -n default` resumes them"
    )
    life.patch(updateStrategy={"paused": False})
    assert life.images() == "web:2 web:2 web:2 web:2 web:2"
    assert life.fewest_ready == 3


def test_unknown_template_name_writes_no_pod(life: Life) -> None:
    life.patch(templates={"1": "tpyo"})
    assert life.writes() == []
    assert "instance 1 keeps its pod unchanged" in life.condition("TemplateNotFound")
    life.patch(templates=None)
    assert life.writes() == []
    assert life.complete


def test_equivalent_template_writes_no_pod(life: Life) -> None:
    resources = {"resources": {"requests": {"cpu": "0.5", "memory": "1Gi"}}}
    life.patch(template=template(container=resources))
    life.writes()
    same = {"resources": {"requests": {"memory": "1024Mi", "cpu": "500m"}}, "args": []}
    life.patch(template=template(container=same))
    assert life.writes() == []
    assert life.complete


def test_labels_are_changed_and_removed_without_a_restart(life: Life) -> None:
    labelled = template()
    labelled["metadata"]["labels"]["tier"] = "front"
    life.patch(template=labelled)
    assert life.writes() == pod_writes("update", 0, 1, 2, 3, 4)
    assert {pod["metadata"]["labels"]["tier"] for pod in life.pods.values()} == {"front"}
    labelled["metadata"]["labels"]["tier"] = None
    life.patch(template=labelled)
    assert life.writes() == pod_writes("update", 0, 1, 2, 3, 4)
    assert all("tier" not in pod["metadata"]["labels"] for pod in life.pods.values())
    assert set(life.restarts().values()) == {0}
    assert life.fewest_ready == 5


@pytest.mark.parametrize(
    ("forced", "fewest"),
    [({}, 2), ({"maxUnavailable": 2}, 3), ({"maxUnavailable": "20%"}, 4)],
    ids=["default", "number", "percentage"],
)
def test_force_group_has_its_own_budget(life: Life, forced: dict[str, Any], fewest: int) -> None:
    """Gives three of five instances another template: their updates use
    `forceUpdate.maxUnavailable`.

    By default, that is 100%, so all of them are updated at once. The force group are the instances
    that do not run the rolling template.
    """
    life.patch(
        templatePool={"hotfix": template("web:hotfix")},
        templates={"0": "hotfix", "2": "hotfix", "4": "hotfix"},
        updateStrategy={"maxUnavailable": 1, **({"forceUpdate": forced} if forced else {})},
    )
    assert life.writes() == pod_writes("update", 0, 2, 4)
    assert life.fewest_ready == fewest
    assert life.images() == "web:hotfix web:1 web:hotfix web:1 web:hotfix"
