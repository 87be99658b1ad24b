"""Tests the time limits of holds: `updateStrategy.holdTimeoutSeconds` and
`deletionHoldTimeoutSeconds`.
"""

import pytest

from tests.builders import Document
from tests.unit.decide.holds import (
    BEGAN,
    HOLD,
    Change,
    at_second,
    by_new_pods,
    in_place,
    killed,
    pending_action,
    planned,
    scaled_down,
    tapp_on_hold,
)


@pytest.mark.parametrize(
    ("change", "spec"),
    [
        (in_place, {"updateStrategy": {"holdTimeoutSeconds": 90}}),
        (by_new_pods, {"updateStrategy": {"holdTimeoutSeconds": 90}}),
        (killed, {"deletionHoldTimeoutSeconds": 90}),
        (scaled_down, {"deletionHoldTimeoutSeconds": 90}),
    ],
    ids=["update in place", "replacement", "killed", "scaled down"],
)
def test_hold_ends_at_its_time_limit_and_a_resync_is_due_then(
    change: Change, spec: Document
) -> None:
    world = change(tapp_on_hold(**spec))
    world.settle()
    assert world.sync()["resyncAfterSeconds"] == 90
    message = planned(at_second(world, 89))["message"]
    assert "until 2026-01-05T11:01:30Z at the latest; the " in message
    assert " has been pending since 2026-01-05T11:00:00Z" in message
    assert world.sync()["resyncAfterSeconds"] == 1
    decision = at_second(world, 90).decisions()[0]
    assert decision.split("/")[0] in ("UpdateInPlace", "Recreate", "Delete")


@pytest.mark.parametrize(
    ("change", "other"),
    [
        (in_place, {"deletionHoldTimeoutSeconds": 0}),
        (by_new_pods, {"deletionHoldTimeoutSeconds": 0}),
        (killed, {"updateStrategy": {"holdTimeoutSeconds": 0}}),
        (scaled_down, {"updateStrategy": {"holdTimeoutSeconds": 0}}),
    ],
    ids=["update in place", "replacement", "killed", "scaled down"],
)
def test_time_limits_of_updates_and_deletions_are_independent_and_unlimited_by_default(
    change: Change, other: Document
) -> None:
    world = change(tapp_on_hold(**other)).settle()
    answer = at_second(world, 10**8).sync()
    assert world.decisions()[0] == "Keep/Held"
    assert "resyncAfterSeconds" not in answer


def test_hold_has_no_effect_with_a_time_limit_of_0() -> None:
    world = tapp_on_hold(deletionHoldTimeoutSeconds=0, updateStrategy={"holdTimeoutSeconds": 0})
    assert by_new_pods(world).decisions()[0] == "Recreate/TemplateChanged"
    assert killed(world).decisions()[0] == "Delete/Killed"


def test_time_of_the_pending_action_stays_while_an_expired_hold_waits_for_the_budget() -> None:
    """A hold has expired, and the update waits for the budget: the time of the pending action does
    not change.

    If the time started again, the limit would never be reached.
    """
    world = tapp_on_hold(id=2, updateStrategy={"holdTimeoutSeconds": 30})
    by_new_pods(world).sync()
    for seconds in (40, 50, 60):
        at_second(world, seconds).sync()
        assert world.decisions()[2] == "Keep/WaitingForBudget"
        assert pending_action(world, 2) == ("Recreate", BEGAN, "true")


def test_update_after_the_time_limit_keeps_the_hold_annotation_and_label() -> None:
    world = in_place(tapp_on_hold(updateStrategy={"holdTimeoutSeconds": 30})).settle()
    at_second(world, 31).settle()
    assert world.container(0)["image"] == "nginx:2"
    assert pending_action(world) == (None, None, "true")
    assert world.pod(0)["metadata"]["annotations"][HOLD] == "match 42"
