"""A pod spec as the API server stores it: without empty fields, and with defaults.

The service and the simulator use this table of Kubernetes' defaults. Sources, of Kubernetes 1.37:

- pkg/apis/core/v1/defaults.go, zz_generated.defaults.go and conversion.go.
- The types of core/v1. The API server drops zero values of fields that are no pointers and have the
  tag `omitempty`.

tests/e2e/test_stored_pods.py compares every field with a real API server. Defaults that only newer
API servers have are not included, because two specs have to compare the same way with each
supported API server (`tapp.kube.resources.with_pod_limits`).
"""

from types import MappingProxyType
from typing import Any, Final, NamedTuple

from tapp.kube.canonical import quantity
from tapp.kube.images import pull_policy
from tapp.kube.resources import rounded, with_pod_resources, with_requests

Document = dict[str, Any]

# Maps whose keys the author chooses.
_FREE_MAPS: Final = frozenset(
    {
        *("labels", "annotations", "nodeSelector", "matchLabels", "userAnnotations"),
        *("volumeAttributes", "options"),
    }
)
# Maps whose values are quantities.
_QUANTITY_MAPS: Final = frozenset({"limits", "requests", "overhead", "capacity"})
# Fields whose value is a quantity.
_QUANTITIES: Final = ("sizeLimit", "divisor")
# Maps that the API server drops if they are empty. It keeps other empty maps, such as `emptyDir:
# {}`.
_ABSENT_MAPS: Final = _FREE_MAPS | _QUANTITY_MAPS

# Numbers that the API server drops if they are 0.
_ABSENT_ZEROS: Final = frozenset(
    {
        *("failureThreshold", "hostPort", "initialDelaySeconds", "partition", "periodSeconds"),
        *("successThreshold", "timeoutSeconds", "nodePort", "healthCheckNodePort"),
        *("generation", "observedGeneration"),
    }
)
# Booleans that the API server drops if they are false.
_ABSENT_FALSE: Final = frozenset(
    {
        *("chapAuthDiscovery", "chapAuthSession", "hostIPC", "hostNetwork", "hostPID"),
        *("readOnly", "sslEnabled", "stdin", "stdinOnce", "tty", "publishNotReadyAddresses"),
    }
)
# Texts that the API server drops if they are empty.
_ABSENT_BLANKS: Final = frozenset(
    {
        *("action", "apiVersion", "audience", "certificateChainPath", "containerName"),
        *("credentialBundlePath", "datasetName", "datasetUUID", "directory", "dnsPolicy"),
        *("effect", "fsType", "group", "host", "hostIP", "hostname", "image", "imagePullPolicy"),
        *("iscsiInterface", "key", "keyPath", "keyType", "keyring", "level", "medium", "name"),
        *("nodeName", "operator", "path", "pool", "prefix", "priorityClassName", "protocol"),
        *("protectionDomain", "pullPolicy", "reference", "request", "restartPolicy", "revision"),
        *("role", "schedulerName", "scheme", "secretFile", "secretName", "serviceAccount"),
        *("serviceAccountName", "signerName", "storageMode", "storagePolicyID", "storagePool"),
        *("storagePolicyName", "subPath", "subPathExpr", "subdomain", "targetContainerName"),
        *("tenant", "terminationMessagePath", "terminationMessagePolicy", "type", "user"),
        *("value", "volumeName", "volumeNamespace", "workingDir"),
        # Fields of Services
        *("clusterIP", "externalName", "externalTrafficPolicy", "loadBalancerIP"),
        "sessionAffinity",
    }
)
# Default of a probe's `httpGet` with the feature gate H2CContainerProbe (1.37, off by default).
# Without the gate the field is dropped. So this value never makes a difference.
_PROBED_BY: Final = ("protocol", "HTTP1")
# Field -> its fields whose zero value the API server keeps, although it drops fields of the same
# name in other objects. Here these fields are pointers, or the API server always writes them.
_POINTERS: Final = {
    "azureDisk": {"fsType", "kind", "readOnly"},
    "csi": {"fsType", "readOnly"},
    "hostPath": {"type"},
    "clientIP": {"timeoutSeconds"},
    "clusterTrustBundle": {"name", "signerName"},
    "options[]": {"value"},
    "containers[]": {"restartPolicy"},
    "initContainers[]": {"restartPolicy"},
    "ephemeralContainers[]": {"restartPolicy"},
    "httpHeaders[]": {"value"},
    "sysctls[]": {"value"},
}


