"""The embedded cluster with one TApp, and a record of each sync of the TApp.

A record has the states of the instances and the decisions of the service.
"""

import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

import msgspec
import yaml

from demo.service import ROOT, TIME_HEADER
from simulator.api.store import Event
from simulator.metacontroller.hook_calls import HookCall
from simulator.metacontroller.hook_client import HttpHook, HttpResponse
from simulator.objects.clock import EPOCH, Clock
from simulator.recording import Write
from simulator.world import World

Document = dict[str, Any]

NAME = "shop"
DRAIN = "apps.tkestack.io/drain"
BROKEN = ("ImagePullBackOff", "ErrImagePull", "CrashLoopBackOff")


class TimedHook:
    """Calls the service over HTTP, counts the calls, and measures the slowest call."""

    def __init__(self, base: str, clock: Clock) -> None:
        """Prepares the calls of the service.

        Args:
            base: the URL of the service.
            clock: the clock of the simulated cluster. Each call sends its time to the service.
        """
        self._http = HttpHook(base, self._headers)
        self._clock = clock
        # The simulated time in calls of the service; None means the current time of the cluster.
        self.at: float | None = None
        self.calls = 0
        self.slowest = 0.0

    def post(self, url: str, body: bytes, seconds: float) -> HttpResponse:
        started = time.perf_counter()
        answer = self._http.post(url, body, seconds)
        self.slowest = max(self.slowest, time.perf_counter() - started)
        self.calls += 1
        return answer

    def _headers(self) -> dict[str, str]:
        now = self._clock.now if self.at is None else self.at
        return {TIME_HEADER: str(EPOCH.timestamp() + now)}


@dataclass(frozen=True)
class Snapshot:
    """The state of one instance in the demo at one moment, for the chart.

    Attributes:
        state: the state of the instance in the TApp's status, or `Broken`, `Drained` or `Silent`.
        template: the name of the template that the instance runs.
        image: the image of its container; empty if the instance has no pod.
        revision: the revision of its pod; empty if the instance has no pod.
    """

    state: str
    template: str = ""
    image: str = ""
    revision: str = ""


@dataclass(frozen=True)
class Decision:
    """The decision of the service about one instance in a sync: action, reason and message."""

    action: str
    reason: str
    message: str


@dataclass
class Moment:
    """One sync: its simulated time, and the states of the instances and the decisions about them.

    `instances` and `decisions` have instance numbers as keys.
    """

    time: float
    instances: dict[int, Snapshot] = field(default_factory=dict)
    decisions: dict[int, Decision] = field(default_factory=dict)


