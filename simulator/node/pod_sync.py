"""One sync of a pod worker, as a generator that yields while the worker is busy.

`Sync.run` yields functions. Each function returns the time until which the worker is busy, for
example until a container has stopped. Sources: Kubernetes v1.37.2, pkg/kubelet (SyncPod,
SyncTerminatingPod), pkg/kubelet/kuberuntime (SyncPod, doBackOff, startContainer, killContainer),
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

SANDBOX_SECONDS = 0.3  # Seconds to stop the sandbox of a pod whose containers have ended
Busy = Callable[[], float]  # returns the time until which the worker is busy


class Sync:
    """One sync of a pod, which stops, pulls, starts and resizes its containers.

    The caller iterates over `run` to its end, and then reads the result from the fields.
    """

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
        """Runs the sync for the newest spec that the kubelet has seen.

        Yields a function each time the worker has to wait. The function returns the time until
        which the worker waits, and the caller resumes the generator at that time.
        """
        local, pod = self._local, self._local.pod
        if is_terminating(pod):
            yield from self._terminate(pod)
            return
        if local.end is not None:
            return
        refused = None if local.has_run else self._levers.refusal(pod)
        if refused is not None and not local.status:
            local.refuse(pod, *refused)
            return
        local.publish(pod)
        if local.final_phase:
            yield from self._kill_all(_grace_seconds(pod))
            yield self._after(SANDBOX_SECONDS)
            local.publish(pod, final=True)
            local.end = local.phase, "", ""
            return
        self.changed, local.has_sandbox = not local.has_sandbox, True
        exited = {container.name: container.last_exited for container in local.all}
        plan = make_plan(pod, local.inits, local.mains)
        if plan.kill_pod:
            yield from self._kill_all(_grace_seconds(pod))
        for container in plan.remove:
            yield from self._kill([container.runs[0]] if container.alive else [], 0.0)
            container.remove()
            self.changed = True
        for container in plan.kill:
            yield from self._kill([container.runs[0]], _grace_seconds(pod))
        for container in plan.start:
            started = yield from self._start(pod, container, exited[container.name])
            # Init containers run one after the other, so a failed start ends the sync.
            if container.runs_to_completion and not started:
                return
        yield from self._resize(pod)

    def _resize(self, pod: Object) -> Iterator[Busy]:
        """Gives running containers the resources of their spec.

        A container is restarted if its resizePolicy demands a restart. If the levers let the resize
        wait (Deferred) or fail, `failed` becomes True, so that the worker tries again in its next
        sync. An infeasible resize is not tried again. Yields functions, as `run` does.
        """
        local, levers = self._local, self._levers
        pending = levers.resize_pends(pod) if local.containers_to_resize else None
        if pending is not None:
            self.failed = pending[0] == "Deferred"
            return
        if local.containers_to_resize and levers.resize_fails(pod):
            self.failed = True
            return
        for container in [each for each in local.all if each.name in local.containers_to_resize]:
            spec = specs_of(pod)[container.name]
            requested = spec.get("resources") or {}
            changed = {
                path[-1]
                for path in _changed_resources(local.actual_resources[container.name], requested)
            }
            if changed & {
                policy["resourceName"]
                for policy in spec.get("resizePolicy") or []
                if policy["restartPolicy"] == "RestartContainer"
            }:
                yield from self._kill([container.runs[0]], _grace_seconds(pod))
                yield from self._start(pod, container, None)
            yield self._after(local.node.spread(levers.resize_seconds))
            local.actual_resources[container.name], self.changed = requested, True

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
        local.can_be_deleted = True

    def _kill_all(self, grace: float) -> Iterator[Busy]:
        yield from self._kill(
            [container.runs[0] for container in self._local.all if container.alive], grace
        )

    def _kill(self, runs: list[Run], grace: float) -> Iterator[Busy]:
        local = self._local
        for run in runs:
            self.changed = run.stopping = True
            seconds, code = self._levers.seconds_to_stop(local.pod, run.image)
            seconds = local.node.spread(seconds)
            # A container that does not stop within its grace period is killed.
            code = code if seconds < grace else KILLED
            end = local.now + min(seconds, grace)
            if run.ends_at is None or end < run.ends_at:
                run.ends_at, run.exit_code = end, code
        while any(run.alive for run in runs):
            yield lambda: max((run.ends_at or 0.0 for run in runs if run.alive), default=0.0)

    def _start(
        self, pod: Object, container: Container, exited: Run | None
    ) -> Generator[Busy, None, bool]:
        """Starts a container, unless a back-off delays the start or its image cannot be pulled.

        Each time the worker has to wait, yields a function that returns the time until which it
        waits. Returns True if the container was started. If it was not, the field `start_failure`
        of the container has reason and message.

        Args:
            pod: the API object on which the sync acts.
            container: the container to start.
            exited: the last process of the container that has ended. The back-off counts from its
                end. None means that there is no back-off.
        """
        local, spec, levers = self._local, specs_of(pod)[container.name], self._levers
        image, first, limit = spec["image"], levers.backoff_seconds, levers.backoff_limit
        if exited is not None and exited.finished is not None:
            end = container.crashes.end_of(image, exited.finished, limit)
            if end is not None and local.now < end:
                self.backoffs.append(end)
                wait = f"back-off {container.crashes.delay_of(image):g}s"
                name, space, uid = (meta(pod).get(key) for key in ("name", "namespace", "uid"))
                where = f"container={container.name} pod={name}_{space}({uid})"
                container.start_failure = "CrashLoopBackOff", f"{wait} restarting failed {where}"
                return False
            container.crashes.count_attempt(image, exited.finished, local.now, first, limit)
        error = yield from self._pull_volumes(pod, container)
        if error is None:
            error = yield from self._pull(pod, container, image, spec.get("imagePullPolicy"))
        if error is not None:
            container.start_failure, self.failed = error, True
            return False
        yield self._after(local.node.spread(levers.start_seconds) + levers.extra_start_seconds)
        container.add(self._new_run(pod, container, image))
        if container.name not in local.actual_resources or levers.resize_pends(pod) is None:
            local.actual_resources[container.name] = spec.get("resources") or {}
        container.start_failure, self.changed = None, True
        hook = levers.post_start_seconds.get(levers.lever_name(image))
        if hook is not None:
            yield self._after(hook)
        return True

    def _pull_volumes(
        self, pod: Object, container: Container
    ) -> Generator[Busy, None, tuple[str, str] | None]:
        """Pulls the images of the pod's image volumes, before any container starts
        (getImageVolumes).

        Each time the worker has to wait, yields a function that returns the time until which it
        waits. Returns reason and message of a failure, or None after a success.
        """
        for volume in pod["spec"].get("volumes") or []:
            source = volume.get("image")
            if source is not None:
                image = source["reference"]
                error = yield from self._pull(pod, container, image, source.get("pullPolicy"))
                if error is not None:
                    return error
                self._local.node.pulled.add(image)
        return None

    def _pull(
        self, pod: Object, container: Container, image: str, policy: str | None
    ) -> Generator[Busy, None, tuple[str, str] | None]:
        """Pulls an image if the node does not have it or if the pull policy demands it.

        Yields functions, as `run` does. Returns reason and message of a failure, or None after a
        success.

        Args:
            pod: the API object on which the sync acts.
            container: the container that needs the image.
            image: the image.
            policy: the imagePullPolicy; None stands for the default.
        """
        local = self._local
        if image in local.node.pulled and policy != "Always":
            return None
        if not is_reference(image):
            why = f'couldn\'t parse image name "{image}": invalid reference format'
            return "InvalidImageName", f'Failed to apply default image tag "{image}": {why}'
        if self._levers.lever_name(image) != image and policy != "Always":
            return None  # an image with this digest has run on the node
        if policy == "Never":
            if image not in self._levers.bad_images:
                return None
            why = "is not present with pull policy of Never"
            return "ErrImageNeverPull", f'Container image "{image}" {why}'
        limit = self._levers.backoff_limit
        end = container.pulls.end_of(image, container.pulls.last_attempt(image), limit)
        if end is not None and local.now < end:
            why = f"ErrImagePull: {container.pull_errors[image]}"
            return "ImagePullBackOff", f'Back-off pulling image "{image}": {why}'
        levers = self._levers
        is_on_node = policy != "Always" and self._has_run(container, image)
        if image not in local.node.pulled:
            seconds = levers.seconds_to_pull(
                pod, container.name, image, fresh=container.run is None
            )
            yield self._after(seconds + (0.0 if is_on_node else levers.extra_pull_seconds))
        if image not in levers.bad_images and (is_on_node or not levers.registry_is_down):
            return None
        container.pulls.count_attempt(
            image, local.now, local.now, self._levers.backoff_seconds, limit
        )
        container.pull_errors[image] = self._levers.pull_error(image)
        return "ErrImagePull", container.pull_errors[image]

    def _has_run(self, container: Container, image: str) -> bool:
        """Returns True if the image has run on this node, so that it need not be pulled again."""
        if container.run is not None and container.run.image == image:
            return True
        return self._levers.digest(image) in self._local.node.names

    def _new_run(self, pod: Object, container: Container, image: str) -> Run:
        local, levers = self._local, self._levers
        planned = levers.spontaneous_exit(
            pod, container.name, image, once=container.runs_to_completion
        )
        number = (
            container.restarts_after_removal
            if container.run is None
            else container.run.restarts + 1
        )
        return Run(
            id=f"containerd://{local.node.rng.getrandbits(256):064x}",
            image=image,
            shown=local.node.name_of(image),
            image_id=levers.image_id(image),
            restarts=number,
            started=local.now,
            ready_from=local.now + levers.seconds_until_ready(image),
            started_from=local.now + levers.seconds_until_started(image),
            ends_at=None if planned is None else local.now + planned[0],
            exit_code=0 if planned is None else planned[1],
            metadata=meta(pod),
        )

    def _after(self, seconds: float) -> Busy:
        end = self._local.now + seconds
        return lambda: end


def _grace_seconds(pod: Object) -> float:
    return float(pod["spec"].get("terminationGracePeriodSeconds", GRACE))


def _changed_resources(old: Object, new: Object) -> Iterator[tuple[str, str]]:
    for kind in ("limits", "requests"):
        before, after = old.get(kind) or {}, new.get(kind) or {}
        for name in before.keys() | after.keys():
            if before.get(name) != after.get(name):
                yield kind, name
