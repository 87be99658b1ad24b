"""A pod on its node: the API object that the kubelet knows, its containers, and its status.

`LocalPod.publish` computes the status at the start of a sync. Between two syncs the probes change
single fields of the status. So the published status may be older than the true state, which
`LocalPod.serves` tells. The phase and the conditions are computed in `pod_status.py`.
"""

import random
from dataclasses import dataclass, field

from simulator.node.container import Container, Run, Stamp
from simulator.node.levers import KILLED, NEVER, Levers
from simulator.node.pod_plan import begins_anew, specs_of, to_be_started
from simulator.node.pod_status import (
    REMOVED,
    anew_of,
    conditions,
    phase_of,
    statuses_of,
    truths_of,
    unready,
)
from simulator.node.prober import Prober, prober
from simulator.objects.objects import Object, generation_of
from tapp.kube.images import canonical_name
from tapp.kube.restarts import COMPLETED

PROBE_SECONDS = 0.1  # until a probe runs that the kubelet requests between two ticks
RESIZING = {"PodResizePending", "PodResizeInProgress"}  # exist only while True


@dataclass
class Node:
    """The state that the pods of one node share."""

    levers: Levers
    rng: random.Random
    stamp: Stamp
    names: dict[str, str] = field(default_factory=dict)
    """Digest -> the first name by which the node knew an image; the node reports this name."""
    pulled: set[str] = field(default_factory=set)  # images that were pulled for an image volume

    def name_of(self, image: str) -> str:
        """Returns the name that the node reports for an image."""
        digest = self.levers.digest(image)
        return self.names.setdefault(digest, self.levers.known.get(digest, canonical_name(image)))

    def spread(self, seconds: float) -> float:
        """Returns the seconds with a random share added, up to `Levers.jitter`."""
        return seconds * (1 + self.rng.random() * self.levers.jitter)


