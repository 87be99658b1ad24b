"""Finds obstacles that the service cannot see: names that are taken, and refused writes.

Metacontroller tells a hook neither that a pod or claim of another owner has the name of a child,
nor that the API server has refused a write. So a missing child is looked up by name, and refusals
are read from the TApp's SyncError Events (`refused.py`).
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property

from kubectl_tapp.base.observed import Document, Observed, by_name
from kubectl_tapp.base.reading import conditions_by_type, last_write
from kubectl_tapp.cluster.access import CLAIMS, PODS, ClusterAccess
from kubectl_tapp.cluster.belonging import ownership_advice
from kubectl_tapp.decide.refused import WHOLE_SYNC, Child, Refusal, refusals
from tapp.decide.instances import Instance
from tapp.decide.standing import PASSIVE_ACTIONS
from tapp.plan import Plan
from tapp.storage.claims import Claims
from tapp.words.quoted import short
from tapp.words.times import seconds

MAX_LOOKUPS = 25  # Missing objects of at most this many instances are looked up by name
_NOTICE_SECONDS = (
    60.0  # Seconds until the service notices a missing pod; refusals from this time count, too
)
_REFUSAL_LIFETIME = 1300.0
"""A refusal older than this is over, in seconds: Metacontroller would have reported it again. Its
longest back-off is 1,000 s, and up to 300 s pass between two Events of a TApp."""
_BOUNDLESS = float("inf")


@dataclass(frozen=True)
class _Missing:
    id: int  # the instance's number
    # when the pod became missing, in epoch seconds; None if the instance has a pod
    pod: float | None
    claims: dict[str, str]  # name of the claim template to the name of the missing claim
    since: float  # earlier refusals do not count, in epoch seconds


class Obstacles:
    """The obstacles of one TApp that the service cannot see: names that are taken, and refused
    writes.

    `by_instance` has those of each instance, and `of_tapp` those of the whole TApp.
    """

    def __init__(self, cluster: ClusterAccess, observed: Observed, plan: Plan) -> None:
        """Keeps the parameters. Nothing is read from the cluster before `by_instance` is used.

        `observed` is the TApp with its objects and Events, and `plan` has the service's decisions
        about it.
        """
        self._cluster, self._observed, self._plan = cluster, observed, plan
        self._known = by_name(observed.pods)
        self._ids: Collection[int] | None = None
        self._pods, self._unread = dict[str, Document](), ""
        self._claims: dict[str, Document] = {}

    def limit_lookups_to(self, ids: Collection[int]) -> None:
        """Limits the lookups of missing objects to those of the given instances.

        The caller does so before it uses `by_instance`.
        """
        self._ids = frozenset(ids)

    @cached_property
    def by_instance(self) -> dict[int, str]:
        """Instance number -> a sentence about the obstacle of the instance, for those that have
        one.

        The missing pods and claims of at most `MAX_LOOKUPS` instances are looked up by their names.
        """
        observed, plan, ids = self._observed, self._plan, self._ids
        missing = [
            each
            for each in _instances_lacking_children(observed, plan)
            if ids is None or each.id in ids
        ]
        looked = missing[:MAX_LOOKUPS]
        pods = [f"{observed.name}-{each.id}" for each in looked if each.pod is not None]
        claims = [name for each in looked for name in each.claims.values()]
        space = observed.tapp["metadata"]["namespace"]
        self._pods, self._unread = _look_up(self._cluster, PODS, pods, space)
        self._claims, _ = _look_up(self._cluster, CLAIMS, claims, space)
        texts = {each.id: self._obstacle_to_creation(each) for each in missing}
        for case in plan.notable:
            instance = case.instance
            if case.decision.action not in PASSIVE_ACTIONS and instance.pod is not None:
                texts.setdefault(instance.id, self._obstacle_to_change(instance))
        return {id: text for id, text in sorted(texts.items()) if text}

    def objects_in_the_way(self, id: int) -> list[Document]:
        """Returns the pod and claims that have names of an instance's missing pod and claims.

        Only the objects that `by_instance` looks up are returned.
        """
        if id not in self.by_instance:
            return []
        missing = [
            each
            for each in _instances_lacking_children(self._observed, self._plan)
            if each.id == id
        ]
        pods = [
            self._pods.get(f"{self._observed.name}-{id}")
            for each in missing
            if each.pod is not None
        ]
        claims = [self._claims.get(name) for each in missing for name in each.claims.values()]
        return [each for each in (*pods, *claims) if each is not None]

    @cached_property
    def _refused(self) -> list[Refusal]:
        return refusals(self._observed.events, self._observed.tapp["metadata"]["uid"])

    @property
    def of_tapp(self) -> list[Refusal]:
        """The refusals that concern the whole TApp and still apply, newest first.

        A refusal no longer applies if Metacontroller would have reported it again, if the service
        has acted since, or if the refused ControllerRevision exists.
        """
        now, answered = self._plan.now, _last_action_of_service(self._observed)
        revisions = {("controllerrevision", name) for name in by_name(self._observed.revisions)}
        found = [
            each
            for each in self._refused
            if now - each.at < _REFUSAL_LIFETIME
            and (each.about != WHOLE_SYNC or each.at >= answered)
            and each.about is not None
            and each.about[0] in {WHOLE_SYNC[0], "controllerrevision"}
            and each.about not in revisions
        ]
        return [*{each.text: each for each in reversed(found)}.values()][::-1]

    def _obstacle_to_creation(self, missing: _Missing) -> str:
        parts = []
        if missing.pod is not None:
            parts.append(self._obstacle_to_pod(missing))
        for template, name in missing.claims.items():
            owner = self._owner_phrase(self._claims.get(name))
            text = self._refusal_since(missing.since, ("persistentvolumeclaim", name))
            if owner:
                parts.append(
                    f"another claim with the name of its claim {template} exists, and {owner}"
                )
            elif text:
                parts.append(f"the API server refused the claim {template}: {text}")
        return "; ".join(part for part in parts if part)

    def _obstacle_to_pod(self, missing: _Missing) -> str:
        name = f"{self._observed.name}-{missing.id}"
        # Metacontroller writes no Event if another object has the name already. So the newest Event
        # may be about an earlier problem, and the owner is the actual obstacle.
        if owner := self._owner_phrase(self._pods.get(name)):
            return f"another pod with the same name exists, and {owner}"
        if text := self._refusal_since(missing.since, ("pod", name), None):
            return f"the API server refused the pod: {text}"
        unread = self._unread
        return (
            unread
            and f"another pod with the same name may exist, but you may not read pods: {unread}"
        )

    def _owner_phrase(self, item: Document | None) -> str:
        """Returns a phrase that says who owns an object that has the name of a child.

        Returns "" if there is no such object, or if the object belongs to the TApp.
        """
        return "" if item is None else ownership_advice(item, self._observed.tapp)

    def _obstacle_to_change(self, instance: Instance) -> str:
        name = f"{self._observed.name}-{instance.id}"
        pod = self._known[name]["metadata"]
        since = max(last_write(pod), seconds(pod.get("creationTimestamp")))
        text = self._refusal_since(since, ("pod", name), None)
        return text and f"the API server refused this change: {text}"

    def _refusal_since(self, since: float, *about: Child | None) -> str:
        """Returns the newest refusal since a time about the first of these children that has one.

        `since` is in seconds since the epoch. A child None stands for refusals that name no child.
        Returns "" if none of the children was refused.
        """
        late = [each for each in self._refused if each.at >= since]
        return next((each.text for one in about for each in late if each.about == one), "")


def _look_up(
    cluster: ClusterAccess, resource: str, names: list[str], namespace: str
) -> tuple[dict[str, Document], str]:
    found = cluster.get_named(resource, names, namespace) if names else []
    return ({}, short(found)) if isinstance(found, str) else (by_name(found), "")


def _instances_lacking_children(observed: Observed, plan: Plan) -> Iterable[_Missing]:
    """Yields each instance that lacks a pod or claim which an earlier sync should have created.

    `observed` is the TApp with its objects, and `plan` has the service's decisions about it.
    """
    since = plan.findings.missing.pods_since
    own = Claims(plan.world)
    known = {claim["metadata"]["name"] for claim in observed.claims}
    readable = CLAIMS not in observed.unread
    pods = by_name(observed.pods)
    for instance in plan.instances:
        pod = pods.get(f"{observed.name}-{instance.id}")
        if pod is None and instance.id not in since:
            continue
        claims = own.of(instance.source) if readable else {}
        if pod is not None:
            used = set(_claims_used(pod)) if claims else set()
            claims = {template: name for template, name in claims.items() if name in used}
        claims = {template: name for template, name in claims.items() if name not in known}
        created = None if pod is None else pod["metadata"].get("creationTimestamp")
        begun = since[instance.id] if pod is None else seconds(created)
        if pod is None or claims:
            yield _Missing(
                instance.id, begun if pod is None else None, claims, begun - _NOTICE_SECONDS
            )


def _claims_used(pod: Document) -> Iterable[str]:
    for volume in (pod.get("spec") or {}).get("volumes") or []:
        name = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if name:
            yield str(name)


def _last_action_of_service(observed: Observed) -> float:
    """Returns when the service last acted, in seconds since the epoch.

    That is the last time when a condition changed its status or a pod was created; minus infinity
    if neither has happened.
    """
    times = [each.get("lastTransitionTime") for each in conditions_by_type(observed.tapp).values()]
    times += [pod["metadata"].get("creationTimestamp") for pod in observed.pods]
    return max((seconds(time) for time in times), default=-_BOUNDLESS)
