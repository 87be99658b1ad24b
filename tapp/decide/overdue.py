"""Overdue deletions: objects that still exist long after their deletion was requested.

The API server deletes an object when its finalizers are gone, and a pod only after its kubelet has
also reported the end of its containers. `metadata.deletionTimestamp` includes the grace period, so
a deletion is overdue `TROUBLE_AFTER` seconds after that time. A pod on a silent node may be overdue
earlier, because no kubelet ends it. `overdue_of` finds these objects. The other functions describe
what prevents a deletion, and what a user can do.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from tapp.kube.objects import ClaimObject
from tapp.kube.parts import texts_of
from tapp.pod.lost import observed_silence, silent_since
from tapp.pod.manifest import Manifest
from tapp.pod.pod import Pod
from tapp.pod.trouble import TROUBLE_AFTER
from tapp.pod.waiting import Trouble
from tapp.words.groups import grouped
from tapp.words.quoted import short
from tapp.words.ranges import SHOWN, name_list
from tapp.words.times import UNKNOWN, seconds

_PROTECTED = "kubernetes.io/pvc-protection"  # The finalizer of a claim that a pod still uses
# The form of a finalizer that can stand in a command; the API server accepts no other form.
_FINALIZER = re.compile(r"[A-Za-z0-9./_-]{1,317}")
_NO_REASON = "the object does not show why"
_OUT_OF_SERVICE = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"


class Kept(NamedTuple):
    """An object that still exists although its deletion is overdue."""

    name: str
    gone_by: str  # its deletionTimestamp, RFC 3339
    finalizers: tuple[str, ...]
    pod: Pod | None = None  # the pod; None for other kinds
    silent: bool = False  # whether the node of the pod has stopped reporting
    # If the object is a claim: name of a pod that uses the claim and is not being deleted, or ""
    user: str = ""


@dataclass(frozen=True)
class Overdue:
    """The objects of a TApp that still exist although their deletion is overdue."""

    pods: Sequence[Kept] = ()
    claims: Sequence[Kept] = ()
    services: Sequence[Kept] = ()
    waits: Sequence[float] = ()  # seconds until further deletions are overdue


def overdue_of(
    pods: Iterable[Pod], claims: Iterable[ClaimObject], services: Iterable[Manifest], now: float
) -> Overdue:
    """Returns the objects whose deletion is overdue, and when further deletions will be.

    The objects of each kind are sorted, so that the messages do not depend on the order of the
    children in a request. `now` is the time of this sync, in seconds since the epoch.
    """
    known = list(pods)
    ending = sorted((pod for pod in known if pod.terminating), key=lambda pod: _place(pod.name))
    left = {pod.name: _left(pod, now) for pod in ending}
    found = [_kept(pod, now) for pod in ending if left[pod.name] <= 0]
    others: dict[str, list[Kept]] = {"claims": [], "services": []}
    waits = [wait for wait in left.values() if wait > 0]
    dying = [claim for claim in claims if claim.metadata.deletion_timestamp is not None]
    dying.sort(key=lambda claim: _place(claim.metadata.name))
    users = _users(known) if dying else {}
    for claim in dying:
        meta = claim.metadata
        finalizers = texts_of(msgspec.json.decode(meta.finalizers))
        user = users.get(meta.name, "")
        one = Kept(meta.name, meta.deletion_timestamp or "", finalizers, user=user)
        _sort(one, others["claims"], waits, now)
    ending_services = [service for service in services if service.gone_by]
    for service in sorted(ending_services, key=lambda service: _place(service.name)):
        one = Kept(service.name, service.gone_by, texts_of(service.finalizers))
        _sort(one, others["services"], waits, now)
    return Overdue(found, waits=waits, **others)


def _place(name: str) -> tuple[int, str]:
    """Returns a sort key for the names of a TApp's children, which sorts web-2 before web-10."""
    # The names have the same beginning, so a longer name has a larger number.
    return len(name), name


def _kept(pod: Pod, now: float) -> Kept:
    """Returns the description of a pod whose deletion is overdue."""
    silent = observed_silence(pod, now) is not None
    return Kept(pod.name, pod.gone_by, pod.finalizers, pod, silent)


