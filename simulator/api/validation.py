"""Validation: which objects, and which changes of objects, the API server refuses.

Each `check_...` function raises InvalidError (422) with the path of the first invalid field.
Sources: Kubernetes v1.37.2, pkg/apis/core/validation, and apimachinery's ObjectMeta validation.
Only parts of pods are validated. A real API server accepts changes of images, tolerations,
deadlines and scheduling gates of a running pod. Here, only changes of images and tolerations are
accepted.
"""

from simulator.api.defaults import CONTAINER_LISTS, containers_of
from simulator.api.store import InvalidError
from simulator.objects.objects import (
    Json,
    Object,
    annotations_of,
    changed_paths,
    deep_equal,
    finalizers_of,
    is_terminating,
    labels_of,
    meta,
    name_of,
    owners_of,
)
from tapp.kube.names import is_dns_label, is_label_key, is_label_value, is_subdomain
from tapp.kube.resources import (
    compare,
    is_amount,
    not_resizable,
    removed_sizes,
    requests_beyond_limits,
    sizes_of,
)
from tapp.kube.resources import pod_qos_class as qos_class
from tapp.kube.restarts import ACTIONS, OPERATORS, POLICIES
from tapp.kube.stored import stored_spec

_MUTABLE_FIELDS = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set "
    "to 1 if it was previously negative)"
)
_MAX_ANNOTATIONS = 256 * 1024
_FIXED_ANNOTATIONS = (
    "container.apparmor.security.beta.kubernetes.io/",
    "kubernetes.io/config.mirror",
)


def invalid(obj: Object, path: str, reason: str, error_path: str = "") -> InvalidError:
    """Returns the error with which the API server refuses an object because of one field.

    Args:
        obj: the refused object.
        path: the path of the field that the message names.
        reason: the reason in the message.
        error_path: the value of `InvalidError.path`, if it differs from `path`; empty if it is the
            same.
    """
    message = f'{obj["kind"]} "{name_of(obj)}" is invalid: {path}: {reason}'
    return InvalidError(message, error_path or path)


def _check_strings(obj: Object, field: str) -> None:
    values: dict[str, Json] = meta(obj).get(field) or {}
    for key, value in values.items():
        if not isinstance(value, str):
            reason = f"Invalid value: {value!r}: not a string"
            raise invalid(obj, f"metadata.{field}[{key}]", reason)


def check_metadata(obj: Object) -> None:
    """Raises InvalidError if a name, label, annotation or owner reference is malformed."""
    _check_strings(obj, "labels")
    _check_strings(obj, "annotations")
    name = name_of(obj)
    if not (is_dns_label if obj["kind"] == "Service" else is_subdomain)(name):
        raise invalid(obj, "metadata.name", f'Invalid value: "{name}"')
    for key, value in labels_of(obj).items():
        if not is_label_key(key):
            raise invalid(obj, "metadata.labels", f'Invalid value: "{key}"')
        if not is_label_value(value):
            raise invalid(obj, "metadata.labels", f'Invalid value: "{value}"')
    size = 0
    for key, value in annotations_of(obj).items():
        size += len(key) + len(value)
    if size > _MAX_ANNOTATIONS:
        raise invalid(obj, "metadata.annotations", "Too long: may not be more than 262144 bytes")
    _check_owners(obj)


def _check_owners(obj: Object) -> None:
    path = "metadata.ownerReferences"
    for index, ref in enumerate(owners_of(obj)):
        for field in ("apiVersion", "kind", "name", "uid"):
            if not ref.get(field):
                raise invalid(obj, f"{path}[{index}].{field}", "must not be empty")
    if sum(ref.get("controller") is True for ref in owners_of(obj)) > 1:
        raise invalid(obj, path, "Only one reference can have Controller set to true")


def check_metadata_update(new: Object, old: Object) -> None:
    """Raises InvalidError if metadata is malformed, or if an object in deletion gets a new
    finalizer.

    Args:
        new: the object as the update would store it.
        old: the stored object.
    """
    check_metadata(new)
    if is_terminating(old):
        added = sorted(set(finalizers_of(new)) - set(finalizers_of(old)))
        if added:
            reason = "no new finalizers can be added if the object is being deleted"
            raise invalid(new, "metadata.finalizers", f"Forbidden: {reason}, found {added}")


