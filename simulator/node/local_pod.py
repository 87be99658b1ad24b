"""A pod as its node has it: the API object that the kubelet knows, its containers, its status.

`publish` computes the whole status, at the start of a sync; a probe changes single fields of it in
between. So the status may be older than the truth: `serves` tells the truth.
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

PROBE_SECONDS = 0.1  # Seconds of a probe that the kubelet asks for beside the ticks
RESIZING = {"PodResizePending", "PodResizeInProgress"}  # There only while they are True


@dataclass
class Node:
    """The parts that the pods of a node share."""

    levers: Levers
    rng: random.Random
    stamp: Stamp
    names: dict[str, str] = field(default_factory=dict)
    """Digest -> the first name that the node knew it by, which it reports for good."""
    pulled: set[str] = field(default_factory=set)  # Images that it has because a volume needed them

    def name_of(self, image: str) -> str:
        """Return the name that is reported for an image."""
        digest = self.levers.digest(image)
        return self.names.setdefault(digest, self.levers.known.get(digest, canonical_name(image)))

    def spread(self, seconds: float) -> float:
        """Return a time that is a bit longer."""
        return seconds * (1 + self.rng.random() * self.levers.jitter)


class LocalPod:
    """One pod on a node."""

    def __init__(self, pod: Object, node: Node, now: float, address: str = "") -> None:
        self.pod = pod
        """The API object as last heard of."""
        self.acting = pod
        """The API object as of the last publication."""
        self.node = node
        self.now = now
        self.status: Object = {}
        """The published status: the kubelet's part of the API object's status."""
        self.end: tuple[str, str, str] | None = None
        """Phase, reason and message, once it has ended for good."""
        self.gone = False
        """It is being deleted and nothing of it runs: the API object may go."""
        self.ending = ""
        """The phase that it is about to end in: published when nothing of it runs any more."""
        self.given: dict[str, Object] = {
            name: one["resources"] for name, one in statuses_of(pod).items() if "resources" in one
        }
        """Container -> the resources that it has, as another kubelet has told or as given here."""
        self.sandboxed = False
        """Its sandbox has been made: the runtime knows something of it."""
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
        """Return every container, init containers first."""
        return self.inits + self.mains

    @property
    def begun(self) -> bool:
        """Tell whether anything of it ever ran."""
        return any(one.runs for one in self.all)

    @property
    def unsized(self) -> list[str]:
        """Return the containers that run with other resources than their spec's."""
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
        """Return the published phase."""
        return str(self.status.get("phase", "Pending"))

    def shown(self, name: str) -> Object:
        """Return the published status of a container, {} if there is none yet."""
        return self._shown.get(name) or {}

    def keep(self, name: str, shown: Object) -> None:
        """Take a container's status as published."""
        self._shown[name] = shown

    def serves(self, now: float) -> bool:
        """Tell whether it really serves: all runs, nothing is told to stop, all probes succeed."""
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
        """Begin with what the API object says, as a kubelet does that was started anew."""
        self._shown = statuses_of(self.pod)
        self._conditions = list((self.pod.get("status") or {}).get("conditions") or [])

    # Publishing.

    def publish(self, pod: Object, *, final: bool = False) -> None:
        """Compute the status anew; `final`: nothing of the pod will run again."""
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
        """End a pod of which nothing was ever started."""
        self.end = "Failed", reason, message
        self.status = {"phase": "Failed", "reason": reason, "message": message}
        if self.node.levers.reports_generation:
            self.status["observedGeneration"] = generation_of(pod)

    def compose(self) -> None:
        """Put the status together from the containers' and the conditions."""
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
        """Return the status of the API object with the published one in it."""
        there = pod.get("status") or {}
        if not self.status:
            return dict(there)
        own = {one["type"] for one in self._conditions} | RESIZING
        foreign = [one for one in there.get("conditions") or [] if one["type"] not in own]
        both = sorted([*foreign, *self._conditions], key=lambda one: str(one["type"]))
        status = {**there, **self.status, "conditions": both}
        if there.get("phase") in COMPLETED:  # nothing leads out of these
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
            unknown |= {"startedAt": None, "finishedAt": None}  # as a time that is none is written
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
        """Stale after a restart in place: what was started is called so until it is probed.

        Its readiness may be probed meanwhile, so Ready turns False and True again, and then False.
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
        """Return when a probe looks next, if anything can come of it."""
        times = [self._looks_at(one, probe) for one in self.all for probe in one.probers]
        return min((time for time in times if time is not None), default=None)

    def _looks_at(self, one: Container, probe: Prober) -> float | None:
        run, shown = one.run, self.shown(one.name)
        if run is None or run.id != shown.get("containerID"):
            return None
        if "running" not in shown["state"]:  # its failure is noticed, and makes the worker sync
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
        """Let every probe look that is due; return whether anything was found out."""
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
