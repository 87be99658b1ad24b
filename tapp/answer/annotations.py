"""What is a mistake in an annotation of a pod or its template: a condition for each."""

from collections.abc import Callable

from tapp.answer.mistakes import joined, refused
from tapp.decide.instances import Instance
from tapp.decide.rollout import PRIORITY, has_priority, priorities
from tapp.plan import Plan
from tapp.pod.hold import FOR_DELETE, FOR_UPDATE
from tapp.words.conditions import Finding, Type
from tapp.words.groups import grouped
from tapp.words.ranges import some
from tapp.words.reasons import Reason
from tapp.words.vocabulary import HOLD_FOR, UPDATE_PRIORITY


def invalid_update_priority(plan: Plan) -> Finding | None:
    """Priorities that are no integers."""
    wrong = _quoted(plan, _odd_priorities)
    if not wrong:
        return None
    message = (
        f"annotation {UPDATE_PRIORITY} of a pod or its template is ignored, write an integer of at "
        f"most 9 digits: {wrong}"
    )
    return refused(Type.INVALID_UPDATE_PRIORITY, Reason.NOT_A_PRIORITY, message)


def _odd_priorities(instance: Instance) -> list[str]:
    if not (instance.wanted and has_priority(instance)):
        return []
    return [text for text in priorities(instance) if not PRIORITY.fullmatch(text)]


def invalid_hold_for(plan: Plan) -> Finding | None:
    """Holds that are narrowed to something that there is not."""
    wrong = _quoted(plan, _odd_narrowing)
    if not wrong:
        return None
    message = (
        f"annotation {HOLD_FOR} of a pod is ignored, so that its hold is for everything; write "
        f"{FOR_UPDATE} or {FOR_DELETE}, or leave it out: {wrong}"
    )
    return refused(Type.INVALID_HOLD_FOR, Reason.NOT_A_HOLD, message)


def _odd_narrowing(instance: Instance) -> list[str]:
    hold = None if instance.pod is None else instance.pod.spec.hold
    return [hold.narrowed] if hold is not None and hold.is_mistaken else []


_QUOTED = 40
"""Characters that are quoted of what should be something else."""


def _quoted(plan: Plan, odd: Callable[[Instance], list[str]]) -> str:
    """Which instances have which odd texts, "" where there are none."""
    wrong = grouped(
        (text, instance.id)
        for instance in plan.instances
        for text in {text[:_QUOTED] for text in odd(instance)}
    )
    parts = [f"instances {some(ids)}: {text!r}" for text, ids in sorted(wrong.items())]
    return joined(parts, " values") if parts else ""
