"""One sync of a pod worker, as a generator that yields while the worker is busy.

`Sync.run` yields functions that return the time until which the worker is busy, for example until a
container has stopped. Sources: Kubernetes v1.37.2, pkg/kubelet (SyncPod, SyncTerminatingPod),
pkg/kubelet/kuberuntime (SyncPod, doBackOff, startContainer, killContainer),
pkg/kubelet/images/image_manager.go.
"""

from collections.abc import Callable, Generator, Iterator

from simulator.node.container import Container, Run
from simulator.node.levers import KILLED, Levers
from simulator.node.local_pod import LocalPod
from simulator.node.pod_plan import make_plan, specs_of
from simulator.objects.objects import Object, is_terminating, meta
from tapp.kube.images import is_reference
from tapp.kube.stored import GRACE

SANDBOX_SECONDS = 0.3  # to stop the sandbox of a pod whose containers have ended
Busy = Callable[[], float]  # returns the time until which the worker is busy


class Sync:
    """One sync of a pod; `run` it to its end, then read the fields."""

    def __init__(self, local: LocalPod) -> None:
        self.changed = False
        """True if a container was started, stopped, removed or resized."""
        self.failed = False
        """True if a container could not be started or resized, except for a back-off."""
        self.backoffs: list[float] = []
        """The times when the back-offs end that delayed the start of containers."""
        self._local = local

    @property
    def _levers(self) -> Levers:
        return self._local.node.levers

    def run(self) -> Iterator[Busy]:
        """Runs the sync for the newest spec that the kubelet has seen."""
        local, pod = self._local, self._local.pod
        if is_terminating(pod):
            yield from self._terminate(pod)
            return
        if local.end is not None:
            return
        refused = None if local.begun else self._levers.refusal(pod)
        if refused is not None and not local.status:
            local.refuse(pod, *refused)
            return
        local.publish(pod)
        if local.ending:
            yield from self._kill_all(_grace(pod))
            yield self._after(SANDBOX_SECONDS)
            local.publish(pod, final=True)
            local.end = local.phase, "", ""
            return
        self.changed, local.sandboxed = not local.sandboxed, True
        exited = {one.name: one.last_exited for one in local.all}
        plan = make_plan(pod, local.inits, local.mains)
        if plan.kill_pod:
            yield from self._kill_all(_grace(pod))
        for one in plan.remove:
            yield from self._kill([one.runs[0]] if one.alive else [], 0.0)
            one.remove()
            self.changed = True
        for one in plan.kill:
            yield from self._kill([one.runs[0]], _grace(pod))
        for one in plan.start:
            started = yield from self._start(pod, one, exited[one.name])
            if one.once and not started:
                return
        yield from self._resize(pod)

    def _resize(self, pod: Object) -> Iterator[Busy]:
        """Gives running containers the resources of their spec.

        A container is restarted if its resizePolicy demands a restart. A deferred resize is tried
        again.
        """
        local, levers = self._local, self._levers
        pending = levers.resize_pends(pod) if local.unsized else None
        if pending is not None:
            self.failed = pending[0] == "Deferred"
            return
        if local.unsized and levers.resize_fails(pod):
            self.failed = True
            return
        for one in [each for each in local.all if each.name in local.unsized]:
            spec = specs_of(pod)[one.name]
            asked = spec.get("resources") or {}
            changed = {path[-1] for path in _changed(local.given[one.name], asked)}
            if changed & {
                policy["resourceName"]
                for policy in spec.get("resizePolicy") or []
                if policy["restartPolicy"] == "RestartContainer"
            }:
                yield from self._kill([one.runs[0]], _grace(pod))
                yield from self._start(pod, one, None)
            yield self._after(local.node.spread(levers.resize_seconds))
            local.given[one.name], self.changed = asked, True

    def _terminate(self, pod: Object) -> Iterator[Busy]:
        local = self._local
        if self._levers.hangs(pod):
            return
        if local.end is None:
            local.publish(pod)
        yield from self._kill_all(float(meta(pod).get("deletionGracePeriodSeconds") or 0))
        if local.end is None:
            local.publish(pod, final=True)
            local.end = local.phase, "", ""
        local.gone = True

    def _kill_all(self, grace: float) -> Iterator[Busy]:
        yield from self._kill([one.runs[0] for one in self._local.all if one.alive], grace)

    def _kill(self, runs: list[Run], grace: float) -> Iterator[Busy]:
        local = self._local
        for run in runs:
            self.changed = run.stopping = True
            seconds, code = self._levers.stop_of(local.pod, run.image)
            seconds = local.node.spread(seconds)
            code = code if seconds < grace else KILLED
            end = local.now + min(seconds, grace)
            if run.ends_at is None or end < run.ends_at:
                run.ends_at, run.exit_code = end, code
        while any(run.alive for run in runs):
            yield lambda: max((run.ends_at or 0.0 for run in runs if run.alive), default=0.0)

    def _start(
        self, pod: Object, one: Container, exited: Run | None
    ) -> Generator[Busy, None, bool]:
        """Starts a container, unless a back-off delays it; returns True if it was started."""
        local, spec, levers = self._local, specs_of(pod)[one.name], self._levers
        image, first, limit = spec["image"], levers.backoff_seconds, levers.backoff_limit
        if exited is not None and exited.finished is not None:
            end = one.crashes.ends(image, exited.finished, limit)
            if end is not None and local.now < end:
                self.backoffs.append(end)
                wait = f"back-off {one.crashes.wait(image):g}s"
                name, space, uid = (meta(pod).get(key) for key in ("name", "namespace", "uid"))
                where = f"container={one.name} pod={name}_{space}({uid})"
                one.reason = "CrashLoopBackOff", f"{wait} restarting failed {where}"
                return False
            one.crashes.next(image, exited.finished, local.now, first, limit)
        error = yield from self._pull_volumes(pod, one)
        if error is None:
            error = yield from self._pull(pod, one, image, spec.get("imagePullPolicy"))
        if error is not None:
            one.reason, self.failed = error, True
            return False
        yield self._after(local.node.spread(self._levers.start_seconds))
        one.add(self._process(pod, one, image))
        if one.name not in local.given or levers.resize_pends(pod) is None:
            local.given[one.name] = spec.get("resources") or {}
        one.reason, self.changed = None, True
        hook = levers.hooks.get(levers.plain(image))
        if hook is not None:
            yield self._after(hook)
        return True

    def _pull_volumes(
        self, pod: Object, one: Container
    ) -> Generator[Busy, None, tuple[str, str] | None]:
        """Pulls the images of image volumes, before any container starts (getImageVolumes).

        Returns reason and message of a failure, or None.
        """
        for volume in pod["spec"].get("volumes") or []:
            source = volume.get("image")
            if source is not None:
                image = source["reference"]
                error = yield from self._pull(pod, one, image, source.get("pullPolicy"))
                if error is not None:
                    return error
                self._local.node.pulled.add(image)
        return None

    def _pull(
        self, pod: Object, one: Container, image: str, policy: str | None
    ) -> Generator[Busy, None, tuple[str, str] | None]:
        """Pulls an image; returns reason and message of a failure, or None."""
        local = self._local
        if image in local.node.pulled and policy != "Always":
            return None
        if not is_reference(image):
            why = f'couldn\'t parse image name "{image}": invalid reference format'
            return "InvalidImageName", f'Failed to apply default image tag "{image}": {why}'
        if self._levers.plain(image) != image and policy != "Always":
            return None  # an image with this digest has run on the node
        if policy == "Never":
            if image not in self._levers.bad_images:
                return None
            why = "is not present with pull policy of Never"
            return "ErrImageNeverPull", f'Container image "{image}" {why}'
        limit = self._levers.backoff_limit
        end = one.pulls.ends(image, one.pulls.updated(image), limit)
        if end is not None and local.now < end:
            why = f"ErrImagePull: {one.pull_errors[image]}"
            return "ImagePullBackOff", f'Back-off pulling image "{image}": {why}'
        if image not in local.node.pulled:
            yield self._after(self._levers.pull_of(pod, one.name, image, fresh=one.run is None))
        if image not in self._levers.bad_images:
            return None
        one.pulls.next(image, local.now, local.now, self._levers.backoff_seconds, limit)
        one.pull_errors[image] = self._levers.pull_error(image)
        return "ErrImagePull", one.pull_errors[image]

    def _process(self, pod: Object, one: Container, image: str) -> Run:
        local, levers = self._local, self._levers
        planned = levers.exit_of(pod, one.name, image, once=one.once)
        number = one.removed if one.run is None else one.run.restarts + 1
        return Run(
            id=f"containerd://{local.node.rng.getrandbits(256):064x}",
            image=image,
            shown=local.node.name_of(image),
            image_id=levers.image_id(image),
            restarts=number,
            started=local.now,
            serves_from=local.now + levers.passing(image),
            starts_from=local.now + levers.starting(image),
            ends_at=None if planned is None else local.now + planned[0],
            exit_code=0 if planned is None else planned[1],
            metadata=meta(pod),
        )

    def _after(self, seconds: float) -> Busy:
        end = self._local.now + seconds
        return lambda: end


def _grace(pod: Object) -> float:
    return float(pod["spec"].get("terminationGracePeriodSeconds", GRACE))


def _changed(old: Object, new: Object) -> Iterator[tuple[str, str]]:
    for kind in ("limits", "requests"):
        one, other = old.get(kind) or {}, new.get(kind) or {}
        for name in one.keys() | other.keys():
            if one.get(name) != other.get(name):
                yield kind, name
