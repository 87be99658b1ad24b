"""What a roll waits for that has come no further for too long."""

from tapp.decide.instances import Instance
from tapp.decide.judge import Verdict
from tapp.plan import Plan
from tapp.words.groups import grouped
from tapp.words.ranges import some
from tapp.words.reasons import Disposition

_SHOWN = 5
"""How many different waits a message describes before it says how many more instances wait."""


def stalled(plan: Plan) -> str:
    """Which instances a roll waits for that is too late, for what and since when; "" in time."""
    roll = plan.roll
    if not roll.late:
        return ""
    waits = grouped((_wait(plan, *waiting), waiting[0].id) for waiting in roll.waiting)
    parts = [
        f"instance{'s'[: len(ids) != 1]} {some(ids)}: {text}"
        for text, ids in list(waits.items())[:_SHOWN]
    ]
    more = sum(len(ids) for ids in list(waits.values())[_SHOWN:])
    parts += [f"and {more} more"] if more else []
    limit = plan.world.tapp.spec.progress_deadline_seconds
    return (
        f"nothing has come further since {roll.since} (spec.progressDeadlineSeconds: {limit}): "
        f"{'; '.join(parts)}. The roll goes on as soon as one of them does; a changed template "
        "reaches at once those that are not available"
    )


def _wait(plan: Plan, instance: Instance, decision: Verdict) -> str:
    """What an instance waits for."""
    pod, trouble = instance.pod, plan.troubles.get(instance.id)
    held = decision.reason.disposition is Disposition.HELD
    if held or instance.id in plan.available:
        return decision.message
    if pod is None:
        return "it has no pod"
    if pod.terminating:
        return "its pod is ending"
    if trouble is not None and trouble.text:
        return trouble.text
    if instance.update.unfinished:
        return "its update in place is not finished"
    since = f" since {pod.ready_since}" if pod.ready_since else ""
    if pod.ready is not True:
        return f"its pod is not Ready{since}"
    return f"its pod is Ready{since}, and not available yet"
