"""Tests updates in place of instances that leave their Services first.

For that the service closes a readiness gate of the pod.
"""

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
    """Returns a TApp whose instances spend five seconds outside their Services before an update in
    place.

    `strategy` has further fields of the update strategy.
    """
    drained = {"inPlaceUpdateStrategy": {"gracePeriodSeconds": GRACE}, **strategy}
    return tapp(image, replicas, template=gated_template(image), updateStrategy=drained)


def gated_template(image: str) -> Document:
    return template(image, readinessGates=[{"conditionType": GATE}])


def gate_statuses(life: Life) -> set[str]:
    """Returns the different statuses that the service's readiness gate has in all pods."""
    return {
        item["status"]
        for pod in life.pods.values()
        for item in pod["status"]["conditions"]
        if item["type"] == GATE
    }


def test_rollout_with_a_grace_period_writes_each_pod_twice_and_its_status_twice() -> None:
    life = Life().apply(gated())
    names = [f"web-{id}" for id in range(6)]
    assert sorted(changes(life)) == sorted(
        [*each("create Pod", *names), *each("status Pod", *names)]
    )
    assert gate_statuses(life) == {"True"}
    born = life.uids()

    life.watch_readiness()
    life.patch(template=gated_template("web:2"))
    assert life.complete
    assert Counter(changes(life)) == {
        f"{verb} Pod {name}": 2 for verb in ("update", "status") for name in names
    }
    assert life.uids() == born
    assert set(life.images().split()) == {"web:2"}
    assert set(life.restarts().values()) == {1}
    assert gate_statuses(life) == {"True"}

    life.idle()
    assert life.news() == []


def changes(life: Life) -> list[str]:
    """Returns the writes to pods since the last call that have changed something.

    After each write of a status, Metacontroller also writes the pod. The second write changes
    nothing, so the API server does not store it.
    """
    news = [write for write in life.news() if write.kind == "Pod"]
    assert {write.outcome for write in news} <= {"ok", "no-op"}
    idle = sum(write.outcome == "no-op" for write in news)
    assert idle == sum(write.verb == "status" for write in news)
    return [f"{write.verb} Pod {write.name}" for write in news if write.outcome == "ok"]


def test_containers_restart_only_after_the_grace_period_outside_the_services() -> None:
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
    life.patch(template=gated_template("web:2"))
    assert len(waited) == 3
    assert min(waited) >= GRACE - 1  # the kubelet observes the gate within a second


def test_rollback_during_the_grace_period_restarts_nothing() -> None:
    life = Life().apply(gated(replicas=3))
    life.begin_patch(template=gated_template("web:2"))
    life.until(lambda: "False" in gate_statuses(life))
    life.patch(template=gated_template("web:1"))
    assert life.complete
    assert set(life.restarts().values()) == {0}
    assert gate_statuses(life) == {"True"}


def test_rollout_stops_with_a_condition_while_the_pod_status_hook_fails() -> None:
    """While the pod-status hook fails, a rollout restarts nothing, and the condition
    PodStatusNotWritten says why.

    The hook worked before, because otherwise the gates would never have opened.
    """
    life = Life().apply(gated(replicas=3))
    life.world.hook.fail(10**6, path="/pod-status")
    life.begin_patch(template=gated_template("web:2"))
    life.idle(0.1)
    assert set(life.restarts().values()) == {0}
    assert life.condition("PodStatusNotWritten").startswith("True ")
    life.world.hook.heal()
    life.world.restart()
    life.settle()
    assert life.complete
    assert set(life.images().split()) == {"web:2"}


@pytest.mark.slow
def test_rollout_of_many_gated_instances_causes_no_unnecessary_write() -> None:
    """Updates many instances: each pod is written twice, and its status twice."""
    life = Life(check_every=200)
    life.apply(gated(replicas=MANY, maxUnavailable="10%"))
    assert life.complete
    assert totals(life) == {"create Pod": MANY, "status Pod": MANY}
    born = life.uids()
    life.patch(template=gated_template("web:2"))
    assert life.complete
    assert totals(life) == {"update Pod": 2 * MANY, "status Pod": 2 * MANY}
    assert gate_statuses(life) == {"True"}
    assert life.uids() == born


def totals(life: Life) -> Counter[str]:
    """Returns verb and kind -> number of the writes since the last call that have changed
    something.
    """
    return Counter(change.rpartition(" ")[0] for change in changes(life))
