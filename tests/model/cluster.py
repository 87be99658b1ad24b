"""Simulates a cluster with one TApp in which anything may fail, while a judge checks every write.

`Cluster` has a method for each event that the model draws at random, so that a test can also play a
fixed sequence of events.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from copy import deepcopy
from typing import Any

from simulator.api.store import InvalidError, NotFoundError
from simulator.faults import Faults
from simulator.metacontroller.faulty_hook import FaultyHook
from simulator.schedule import WATCHED, Schedule, drawn
from simulator.world import UnsettledError, World
from tests import builders
from tests.builders import storage_class
from tests.holds import HOLD, HOLD_FOR, WANTED
from tests.hook_calls import RECORD, images, made_failed, note, phase
from tests.invariants import ViolationError
from tests.model import specs
from tests.model.goal import NAME, is_as_specified
from tests.model.judge import Judge
from tests.model.resizer import Component
from tests.model.service import ADMISSION, CheckedHook, mirrored, service, set_clock, set_resizer
from tests.scenarios.life import DECORATOR, manifest, registration

Document = dict[str, Any]

KINDS = ("Pod", "TApp", "PersistentVolumeClaim")
LOST_NODE_SECONDS = "apps.tkestack.io/lost-node-seconds"
LIMIT = 300.0
"""Seconds after which a silent node is lost, by the service's setting `TAPP_LOST_NODE_SECONDS`."""
MOST_STEPS = 10_000