def check_pod(pod: Object) -> None:
    """Raises InvalidError if a new pod is invalid."""
    check_metadata(pod)
    spec = pod["spec"]
    if not spec.get("containers"):
        raise invalid(pod, "spec.containers", "Required value")
    if spec.get("restartPolicy") not in POLICIES:
        reason = f'Unsupported value: "{spec.get("restartPolicy")}"'
        raise invalid(pod, "spec.restartPolicy", reason)
    volumes = [volume.get("name") for volume in spec.get("volumes") or []]
    _check_unique(pod, volumes, "spec.volumes[{}].name")
    names: set[str] = set()
    for field, index, container in containers_of(spec):
        path = f"spec.{field}[{index}]"
        name = str(container.get("name") or "")
        if not is_dns_label(name):
            raise invalid(pod, f"{path}.name", f'Invalid value: "{name}"')
        if name in names:
            raise invalid(pod, f"{path}.name", f'Duplicate value: "{name}"')
        names.add(name)
        _check_image(pod, path, container)
        _check_restarts(pod, path, container)
        check_amounts(pod, path, container)
        mounts = container.get("volumeMounts") or []
        for number, mount in enumerate(mounts):
            if mount.get("name") not in volumes:
                reason = f'Not found: "{mount.get("name")}"'
                raise invalid(pod, f"{path}.volumeMounts[{number}].name", reason)
        paths = [mount.get("mountPath") for mount in mounts]
        _check_unique(pod, paths, f"{path}.volumeMounts[{{}}].mountPath")


def _check_unique(obj: Object, values: list[Json], path: str) -> None:
    for index, value in enumerate(values):
        if value in values[:index]:
            raise invalid(obj, path.format(index), f'Duplicate value: "{value}"')


def _check_restarts(pod: Object, path: str, container: Object) -> None:
    """Raises InvalidError if a container has an unknown restart policy or an invalid restart rule.

    `path` is the path of the container in the pod. Source: validateContainerRestartPolicy.
    """
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules") or []
    if policy is not None and policy not in POLICIES:
        raise invalid(pod, f"{path}.restartPolicy", f'Unsupported value: "{policy}"')
    if policy is None and rules:
        reason = "Required value: must specify restartPolicy when restart rules are used"
        raise invalid(pod, f"{path}.restartPolicy", reason)
    for index, rule in enumerate(rules):
        place, codes = f"{path}.restartPolicyRules[{index}]", rule.get("exitCodes")
        if rule.get("action") not in ACTIONS:
            raise invalid(pod, f"{place}.action", f'Unsupported value: "{rule.get("action")}"')
        if codes is None:
            raise invalid(pod, f"{place}.exitCodes", "Required value: must be specified")
        if codes.get("operator") not in OPERATORS:
            reason = f'Unsupported value: "{codes.get("operator")}"'
            raise invalid(pod, f"{place}.exitCodes.operator", reason)


def _check_image(pod: Object, path: str, container: Object) -> None:
    image = container.get("image")
    if not image:
        raise invalid(pod, f"{path}.image", "Required value")
    if image != image.strip():
        reason = "must not have leading or trailing whitespace"
        raise invalid(pod, f"{path}.image", f'Invalid value: "{image}": {reason}')


def check_amounts(pod: Object, path: str, container: Object) -> None:
    """Raises InvalidError if a resource of a container is no quantity, or a request exceeds its
    limit.

    `path` is the path of the container in the pod. A real API server cannot decode an invalid
    quantity, and already refuses it with code 400.
    """
    resources = container.get("resources") or {}
    for kind in ("limits", "requests"):
        for name, amount in (resources.get(kind) or {}).items():
            if not is_amount(amount):
                reason = f"quantities must match the regular expression: {amount!r}"
                raise invalid(pod, f"{path}.resources.{kind}[{name}]", reason)
    for name in requests_beyond_limits(sizes_of(resources)):
        least = f"must be less than or equal to {name} limit of {resources['limits'][name]}"
        value = f'Invalid value: "{resources["requests"][name]}"'
        raise invalid(pod, f"{path}.resources.requests", f"{value}: {least}")