class Stage:
    """One TApp on the embedded cluster, with a record of all syncs of the present act.

    Attributes:
        hook: calls the service.
        world: the simulated cluster.
        spec: the spec of the TApp.
        annotations: the annotations of the TApp that the next `apply` writes.
        moments: the syncs of the act. The first entry has the state of the instances before the
            act.
        started: when the act began, in simulated seconds.
        fewest_serving: the smallest number of instances that really served at one time in the act.
    """

    def __init__(self, base: str) -> None:
        """Builds an embedded cluster that calls the service at the URL `base`."""
        clock = Clock()
        self.hook = TimedHook(base, clock)
        self.world = World(
            _read("metacontroller/base/composite-controller.yaml"),
            self.hook,
            clock=clock,
            decorators=[_read("metacontroller/components/pod-status/decorator-controller.yaml")],
        )
        self.spec: Document = {}
        # Annotations of the TApp, which the next `apply` writes.
        self.annotations: dict[str, str] = {}
        self.moments: list[Moment] = []
        self.started = 0.0
        self.fewest_serving = 0
        self._serving: set[str] = set()
        self._earlier_writes = 0
        self.world.watch(self._count_serving)

    def begin(self) -> None:
        """Starts the record of an act, and drops the records of earlier acts."""
        self.world.hook_calls.clear()
        self.moments = [
            Moment(self.world.clock.now, moment.instances) for moment in self.moments[-1:]
        ]
        self.started = self.world.clock.now
        self.fewest_serving = len(self._serving)
        self._earlier_writes = len(self.world.writes)

    def apply(self, spec: Document) -> None:
        """Writes the TApp with this spec and with `annotations`, as `kubectl apply` does."""
        self.spec = spec
        metadata = {"name": NAME, "annotations": self.annotations}
        tapp = {"apiVersion": "apps.tkestack.io/v1", "kind": "TApp", "metadata": metadata}
        self.world.apply({**tapp, "spec": spec})

    def delete(self) -> None:
        """Deletes the TApp, as `kubectl delete` does."""
        self.world.delete("TApp", NAME)

    def settle(self) -> None:
        """Runs the cluster until it is at rest, and adds the syncs to the record of the act.

        Raises UnsettledError if the cluster does not come to rest.
        """
        try:
            self.world.settle()
        finally:
            self._record()

    def _record(self) -> None:
        for call in list(self.world.hook_calls):
            if call.error:
                continue
            if call.hook == "sync":
                self.moments.append(self._sync_moment(call))
            elif call.hook == "finalize":
                self.moments.append(_finalize_moment(call))

    def _count_serving(self, event: Event) -> None:
        """Updates the number of instances that really serve, after a change of a pod.

        The condition Ready does not show this number while a container restarts in place.
        """
        if event.kind.name != "Pod":
            return
        worker, name = self.world.kubelet.worker(event.object), event.object["metadata"]["name"]
        if event.new is not None and worker and worker.local.can_serve(self.world.clock.now):
            self._serving.add(name)
        else:
            self._serving.discard(name)
        self.fewest_serving = min(self.fewest_serving, len(self._serving))

    def _sync_moment(self, call: HookCall) -> Moment:
        """Returns the record of a sync.

        Its request is sent again to the endpoint `/plan`, at which the service explains its
        decisions. `call` is the call of the sync hook.
        """
        plan = self.plan(b"".join(call.parts), call.time)
        pods = _pods(call.request)
        moment = Moment(call.time)
        for item in plan["instances"]:
            number = item["id"]
            moment.instances[number] = _snapshot(pods.get(number), item["status"], item["template"])
            moment.decisions[number] = Decision(item["action"], item["reason"], item["message"])
        return moment

    def plan(self, request: bytes, at: float) -> Document:
        """Returns the decisions that the service explains at `/plan` for a sync hook's request.

        Args:
            request: the body of the request.
            at: the simulated time of the decisions.
        """
        self.hook.at = at
        try:
            plan: Document = msgspec.json.decode(self.hook.post("/plan", request, 10).body)
        finally:
            self.hook.at = None
        return plan

    @property
    def seconds(self) -> float:
        """The simulated seconds from the start of the act to its last sync; at least 0.1."""
        return max([moment.time - self.started for moment in self.moments], default=0.0) or 0.1

    @property
    def writes(self) -> list[Write]:
        """The writes of Metacontroller to pods and claims in this act."""
        return [
            write for write in self.world.writes[self._earlier_writes :] if write.kind != "TApp"
        ]

    @property
    def bad_writes(self) -> list[Write]:
        """The writes of Metacontroller in all acts that were refused or that changed nothing.

        Metacontroller sends a PUT of the pod after each write of the pod's status. Such PUTs are
        left out if they changed nothing.
        """
        writes = self.world.writes
        status = {
            (write.name, number) for number, write in enumerate(writes) if write.verb == "status"
        }
        return [
            write
            for number, write in enumerate(writes)
            if write.outcome != "ok"
            and not (write.outcome == "no-op" and (write.name, number - 1) in status)
        ]

    @property
    def touched(self) -> set[int]:
        """The numbers of the instances to whose pods Metacontroller has written in this act."""
        names = [write.name for write in self.writes if write.kind == "Pod"]
        return {int(name.rpartition("-")[2]) for name in names}

    @property
    def pods(self) -> dict[int, Document]:
        """Instance number -> the pod of the instance."""
        pods = self.world.list("Pod")
        return {int(pod["metadata"]["name"].rpartition("-")[2]): pod for pod in pods}

    @property
    def uids(self) -> dict[int, str]:
        """Instance number -> the uid of the instance's pod."""
        return {number: pod["metadata"]["uid"] for number, pod in self.pods.items()}

    @property
    def claims(self) -> dict[str, str]:
        """Name of a claim -> the uid of the claim."""
        claims = self.world.list("PersistentVolumeClaim")
        return {claim["metadata"]["name"]: claim["metadata"]["uid"] for claim in claims}

    @property
    def status(self) -> Document:
        """The status of the TApp; empty if the TApp does not exist."""
        found = self.world.list("TApp")
        status: Document = found[0].get("status") or {} if found else {}
        return status

    def condition(self, type: str) -> Document:
        """Returns the condition of this type in the TApp's status; empty if it does not exist."""
        return condition_of({"status": self.status}, type)


