"""Templates with values at the limits of the API server, and slightly beyond.

The tests compare the service (tests/unit/decide/test_limits.py) and the real API server
(tests/e2e/test_limits.py).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from tests.builders import Document, template

OTHER: Document = {"name": "other", "image": "busybox:1"}
DIGEST = "a" * 64
PREFIX = ".".join(["p" * 63] * 3 + ["p" * 61])  # 253 characters


class Limit(NamedTuple):
    """A field with a value that is accepted, and a value that is refused."""

    made: Callable[[Any], Document]  # returns the template with the value
    accepted: Any
    refused: Any
    where: str  # the place in the message


def _container(**fields: Any) -> Document:
    return template("nginx:2", container={"command": ["run"], **fields})


def _spec(**fields: Any) -> Document:
    return template("nginx:2", container={"command": ["run"]}, **fields)


def _sidecar(**fields: Any) -> Document:
    return _spec(sidecars=[{**OTHER, **fields}])


def _init(**fields: Any) -> Document:
    return _spec(initContainers=[{**OTHER, **fields}])


LIMITS: dict[str, Limit] = {
    "the value of a label": Limit(
        lambda v: template("nginx:2", labels={"app": v}),
        "v" * 63, "v" * 64, "metadata.labels['app'] is",
    ),
    "a letter in the value of a label": Limit(
        lambda v: template("nginx:2", labels={"app": v}),
        "a_B.c-d", "a/b", "metadata.labels['app'] is 'a/b'",
    ),
    "the end of the value of a label": Limit(
        lambda v: template("nginx:2", labels={"app": v}),
        "a", "a-", "metadata.labels['app'] is 'a-'",
    ),
    "the key of a label": Limit(
        lambda v: template("nginx:2", labels={"app": "web", v: "x"}),
        "k" * 63, "k" * 64, "metadata.labels has the key",
    ),
    "the prefix of a label": Limit(
        lambda v: template("nginx:2", labels={"app": "web", v: "x"}),
        f"{PREFIX}/k", f"{PREFIX}p/k", "metadata.labels has the key",
    ),
    "a capital prefix of a label": Limit(
        lambda v: template("nginx:2", labels={"app": "web", v: "x"}),
        "example.com/K", "Example.com/K", "metadata.labels has the key 'Example.com/K'",
    ),
    "the key of an annotation": Limit(
        lambda v: template("nginx:2", annotations={v: "any text/at all "}),
        "k" * 63, "k" * 64, "metadata.annotations has the key",
    ),
    "two slashes in the key of an annotation": Limit(
        lambda v: template("nginx:2", annotations={v: ""}),
        "Example.com/K", "a/b/c", "metadata.annotations has the key 'a/b/c'",
    ),
    "a finalizer": Limit(
        lambda v: {**_spec(), "metadata": {"labels": {"app": "web"}, "finalizers": [v]}},
        "example.com/done", "done", "metadata.finalizers[0] is 'done'",
    ),
    "the host name": Limit(
        lambda v: _spec(hostname=v), "h" * 63, "h" * 64, "spec.hostname is"
    ),
    "a dot in the host name": Limit(
        lambda v: _spec(hostname=v), "a-b", "a.b", "spec.hostname is 'a.b'"
    ),
    "the subdomain": Limit(
        lambda v: _spec(subdomain=v), "h" * 63, "h" * 64, "spec.subdomain is"
    ),
    "the name of a container": Limit(
        lambda v: _sidecar(name=v), "c" * 63, "c" * 64, "spec.containers[1].name is"
    ),
    "a capital name of an init container": Limit(
        lambda v: _init(name=v), "init", "Init", "spec.initContainers[0].name is 'Init'"
    ),
    "the name of a port": Limit(
        lambda v: _container(ports=[{"name": v, "containerPort": 80}]),
        "p" * 15, "p" * 16, "spec.containers[0].ports[0].name is",
    ),
    "a port's name without a letter": Limit(
        lambda v: _container(ports=[{"name": v, "containerPort": 80}]),
        "8a", "80", "spec.containers[0].ports[0].name is '80'",
    ),
    "two dashes in a port's name": Limit(
        lambda v: _container(ports=[{"name": v, "containerPort": 80}]),
        "a-b", "a--b", "spec.containers[0].ports[0].name is 'a--b'",
    ),
    "the number of a port": Limit(
        lambda v: _container(ports=[{"containerPort": v}]),
        65_535, 65_536, "spec.containers[0].ports[0].containerPort is 65536",
    ),
    "the number of a port of the node": Limit(
        lambda v: _container(ports=[{"containerPort": 80, "hostPort": v}]),
        65_535, -1, "spec.containers[0].ports[0].hostPort is -1",
    ),
    "the name of a variable": Limit(
        lambda v: _container(env=[{"name": v, "value": "x"}]),
        "1 strange/name!", "a=b", "spec.containers[0].env[0].name is 'a=b'",
    ),
    "the key of a ConfigMap": Limit(
        lambda v: _container(
            env=[{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "c", "key": v}}}]
        ),
        "k" * 253, "k" * 254, "spec.containers[0].env[0].valueFrom.configMapKeyRef.key is",
    ),
    "the name of a Secret": Limit(
        lambda v: _container(
            env=[{"name": "A", "valueFrom": {"secretKeyRef": {"name": v, "key": "k"}}}]
        ),
        "s" * 253, "s" * 254, "spec.containers[0].env[0].valueFrom.secretKeyRef.name is",
    ),
    "the name of a volume": Limit(
        lambda v: _spec(volumes=[{"name": v, "emptyDir": {}}]),
        "v" * 63, "v" * 64, "spec.volumes[0].name is",
    ),
    "a user": Limit(
        lambda v: _spec(securityContext={"runAsUser": v}),
        2**31 - 1, 2**31, "spec.securityContext.runAsUser is 2147483648",
    ),
    "a negative group of a container": Limit(
        lambda v: _container(securityContext={"runAsGroup": v}),
        0, -1, "spec.containers[0].securityContext.runAsGroup is -1",
    ),
    "a label of a node": Limit(
        lambda v: _spec(nodeSelector={"zone": v}),
        "z" * 63, "z" * 64, "spec.nodeSelector['zone'] is",
    ),
    "the name of a node": Limit(
        lambda v: _spec(nodeName=v), "n" * 253, "n" * 254, "spec.nodeName is"
    ),
    "the name of a runtime class": Limit(
        lambda v: _spec(runtimeClassName=v), None, "Kata", "spec.runtimeClassName is 'Kata'"
    ),
    "a readiness gate": Limit(
        lambda v: _spec(readinessGates=[{"conditionType": v}]),
        "g" * 63, "g" * 64, "spec.readinessGates[0].conditionType is",
    ),
    "a scheduling gate": Limit(
        lambda v: _spec(schedulingGates=[{"name": v}]),
        "g" * 63, "g" * 64, "spec.schedulingGates[0].name is",
    ),
    "a resource claim": Limit(
        lambda v: _spec(resourceClaims=[{"name": v, "resourceClaimName": "c"}]),
        "c" * 63, "c" * 64, "spec.resourceClaims[0].name is",
    ),
    "a host's alias": Limit(
        lambda v: _spec(hostAliases=[{"ip": "10.0.0.1", "hostnames": [v]}]),
        "a.b", "a_b", "spec.hostAliases[0].hostnames[0] is 'a_b'",
    ),
    "the key of a toleration": Limit(
        lambda v: _spec(tolerations=[{"key": v, "operator": "Exists"}]),
        "t" * 63, "t" * 64, "spec.tolerations[0].key is",
    ),
    "the deadline": Limit(
        lambda v: _spec(activeDeadlineSeconds=v), 1, 0, "spec.activeDeadlineSeconds is 0"
    ),
    "the service account": Limit(
        lambda v: _spec(serviceAccountName=v), None, "Robot", "spec.serviceAccountName is 'Robot'"
    ),
    "no image": Limit(
        lambda v: _sidecar(image=v), "busybox", "", "spec.containers[1].image is"
    ),
}  # fmt: skip
"""Fields whose limits the API server checks."""

IMAGES: dict[str, tuple[str, str]] = {
    "a capital letter": ("Registry.example/web:2", "Web:2"),
    "a blank": ("web:2", "web: 2"),
    "a tag": (f"web:{'t' * 128}", f"web:{'t' * 129}"),
    "an empty tag": ("web", "web:"),
    "a tag's first letter": ("web:_1", "web:-1"),
    "a short digest": (f"web@sha256:{DIGEST}", f"web@sha256:{DIGEST[1:]}"),
    "a capital digest": (f"web:2@sha256:{DIGEST}", f"web:2@sha256:{DIGEST.upper()}"),
    "a digest that nobody can check": (f"web@sha512:{DIGEST * 2}", f"web@md5:{DIGEST}"),
    "a registry's port": ("registry:5000/web", "registry:port/web"),
    "a long path": (f"r.io/{'p' * 255}", f"r.io/{'p' * 256}"),
    "a long path on the Hub": ("p" * 247, "p" * 248),
    "an image's id": ("0" * 63, "0" * 64),
    "a slash at the end": ("a/b", "a/b/"),
    "a scheme": ("docker.io/web", "docker://web"),
}
"""Images that a kubelet accepts, and similar images that it never starts."""
