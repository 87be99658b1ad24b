"""Rules for fields that exclude or need each other, from which `limits.py` builds its tables.

A rule takes an object and returns a sentence on the object, such as `has exec and httpGet`. It
returns an empty string if the API server accepts the object. The sentence does not name the path of
the object. Parts of a wrong type are skipped, because the CRD or the API server refuses them.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from tapp.kube.limit_rules import LABEL_VALUE, QUALIFIED, STANDARD_RESOURCES, Rule
from tapp.kube.parts import map_in, maps_of, text_of
from tapp.kube.resources import requests_beyond_limits, sizes_of
from tapp.kube.stored import GRACE
from tapp.words.quoted import quoted
from tapp.words.ranges import name_list

# A rule for an object as a whole: returns a sentence on the object if the API server would refuse
# it, and an empty string if the API server accepts it.
Whole = Callable[[Mapping[str, Any]], str]


class Entries(NamedTuple):
    """The rules for the keys and the values of a map such as labels."""

    key: Rule
    value: Rule


class Object(NamedTuple):
    """The limits of an object's fields, and the rules for the object as a whole.

    `fields` has the shape of the object: field -> its limits.
    """

    fields: Mapping[str, Any]
    wholes: tuple[Whole, ...]


def single(what: str, *fields: str, needed: bool = False) -> Whole:
    """Returns the rule that an object may have at most one of the given fields.

    Args:
        what: a noun for these fields, for the message, such as `handler`.
        fields: the names of the fields.
        needed: True if the object must have exactly one of the fields.
    """

    def check(value: Mapping[str, Any]) -> str:
        # The API server reads null and an empty text as a field that is not set.
        found = [key for key in fields if value.get(key) not in (None, "")]
        if len(found) > 1:
            return f"has {name_list(sorted(found))}, and only one {what} is allowed"
        # An unknown field may be an alternative that only newer API servers know.
        if needed and not found and all(key in _BESIDE for key in value):
            return f"has no {what}, and needs one of {', '.join(fields)}"
        return ""

    return check


# Fields that an object may have in addition to one of the fields that exclude each other.
_BESIDE = frozenset(
    {
        *("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold"),
        *("failureThreshold", "terminationGracePeriodSeconds"),
    }
)


def needs(field: str) -> Whole:
    """Returns the rule that an object must have the given field, with a value that is not empty."""

    def check(value: Mapping[str, Any]) -> str:
        return f"has no {field}" if value.get(field) in (None, "", []) else ""

    return check


def value_or_source(value: Mapping[str, Any]) -> str:
    """Returns a sentence on an environment variable with both a value and a source, or ""."""
    both = value.get("value") and isinstance(value.get("valueFrom"), dict)
    return "has value and valueFrom, and only one of them is allowed" if both else ""


def only_with(field: str, other: str, needed: str) -> Whole:
    """Returns the rule that a field may be set only if another field has a certain value.

    Args:
        field: the field that may be set only then.
        other: the other field.
        needed: the value that the other field must have.
    """

    def check(value: Mapping[str, Any]) -> str:
        if value.get(field) is None or value.get(other) == needed:
            return ""
        return f"has {field}, and that is allowed only with {other}: {needed}"

    return check


def not_with_empty_key(value: Mapping[str, Any]) -> str:
    """Returns a sentence on a toleration that has neither a key nor the operator Exists, or "".

    A toleration without a key tolerates all taints, so it needs the operator Exists.
    """
    wrong = not value.get("key") and value.get("operator") != "Exists"
    return "has no key, and that is allowed only with operator: Exists" if wrong else ""


def toleration_value(value: Mapping[str, Any]) -> str:
    """Returns a sentence on the invalid value of a toleration, or an empty string.

    A value is invalid if it has a wrong form, or if the operator is Exists, which takes no value.
    """
    text, operator = value.get("value"), value.get("operator") or "Equal"
    if operator == "Exists" and text:
        return f"has value {quoted(text)}, and that is not allowed with operator: Exists"
    wrong = LABEL_VALUE(text) if operator == "Equal" else ""
    return f"has value {quoted(text)}: {wrong}" if wrong else ""


# Operator of a node selector or label selector -> True if it needs values, False if it may not have
# values.
SELECTOR_OPERATORS = {"In": True, "NotIn": True, "Exists": False, "DoesNotExist": False}


def selector_values(value: Mapping[str, Any]) -> str:
    """Returns a sentence on a selector that lacks values or may not have any, or an empty string.

    The operator of the selector decides whether it needs values.
    """
    operator, values = value.get("operator"), value.get("values") or []
    if not isinstance(operator, str) or not isinstance(values, list):
        return ""
    needs = SELECTOR_OPERATORS.get(operator)
    if needs is not None and needs != bool(values):
        rule = "needs values" if needs else "allows no values"
        return f"has operator {operator}, which {rule}"
    if operator in ("Gt", "Lt") and len(values) != 1:
        return f"has operator {operator}, which needs exactly one value"
    return ""


def local_profile(value: Mapping[str, Any]) -> str:
    """Returns a sentence on a security profile with a missing or needless `localhostProfile`, or
    "".

    The field names a file on the node. It is needed if the type is Localhost, and invalid if it is
    not.
    """
    is_local = value.get("type") == "Localhost"
    if is_local and not value.get("localhostProfile"):
        return "has type Localhost, and then needs localhostProfile"
    if not is_local and value.get("localhostProfile") is not None:
        return "has localhostProfile, and that is allowed only with type: Localhost"
    return ""


def no_grace_period(value: Mapping[str, Any]) -> str:
    """Returns a sentence on a readiness probe with a grace period, or an empty string.

    A failed readiness probe stops no container, so the probe may not have a grace period.
    """
    wrong = value.get("terminationGracePeriodSeconds") is not None
    return (
        "has terminationGracePeriodSeconds, which a readiness probe may not have" if wrong else ""
    )


def escalation(value: Mapping[str, Any]) -> str:
    """Returns a sentence on a privileged container that forbids privilege escalation, or an empty
    string.

    A privileged container could always escalate its privileges.
    """
    if value.get("privileged") is True and value.get("allowPrivilegeEscalation") is False:
        return "has privileged: true and allowPrivilegeEscalation: false, which exclude each other"
    return ""


def propagation(value: Mapping[str, Any]) -> str:
    """Returns a sentence on an unprivileged container that propagates mounts to its node, or ""."""
    if map_in(value, "securityContext").get("privileged") is True:
        return ""
    for mount in maps_of(value.get("volumeMounts")):
        if mount.get("mountPropagation") == "Bidirectional":
            return "has mountPropagation: Bidirectional, which only privileged containers may have"
    return ""


def restart_rules(value: Mapping[str, Any]) -> str:
    """Returns a sentence on a container with restart rules and no restart policy, or ""."""
    wrong = value.get("restartPolicyRules") and not value.get("restartPolicy")
    return "has restartPolicyRules, and then needs restartPolicy" if wrong else ""


def plain_init_container(value: Mapping[str, Any]) -> str:
    """Returns a sentence on an init container with a probe or a lifecycle hook, or an empty string.

    Only native sidecars (init containers with `restartPolicy: Always`) may have probes and hooks.
    """
    if value.get("restartPolicy") == "Always":
        return ""
    names = ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
    if found := next((name for name in names if value.get(name) is not None), ""):
        return f"has {found}, and an init container may have that only with restartPolicy: Always"
    return ""


_HUGE_PAGES = "hugepages-"


def amounts(value: Mapping[str, Any]) -> str:
    """Returns a sentence on the first invalid request or limit of a container, or "".

    The rule checks the names of the resources and the amounts. A request may not exceed its limit.
    """
    # The API server reads the amount null as 0.
    sizes = {
        key: size for key, size in sizes_of(value).items() if value[key[0]][key[1]] is not None
    }
    for (kind, name), size in sizes.items():
        if wrong := _resource_problem(name, size):
            return f"has {kind} of {quoted(name)} {quoted(value[kind][name])}: {wrong}"
    for name in requests_beyond_limits(sizes):
        return f"has more requests than limits of {quoted(name)}"
    for (kind, name), size in sizes.items():
        # A node cannot promise such resources twice (IsOvercommitAllowed).
        fixed = _is_device(name) or name.startswith(_HUGE_PAGES)
        if fixed and kind == "requests" and size != sizes.get(("limits", name)):
            return f"has requests of {quoted(name)}, and this resource needs a limit equal to them"
    return ""


def _is_device(name: str) -> bool:
    """Returns True if a resource is not one of Kubernetes' own resources (IsNativeResource)."""
    return "/" in name and "kubernetes.io/" not in name


