"""What the API server fills into a pod, and how it re-writes what it was given.

Source: Kubernetes' pkg/apis/core/v1/defaults.go (defaults), the Go types of core/v1 (which empty
fields vanish when an object is encoded), and resource.Quantity.
"""

from collections.abc import Iterator
from random import Random
from typing import Any

from simulator.objects.objects import Json, Object
from simulator.objects.quantity import canonical

CONTAINER_LISTS = ("initContainers", "containers")

# Maps of user data: keys are not fields, so nothing inside is dropped.
_DATA_MAPS = frozenset(
    {"labels", "annotations", "nodeSelector", "matchLabels", "volumeAttributes", "options"}
)
_QUANTITIES = ("sizeLimit", "divisor")
_QUANTITY_MAPS = frozenset({"limits", "requests", "overhead", "capacity"})
# Fields kept though empty: pointers, and those without omitempty.
_KEPT_WHEN_FALSE = frozenset(
    {
        "allowPrivilegeEscalation", "automountServiceAccountToken", "blockOwnerDeletion",
        "controller", "enableServiceLinks", "hostUsers", "optional", "privileged",
        "readOnlyRootFilesystem", "runAsNonRoot", "setHostnameAsFQDN", "shareProcessNamespace",
    }
)  # fmt: skip
_DROPPED_WHEN_ZERO = frozenset(
    {
        "hostPort", "initialDelaySeconds", "periodSeconds", "timeoutSeconds", "successThreshold",
        "failureThreshold", "partition", "generation", "observedGeneration",
    }
)  # fmt: skip
_KEPT_WHEN_BLANK = frozenset(
    {"name", "type", "key", "path", "mountPath", "storageClassName", "service"}
)
_DROPPED_WHEN_EMPTY_MAP = _DATA_MAPS | _QUANTITY_MAPS
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_VOLUME_MODES = ("secret", "configMap", "downwardAPI", "projected")


def encode(value: Json, field: str = "") -> Json:
    """Return the value as the API server would store it: zero values of omitempty fields gone."""
    if isinstance(value, dict):
        return _encode_map(value, field)
    if isinstance(value, list):
        return [encode(item, f"{field}[]") for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _encode_map(value: Object, field: str) -> Object:
    if field in _DATA_MAPS:
        return value
    if field in _QUANTITY_MAPS:
        return {key: canonical(amount) for key, amount in value.items() if amount is not None}
    encoded = {}
    for key, inner in value.items():
        is_quantity = key in _QUANTITIES and inner is not None
        inner = canonical(inner) if is_quantity else encode(inner, key)  # noqa: PLW2901
        if not _vanishes(key, inner, field):
            encoded[key] = inner
    return encoded


def _vanishes(key: str, value: Json, holder: str) -> bool:
    if value is None or value == []:
        return True
    if value is False:
        return key not in _KEPT_WHEN_FALSE
    if value == {}:
        return key in _DROPPED_WHEN_EMPTY_MAP
    if value == "":
        if key == "value":
            return holder != "httpHeaders[]"
        return key not in _KEPT_WHEN_BLANK or holder == "tolerations[]"
    return bool(value == 0 and key in _DROPPED_WHEN_ZERO)


def containers_of(spec: Object) -> Iterator[tuple[str, int, Object]]:
    """Yield (list name, index, container) over init and main containers."""
    for field in CONTAINER_LISTS:
        for index, container in enumerate(spec.get(field) or []):
            yield field, index, container


def _pull_policy(image: str) -> str:
    if "@" in image:
        return "IfNotPresent"
    tag = image.rpartition("/")[2].partition(":")[2]
    return "Always" if tag in ("", "latest") else "IfNotPresent"


def _filled(holder: Object, key: str, **defaults: Json) -> Object:
    """Return the holder; what it has under the key gets these defaults."""
    return {**holder, key: {**defaults, **holder[key]}} if key in holder else holder


def _default_handler(handler: Object) -> Object:
    return _filled(handler, "httpGet", path="/", scheme="HTTP")


def _default_probe(probe: Object) -> Object:
    filled = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1}
    probe = _default_handler({**filled, "failureThreshold": 3, **probe})
    return _filled(probe, "grpc", service="")


def _default_env(variable: Object) -> Object:
    if not variable.get("valueFrom"):
        return variable
    source = _filled(variable["valueFrom"], "fieldRef", apiVersion="v1")
    return {**variable, "valueFrom": _filled(source, "resourceFieldRef", divisor="0")}


def _default_resources(resources: Object) -> Object:
    limits = resources.get("limits")
    if not limits:
        return resources
    return {**resources, "requests": {**limits, **(resources.get("requests") or {})}}


