"""Reads the JSON of an observed pod into a `Pod`.

Users, admission and other controllers may have written anything into a pod. If a part that a
decision depends on has a wrong type, the pod is unreadable (`Pod.unreadable`), and the service does
not change it. Any other value of a wrong type is replaced by a default.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from tapp.declared.metadata import authors_metadata
from tapp.declared.reads import Reads, read_by, requests_of
from tapp.declared.templates import TemplateOrigin, has_served_gate
from tapp.kube import objects
from tapp.kube.images import pull_policy, runs_image
from tapp.kube.objects import ContainerStatus, PodMeta, PodObject, PodStatus
from tapp.kube.once import mounts_without_volume
from tapp.kube.parts import map_in, map_of, maps_of, text_of, texts_of
from tapp.kube.project import duplicate_merge_key
from tapp.kube.restarts import ALWAYS, restarts_of
from tapp.kube.stored import PROBE
from tapp.kube.tolerations import is_limited
from tapp.kube.writers import image_writers, write_times
from tapp.pod.availability import times_of
from tapp.pod.hold import hold_of
from tapp.pod.inplace import is_over
from tapp.pod.manifest import NO_MANIFEST, Manifest, read_annotation
from tapp.pod.pod import GRACE, NONE, Pod, PodSpec
from tapp.words.times import UNKNOWN, seconds
from tapp.words.vocabulary import (
    DRAIN,
    FAILURES,
    IN_PLACE_UPDATE,
    LOST_NODE,
    POD_STATUS,
    RESTART_INSTANCE,
    RESTARTED_AT,
    TEMPLATE_HASH,
    TEMPLATE_IMAGES,
    UNIQ_HASH,
    UPDATE_PRIORITY,
    WRITTEN,
)

# Condition types that only a kubelet writes.
_KUBELET_CONDITIONS = (b'"Initialized"', b'"ContainersReady"', b'"PodReadyToStartContainers"')
_MAX_INT32 = 2**31 - 1
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError)


def read(pod: PodObject, manifest: Manifest, unreadable: str = "") -> Pod:
    """Returns the pod with the parts that decisions depend on.

    Args:
        pod: the pod as JSON.
        manifest: its labels, annotations and spec.
        unreadable: which part of the pod the caller could not decode, and why; empty if the caller
            could decode all parts.
    """
    meta, status, annotations = pod.metadata, pod.status, manifest.annotations
    record = read_annotation(objects.decode_record, annotations.get(IN_PLACE_UPDATE))
    spec, wrong_type = _spec(pod, manifest, {} if record is None else record.requests)
    facts: dict[str, Any] = {}
    if status is not None:
        facts, not_readable = _condition_facts(bytes(status.conditions))
        wrong_type = not_readable or wrong_type
        containers, status_text = _containers(status), bytes(status.conditions)
        facts |= {
            "phase": status.phase or "Pending",
            "acknowledged": bool(status.start_time or containers)
            or any(name in status_text for name in _KUBELET_CONDITIONS),
            "containers": containers,
            "restarts": any((item.restart_count or 0) > 0 for item in containers),
            "reason": status.reason or "",
            "message": ": ".join(text for text in (status.reason, status.message) if text),
            "observed_generation": status.observed_generation or 0,
            "given": _kubelet_resources(status),
        }
        # The next facts are used only while an update in place may be unfinished, and cost time to
        # find.
        if record is not None:
            facts["runs_wanted"] = _runs_wanted(containers, spec.images)
    unreadable = unreadable or wrong_type
    if record is not None:
        facts["kubelet_wrote"], facts["spec_written"] = write_times(meta.managed_fields)
    # Somebody, or admission, has changed an image.
    if any(spec.images.get(name, image) != image for name, image in spec.template_images.items()):
        facts["image_writers"] = image_writers(meta.managed_fields)
    found = Pod(
        name=meta.name,
        spec=spec,
        unreadable=unreadable,
        # Only a pod of another controller is compared with its template field by field. The
        # manifests of all others would fill the cache.
        manifest=NO_MANIFEST if unreadable or spec.is_ours else manifest,
        node=text_of(manifest.spec.get("nodeName")),
        labels=bytes(meta.labels),
        terminating=meta.deletion_timestamp is not None,
        gone_by=meta.deletion_timestamp or "",
        ending_since=UNKNOWN if meta.deletion_timestamp is None else _ending_since(meta),
        # Finalizers matter only for a deletion that does not end.
        finalizers=() if meta.deletion_timestamp is None else texts_of(manifest.finalizers),
        uid=meta.uid or "",
        created=meta.creation_timestamp or "",
        created_seconds=seconds(meta.creation_timestamp),
        generation=meta.generation or 0,
        version=meta.resource_version or "",
        last_update=record,
        failures_text=str(annotations.get(FAILURES, "")),
        **facts,
    )
    times = times_of(found)
    return msgspec.structs.replace(
        found, update_over=is_over(found), since=times.since, probed_at=times.probed_at
    )


def _ending_since(meta: PodMeta) -> float:
    """Returns when the deletion of a pod was requested, in seconds since the epoch, or `UNKNOWN`.

    The API server writes the end of the grace period as `deletionTimestamp`.
    """
    gone_by, grace = seconds(meta.deletion_timestamp), meta.deletion_grace_period_seconds
    is_number = isinstance(grace, int) and 0 <= grace <= _MAX_INT32
    return gone_by - grace if gone_by != UNKNOWN and is_number else gone_by


def _spec(
    pod: PodObject, manifest: Manifest, fulfilled_requests: Mapping[str, str]
) -> tuple[PodSpec, str]:
    """Returns the parts of a pod's spec, labels and annotations, and why they cannot be read.

    The second value is empty if they can be read.

    Args:
        pod: the pod as JSON.
        manifest: its labels, annotations and spec.
        fulfilled_requests: container name -> digest of the restart request that the last update has
            carried out; the empty name stands for all containers.
    """
    unreadable, raw = _wrong_type(pod), manifest.spec
    labels, annotations = manifest.labels, manifest.annotations
    policy = text_of(raw.get("restartPolicy")) or ALWAYS
    # The spec of an unreadable pod may have any shape, so nothing of its containers is used.
    main = [] if unreadable else raw.get("containers") or []
    init = [] if unreadable else raw.get("initContainers") or []
    all_containers = [*main, *init]
    # Native sidecars are init containers with `restartPolicy: Always`.
    running = [*main, *(item for item in init if item.get("restartPolicy") == "Always")]
    requests = requests_of(annotations, RESTART_INSTANCE)
    projected = manifest.projected or {}
    applied = projected.get("spec")
    applied_annotations = map_in(projected, "metadata").get("annotations")
    hold, origin = (
        hold_of(labels, annotations),
        TemplateOrigin.decode(text_of(annotations.get(WRITTEN))),
    )
    unmergeable_list = duplicate_merge_key(applied) if isinstance(applied, dict) else None
    spec = PodSpec(
        template_hash=labels.get(TEMPLATE_HASH),
        uniq_hash=labels.get(UNIQ_HASH),
        resources={i["name"]: _json(i["resources"]) for i in all_containers if i.get("resources")},
        resize_restarts=_resize_restarts(running),
        template_images=read_annotation(objects.decode_images, annotations.get(TEMPLATE_IMAGES))
        or {},
        images={item["name"]: item.get("image", "") for item in all_containers},
        not_pulling=tuple(item["name"] for item in all_containers if _overrides_pull_policy(item)),
        main_containers=tuple(item["name"] for item in main),
        running_containers=tuple(item["name"] for item in running),
        restart_policy=policy,
        own_restarts={
            item["name"]: restarts_of(item, policy)
            for item in all_containers
            if item.get("restartPolicy")
        },
        grace_seconds=_seconds(raw, "terminationGracePeriodSeconds", GRACE),
        startup_seconds=_probe_seconds(all_containers, "startupProbe", 1),
        startup_whole=_probe_seconds(all_containers, "startupProbe", None),
        readiness_whole=_probe_seconds(all_containers, "readinessProbe", None),
        probed_alive=tuple(
            item["name"]
            for item in all_containers
            if item.get("livenessProbe") or item.get("startupProbe")
        ),
        has_hook=any(map_in(item, "lifecycle").get("postStart") for item in all_containers),
        gates=tuple(str(gate.get("conditionType")) for gate in maps_of(raw.get("readinessGates"))),
        scheduling_gates=tuple(
            text_of(gate.get("name")) for gate in maps_of(raw.get("schedulingGates"))
        ),
        scheduler=text_of(raw.get("schedulerName")) or "default-scheduler",
        claims=_claims(raw.get("volumes")),
        added=() if unreadable else _added_volumes(raw, applied, pod.metadata.name),
        lean=_is_lean(pod, manifest),
        subdomain=text_of(raw.get("subdomain")),
        marked=has_served_gate(raw)
        or hold is not None
        or any(annotations.get(key) for key in (DRAIN, LOST_NODE)),
        metadata=_metadata(manifest),
        reads=_metadata_read(running, manifest),
        restart_requests=requests,
        pending_requests=tuple(
            name for name, text in requests.items() if fulfilled_requests.get(name) != text
        ),
        written=origin.revision,
        bare_hash=origin.bare,
        # An annotation that the template has written is the template's priority, not the pod's own.
        update_priority=""
        if UPDATE_PRIORITY in map_of(applied_annotations)
        else text_of(annotations.get(UPDATE_PRIORITY))[:_PRIORITY_CHARACTERS],
        restarted_at=text_of(annotations.get(RESTARTED_AT)),
        drain=text_of(annotations.get(DRAIN)),
        lost=text_of(annotations.get(LOST_NODE)),
        hold=hold,
        is_watched=labels.get(POD_STATUS) == "true",
        evicted_in_time=is_limited(maps_of(raw.get("tolerations"))),
        unmergeable="" if unmergeable_list is None else f"spec{unmergeable_list}",
    )
    return spec, unreadable


def _overrides_pull_policy(container: dict[str, Any]) -> bool:
    """Returns True if a container's pull policy is not Always, although that is its default."""
    policy = text_of(container.get("imagePullPolicy"))
    return policy not in ("", "Always") and pull_policy(container.get("image")) == "Always"


