"""Reads a pod: its JSON, decoded as far as any rule looks at it, into one plain value."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from tapp.kube import objects
from tapp.kube.images import runs_image
from tapp.kube.objects import (
    Condition,
    ContainerStatus,
    InPlaceRecord,
    KubeletResources,
    PodObject,
    PodStatus,
    RanImage,
)
from tapp.kube.project import duplicate_merge_key
from tapp.kube.tolerations import is_limited
from tapp.pod.availability import probed_at, since
from tapp.pod.edited import edited
from tapp.pod.gate import has_closed_gate
from tapp.pod.inplace import is_over
from tapp.pod.manifest import Manifest, read_annotation
from tapp.pod.pod import GRACE, Pod, Resizing, Told
from tapp.pod.resize import resizing_of
from tapp.spec.reads import Reads, read_by, requests_of
from tapp.spec.templates import has_served_gate
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
)

_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError)


def read(pod: PodObject, manifest: Manifest, odd: str = "") -> Pod:
    """What a pod tells.

    Args:
        pod: its JSON, split into the parts that are decoded here.
        manifest: the same pod's labels, annotations and spec.
        odd: what is known not to be readable.
    """
    meta, status, annotations = pod.metadata, pod.status, manifest.annotations
    record = read_annotation(objects.decode_record, annotations.get(IN_PLACE_UPDATE))
    told, oddity = _told(pod, manifest, {} if record is None else record.asked)
    kubelet_wrote, spec_written = ("", "") if record is None else _writes(pod)
    facts: dict[str, Any] = {}
    if status is not None:
        facts, not_readable = _readiness(bytes(status.conditions))
        oddity = not_readable or oddity
        containers = _containers(status)
        facts |= {
            "phase": status.phase or "Pending",
            "containers": containers,
            "runs_wanted": () if record is None else _runs_wanted(containers, told.images),
            "restarts": any((item.restart_count or 0) > 0 for item in containers),
            "reason": status.reason or "",
            "said": ": ".join(text for text in (status.reason, status.message) if text),
            "seen_generation": status.observed_generation or 0,
        }
        facts["resizing"], facts["tells_resources"] = _resizing(told, status)
    odd = odd or oddity
    found = Pod(
        name=meta.name,
        told=told,
        odd=odd,
        foreign=None if odd or told.is_ours else manifest,
        node=_word(manifest.spec.get("nodeName")),
        terminating=meta.deletion_timestamp is not None,
        uid=meta.uid or "",
        created=meta.creation_timestamp or "",
        generation=meta.generation or 0,
        version=meta.resource_version or "",
        record=record,
        failures_text=str(annotations.get(FAILURES, "")),
        kubelet_wrote=kubelet_wrote,
        spec_written=spec_written,
        edited=edited(told.images, told.template_images, meta.managed_fields),
        **facts,
    )
    derived: dict[str, Any] = {"since": since(found), "probed_at": probed_at(found)}
    if found.ready and found.phase == "Running" and not has_closed_gate(found):
        derived["conditions_text"] = b""
    if is_over(found):
        derived |= {"update_over": True, "runs_wanted": (), "kubelet_wrote": "", "spec_written": ""}
        derived["record"] = _of_restarts(record) if found.restarts else None
    return msgspec.structs.replace(found, **derived)


def _of_restarts(record: InPlaceRecord | None) -> InPlaceRecord | None:
    """What tells a restart by an update that is over from one by itself: the containers' ids."""
    if record is None:
        return None
    return InPlaceRecord(
        containers={name: RanImage(ran.id) for name, ran in record.containers.items()}
    )


