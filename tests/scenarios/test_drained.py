"""Updates in place of instances that leave their Services first."""

from collections import Counter
from typing import Any

import pytest

from tests.builders import Document
from tests.scenarios.apps import tapp, template
from tests.scenarios.life import Life, each
from tests.sizes import size

GATE = "apps.tkestack.io/InPlaceUpdateReady"
GRACE = 5
MANY = size(40, 300)


def gated(image: str = "web:1", replicas: int = 6, **strategy: Any) -> Document:
    """A TApp whose instances are drained for five seconds."""
    drained = {"inPlaceUpdateStrategy": {"gracePeriodSeconds": GRACE}, **strategy}
    return tapp(image, replicas, template=behind_a_gate(image), updateStrategy=drained)


def behind_a_gate(image: str) -> Document:
    return template(image, readinessGates=[{"conditionType": GATE}])


def gates(life: Life) -> set[str]:
    """The gates of all pods."""
    return {
        item["status"]
        for pod in life.pods.values()
        for item in pod["status"]["conditions"]
        if item["type"] == GATE
    }


def test_a_drained_roll_takes_two_writes_of_each_pod_and_two_of_its_status() -> None:
    life = Life().apply(gated())
    names = [f"web-{id}" for id in range(6)]
    assert sorted(changes(life)) == sorted(
        [*each("create Pod", *names), *each("status Pod", *names)]
    )
    assert gates(life) == {"True"}
    born = life.uids()

    life.watch_readiness()
    life.patch(template=behind_a_gate("web:2"))
    assert life.complete
    assert Counter(changes(life)) == {
        f"{verb} Pod {name}": 2 for verb in ("update", "status") for name in names
    }
    assert (life.uids(), set(life.images().split())) == (born, {"web:2"})
    assert set(life.restarts().values()) == {1}
    assert gates(life) == {"True"}

    life.idle()
    assert life.news() == []


def changes(life: Life) -> list[str]:
    """The writes that changed a child; after each of a status Metacontroller writes the pod, too.

    That second write changes nothing, and is none for the API server.
    """
    news = [write for write in life.news() if write.kind == "Pod"]
    assert {write.outcome for write in news} <= {"ok", "no-op"}
    idle = sum(write.outcome == "no-op" for write in news)
    assert idle == sum(write.verb == "status" for write in news)
    return [f"{write.verb} Pod {write.name}" for write in news if write.outcome == "ok"]


def test_no_container_is_stopped_before_its_pod_has_been_out_of_service_for_long_enough() -> None:
    life = Life().apply(gated(replicas=3))
    out: dict[str, float] = {}
    waited = []

    def look(event: Any) -> None:
        if event.kind.name != "Pod" or event.new is None:
            return
        name, now = event.new["metadata"]["name"], life.world.clock.now
        conditions = {item["type"]: item["status"] for item in event.new["status"]["conditions"]}
        if conditions["Ready"] == "False":
            out.setdefault(name, now)
        before = event.old["spec"]["containers"][0]["image"]
        if before != event.new["spec"]["containers"][0]["image"]:
            waited.append(now - out[name])

    life.world.watch(look)
    life.patch(template=behind_a_gate("web:2"))
    assert len(waited) == 3
    assert min(waited) >= GRACE - 1  # the gate closes up to a second before the kubelet has looked


def test_a_rollback_in_the_middle_of_a_drain_restarts_nothing() -> None:
    life = Life().apply(gated(replicas=3))
    life.begin_patch(template=behind_a_gate("web:2"))
    life.until(lambda: "False" in gates(life))
    life.patch(template=behind_a_gate("web:1"))
    assert life.complete
    assert set(life.restarts().values()) == {0}
    assert gates(life) == {"True"}


def test_without_the_decorator_nothing_is_taken_down_and_it_says_why() -> None:
    """It was there once, or the gates would never have opened."""
    life = Life().apply(gated(replicas=3))
    life.world.hook.fail(10**6, path="/pod-status")
    life.begin_patch(template=behind_a_gate("web:2"))
    life.idle(0.1)
    assert set(life.restarts().values()) == {0}
    assert life.condition("PodStatusNotWritten").startswith("True ")
    life.world.hook.heal()
    life.world.restart()
    life.settle()
    assert life.complete
    assert set(life.images().split()) == {"web:2"}


@pytest.mark.slow
def test_many_gated_instances_are_rolled_without_a_surplus_write() -> None:
    """Two writes of each pod, and two of its status."""
    life = Life(check_every=200)
    life.apply(gated(replicas=MANY, maxUnavailable="10%"))
    assert life.complete
    assert totals(life) == {"create Pod": MANY, "status Pod": MANY}
    born = life.uids()
    life.patch(template=behind_a_gate("web:2"))
    assert life.complete
    assert totals(life) == {"update Pod": 2 * MANY, "status Pod": 2 * MANY}
    assert (gates(life), life.uids()) == ({"True"}, born)


def totals(life: Life) -> Counter[str]:
    """The number of writes of each kind that changed something."""
    return Counter(change.rpartition(" ")[0] for change in changes(life))
