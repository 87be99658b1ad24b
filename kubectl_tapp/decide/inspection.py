"""One TApp with the service's decisions about it, and the rows of the table of instances.

`inspect` is the entry point: it runs the service's decisions on the objects that were read, and
looks for obstacles that the service cannot see, such as refused writes. The functions `*_of_status`
read a TApp's status instead, for users who may not read pods.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from hooks.wire.memo import Memo
from kubectl_tapp.base.hints import shell_command
from kubectl_tapp.base.observed import Document, Observed, by_name
from kubectl_tapp.base.reading import (
    conditions_by_type,
    container_statuses,
    observed_generation,
    unobserved,
    unobserved_since,
)
from kubectl_tapp.cluster.access import PODS, ClusterAccess
from kubectl_tapp.cluster.registration import Registration
from kubectl_tapp.decide.decisions import decide_or_fail
from kubectl_tapp.decide.instance_views import InstanceView, view_of
from kubectl_tapp.decide.obstacles import Obstacles
from tapp.answer.refusals import refusals
from tapp.decide.cases import Case, ids_of
from tapp.decide.instances import Instance
from tapp.decide.standing import PASSIVE_ACTIONS
from tapp.decide.verdicts import Verdict
from tapp.plan import Plan
from tapp.pod.trouble import TROUBLE_AFTER
from tapp.words.conditions import KSTATUS, Finding, Type
from tapp.words.ranges import numbers
from tapp.words.reasons import Reason, Standing
from tapp.words.times import UNKNOWN
from tapp.words.vocabulary import DEFAULT_TEMPLATE, TEMPLATE_HASH, InstanceStatus

# Reasons for which a container waits during a normal start
_NORMAL_WAITS = ("ContainerCreating", "PodInitializing")


# Types of conditions that the lines about single instances report as well
_REPORTED_BY_INSTANCES = (
    Type.TEMPLATE_NOT_FOUND, Type.INVALID_BUDGET, Type.CREATION_BLOCKED, Type.UNREADABLE_PODS,
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One row of the table of instances in `status` and on the page."""

    id: int  # the instance's number
    template: str  # the name of the instance's template
    revision: str = ""  # the revision that the pod runs; empty without a pod
    # True if the revision of the pod is not the present revision of the instance's template
    outdated: bool = False
    image: str = ""  # the images of the pod's containers, separated by commas
    state: str = ""  # the state as one word, such as Running or CrashLoopBackOff
    ready: str = ""  # number of ready containers and of all containers: `1/1`
    restarts: int = 0  # number of restarts of all containers of the pod
    node: str = ""  # the name of the pod's node
    since: float | None = None  # when the state began, in epoch seconds; None if unknown


