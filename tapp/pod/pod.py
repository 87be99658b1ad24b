"""`Pod`: everything that the rules need to know of one observed pod, as an immutable value.

`read.read` builds a `Pod` from the pod's JSON and copies only the fields that a rule uses. A `Pod`
keeps no reference to the request that it was read from, so it can be cached between syncs as long
as the pod's resourceVersion stays the same. Only `manifest.py` looks at the whole JSON, to build
the response for the pod.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec import Raw

from tapp.declared.reads import Reads
from tapp.declared.revision import is_ours
from tapp.kube import objects, stored
from tapp.kube.objects import Condition, ContainerStatus, InPlaceRecord, Terminated
from tapp.kube.restarts import ALWAYS, COMPLETED, RESTART_ALL, RESTARTING_ALL, Restarts
from tapp.pod.hold import Hold
from tapp.pod.manifest import NO_MANIFEST, Manifest
from tapp.words.times import SKEW, UNKNOWN, seconds
from tapp.words.vocabulary import GATES, NODE_LOST

# An empty mapping, shared by all pods whose optional mappings have no entries.
NONE: Mapping[str, str] = MappingProxyType({})
# Kubernetes' default of `spec.terminationGracePeriodSeconds`.
GRACE = float(stored.GRACE)
# Beginnings of `reason: message` of a pod if its kubelet evicted or preempted the pod, or shut the
# node down, without the condition DisruptionTarget (Kubernetes before 1.26).
_DISRUPTED = (
    "Evicted: The node was low on resource",
    "Preempting",
    "Terminated: Pod was terminated in response to imminent node shutdown",
    "NodeShutdown",
    "Shutdown",
)
# Beginnings of `reason` if the kubelet refused a pod (pkg/kubelet/lifecycle/predicate.go and
# pkg/kubelet/cm). After a restart the kubelet admits all pods of its node again, and may refuse a
# pod that has run there. The status may still show the containers of that run.
_REFUSED = (
    *("NodeAffinity", "NodeName", "NodePorts", "OutOf", "PodOS"),
    *("TopologyAffinityError", "UnexpectedAdmissionError"),
)


class PodSpec(msgspec.Struct, frozen=True, gc=False):
    """The parts of a pod's spec, labels and annotations on which decisions depend."""

    # The label with the revision of the template that the pod runs; None without the label.
    template_hash: str | None = None
    # The label with the hash of the template without images; None without the label.
    uniq_hash: str | None = None
    # Container name -> JSON of `resources`, for the containers that have any.
    resources: Mapping[str, str] = {}
    # Container name -> the resources whose resize restarts the container (`resizePolicy:
    # RestartContainer`).
    resize_restarts: Mapping[str, tuple[str, ...]] = {}
    # Container name -> image in the template when this service last wrote the pod. Admission may
    # have changed the image in the pod itself.
    template_images: Mapping[str, str] = {}
    # Container name -> image in the pod's spec; includes init containers.
    images: Mapping[str, str] = {}
    # Names of the containers whose pull policy by default would be Always (tag `latest`), but whose
    # spec says another one.
    not_pulling: tuple[str, ...] = ()
    main_containers: tuple[str, ...] = ()  # Names of the containers in `spec.containers`.
    # Names of the containers that keep running: `spec.containers` and native sidecars. The pod's
    # readiness depends on them.
    running_containers: tuple[str, ...] = ()
    restart_policy: str = ALWAYS  # `spec.restartPolicy`; `Always` by default.
    # Container name -> the container's own restart policy and rules, for the containers that have a
    # `restartPolicy`.
    own_restarts: Mapping[str, Restarts] = {}
    grace_seconds: float = GRACE  # `spec.terminationGracePeriodSeconds`, or Kubernetes' default.
    # Container name -> seconds after the container's start within which the startup probe has run
    # once, for the containers that have a startup probe.
    startup_seconds: Mapping[str, float] = {}
    # Container name -> seconds after the container's start within which the startup probe has
    # reached its `failureThreshold` if it always fails.
    startup_whole: Mapping[str, float] = {}
    # Container name -> seconds after the container's start within which the readiness probe has
    # reached its `failureThreshold` if it always fails.
    readiness_whole: Mapping[str, float] = {}
    # Names of the containers that have a liveness or startup probe: the kubelet may stop such a
    # container because the probe fails.
    probed_alive: tuple[str, ...] = ()
    has_hook: bool = False  # True if a container has a postStart hook.
    gates: tuple[str, ...] = ()  # The condition types in `spec.readinessGates`.
    scheduling_gates: tuple[str, ...] = ()  # The names in `spec.schedulingGates`.
    scheduler: str = "default-scheduler"  # `spec.schedulerName`, or Kubernetes' default.
    claims: tuple[str, ...] = ()  # Names of the PersistentVolumeClaims that the pod's volumes use.
    # Names of the volumes that containers mount although Metacontroller's copy of the pod lacks
    # them: admission has added them. Without that copy: all mounted volumes except those of the
    # instance's own claims and of the service account token.
    added: tuple[str, ...] = ()
    # True if the admission policy `tapp-lean-pods` removed the spec from Metacontroller's copy of
    # the pod when the pod was created.
    lean: bool = False
    # `spec.subdomain`: the headless Service under which the pod's host name is published; empty
    # without one.
    subdomain: str = ""
    # Path of the first list that has two entries with the same merge key, so that Metacontroller
    # cannot merge it. Empty if there is no such list, or Metacontroller has never applied the pod.
    unmergeable: str = ""
    # True if the pod has a readiness gate of this service, or an annotation about a drain, a lost
    # node or a hold.
    marked: bool = False
    # Summary of the labels and annotations that Metacontroller wrote for the template
    # (`Metadata.summary`); empty if Metacontroller wrote none.
    metadata: bytes = b""
    # Container name -> the labels and annotations that the container's environment reads, with a
    # digest of each value (`tapp/declared/reads.py`). A change of such a value restarts the
    # container.
    reads: Reads = {}
    # Restarts that users request by annotations on this pod: container name, or an empty string for
    # all containers -> digest of the annotation's value.
    restart_requests: Mapping[str, str] = {}
    # The keys of `restart_requests` that no update has carried out yet.
    pending_requests: tuple[str, ...] = ()
    # Revision of the template before its placeholders were filled in; empty if the template has
    # none.
    written: str = ""
    # Hash of the instance's own template without images and resources; empty if the pod was made
    # from a template without placeholders.
    bare_hash: str = ""
    # The update-priority annotation that somebody set on this pod, cut to the length of a number;
    # empty without such an annotation, or if it comes from the template.
    update_priority: str = ""
    # The template's annotation `kubectl.kubernetes.io/restartedAt`, which requests new pods.
    restarted_at: str = ""
    # The annotation that requests that the pod leaves its Services: the revision of the coming
    # update.
    drain: str = ""
    # The annotation that marks the pod as lost with its node: the time since which the node is
    # silent.
    lost: str = ""
    # The hold on the pod and the pending action; None if the pod has neither.
    hold: Hold | None = None
    # True if the pod has the label that selects it for the hook `/pod-status`.
    is_watched: bool = False
    # True if the pod tolerates an unreachable node only for a limited time, or not at all.
    evicted_in_time: bool = False

    def resources_of(self, container: str) -> Any:
        """Returns the `resources` of a container as JSON data; None if the container has none."""
        return msgspec.json.decode(self.resources.get(container, "null"))

    @property
    def served_gates(self) -> tuple[str, ...]:
        """The readiness gates of the pod that this service opens and closes."""
        return tuple(gate for gate in self.gates if gate in GATES)

    @property
    def drains(self) -> bool:
        """True if an annotation requests that the pod leaves its Services before an update.

        False if the update has been done: the annotation then names the pod's own revision. Also
        False if the pod has no readiness gate of this service.
        """
        if not self.drain or self.drain == self.template_hash:
            return False
        return is_ours(self.drain) and bool(self.served_gates)

    @property
    def is_ours(self) -> bool:
        """True if this service created or adopted the pod: both revision labels have its form."""
        return is_ours(self.template_hash) and is_ours(self.uniq_hash)

    def starts_again(self, name: str, exit_code: int | None) -> bool:
        """Returns True if the kubelet restarts a container after it has ended.

        Args:
            name: the name of the container.
            exit_code: the exit code; None if the container's end has none, as after an eviction.
                That counts as a failure, and no restart rule applies to it.
        """
        # A plain init container that has succeeded is done, whatever the restart policy.
        if exit_code == 0 and name in self.images and name not in self.running_containers:
            return False
        return (self.own_restarts.get(name) or Restarts(self.restart_policy)).restarts_after(
            exit_code
        )

    def starts_all(self, name: str, exit_code: int | None) -> bool:
        """Returns True if a restart rule makes the kubelet restart all containers of the pod.

        With such a rule (action RestartAllContainers) the kubelet restarts all containers in the
        same pod, without a back-off.

        Args:
            name: the name of the container that has ended.
            exit_code: its exit code; None if its end has none. No rule applies then.
        """
        if exit_code is None or name not in self.own_restarts:
            return False
        return self.own_restarts[name].action(exit_code) == RESTART_ALL


