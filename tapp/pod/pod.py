"""Facts of a pod, as one plain value.

`read.py` makes it of the pod's JSON, as far as any rule looks at it. It refers to no text that it
was read from, and never changes. The whole JSON is looked at again only to answer it
(`manifest.py`).
"""

from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any

import msgspec

from tapp.declared.reads import Reads
from tapp.declared.revision import is_ours
from tapp.kube import objects, stored
from tapp.kube.objects import Condition, ContainerStatus, InPlaceRecord, Terminated
from tapp.kube.restarts import ALWAYS, COMPLETED, RESTART_ALL, RESTARTING_ALL, Restarts
from tapp.pod.hold import Hold
from tapp.pod.manifest import NO_MANIFEST, Manifest
from tapp.words.times import UNKNOWN, seconds
from tapp.words.vocabulary import GATES, NODE_LOST

NONE: Mapping[str, str] = MappingProxyType({})
"""The entries of all pods that have none."""
GRACE = float(stored.GRACE)


class PodSpec(msgspec.Struct, frozen=True, gc=False):
    """The intended pod, as far as rules look at it: its spec, labels and annotations.

    Attributes:
        template_hash: the revision label.
        uniq_hash: the revision label without images.
        resources: container -> JSON of its resources in the spec, of those that have any.
        resize_restarts: container -> the resources for which it is started again if they change.
        template_images: container name -> image as the template had it when it was last applied.
        images: container name -> image in the spec, of containers and init containers.
        not_pulling: names of those whose tag would have them pull always, and that do not.
        main_containers: names of the containers that are no init containers.
        running_containers: names of those that the pod's readiness depends on: all that keep
            running.
        restart_policy: `spec.restartPolicy`, with Kubernetes' default.
        own_restarts: container -> when the kubelet starts it again, of those that have a policy of
            their own.
        grace_seconds: `spec.terminationGracePeriodSeconds`, with Kubernetes' default.
        startup_seconds: container -> seconds after its start by which its startup probe has run
            once; only those with one.
        startup_whole: the same until it has failed as often as it may.
        readiness_whole: the same of readiness probes.
        probed_alive: names of the containers that the kubelet may stop because a probe fails.
        has_hook: whether a container has a postStart hook.
        gates: condition types of `spec.readinessGates`.
        marked: whether it has a gate that this service serves, or `drain`, `lost` or `hold`.
        reads: what its containers had of its metadata when they started, as far as the template
            may change that (`tapp/declared/reads.py`).
        requests: who is asked to restart by annotations that people set on this pod: container,
            "" for all -> digest of the text.
        asked: those of them that no update has met yet.
        written: the revision of its template as it is written, where that has placeholders.
        bare_hash: the hash of its template without images and resources, "" where it does not say.
        update_priority: the annotation by which somebody has moved its update forward or back, as
            far as it can be a number; not the one that it has of its template.
        restarted_at: the annotation by which its template asked for new pods.
        drain: the annotation that asks to take it out of its Services.
        lost: the annotation that says since when its node is lost.
        hold: what it says of a hold on it, and of what is wanted; None where nothing.
        is_watched: whether it has the label of pods whose status this service writes.
        evicted_in_time: whether it tolerates a node that is not heard of for a limited time only.
        claims: names of the claims that it mounts.
        added: names that its containers mount, of volumes that it was not asked to have: admission
            has added them. Where nothing tells what was asked for, all but its own claims.
        subdomain: the Service that its host name is in.
        unmergeable: a path that Metacontroller cannot merge, "" in a pod that it never applied.
    """

    template_hash: str | None = None
    uniq_hash: str | None = None
    resources: Mapping[str, str] = {}
    resize_restarts: Mapping[str, tuple[str, ...]] = {}
    template_images: Mapping[str, str] = {}
    images: Mapping[str, str] = {}
    not_pulling: tuple[str, ...] = ()
    main_containers: tuple[str, ...] = ()
    running_containers: tuple[str, ...] = ()
    restart_policy: str = ALWAYS
    own_restarts: Mapping[str, Restarts] = {}
    grace_seconds: float = GRACE
    startup_seconds: Mapping[str, float] = {}
    startup_whole: Mapping[str, float] = {}
    readiness_whole: Mapping[str, float] = {}
    probed_alive: tuple[str, ...] = ()
    has_hook: bool = False
    gates: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    subdomain: str = ""
    unmergeable: str = ""
    marked: bool = False
    reads: Reads = {}
    requests: Mapping[str, str] = {}
    asked: tuple[str, ...] = ()
    written: str = ""
    bare_hash: str = ""
    update_priority: str = ""
    restarted_at: str = ""
    drain: str = ""
    lost: str = ""
    hold: Hold | None = None
    is_watched: bool = False
    evicted_in_time: bool = False

    def resources_of(self, container: str) -> Any:
        """The resources of a container; None where it has none."""
        return msgspec.json.decode(self.resources.get(container, "null"))

    @property
    def served_gates(self) -> tuple[str, ...]:
        """Its readiness gates that this service opens and closes."""
        return tuple(gate for gate in self.gates if gate in GATES)

    @property
    def drains(self) -> bool:
        """True if it is asked to leave its Services: for another revision than its own."""
        asked = is_ours(self.drain) and self.drain != self.template_hash
        return asked and bool(self.served_gates)

    @property
    def is_ours(self) -> bool:
        """True if both revisions were written by this service."""
        return is_ours(self.template_hash) and is_ours(self.uniq_hash)

    def starts_again(self, name: str, exit_code: int | None) -> bool:
        """True if the kubelet starts a container again that has ended with this code.

        A plain init container that succeeded is done. None: see `Restarts.follow`.
        """
        if exit_code == 0 and name in self.images and name not in self.running_containers:
            return False
        return (self.own_restarts.get(name) or Restarts(self.restart_policy)).follow(exit_code)

    def starts_all(self, name: str, exit_code: int | None) -> bool:
        """True if the kubelet then starts all of the pod anew, at once and in place."""
        if exit_code is None or name not in self.own_restarts:
            return False
        return self.own_restarts[name].action(exit_code) == RESTART_ALL


