"""The failure domains: updates make instances unavailable in only one domain at a time.

`spec.updateStrategy.domain` is the key of a label. The value of this label on a pod is the domain
of its instance, for example its zone (docs/failure-domains.md). `wait_for_domains` is the entry
point. An update of a serving instance of the rolling group begins only if

- all instances of earlier domains are updated and available, and - all instances of later domains
are available.

The domains are ordered by the instance of each domain that is updated first. If the pod of an
instance has a node and lacks the label, the instance is a domain of its own. Such domains come
last. While an instance has no pod with a node, its domain is unknown, unless its template sets the
label.

So updates begin in only one domain at a time: the *open* domain, which is the first domain with an
instance that is not updated. Each instance is examined once, so the time is linear in their number.
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
"""States of instances that count as serving, so that their updates wait for other domains. An
instance on a silent node is not among them, because it waits for its node instead.
"""


class Domain(NamedTuple):
    """A failure domain: the instances whose pods have the same value of the label.

    If `value` is empty, the domain is one instance whose pod lacks the label.
    """

    value: str
    instance: int = -1  # the number of the instance if `value` is empty, otherwise -1


@dataclass
class Domains:
    """The updates that wait for other failure domains, and the instances whose pods lack
    the label.
    """

    # instance number -> the verdict that says why its update waits
    delays: dict[int, Verdict] = field(default_factory=dict)
    # the end of the sentence "the update waits until ...", which names the awaited instances and
    # their domain; "" if no update waits
    awaited: str = ""
    unlabeled: list[int] = field(
        default_factory=list
    )  # numbers of instances whose pods lack the label


def domain_of(instance: Instance, key: str) -> Domain | None:
    """Returns the failure domain of an instance; None if the domain is unknown.

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
    """Returns the delays of the updates that have to wait for instances of other failure domains.

    An update of an instance that does not serve is never delayed, because it may repair the
    instance. Updates of the force group are not delayed, either.

    Args:
        spec: the spec of the TApp.
        cases: all instances with their verdicts. The verdicts of instances on hold are delayed
            already.
        serving: the availability of all instances, before any update of this sync.
        budgets: the budgets, which say whether an instance belongs to the rolling group or to the
            force group.
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
        # Updates of the force group take their part of the budget first. So the instances of these
        # updates count as unavailable.
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
        # No domain waits for the update of a pod on hold, because the hold may last for hours. The
        # budget does not wait for such a pod either.
        is_held = case.delay is not None and case.delay.reason is Reason.HELD
        if is_held or case.verdict.reason.standing is Standing.DONE:
            continue
        behind.setdefault(domain, []).append(id)
        if case.verdict.is_update and state in _SERVES:
            due.append((id, domain))
    # While updates are paused, the pause is the reason why they wait, and not another domain.
    if not due or spec.update_strategy.paused:
        return found
    opened = min(behind, key=lambda domain: first[domain])
    ids = sorted({*behind[opened], *unavailable.pop(opened, ())})
    found.awaited = f"{_of_domain(ids, opened, key)} {_are(ids)} updated and available"
    found.delays = _delayed([id for id, domain in due if domain != opened], found.awaited)
    if unavailable:
        # If instances of several other domains are unavailable, the message names the domain with
        # the lowest instance number.
        other, ids = min(unavailable.items(), key=lambda item: item[1][0])
        found.awaited = f"{_of_domain(ids, other, key)} {_are(ids)} available"
        found.delays |= _delayed([id for id, domain in due if domain == opened], found.awaited)
    return found


def _delayed(ids: Iterable[int], awaited: str) -> dict[int, Verdict]:
    """Returns instance number -> the verdict that delays its update.

    `awaited` is the end of the sentence "the update waits until ...".
    """
    verdict = wait(Reason.WAITING_FOR_DOMAIN, f"the update waits until {awaited}")
    return dict.fromkeys(ids, verdict)


def _of_domain(ids: Collection[int], domain: Domain | None, key: str) -> str:
    """Returns a phrase that names instances and their failure domain.

    `domain` is None if their domain is unknown.

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
