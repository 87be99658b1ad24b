"""Runs a TApp on the simulated cluster, and records the decisions and writes.

`Run.play` is the entry point. The simulated Metacontroller calls the service's functions in this
process (`InProcessHooks`). A run ends if nothing has changed for some time.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Any

from hooks.customize import customize
from hooks.finalize import finalize
from hooks.pod_status import answer_pod_status
from hooks.sync import sync
from hooks.wire.decode import WireError
from hooks.wire.memo import Memo
from hooks.wire.request import Request, customize_parent, encode
from kubectl_tapp.base import shipped
from kubectl_tapp.base.observed import Document, Observed
from kubectl_tapp.base.reading import conditions_by_type
from kubectl_tapp.cluster.registration import Registration
from kubectl_tapp.decide.decisions import MEMORY
from kubectl_tapp.forecast.behaviour import TICK, Behaviour
from kubectl_tapp.forecast.run_log import (
    DecidedWrite,
    RemainingUpdates,
    RunLog,
    due_writes,
    unavailable,
)
from kubectl_tapp.forecast.turns import SimulatedUpdates, waiting_for_update
from simulator.api.admission import Policy, lean_pods
from simulator.api.store import ApiError
from simulator.metacontroller.faulty_hook import FaultyHook
from simulator.metacontroller.hook_client import HttpResponse
from simulator.objects.clock import EPOCH
from simulator.objects.objects import with_meta
from simulator.recording import Write
from simulator.seed import SPARE_NODE, clock_at, seeded
from simulator.world import World
from tapp.answer.children import NamespaceMissingError
from tapp.answer.resize_patches import Patch, patches
from tapp.decide.instances import Instance
from tapp.decide.verdicts import Verdict
from tapp.declared.model import Parent, TApp
from tapp.plan import Plan
from tapp.pod.lost import LEAST_SECONDS, observed_silence
from tapp.storage.claims import instance_number
from tapp.words.vocabulary import LAST_APPLIED, InstanceStatus
from tapp.world import Options


class InProcessHooks:
    """Replaces the HTTP service in a simulation: calls the service's functions in this process, and
    answers errors as the service does.
    """

    def __init__(
        self, options: Options, clock: Callable[[], float], on_plan: Callable[[Plan], None]
    ) -> None:
        """Prepares the functions of all hooks.

        Args:
            options: the options that the service runs with.
            clock: returns the simulated time, in seconds since the epoch.
            on_plan: called with the plan of each sync, before the sync is answered.
        """
        # The error of the last request; empty if the hook accepted the request.
        self.refused = ""
        self._options = options
        self._clock = clock
        self._on_plan = on_plan
        self._memo = Memo(MEMORY)
        self._answers: dict[str, Callable[[bytes], Any]] = {
            "sync": self._sync,
            "finalize": self._finalize,
            "customize": lambda body: customize(*customize_parent(body)),
            "pod-status": lambda body: answer_pod_status(body, clock()),
        }

    def post(self, url: str, body: bytes, seconds: float) -> HttpResponse:  # noqa: ARG002
        """Answers one request to a hook. The last part of the URL names the hook.

        A request that the service would refuse is answered with the HTTP status 400 or 503. The
        attribute `refused` then has the error.
        """
        try:
            answer = self._answers[url.rpartition("/")[2]](body)
        except WireError as error:
            self.refused = f"{error.path}: {error.message}" if error.path else error.message
            return HttpResponse(400, encode({"error": error.message, "path": error.path}))
        except NamespaceMissingError as error:
            self.refused = str(error)
            return HttpResponse(503, encode({"error": str(error)}))
        self.refused = ""
        return HttpResponse(200, encode(answer))

    def restart(self) -> None:
        """Forgets everything that a process of the service remembers, as a restart of the service
        does.
        """
        self._memo = Memo(MEMORY)

    def _sync(self, body: bytes) -> dict[str, Any]:
        synced = sync(Request(body, TApp, self._memo), self._options, self._clock())
        self._on_plan(synced.plan)
        return synced.answer

    def _finalize(self, body: bytes) -> dict[str, Any]:
        return finalize(Request(body, Parent, self._memo), self._options, self._clock())[0]


# Simulated seconds after which a simulation ends, even if the rollout is not complete
MAX_SECONDS = 30 * 24 * 3600.0
# Seconds between periodic resyncs: practically none, because a resync would not change the forecast
_NO_RESYNC = 10**9
# Seconds from the first event until the simulated Metacontroller syncs; further events join the
# sync
SYNC_DELAY = 3 * TICK


class Run:
    """One simulation of a TApp: a simulated cluster with copies of the real objects, and its
    record.
    """

    def __init__(
        self,
        observed: Observed,
        registration: Registration,
        behaviour: Behaviour,
        now: float,
        spare_nodes: Iterable[str] = (SPARE_NODE,),
    ) -> None:
        """Builds the simulated cluster at the time `now`, in seconds since the epoch.

        Args:
            observed: the TApp with its objects, which are copied.
            registration: the CompositeController of the TApp, and the options of the service.
            behaviour: the times and failures of the simulated kubelets.
            now: the time at which the simulation begins.
            spare_nodes: names of nodes on which no pod runs yet.
        """
        self.log = RunLog()
        self._name = observed.name
        self._states: dict[int, tuple[str, str]] = {}
        self._plan: Plan | None = None
        self._verdicts: dict[int, Verdict] = {}
        self._changed = now
        self._turns = SimulatedUpdates()
        self._is_repeating = self._is_last_decision = False
        controller, options = registration
        clock = clock_at(now, TICK)
        self.hook = InProcessHooks(options, clock.unix, self._on_plan)
        self.calls = FaultyHook(self.hook)
        behaviour.resizes = options.resize
        self.world: World = seeded(
            _objects(observed),
            _without_resync(controller),
            self.calls,
            clock,
            levers=behaviour,
            patience=max(behaviour.patience, 60.0),
            silent_nodes=silent_nodes(observed, controller, now),
            policies=_policies(observed.pods),
            decorators=[_without_resync(shipped.manifest(shipped.DECORATOR))]
            if _pod_status_is_written(observed)
            else (),
            keep_calls=1,
            spare_nodes=spare_nodes,
        )
        self.world.metacontroller.queue.delay = SYNC_DELAY

    @property
    def now(self) -> float:
        """The time that the simulation has reached, in seconds since the epoch."""
        return self.world.clock.unix()

    def apply(self, edited: Document) -> None:
        """Writes the edited TApp to the simulated cluster, as its author would.

        Raises ApiError if the simulated API server refuses the write.
        """
        cluster, metadata = self.world.cluster, edited["metadata"]
        kind = self.world.kinds.of(edited)
        live = cluster.find(kind, metadata["namespace"], metadata["name"])
        if live is None:
            cluster.create(kind, edited)
            return
        parts = {part: metadata.get(part) for part in ("labels", "annotations")}
        cluster.update(kind, with_meta({**live, "spec": edited.get("spec")}, **parts))

    def play(self, edited: Document, patience: float) -> RunLog:
        """Writes the edited TApp, runs the simulation, and returns its record.

        The simulation ends after `patience` seconds without a change. Of a long rollout only the
        first updates are simulated (`turns.py`). Then the TApp is paused, so that only the updates
        under way are completed. One more decision says what happens to the other instances. Raises
        ApiError if the write is refused.
        """
        log = self.log
        self.apply(edited)
        self._follow(patience, lambda: self._is_repeating)
        if self._is_repeating:
            spec, stopped = edited["spec"], self.now
            strategy = {**(spec.get("updateStrategy") or {}), "paused": True}
            self.apply({**edited, "spec": {**spec, "updateStrategy": strategy}})
            self._follow(patience, lambda: False)
            log.rest = self._remaining_updates(edited, stopped)
        log.last, log.ended = self._plan, self._changed
        if log.rest is not None:
            log.ended += log.rest.seconds
        log.refused = self.hook.refused
        return log

    def _follow(self, patience: float, until: Callable[[], bool]) -> None:
        """Advances the simulated clock until `until` returns True or nothing more happens.

        Nothing more happens if no timer is left, or if nothing has changed for `patience` seconds.
        After `MAX_SECONDS` the simulation ends in any case, and the record says that it gave up.
        """
        clock, log = self.world.clock, self.log
        count = len(self.world.writes)
        limit = self._changed + MAX_SECONDS
        while clock.has_foreground_timers and not until():
            if self.now - self._changed > patience or not clock.step():
                break
            if self.now > limit:
                log.gave_up = True
                break
            if len(self.world.writes) != count:
                self._record_writes(self.world.writes[count:])
                count = len(self.world.writes)

    def _remaining_updates(self, edited: Document, stopped: float) -> RemainingUpdates:
        """Returns the updates that a paused rollout has not begun, and an estimate of the seconds
        they take.

        The method removes the pause and decides once more about the instances that are not updated.
        Since the pause, the service has removed its preparations for the updates of these
        instances, such as annotations. The forecast does not show these writes, so they are removed
        from the record.

        Args:
            edited: the TApp without the pause.
            stopped: the time of the pause, in seconds of the simulation.
        """
        played, self._is_last_decision = self._plan, True
        self.apply(edited)
        self._follow(MAX_SECONDS, lambda: self._plan is not played)
        last = self._plan
        assert last is not None  # noqa: S101 - many were decided before
        ids = {each.id for each in waiting_for_update(last)}
        log = self.log
        log.acts = [x for x in log.acts if x.at < stopped or x.instance not in ids]
        acts, _ = due_writes(last)
        coming = tuple(x for x in acts if x.instance is None or x.instance in ids)
        return RemainingUpdates(coming, self._changed, self._turns.seconds(last))

    def _on_plan(self, plan: Plan) -> None:
        log, away = self.log, unavailable(plan)
        self._plan = plan
        if self._is_last_decision:
            return
        self._is_repeating = self._is_repeating or self._turns.is_repeating(plan)
        for patch in patches(plan):
            self.world.clock.after(TICK, partial(self._resize, patch))
        log.first = log.first or plan
        self._verdicts = {case.instance.id: case.decision for case in plan.notable}
        if not log.looks or away != log.looks[-1][1]:
            log.looks.append((plan.now, away))
        there = set()
        for instance in plan.instances:
            there.add(instance.id)
            state = _state(plan, instance)
            uid = instance.pod.uid if instance.pod is not None else ""
            if self._states.get(instance.id) != (state, uid):
                self._record_state(plan.now, instance.id, state, uid)
        for id in [id for id in self._states if id not in there]:
            self._record_state(plan.now, id, "none", "")
            del self._states[id]

    def _resize(self, patch: Patch) -> None:
        """Patches the resources of a pod in the simulation, as the service does.

        If the API server refuses the patch, nothing happens: a later sync tries again.
        """
        id = int(patch.name.removeprefix(f"{self._name}-"))
        with suppress(ApiError):
            self.world.patch_resize(*patch)
            write = "update", "Pod", patch.name
            self.log.acts.append(
                DecidedWrite(self.now, *write, instance=id, verdict=self._verdicts.get(id))
            )
            self._changed = self.now

    def _record_state(self, at: float, id: int, state: str, uid: str) -> None:
        self._states[id] = state, uid
        self._changed = at
        spans = self.log.states.setdefault(id, [])
        if not spans or spans[-1][1] != state:
            spans.append((at, state))

    def _record_writes(self, writes: Iterable[Write]) -> None:
        for write in writes:
            if write.kind == "TApp" or write.outcome == "no-op":
                continue
            id, at = self._instance(write), EPOCH.timestamp() + write.time
            verdict = self._verdicts.get(id) if id is not None else None
            told = write.verb, write.kind, write.name, write.paths, write.outcome, write.message
            self.log.acts.append(DecidedWrite(at, *told, instance=id, verdict=verdict))
            if write.outcome == "ok":
                self._changed = at

    def _instance(self, write: Write) -> int | None:
        return instance_number(write.name, f"{self._name}-") if write.kind == "Pod" else None


def _state(plan: Plan, instance: Instance) -> str:
    running = instance.status is InstanceStatus.RUNNING and instance.pod is not None
    if instance.id in plan.available or (running and not instance.should_run):
        return "available"
    if instance.pod is None:
        return "none" if not instance.should_run else "missing"
    if instance.status is InstanceStatus.KILLING or instance.pod.terminating:
        return "stopping"
    if instance.finished or instance.pod.completed:
        return "ended"
    found = plan.troubles.get(instance.id)
    if found is not None and found.text:
        return "broken"
    return "updating" if instance.status is InstanceStatus.UPDATING else "starting"


def _without_resync(controller: Document) -> Document:
    return {**controller, "spec": {**controller["spec"], "resyncPeriodSeconds": _NO_RESYNC}}


def _objects(observed: Observed) -> list[Document]:
    kept = [*observed.claims, *observed.revisions, *chain(*observed.plain.values())]
    objects = [*observed.storage_classes, *kept, *observed.pods]
    if observed.tapp["metadata"].get("uid"):
        objects.insert(0, observed.tapp)
    namespace = observed.namespace or _namespace(observed)
    return [namespace, *objects]


def _namespace(observed: Observed) -> Document:
    """Returns a made-up Namespace object, for a user who may not read the real one.

    The Namespace gets the uid that the owner references of the claims name, so that the claims keep
    their owner.
    """
    name = observed.tapp["metadata"]["namespace"]
    owners = [
        owner
        for claim in observed.claims
        for owner in claim["metadata"].get("ownerReferences") or []
        if owner["kind"] == "Namespace"
    ]
    uid = owners[0]["uid"] if owners else "5eed0000-0000-4000-8000-00000000000a"
    metadata = {"name": name, "uid": uid, "resourceVersion": "1"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def _policies(pods: list[Document]) -> list[Policy]:
    """Returns the admission policies of the simulated cluster: `lean_pods` if the real cluster
    seems to have it, otherwise none.

    The policy `lean_pods` removes `spec` from the annotation that holds the object which
    Metacontroller applied last. The cluster seems to have the policy if no pod has `spec` in this
    annotation.
    """
    applied = [
        pod["metadata"].get("annotations", {}).get(LAST_APPLIED)
        for pod in pods
        if LAST_APPLIED in (pod["metadata"].get("annotations") or {})
    ]
    return [lean_pods] if applied and all('"spec":' not in text for text in applied) else []


def _pod_status_is_written(observed: Observed) -> bool:
    """Returns True unless a condition of the TApp reports that the component which writes the pods'
    status is missing.

    Without this component, the readiness gates stay closed in the simulation, too.
    """
    found = conditions_by_type(observed.tapp).get("PodStatusNotWritten") or {}
    return found.get("status") != "True"


def silent_nodes(observed: Observed, controller: Document, now: float) -> frozenset[str]:
    """Returns the names of the nodes that have stopped reporting, as the pods on them show.

    A node with a Ready pod is left out, because it reports. Without this check, a readiness gate
    that was opened a moment ago would make its node look silent. `controller` is the
    CompositeController of the TApp, and `now` is in seconds since the epoch.
    """
    if not observed.pods:
        return frozenset()
    request = Request(observed.sync_request(controller), Parent, Memo(0))
    pods = [each.pod for each in request.pods.values()]
    heard = {pod.node for pod in pods if pod.ready}
    silent = {
        pod.node
        for pod in pods
        if (since := observed_silence(pod, now)) is not None and now - since >= LEAST_SECONDS
    }
    return frozenset(silent - heard)
