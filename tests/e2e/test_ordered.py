"""`podManagementPolicy: OrderedReady` on a real API server: who waits, and what never does.

Beside a StatefulSet: `test_beside_statefulset.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.builders import claim_template

from .app import App, tapp
from .diary import Diary
from .kubelet_levers import Levers

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

ORDERED = {"podManagementPolicy": "OrderedReady"}


@pytest.fixture
def diary(app: App) -> Iterator[Diary]:
    """What happens to the TApp's pods."""
    with Diary(app.kube, app.namespace, "web") as found:
        yield found


def up(*numbers: int) -> list[str]:
    """Made one after another."""
    return [f"{word} {number}" for number in numbers for word in ("made", "ready")]


def down(*numbers: int) -> list[str]:
    """Taken away one after another."""
    return [f"{word} {number}" for number in numbers for word in ("ends", "gone")]


def test_up_and_down_one_after_another(app: App, diary: Diary) -> None:
    """With their claims, which are made with the pods; and nothing is written twice."""
    app.apply(tapp(**ORDERED, minReadySeconds=1, volumeClaimTemplates=[claim_template()])).settle()
    assert diary.news(6) == up(0, 1, 2)
    assert app.wrote_in_order(
        *(f"create {kind}-{id}" for id in range(3) for kind in ("Claim data-web", "Pod web"))
    )
    app.patch(replicas=5).settle()
    assert diary.news(4) == up(3, 4)
    app.patch(replicas=1).settle()
    assert diary.news(8) == down(4, 3, 2, 1)
    assert len(app.claims()) == 5
    assert app.idle()


def test_those_that_are_lost_come_back_upward_and_started_ones_too(
    app: App, diary: Diary, levers: Levers
) -> None:
    app.apply(tapp(replicas=4, **ORDERED)).settle()
    diary.news(8)
    levers.start_seconds = 0.5
    for number in (3, 1, 2):
        app.kube.delete("v1", "pods", app.namespace, f"web-{number}")
    lines = diary.news(12)
    coming = [line for line in lines if "made" in line or "ready" in line]
    assert coming == up(1, 2, 3)
    assert sorted(line for line in lines if line not in coming) == sorted(down(1, 2, 3))
    app.settle().patch(statuses={"0": "Killed", "2": "Killed"}).settle()
    assert sorted(diary.news(4)) == sorted(down(0, 2))
    app.patch(statuses={"0": None, "2": None}).settle()
    assert diary.news(4) == up(0, 2)


def test_a_pod_that_does_not_end_holds_up_those_below(
    app: App, diary: Diary, levers: Levers
) -> None:
    app.apply(tapp(replicas=3, **ORDERED)).settle()
    diary.news(6)
    levers.hang_deletion.add(f"{app.namespace}/web-2")
    app.patch(replicas=1)
    assert diary.news(1) == ["ends 2"]
    assert "Deleting: deleting: 2; waiting for those before them: 1" in app.condition("Progressing")
    levers.hang_deletion.clear()
    app.kube.delete("v1", "pods", app.namespace, "web-2", gracePeriodSeconds=0)
    app.settle()
    assert diary.news(3) == ["gone 2", *down(1)]
