"""Finds obstacles that the service cannot see: names that are taken, and refused writes.

`Obstacles` is the entry point. The service does not learn from Metacontroller that an object of
another owner has the name of a child. It does not learn either that the API server has refused a
write. So the plugin looks up missing children by name, and reads refusals from the TApp's SyncError
Events (`refused.py`).
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

MAX_LOOKUPS = 25  # Largest number of instances whose missing objects are looked up by name
_NOTICE_SECONDS = (
    # Seconds that may pass until the service notices a missing pod; refusals from this time count,
    # too
    60.0
)
_REFUSAL_LIFETIME = 1300.0
"""Age in seconds from which a refusal counts as over, because Metacontroller would have reported it
again. Metacontroller's longest back-off is 1,000 s, and up to 300 s pass between two Events of a
TApp.
"""
_BOUNDLESS = float("inf")


@dataclass(frozen=True)
class _Missing:
    id: int  # the instance's number
    # when the pod was first missing, in seconds since the epoch; None if the instance has a pod
    pod: float | None
    claims: dict[str, str]  # name of the claim template -> name of the missing claim
    since: float  # refusals before this time do not count, in seconds since the epoch


class Obstacles:
    """The obstacles of one TApp that the service cannot see: names that are taken, and refused
    writes.

    `by_instance` has the obstacles of single instances, and `of_tapp` has those of the whole TApp.
    """

    def __init__(self, cluster: ClusterAccess, observed: Observed, plan: Plan) -> None:
        """Stores the arguments. The cluster is read only when `by_instance` is first used.

        `observed` is the TApp with its objects and Events, and `plan` has the service's decisions
        about it.
        """
        self._cluster, self._observed, self._plan = cluster, observed, plan
        self._known = by_name(observed.pods)
        self._ids: Collection[int] | None = None
        self._pods, self._unread = dict[str, Document](), ""
        self._claims: dict[str, Document] = {}

    def limit_lookups_to(self, ids: Collection[int]) -> None:
        """Limits the lookups by name to missing objects of the given instances.

        Must be called before `by_instance` is used.
        """
        self._ids = frozenset(ids)

    @cached_property
    def by_instance(self) -> dict[int, str]:
        """Instance number -> a sentence about the obstacle of the instance. Instances without an
        obstacle are left out.

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
        """Returns the existing objects that have the names of an instance's missing pod and claims.

        The objects come from the lookups of `by_instance`, so `MAX_LOOKUPS` limits them, too.
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

        A refusal no longer applies if it is so old that Metacontroller would have reported it
        again, or if the service has acted since then. It also no longer applies if the refused
        ControllerRevision exists now.
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
        # If an object of another owner has the name, this object is the obstacle. Metacontroller
        # writes no Event in that case, so the newest Event may be about an earlier problem.
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
        """Returns the message of the newest refusal since a time, for the first child in `about`
        that has a refusal.

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

    An action is a change of a condition's status, or the creation of a pod. Returns minus infinity
    if there was none.
    """
    times = [each.get("lastTransitionTime") for each in conditions_by_type(observed.tapp).values()]
    times += [pod["metadata"].get("creationTimestamp") for pod in observed.pods]
    return max((seconds(time) for time in times), default=-_BOUNDLESS)
