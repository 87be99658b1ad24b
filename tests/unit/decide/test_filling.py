"""A decision has a bound of its own: so much is filled in by one sync, and the rest follows."""

from collections import Counter
from typing import Any

import pytest

from tapp.decide import filling
from tapp.declared import lookup
from tests.builders import Document, claim_template, tapp, template
from tests.unit.world import World, condition

WAITS = "Keep/WaitingForTurn"
COUNT = 12


@pytest.fixture(autouse=True)
def _little(monkeypatch: pytest.MonkeyPatch) -> None:
    """As much as five instances take of the templates here, instead of 500,000."""
    monkeypatch.setattr(filling, "MOST", 5 * 17)
    monkeypatch.setattr(lookup, "MOST_OF_ALL", 5 * 17)


def own(image: str = "web:1", **more: Any) -> Document:
    """A template that reads a value."""
    return template(image, container={"env": [{"name": "A", "value": "$(tapp.values.a)"}]}, **more)


def values(**changed: str) -> Document:
    """Every instance's value; `_3="x"` gives instance 3 another one."""
    found = {str(id): {"a": f"v{id}"} for id in range(COUNT)}
    return found | {key[1:]: {"a": value} for key, value in changed.items()}


def world(**spec: Any) -> World:
    """A TApp of so many instances with templates of their own, that nobody has answered yet."""
    strategy = {"maxUnavailable": "100%", **spec.pop("updateStrategy", {})}
    given = {"template": own(), "values": values(), **spec, "updateStrategy": strategy}
    return World(tapp(replicas=COUNT, **given), history=True)


def decided(found: World) -> Counter[str]:
    """The number of instances of each decision."""
    return Counter(found.decisions().values())


def filled(found: World) -> list[str]:
    """Values of each instance's pod of its own, in order."""
    return [found.container(id)["env"][0]["value"] for id in range(COUNT)]


def test_pods_are_made_as_far_as_their_templates_are_filled_in_and_the_rest_follows() -> None:
    """The others wait for their turn, the service asks to be called again, and all come."""
    found = world()
    first = found.decisions()
    made = [id for id, decision in first.items() if decision == "Create/NoPod"]
    assert made == list(range(len(made)))
    assert 1 <= len(made) < COUNT
    assert set(first.values()) == {"Create/NoPod", "Absent/WaitingForTurn"}
    assert found.sync()["resyncAfterSeconds"] <= 1
    found.settle()
    assert filled(found) == [f"v{id}" for id in range(COUNT)]
    assert decided(found) == {"Keep/UpToDate": COUNT}
    assert condition(found.sync(), "Degraded")["status"] == "False"


def test_at_rest_nothing_is_filled_in_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Findings of a sync of this generation: the next ones read them in pods and status."""
    found = world().settle()
    asked: list[int] = []
    of = lookup.Templates.of
    monkeypatch.setattr(lookup.Templates, "of", lambda self, id: asked.append(id) or of(self, id))
    found.sync()
    assert found.writes == []
    assert asked == []


@pytest.mark.parametrize("id", [0, COUNT - 1])
def test_another_value_reaches_its_instance_wherever_that_is(id: int) -> None:
    """The pods that wait stay as they are meanwhile."""
    found = world().settle()
    before = found.uids()
    found.change(values=values(**{f"_{id}": "new"}))
    assert decided(found)[WAITS] > 0
    found.settle()
    assert filled(found)[id] == "new"
    assert [name for name, uid in found.uids().items() if before[name] != uid] == [f"web-{id}"]


def test_another_template_reaches_all_pods_in_place() -> None:
    """An update goes on behind the bound, also where pods wait for their budget."""
    found = world(updateStrategy={"maxUnavailable": 1}).settle()
    before = found.uids()
    found.change(template=own("web:2")).settle()
    assert {found.container(id)["image"] for id in range(COUNT)} == {"web:2"}
    assert found.uids() == before


def test_a_pod_that_is_lost_comes_back_first() -> None:
    """An instance without a pod is filled in before those whose pods run."""
    found = world().settle()
    found.change(template=own("web:2"))
    del found.pods[f"web-{COUNT - 1}"]
    assert found.decisions()[COUNT - 1] == "Create/NoPod"


def test_what_needs_no_template_is_done_at_once() -> None:
    """Killed and scaled down instances go, whoever waits."""
    found = world().settle()
    found.change(template=own("web:2"), replicas=COUNT - 1, statuses={str(COUNT - 2): "Killed"})
    decisions = found.decisions()
    assert decisions[COUNT - 1] == "Delete/ScaledDown"
    assert decisions[COUNT - 2] == "Delete/Killed"


def test_a_partition_keeps_its_instances_behind_the_bound() -> None:
    """They keep their revision and their values, and come back with them."""
    found = world().settle()
    found.change(
        template=own("web:2"),
        values=values(_11="new"),
        updateStrategy={"partition": 8, "maxUnavailable": "100%"},
    ).settle()
    images = [found.container(id)["image"] for id in range(COUNT)]
    assert images == ["web:2"] * 4 + ["web:1"] * 8
    del found.pods["web-11"]
    found.settle()
    assert (found.container(11)["image"], filled(found)[11]) == ("web:1", "v11")


@pytest.mark.parametrize(
    "metadata",
    [
        {"labels": {f"k{number}": "$(tapp.index)" for number in range(9)}},
        {"annotations": {"note": "x" * 900}},
    ],
    ids=["many placeholders", "a long text"],
)
def test_a_service_for_each_that_is_too_much_is_refused(metadata: Document) -> None:
    """It says so, and the Services that are there stay."""
    spec = {"ports": [{"port": 80}]}
    found = World(tapp(replicas=COUNT, serviceTemplate={"spec": spec}), exposing=True)
    before = set(found.settle().services)
    found.change(serviceTemplate={"metadata": metadata, "spec": spec})
    said = condition(found.sync(), "ServicesNotCreated")
    assert said is not None
    assert "too much for 12 instances" in said["message"]
    assert set(found.services) == before


def test_claims_that_are_too_much_are_refused() -> None:
    """No pod is made for them, and none is lost that is there."""
    claim = claim_template()
    claim["metadata"]["labels"] = {f"k{number}": "$(tapp.index)" for number in range(9)}
    found = World(tapp(replicas=COUNT, volumeClaimTemplates=[claim]))
    said = condition(found.sync(), "CreationBlocked")
    assert "claim template 'data': its placeholders and its length are too much" in said["message"]
