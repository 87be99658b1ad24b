"""The sync hook: what is there -> what should be there."""

from typing import Any

from hooks.wire.request import Request, world_of
from tapp.answer.children import desired_children
from tapp.answer.kstatus import recheck
from tapp.answer.status import summarize
from tapp.plan import Plan, plan
from tapp.spec.model import TApp
from tapp.world import Options


def sync(request: Request[TApp], options: Options, now: float) -> tuple[dict[str, Any], Plan]:
    """Answers a sync call.

    Args:
        request: what Metacontroller observed.
        options: the operator's choices.
        now: seconds since the epoch.

    Returns:
        The answer (`status`, `children`, `resyncAfterSeconds` where due) and the plan behind it.

    Raises:
        NamespaceMissingError: see `desired_children`.
    """
    decided = plan(world_of(request), options, now)
    status = summarize(decided)
    answer: dict[str, Any] = {
        "status": status,
        "children": desired_children(decided, options, request),
    }
    if (wait := recheck(decided, status)) is not None:
        answer["resyncAfterSeconds"] = wait
    return answer, decided