def encoded(value: Any, field: str = "") -> Any:
    """Returns a value without nulls and without the zero values that the API server drops.

    Args:
        value: the value.
        field: the name of the field that has the value; `NAME[]` for an entry of the list NAME.
    """
    if isinstance(value, dict):
        return _encoded_map(value, field)
    if isinstance(value, list):
        return [encoded(item, f"{field}[]") for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _encoded_map(value: Document, field: str) -> Document:
    """Returns a map without nulls and without the zero values that the API server drops.

    Args:
        value: the map.
        field: the name of the field that has the map; `NAME[]` for an entry of the list NAME.
    """
    if field in _FREE_MAPS:
        return value
    if field in _QUANTITY_MAPS:
        return {key: rounded(_amount(item)) for key, item in value.items() if item is not None}
    kept, result = _POINTERS.get(field, ()), {}
    for key, item in value.items():
        if key in _QUANTITIES and item is not None:
            result[key] = _amount(item)
            continue
        inner = encoded(item, key)
        if inner is None or inner == [] or (key not in kept and _is_absent(key, inner)):
            continue
        result[key] = inner
    return result


def _amount(value: Any) -> Any:
    """Returns a quantity in the API server's notation; returns an invalid quantity unchanged."""
    if isinstance(value, str):
        return quantity(value.strip())
    return quantity(value) if isinstance(value, int | float) else value


def _is_absent(key: str, value: Any) -> bool:
    """Returns True if the API server drops a field with this key and value."""
    if value is False:
        return key in _ABSENT_FALSE
    if isinstance(value, dict):
        return not value and key in _ABSENT_MAPS
    if isinstance(value, str):
        return (not value and key in _ABSENT_BLANKS) or (key, value) == _PROBED_BY
    return bool(value == 0 and key in _ABSENT_ZEROS)


class _Kind(NamedTuple):
    """A type of core/v1: the defaults of its fields, and the types of their values."""

    defaults: Any = MappingProxyType({})  # Field -> default.
    parts: Any = MappingProxyType({})  # Field -> type of its value, or of the entries of its list.


# Default of `terminationGracePeriodSeconds`.
GRACE: Final = 30
# Defaults of a probe.
PROBE: Final = {
    "timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3,
}  # fmt: skip
_MODE: Final = {"defaultMode": 420}
_CONTAINERS: Final = ("containers", "initContainers", "ephemeralContainers")

# Type of core/v1 -> its defaults that do not depend on other fields.
KINDS: Final = {
    "PodSpec": _Kind(
        {
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": GRACE,
            "dnsPolicy": "ClusterFirst",
            "securityContext": {},
            "schedulerName": "default-scheduler",
            "enableServiceLinks": True,
        },
        {
            **dict.fromkeys(_CONTAINERS, "Container"),
            "volumes": "Volume",
            "affinity": "Affinity",
            "securityContext": "PodSecurityContext",
        },
    ),
    "PodSecurityContext": _Kind(parts={"sysctls": "WithValue"}),
    "WithValue": _Kind({"value": ""}),
    "Affinity": _Kind(
        parts={
            "nodeAffinity": "NodeAffinity",
            "podAffinity": "PodAffinity",
            "podAntiAffinity": "PodAffinity",
        }
    ),
    "NodeAffinity": _Kind(parts={"preferredDuringSchedulingIgnoredDuringExecution": "Preferred"}),
    "Preferred": _Kind({"preference": {}}),
    "PodAffinity": _Kind(
        parts={"preferredDuringSchedulingIgnoredDuringExecution": "PreferredPods"}
    ),
    "PreferredPods": _Kind({"podAffinityTerm": {}}),
    "Container": _Kind(
        {
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
            "resources": {},
        },
        {
            "ports": "ContainerPort",
            "env": "EnvVar",
            "livenessProbe": "Probe",
            "readinessProbe": "Probe",
            "startupProbe": "Probe",
            "lifecycle": "Lifecycle",
        },
    ),
    "ContainerPort": _Kind({"protocol": "TCP"}),
    "EnvVar": _Kind(parts={"valueFrom": "EnvVarSource"}),
    "EnvVarSource": _Kind(
        parts={
            "fieldRef": "FieldRef",
            "resourceFieldRef": "ResourceFieldRef",
            "fileKeyRef": "FileKeyRef",
        }
    ),
    "FieldRef": _Kind({"apiVersion": "v1"}),
    "ResourceFieldRef": _Kind({"divisor": "0"}),
    "FileKeyRef": _Kind({"optional": False}),
    "Probe": _Kind(PROBE, {"httpGet": "HTTPGet", "grpc": "GRPC"}),
    "HTTPGet": _Kind({"path": "/", "scheme": "HTTP"}, {"httpHeaders": "WithValue"}),
    "GRPC": _Kind({"service": ""}),
    "Lifecycle": _Kind(parts={"postStart": "Handler", "preStop": "Handler"}),
    "Handler": _Kind(parts={"httpGet": "HTTPGet", "sleep": "Sleep"}),
    "Sleep": _Kind({"seconds": 0}),
    "Volume": _Kind(
        parts={
            "hostPath": "HostPath",
            "secret": "WithMode",
            "configMap": "WithMode",
            "downwardAPI": "DownwardAPI",
            "projected": "Projected",
            "iscsi": "ISCSI",
            "rbd": "RBD",
            "azureDisk": "AzureDisk",
            "scaleIO": "ScaleIO",
            "ephemeral": "Ephemeral",
        }
    ),
    "HostPath": _Kind({"type": ""}),
    "WithMode": _Kind(_MODE),
    "DownwardAPI": _Kind(_MODE, {"items": "DownwardAPIItem"}),
    "DownwardAPIItem": _Kind(
        parts={"fieldRef": "FieldRef", "resourceFieldRef": "ResourceFieldRef"}
    ),
    "Projected": _Kind(_MODE, {"sources": "Projection"}),
    "Projection": _Kind(
        parts={"downwardAPI": "ProjectedDownwardAPI", "serviceAccountToken": "Token"}
    ),
    "ProjectedDownwardAPI": _Kind(parts={"items": "DownwardAPIItem"}),
    "Token": _Kind({"expirationSeconds": 3600}),
    "ISCSI": _Kind({"iscsiInterface": "default", "lun": 0}),
    "RBD": _Kind({"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"}),
    "AzureDisk": _Kind(
        {"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": False, "kind": "Shared"}
    ),
    "ScaleIO": _Kind({"storageMode": "ThinProvisioned", "fsType": "xfs"}),
    "Ephemeral": _Kind(parts={"volumeClaimTemplate": "ClaimTemplate"}),
    "ClaimTemplate": _Kind({"metadata": {}}, {"spec": "ClaimSpec"}),
    "ClaimSpec": _Kind({"volumeMode": "Filesystem", "resources": {}}),
}


def stored_spec(spec: Document) -> Document:
    """Returns a pod spec as the API server stores it if admission does not change it.

    `spec` itself is not changed.
    """
    filled: Document = _filled(encoded(spec), "PodSpec")
    # The API server gives the deprecated field `serviceAccount` and its successor the same value
    # (conversion.go).
    if account := filled.get("serviceAccountName") or filled.get("serviceAccount"):
        filled |= {"serviceAccountName": account, "serviceAccount": account}
    seconds = filled["terminationGracePeriodSeconds"]
    # Old pods may have a negative grace period; it stands for 1 s (pkg/registry/core/pod).
    if isinstance(seconds, int) and seconds < 0:
        filled["terminationGracePeriodSeconds"] = 1
    on_host = bool(filled.get("hostNetwork"))
    for field in _CONTAINERS:
        if isinstance(filled.get(field), list):
            filled[field] = [_container(item, on_host) for item in filled[field]]
    if isinstance(filled.get("volumes"), list):
        filled["volumes"] = [_volume(item) for item in filled["volumes"]]
    return with_pod_resources(filled)


def stored_claim(spec: Document) -> Document:
    """Returns a claim's spec as the API server stores it if admission does not change it."""
    filled: Document = _filled(encoded(spec), "ClaimSpec")
    return filled


def admitted_spec(spec: Document) -> Document:
    """Returns a stored pod spec with the fields that two admission plugins fill in.

    The plugins are ServiceAccount and Priority. Only values that depend on the pod alone are filled
    in. A PriorityClass of a cluster may give the pod another priority. The API server would then
    refuse a spec with these values.
    """
    account = spec.get("serviceAccountName") or "default"
    filled = {"priority": 0, "preemptionPolicy": "PreemptLowerPriority", **spec}
    return {**filled, "serviceAccountName": account, "serviceAccount": account}


def _filled(value: Any, kind: str) -> Any:
    """Returns a value with the defaults of its type and of the types of its parts.

    Args:
        value: the value, or a list of values.
        kind: the type of the value, or of each entry of the list: a key of `KINDS`.
    """
    if isinstance(value, list):
        return [_filled(item, kind) for item in value]
    if not isinstance(value, dict):
        return value
    defaults, parts = KINDS[kind]
    found = {**defaults, **value}
    for field, part in parts.items():
        if field in value:
            found[field] = _filled(value[field], part)
    return found


def _container(container: Any, on_host: bool) -> Any:
    """Returns a container with the defaults that depend on its other fields, or on the pod.

    `on_host` is True if the pod uses the network of its node (`hostNetwork`).
    """
    if not isinstance(container, dict):
        return container
    found = {
        "imagePullPolicy": pull_policy(container.get("image")),
        **container,
        "resources": with_requests(container["resources"]),
    }
    if on_host and isinstance(ports := found.get("ports"), list):
        found["ports"] = [_host_port(port) for port in ports]
    return found


def _host_port(port: Any) -> Any:
    """Returns a container port of a pod that uses the network of its node, with a `hostPort`.

    The default of `hostPort` is the `containerPort`. The caller has checked `hostNetwork`.
    """
    if not isinstance(port, dict) or "containerPort" not in port:
        return port
    return {"hostPort": port["containerPort"], **port}


def _volume(volume: Any) -> Any:
    """Returns a volume with the defaults that depend on its other fields."""
    if not isinstance(volume, dict):
        return volume
    # A volume without a source is an emptyDir.
    if volume.keys() == {"name"}:
        return {**volume, "emptyDir": {}}
    image = volume.get("image")
    if not isinstance(image, dict):
        return volume
    return {**volume, "image": {"pullPolicy": pull_policy(image.get("reference")), **image}}