class Inspection:
    """One TApp at one moment: its objects, the decisions that the service would make, and their
    reasons.

    `status`, `why`, `--wait` and the page show parts of it.
    """

    def __init__(self, observed: Observed, plan: Plan, obstacles: Obstacles) -> None:
        """Stores the arguments. All other values are computed when they are first used.

        Args:
            observed: the TApp with its objects.
            plan: the decisions that the service would make about these objects now.
            obstacles: finds obstacles that the service cannot see, such as names that are taken.
        """
        self.observed = observed
        self.plan = plan
        self.obstacles = obstacles
        self.pods: Mapping[str, Document] = by_name(observed.pods)

    @property
    def name(self) -> str:
        return self.observed.name

    @property
    def namespace(self) -> str:
        return str(self.observed.tapp["metadata"]["namespace"])

    @cached_property
    def cases(self) -> dict[int, Case]:
        """Instance number -> the instance with the decision about it, sorted by number."""
        return {case.instance.id: case for case in self.plan.cases}

    @cached_property
    def standings(self) -> dict[int, InstanceView]:
        """Instance number -> the standing of the instance (done, waiting, blocked, ...), sorted by
        number.
        """
        found = dict[int, InstanceView]()
        for id, case in self.cases.items():
            obstacle = self.obstacles.by_instance.get(id, "")
            one = view_of(self.plan, case, pod=self.pod(id), obstacle=obstacle)
            if (
                self.idle
                and one.standing is Standing.PROGRESSING
                and case.decision.action not in PASSIVE_ACTIONS
            ):
                one = replace(one, text=f"waits for a controller to act: {one.text}")
            found[id] = one
        return found

    @cached_property
    def idle(self) -> str:
        """A sentence that says that no controller has acted on the spec for TROUBLE_AFTER seconds.

        Empty if a controller has acted, if less time has passed, or if the TApp is being deleted.
        """
        tapp, now = self.observed.tapp, self.plan.now
        return "" if tapp["metadata"].get("deletionTimestamp") else idle_controller(tapp, now)

    @cached_property
    def rows(self) -> list[Row]:
        """One row for each instance, sorted by number."""
        return [self._row(case) for case in self.cases.values()]

    @cached_property
    def refused(self) -> list[Finding]:
        """The refusals: conditions that say which parts of the spec the service does not carry out
        or ignores.
        """
        return refusals(self.plan)

    @property
    def refusals_beyond_instances(self) -> list[Finding]:
        """The refusals that the lines about single instances do not mention already.

        A refusal is a condition that says what the service does not do, and what to do about it.
        """
        covered = {*_REPORTED_BY_INSTANCES}
        if self.plan.findings.missing.pods_since.keys() <= self.obstacles.by_instance.keys():
            covered |= {Type.PODS_NOT_CREATED}
        pods = {f"{self.name}-{id}" for id in self.plan.troubles}
        if pods.issuperset(one.name for one in self.plan.findings.overdue.pods):
            covered |= {Type.PODS_NOT_DELETED}
        return [found for found in self.refused if found.type not in covered]

    @cached_property
    def updated_now(self) -> list[int]:
        """The numbers of the instances that the next sync begins to update."""
        return ids_of(case for case in self.plan.notable if case.decision.is_update)

    @property
    def serving(self) -> int:
        """The number of available instances, not counting the instances that the next sync begins
        to update.
        """
        return len(self.plan.available - set(self.updated_now))

    def pod(self, id: int) -> Document | None:
        """Returns the pod of an instance as the JSON object of the API server; None if the instance
        has no pod.
        """
        return self.pods.get(f"{self.name}-{id}")

    def _row(self, case: Case) -> Row:
        instance, verdict = case.instance, case.decision
        pod = instance.pod
        document = self.pods.get(pod.name) if pod is not None else None
        if pod is None or document is None:
            state = instance.status.value
            if verdict.reason.standing is Standing.BLOCKED:
                state = verdict.reason
            since = self.standings[instance.id].since
            return Row(instance.id, instance.template_name, state=state, since=since)
        shown = container_statuses(document)
        main = (document.get("spec") or {}).get("containers") or []
        counted = (document.get("status") or {}).get("containerStatuses") or []
        revision = (document["metadata"].get("labels") or {}).get(TEMPLATE_HASH, "")
        outdated = not instance.updated and not pod.terminating and instance.template is not None
        return Row(
            id=instance.id,
            template=instance.template_name,
            revision=revision,
            outdated=outdated and instance.should_run,
            image=", ".join(each.get("image", "") for each in main),
            state=_pod_state(instance, verdict, document),
            ready=f"{sum(bool(each.get('ready')) for each in counted)}/{len(main)}",
            restarts=sum(each.get("restartCount") or 0 for each in shown),
            node=pod.node,
            since=self.standings[instance.id].since,
        )


def idle_controller(tapp: Document, now: float) -> str:
    """Returns a sentence if no controller has acted on the spec of a TApp for long, otherwise "".

    The limit is TROUBLE_AFTER seconds; Metacontroller normally acts within a second. `now` is in
    seconds since the epoch.
    """
    clause, since = unobserved(tapp), unobserved_since(tapp)
    if not clause or since == UNKNOWN or now - since < TROUBLE_AFTER:
        return ""
    metadata, seen = tapp["metadata"], observed_generation(tapp)
    place = metadata.get("namespace") or ""
    events = shell_command("describe", "tapp", metadata["name"], namespace=place, plugin=False)
    known = f" (status.observedGeneration is {seen})" if seen else ""
    return (
        f"TApp {metadata['name']}: {clause}{known}, so nothing changes. Check that Metacontroller "
        f"and the TApp service run; {events} shows their Events"
    )