def _resize_restarts(containers: list[dict[str, Any]]) -> dict[str, tuple[str, ...]]:
    """Returns container name -> resources whose resize restarts the container (`resizePolicy`).

    Containers that no resize restarts are left out.
    """
    found = {
        item["name"]: tuple(
            text_of(policy.get("resourceName"))
            for policy in maps_of(item["resizePolicy"])
            if policy.get("restartPolicy") == "RestartContainer"
        )
        for item in containers
        if item.get("resizePolicy")
    }
    return {name: resources for name, resources in found.items() if resources}


def _kubelet_resources(status: PodStatus) -> Mapping[str, str]:
    """Returns container name -> resources that the kubelet has given to the container, as JSON."""
    found: dict[str, str] = {}
    for raw in (status.init_container_statuses, status.container_statuses):
        if b'"resources"' in bytes(raw):
            with suppress(*_UNREADABLE):
                for item in objects.decode_resources(raw) or ():
                    if item.name and item.resources is not None:
                        found[item.name] = _json(item.resources)
    return found or NONE


def _metadata_read(containers: list[dict[str, Any]], manifest: Manifest) -> Reads:
    """Returns the labels and annotations that each container reads into its environment.

    Only metadata that Metacontroller applied counts, because an update in place changes no other.
    Without Metacontroller's copy of the pod, all metadata of the pod counts.
    """
    metadata = (manifest.projected or manifest.document)["metadata"]
    labels, annotations = (metadata.get(part) or {} for part in ("labels", "annotations"))
    return read_by(containers, labels, annotations)


