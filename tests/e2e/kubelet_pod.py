"""One pod's life in the fake kubelet: its containers, its phase, its status. No I/O."""

from __future__ import annotations

from typing import Any

from .kubelet_container import Container, timestamp
from .kubelet_levers import Levers

Json = dict[str, Any]
OWNED = ("PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready", "DisruptionTarget")
KILLED = 137


class PodRun:
    """What runs for one pod. `advance` moves it with the clock and the pod's present spec."""

    def __init__(self, pod: Json, levers: Levers, address: str) -> None:
        self.pod = pod
        self.levers = levers
        self.wake: float | None = None
        """When to advance next, if nothing else happens."""
        self.gone = False
        """Deletion asked for and every container down: the pod may be removed."""
        self.evict_message: str | None = None
        self._address = address
        self._started_at = timestamp()
        self._initialized = False
        self._end: tuple[str, str, str] | None = None
        """Phase, reason and message, once the pod has ended for good."""
        self._closing: str | None = None
        """The phase it is about to end in, while its sidecars still stop."""
        spec = pod["spec"]
        self.inits = [
            Container(each["name"], init=True, sidecar=each.get("restartPolicy") == "Always")
            for each in spec.get("initContainers") or []
        ]
        self.mains = [Container(c["name"], init=False, sidecar=False) for c in spec["containers"]]

    @property
    def key(self) -> str:
        """`namespace/name`, as the levers name pods."""
        return f"{self.pod['metadata']['namespace']}/{self.pod['metadata']['name']}"

    @property
    def containers(self) -> list[Container]:
        """All of them, init containers first."""
        return [*self.inits, *self.mains]

    def silent(self) -> bool:
        """Whether a real kubelet would be too busy now to report anything."""
        if not self.levers.silent_pulls or "deletionTimestamp" in self.pod["metadata"]:
            return False
        return any(each.replacing for each in self.containers)

    def adopt(self, now: float) -> None:
        """Takes over what an earlier kubelet ran, from the pod's status."""
        status = self.pod.get("status") or {}
        self._started_at = status.get("startTime") or self._started_at
        if status.get("phase") in ("Succeeded", "Failed"):
            self._end = status["phase"], status.get("reason", ""), status.get("message", "")
        specs, policy = self._specs(), self.pod["spec"].get("restartPolicy", "Always")
        known = [
            *(status.get("initContainerStatuses") or []),
            *(status.get("containerStatuses") or []),
        ]
        for each in self.containers:
            for found in known:
                if found["name"] == each.name and found.get("containerID"):
                    spec = specs[each.name]
                    each.adopt(found, spec["image"], now, spec.get("restartPolicy") or policy)
        self._initialized = any(each.ever_ran for each in self.mains)

    # Moving

    def advance(self, now: float) -> None:
        """Moves everything as far as the clock allows and sets `wake`."""
        if self._end is None and not self._started() and self.key in self.levers.refuse:
            self._end = ("Failed", *self.levers.refuse[self.key])
        if self._end is None and self.evict_message is not None:
            for each in self.containers:
                each.kill(KILLED)
            self._end = "Failed", "Evicted", self.evict_message
        if "deletionTimestamp" in self.pod["metadata"]:
            self._terminate(now)
        elif self._end is None:
            self._live(now)
        times = [each.wake(now) for each in self.containers]
        self.wake = min((each for each in times if each is not None), default=None)

    def _started(self) -> bool:
        return any(each.ever_ran for each in self.containers)

    def _specs(self) -> dict[str, Json]:
        spec = self.pod["spec"]
        return {c["name"]: c for c in [*(spec.get("initContainers") or []), *spec["containers"]]}

    def _terminate(self, now: float) -> None:
        if self.key in self.levers.hang_deletion:
            return
        grace = self.pod["metadata"].get("deletionGracePeriodSeconds") or 0
        seconds = min(self.levers.stop_seconds, grace)
        for each in self.containers:
            each.stop(now, seconds)
        down = [each.stopped(now, self.levers.stop_code) for each in self.containers]
        if all(down):
            if self._end is None:
                codes = [each.exit_code or 0 for each in self.mains if each.ever_ran]
                failed = any(codes) or not codes
                self._end = ("Failed" if failed else "Succeeded", "", "")
            self.gone = True

    def _live(self, now: float) -> None:
        if self._closing is None:
            self._drive_all(now)
        if self._closing is None:
            return
        sidecars = [each for each in self.inits if each.sidecar]
        for each in sidecars:
            each.stop(now, self.levers.stop_seconds)
        down = [each.stopped(now, 0) for each in sidecars]
        if all(down):
            self._end = self._closing, "", ""

    def _drive_all(self, now: float) -> None:
        specs = self._specs()
        policy = self.pod["spec"].get("restartPolicy", "Always")
        ready = True
        for each in self.inits:
            if ready or each.ever_ran:
                self._drive(each, specs, policy, now)
            ready = ready and (each.running if each.sidecar else each.succeeded)
            if not each.sidecar and each.exited and each.exit_code:
                self._closing = "Failed"
                return
        self._initialized = self._initialized or ready
        if not self._initialized:
            return
        for each in self.mains:
            self._drive(each, specs, policy, now)
        if all(each.exited for each in self.mains):
            good = all(each.succeeded for each in self.mains)
            self._closing = "Succeeded" if good else "Failed"

    def _drive(self, each: Container, specs: dict[str, Json], policy: str, now: float) -> None:
        own = specs[each.name].get("restartPolicy") or policy
        if each.init and not each.sidecar and own == "Always":
            own = "OnFailure"  # an init container that has succeeded is done

        def restarts(code: int) -> bool:
            return own == "Always" or (own == "OnFailure" and code != 0)

        if self._initialized and each.init and not each.sidecar:
            return
        each.advance(specs[each.name]["image"], now, self.levers, restarts)

    # Reporting

    def phase(self) -> str:
        """The pod's phase, by the kubelet's rules."""
        if self._end is not None:
            return self._end[0]
        if not self._initialized:
            return "Pending"
        return "Running" if all(each.ever_ran for each in self.mains) else "Pending"

    def status(self, now: float) -> Json:
        """The status fields that a kubelet owns, for a merge patch onto the pod."""
        pod, specs = self.pod, self._specs()
        status: Json = {
            "phase": self.phase(),
            "observedGeneration": pod["metadata"].get("generation", 1),
            "startTime": self._started_at,
        }
        if self._end is not None:
            status |= {k: v for k, v in zip(("reason", "message"), self._end[1:], strict=True) if v}
        if self._end is None or self._started():
            address = {"podIP": self._address, "podIPs": [{"ip": self._address}]}
            status |= {"hostIP": "127.0.0.1", "hostIPs": [{"ip": "127.0.0.1"}]} | address
            for key, group in (
                ("initContainerStatuses", self.inits),
                ("containerStatuses", self.mains),
            ):
                if group:
                    shown = [c.status(now, self.levers, specs[c.name]["image"]) for c in group]
                    status[key] = [self._waiting_for_init(each) for each in shown]
        status["conditions"] = self._conditions(now)
        return status

    def _waiting_for_init(self, shown: Json) -> Json:
        waiting = shown["state"].get("waiting", {}).get("reason")
        if self.inits and not self._initialized and waiting == "ContainerCreating":
            return shown | {"state": {"waiting": {"reason": "PodInitializing"}}}
        return shown

    def _conditions(self, now: float) -> list[Json]:
        seen = {c["type"]: c for c in (self.pod.get("status") or {}).get("conditions") or []}
        ended = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}.get(self.phase())
        waits = [
            each.name
            for each in self.containers
            if not (each.init and not each.sidecar) and not each.ready(now, self.levers)
        ]
        gates = [g["conditionType"] for g in self.pod["spec"].get("readinessGates") or []]
        closed = [g for g in gates if seen.get(g, {}).get("status") != "True"]
        not_ready = ended or ("ContainersNotReady" if waits else None)
        rows: list[tuple[str, bool, str | None]] = [
            ("PodReadyToStartContainers", self._end is None or self._started(), None),
            (
                "Initialized",
                self._initialized or ended == "PodCompleted",
                ended
                if ended == "PodCompleted"
                else None
                if self._initialized
                else "ContainersNotInitialized",
            ),
            ("ContainersReady", not_ready is None, not_ready),
            (
                "Ready",
                not_ready is None and not closed,
                not_ready or ("ReadinessGatesNotReady" if closed else None),
            ),
        ]
        if self._end is not None and self._end[1] == "Evicted":
            rows.append(("DisruptionTarget", True, "TerminationByKubelet"))
        generation = self.pod["metadata"].get("generation", 1)
        mine = [
            condition(seen.get(name), name, "True" if good else "False", reason, generation)
            for name, good, reason in rows
        ]
        return mine + [c for name, c in seen.items() if name not in {row[0] for row in rows}]


def condition(
    old: Json | None, name: str, status: str, reason: str | None, generation: int
) -> Json:
    """The condition, with its transition time kept while the status stays."""
    same = old is not None and old["status"] == status
    since = old["lastTransitionTime"] if old is not None and same else timestamp()
    new: Json = {"type": name, "status": status, "lastTransitionTime": since}
    if reason:
        new["reason"] = reason
    return new | {"observedGeneration": generation, "lastProbeTime": None}