def _told(pod: PodObject, manifest: Manifest, met: Mapping[str, str]) -> tuple[Told, str]:
    """What the pod was told to be, and what of it is of a wrong type."""
    odd, spec = _oddity(pod), manifest.spec
    labels, annotations = manifest.labels, manifest.annotations
    policy = _word(spec.get("restartPolicy")) or "Always"
    main = [] if odd else spec.get("containers") or []
    init = [] if odd else spec.get("initContainers") or []
    both = [*main, *init]
    running = [*main, *(item for item in init if item.get("restartPolicy") == "Always")]
    requests = requests_of(annotations, RESTART_INSTANCE)
    applied = (manifest.projected or {}).get("spec")
    doubled = duplicate_merge_key(applied) if isinstance(applied, dict) else None
    told = Told(
        template_hash=labels.get(TEMPLATE_HASH),
        uniq_hash=labels.get(UNIQ_HASH),
        resources={i["name"]: _json(i["resources"]) for i in both if i.get("resources")},
        resize_restarts=_resize_restarts(running),
        template_images=read_annotation(objects.decode_images, annotations.get(TEMPLATE_IMAGES))
        or {},
        images={item["name"]: item.get("image", "") for item in both},
        main_containers=tuple(item["name"] for item in main),
        running_containers=tuple(item["name"] for item in running),
        restart_policies={
            item["name"]: _word(item.get("restartPolicy")) or policy for item in both
        },
        restart_policy=policy,
        grace_seconds=_seconds(spec, "terminationGracePeriodSeconds", GRACE),
        startup_seconds=_first_runs(both, "startupProbe"),
        readiness_seconds=_first_runs(both, "readinessProbe"),
        probed_alive=tuple(
            item["name"] for item in both if item.get("livenessProbe") or item.get("startupProbe")
        ),
        has_hook=any(_has_hook(item.get("lifecycle")) for item in both),
        gates=_gates(spec.get("readinessGates")),
        claims=_claims(spec.get("volumes")),
        marked=has_served_gate(spec) or any(annotations.get(key) for key in (DRAIN, LOST_NODE)),
        reads=_reads(running, manifest),
        requests=requests,
        asked=tuple(name for name, text in requests.items() if met.get(name) != text),
        restarted_at=_word(annotations.get(RESTARTED_AT)),
        drain=_word(annotations.get(DRAIN)),
        lost=_word(annotations.get(LOST_NODE)),
        is_watched=labels.get(POD_STATUS) == "true",
        evicted_in_time=is_limited(_dicts(spec.get("tolerations"))),
        unmergeable="" if doubled is None else f"spec{doubled}",
    )
    return told, odd


def _resize_restarts(containers: list[dict[str, Any]]) -> dict[str, tuple[str, ...]]:
    found = {
        item["name"]: tuple(
            _word(policy.get("resourceName"))
            for policy in _dicts(item["resizePolicy"])
            if policy.get("restartPolicy") == "RestartContainer"
        )
        for item in containers
        if item.get("resizePolicy")
    }
    return {name: resources for name, resources in found.items() if resources}


def _resizing(told: Told, status: PodStatus) -> tuple[Resizing | None, bool]:
    """How far the kubelet is with the resources of the spec, and whether it tells any."""
    texts = [bytes(raw) for raw in (status.init_container_statuses, status.container_statuses)]
    conditions, statuses = bytes(status.conditions), list[KubeletResources]()
    for text in texts:
        if b'"resources"' in text:
            with suppress(*_UNREADABLE):
                statuses += objects.decode_resources(text) or []
    if not statuses and b'"PodResize' not in conditions:
        return None, False
    found = _readable_conditions(conditions) if b'"PodResize' in conditions else []
    known = {item.type or "": item for item in found}
    return resizing_of(told, known, statuses)


def _reads(containers: list[dict[str, Any]], manifest: Manifest) -> Reads:
    """What containers have of the metadata that we applied; no update changes what others wrote."""
    metadata = (manifest.projected or manifest.document)["metadata"]
    labels, annotations = (metadata.get(part) or {} for part in ("labels", "annotations"))
    return read_by(containers, labels, annotations)


def _gates(gates: Any) -> tuple[str, ...]:
    return tuple(str(item.get("conditionType")) for item in _dicts(gates))


