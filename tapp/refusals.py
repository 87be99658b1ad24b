"""What is refused, and what to do about it: one condition per situation, while it lasts."""

from collections.abc import Callable
from dataclasses import dataclass

from tapp.plan import Plan
from tapp.templates import Unresolved

SHOWN = 5
"""How many instances or names a message lists before it says how many more there are."""


@dataclass(frozen=True)
class Finding:
    """A condition without its time: `status` is "True" or "False"."""

    type: str
    status: str
    reason: str
    message: str


def refusals(plan: Plan) -> list[Finding]:
    """The conditions of all refused situations that the plan met, in a fixed order."""
    return [found for check in _CHECKS if (found := check(plan)) is not None]


def _refused(type: str, reason: str, message: str) -> Finding:
    return Finding(type, "True", reason, message)


def _template_not_found(plan: Plan) -> Finding | None:
    lost: dict[str, list[int]] = {}
    for instance, _ in plan.open_cases:
        if instance.wanted and isinstance(instance.template, Unresolved):
            lost.setdefault(instance.template.message, []).append(instance.id)
    if not lost:
        return None
    message = "; ".join(
        f"{text}: instances {some(ids)} are kept as they are" for text, ids in sorted(lost.items())
    )
    return _refused("TemplateNotFound", "Unresolved", message)


def _invalid_budget(plan: Plan) -> Finding | None:
    problems = [b.problem for b in (plan.budgets.force, plan.budgets.rolling) if b.problem]
    if not problems:
        return None
    message = "; ".join(problems) + ": no instance of that group is updated"
    return _refused("InvalidBudget", "NotABudget", message)


def _creation_blocked(plan: Plan) -> Finding | None:
    blocked = [instance for instance, _ in plan.open_cases if instance.blocked]
    if not blocked:
        return None
    message = f"instance {blocked[0].id}: {blocked[0].blocked}"
    more = f" (and {len(blocked) - 1} more instances)" if len(blocked) > 1 else ""
    return _refused("CreationBlocked", "Blocked", message + more)


def _duplicate_merge_keys(plan: Plan) -> Finding | None:
    doubled = {
        instance.id: instance.pod.look.duplicates[0]
        for instance in plan.instances
        if instance.wanted and instance.pod is not None and instance.pod.look.duplicates
    }
    if not doubled:
        return None
    message = (
        f"instances {some(list(doubled))}: {next(iter(doubled.values()))} has two entries of one "
        "merge key, which Metacontroller cannot apply; install the admission policy that removes "
        "its last-applied annotation from pods, then kill and start these instances"
    )
    return _refused("DuplicateMergeKeys", "NotMergeable", message)


def _unreadable_pods(plan: Plan) -> Finding | None:
    odd = [
        instance for instance, _ in plan.open_cases if instance.pod is not None and instance.pod.odd
    ]
    if not odd:
        return None
    first = odd[0].pod.odd if odd[0].pod is not None else ""
    message = f"pods of instances {some([i.id for i in odd])} are left alone: {first}"
    return _refused("UnreadablePods", "Unreadable", message)


def _foreign_pods(plan: Plan) -> Finding | None:
    foreign = plan.world.foreign
    if not foreign:
        return None
    names = ", ".join(pod.name for pod in foreign[:SHOWN])
    more = f" and {len(foreign) - SHOWN} more" if len(foreign) > SHOWN else ""
    message = f"pods {names}{more} are no instance's and are left alone"
    return _refused("ForeignPods", "NoInstance", message)


def _unknown_instances(plan: Plan) -> Finding | None:
    spec = plan.world.tapp.spec
    strange = sorted(
        key
        for key in {*spec.templates, *spec.statuses}
        if not (key.isascii() and key.isdigit()) or (len(key) > 1 and key[0] == "0")
    )
    if not strange:
        return None
    message = f"spec.templates or spec.statuses: {strange[0]!r} is no instance's number"
    return _refused("UnknownInstances", "NotANumber", message)


def _unused_templates(plan: Plan) -> Finding | None:
    spec = plan.world.tapp.spec
    unused = spec.unused_templates() if spec.auto_delete_unused_template else []
    if not unused:
        return None
    more = f" and {len(unused) - SHOWN} more" if len(unused) > SHOWN else ""
    message = (
        f"spec.templatePool: nothing refers to {', '.join(unused[:SHOWN])}{more}; remove them, or "
        "install the admission policy that does"
    )
    return _refused("UnusedTemplates", "Unused", message)


def _force_delete(plan: Plan) -> Finding | None:
    if not plan.world.tapp.spec.force_delete_pod:
        return None
    message = (
        "spec.forceDeletePod is not supported yet: pods stuck Terminating on a lost node stay "
        "until it returns or is tainted node.kubernetes.io/out-of-service"
    )
    return _refused("ForceDeleteUnsupported", "NotSupported", message)


_CHECKS: tuple[Callable[[Plan], Finding | None], ...] = (
    _template_not_found,
    _invalid_budget,
    _creation_blocked,
    _duplicate_merge_keys,
    _unreadable_pods,
    _foreign_pods,
    _unknown_instances,
    _unused_templates,
    _force_delete,
)


def some(ids: list[int]) -> str:
    """Numbers for a sentence: all of a few, else the first ones and how many more."""
    shown = ", ".join(map(str, ids[:SHOWN]))
    return f"{shown} and {len(ids) - SHOWN} more" if len(ids) > SHOWN else shown