class Pod(msgspec.Struct, frozen=True, gc=False):
    """One observed pod.

    Attributes:
        name: `metadata.name`.
        spec: what it is to be.
        unreadable: what could not be read, "" if all could; such a pod is left alone.
        manifest: labels, annotations and spec, whole, of a pod that is foreign; else empty.
        node: the node that it is bound to, "" where there is none yet.
        terminating: whether it is on its way out.
        phase: `status.phase`; a pod without one has not been looked at by a kubelet yet.
        ready: its condition `Ready`, None where it has none.
        ready_since: when that last changed; "" where nobody knows.
        conditions_text: `status.conditions` as JSON.
        containers: statuses of all containers, init containers first.
        restarts: whether one of them has been started more than once.
        reason: `status.reason`.
        message: that and `status.message`, as far as there are any: why it failed.
        uid: `metadata.uid`.
        created: `metadata.creationTimestamp`.
        generation: `metadata.generation`: one more with each change of the spec.
        observed_generation: the generation that its kubelet has seen, as it says; 0 where it does
            not say (before Kubernetes 1.34).
        last_update: the record of the last in-place update; None if there was none, or somebody
            broke the annotation.
        failures_text: the annotation that counts failed pods in a row.
        runs_wanted: names of the containers that run, or ran last, the image that the spec names.
            This and the next two are empty where there is no record.
        kubelet_wrote: when the kubelet last wrote the status, by the API server's clock; "" if
            nobody knows.
        spec_written: when an image or the record was last written, by the same clock.
        version: `metadata.resourceVersion`.
        given: container -> JSON of the resources that it has, as its kubelet says; empty where it
            says nothing of them (before Kubernetes 1.33).
        image_writers: container -> who else has set its image; looked for where the images of the
            pod and of its template differ.
        update_over: whether its last in-place update is over, whatever the time.
        since: when the newest of what serves in it began, in seconds since the epoch; `UNKNOWN`
            where nobody knows.
        probed_at: by when each of its probes has run once that has to, in seconds since the epoch;
            `UNKNOWN` where none has to. This and the two before follow from the rest: they are
            asked for again at each sync of a pod that stays as it is.
    """

    name: str
    spec: PodSpec
    unreadable: str = ""
    manifest: Manifest = NO_MANIFEST
    node: str = ""
    terminating: bool = False
    phase: str = "Pending"
    ready: bool | None = None
    ready_since: str = ""
    conditions_text: bytes = b""
    containers: tuple[ContainerStatus, ...] = ()
    restarts: bool = False
    reason: str = ""
    message: str = ""
    uid: str = ""
    created: str = ""
    generation: int = 0
    observed_generation: int = 0
    last_update: InPlaceRecord | None = None
    failures_text: str = ""
    runs_wanted: tuple[str, ...] = ()
    kubelet_wrote: str = ""
    spec_written: str = ""
    version: str = ""
    given: Mapping[str, str] = NONE
    image_writers: Mapping[str, str] = NONE
    update_over: bool = False
    since: float = UNKNOWN
    probed_at: float = UNKNOWN

    @property
    def foreign(self) -> bool:
        """True if it carries no revision of ours: its template is compared field by field."""
        return not self.unreadable and not self.spec.is_ours

    @property
    def conditions(self) -> dict[str, Condition]:
        """Type -> condition; none where they cannot be read."""
        with suppress(msgspec.DecodeError, UnicodeDecodeError):  # no text is no JSON
            found = objects.decode_conditions(self.conditions_text) or ()
            return {item.type or "": item for item in found}
        return {}

    @property
    def silent(self) -> bool:
        """True if its node is not heard of: it may well serve."""
        return self.silent_since is not None

    @property
    def silent_since(self) -> float | None:
        """Since when its node is not heard of, in seconds since the epoch; None if it is.

        The node lifecycle controller turns `Ready` False and leaves the rest as it was, which no
        kubelet ever writes for longer than a second: every container ready, every readiness gate
        open, the pod not. It counts from the newest of them, because a gate that was just opened
        looks the same until the kubelet has looked; `UNKNOWN` where one of them has no time.
        """
        if self.ready is not False or self.phase != "Running":
            return None
        known = self.conditions
        found = [known.get(name) for name in ("ContainersReady", *self.spec.gates)]
        times = [self.ready_since]
        for condition in found:
            if condition is None or condition.status != "True":
                return None
            times.append(condition.last_transition_time or "")
        since = [seconds(time) for time in times]
        return UNKNOWN if UNKNOWN in since else max(since)

    @property
    def made_failed(self) -> bool:
        """True if this service made it Failed because its node is lost: it did not fail."""
        return self.phase == "Failed" and bool(self.spec.lost) and self.reason == NODE_LOST

    @property
    def completed(self) -> bool:
        """True if the pod has ended for good."""
        return self.phase in COMPLETED

    @property
    def ran_to_its_end(self) -> bool:
        """True if it has completed, and its kubelet would start nothing of it again (getPhase).

        An init container that failed for good ends its pod; else the main containers do. In a pod
        that others have ended (evicted, by its deadline), how a container ended need not be known,
        nor have failed; it counts as one that failed then.
        """
        spec, ends = self.spec, dict[str | None, Terminated]()
        for status in self.containers:
            ended = status.now.terminated
            if status.now.waiting is not None:
                ended = status.before.terminated
            if ended is not None:
                ends[status.name] = ended
        codes = {name: ended.exit_code for name, ended in ends.items()}
        for name in spec.images.keys() - set(spec.running_containers):
            if codes.get(name) and not spec.starts_again(name, codes[name]):
                return self.completed
        by_others = self.phase == "Failed" and not any(map(codes.get, spec.main_containers))
        unknown = 0 if self.phase == "Succeeded" else None
        return self.completed and not any(
            spec.starts_again(name, None if by_others else codes.get(name, unknown))
            or (name in ends and ends[name].reason == RESTARTING_ALL)
            for name in spec.main_containers or ("",)
        )

    @property
    def running(self) -> bool:
        """True if the pod runs and is not on its way out."""
        return not self.terminating and self.phase == "Running"

    @property
    def refused_by_kubelet(self) -> bool:
        """Bound to a node, ended, and no container was ever started there."""
        return (
            self.completed
            and bool(self.node)
            and not any(
                status.container_id or status.now.running or status.now.terminated
                for status in self.containers
            )
        )

    @property
    def tells_generation(self) -> bool:
        """True if the kubelet says which spec it has seen (Kubernetes >= 1.34)."""
        return bool(self.observed_generation)

    @property
    def kubelet_is_behind(self) -> bool:
        """True if the kubelet says that it has not seen the newest spec."""
        return 0 < self.observed_generation < self.generation

    def container(self, name: str) -> ContainerStatus:
        """The status of a container; an empty one if the kubelet has not reported it."""
        for status in self.containers:
            if status.name == name:
                return status
        return ContainerStatus()