def _claims(volumes: Any) -> tuple[str, ...]:
    sources = [item.get("persistentVolumeClaim") for item in _dicts(volumes)]
    return tuple(_word(item.get("claimName")) for item in _dicts(sources))


def _dicts(items: Any) -> list[dict[str, Any]]:
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def _first_runs(containers: list[dict[str, Any]], kind: str) -> dict[str, float]:
    """Container -> seconds until its probe has run once, for those that have such a probe.

    Its delay, one period, as long as one run may take, and one more because times are cut to the
    second. Kubernetes' defaults where the pod does not say (core/v1 Probe): 0, 10 and 1.
    """
    parts = (("initialDelaySeconds", 0), ("periodSeconds", 10), ("timeoutSeconds", 1))
    return {
        item["name"]: sum(_seconds(item[kind], key, default) for key, default in parts) + 1
        for item in containers
        if isinstance(item.get(kind), dict)
    }


def _has_hook(lifecycle: Any) -> bool:
    return isinstance(lifecycle, dict) and bool(lifecycle.get("postStart"))


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _word(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _seconds(spec: Mapping[str, Any], key: str, default: float) -> float:
    """A number of seconds; the default where it is none that Kubernetes could hold."""
    value = spec.get(key)
    return float(value) if isinstance(value, int) and 0 <= value < _MOST_SECONDS else default


_MOST_SECONDS = 1 << 40


def _readiness(text: bytes) -> tuple[dict[str, Any], str]:
    """The facts of `status.conditions`, and what of it is of a wrong type.

    Only `Ready` decides on anything at once: another condition that cannot be read makes no pod
    unreadable.
    """
    facts: dict[str, Any] = {"conditions_text": text}
    odd = ""
    try:
        found = objects.decode_conditions(text) or []
    except _UNREADABLE as error:
        odd, found = f"status.conditions: {error}", _readable_conditions(text)
    for condition in found:
        if condition.type == "Ready":
            since = condition.last_transition_time or ""
            odd = "" if condition.status in ("True", "False") else odd
            return {**facts, "ready": condition.status == "True", "ready_since": since}, odd
    return facts, odd


def _readable_conditions(text: bytes) -> list[Condition]:
    found = []
    with suppress(*_UNREADABLE):
        for raw in objects.decode_list(text):
            with suppress(*_UNREADABLE):
                found.append(objects.decode_condition(raw))
    return found


def _containers(status: PodStatus) -> tuple[ContainerStatus, ...]:
    found: list[ContainerStatus] = []
    for raw in (status.init_container_statuses, status.container_statuses):
        # A container of unknown state is one that has not started.
        with suppress(*_UNREADABLE):
            found += objects.decode_statuses(raw) or []
    return tuple(found)


def _runs_wanted(
    containers: tuple[ContainerStatus, ...], images: Mapping[str, str]
) -> tuple[str, ...]:
    return tuple(
        status.name
        for status in containers
        if status.name and runs_image(images.get(status.name, ""), status.image, status.image_id)
    )


def _writes(pod: PodObject) -> tuple[str, str]:
    """When the kubelet last wrote the status, and anybody last wrote anything else."""
    kubelet = spec = ""
    with suppress(*_UNREADABLE):
        for item in objects.decode_managers(pod.metadata.managed_fields) or ():
            time = item.time or ""
            if not item.subresource:
                spec = max(spec, time)
            elif item.subresource == "status" and item.manager == "kubelet":
                kubelet = max(kubelet, time)
    return kubelet, spec


class _NamedContainer(msgspec.Struct):
    name: str
    image: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    containers: list[_NamedContainer] | None = None
    init_containers: list[_NamedContainer] | None = None


_decode_strings = msgspec.json.Decoder(dict[str, str] | None).decode
_decode_spec = msgspec.json.Decoder(_Spec).decode


def _oddity(pod: PodObject) -> str:
    """What is of a wrong type in the parts of a pod that decisions read."""
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