def _metadata(manifest: Manifest) -> bytes:
    """Returns a summary of the labels and annotations that Metacontroller applied to the pod.

    Returns an empty text if Metacontroller has not applied the pod.
    """
    projected = manifest.projected
    return b"" if projected is None else authors_metadata(projected.get("metadata")).summary()


def _claims(volumes: Any) -> tuple[str, ...]:
    """Returns the names of the PersistentVolumeClaims in a list of volumes."""
    sources = [item.get("persistentVolumeClaim") for item in maps_of(volumes)]
    return tuple(text_of(item.get("claimName")) for item in maps_of(sources))


def _added_volumes(spec: dict[str, Any], applied: Any, pod: str) -> tuple[str, ...]:
    """Returns the volumes that containers mount although Metacontroller did not request them.

    Args:
        spec: the spec of the pod.
        applied: the spec in Metacontroller's copy of the pod. If it is missing, all mounted volumes
            count, except those of the instance's own claims and of the service account token.
        pod: the name of the pod.
    """
    if isinstance(applied, dict):
        return tuple(mounts_without_volume(applied))
    claims = _claims(spec.get("volumes"))
    return tuple(
        name
        for name in mounts_without_volume({**spec, "volumes": []})
        if not name.startswith(_TOKEN_VOLUME) and f"{name}-{pod}" not in claims
    )


def _is_lean(pod: PodObject, manifest: Manifest) -> bool:
    """Returns True if the policy `tapp-lean-pods` was in force when the pod was created.

    Only that policy removes the managed fields of pods and the spec from Metacontroller's copy. An
    update after the policy was removed puts a part of the spec into the copy again.
    """
    unmanaged = bytes(pod.metadata.managed_fields) in (bytes(objects.NOTHING), b"[]")
    return unmanaged and manifest.projected is not None and "spec" not in manifest.projected


# Prefix of the volume that the ServiceAccount admission plugin adds for the token.
_TOKEN_VOLUME = "kube-api-access-"  # noqa: S105 - what admission calls the volume with credentials