def is_ready(pod: Document) -> bool:
    """Returns True if the condition Ready of a pod is True."""
    return condition_of(pod, "Ready").get("status") == "True"


def condition_of(item: Document, type: str) -> Document:
    """Returns the condition of this type in the status of an object; empty if it does not exist."""
    known = (item.get("status") or {}).get("conditions") or []
    return next((condition for condition in known if condition["type"] == type), {})


def _read(path: str) -> Document:
    document: Document = yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))
    return document


def _pods(request: Document) -> dict[int, Document]:
    pods = (request["children"].get("Pod.v1") or {}).values()
    return {int(pod["metadata"]["name"].rpartition("-")[2]): pod for pod in pods}


def _snapshot(pod: Document | None, state: str, template: str) -> Snapshot:
    if pod is None:
        return Snapshot(state, template)
    container = pod["spec"]["containers"][0]
    statuses = pod.get("status", {}).get("containerStatuses") or []
    waiting = [(item["state"].get("waiting") or {}).get("reason") for item in statuses]
    if any(reason in BROKEN for reason in waiting):
        state = "Broken"
    if pod["metadata"]["annotations"].get(DRAIN):
        state = "Drained"
    if condition_of(pod, "Ready").get("reason") == "NodeNotReady":
        state = "Silent"
    revision = pod["metadata"]["labels"]["tapp_template_hash_key"]
    return Snapshot(state, template, container["image"], revision)


def _finalize_moment(call: HookCall) -> Moment:
    """Returns the record of a call of the finalize hook.

    The hook decides to delete every pod that is not being deleted yet.
    """
    moment = Moment(call.time)
    for number, pod in _pods(call.request).items():
        leaving = pod["metadata"].get("deletionTimestamp") is not None
        moment.instances[number] = _snapshot(pod, "Killing" if leaving else "Running", "")
        moment.decisions[number] = Decision(
            "Wait" if leaving else "Delete", "TAppDeleted", "the TApp is being deleted"
        )
    return moment


Spec = dict[str, Any]


@dataclass(frozen=True)
class Goal:
    """One goal of an act, as a sentence, and whether the act has reached it."""

    text: str
    reached: bool


Play = Generator[Spec | None, None, list[Goal]]


@dataclass(frozen=True)
class Act:
    """One act of the demo: a change of the TApp's spec, with the text that viewers read first.

    `play` is a generator function. It yields the new spec, or None to delete the TApp, and then
    returns the goals.
    """

    title: str
    text: str
    play: Callable[[Stage], Play]
    brief: bool = False  # True if the act is one of the few that show why TApp exists


def ready(stage: Stage) -> set[int]:
    """Returns the numbers of the instances whose pods are Ready."""
    return {number for number, pod in stage.pods.items() if is_ready(pod)}


def images(stage: Stage) -> dict[int, str]:
    """Returns instance number -> the image that the instance's container runs now."""
    return {
        number: status["image"].removeprefix("docker.io/library/")
        for number, pod in stage.pods.items()
        for status in pod["status"].get("containerStatuses") or []
    }


def complete(stage: Stage) -> Goal:
    """Returns the goal that the condition Ready of the TApp is True."""
    condition = stage.condition("Ready")
    return Goal("the status condition Ready is True", condition.get("status") == "True")