def _resource_problem(name: str, size: int) -> str:
    """Returns why a container cannot have an amount of a resource, or an empty string.

    Args:
        name: the name of the resource.
        size: the amount in billionths of a unit.
    """
    if "/" not in name and name not in STANDARD_RESOURCES and not name.startswith(_HUGE_PAGES):
        return (
            f"a container has {', '.join(STANDARD_RESOURCES)}, {_HUGE_PAGES}SIZE, and "
            "resources whose name has a prefix, such as example.com/"
        )
    if size < 0:
        return "it must be a quantity that is not negative, such as 500m or 1Gi"
    if _is_device(name) and size % 10**9:
        return "it must be a whole number"
    return QUALIFIED(name)


def name_servers(value: Mapping[str, Any]) -> str:
    """Returns a sentence on a `dnsConfig` with too many name servers or search paths, or ""."""
    for field, most in (("nameservers", 3), ("searches", 32)):
        found = value.get(field)
        if isinstance(found, list) and len(found) > most:
            return f"has {len(found)} {field}, and at most {most} are allowed"
    return ""


def dns_none(spec: Mapping[str, Any]) -> str:
    """Returns a sentence on a pod that has `dnsPolicy: None` and no name server, or ""."""
    if spec.get("dnsPolicy") != "None":
        return ""
    config = spec.get("dnsConfig")
    if isinstance(config, dict) and config.get("nameservers"):
        return ""
    return "has dnsPolicy: None, and then dnsConfig.nameservers needs an entry"