def inspect(  # noqa: PLR0913 - callers pass most of them by name
    cluster: ClusterAccess,
    observed: Observed,
    now: float,
    registration: Registration | None = None,
    memo: Memo | None = None,
    *,
    refusals: bool = True,
) -> Inspection:
    """Returns an inspection of a TApp: its objects with the service's decisions about them.

    The function also reads Events if the API server may have refused a write of Metacontroller.

    Raises CommandError if the user may not read the TApp's pods, or if the spec is invalid.

    Args:
        cluster: the access to the cluster, for further reads.
        observed: the TApp with its objects.
        now: the time, in seconds since the epoch.
        registration: the CompositeController of the TApp; None to read it.
        memo: caches parsed objects for callers that inspect repeatedly; None caches nothing.
        refusals: False to read no Events.
    """
    observed.require_readable(PODS)
    registration = registration or cluster.registration(observed)
    plan = decide_or_fail(observed, registration, now, memo)
    metadata = observed.tapp["metadata"]
    behind = observed_generation(observed.tapp) != metadata.get("generation")
    acting = any(case.decision.action not in PASSIVE_ACTIONS for case in plan.notable)
    if refusals and not observed.events and (behind or plan.findings.missing.pods or acting):
        observed = cluster.with_events(observed)
    return Inspection(observed, plan, Obstacles(cluster, observed, plan))


def _pod_state(instance: Instance, verdict: Verdict, document: Document) -> str:
    """Returns the state of an instance's pod as one word, similar to the column STATUS of `kubectl
    get pods`.

    The caller has checked that the instance has a pod; `document` is this pod. The most specific
    state comes first: a deletion, a node that does not report, then the error of a container.
    """
    pod = instance.pod
    assert pod is not None  # noqa: S101 - callers have checked it
    if pod.terminating:
        return "Terminating"
    if pod.unreadable:
        return "Unreadable"
    if pod.completed:
        reason = (document.get("status") or {}).get("reason")
        return f"{instance.status} ({reason})" if reason else instance.status.value
    if pod.silent:
        return "NodeLost" if pod.spec.lost else "NodeSilent"
    if pod.spec.drains:
        return "LeavingServices"
    for status in container_statuses(document):
        state = status.get("state") or {}
        waiting = (state.get("waiting") or {}).get("reason")
        if waiting and waiting not in _NORMAL_WAITS:
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
        # `kubectl get pods` also shows Running if a container is not ready. The column READY shows
        # that.
        return "Running"
    return instance.status.value


_UNKNOWN = "?"
_PHRASES = {"ready": "ready", "updatedReplicas": "up to date", "availableReplicas": "available"}


def rows_of_status(observed: Observed) -> list[Row]:
    """Returns one row for each instance, from the spec and the last written status of the TApp.

    This function serves users who may not read pods. An instance that the status does not contain
    has the state `?`.
    """
    spec, status = observed.tapp.get("spec") or {}, observed.tapp.get("status") or {}
    old = spec.get("defaultTemplateName") or spec.get("DefaultTemplateName")
    default = old or DEFAULT_TEMPLATE
    named, statuses = spec.get("templates") or {}, status.get("statuses") or {}
    outdated = set(numbers(status.get("outdated") or ""))
    return [
        Row(
            id=id,
            template=named.get(str(id)) or default,
            outdated=id in outdated,
            state=statuses.get(str(id), _UNKNOWN),
        )
        for id in range(spec.get("replicas", 1))
    ]


def counts_of_status(observed: Observed) -> list[str]:
    """Returns phrases about the TApp from its status: its state, and how many instances are ready.

    If no controller has acted on the spec for long, the last phrase says so and since when.
    """
    status = observed.tapp.get("status") or {}
    parts = [str(status.get("appStatus", "without a status"))]
    parts += [f"{status[key]} {word}" for key, word in _PHRASES.items() if key in status]
    kept = status.get("kept") or {}
    parts += [f"kept: {ids} at {revision}" for revision, ids in kept.items()]
    return [*parts, *([clause] if (clause := unobserved(observed.tapp)) else [])]


def sentences_of_status(observed: Observed) -> list[str]:
    """Returns a sentence for each condition in the TApp's status that reports a problem or
    progress.
    """
    return [
        f"{type} is {each.get('status')}: {each.get('message')}"
        for type, each in conditions_by_type(observed.tapp).items()
        if each.get("message")
        and (type == "Ready" or each.get("status") == "True")
        and type not in KSTATUS  # the conditions for kstatus repeat other conditions
    ]
