"""What is refused, and what to do about it: one condition per situation, while it lasts."""

from collections.abc import Callable, Iterable

from tapp.decide.missing import Since, lasting, unseen_claims
from tapp.plan import Plan
from tapp.spec.templates import Template, Unresolved
from tapp.words.conditions import Finding, Type
from tapp.words.ranges import SHOWN, some
from tapp.words.reasons import Reason
from tapp.words.vocabulary import RESTART_IN_PLACE, InstanceStatus


def refusals(plan: Plan) -> list[Finding]:
    """The conditions of all refused situations that the plan met, in a fixed order."""
    return [found for check in _CHECKS if (found := check(plan)) is not None]


def _refused(type: Type, reason: Reason, message: str) -> Finding:
    return Finding(type, "True", reason, message)


def _pods_not_created(plan: Plan) -> Finding | None:
    found = lasting(plan.not_created, plan.now)
    if not found:
        return None
    message = (
        f"instances {_since(found)}: their pods were asked for and are not there. The events of "
        "the TApp have the API server's words (kubectl describe); if they have none, there is a "
        "pod of that name that is not this TApp's. What belongs to nobody it takes over by "
        f"`kubectl tapp adopt {plan.world.tapp.metadata.name}`"
    )
    return _refused(Type.PODS_NOT_CREATED, Reason.MISSING, message)


def _claims_not_owned(plan: Plan) -> Finding | None:
    found = lasting(plan.not_owned, plan.now)
    if not found:
        return None
    ids = {id for ids in found.values() for id in ids}
    names = [
        name
        for item in plan.instances
        if item.id in ids
        for name in unseen_claims(plan.world, item)
    ]
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    message = (
        f"instances {_since(found)}: their pods use the claims {', '.join(names[:SHOWN])}{more}, "
        "which are not this TApp's: they neither grow nor go with it. It takes them over by "
        f"`kubectl tapp adopt {plan.world.tapp.metadata.name}`"
    )
    return _refused(Type.CLAIMS_NOT_OWNED, Reason.NOT_OWNED, message)


def _since(found: Since) -> str:
    return "; ".join(f"{some(ids)} since {since}" for since, ids in found.items())


def _images_edited(plan: Plan) -> Finding | None:
    edited = [(i.id, v.message) for i, v in plan.open_cases if v.reason == Reason.IMAGES_EDITED]
    if not edited:
        return None
    message = _joined([f"instance {id}: {message}" for id, message in edited], " instances")
    return _refused(Type.IMAGES_EDITED, Reason.EDITED, message)


def _template_not_found(plan: Plan) -> Finding | None:
    lost: dict[str, tuple[list[int], list[int]]] = {}
    for instance, _ in plan.open_cases:
        if instance.wanted and isinstance(instance.template, Unresolved):
            kept, missing = lost.setdefault(instance.template.message, ([], []))
            if instance.pod is not None:
                kept.append(instance.id)
            elif instance.should_run:
                missing.append(instance.id)
    parts = []
    for text, (kept, missing) in sorted(lost.items()):
        if kept:
            parts.append(f"{text}: instances {some(kept)} are kept as they are")
        if missing:
            parts.append(f"{text}: instances {some(missing)} are not created")
    if not parts:
        return None
    return _refused(Type.TEMPLATE_NOT_FOUND, Reason.UNRESOLVED, "; ".join(parts))


def _invalid_budget(plan: Plan) -> Finding | None:
    problems = [b.problem for b in (plan.budgets.force, plan.budgets.rolling) if b.problem]
    if not problems:
        return None
    message = "; ".join(problems) + ": no instance of that group is updated"
    return _refused(Type.INVALID_BUDGET, Reason.NOT_A_BUDGET, message)


def _creation_blocked(plan: Plan) -> Finding | None:
    blocked = [
        (i.id, verdict.message)
        for i, verdict in plan.open_cases
        if verdict.reason == Reason.BLOCKED
    ]
    if not blocked:
        return None
    message = f"instance {blocked[0][0]}: {blocked[0][1]}"
    more = f" (and {len(blocked) - 1} more instances)" if len(blocked) > 1 else ""
    return _refused(Type.CREATION_BLOCKED, Reason.BLOCKED, message + more)


def _duplicate_merge_keys(plan: Plan) -> Finding | None:
    doubled = {
        instance.id: instance.pod.told.unmergeable
        for instance in plan.instances
        if instance.wanted and instance.pod is not None and instance.pod.told.unmergeable
    }
    if not doubled:
        return None
    message = (
        f"instances {some(list(doubled))}: {next(iter(doubled.values()))} has two entries of one "
        "merge key, which Metacontroller cannot apply; install the admission policy that removes "
        "its last-applied annotation from pods, then kill and start these instances"
    )
    return _refused(Type.DUPLICATE_MERGE_KEYS, Reason.NOT_MERGEABLE, message)


