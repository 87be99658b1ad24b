"""Refusals about mistakes of users in the spec, or in annotations of pods and templates.

Each function in `CHECKS` looks for one kind of mistake. It returns a refusal (a condition for the
TApp's status), or None if there is no such mistake.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from tapp.decide.rollout import PRIORITY, priorities
from tapp.plan import Plan
from tapp.pod.hold import FOR_DELETE, FOR_UPDATE
from tapp.words.conditions import Finding, Type
from tapp.words.digits import is_whole
from tapp.words.groups import grouped
from tapp.words.quoted import quoted
from tapp.words.ranges import id_list, instance_list, joined, name_list
from tapp.words.reasons import Reason
from tapp.words.vocabulary import HOLD_FOR, UPDATE_PRIORITY, InstanceStatus


def refused(type: Type, reason: Reason, message: str) -> Finding | None:
    """Returns a True condition with the given reason and message; None if the message is empty."""
    return Finding(type, "True", reason, message) if message else None


def place(plan: Plan) -> str:
    """Returns the text `NAME -n NAMESPACE` with which a kubectl command in a message names the
    TApp.
    """
    metadata = plan.world.tapp.metadata
    return f"{metadata.name} -n {metadata.namespace}"


def _unknown_instances(plan: Plan) -> Finding | None:
    """Returns the condition about keys in the spec that are not instance numbers, or None.

    The function checks the keys of `spec.templates`, `spec.statuses` and `spec.values`.
    """
    spec = plan.world.tapp.spec
    fields: dict[str, Mapping[str, object]] = {
        "templates": spec.templates,
        "statuses": spec.statuses,
        "values": spec.values,
    }
    strange = {key for keys in fields.values() for key in keys if not _is_number(key)}
    if not strange:
        return None
    first = min(strange)
    where = " or ".join(f"spec.{field}" for field, keys in fields.items() if first in keys)
    message = f"{where}: {quoted(first)} is not an instance number, so the entry has no effect"
    return refused(Type.UNKNOWN_INSTANCES, Reason.NOT_A_NUMBER, message)


def _unknown_statuses(plan: Plan) -> Finding | None:
    """Returns the condition about unknown statuses in `spec.statuses`, or None.

    A status is known if this service or the old tapp-controller uses it.
    """
    asked = plan.world.tapp.spec.statuses
    wrong = sorted(key for key, value in asked.items() if value not in _KNOWN_STATUSES)
    if not wrong:
        return None
    message = f"spec.statuses[{quoted(wrong[0])}] is {quoted(asked[wrong[0]])} and has no effect"
    more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
    return refused(
        Type.UNKNOWN_STATUSES,
        Reason.NOT_KILLED,
        f"{message}{more}: the only valid entry is 'Killed', which stops the instance",
    )


def _is_number(key: str) -> bool:
    """Returns True if a key has the form of an instance number: digits without leading zeros."""
    return is_whole(key) and (len(key) == 1 or key[0] != "0")


_KNOWN_STATUSES = frozenset(status.value for status in InstanceStatus)


def _unused_instances(plan: Plan) -> Finding | None:
    """Returns the condition about instance numbers in the spec that are not below `spec.replicas`.

    Returns None if all instance numbers in the spec are below `spec.replicas`.
    """
    spec = plan.world.tapp.spec
    below = {*map(str, range(spec.replicas))}
    parts = [
        f"spec.{field} names {_some_keys(beyond)}"
        for field, keys in (
            ("statuses", spec.statuses),
            ("templates", spec.templates),
            ("values", spec.values),
        )
        if (beyond := [key for key in keys if key not in below and _is_number(key)])
    ]
    if not parts:
        return None
    message = (
        f"{' and '.join(parts)}: instance numbers have to be below spec.replicas "
        f"({spec.replicas}), so these entries have no effect"
    )
    return refused(Type.UNUSED_INSTANCES, Reason.NOT_BELOW_REPLICAS, message)


_DIGITS = 9  # Most digits of an instance number


def _some_keys(keys: Iterable[str]) -> str:
    """Returns keys of the spec as ranges of numbers for a sentence, such as `5-7`.

    Keys that are too long for an instance number are not in the ranges. The text names only the
    first of them, shortened.
    """
    long = [f"{key[:_DIGITS]}..." for key in keys if len(key) > _DIGITS]
    return ", ".join(
        [*filter(None, [id_list([int(k) for k in keys if len(k) <= _DIGITS])]), *long[:1]]
    )


def _unused_values(plan: Plan) -> Finding | None:
    """Returns the condition about values in the spec that no template reads, or None.

    The likely cause is a typo in a key of `spec.values` or `spec.defaultValues`, or in a
    placeholder of the template.
    """
    unread = name_list([repr(key) for key in plan.world.templates.unread_values()])
    message = unread and (
        f"no template reads {unread} of spec.values or spec.defaultValues: look for a mistyped key "
        "there, or for a mistyped placeholder in the template"
    )
    return refused(Type.UNUSED_VALUES, Reason.NOT_READ, message)


def _rolling_template_unused(plan: Plan) -> Finding | None:
    """Returns the condition about a missing or unused template in `spec.updateStrategy.template`.

    Returns None if at least one instance uses that template, or if the field is not set.
    """
    budgets, name = plan.budgets, plan.world.tapp.spec.rolling_name
    if budgets.rolling_used:
        return None
    rest = f"the budget of all instances is {budgets.force.name} ({budgets.force.value})"
    if plan.partition.problem:
        rest = "no instance is updated, because the partition applies to that template"
    elif plan.partition.is_set:
        rest += ", and the partition keeps no instance"
    where = f"spec.updateStrategy.template is {quoted(name)}"
    if budgets.rolling_found:
        message = f"{where}, and no instance uses that template, so {rest}"
        return refused(Type.ROLLING_TEMPLATE_UNUSED, Reason.UNUSED, message)
    message = f"{where}, and there is no such template: correct the name. Until then, {rest}"
    return refused(Type.ROLLING_TEMPLATE_UNUSED, Reason.NOT_FOUND, message)


def _invalid_partition(plan: Plan) -> Finding | None:
    """Returns the condition about an invalid partition, or None.

    A partition is also invalid if it applies to a template that does not exist.
    """
    message = (
        plan.partition.problem
        and f"{plan.partition.problem} is updated until the field is corrected"
    )
    return refused(Type.INVALID_PARTITION, Reason.NOT_A_PARTITION, message)


def _unused_templates(plan: Plan) -> Finding | None:
    """Returns the condition about unused templates in `spec.templatePool`, or None.

    Without `spec.autoDeleteUnusedTemplate`, the function always returns None, because unused
    templates may then stay.
    """
    spec = plan.world.tapp.spec
    unused = spec.unused_templates() if spec.auto_delete_unused_template else []
    if not unused:
        return None
    message = (
        f"spec.templatePool: no instance uses {name_list([quoted(each) for each in unused])}; "
        "remove the unused templates, or "
        "install the admission policy that removes them"
    )
    return refused(Type.UNUSED_TEMPLATES, Reason.UNUSED, message)


def _invalid_update_priority(plan: Plan) -> Finding | None:
    """Returns the condition about update priorities that are not integers, or None.

    Users set the priority of an instance by an annotation of its pod or its template.
    """
    wrong = _quoted(
        (text, instance.id)
        for instance in plan.instances
        if instance.wanted
        for text in priorities(instance)
        if not PRIORITY.fullmatch(text)
    )
    message = wrong and (
        f"annotation {UPDATE_PRIORITY} of a pod or its template is not an integer of at most 9 "
        f"digits, so it is ignored: {wrong}"
    )
    return refused(Type.INVALID_UPDATE_PRIORITY, Reason.NOT_A_PRIORITY, message)


def _domain_label_missing(plan: Plan) -> Finding | None:
    """Returns the condition about pods without the label of their failure domain, or None."""
    ids, key = plan.findings.domains.unlabeled, plan.world.tapp.spec.update_strategy.domain
    message = ids and (
        f"spec.updateStrategy.domain: pods have no label {quoted(key)} ({instance_list(ids)}), so "
        "each of these instances is updated alone, after all domains"
    )
    return refused(Type.DOMAIN_LABEL_MISSING, Reason.NOT_LABELED, message or "")


def _invalid_hold_for(plan: Plan) -> Finding | None:
    """Returns the condition about holds that are limited to an unknown action, or None.

    A second annotation of the pod limits a hold to one action: update or delete.
    """
    wrong = _quoted(
        (hold.limited_to, instance.id)
        for instance in plan.instances
        if (pod := instance.pod) is not None
        and (hold := pod.spec.hold) is not None
        and hold.has_invalid_limit
    )
    message = wrong and (
        f"annotation {HOLD_FOR} of a pod is neither {FOR_UPDATE} nor {FOR_DELETE}, so its hold "
        f"prevents both; correct or remove the annotation: {wrong}"
    )
    return refused(Type.INVALID_HOLD_FOR, Reason.NOT_A_HOLD, message)


_QUOTED = 40  # Most characters of an invalid text that a message quotes


def _quoted(texts: Iterable[tuple[str, int]]) -> str:
    """Returns a text that names each invalid text and the instances that have it.

    Returns an empty string if there are no invalid texts. `texts` are pairs of an invalid text and
    the number of the instance that has it.
    """
    wrong = grouped(dict.fromkeys((text[:_QUOTED], id) for text, id in texts))
    parts = [f"{instance_list(ids)}: {quoted(text)}" for text, ids in sorted(wrong.items())]
    return joined(parts, " values")


CHECKS: Final[tuple[Callable[[Plan], Finding | None], ...]] = (
    _invalid_partition, _unknown_instances, _unknown_statuses, _unused_instances, _unused_values,
    _rolling_template_unused, _unused_templates, _domain_label_missing, _invalid_update_priority,
    _invalid_hold_for,
)  # fmt: skip