def host_ports(spec: Mapping[str, Any]) -> str:
    """Returns a sentence on a container port whose `hostPort` differs from its number, or "".

    The numbers have to be equal if the pod uses the network of its node. Other pods are not
    checked.
    """
    if spec.get("hostNetwork") is not True:
        return ""
    for container in _containers(spec):
        for port in maps_of(container.get("ports")):
            own, host = port.get("containerPort"), port.get("hostPort")
            if host and host != own:
                return (
                    f"has hostNetwork: true, and then the hostPort {quoted(host)} of container "
                    f"{quoted(container.get('name'))} must be equal to its containerPort"
                )
    return ""


def shared_processes(spec: Mapping[str, Any]) -> str:
    """Returns a sentence on a pod that shares its processes in two ways, or an empty string.

    A pod may share its processes among its containers or with its node, but not both.
    """
    if spec.get("shareProcessNamespace") is True and spec.get("hostPID") is True:
        return "has shareProcessNamespace: true and hostPID: true, which exclude each other"
    return ""


def sleeps(spec: Mapping[str, Any]) -> str:
    """Returns a sentence on a hook that sleeps longer than the pod's grace period, or "".

    The hook is a lifecycle hook of a container.
    """
    grace = spec.get("terminationGracePeriodSeconds")
    grace = grace if type(grace) is int else GRACE
    for container in _containers(spec):
        for hook in map_in(container, "lifecycle").values():
            slept = map_in(hook, "sleep").get("seconds")
            if type(slept) is int and not 0 <= slept <= max(grace, 1):
                return (
                    f"has a hook of container {quoted(container.get('name'))} that sleeps {slept} "
                    f"seconds, and terminationGracePeriodSeconds allows 0 to {grace}"
                )
    return ""


def resizes_without_restart(spec: Mapping[str, Any]) -> str:
    """Returns a sentence on a `resizePolicy` that needs a restart of its container, or an empty
    string.

    Only a pod with `restartPolicy: Never` is checked, because its containers may not restart.
    """
    if spec.get("restartPolicy") != "Never":
        return ""
    for container in _containers(spec):
        for policy in maps_of(container.get("resizePolicy")):
            if policy.get("restartPolicy") == "RestartContainer":
                return (
                    "has restartPolicy: Never, and then the resizePolicy of container "
                    f"{quoted(container.get('name'))} can only be NotRequired"
                )
    return ""


def claimed_resources(spec: Mapping[str, Any]) -> str:
    """Returns a sentence on a container that uses a resource claim which its pod lacks, or ""."""
    known = {text_of(claim.get("name")) for claim in maps_of(spec.get("resourceClaims"))}
    for container in _containers(spec):
        for claim in maps_of(map_in(container, "resources").get("claims")):
            if text_of(claim.get("name")) not in known:
                return (
                    f"has no resource claim {quoted(claim.get('name'))}, which container "
                    f"{quoted(container.get('name'))} uses"
                )
    return ""


def _containers(spec: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields all containers of a pod spec, init containers last."""
    for section in ("containers", "initContainers"):
        yield from maps_of(spec.get(section))