def check_pod_update(new: Object, old: Object) -> None:
    """Raises InvalidError if an update of a pod changes an immutable field.

    Args:
        new: the pod as the update would store it.
        old: the stored pod.
    """
    check_metadata_update(new, old)
    _check_fixed_annotations(new, old)
    if new["spec"] is old["spec"] or deep_equal(new["spec"], old["spec"]):
        return
    for field in CONTAINER_LISTS:
        if len(new["spec"].get(field) or []) != len(old["spec"].get(field) or []):
            reason = "Forbidden: pod updates may not add or remove containers"
            raise invalid(new, f"spec.{field}", reason)
    for field, index, container in containers_of(new["spec"]):
        _check_image(new, f"spec.{field}[{index}]", container)
    _check_tolerations(new, old)
    permitted = _with_permitted_changes(new, old)
    path = next(iter(changed_paths(old["spec"], permitted, "spec")), None)
    if path is not None:
        raise invalid(new, "spec", f"Forbidden: {_MUTABLE_FIELDS}: {path}", path)


def _check_fixed_annotations(new: Object, old: Object) -> None:
    before, after = annotations_of(old), annotations_of(new)
    for key in sorted(before.keys() | after.keys()):
        if key.startswith(_FIXED_ANNOTATIONS) and before.get(key) != after.get(key):
            reason = "Forbidden: may not add, remove or update"
            raise invalid(new, f"metadata.annotations[{key}]", reason)


def _check_tolerations(new: Object, old: Object) -> None:
    def without_seconds(toleration: Object) -> Object:
        return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}

    tolerations = new["spec"].get("tolerations") or []
    kept = [without_seconds(toleration) for toleration in tolerations]
    for index, toleration in enumerate(old["spec"].get("tolerations") or []):
        if without_seconds(toleration) not in kept:
            reason = "Forbidden: existing toleration can not be modified except its "
            reason += "tolerationSeconds"
            raise invalid(new, f"spec.tolerations[{index}]", reason)
    for index, toleration in enumerate(tolerations):
        path = f"spec.tolerations[{index}]"
        if toleration.get("tolerationSeconds") is not None and (
            toleration.get("effect") != "NoExecute"
        ):
            reason = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            raise invalid(new, f"{path}.effect", f"Invalid value: {reason}")


def _with_permitted_changes(new: Object, old_pod: Object) -> Object:
    """Returns the new spec of a pod with the images and tolerations of the old pod.

    An update may change images and tolerations. So each remaining difference between the result and
    the old spec is a change that the API server refuses.
    """
    spec, before = dict(new["spec"]), old_pod["spec"]
    for field in CONTAINER_LISTS:
        if field in spec:
            pairs = zip(spec[field], before[field], strict=True)
            spec[field] = [{**container, "image": old["image"]} for container, old in pairs]
    if "tolerations" in before:
        spec["tolerations"] = before["tolerations"]
    else:
        spec.pop("tolerations", None)
    return spec


def storage_of(claim: Object) -> str:
    """Returns the storage that a claim requests, or "0" if the claim has no request."""
    requests = (claim["spec"].get("resources") or {}).get("requests") or {}
    return str(requests.get("storage", "0"))


def check_service_update(new: Object, old: Object) -> None:
    """Raises InvalidError if an update changes the cluster IP of a Service.

    Args:
        new: the Service as the update would store it.
        old: the stored Service.
    """
    before = old["spec"].get("clusterIP")
    if before is not None and new["spec"].get("clusterIP") != before:
        raise invalid(new, "spec.clusterIPs[0]", "Invalid value: may not change once set")