class Pod(msgspec.Struct, frozen=True, gc=False):
    """One observed pod: the parts of its metadata, spec and status that decisions depend on."""

    name: str  # `metadata.name`
    spec: PodSpec  # Spec, labels and annotations.
    # Reason why a part of the pod could not be read; empty if everything could. A pod that cannot
    # be read is left alone.
    unreadable: str = ""
    # The whole pod, only if the pod is `foreign`; otherwise empty, to save memory.
    manifest: Manifest = NO_MANIFEST
    # Name of the node that the pod is bound to; empty while the pod is not scheduled.
    node: str = ""
    labels: bytes = b"{}"  # `metadata.labels` as JSON.
    terminating: bool = False  # True if the pod is being deleted.
    acknowledged: bool = False  # True if a kubelet has written into the pod's status.
    # `metadata.deletionTimestamp`: when the grace period ends, RFC 3339. Empty if the pod is not
    # being deleted.
    gone_by: str = ""
    # When the deletion was requested, in seconds since the epoch; `UNKNOWN` if the pod is not being
    # deleted.
    ending_since: float = UNKNOWN
    # `metadata.finalizers` if the pod is being deleted, otherwise empty.
    finalizers: tuple[str, ...] = ()
    phase: str = "Pending"  # `status.phase`; `Pending` by default.
    # Status of the condition Ready; None if the pod has no such condition.
    ready: bool | None = None
    ready_since: str = ""  # When the condition Ready last changed, RFC 3339; empty if unknown.
    ready_seconds: float = UNKNOWN  # `ready_since` in seconds since the epoch, or `UNKNOWN`.
    conditions_text: bytes = b""  # `status.conditions` as JSON.
    containers: tuple[ContainerStatus, ...] = ()  # Status of all containers, init containers first.
    restarts: bool = False  # True if at least one container has a restart count above 0.
    reason: str = ""  # `status.reason`
    # `status.reason` and `status.message`, joined by a colon: why the pod has failed.
    message: str = ""
    uid: str = ""  # `metadata.uid`
    created: str = ""  # `metadata.creationTimestamp`
    # `created` in seconds since the epoch; `UNKNOWN` if it is no time. Every other time of the pod
    # is compared with it.
    created_seconds: float = UNKNOWN
    # `metadata.generation`: the API server raises it with each change of the spec.
    generation: int = 0
    # `status.observedGeneration`: the generation that the kubelet has seen; 0 if unknown (before
    # Kubernetes 1.34).
    observed_generation: int = 0
    # The record that the last update in place left on the pod; None if there was no such update, or
    # the annotation is not valid.
    last_update: InPlaceRecord | None = None
    failures_text: str = ""  # The annotation that counts consecutive failed pods of the instance.
    # Names of the containers that run, or ran last, the image in the spec, according to the names
    # of the images. Empty if the pod has no record of an update.
    runs_wanted: tuple[str, ...] = ()
    # When the kubelet last wrote the status, by the API server's clock, RFC 3339; empty if unknown,
    # or if the pod has no record of an update.
    kubelet_wrote: str = ""
    # When somebody last wrote an image or the record of an update, by the API server's clock, RFC
    # 3339; empty if unknown, or if the pod has no record of an update.
    spec_written: str = ""
    version: str = ""  # `metadata.resourceVersion`
    # Container name -> JSON of the resources that the kubelet has given to the container
    # (`status.containerStatuses[].resources`). Empty before Kubernetes 1.33.
    given: Mapping[str, str] = NONE
    # Container name -> field manager that last set the container's image, if it is not this
    # service. Filled only if an image of the pod differs from its template.
    image_writers: Mapping[str, str] = NONE
    # True if the pod itself proves that its last update in place is finished, at whatever time a
    # rule looks at it.
    update_over: bool = False
    # When the newest container started or Ready turned True, whichever is later
    # (`availability.Times`), in seconds since the epoch. `UNKNOWN` if the pod has no usable time.
    # Like `update_over` and `probed_at`, this time follows from the other fields. It is stored
    # because each sync needs it, also for pods that have not changed.
    since: float = UNKNOWN
    # When the pod's probes have certainly run (`availability.Times`), in seconds since the
    # epoch; `UNKNOWN` if no probe has to be waited for.
    probed_at: float = UNKNOWN
    # The JSON of the response that leaves this pod as it is. It depends on the pod alone, so it is
    # made and cached together with the pod: making it in each sync would take three times as long
    # as all other work. None if Metacontroller's copy of the pod is missing, because the response
    # then depends on the template as well.
    unchanged: Raw | None = None

    @property
    def foreign(self) -> bool:
        """True if another controller created the pod, and this service has not adopted it.

        Such a pod has no revision of this service. So its spec is compared with the template field
        by field.
        """
        return not self.unreadable and not self.spec.is_ours

    @property
    def conditions(self) -> dict[str, Condition]:
        """Condition type -> condition; conditions that cannot be decoded are left out."""
        try:
            found = objects.decode_conditions(self.conditions_text or b"null") or []
        except (msgspec.DecodeError, UnicodeDecodeError):
            found = objects.readable_conditions(self.conditions_text)
        return {item.type or "": item for item in found}

    @property
    def silent(self) -> bool:
        """True if the node has stopped reporting; the pod may still be serving.

        The node lifecycle controller then sets Ready to False and leaves everything else as it was:
        ContainersReady and all readiness gates stay True. A kubelet writes that combination for at
        most a second. `lost.observed_silence` says since when the node is silent.
        """
        if self.ready is not False or self.phase != "Running":
            return False
        known = self.conditions
        found = (known.get(name) for name in ("ContainersReady", *self.spec.gates))
        return all(item is not None and item.status == "True" for item in found)

    def plausible_time(self, time: Any, now: float, default: float = UNKNOWN) -> float:
        """Returns a time of this pod's status in seconds since the epoch, or `default`.

        Args:
            time: the time, RFC 3339; a value of any other type counts as invalid.
            now: the time of this sync, in seconds since the epoch.
            default: the result if the time is invalid, in the future, or more than `SKEW` seconds
                before the pod's creation.
        """
        return self._plausible(seconds(time), now, default)

    def ready_at(self, now: float, default: float = UNKNOWN) -> float:
        """Returns when the condition Ready last changed, or `default` if that time cannot be right.

        Args:
            now: the time of this sync, in seconds since the epoch.
            default: the result if the time is missing, invalid, in the future, or before the pod's
                creation.
        """
        return self._plausible(self.ready_seconds, now, default)

    def _plausible(self, at: float, now: float, default: float) -> float:
        """Returns the time `at`, or `default` if that time cannot be right.

        It cannot be right if it is in the future or before the pod's creation; clocks may differ by
        `SKEW` seconds. All times are in seconds since the epoch. `at` is `UNKNOWN` if the pod has
        no valid time.
        """
        if at > now + SKEW:
            at = UNKNOWN
        return default if at < self.created_at(now) - SKEW else at

    def created_at(self, now: float) -> float:
        """Returns when the pod was created, in seconds since the epoch.

        Returns `UNKNOWN` if the pod has no plausible time of creation.
        """
        return self.created_seconds if self.created_seconds <= now + SKEW else UNKNOWN

    @property
    def failed_by_service(self) -> bool:
        """True if this service set the pod's phase to Failed because the node is lost.

        Such a pod does not count as a failure of the program.
        """
        return self.phase == "Failed" and bool(self.spec.lost) and self.reason == NODE_LOST

    @property
    def unacknowledged(self) -> bool:
        """True if the pod is bound to a node, and no kubelet has written the pod's status yet."""
        if not self.node or self.phase != "Pending" or self.acknowledged:
            return False
        scheduled = self.conditions.get("PodScheduled")
        return scheduled is None or scheduled.status != "False"

    @property
    def disruption(self) -> str:
        """The reason why something ended the pod before its work was done; empty if nothing did.

        The reason comes from the condition DisruptionTarget (KEP-3329). The eviction API, the taint
        manager, the scheduler, the pod garbage collector or the kubelet sets this condition. Two
        ends are no disruption:

        - The pod has succeeded: its work is done, even if an eviction had begun.
        - A kubelet evicts the pod because the pod exceeds its own limits (ephemeral-storage, size
          of an emptyDir). The kubelet writes no such condition then, so this counts as a failure of
          the pod.
        """
        if self.phase != "Failed":
            return ""
        condition = self.conditions.get("DisruptionTarget")
        if condition is not None and condition.status == "True":
            return condition.reason or "DisruptionTarget"
        if self.message.startswith(_DISRUPTED):
            return self.reason
        # `refused_by_kubelet` covers pods that never ran. Without a node there was no kubelet, so
        # somebody else wrote the reason.
        has_run = bool(self.node) and not self.refused_by_kubelet
        return self.reason if has_run and self.reason.startswith(_REFUSED) else ""

    @property
    def completed(self) -> bool:
        """True if the pod's phase is Succeeded or Failed."""
        return self.phase in COMPLETED

    @property
    def ran_to_its_end(self) -> bool:
        """True if the pod has completed, and the kubelet would restart none of its containers.

        This repeats the kubelet's `getPhase` (pkg/kubelet/kubelet_pods.go): an init container that
        has failed for good ends the pod; otherwise the pod ends when all main containers have ended
        for good.
        """
        spec, ends = self.spec, dict[str | None, Terminated]()
        for status in self.containers:
            ended = status.now.terminated
            # A waiting container shows its last end in `lastState`.
            if status.now.waiting is not None:
                ended = status.before.terminated
            if ended is not None:
                ends[status.name] = ended
        codes = {name: ended.exit_code for name, ended in ends.items()}
        for name in spec.images.keys() - set(spec.running_containers):
            if codes.get(name) and not spec.starts_again(name, codes[name]):
                return self.completed
        # An evicted pod, or one beyond its deadline, fails although no container reported a
        # failure. Its containers count as failed then.
        by_others = self.phase == "Failed" and not any(map(codes.get, spec.main_containers))
        # The status may lack a container of a pod that was ended.
        unknown = 0 if self.phase == "Succeeded" else None
        return self.completed and not any(
            spec.starts_again(name, None if by_others else codes.get(name, unknown))
            or (name in ends and ends[name].reason == RESTARTING_ALL)
            for name in spec.main_containers or ("",)
        )

    @property
    def running(self) -> bool:
        """True if the pod's phase is Running and the pod is not being deleted."""
        return not self.terminating and self.phase == "Running"

    @property
    def refused_by_kubelet(self) -> bool:
        """True if the pod was bound to a node and has ended there without starting a container.

        A kubelet refuses a pod in this way if, for example, the node has no cpu left.
        """
        return (
            self.completed
            and bool(self.node)
            and not any(
                status.container_id or status.now.running or status.now.terminated
                for status in self.containers
            )
        )

    @property
    def reports_generation(self) -> bool:
        """True if the kubelet reports which generation of the spec it has seen.

        A kubelet of Kubernetes 1.34 or newer does that.
        """
        return bool(self.observed_generation)

    @property
    def kubelet_is_behind(self) -> bool:
        """True if the kubelet reports that it has not seen the newest spec yet.

        False if the kubelet does not report generations (before Kubernetes 1.34).
        """
        return 0 < self.observed_generation < self.generation

    def container(self, name: str) -> ContainerStatus:
        """Returns the status of a container; an empty status if the kubelet has reported none."""
        for status in self.containers:
            if status.name == name:
                return status
        return ContainerStatus()