def _users(pods: Iterable[Pod]) -> dict[str, str]:
    """Returns claim name -> name of the first pod that mounts the claim and stays.

    A pod that has ended or is being deleted does not stay.
    """
    staying = [pod for pod in pods if not (pod.terminating or pod.completed)]
    staying.sort(key=lambda pod: _place(pod.name), reverse=True)  # the first pod is written last
    return {claim: pod.name for pod in staying for claim in pod.spec.claims}


def _sort(one: Kept, overdue: list[Kept], waits: list[float], now: float) -> None:
    """Adds an object to `overdue` if its deletion is overdue.

    If not, adds the seconds until the deletion is overdue to `waits`.
    """
    wait = seconds(one.gone_by) + TROUBLE_AFTER - now
    if wait > 0:
        waits.append(wait)
    else:
        overdue.append(one)


def _left(pod: Pod, now: float) -> float:
    """Returns the seconds until the deletion of a pod is overdue; 0 or less if it is overdue.

    The caller has checked that the pod is being deleted.
    """
    # `deletionTimestamp` is the end of the grace period. On a silent node no kubelet ends the pod,
    # so the time counts from the silence if that began earlier.
    due = seconds(pod.gone_by) + TROUBLE_AFTER
    since = silent_since(pod, now, seconds(pod.gone_by))
    return (due if since is None else min(due, since + TROUBLE_AFTER)) - now


def trouble_of_deletion(pod: Pod, namespace: str, now: float) -> Trouble:
    """Returns the trouble of a pod that is being deleted.

    If the deletion is not overdue yet, the trouble has no text, only the seconds until then. The
    caller has checked that the pod is being deleted. `namespace` is the namespace of the pod, for
    commands in the text.
    """
    left = _left(pod, now)
    if left > 0:
        return Trouble(wait=left)
    return Trouble(pods_sentence([_kept(pod, now)], namespace))


def pods_sentence(found: Sequence[Kept], namespace: str) -> str:
    """Returns sentences on pods with an overdue deletion: node, finalizers, time, and what to do.

    Returns an empty string if `found` is empty. `namespace` is the namespace of the pods, for
    commands in the sentences.
    """

    def group(one: Kept) -> tuple[str, tuple[str, ...], bool, bool]:
        pod = one.pod
        ended = pod is None or pod.completed or not pod.node
        return ("" if pod is None else pod.node, one.finalizers, ended, one.silent)

    return _sentences("pod", found, group, lambda many: _why_pods(many, namespace))


def _why_pods(many: Sequence[Kept], namespace: str) -> str:
    """Returns why the pods in `many` still exist and what a user can do about it.

    The caller has checked that the pods have the same node, finalizers and state. `namespace` is
    the namespace of the pods, for commands in the text.
    """
    first, pod = many[0], many[0].pod
    finalizers = _finalizers(first.finalizers)
    if pod is None or pod.completed or not pod.node:
        return f"{finalizers or _NO_REASON}{_remedy('pod', first, namespace)}"
    node = short(pod.node)
    if first.silent:
        why = (
            f"node {node} has stopped reporting. The pod ends when the node reports again. If "
            f"the machine is off, end the pod with `kubectl taint node {node} {_OUT_OF_SERVICE}`. "
            f"If the machine is gone for good, end the pod with `kubectl delete node {node}`"
        )
    else:
        why = (
            f"the kubelet of node {node} has not reported the end of the pod: see "
            f"`kubectl describe node {node}` and the kubelet's log. If the node is gone for good, "
            f"end the pod with `kubectl delete node {node}`. If the containers have certainly "
            f"stopped, end the pod with `kubectl delete pod {first.name} -n {namespace} "
            "--grace-period=0 --force`"
        )
    return f"{why}. Besides, {finalizers}" if finalizers else why