class LocalPod:
    """One pod on its node."""

    def __init__(self, pod: Object, node: Node, now: float, address: str = "") -> None:
        self.pod = pod
        """The API object that the kubelet has seen last."""
        self.acting = pod
        """The API object of the last publication, on which the running sync acts."""
        self.node = node
        self.now = now
        self.status: Object = {}
        """The published status: the part of the API object's status that the kubelet writes."""
        self.end: tuple[str, str, str] | None = None
        """Phase, reason and message of a pod that has finally ended."""
        self.gone = False
        """True if the pod is in deletion and all its containers have stopped."""
        self.ending = ""
        """The final phase of a pod whose containers are still being stopped; else empty."""
        self.given: dict[str, Object] = {
            name: one["resources"] for name, one in statuses_of(pod).items() if "resources" in one
        }
        """Container name -> the resources that the container really has."""
        self.sandboxed = False
        """True if the pod's sandbox exists, so that the runtime knows the pod."""
        self._shown: dict[str, Object] = {}
        self._conditions: list[Object] = []
        self._address = address
        self._started = (pod.get("status") or {}).get("startTime") or node.stamp(now)
        spec = pod["spec"]
        self.inits = [
            Container(one["name"], True, one.get("restartPolicy") == "Always")
            for one in spec.get("initContainers") or []
        ]
        self.mains = [Container(one["name"]) for one in spec["containers"]]
        for one in self.all:
            own = specs_of(pod)[one.name]
            one.startup = prober(own.get("startupProbe"), now, startup=True)
            one.readiness = prober(own.get("readinessProbe"), now, startup=False)

    @property
    def all(self) -> list[Container]:
        """All containers, init containers first."""
        return self.inits + self.mains

    @property
    def begun(self) -> bool:
        """True if a process of a container exists, running or ended."""
        return any(one.runs for one in self.all)

    @property
    def unsized(self) -> list[str]:
        """Names of running containers whose resources differ from the spec's."""
        specs = specs_of(self.pod) if self.node.levers.resizes else {}
        return [
            one.name
            for one in self.all
            if one.name in specs
            and one.alive
            and one.name in self.given
            and self.given[one.name] != (specs[one.name].get("resources") or {})
        ]

    @property
    def phase(self) -> str:
        """The published phase."""
        return str(self.status.get("phase", "Pending"))

    def shown(self, name: str) -> Object:
        """Returns the published status of a container, or an empty mapping."""
        return self._shown.get(name) or {}

    def keep(self, name: str, shown: Object) -> None:
        """Sets the published status of a container."""
        self._shown[name] = shown

    def serves(self, now: float) -> bool:
        """Returns True if the pod can really serve, whatever its status says.

        All its containers and sidecars run, none of them is stopping, and their probes would
        succeed.
        """
        needed = [*self.mains, *(one for one in self.inits if one.sidecar)]
        return all(self._serves(one, now) for one in needed)

    def _serves(self, one: Container, now: float) -> bool:
        run = one.run
        if run is None or not run.alive or run.stopping:
            return False
        if self.node.levers.probed_anyway(run.image) and now < run.serves_from:
            return False
        return now >= one.passes_from(run)

    def recall(self) -> None:
        """Starts with the status of the API object, as a restarted kubelet does."""
        self._shown = statuses_of(self.pod)
        self._conditions = list((self.pod.get("status") or {}).get("conditions") or [])

    # Publishing the status.

    def publish(self, pod: Object, *, final: bool = False) -> None:
        """Computes the status; `final` if no container of the pod will run again."""
        self.acting = pod
        self._shown = {one.name: self._report(pod, one, final=final) for one in self.all}
        phase = phase_of(pod, self._shown, initialized=self._initialized, final=final)
        known = (self.pod.get("status") or {}).get("phase")
        if self.end is not None:
            phase = self.end[0]
        elif known in COMPLETED:
            phase = str(known)
        self.ending = phase if phase in COMPLETED else ""
        self.status = {"phase": self.phase if self.ending and not final else phase}
        self.compose()

    def refuse(self, pod: Object, reason: str, message: str) -> None:
        """Ends a pod none of whose containers has been started."""
        self.end = "Failed", reason, message
        self.status = {"phase": "Failed", "reason": reason, "message": message}
        if self.node.levers.reports_generation:
            self.status["observedGeneration"] = generation_of(pod)

    def compose(self) -> None:
        """Builds the status from the published container statuses and the conditions."""
        pod, levers = self.acting, self.node.levers
        generation = generation_of(pod) if levers.reports_generation else None
        names = unready(pod["spec"], self._shown)
        phase = self.ending or self.phase
        truths = truths_of(self.pod, phase, names, initialized=self._initialized)
        truths |= anew_of(pod, phase, anew=bool(begins_anew(pod, self.all)))
        if self.end is not None and self.end[1] == "Evicted":
            truths["DisruptionTarget"] = True, "TerminationByKubelet", self.end[2]
        if self.unsized:
            pending = levers.resize_pends(self.pod)
            error = levers.resize_fails(self.pod)
            begun = ("Error", error) if error else ("", "")
            kind = "PodResizeInProgress" if pending is None else "PodResizePending"
            truths[kind] = True, *(pending or begun)
        before = [one for one in self._conditions if one["type"] in truths]
        self._conditions = conditions(before, truths, self.node.stamp(self.now), generation)
        status: Object = {"phase": self.phase, "startTime": self._started}
        if generation is not None:
            status["observedGeneration"] = generation
        if self.end is not None:
            named = zip(("reason", "message"), self.end[1:], strict=True)
            status |= {key: value for key, value in named if value}
        if self._address:
            status |= {"hostIP": "127.0.0.1", "hostIPs": [{"ip": "127.0.0.1"}]}
            status |= {"podIP": self._address, "podIPs": [{"ip": self._address}]}
        if self.inits:
            status["initContainerStatuses"] = [self._shown[one.name] for one in self.inits]
        status["containerStatuses"] = [self._shown[one.name] for one in self.mains]
        status["conditions"] = self._conditions
        self.status = status

    def merged(self, pod: Object) -> Object:
        """Returns the API object's status with the kubelet's part replaced."""
        there = pod.get("status") or {}
        if not self.status:
            return dict(there)
        own = {one["type"] for one in self._conditions} | RESIZING
        foreign = [one for one in there.get("conditions") or [] if one["type"] not in own]
        both = sorted([*foreign, *self._conditions], key=lambda one: str(one["type"]))
        status = {**there, **self.status, "conditions": both}
        # A final phase never changes again.
        if there.get("phase") in COMPLETED:
            status |= {key: there[key] for key in ("phase", "reason", "message") if key in there}
        return status

    @property
    def _initialized(self) -> bool:
        if any(one.runs for one in self.mains):
            return True
        return all(
            self.shown(one.name).get("ready" if one.once else "started") for one in self.inits
        )

    def _report(self, pod: Object, one: Container, *, final: bool) -> Object:
        run, before = one.run, self.shown(one.name)
        if before and not final and one.stays(specs_of(pod)[one.name]["image"]):
            return before
        creating = "PodInitializing" if self.inits else "ContainerCreating"
        status: Object = {
            "name": one.name,
            "image": specs_of(pod)[one.name]["image"],
            "imageID": "",
            "state": {"waiting": {"reason": creating}},
            "lastState": before.get("lastState") or {},
            "restartCount": before.get("restartCount", 0),
        }
        if run is None and one.removed > status["restartCount"]:
            status |= {**REMOVED, "restartCount": one.removed}
        if run is not None:
            status |= {"image": run.shown, "imageID": run.image_id, "containerID": run.id}
            status |= {"state": run.state(self.node.stamp), "restartCount": run.restarts}
            status["lastState"] = (
                one.runs[1].state(self.node.stamp) if one.runs[1:] else status["lastState"]
            )
        done = one.init and run is not None and not run.alive and not run.exit_code
        if one.reason is not None and to_be_started(pod, one) and not done:
            if "terminated" in status["state"]:
                status["lastState"] = status["state"]
            reason, message = one.reason
            status["state"] = {"waiting": {"reason": reason, "message": message}}
        if final and "terminated" not in status["state"]:
            unknown: Object = {"reason": "ContainerStatusUnknown", "exitCode": KILLED}
            unknown |= {"startedAt": None, "finishedAt": None}  # how Go encodes a zero time
            if run is not None:
                unknown |= {"containerID": run.id}
            status["state"] = {"terminated": unknown}
        if self.node.levers.resizes and one.alive:
            asked = specs_of(pod)[one.name].get("resources") or {}
            status["resources"] = self.given.get(one.name, asked)
        status["started"] = self._is_started(one, before)
        if one.once:
            status["ready"] = bool(done)
        else:
            status["ready"] = run is not None and status["started"] and self._is_ready(one, run)
        return status

    def _is_started(self, one: Container, before: Object) -> bool:
        """Returns the value of `started` for a container's status.

        A container that was restarted in place keeps its old value until its startup probe runs.
        The readiness probe may run before that, so Ready may turn False, True, and False again.
        """
        run, probe = one.run, one.startup
        if run is None or not run.alive:
            return False
        if probe is not None and probe.run == run.id:
            return bool(probe.passed)
        if before.get("started") and "running" in before["state"]:
            return True
        if probe is not None:
            probe.begin(self.now)
        return probe is None

    def _is_ready(self, one: Container, run: Run) -> bool:
        probe = self._readiness(one, run)
        if one.startup is not None and one.startup.run != run.id:
            one.startup.begin(self.now)
        if probe is None or (probe.run == run.id and probe.passed):
            return True
        if probe.asked is None:
            probe.asked = self.now + PROBE_SECONDS
        return probe.goes_on(run.id)

    def _readiness(self, one: Container, run: Run) -> Prober | None:
        probe = one.readiness
        anyway = self.node.levers.probed_anyway(run.image)
        if probe is None and anyway:
            probe = one.readiness = Prober(False, self.now, period=1.0, implied=True)
        elif probe is not None and probe.implied and not anyway and probe.run != run.id:
            probe = one.readiness = None
        return probe

    # Probes.

    def probe_at(self) -> float | None:
        """Returns the time of the next probe that may change the status, or None."""
        times = [self._looks_at(one, probe) for one in self.all for probe in one.probers]
        return min((time for time in times if time is not None), default=None)

    def _looks_at(self, one: Container, probe: Prober) -> float | None:
        run, shown = one.run, self.shown(one.name)
        if run is None or run.id != shown.get("containerID"):
            return None
        if "running" not in shown["state"]:  # the probe will fail, which starts a sync
            return probe.next_tick(probe.looked) if probe.run == run.id and probe.passed else None
        if probe.is_done(run.id):
            return None
        if probe.asked is not None:
            return probe.asked
        hopeless = run.serves_from == NEVER and not probe.startup and not probe.goes_on(run.id)
        if hopeless and (probe.run == run.id or not shown["started"]):
            return None
        return probe.next_tick(probe.looked)

    def probe(self) -> bool:
        """Runs all probes that are due; returns True if a result changed."""
        news = False
        for one in self.all:
            for probe in one.probers:
                time = self._looks_at(one, probe)
                if time is not None and time <= self.now and one.run is not None:
                    news = self._look(one, one.run, probe) or news
        return news

    def _look(self, one: Container, run: Run, probe: Prober) -> bool:
        shown = self._shown[one.name]
        if "running" not in shown["state"]:
            probe.looked, probe.passed = self.now, False
            return True
        passes = run.starts_from if probe.startup else run.serves_from
        if not probe.look(run.id, run.started, passes, self.now, shown["started"]):
            return False
        if probe.startup:
            run.unhealthy = probe.passed is False
            shown = {**shown, "started": bool(probe.passed)}
        else:
            shown = {**shown, "ready": bool(probe.passed) or probe.goes_on(run.id)}
        self._shown[one.name] = shown
        self.compose()
        return True
