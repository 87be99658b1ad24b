"""The failure domains: updates take down instances of one domain at a time.

With `spec.updateStrategy.domain`, the value of that label of a pod is the domain of its instance,
for example its zone (docs/failure-domains.md). An update of the rolling group that takes down an
instance that serves begins only if

- all instances of the domains before it are updated and available, and
- all instances of the domains behind it are available.

The domains have the order of their first instance in the order of updates. An instance whose pod
has a node and lacks the label is a domain of its own. Such domains come last. The domain of an
instance is unknown while it has no pod with a node, unless its template sets the label.

So only one domain at a time has updates: the *open* domain, which is the first one with an instance
that is not updated. All rules look once at each instance.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from tapp.decide.cases import Case
from tapp.decide.instances import Instance
from tapp.decide.rollout import Budgets, update_order
from tapp.decide.serving import Serving, ServingState
from tapp.decide.verdicts import Verdict, wait
from tapp.declared.model import TAppSpec
from tapp.kube.parts import map_of
from tapp.words.quoted import short
from tapp.words.ranges import instance_list
from tapp.words.reasons import Reason, Standing

_SERVES = (ServingState.AVAILABLE, ServingState.RESIZING, ServingState.UNTRUSTED,
           ServingState.DELETION_UNCONFIRMED)  # fmt: skip
"""States of the instances whose updates wait. A silent instance waits for its node instead."""


class Domain(NamedTuple):
    """A failure domain: the instances whose pods have the same value of the label.

    If `value` is empty, the domain is one instance whose pod lacks the label.
    """

    value: str
    instance: int = -1  # the number of the instance if `value` is empty, otherwise -1


@dataclass
class Domains:
    """The updates that wait for other failure domains, and the instances without a domain."""

    delays: dict[int, Verdict] = field(default_factory=dict)  # instance -> why its update waits
    # the instances for which these updates wait, and their domain, as the end of a sentence; "" if
    # no update waits
    awaited: str = ""
    unlabeled: list[int] = field(default_factory=list)  # instances whose pods lack the label


def domain_of(instance: Instance, key: str) -> Domain | None:
    """Returns the failure domain of an instance, or None if it is unknown.

    `key` is the key of the label (`spec.updateStrategy.domain`).
    """
    pod, template = instance.pod, instance.template
    if pod is not None:
        value = map_of(msgspec.json.decode(pod.labels)).get(key)
        if isinstance(value, str) and value:
            return Domain(value)
        # Admission copies the labels of the node when the pod is bound to it.
        return Domain("", instance.id) if pod.node else None
    value = "" if template is None else template.labels.get(key, "")
    return Domain(value) if value else None


def wait_for_domains(
    spec: TAppSpec, cases: Sequence[Case], serving: Serving, budgets: Budgets
) -> Domains:
    """Delays the updates that have to wait for instances of other failure domains.

    An update of an instance that does not serve is never delayed, because it may repair the
    instance. Updates of the force group are not delayed, either.

    Args:
        spec: the spec of the TApp.
        cases: all instances with the verdicts on them; holds have delayed some verdicts.
        serving: which instances are available, before any update of this sync.
        budgets: the budgets, which tell the rolling group from the force group.
    """
    found, key = Domains(), spec.update_strategy.domain
    if not key:
        return found
    first = dict[Domain, tuple[bool, bool, int, int]]()
    unavailable, behind = dict[Domain | None, list[int]](), dict[Domain, list[int]]()
    due = list[tuple[int, Domain]]()
    for case in cases:
        instance = case.instance
        if not instance.should_run:
            continue
        id, domain = instance.id, domain_of(instance, key)
        state = serving.states.get(id)
        rolling = budgets.is_rolling(instance, spec.rolling_name)
        # Forced updates come first, as in the budget.
        forced = not rolling and case.verdict.is_update and case.delay is None
        if forced or state is not ServingState.AVAILABLE:
            unavailable.setdefault(domain, []).append(id)
        if domain is None or not rolling:
            continue
        if not domain.value:
            found.unlabeled.append(id)
        order = update_order(instance, spec.update_strategy, spec.rolling_name)
        place = (not domain.value, *order)
        first[domain] = min(first.get(domain, place), place)
        # A pod on hold is passed over, as by the budget: its hold may last for hours.
        is_held = case.delay is not None and case.delay.reason is Reason.HELD
        if is_held or case.verdict.reason.standing is Standing.DONE:
            continue
        behind.setdefault(domain, []).append(id)
        if case.verdict.is_update and state in _SERVES:
            due.append((id, domain))
    # Paused updates say that they are paused.
    if not due or spec.update_strategy.paused:
        return found
    opened = min(behind, key=lambda domain: first[domain])
    ids = sorted({*behind[opened], *unavailable.pop(opened, ())})
    found.awaited = f"{_of_domain(ids, opened, key)} {_are(ids)} updated and available"
    found.delays = _delayed([id for id, domain in due if domain != opened], found.awaited)
    if unavailable:
        # Of several domains, the one that has the lowest unavailable instance is named.
        other, ids = min(unavailable.items(), key=lambda item: item[1][0])
        found.awaited = f"{_of_domain(ids, other, key)} {_are(ids)} available"
        found.delays |= _delayed([id for id, domain in due if domain == opened], found.awaited)
    return found


def _delayed(ids: Iterable[int], awaited: str) -> dict[int, Verdict]:
    """Returns instance number -> the verdict that delays its update until the event `awaited`."""
    verdict = wait(Reason.WAITING_FOR_DOMAIN, f"the update waits until {awaited}")
    return dict.fromkeys(ids, verdict)


def _of_domain(ids: Collection[int], domain: Domain | None, key: str) -> str:
    """Returns instances and their failure domain for a sentence; None is an unknown domain.

    `key` is the key of the label.
    """
    field = f"spec.updateStrategy.domain: {short(key)}"
    if domain is None:
        return (
            f"{instance_list(ids)}, whose domain is not known before its pod has a node ({field}),"
        )
    if domain.value:
        return f"{instance_list(ids)} of domain {short(domain.value)} ({field})"
    return f"{instance_list(ids)}, whose pod lacks the label of its domain ({field}),"


def _are(ids: Collection[int]) -> str:
    return "is" if len(ids) == 1 else "are"
