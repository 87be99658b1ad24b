"""Updates that the service does not begin, because the new pod would be refused."""

from tests.unit.world import World, condition

BLOCKED = {"Keep/Blocked"}


def blocked_message(world: World) -> str:
    """Returns the message of `CreationBlocked` after a sync, or an empty string without it."""
    answer = world.sync()
    found = condition(answer, "CreationBlocked")
    degraded = condition(answer, "Degraded")
    assert degraded is not None
    assert degraded["status"] == ("False" if found is None else "True")
    return "" if found is None else str(found["message"])


def all_decisions(world: World) -> set[str]:
    """Returns the decisions of the next sync, without instance numbers."""
    return set(world.decisions().values())
