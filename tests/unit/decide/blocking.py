"""Reads whether the service blocks an update because the API server would refuse the new pod."""

from tests.unit.world import World, condition

BLOCKED = {"Keep/Blocked"}
"""The decisions of a sync if all instances keep their pods for this reason."""


def blocked_message(world: World) -> str:
    """Runs a sync; returns the message of the condition `CreationBlocked`, or "" without the
    condition.

    Checks in addition that the TApp is Degraded if, and only if, the condition exists.
    """
    answer = world.sync()
    found = condition(answer, "CreationBlocked")
    degraded = condition(answer, "Degraded")
    assert degraded is not None
    assert degraded["status"] == ("False" if found is None else "True")
    return "" if found is None else str(found["message"])


def all_decisions(world: World) -> set[str]:
    """Returns the decisions of the next sync without instance numbers, each once."""
    return set(world.decisions().values())
