"""Updates that go well, stall, are repaired, paused, overtaken or taken back."""

import itertools
from typing import Any

import pytest

from tests.scenarios.apps import stored, storing, tapp, template
from tests.scenarios.life import Life, each
from tests.sizes import cases

TWO = {"maxUnavailable": 2}


def pods(verb: str, *numbers: int) -> list[str]:
    """The same write for several pods of `web`."""
    return each(f"{verb} Pod", *[f"web-{number}" for number in numbers])


@pytest.fixture
def life() -> Life:
    """Five instances, of which two may be unavailable."""
    life = Life().apply(tapp(updateStrategy=TWO))
    life.writes()
    life.watch_readiness()
    return life


def fault_of(life: Life, fault: str) -> set[str]:
    """The images that have this fault."""
    images: set[str] = getattr(life.world.kubelet.levers, f"{fault}_images")
    return images


@pytest.mark.parametrize("fault", ["bad", "crashing", "unready"])
def test_a_broken_image_stalls_within_the_budget_and_the_next_template_repairs_it(
    life: Life, fault: str
) -> None:
    fault_of(life, fault).add("web:broken")
    life.patch(minReadySeconds=5)  # a crashing container is Ready for a moment
    life.patch(template=template("web:broken"))
    assert life.writes() == pods("update", 0, 1)
    assert life.fewest_ready == 3
    assert "waiting for the budget: 2-4 (maxUnavailable 2 of 5; unavailable: 2)" in life.condition(
        "Progressing"
    )
    if fault != "unready":
        assert life.condition("Degraded").startswith("True InstancesBroken: instance 0: ")
    life.idle()
    assert life.writes() == []
    life.patch(template=template("web:2"))
    assert life.writes() == pods("update", 0, 1, 2, 3, 4)
    assert life.images() == "web:2 web:2 web:2 web:2 web:2"
    assert life.fewest_ready == 3
    assert life.complete


def test_a_broken_image_can_be_taken_back(life: Life) -> None:
    born = life.uids()
    fault_of(life, "bad").add("web:broken")
    life.patch(template=template("web:broken"))
    life.writes()
    life.patch(template=template("web:1"))
    assert life.writes() == pods("update", 0, 1)
    assert (life.uids(), life.fewest_ready) == (born, 3)
    assert life.complete


def test_a_recreated_pod_that_cannot_start_stalls_within_the_budget(life: Life) -> None:
    fault_of(life, "bad").add("web:broken")
    broken = template("web:broken", container={"env": [{"name": "A", "value": "1"}]})
    life.patch(template=broken)
    assert sorted(life.writes()) == sorted([*pods("delete", 0, 1), *pods("create", 0, 1)])
    assert life.fewest_ready == 3
    life.patch(template=template("web:1", container={"env": [{"name": "A", "value": "1"}]}))
    assert life.fewest_ready == 3
    assert life.complete


def test_recreated_pods_keep_their_claims() -> None:
    life = Life().apply(stored())
    claims, born = life.claims(), life.uids()
    life.writes()
    life.patch(template=storing(env=[{"name": "A", "value": "1"}]))
    assert not set(life.uids().values()) & set(born.values())
    assert life.claims() == claims
    assert life.writes() == [
        write for number in range(3) for write in (*pods("delete", number), *pods("create", number))
    ]


MOMENTS = list(itertools.product([0.05, 0.15, 0.5, 1.0, 1.7, 2.5, 4.0], [0.0, 0.5]))
"""Seconds between the edits, and how late Metacontroller sees pods; by turns in a fast run."""


@pytest.mark.parametrize(("seconds", "lag"), cases(MOMENTS, MOMENTS[1::4] + MOMENTS[2::4]))
def test_a_template_that_overtakes_another_keeps_the_budget(
    life: Life, seconds: float, lag: float
) -> None:
    """At whatever moment it comes, and though Metacontroller sees pods late."""
    life.world.cache.lag["Pod"] = lag
    life.begin_patch(template=template("web:2"))
    life.world.run(seconds)
    life.begin_patch(template=template("web:3", container={"env": [{"name": "A", "value": "1"}]}))
    life.world.run(seconds)
    life.patch(template=template("web:4"))
    assert life.images() == "web:4 web:4 web:4 web:4 web:4"
    assert life.fewest_ready == 3
    assert life.complete


def test_a_pause_in_the_middle_stops_at_once_and_goes_on_later(life: Life) -> None:
    life.begin_patch(template=template("web:2"))
    life.until(lambda: life.images().count("web:2") == 3)
    life.patch(updateStrategy={"paused": True})
    assert life.images() == "web:2 web:2 web:2 web:1 web:1"
    assert life.condition("Progressing") == "False Paused: updates are paused for instances 3, 4"
    life.patch(updateStrategy={"paused": False})
    assert life.images() == "web:2 web:2 web:2 web:2 web:2"
    assert life.fewest_ready == 3


def test_a_name_that_is_no_template_touches_nothing(life: Life) -> None:
    life.patch(templates={"1": "tpyo"})
    assert life.writes() == []
    assert "instances 1 are kept as they are" in life.condition("TemplateNotFound")
    life.patch(templates=None)
    assert life.writes() == []
    assert life.complete


def test_reformatting_a_template_touches_nothing(life: Life) -> None:
    resources = {"resources": {"requests": {"cpu": "0.5", "memory": "1Gi"}}}
    life.patch(template=template(container=resources))
    life.writes()
    same = {"resources": {"requests": {"memory": "1024Mi", "cpu": "500m"}}, "args": []}
    life.patch(template=template(container=same))
    assert life.writes() == []
    assert life.complete


def test_labels_change_without_a_restart_and_leave_with_the_template(life: Life) -> None:
    labelled = template()
    labelled["metadata"]["labels"]["tier"] = "front"
    life.patch(template=labelled)
    assert life.writes() == pods("update", 0, 1, 2, 3, 4)
    assert {pod["metadata"]["labels"]["tier"] for pod in life.pods.values()} == {"front"}
    labelled["metadata"]["labels"]["tier"] = None
    life.patch(template=labelled)
    assert life.writes() == pods("update", 0, 1, 2, 3, 4)
    assert all("tier" not in pod["metadata"]["labels"] for pod in life.pods.values())
    assert set(life.restarts().values()) == {0}
    assert life.fewest_ready == 5


@pytest.mark.parametrize(
    ("forced", "fewest"), [({}, 2), ({"maxUnavailable": 2}, 3), ({"maxUnavailable": "20%"}, 4)]
)
def test_instances_off_the_rolling_template_have_their_own_budget(
    life: Life, forced: dict[str, Any], fewest: int
) -> None:
    """All at once where nothing is said."""
    life.patch(
        templatePool={"hotfix": template("web:hotfix")},
        templates={"0": "hotfix", "2": "hotfix", "4": "hotfix"},
        updateStrategy={"maxUnavailable": 1, **({"forceUpdate": forced} if forced else {})},
    )
    assert life.writes() == pods("update", 0, 2, 4)
    assert life.fewest_ready == fewest
    assert life.images() == "web:hotfix web:1 web:hotfix web:1 web:hotfix"