def claims_sentence(found: Sequence[Kept], namespace: str) -> str:
    """Returns sentences on claims with an overdue deletion: finalizers, time, and what to do.

    Returns an empty string if `found` is empty. `namespace` is the namespace of the claims, for
    commands in the sentences.
    """

    def why(many: Sequence[Kept]) -> str:
        first = many[0]
        if first.user and _PROTECTED in first.finalizers:
            return (
                f"pod {short(first.user)} still uses it ({_PROTECTED}). The claim and its data go "
                "when that pod goes; a deletion cannot be taken back, so save the data first"
            )
        why = _finalizers(first.finalizers) or _NO_REASON
        return why + _remedy("pvc", first, namespace)

    return _sentences("claim", found, lambda one: (one.finalizers, bool(one.user)), why)


def services_sentence(found: Sequence[Kept], namespace: str) -> str:
    """Returns sentences on Services with an overdue deletion: finalizers, time, and what to do.

    Returns an empty string if `found` is empty. `namespace` is the namespace of the Services, for
    commands in the sentences.
    """

    def why(many: Sequence[Kept]) -> str:
        why = _finalizers(many[0].finalizers) or _NO_REASON
        return why + _remedy("service", many[0], namespace)

    return _sentences("Service", found, lambda one: one.finalizers, why)


def _finalizers(names: Sequence[str]) -> str:
    """Returns the clause "finalizers a, b keep the object"; an empty string without finalizers."""
    if not names:
        return ""
    plural = "s" if len(names) > 1 else ""
    return f"finalizer{plural} {name_list(names)} keep{'' if plural else 's'} the object"


def _remedy(kind: str, one: Kept, namespace: str) -> str:
    """Returns sentences on how to remove the finalizers of an object; empty without finalizers.

    Each finalizer has a command of its own, so that a user removes no finalizer whose controller
    still exists.

    Args:
        kind: the name of the resource for kubectl, such as `pod` or `pvc`.
        one: the object.
        namespace: the namespace of the object, for the commands.
    """
    if not one.finalizers:
        return ""
    single = len(one.finalizers) == 1
    which = "this finalizer" if single else "each finalizer"
    text = f". The controller of {which} has to remove it: see the log of that controller"
    commands = [
        f"`kubectl patch {kind} {one.name} -n {namespace} --type=json -p '{_removal(place, name)}'`"
        f" removes finalizer {name}"
        for place, name in enumerate(one.finalizers[:SHOWN])
        # Kubernetes itself removes this finalizer as soon as no pod uses the claim.
        if name != _PROTECTED and _FINALIZER.fullmatch(name)
    ]
    if not commands:
        return text
    return f"{text}. If the controller no longer exists, {'; '.join(commands)}"


def _removal(place: int, finalizer: str) -> str:
    """Returns a JSON patch that removes one finalizer from an object, and changes nothing else.

    The API server rejects the patch if another finalizer is at this place by then. `place` is the
    index of `finalizer` in the list of the object.
    """
    path = f"/metadata/finalizers/{place}"
    patch = [{"op": "test", "path": path, "value": finalizer}, {"op": "remove", "path": path}]
    return msgspec.json.encode(patch).decode()


def _sentences(
    kind: str,
    found: Sequence[Kept],
    group: Callable[[Kept], object],
    why: Callable[[Sequence[Kept]], str],
) -> str:
    """Returns one sentence for each group of objects, joined; an empty string without objects.

    Args:
        kind: the name of the kind in the sentences, such as `pod`.
        found: the objects.
        group: returns a key; objects with the same key share a sentence.
        why: returns why the objects of a group still exist, and what to do.
    """
    groups: Mapping[object, list[Kept]] = grouped((group(one), one) for one in found)
    parts = []
    for many in groups.values():
        names = name_list([one.name for one in many])
        subject = f"{kind} {names} is" if len(many) == 1 else f"{kind}s {names} are"
        times = sorted(one.gone_by for one in many if seconds(one.gone_by) != UNKNOWN)
        since = f" and should have gone by {times[0]}" if times else ""
        parts.append(f"{subject} being deleted{since}: {why(many)}")
    more = f". And {len(parts) - SHOWN} more groups of {kind}s" if len(parts) > SHOWN else ""
    return ". Also, ".join(parts[:SHOWN]) + more