class Cluster:
    """Simulates a cluster with one TApp called `web`, whose syncs the real service decides.

    Each method is one event, such as an edit by a user or the failure of a node. `run` lets time
    pass. The attribute `judge` checks every write.
    """

    def __init__(  # noqa: PLR0913 - all but the first are options
        self,
        spec: Document,
        *,
        seed: int = 0,
        admission: str = "",
        keep_finished: bool = True,
        nodes: int = 3,
        zones: Sequence[str] = (),
    ) -> None:
        self._keep_finished = keep_finished
        self._hook = CheckedHook(service(keep_finished, resize=False))
        faulty = FaultyHook(self._hook)
        self.mirror = "mirror" in admission
        self.lean = "lean" in admission
        self.world = World(
            registration(exposing=True),
            faulty,
            seed=seed,
            policies=ADMISSION[admission],
            crds=[manifest("crds/tapp.yaml")],
            keep_calls=20,
            nodes=nodes,
            zones=zones,
            decorators=[manifest(DECORATOR)],
        )
        self.faults = Faults(self.world, faulty)
        set_clock(self.world.clock.unix)
        self.judge = Judge(self.world, NAME)
        self.component = Component(self.world, self.judge.resizes)
        set_resizer(self.component.ask)
        behaviour = self.world.kubelet.levers
        behaviour.bad_images |= _both(specs.BAD)
        behaviour.crashing_images |= _both(specs.CRASHING)
        behaviour.unready_images |= _both(specs.UNREADY)
        behaviour.digests |= {name: "2" * 64 for image in specs.SAME for name in _both(image)}
        behaviour.ready_seconds_by_image |= dict.fromkeys(_both(specs.SLOW), 4.0)
        behaviour.started_seconds_by_image |= dict.fromkeys(_both(specs.SLOW), 9.0)
        self._history = [deepcopy(spec)]
        self.world.apply(storage_class(default=True))
        self.world.apply(builders.manifest(NAME, **spec))

    @property
    def syncs(self) -> int:
        return self._hook.syncs

    def run(self, seconds: float) -> None:
        """Lets `seconds` seconds of simulated time pass; the judge checks each step of the clock.

        Raises UnsettledError if there are so many steps that the cluster must be in a loop.
        """
        end, steps = self.world.clock.now + seconds, 0
        self.judge.after_step()
        while self.world.clock.step(end):
            self.judge.after_step()
            steps += 1
            if steps > MOST_STEPS:
                raise UnsettledError(f"P3: a loop\n{self.world.dump()}")
        self.world.clock.now = end

    # The user who owns the TApp.

    @property
    def tapp(self) -> Document:
        return dict(self.world.get("TApp", NAME))

    @property
    def spec(self) -> Document:
        return deepcopy(self._history[-1])

    def edit(self, change: Callable[[Document], None]) -> None:
        """Changes the TApp's spec with the function `change`, which modifies its argument."""
        spec = self.spec
        change(spec)
        self._write(spec)

    def roll_back(self, back: int) -> None:
        """Restores the spec from before the last `back` edits, but keeps the current number of
        replicas.

        Does nothing if there were fewer edits.
        """
        if len(self._history) > back:
            replicas = self._history[-1]["replicas"]
            self._write({**deepcopy(self._history[-1 - back]), "replicas": replicas})

    def _write(self, spec: Document) -> None:
        self._history.append(deepcopy(spec))
        live = self.tapp
        self.world.cluster.update(self.world.kinds.of(live), {**live, "spec": spec})

    def set_lost_node_seconds(self, seconds: int | None) -> None:
        """Sets the TApp's annotation for the seconds after which a silent node is lost; None
        removes it.
        """
        text = None if seconds is None else str(seconds)
        self.world.patch("TApp", NAME, {"metadata": {"annotations": {LOST_NODE_SECONDS: text}}})

    def pod(self, id: int) -> Document | None:
        try:
            return dict(self.world.get("Pod", f"{NAME}-{id}"))
        except NotFoundError:
            return None

    def delete_pod(self, id: int) -> None:
        if self.pod(id) is not None:
            self.world.delete("Pod", f"{NAME}-{id}")

    def ask_to_restart(self, id: int, container: str, text: str) -> None:
        self.annotate(id, f"{specs.RESTART_INSTANCE}.{container}".removesuffix("."), text)

    def hold(self, id: int, reason: str, only: str | None = None) -> None:
        """Sets a hold on an instance's pod, as the pod's program does; an empty `reason` removes
        the hold.

        `only` is the value of the annotation `hold-for`, which restricts the hold to updates or to
        deletions. None stands for no restriction.
        """
        self.annotate(id, HOLD, reason or None)
        self.annotate(id, HOLD_FOR, only if reason else None)

    def release_all(self, *, asked_only: bool = False) -> None:
        """Removes the holds of all pods; with `asked_only`, only those of pods that have a pending
        action.
        """
        for pod in self.world.list("Pod"):
            if note(pod, HOLD) and (note(pod, WANTED) or not asked_only):
                self.hold(int(pod["metadata"]["name"].rpartition("-")[2]), "")

    def annotate(self, id: int, key: str, text: str | None) -> None:
        """Sets an annotation on an instance's pod, as `kubectl annotate` does; None removes the
        annotation.
        """
        if self.pod(id) is not None:
            self.world.patch("Pod", f"{NAME}-{id}", {"metadata": {"annotations": {key: text}}})

    def resize(self, id: int, cpu: str) -> None:
        """Changes the cpu request of an instance's pod, as a vertical autoscaler does.

        Nothing happens if the pod does not exist or its container has no resources.
        """
        if self.pod(id) is not None:
            with suppress(InvalidError):
                pod = self.world.resize(f"{NAME}-{id}", {"requests": {"cpu": cpu}}, "app")
                self.judge.resizes.touched.add(pod["metadata"]["uid"])

    def delete_as_metacontroller(self, id: int) -> None:
        """Deletes an instance's pod in the name of Metacontroller, although no hook has requested
        the deletion.

        With this event tests check that the judge finds violations.
        """
        self.world.store.delete(self.world.kinds.find("Pod"), "default", f"{NAME}-{id}")

    # Kubelets and nodes.

    def finish(self, id: int, code: int = 0, container: str | None = None) -> None:
        self.faults.exit(f"{NAME}-{id}", code, container)

    def evict(self, id: int) -> None:
        self.faults.evict_under_pressure(f"{NAME}-{id}")

    def set_speed(self, start: float, unready: float) -> None:
        levers = self.world.kubelet.levers
        levers.start_seconds, levers.ready_seconds = start, unready

    def set_stop(self, seconds: float, code: int) -> None:
        levers = self.world.kubelet.levers
        levers.stop_seconds, levers.stop_code = seconds, code

    def set_hook(self, image: str, seconds: float) -> None:
        """Makes the postStart hook of an image keep the kubelet's pod workers busy for `seconds`
        seconds.

        The service can see only in `managedFields` how long a pod worker is busy. Without
        `managedFields` the service allows for a fixed time, so the hook is limited to a shorter
        one.
        """
        levers = self.world.kubelet.levers
        told = self.world.kubelet.managed_fields and not self.lean
        seconds = seconds if told else min(seconds, 8.0)
        levers.post_start_seconds.update(dict.fromkeys(_both(image), seconds))

    def fail_liveness(self, id: int) -> None:
        self.faults.fail_liveness(f"{NAME}-{id}", "app")

    def restart_kubelet(self, node: str) -> None:
        self.faults.restart_kubelet(node)

    def spoil(self, image: str) -> None:
        self.world.kubelet.levers.bad_images |= _both(image)

    def heal_images(self) -> None:
        self.world.kubelet.levers.bad_images.clear()
        self.world.kubelet.levers.crashing_images.clear()
        self.world.kubelet.levers.unready_images.clear()
        self.world.kubelet.levers.ready_seconds_by_image.clear()
        self.world.kubelet.levers.started_seconds_by_image.clear()
        self.world.kubelet.retry()

    def old_server(self) -> None:
        """Simulates Kubernetes before 1.34, where a pod's `status.observedGeneration` does not
        exist.
        """
        self.world.kubelet.levers.reports_generation = False

    def without_managed_fields(self) -> None:
        self.world.kubelet.managed_fields = False

    def set_moods(self, *, refuse: bool = False, hang: bool = False) -> None:
        behaviour = self.world.kubelet.levers
        behaviour.refuses = lambda _pod: refuse
        behaviour.hangs_on_delete = lambda _pod: hang
        if not hang:
            self.world.kubelet.release()

    def set_kubelets(self, *, resize: bool) -> None:
        """Sets whether kubelets support resizes and report the resources of running containers."""
        self.world.kubelet.levers.resizes = resize

    def set_resizing(self, seconds: float, pends: str, ids: Collection[int]) -> None:
        """Sets how long the kubelets need for a resize, and which instances' pods cannot be
        resized.

        `pends` is `Deferred`, `Infeasible`, `fails`, or "" if all resizes succeed. `ids` are the
        numbers of the instances.
        """
        levers, names = self.world.kubelet.levers, {f"{NAME}-{id}" for id in ids}
        levers.resize_seconds = seconds
        self.judge.resizes.troubled |= bool(pends)

        def is_meant(pod: Document) -> bool:
            return pod["metadata"]["name"] in names

        reason = pends if pends in ("Deferred", "Infeasible") else ""
        levers.resize_pends = lambda pod: (reason, "no") if reason and is_meant(pod) else None
        levers.resize_fails = lambda pod: "no" if pends == "fails" and is_meant(pod) else ""

    def install_resize(self, *, installed: bool) -> None:
        """Installs the component resize, or removes it; the cluster then calls another service.

        The component lets the service send PATCHes to `pods/resize`.
        """
        self._hook.inner = service(self._keep_finished, resize=installed)
        self.judge.resizes.installed = installed

    @property
    def lost_nodes(self) -> set[str]:
        return set(self.faults.lost)

    def lose_nodes(self, *names: str) -> None:
        self.faults.lose_nodes(*names)

    def recover_nodes(self) -> None:
        self.faults.recover_nodes()

    def toggle_node(self, name: str) -> None:
        if name in self.faults.lost:
            self.faults.recover_nodes(name)
        else:
            self.faults.lose_nodes(name)

    # Watches and Metacontroller.

    def set_lag(self, kind: str, seconds: float) -> None:
        self.faults.lag(kind, seconds)

    def stall(self, kind: str) -> None:
        self.faults.stall(kind)

    def advance(self, kind: str, events: int) -> None:
        self.faults.advance(kind, events)

    def resume_watches(self) -> None:
        self.faults.resume_watches({*KINDS, *WATCHED})

    def play_faults(self, seed: int, kinds: Sequence[str], count: int, within: float) -> None:
        """Plays the faults of a seed, as `kubectl tapp rehearse` does, until all have ended.

        `within` is the number of seconds in which the faults begin.
        """
        schedule = Schedule(self.world, self.faults, "TApp")
        schedule.start(drawn(seed, kinds, count, within))
        while schedule.pending:
            self.run(5.0)

    def set_decorator(self, *, served: bool, seconds: float) -> None:
        """Sets whether the DecoratorController, which writes pod statuses, reaches the service.

        `seconds` is the time that a response takes.
        """
        self._hook.writes_status = served
        for each in self.world.decorators:
            each.hook_seconds = seconds

    def restart_decorator(self) -> None:
        for each in self.world.decorators:
            each.restart()

    def sync_once_more(self) -> None:
        self.world.metacontroller.queue.add(("default", NAME))

    def calm(self) -> None:
        """Ends all faults: everything reports, starts and responds normally again."""
        self.faults.heal({*KINDS, *WATCHED})
        self.set_moods()
        self.heal_images()
        self.set_speed(1.0, 0.0)
        self.set_stop(0.5, 137)
        self.set_resizing(1.0, "", ())
        self.component.faults, self.component.pause, self.component.late = [], 0.05, 0.0
        self.world.kubelet.levers.post_start_seconds.clear()
        self.set_decorator(served=True, seconds=0.0)
        self.world.metacontroller.hook_seconds = 0.0
        self.world.restart()

    # The end.

    def comes_to_rest(self) -> None:
        """Checks P3: after the end of all faults the TApp reaches its spec, and then nothing is
        written.

        First all faults end, all holds are removed, and the spec is repaired.
        """
        self.heal_everything()
        self.edit(specs.repair)
        self.settles()
        self.is_as_specified()
        before = len(self.world.writes)
        self.run(1500.0)
        news = [str(write) for write in self.world.writes[before:]]
        if news:
            raise ViolationError(f"P3: written though all is done: {news[:5]}")

    def heal_everything(self) -> None:
        self.calm()
        self.release_all()
        self.run(90.0)  # stopping containers have stopped
        for pod in self.world.list("Pod"):
            # These pods never become Ready again or are never replaced, so the budget waits for
            # them.
            ended = self.judge.truth.ended_by_update(pod["metadata"]["name"])
            stuck = self.spec.get("neverMigrate") and (
                ended or made_failed(pod) or _may_count_as_ended_by_update(pod)
            )
            if _half_ended(pod) or stuck:
                self.world.delete("Pod", pod["metadata"]["name"])

    def settles(self) -> None:
        """Runs until nothing has been written for longer than any delay and back-off.

        Raises UnsettledError if writes never end, and ViolationError if a sync fails.
        """
        quiet, end, revision = self.world.clock.now, self.world.clock.now + 14400, -1
        while self.world.clock.now - quiet < 700:
            self.run(5.0)
            if self.world.cluster.revision != revision:
                quiet, revision = self.world.clock.now, self.world.cluster.revision
            if self.world.clock.now > end:
                raise UnsettledError(f"P3: still changing\n{self.world.dump()}")
        errors = {key: text for key, text in self.world.outcomes.items() if text}
        if errors:
            raise ViolationError(f"P3: syncs fail: {errors}")

    def is_as_specified(self) -> None:
        """Checks that each instance runs its template, and that no other objects exist."""
        is_as_specified(self.world, self.judge.resizes, mirror=self.mirror)

    def ends(self, *lost: str) -> None:
        """Deletes the TApp, and checks that its pods go and that its claims stay or go by their
        policy.

        Args:
            lost: nodes that stop reporting before the deletion. Their pods must be allowed to move.
        """
        self.lose_nodes(*lost)
        going, before = set(), set()
        for claim in self.world.list("PersistentVolumeClaim"):  # some may wait for their pods
            meta = claim["metadata"]
            (going if meta.get("deletionTimestamp") else before).add(meta["name"])
        spec = self.tapp["spec"]
        policy = spec.get("persistentVolumeClaimRetentionPolicy") or {}
        away = self.lost_nodes
        held = [pod for pod in self.world.list("Pod") if pod["spec"].get("nodeName") not in away][
            :1
        ]
        for pod in held:
            self.hold(int(pod["metadata"]["name"].rpartition("-")[2]), "the last match")
        self.world.delete("TApp", NAME)
        self.run(10.0)
        self._waits_for(held, spec)
        self.release_all()
        self.run(180.0 + (LIMIT if lost else 0.0))
        if self.world.list("TApp") or self.world.list("Pod"):
            raise ViolationError(f"P3: it does not go\n{self.world.dump()}")
        after = {claim["metadata"]["name"] for claim in self.world.list("PersistentVolumeClaim")}
        after -= going
        kept = set() if policy.get("whenDeleted") == "Delete" else before
        if after != kept:
            raise ViolationError(f"P6: claims {before} have become {after}, policy {policy}")

    def _waits_for(self, held: list[Document], spec: Document) -> None:
        """Checks that the pods in `held`, which are on hold, still exist and have the pending
        action Delete.

        A pod that has ended, or whose hold has a time limit, may be gone.
        """
        there = {pod["metadata"]["uid"]: pod for pod in self.world.list("Pod")}
        limit = spec.get("deletionHoldTimeoutSeconds")
        for pod in held:
            ended = pod["metadata"].get("deletionTimestamp") or phase(pod) != "Running"
            kept = there.get(pod["metadata"]["uid"])
            if not (ended or limit is not None) and not (kept and note(kept, WANTED) == "Delete"):
                raise ViolationError(
                    f"{pod['metadata']['name']} is on hold, and not told to go: {kept}"
                )


def _may_count_as_ended_by_update(pod: Document) -> bool:
    """Returns True if a pod has ended and its last update is one that image names cannot prove.

    Such updates are those to another tag of the same image, restarts with the same image, and all
    updates before Kubernetes 1.34 (docs/guarantees.md). The service may then assume that the update
    has ended the pod.
    """
    record = (pod["metadata"].get("annotations") or {}).get(RECORD, "")
    same = {name for image in specs.SAME for name in _both(image)}
    # The record has the time of the write if kubelets do not report the generation that they have
    # seen.
    unsure = (
        '"again":true' in record
        or '"at":' in record
        or bool(record and same & set(images(pod).values()))
    )
    return unsure and phase(pod) in ("Succeeded", "Failed")


def _half_ended(pod: Document) -> bool:
    """Returns True if one container of the pod has ended for good while another one still runs."""
    spec = pod["spec"]
    policies = {one.get("restartPolicy") or spec.get("restartPolicy") for one in spec["containers"]}
    ended = ["terminated" in item["state"] for item in pod["status"].get("containerStatuses") or []]
    return not policies <= {None, "Always"} and any(ended) and phase(pod) == "Running"


def _both(image: str) -> set[str]:
    return {image, mirrored(image)}