def _probe_seconds(
    containers: list[dict[str, Any]], kind: str, fixed_runs: int | None
) -> dict[str, float]:
    """Returns container name -> seconds until a probe of the container has certainly run.

    The seconds are counted from the container's start. Containers without the probe are left out.
    The seconds are

        initialDelaySeconds + runs * periodSeconds + timeoutSeconds + 1

    The last second is added because times in a status are cut to the second. Missing fields have
    Kubernetes' defaults.

    Args:
        containers: the containers of the pod's spec.
        kind: `startupProbe` or `readinessProbe`.
        fixed_runs: the number of runs. None for `failureThreshold` runs, each of which may last
            until its timeout.
    """
    found = {}
    for item in containers:
        if isinstance(probe := item.get(kind), dict):
            timeout = _seconds(probe, "timeoutSeconds", PROBE["timeoutSeconds"])
            each = _seconds(probe, "periodSeconds", PROBE["periodSeconds"])
            each = max(each, timeout if fixed_runs is None else 0)
            runs = fixed_runs or _seconds(probe, "failureThreshold", PROBE["failureThreshold"])
            delay = _seconds(probe, "initialDelaySeconds", 0)
            found[item["name"]] = min(delay + runs * each + timeout + 1, _MAX_WAIT)
    return found


def _json(value: Any) -> str:
    """Returns a value as JSON."""
    return msgspec.json.encode(value).decode()


# Characters of the annotation with the update priority that are kept. A longer text cannot be a
# priority, and this many are enough for a message.
_PRIORITY_CHARACTERS = 40


def _seconds(spec: Mapping[str, Any], key: str, default: float) -> float:
    """Returns a number of seconds in a spec.

    Args:
        spec: a mapping with the field.
        key: the name of the field.
        default: the result if the field is missing or its value cannot be a number of seconds.
    """
    value = spec.get(key)
    return float(value) if isinstance(value, int) and 0 <= value < _SECONDS_LIMIT else default


# No field of seconds in Kubernetes (int32 or int64) has a sensible value as large as this.
_SECONDS_LIMIT = 1 << 40
# Metacontroller counts nanoseconds in 64 bits, so waits are limited to about a century.
_MAX_WAIT = float(1 << 32)


def _condition_facts(text: bytes) -> tuple[dict[str, Any], str]:
    """Returns the fields of `Pod` that come from `status.conditions`, and why they cannot be read.

    The second value is empty if the conditions can be read. An unreadable condition makes the pod
    unreadable only if Ready itself cannot be read, because decisions depend on Ready alone. `text`
    is the JSON of the conditions.
    """
    facts: dict[str, Any] = {"conditions_text": text}
    unreadable = ""
    try:
        found = objects.decode_conditions(text) or []
    except _UNREADABLE as error:
        unreadable, found = f"status.conditions: {error}", objects.readable_conditions(text)
    for condition in found:
        if condition.type == "Ready":
            since = text_of(condition.last_transition_time)
            # Ready itself can be read, so the condition that cannot be is another one.
            unreadable = "" if condition.status in ("True", "False") else unreadable
            ready = {"ready_since": since, "ready_seconds": seconds(since)}
            return {**facts, "ready": condition.status == "True", **ready}, unreadable
    return facts, unreadable


def _containers(status: PodStatus) -> tuple[ContainerStatus, ...]:
    """Returns the statuses of all containers that can be decoded, init containers first."""
    found: list[ContainerStatus] = []
    for raw in (status.init_container_statuses, status.container_statuses):
        # A status that cannot be decoded counts as a container that has not started.
        with suppress(*_UNREADABLE):
            found += objects.decode_statuses(raw) or []
    return tuple(found)


def _runs_wanted(
    containers: tuple[ContainerStatus, ...], images: Mapping[str, str]
) -> tuple[str, ...]:
    """Returns the names of the containers whose status reports the image that the spec names.

    `images` maps the name of a container to its image in the spec.
    """
    return tuple(
        status.name
        for status in containers
        if status.name and runs_image(images.get(status.name, ""), status.image, status.image_id)
    )


class _NamedContainer(msgspec.Struct):
    """The fields of a container without which a pod cannot be read."""

    name: str
    image: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    """The fields of a pod's spec whose types are checked before the pod is read."""

    containers: list[_NamedContainer] | None = None
    init_containers: list[_NamedContainer] | None = None


_decode_strings = msgspec.json.Decoder(dict[str, str] | None).decode
_decode_spec = msgspec.json.Decoder(_Spec).decode


def _wrong_type(pod: PodObject) -> str:
    """Returns a text about the first part of a pod that has a wrong type; "" if there is none."""
    parts: tuple[tuple[str, Callable[[Any], Any], msgspec.Raw], ...] = (
        ("metadata.labels", _decode_strings, pod.metadata.labels),
        ("metadata.annotations", _decode_strings, pod.metadata.annotations),
        ("spec", _decode_spec, pod.spec),
    )
    for path, decode, raw in parts:
        try:
            if raw is not objects.NOTHING:
                decode(raw)
        except msgspec.ValidationError as error:
            return f"{path}: {error}"
    return ""
