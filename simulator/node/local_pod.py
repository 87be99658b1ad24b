"""A pod on its node: the API object that the kubelet knows, its containers, and its status.

`LocalPod.publish` computes the status at the start of a sync. Between two syncs, probes change
single fields of the status. So the published status may be older than the true state.
`LocalPod.can_serve` tells the true state. `pod_status.py` computes the phase and the conditions.
"""

from simulator.node.container import Container, Run
from simulator.node.levers import KILLED, NEVER
from simulator.node.machine import Node
from simulator.node.pod_plan import must_be_started, restart_all_causes, specs_of
from simulator.node.pod_status import (
    REMOVED,
    conditions,
    kubelet_conditions,
    merged_status,
    phase_of,
    restart_all_condition,
    statuses_of,
    unready_containers,
)
from simulator.node.prober import Prober, prober
from simulator.objects.objects import Object, generation_of
from tapp.kube.restarts import COMPLETED

PROBE_SECONDS = 0.1  # Seconds until a probe runs that the kubelet requests between two ticks


class LocalPod:
    """One pod on its node: its API object, its containers, and the status that the kubelet
    publishes.

    Args:
        pod: the API object.
        node: the node; its `levers` decide how containers behave in the test.
        now: the time of the last action of the pod's worker, in simulated seconds.
        address: the IP address for the pod's status; empty if the pod gets no address.
    """

    def __init__(self, pod: Object, node: Node, now: float, address: str = "") -> None:
        self.pod = pod
        """The API object that the kubelet has seen last."""
        self.published_pod = pod
        """The API object of the last publication, on which the running sync acts."""
        self.node = node
        self.now = now
        self.status: Object = {}
        """The published status: the part of the API object's status that the kubelet writes."""
        self.end: tuple[str, str, str] | None = None
        """Phase, reason and message of a pod that has finally ended."""
        self.can_be_deleted = False
        """True if the pod is in deletion and all its containers have stopped."""
        self.final_phase = ""
        """The final phase of a pod whose containers are still being stopped; else empty."""
        self.actual_resources: dict[str, Object] = {
            name: container["resources"]
            for name, container in statuses_of(pod).items()
            if "resources" in container
        }
        """Container name -> the resources that the container really has."""
        self.has_sandbox = False
        """True if the pod's sandbox exists, so that the runtime knows the pod."""
        self._shown: dict[str, Object] = {}
        self._conditions: list[Object] = []
        self._address = address
        self._started = (pod.get("status") or {}).get("startTime") or node.format_time(now)
        spec = pod["spec"]
        self.inits = [
            Container(container["name"], True, container.get("restartPolicy") == "Always")
            for container in spec.get("initContainers") or []
        ]
        self.mains = [Container(container["name"]) for container in spec["containers"]]
        for container in self.all:
            own = specs_of(pod)[container.name]
            container.startup = prober(own.get("startupProbe"), now, startup=True)
            container.readiness = prober(own.get("readinessProbe"), now, startup=False)

    @property
    def all(self) -> list[Container]:
        """All containers of the pod, init containers first."""
        return self.inits + self.mains

    @property
    def has_run(self) -> bool:
        """True if the runtime knows a process of any container, running or ended."""
        return any(container.runs for container in self.all)

    @property
    def containers_to_resize(self) -> list[str]:
        """The names of running containers whose actual resources differ from those in the spec.

        The list is empty if `Levers.resizes` is False, because kubelets then do not resize.
        """
        specs = specs_of(self.pod) if self.node.levers.resizes else {}
        return [
            container.name
            for container in self.all
            if container.name in specs
            and container.alive
            and container.name in self.actual_resources
            and self.actual_resources[container.name]
            != (specs[container.name].get("resources") or {})
        ]

    @property
    def phase(self) -> str:
        """The phase of the pod as the kubelet last published it; Pending before the first time."""
        return str(self.status.get("phase", "Pending"))

    def shown(self, name: str) -> Object:
        """Returns the status of a container as the kubelet last published it.

        Returns an empty mapping if the kubelet has not published it yet.
        """
        return self._shown.get(name) or {}

    def keep(self, name: str, shown: Object) -> None:
        """Sets the status that counts as published for the container `name`."""
        self._shown[name] = shown

    def can_serve(self, now: float) -> bool:
        """Returns True if the pod can really serve at time `now`, whatever its published status
        says.

        The pod can serve if all its main containers and sidecars run, if none of them is being
        stopped, and if their probes would succeed.
        """
        needed = [*self.mains, *(container for container in self.inits if container.sidecar)]
        return all(self._serves(container, now) for container in needed)

    def _serves(self, container: Container, now: float) -> bool:
        run = container.run
        if run is None or not run.alive or run.stopping:
            return False
        if self.node.levers.has_implied_probe(run.image) and now < run.ready_from:
            return False
        return now >= container.probes_pass_from(run)

    def load_status(self) -> None:
        """Reads the published container statuses and conditions from the API object.

        A restarted kubelet does the same.
        """
        self._shown = statuses_of(self.pod)
        self._conditions = list((self.pod.get("status") or {}).get("conditions") or [])

    # Publishing the status.

    def publish(self, pod: Object, *, final: bool = False) -> None:
        """Computes the status from the pod and its containers, and makes it the published status.

        Args:
            pod: the API object on which the running sync acts.
            final: True if no container of the pod will run again.
        """
        self.published_pod = pod
        self._shown = {
            container.name: self._status_of(pod, container, final=final) for container in self.all
        }
        phase = phase_of(pod, self._shown, initialized=self._initialized, final=final)
        api_phase = (self.pod.get("status") or {}).get("phase")
        if self.end is not None:
            phase = self.end[0]
        elif api_phase in COMPLETED:
            phase = str(api_phase)
        self.final_phase = phase if phase in COMPLETED else ""
        self.status = {"phase": self.phase if self.final_phase and not final else phase}
        self.compose()

    def refuse(self, pod: Object, reason: str, message: str) -> None:
        """Sets the phase to Failed without starting a container, because the kubelet rejects the
        pod.

        Args:
            pod: the API object.
            reason: the reason in the pod's status.
            message: the message in the pod's status.
        """
        self.end = "Failed", reason, message
        self.status = {"phase": "Failed", "reason": reason, "message": message}
        if self.node.levers.reports_generation:
            self.status["observedGeneration"] = generation_of(pod)

    def compose(self) -> None:
        """Builds the field `status` from the published container statuses and the conditions."""
        pod, levers = self.published_pod, self.node.levers
        generation = generation_of(pod) if levers.reports_generation else None
        names = unready_containers(pod["spec"], self._shown)
        phase = self.final_phase or self.phase
        values = kubelet_conditions(self.pod, phase, names, initialized=self._initialized)
        values |= restart_all_condition(
            pod, phase, is_restarting=bool(restart_all_causes(pod, self.all))
        )
        if self.end is not None and self.end[1] == "Evicted":
            values["DisruptionTarget"] = True, "TerminationByKubelet", self.end[2]
        if self.containers_to_resize:
            pending = levers.resize_pends(self.pod)
            error = levers.resize_fails(self.pod)
            in_progress = ("Error", error) if error else ("", "")
            kind = "PodResizeInProgress" if pending is None else "PodResizePending"
            values[kind] = True, *(pending or in_progress)
        before = [condition for condition in self._conditions if condition["type"] in values]
        self._conditions = conditions(before, values, self.node.format_time(self.now), generation)
        status: Object = {"phase": self.phase, "startTime": self._started}
        if generation is not None:
            status["observedGeneration"] = generation
        if self.end is not None:
            fields = zip(("reason", "message"), self.end[1:], strict=True)
            status |= {key: value for key, value in fields if value}
        if self._address:
            status |= {"hostIP": "127.0.0.1", "hostIPs": [{"ip": "127.0.0.1"}]}
            status |= {"podIP": self._address, "podIPs": [{"ip": self._address}]}
        if self.inits:
            status["initContainerStatuses"] = [
                self._shown[container.name] for container in self.inits
            ]
        status["containerStatuses"] = [self._shown[container.name] for container in self.mains]
        status["conditions"] = self._conditions
        self.status = status

    def merged(self, pod: Object) -> Object:
        """Returns the status of an API object, with the parts that the kubelet writes replaced.

        Conditions that others write, such as those of readiness gates, stay.
        """
        api_status = pod.get("status") or {}
        if not self.status:
            return dict(api_status)
        return merged_status(api_status, {**self.status, "conditions": self._conditions})

    @property
    def _initialized(self) -> bool:
        if any(container.runs for container in self.mains):
            return True
        return all(
            self.shown(container.name).get("ready" if container.runs_to_completion else "started")
            for container in self.inits
        )

    def _status_of(self, pod: Object, container: Container, *, final: bool) -> Object:
        run, before = container.run, self.shown(container.name)
        if before and not final and container.is_left_alone(specs_of(pod)[container.name]["image"]):
            return before
        creating = "PodInitializing" if self.inits else "ContainerCreating"
        status: Object = {
            "name": container.name,
            "image": specs_of(pod)[container.name]["image"],
            "imageID": "",
            "state": {"waiting": {"reason": creating}},
            "lastState": before.get("lastState") or {},
            "restartCount": before.get("restartCount", 0),
        }
        if run is None and container.restarts_after_removal > status["restartCount"]:
            status |= {**REMOVED, "restartCount": container.restarts_after_removal}
        if run is not None:
            status |= {"image": run.shown, "imageID": run.image_id, "containerID": run.id}
            status |= {"state": run.state(self.node.format_time), "restartCount": run.restarts}
            status["lastState"] = (
                container.runs[1].state(self.node.format_time)
                if container.runs[1:]
                else status["lastState"]
            )
        done = container.init and run is not None and not run.alive and not run.exit_code
        # While a restart waits, the state shows the reason, and the ended process moves to
        # lastState (convertToAPIContainerStatuses in pkg/kubelet/kubelet_pods.go).
        if container.start_failure is not None and must_be_started(pod, container) and not done:
            if "terminated" in status["state"]:
                status["lastState"] = status["state"]
            reason, message = container.start_failure
            status["state"] = {"waiting": {"reason": reason, "message": message}}
        # A container without a known end gets ContainerStatusUnknown (TerminatePod in
        # pkg/kubelet/status/status_manager.go).
        if final and "terminated" not in status["state"]:
            unknown: Object = {"reason": "ContainerStatusUnknown", "exitCode": KILLED}
            unknown |= {"startedAt": None, "finishedAt": None}  # how Go encodes a zero time
            if run is not None:
                unknown |= {"containerID": run.id}
            status["state"] = {"terminated": unknown}
        if self.node.levers.resizes and container.alive:
            requested = specs_of(pod)[container.name].get("resources") or {}
            status["resources"] = self.actual_resources.get(container.name, requested)
        status["started"] = self._is_started(container, before)
        if container.runs_to_completion:
            status["ready"] = bool(done)
        else:
            status["ready"] = (
                run is not None and status["started"] and self._is_ready(container, run)
            )
        return status

    def _is_started(self, container: Container, before: Object) -> bool:
        """Returns the value of the field `started` for the status of a container.

        It is True if the container runs and its startup probe has passed or does not exist. A
        container that was restarted in place keeps the value in `before` until its startup probe
        has run. `before` is the status that was published before.

        The readiness probe may run earlier than the startup probe. Ready then becomes False at the
        restart, True by the readiness probe, and False again by the startup probe.
        """
        run, probe = container.run, container.startup
        if run is None or not run.alive:
            return False
        if probe is not None and probe.run == run.id:
            return bool(probe.passed)
        if before.get("started") and "running" in before["state"]:
            return True
        if probe is not None:
            probe.note_new_run(self.now)
        return probe is None

    def _is_ready(self, container: Container, run: Run) -> bool:
        probe = self._readiness_probe(container, run)
        if container.startup is not None and container.startup.run != run.id:
            container.startup.note_new_run(self.now)
        if probe is None or (probe.run == run.id and probe.passed):
            return True
        if probe.requested is None:
            probe.requested = self.now + PROBE_SECONDS
        return probe.keeps_published_state(run.id)

    def _readiness_probe(self, container: Container, run: Run) -> Prober | None:
        probe = container.readiness
        is_implied = self.node.levers.has_implied_probe(run.image)
        if probe is None and is_implied:
            probe = container.readiness = Prober(False, self.now, period=1.0, implied=True)
        elif probe is not None and probe.implied and not is_implied and probe.run != run.id:
            probe = container.readiness = None
        return probe

    # Probes.

    def next_probe_time(self) -> float | None:
        """Returns the time of the next probe that may change the status; None if no probe may."""
        times = [
            self._next_probe_time(container, probe)
            for container in self.all
            for probe in container.probers
        ]
        return min((time for time in times if time is not None), default=None)

    def _next_probe_time(self, container: Container, probe: Prober) -> float | None:
        run, shown = container.run, self.shown(container.name)
        if run is None or run.id != shown.get("containerID"):
            return None
        if "running" not in shown["state"]:  # the probe will fail, which starts a sync
            return (
                probe.next_tick(probe.last_probe) if probe.run == run.id and probe.passed else None
            )
        if probe.is_done(run.id):
            return None
        if probe.requested is not None:
            return probe.requested
        may_pass = run.ready_from != NEVER or probe.startup or probe.keeps_published_state(run.id)
        if not may_pass and (probe.run == run.id or not shown["started"]):
            return None
        return probe.next_tick(probe.last_probe)

    def probe(self) -> bool:
        """Runs all probes that are due; returns True if the published status or a result has
        changed.
        """
        changed = False
        for container in self.all:
            for probe in container.probers:
                time = self._next_probe_time(container, probe)
                if time is not None and time <= self.now and container.run is not None:
                    changed = self._run_probe(container, container.run, probe) or changed
        return changed

    def _run_probe(self, container: Container, run: Run, probe: Prober) -> bool:
        shown = self._shown[container.name]
        if "running" not in shown["state"]:
            probe.last_probe, probe.passed = self.now, False
            return True
        passes = run.started_from if probe.startup else run.ready_from
        if not probe.run_probe(run.id, run.started, passes, self.now, shown["started"]):
            return False
        if probe.startup:
            run.unhealthy = probe.passed is False
            shown = {**shown, "started": bool(probe.passed)}
        else:
            shown = {**shown, "ready": bool(probe.passed) or probe.keeps_published_state(run.id)}
        self._shown[container.name] = shown
        self.compose()
        return True
