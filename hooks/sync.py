"""The sync hook: from the request to the response.

Begin here to follow a sync.

1. `Request` reads bytes into values (`hooks/wire/`).
2. `make_plan` makes all decisions, as a pure function of these values (`tapp/plan.py`).
3. `tapp/answer/` makes the JSON of the response: the conditions, the status, the children.
"""

from typing import Any, NamedTuple

from hooks.wire.request import Request, world_of
from tapp.answer.children import desired_children
from tapp.answer.conditions import Conditions, conditions_of, recheck
from tapp.answer.status import status_of
from tapp.declared.model import TApp
from tapp.plan import Plan, make_plan
from tapp.world import Options


class Synced(NamedTuple):
    """The result of a sync call: the response, and the decisions behind it for logs and Events."""

    answer: dict[str, Any]  # `status`, `children` and, if due, `resyncAfterSeconds`
    plan: Plan
    conditions: Conditions  # what `status.conditions` says


def decide(request: Request[TApp], options: Options, now: float) -> Plan:
    """Returns all decisions of a sync; `now` is the time in seconds since the epoch."""
    return make_plan(world_of(request), options, now)


def sync(request: Request[TApp], options: Options, now: float) -> Synced:
    """Handles a sync call: decides, and builds the response.

    `now` is the time in seconds since the epoch. Raises NamespaceMissingError if a claim has to be
    created and the request lacks the Namespace.
    """
    plan = decide(request, options, now)
    conditions = conditions_of(plan)
    answer: dict[str, Any] = {
        "status": status_of(plan, conditions),
        "children": desired_children(plan),
    }
    if (wait := recheck(plan, conditions)) is not None:
        answer["resyncAfterSeconds"] = wait
    return Synced(answer, plan, conditions)