def check_claim_update(new: Object, old: Object) -> None:
    """Raises InvalidError if an update changes an immutable field of a claim's spec.

    The volume name and, for a bound claim, the storage request and the attributes class may change.
    The class cannot be removed once the volume has one.
    The request may become smaller as long as it stays above the capacity of the volume. So users
    can recover from a failed expansion. Source: ValidatePersistentVolumeClaimUpdate.

    Args:
        new: the claim as the update would store it.
        old: the stored claim.
    """
    check_metadata_update(new, old)
    before, after = dict(old["spec"]), dict(new.get("spec") or {})
    bound = (old.get("status") or {}).get("phase") == "Bound"
    if bound and ((after.get("resources") or {}).get("requests") or {}).get("storage"):
        resources = after["resources"]
        requests = {**resources["requests"], "storage": storage_of(old)}
        after["resources"] = {**resources, "requests": requests}
    if "volumeName" not in before:
        after.pop("volumeName", None)
    old_class = before.get("volumeAttributesClassName")
    new_class = after.get("volumeAttributesClassName")
    if bound:
        for spec in (before, after):
            spec.pop("volumeAttributesClassName", None)
    path = next(iter(changed_paths(before, after, "spec")), None)
    if path is not None:
        reason = (
            "Forbidden: spec is immutable after creation except resources.requests and "
            "volumeAttributesClassName for bound claims"
        )
        raise invalid(new, "spec", reason, path)
    capacity = ((old.get("status") or {}).get("capacity") or {}).get("storage", "0")
    if compare(storage_of(new), storage_of(old)) < 0 and compare(storage_of(new), capacity) <= 0:
        path = "spec.resources.requests.storage"
        raise invalid(new, path, "Forbidden: field can not be less than status.capacity")
    has_class = (old.get("status") or {}).get("currentVolumeAttributesClassName") is not None
    if new_class != old_class and not new_class and has_class:
        value = "nil" if new_class is None else "empty string"
        reason = (
            f"Forbidden: update to {value} is forbidden when "
            "status.currentVolumeAttributesClassName is not nil"
        )
        raise invalid(new, "spec.volumeAttributesClassName", reason)


def check_revision(revision: Object) -> None:
    """Raises InvalidError if a ControllerRevision has no data or a negative number."""
    check_metadata(revision)
    if revision.get("data") is None:
        raise invalid(revision, "data", "Required value: data is mandatory")
    number = revision["revision"]
    if not isinstance(number, int) or number < 0:
        reason = f"Invalid value: {number}: must be greater than or equal to 0"
        raise invalid(revision, "revision", reason)


def check_revision_update(new: Object, old: Object) -> None:
    """Raises InvalidError if an update changes the data of a ControllerRevision.

    The revision number and the metadata may change.

    Args:
        new: the ControllerRevision as the update would store it.
        old: the stored ControllerRevision.
    """
    check_metadata_update(new, old)
    check_revision(new)
    if not deep_equal(new["data"], old["data"]):
        raise invalid(new, "data", "Invalid value: field is immutable")


def with_resources(old: Object, requested: Object) -> Object:
    """Returns the pod `old` with the resources that its containers have in `requested`.

    All other differences between the two pods are ignored. Raises InvalidError if resources other
    than cpu and memory change, or if a request or limit is removed. Sources:
    pkg/registry/core/pod/strategy.go (podResizeStrategy) and ValidatePodResize.
    """
    requested_resources = {
        container["name"]: container.get("resources", {})
        for _, _, container in containers_of(requested["spec"])
    }
    spec = dict(old["spec"])
    for field in CONTAINER_LISTS:
        if field in spec:
            spec[field] = [
                {
                    **container,
                    "resources": requested_resources.get(container["name"], container["resources"]),
                }
                if field == "containers" or container.get("restartPolicy") == "Always"
                else container
                for container in spec[field]
            ]
    new = {**old, "spec": stored_spec(spec)}
    _check_resize(new, old)
    return new


def _check_resize(new: Object, old: Object) -> None:
    for field, index, container in containers_of(new["spec"]):
        check_amounts(new, f"spec.{field}[{index}]", container)
    if qos_class(new["spec"]) != qos_class(old["spec"]):
        reason = "Pod QOS Class may not change as a result of resizing"
        raise invalid(new, "spec", f"Forbidden: {reason}")
    pairs = zip(containers_of(new["spec"]), containers_of(old["spec"]), strict=True)
    for (field, index, after), (_, _, before) in pairs:
        path = f"spec.{field}[{index}].resources"
        old_sizes, requested = sizes_of(before["resources"]), sizes_of(after["resources"])
        for kind, _ in removed_sizes(old_sizes, requested):
            reason = f"Forbidden: resource {kind} cannot be removed"
            raise invalid(new, f"{path}.{kind}", reason)
        claims = [container["resources"].get("claims") for container in (before, after)]
        if not_resizable(old_sizes, requested) or claims[0] != claims[1]:
            raise invalid(new, path, "Forbidden: only cpu and memory resources are mutable")
