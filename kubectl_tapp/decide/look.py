"""A look at one TApp: what is observed, what would be decided on it now, and a row an instance."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from kubectl_tapp.base.observed import Document, Observed
from kubectl_tapp.base.reading import statuses, unready
from kubectl_tapp.cluster.cluster import PODS, Cluster
from kubectl_tapp.decide import decisions
from kubectl_tapp.decide.obstacles import STILL, Obstacles
from tapp.answer.refusals import refusals
from tapp.decide.instances import Instance
from tapp.decide.judge import Action, Verdict
from tapp.decide.rollout import is_update
from tapp.plan import Plan
from tapp.spec.templates import Template
from tapp.words.conditions import Finding, Type
from tapp.words.reasons import Disposition, Reason
from tapp.words.times import UNKNOWN, seconds
from tapp.words.vocabulary import TEMPLATE_HASH, InstanceStatus

_QUIET_WAITS = ("ContainerCreating", "PodInitializing")


_OF_INSTANCES = (
    Type.TEMPLATE_NOT_FOUND, Type.INVALID_BUDGET, Type.CREATION_BLOCKED, Type.UNREADABLE_PODS,
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One instance as a person sees it.

    Attributes:
        id: its number.
        template: the name of its template.
        revision: its pod's, "" without one.
        outdated: whether that is not its template's.
        image: the images of its pod's containers.
        state: what it is doing, in a word.
        ready: ready containers, of all: `1/1`.
        restarts: of its containers.
        node: where it is.
        since: when that state began, in seconds since the epoch, as far as the pod tells.
    """

    id: int
    template: str
    revision: str = ""
    outdated: bool = False
    image: str = ""
    state: str = ""
    ready: str = ""
    restarts: int = 0
    node: str = ""
    since: float | None = None


class Look:
    """What is known of one TApp at one time."""

    def __init__(self, observed: Observed, plan: Plan, obstacles: Obstacles) -> None:
        """`plan` is what would be decided on `observed` now."""
        self.observed = observed
        self.plan = plan
        self.obstacles = obstacles
        self.pods: Mapping[str, Document] = {pod["metadata"]["name"]: pod for pod in observed.pods}

    @property
    def name(self) -> str:
        """The TApp's name."""
        return self.observed.name

    @property
    def namespace(self) -> str:
        """Where it is."""
        return str(self.observed.tapp["metadata"]["namespace"])

    @cached_property
    def cases(self) -> dict[int, tuple[Instance, Verdict]]:
        """Number -> instance and verdict, ascending."""
        pairs = zip(self.plan.instances, self.plan.decisions, strict=True)
        return {instance.id: (instance, verdict) for instance, verdict in pairs}

    @cached_property
    def rows(self) -> list[Row]:
        """One an instance, ascending."""
        return [self._row(*case) for case in self.cases.values()]

    @cached_property
    def refused(self) -> list[Finding]:
        """What is refused or ignored."""
        return refusals(self.plan)

    @property
    def refused_beyond(self) -> list[Finding]:
        """What of it no instance's own verdict says already."""
        missing = {id for ids in self.plan.not_created.values() for id in ids}
        covered = {*_OF_INSTANCES}
        covered |= {Type.PODS_NOT_CREATED} if missing <= {*self.obstacles.of} else set()
        return [found for found in self.refused if found.type not in covered]

    @cached_property
    def taken(self) -> list[int]:
        """The instances that are updated now."""
        return [i.id for i, verdict in self.plan.cases if is_update(verdict)]

    def pod(self, id: int) -> Document | None:
        """The pod of an instance, as the API server has it."""
        return self.pods.get(f"{self.name}-{id}")

    def waits_for(self, id: int) -> str:
        """In a sentence why an instance is not as it should be; "" where it is."""
        instance, verdict = self.cases[id]
        found = self.plan.troubles.get(id)
        details = (found and found.text, self.obstacles.of.get(id))
        detail = "; ".join(text for text in details if text)
        if verdict.action is Action.CREATE and id in self.obstacles.of:
            return f"not created: {detail}"
        fine = not instance.should_run or id in self.plan.available
        if verdict.reason != Reason.UP_TO_DATE and (fine or verdict.reason != Reason.KEPT):
            word = verdict.reason if verdict.action in STILL else f"{verdict.action}, "
            word += "" if verdict.action in STILL else verdict.reason
            return f"{word}: {verdict.message}" + (f"; {detail}" if detail else "")
        if fine:
            return self.obstacles.of.get(id, "")
        return f"not available: {detail or self._not_yet(instance)}"

    def _not_yet(self, instance: Instance) -> str:
        """Why an instance that runs its template is not available, when nothing is wrong."""
        pod = instance.pod
        if pod is None or not pod.node:
            known = pod.conditions.get("PodScheduled") if pod is not None else None
            if known is None or known.status != "False":
                return "its pod has no node yet"
            detail = ": ".join(text for text in (known.reason, known.message) if text)
            return f"its pod waits for a node: {detail}"
        if instance.id in self.plan.going_unseen:
            return "its pod was replaced a moment ago, and may be on its way out"
        if instance.update.unfinished:
            return f"its update in place is under way: {', '.join(instance.update.unfinished)}"
        if pod.silent:
            return f"its node {pod.node} is not heard of; it may serve"
        if pod.phase != "Running":
            return f"its pod is {pod.phase.lower()}"
        if pod.ready is not True:
            why = "; ".join(unready(self.pods[pod.name]))
            return f"its pod runs and is not Ready{why and ': '}{why}"
        return "it is Ready, but has not been for long enough (minReadySeconds, or a probe's run)"

    def _row(self, instance: Instance, verdict: Verdict) -> Row:
        template, pod = instance.template, instance.pod
        document = self.pods.get(pod.name) if pod is not None else None
        if pod is None or document is None:
            state = instance.status.value
            if verdict.reason.disposition is Disposition.BLOCKED:
                state = verdict.reason
            return Row(instance.id, template.name, state=state)
        shown = statuses(document)
        main = document.get("spec", {}).get("containers") or []
        counted = document.get("status", {}).get("containerStatuses") or []
        revision = (document["metadata"].get("labels") or {}).get(TEMPLATE_HASH, "")
        outdated = not instance.updated and not pod.terminating and isinstance(template, Template)
        return Row(
            id=instance.id,
            template=template.name,
            revision=revision,
            outdated=outdated and instance.should_run,
            image=", ".join(each.get("image", "") for each in main),
            state=_state(instance, verdict, document),
            ready=f"{sum(bool(each.get('ready')) for each in counted)}/{len(main)}",
            restarts=sum(each.get("restartCount") or 0 for each in shown),
            node=pod.node,
            since=_since(instance, document),
        )


