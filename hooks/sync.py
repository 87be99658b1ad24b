"""The sync hook: what is there -> what should be there."""

from typing import Any

from hooks.wire.request import Request, world_of
from tapp.answer.children import desired_children
from tapp.answer.kstatus import recheck
from tapp.answer.status import summarize
from tapp.declared.model import TApp
from tapp.plan import Plan, plan
from tapp.world import Options


def decide(request: Request[TApp], options: Options, now: float) -> Plan:
    """Returns what a sync call decides about every instance."""
    return plan(world_of(request), options, now)


def sync(request: Request[TApp], options: Options, now: float) -> tuple[dict[str, Any], Plan]:
    """Answers a sync call, and gives the plan behind it.

    The answer has `status`, `children`, and `resyncAfterSeconds` where due. Raises
    NamespaceMissingError: see `desired_children`.
    """
    decided = decide(request, options, now)
    status = summarize(decided)
    answer: dict[str, Any] = {
        "status": status,
        "children": desired_children(decided, options, request),
    }
    if (wait := recheck(decided, status)) is not None:
        answer["resyncAfterSeconds"] = wait
    return answer, decided