def _claims_not_grown(plan: Plan) -> Finding | None:
    obstacles, app = plan.growth.obstacles, plan.world.tapp.metadata.name
    if not obstacles:
        return None
    shown = sorted(obstacles, key=lambda found: (found.template, found.why, found.has))
    parts = [
        f"claims {found.template}-{app}-N (N: {some(obstacles[found])}) ask for {found.has}, their "
        f"template for {found.wanted}: {found.why}"
        for found in shown[:SHOWN]
    ]
    if len(shown) > SHOWN:
        parts.append(f"and {sum(len(obstacles[found]) for found in shown[SHOWN:])} more claims")
    message = "; ".join(parts)
    if any(found.reason is Reason.NOT_EXPANDABLE for found in shown):
        return _refused(Type.CLAIMS_NOT_GROWN, Reason.NOT_EXPANDABLE, message)
    return _refused(Type.CLAIMS_NOT_GROWN, Reason.INFEASIBLE, message)


def _unreadable_pods(plan: Plan) -> Finding | None:
    odd = [
        instance for instance, _ in plan.open_cases if instance.pod is not None and instance.pod.odd
    ]
    if not odd:
        return None
    first = odd[0].pod.odd if odd[0].pod is not None else ""
    message = f"pods of instances {some([i.id for i in odd])} are left alone: {first}"
    return _refused(Type.UNREADABLE_PODS, Reason.UNREADABLE, message)


def _foreign_pods(plan: Plan) -> Finding | None:
    if not (foreign := plan.world.foreign):
        return None
    names = ", ".join(pod.name for pod in foreign[:SHOWN])
    more = f" and {len(foreign) - SHOWN} more" if len(foreign) > SHOWN else ""
    message = f"pods {names}{more} are no instance's and are left alone"
    return _refused(Type.FOREIGN_PODS, Reason.NO_INSTANCE, message)


def _images_not_pulled(plan: Plan) -> Finding | None:
    if not plan.pulls.failed:
        return None
    message = f"{_joined(plan.pulls.failed)}: no instance is stopped for these images"
    return _refused(Type.IMAGES_NOT_PULLED, Reason.PULL_FAILED, message)


def _pullers_not_run(plan: Plan) -> Finding | None:
    if not plan.pulls.unable:
        return None
    message = f"images are not pulled first: {_joined(plan.pulls.unable)}"
    return _refused(Type.PULLERS_NOT_RUN, Reason.NO_PULLER, message)


def _joined(parts: list[str], what: str = "") -> str:
    more = f"; and {len(parts) - SHOWN} more{what}" if len(parts) > SHOWN else ""
    return "; ".join(parts[:SHOWN]) + more


def _pods_not_resized(plan: Plan) -> Finding | None:
    late = plan.resizes.late
    if not late:
        return None
    message = _joined([f"instance {id}: {why}" for id, why in late.items()], " instances")
    if plan.resizes.deferred == set(late):
        return _refused(Type.PODS_NOT_RESIZED, Reason.RESIZE_DEFERRED, message)
    return _refused(Type.PODS_NOT_RESIZED, Reason.NOT_RESIZED, message)


def _unknown_containers(plan: Plan) -> Finding | None:
    """Requests for a restart in place that nothing follows."""
    wrong = {
        template.name: template.not_restarted[0]
        for instance in plan.instances
        if instance.wanted
        and isinstance(template := instance.template, Template)
        and template.not_restarted
    }
    if not wrong:
        return None
    parts = [
        f"template {name!r}: annotation {RESTART_IN_PLACE}.{container} restarts nothing: it has no "
        f"container {container!r} that keeps running"
        for name, container in wrong.items()
    ]
    return _refused(Type.UNKNOWN_CONTAINERS, Reason.NO_CONTAINER, _joined(parts, " templates"))


def _unknown_instances(plan: Plan) -> Finding | None:
    spec = plan.world.tapp.spec
    strange = sorted(key for key in {*spec.templates, *spec.statuses} if not _is_number(key))
    if not strange:
        return None
    message = f"spec.templates or spec.statuses: {strange[0]!r} is no instance's number"
    return _refused(Type.UNKNOWN_INSTANCES, Reason.NOT_A_NUMBER, message)


