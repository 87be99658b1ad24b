"""Facts of a pod, as one plain value.

`read.py` makes it of the pod's JSON, as far as any rule looks at it. It refers to no text that it
was read from, and never changes. The whole JSON is looked at again only to answer it
(`manifest.py`).
"""

from collections.abc import Mapping
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
from tapp.words.times import SKEW, UNKNOWN, told
from tapp.words.vocabulary import GATES, NODE_LOST

NONE: Mapping[str, str] = MappingProxyType({})  # The entries of all pods that have none
GRACE = float(stored.GRACE)
_DISRUPTED = (
    "Evicted: The node was low on resource",
    "Preempting",
    "Terminated: Pod was terminated in response to imminent node shutdown",
    "NodeShutdown",
    "Shutdown",
)
"""Reasons, with the begin of a message, of pods that kubelets without the condition have ended."""


class PodSpec(msgspec.Struct, frozen=True, gc=False):
    """The intended pod, as far as rules look at it: its spec, labels and annotations."""

    template_hash: str | None = None  # the revision label
    uniq_hash: str | None = None  # the revision label without images
    resources: Mapping[str, str] = {}  # container -> JSON of its resources, where it has any
    # container -> the resources for which it is started again if they change
    resize_restarts: Mapping[str, tuple[str, ...]] = {}
    template_images: Mapping[str, str] = {}  # container -> image as the template had it last
    images: Mapping[str, str] = {}  # container -> image in the spec, init containers included
    not_pulling: tuple[str, ...] = ()  # those whose tag would have them pull always, and do not
    main_containers: tuple[str, ...] = ()  # names of the containers that are no init containers
    running_containers: tuple[str, ...] = ()  # those that keep running: readiness depends on them
    restart_policy: str = ALWAYS  # `spec.restartPolicy`, with Kubernetes' default
    # container -> when the kubelet starts it again, of those that have a policy of their own
    own_restarts: Mapping[str, Restarts] = {}
    grace_seconds: float = GRACE  # `spec.terminationGracePeriodSeconds`, with Kubernetes' default
    # container -> seconds after its start by which its startup probe has run once; only those with
    # one
    startup_seconds: Mapping[str, float] = {}
    startup_whole: Mapping[str, float] = {}  # the same until it has failed as often as it may
    readiness_whole: Mapping[str, float] = {}  # the same of readiness probes
    probed_alive: tuple[str, ...] = ()  # containers that may be stopped as a probe fails
    has_hook: bool = False  # whether a container has a postStart hook
    gates: tuple[str, ...] = ()  # condition types of `spec.readinessGates`
    scheduling_gates: tuple[str, ...] = ()  # names of `spec.schedulingGates`
    scheduler: str = "default-scheduler"  # `spec.schedulerName`, with Kubernetes' default
    claims: tuple[str, ...] = ()  # names of the claims that it mounts
    # names that its containers mount, of volumes that it was not asked to have: admission has added
    # them. Where nothing tells what was asked for, all but its own claims.
    added: tuple[str, ...] = ()
    # whether an admission policy has cut the spec out of Metacontroller's copy when it was created
    lean: bool = False
    subdomain: str = ""  # the Service that its host name is in
    unmergeable: str = ""  # a path that Metacontroller cannot merge, "" if it never applied it
    marked: bool = False  # it has a gate that this service serves, or `drain`, `lost` or `hold`
    # a summary of its labels and annotations, as far as Metacontroller wrote them for the template
    # (`tapp/declared/metadata.py`); empty if Metacontroller wrote none
    metadata: bytes = b""
    # what its containers had of its metadata when they started, as far as the template may change
    # that (`tapp/declared/reads.py`)
    reads: Reads = {}
    # who is asked to restart by annotations that people set on this pod: container, "" for all ->
    # digest of the text
    requests: Mapping[str, str] = {}
    asked: tuple[str, ...] = ()  # those of them that no update has met yet
    written: str = ""  # the revision of its template as it is written, where that has placeholders
    bare_hash: str = ""  # its template's, without images and resources; "": it does not say
    # the annotation by which somebody has moved its update forward or back, as far as it can be a
    # number; not the one that it has of its template
    update_priority: str = ""
    restarted_at: str = ""  # the annotation by which its template asked for new pods
    drain: str = ""  # the annotation that asks to take it out of its Services
    lost: str = ""  # the annotation that says since when its node is lost
    hold: Hold | None = None  # what it says of a hold, and of what is wanted; None for nothing
    is_watched: bool = False  # whether it has the label of pods whose status this service writes
    evicted_in_time: bool = False  # it tolerates a node that is not heard of, for a time only

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
    """One observed pod."""

    name: str  # `metadata.name`
    spec: PodSpec  # what it is to be
    unreadable: str = ""  # what could not be read, "" if all could; such a pod is left alone
    manifest: Manifest = NO_MANIFEST  # whole, of a pod that is foreign; else empty
    node: str = ""  # the node that it is bound to, "" where there is none yet
    terminating: bool = False  # whether it is on its way out
    acknowledged: bool = False  # whether a kubelet has written anything into its status
    # `metadata.deletionTimestamp`: the end of the grace period, RFC 3339; "" if the pod is not
    # being deleted
    gone_by: str = ""
    finalizers: tuple[str, ...] = ()  # `metadata.finalizers`, of a pod that is being deleted
    phase: str = "Pending"  # `status.phase`; before a kubelet has looked at it, `Pending`
    ready: bool | None = None  # its condition `Ready`, None where it has none
    ready_since: str = ""  # when that last changed; "" where nobody knows
    conditions_text: bytes = b""  # `status.conditions` as JSON
    containers: tuple[ContainerStatus, ...] = ()  # of all containers, init containers first
    restarts: bool = False  # whether one of them has been started more than once
    reason: str = ""  # `status.reason`
    message: str = ""  # that and `status.message`, as far as there are any: why it failed
    uid: str = ""  # `metadata.uid`
    created: str = ""  # `metadata.creationTimestamp`
    generation: int = 0  # `metadata.generation`: one more with each change of the spec
    # the generation that its kubelet has seen, as it says; 0 where it does not say (before
    # Kubernetes 1.34)
    observed_generation: int = 0
    # the record of the last in-place update; None if there was none, or somebody broke the
    # annotation
    last_update: InPlaceRecord | None = None
    failures_text: str = ""  # the annotation that counts failed pods in a row
    # names of the containers that run, or ran last, the image that the spec names. This and the
    # next two are empty where there is no record.
    runs_wanted: tuple[str, ...] = ()
    kubelet_wrote: str = ""  # when the kubelet last wrote the status, by the server's clock; ""
    spec_written: str = ""  # when an image or the record was last written, by the same clock
    version: str = ""  # `metadata.resourceVersion`
    # container -> JSON of the resources that it has, as its kubelet says; empty where it says
    # nothing of them (before Kubernetes 1.33)
    given: Mapping[str, str] = NONE
    # container -> who else has set its image; looked for where the images of the pod and of its
    # template differ
    image_writers: Mapping[str, str] = NONE
    update_over: bool = False  # whether its last in-place update is over, whatever the time
    # when the newest of what serves in it began, in seconds since the epoch; `UNKNOWN` where nobody
    # knows
    since: float = UNKNOWN
    # by when each of its probes has run once that has to, in seconds since the epoch; `UNKNOWN`
    # where none has to. This and the two before follow from the rest: they are asked for again at
    # each sync of a pod that stays as it is.
    probed_at: float = UNKNOWN

    @property
    def foreign(self) -> bool:
        """True if it carries no revision of ours: its template is compared field by field."""
        return not self.unreadable and not self.spec.is_ours

    @property
    def conditions(self) -> dict[str, Condition]:
        """Type -> condition, without those that cannot be read."""
        try:
            found = objects.decode_conditions(self.conditions_text or b"null") or []
        except (msgspec.DecodeError, UnicodeDecodeError):
            found = objects.readable_conditions(self.conditions_text)
        return {item.type or "": item for item in found}

    @property
    def silent(self) -> bool:
        """True if its node has stopped reporting; the pod may well serve.

        The node lifecycle controller turns `Ready` False and leaves the rest as it was, which no
        kubelet ever writes for longer than a second: every container ready, every readiness gate
        open, the pod not. Since when: `tapp/pod/lost.py`.
        """
        if self.ready is not False or self.phase != "Running":
            return False
        known = self.conditions
        found = (known.get(name) for name in ("ContainersReady", *self.spec.gates))
        return all(item is not None and item.status == "True" for item in found)

    def told(self, time: Any, now: float, otherwise: float = UNKNOWN) -> float:
        """Returns a time of this pod's status, or `otherwise` if the time cannot be right.

        See `times.told`; nor can a time be right that is long before the pod's creation.
        """
        at = told(time, now)
        return otherwise if at < self.made_at(now) - SKEW else at

    def made_at(self, now: float) -> float:
        """Returns when this pod was created, in seconds since the epoch; `UNKNOWN` if not told."""
        return told(self.created, now)

    @property
    def made_failed(self) -> bool:
        """True if this service made it Failed because its node is lost: it did not fail."""
        return self.phase == "Failed" and bool(self.spec.lost) and self.reason == NODE_LOST

    @property
    def unacknowledged(self) -> bool:
        """True if this pod is bound to a node, and the kubelet there has not looked at it yet."""
        if not self.node or self.phase != "Pending" or self.acknowledged:
            return False
        scheduled = self.conditions.get("PodScheduled")
        return scheduled is None or scheduled.status != "False"

    @property
    def disruption(self) -> str:
        """Who has ended this pod although its work was not done; "" if nobody has.

        The reason of the condition DisruptionTarget (KEP-3329), whoever wrote the phase Failed:
        eviction API, taint manager, scheduler, PodGC, kubelet. A pod that has succeeded is done,
        whatever was about to end it. A kubelet that evicts a pod for exceeding limits of its own
        (ephemeral-storage, the size of an emptyDir) writes no such condition.
        """
        if self.phase != "Failed":
            return ""
        condition = self.conditions.get("DisruptionTarget")
        if condition is not None and condition.status == "True":
            return condition.reason or "DisruptionTarget"
        return self.reason if self.message.startswith(_DISRUPTED) else ""

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