def default_container(container: Object, *, host_network: bool = False) -> Object:
    """Fill in what a container leaves out."""
    filled: Object = {
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": _pull_policy(str(container.get("image", ""))),
        "resources": {},
        **container,
    }
    filled["resources"] = _default_resources(filled["resources"])
    if "ports" in filled:
        filled["ports"] = [_default_port(port, host_network) for port in filled["ports"]]
    if "env" in filled:
        filled["env"] = [_default_env(variable) for variable in filled["env"]]
    for probe in _PROBES:
        if probe in filled:
            filled[probe] = _default_probe(filled[probe])
    if "lifecycle" in filled:
        hooks = filled["lifecycle"].items()
        filled["lifecycle"] = {moment: _default_handler(handler) for moment, handler in hooks}
    return filled


def _default_port(port: Object, host_network: bool) -> Object:
    filled = {"protocol": "TCP", **port}
    if host_network:
        filled.setdefault("hostPort", filled.get("containerPort"))
    return filled


def _default_items(source: Object) -> Object:
    if not source.get("items"):
        return source
    items = [_filled(item, "fieldRef", apiVersion="v1") for item in source["items"]]
    return {**source, "items": items}


def _default_projection(source: Object) -> Object:
    if "downwardAPI" in source:
        return {**source, "downwardAPI": _default_items(source["downwardAPI"])}
    return _filled(source, "serviceAccountToken", expirationSeconds=3600)


def _default_volume(volume: Object) -> Object:
    if volume.keys() == {"name"}:
        return {**volume, "emptyDir": {}}
    filled = _filled(volume, "hostPath", type="")
    if "image" in filled:
        policy = _pull_policy(str(filled["image"].get("reference", "")))
        filled = _filled(filled, "image", pullPolicy=policy)
    filled = dict(filled)
    for field in _VOLUME_MODES:
        if field in filled:
            filled[field] = _default_items({"defaultMode": 420, **filled[field]})
    if "sources" in (filled.get("projected") or {}):
        sources = [_default_projection(source) for source in filled["projected"]["sources"]]
        filled["projected"]["sources"] = sources
    return filled


def default_pod_spec(spec: Object) -> Object:
    """Fill in what a pod's spec leaves out."""
    filled: dict[str, Any] = {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "schedulerName": "default-scheduler",
        "enableServiceLinks": True,
        **spec,
    }
    host_network = bool(filled.get("hostNetwork"))
    for field in CONTAINER_LISTS:
        if field in filled:
            filled[field] = [
                default_container(container, host_network=host_network)
                for container in filled[field]
            ]
    if "volumes" in filled:
        filled["volumes"] = [_default_volume(volume) for volume in filled["volumes"]]
    return filled


def fill_in(value: Json, schema: Object) -> Json:
    """Add the defaults that a custom resource's schema names, as the API server does on writes."""
    if isinstance(value, list) and "items" in schema:
        return [fill_in(item, schema["items"]) for item in value]
    if not isinstance(value, dict):
        return value
    known, rest = schema.get("properties") or {}, schema.get("additionalProperties")
    missing = {
        key: inner["default"]
        for key, inner in known.items()
        if "default" in inner and key not in value
    }
    return {
        key: fill_in(inner, known.get(key) or (rest if isinstance(rest, dict) else {}))
        for key, inner in {**value, **missing}.items()
    }


def default_service_spec(spec: Object, rng: Random) -> Object:
    """Fill in a Service: defaults, an address, and ports on nodes where it is to have some.

    Source: pkg/apis/core/v1/defaults.go (SetDefaults_Service), pkg/registry/core/service.
    """
    spec = encode(spec)
    kind = spec.get("type", "ClusterIP")
    on_nodes = kind in {"NodePort", "LoadBalancer"}
    if kind != "ExternalName":
        address = f"10.96.{rng.randrange(256)}.{rng.randrange(1, 255)}"
        filled = {
            "clusterIP": address,
            "internalTrafficPolicy": "Cluster",
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
        }
        spec = {**filled, **spec}
        spec["clusterIPs"] = [spec["clusterIP"]]
    if on_nodes:
        spec = {"externalTrafficPolicy": "Cluster", **spec}
    ports = [
        {"protocol": "TCP", "targetPort": port["port"], **port} for port in spec.get("ports") or ()
    ]
    for port in ports if on_nodes else ():
        port.setdefault("nodePort", rng.randrange(30_000, 32_768))
    return {
        "sessionAffinity": "None", "type": kind, **spec, **({"ports": ports} if ports else {})
    }  # fmt: skip