def _unknown_statuses(plan: Plan) -> Finding | None:
    """What is there by mistake only; the words that the old controller knew are none."""
    asked = plan.world.tapp.spec.statuses
    wrong = sorted(key for key, value in asked.items() if value not in _KNOWN_STATUSES)
    if not wrong:
        return None
    message = f"spec.statuses[{wrong[0]!r}] is {asked[wrong[0]]!r} and changes nothing"
    more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
    return _refused(
        Type.UNKNOWN_STATUSES,
        Reason.NOT_KILLED,
        f"{message}{more}: the only status to ask for is 'Killed'",
    )


def _is_number(key: str) -> bool:
    return key.isascii() and key.isdigit() and (len(key) == 1 or key[0] != "0")


_KNOWN_STATUSES = frozenset(status.value for status in InstanceStatus)


def _unused_instances(plan: Plan) -> Finding | None:
    spec = plan.world.tapp.spec
    parts = [
        f"spec.{field}: {_some_keys(beyond)}"
        for field, keys in (("statuses", spec.statuses), ("templates", spec.templates))
        if (beyond := [key for key in keys if _is_number(key) and _beyond(key, spec.replicas)])
    ]
    if not parts:
        return None
    message = f"{'; '.join(parts)}: not below spec.replicas ({spec.replicas}), so without effect"
    return _refused(Type.UNUSED_INSTANCES, Reason.NOT_BELOW_REPLICAS, message)


_DIGITS = 9
"""More digits no instance's number has."""


def _beyond(key: str, replicas: int) -> bool:
    return len(key) > _DIGITS or int(key) >= replicas


def _some_keys(keys: Iterable[str]) -> str:
    """Numbers for a sentence; one that is too long for a number is shown cut."""
    long = [f"{key[:_DIGITS]}..." for key in keys if len(key) > _DIGITS]
    return ", ".join(
        [*filter(None, [some([int(k) for k in keys if len(k) <= _DIGITS])]), *long[:1]]
    )


def _rolling_template_unused(plan: Plan) -> Finding | None:
    budgets, name = plan.budgets, plan.world.tapp.spec.rolling_name
    if budgets.rolling_used:
        return None
    rest = f"all instances are updated by {budgets.force.name} ({budgets.force.value})"
    where = f"spec.updateStrategy.template is {name!r}"
    if budgets.rolling_found:
        message = f"{where}, and no instance is to run it: {rest}"
        return _refused(Type.ROLLING_TEMPLATE_UNUSED, Reason.UNUSED, message)
    message = f"{where}, and there is no such template: {rest}"
    return _refused(Type.ROLLING_TEMPLATE_UNUSED, Reason.NOT_FOUND, message)


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
    return _refused(Type.UNUSED_TEMPLATES, Reason.UNUSED, message)


def _pod_status_not_written(plan: Plan) -> Finding | None:
    unserved = plan.marks.unserved
    if not unserved:
        return None
    message = (
        f"instances {some(unserved)}: nobody writes the status of their pods, which their "
        "readiness gate or their lost node waits for; install metacontroller/components/pod-status"
    )
    return _refused(Type.POD_STATUS_NOT_WRITTEN, Reason.NOT_SERVED, message)


def _most_nodes_silent(plan: Plan) -> Finding | None:
    nodes = plan.marks.nodes
    if not nodes.guarded or plan.world.tapp.spec.never_migrate:
        return None
    message = (
        f"{nodes.silent} of {nodes.all} nodes are not heard of: it is more likely that the control "
        "plane is cut off than that all of them are lost, so no instance is started elsewhere"
    )
    return _refused(Type.MOST_NODES_SILENT, Reason.GUARDED, message)


def _invalid_lost_node_seconds(plan: Plan) -> Finding | None:
    problem = plan.marks.lost_seconds_problem
    if not problem:
        return None
    return _refused(Type.INVALID_LOST_NODE_SECONDS, Reason.NOT_SECONDS, problem)


_CHECKS: tuple[Callable[[Plan], Finding | None], ...] = (
    _pods_not_created,
    _template_not_found,
    _invalid_budget,
    _creation_blocked,
    _duplicate_merge_keys,
    _claims_not_owned,
    _claims_not_grown,
    _images_edited,
    _unreadable_pods,
    _foreign_pods,
    _images_not_pulled,
    _pullers_not_run,
    _pods_not_resized,
    _unknown_containers,
    _unknown_instances,
    _unknown_statuses,
    _unused_instances,
    _rolling_template_unused,
    _unused_templates,
    _pod_status_not_written,
    _most_nodes_silent,
    _invalid_lost_node_seconds,
)
