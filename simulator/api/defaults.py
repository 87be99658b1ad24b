"""Defaults of custom resources and Services; the defaults of pods are in tapp/kube/stored.py."""

from collections.abc import Iterator
from random import Random

from simulator.objects.objects import Json, Object
from tapp.kube.stored import encoded

CONTAINER_LISTS = ("initContainers", "containers")


def containers_of(spec: Object) -> Iterator[tuple[str, int, Object]]:
    """Yields (list name, index, container) for all containers and init containers of a pod spec."""
    for field in CONTAINER_LISTS:
        for index, container in enumerate(spec.get(field) or []):
            yield field, index, container


def fill_in(value: Json, schema: Object) -> Json:
    """Returns a value of a custom resource with the defaults that its OpenAPI schema declares.

    Defaults are filled in at every depth. The caller passes the complete object first; the function
    calls itself for the inner values.
    """
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
    """Returns a Service spec with defaults, a cluster IP, and node ports if its type has them.

    `rng` chooses the address and the ports. Sources: pkg/apis/core/v1/defaults.go
    (SetDefaults_Service), pkg/registry/core/service.
    """
    spec = encoded(spec)
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