def decided(cluster: Cluster, observed: Observed, now: float) -> Look:
    """What would be decided on what is observed.

    Raises:
        CommandError: its pods may not be read, or its spec is invalid.
    """
    observed.require(PODS)
    plan = decisions.decided(observed, cluster.registration(observed), now)
    return Look(observed, plan, Obstacles(cluster, observed, plan))


def _state(instance: Instance, verdict: Verdict, document: Document) -> str:
    """What a pod is doing, in a word: the most telling one that its status has."""
    pod = instance.pod
    assert pod is not None  # noqa: S101 - asked for instances with a pod
    if pod.terminating:
        return "Terminating"
    if pod.odd:
        return "Unreadable"
    if pod.completed:
        reason = (document.get("status") or {}).get("reason")
        return f"{instance.status} ({reason})" if reason else instance.status.value
    if pod.silent:
        return "NodeLost" if pod.spec.lost else "NodeSilent"
    if pod.spec.drains:
        return "Draining"
    for status in statuses(document):
        state = status.get("state") or {}
        waiting = (state.get("waiting") or {}).get("reason")
        if waiting and waiting not in _QUIET_WAITS:
            return str(waiting)
        ended = state.get("terminated") or {}
        if ended.get("exitCode"):
            return str(ended.get("reason") or "Error")
    if verdict.reason is Reason.HELD and instance.status is InstanceStatus.RUNNING:
        return "Held"
    scheduled = pod.conditions.get("PodScheduled")
    if not pod.node and scheduled is not None and scheduled.status == "False":
        return scheduled.reason or "Unschedulable"
    if instance.status is InstanceStatus.PENDING and pod.phase == "Running":
        return "Running"  # kubectl's word; READY and `why` say what is not Ready
    return instance.status.value


def _since(instance: Instance, document: Document) -> float | None:
    """When the newest of what a pod's status tells of its state began."""
    pod, metadata = instance.pod, document["metadata"]
    assert pod is not None  # noqa: S101 - asked for instances with a pod
    if pod.terminating:
        grace = metadata.get("deletionGracePeriodSeconds") or 0
        at = seconds(metadata.get("deletionTimestamp")) - grace
        return None if at == UNKNOWN else at
    times = [seconds(pod.created), seconds(pod.ready_since)]
    for status in statuses(document):
        state: dict[str, Any] = status.get("state") or {}
        times.append(seconds((state.get("running") or {}).get("startedAt")))
        times.append(seconds((state.get("terminated") or {}).get("finishedAt")))
    newest = max(times)
    return None if newest == UNKNOWN else newest
