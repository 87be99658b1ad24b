"""Builds pairs of pod specs with the same meaning: without and with the API server's defaults.

`spellings` is the entry point. Most pairs come from the table of defaults (`tapp/kube/stored.py`):
each default of each type is written out once, at each place of `SAMPLES` that has this type.
`LISTED` has the defaults that depend on more than the type. tests/e2e/test_stored_pods.py compares
all pairs with a real API server.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, NamedTuple

from tapp.kube.stored import KINDS

Json = dict[str, Any]

_HTTP: Json = {"httpGet": {"port": 80, "httpHeaders": [{"name": "X-A"}]}}
_CPU_OF_APP: Json = {"path": "cpu", "resourceFieldRef": {"resource": "limits.cpu",
                                                         "containerName": "app"}}  # fmt: skip
_NAME: Json = {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}
_LABELS: Json = {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}
_SOURCES: list[Json] = [
    {"hostPath": {"path": "/srv"}},
    {"secret": {"secretName": "s"}},
    {"configMap": {"name": "c", "items": [{"key": "a", "path": "a"}]}},
    {"downwardAPI": {"items": [_LABELS, _CPU_OF_APP]}},
    {"projected": {"sources": [{"serviceAccountToken": {"path": "token"}},
                               {"downwardAPI": {"items": [_NAME, _CPU_OF_APP]}},
                               {"secret": {"name": "s"}}]}},
    {"iscsi": {"targetPortal": "10.0.0.1:3260", "iqn": "iqn.2001-04.com.example:a"}},
    {"rbd": {"monitors": ["10.0.0.1:6789"], "image": "disk"}},
    {"azureDisk": {"diskName": "d", "diskURI": "https://example.com/d"}},
    {"scaleIO": {"gateway": "g", "system": "s", "volumeName": "v", "secretRef": {"name": "s"}}},
    {"ephemeral": {"volumeClaimTemplate": {"spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}}},
    {"emptyDir": {}},
    {"csi": {"driver": "csi.example.com"}},
]  # fmt: skip
_TERM: Json = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
_APP: Json = {
    "name": "app",
    "image": "registry.example.com:5000/app:1",
    "ports": [{"containerPort": 80, "name": "http"}, {"containerPort": 53, "protocol": "UDP"}],
    "env": [
        {"name": "A", "value": "a"},
        {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
    ],
    "livenessProbe": _HTTP,
    "readinessProbe": {"grpc": {"port": 81}},
    "startupProbe": {"exec": {"command": ["true"]}},
    "lifecycle": {"postStart": {"httpGet": {"port": 80}}, "preStop": {"sleep": {}}},
}
_PLAIN: Json = {"name": "app", "image": "app:1"}
_PREFERRED, _REQUIRED = (f"{when}DuringSchedulingIgnoredDuringExecution"
                         for when in ("preferred", "required"))  # fmt: skip
SAMPLES: dict[str, Json] = {
    "containers": {
        "containers": [_APP, {"name": "side", "image": "side:1"}],
        "initContainers": [
            {"name": "init", "image": "init:1"},
            {**_APP, "name": "sidecar", "restartPolicy": "Always",
             "ports": [{"containerPort": 90}]},
        ],
    },
    "volumes": {
        "containers": [_PLAIN],
        "volumes": [{"name": f"v{index}", **source} for index, source in enumerate(_SOURCES)],
    },
    "a variable of a file": {
        "containers": [{**_PLAIN, "env": [{"name": "F", "valueFrom": {"fileKeyRef": {
            "volumeName": "v", "path": "f", "key": "K"}}}]}],
        "volumes": [{"name": "v", "emptyDir": {}}],
    },
    "scheduling": {
        "containers": [_PLAIN],
        "affinity": {
            "nodeAffinity": {_PREFERRED: [{"weight": 1, "preference": {
                "matchExpressions": [{"key": "zone", "operator": "Exists"}]}}]},
            "podAffinity": {_PREFERRED: [{"weight": 1, "podAffinityTerm": _TERM}]},
            "podAntiAffinity": {_REQUIRED: [_TERM]},
        },
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone",
                                       "whenUnsatisfiable": "ScheduleAnyway",
                                       "labelSelector": {"matchLabels": {"app": "web"}}}],
        "tolerations": [{"key": "gpu", "value": "yes"}],
        "securityContext": {"sysctls": [{"name": "net.ipv4.tcp_syncookies"}]},
    },
}  # fmt: skip
_NOT_VALID_EMPTY = {
    ("Preferred", "preference"),
    ("PreferredPods", "podAffinityTerm"),
    ("ClaimSpec", "resources"),
}
"""Pairs of type and field whose default the API server's validation refuses, so that no valid pod
has it.
"""


class Spelling(NamedTuple):
    """A pair of pod specs with the same meaning.

    Attributes:
        name: the default that the second spec writes out.
        plain: the spec without the default.
        written: the spec with the default.
        kind: the type and the field in the table of defaults; two empty strings for a listed pair.
    """

    name: str
    plain: Json
    written: Json
    kind: tuple[str, str] = ("", "")


def app(image: str = "app:1", **container: Any) -> Json:
    """Returns a pod spec with one container `app`; `container` has further fields of this
    container.
    """
    return {"containers": [{"name": "app", "image": image, **container}]}


def _volume(**source: Any) -> Json:
    return {**app(), "volumes": [{"name": "v", **source}]}


def _on_host(**port: Any) -> Json:
    return {**app(ports=[{"containerPort": 80, **port}]), "hostNetwork": True}


def _huge(**pod: Any) -> Json:
    resources = {"limits": {"cpu": "1", "memory": "1Gi", "hugepages-2Mi": "2Mi"}}
    return {**app(resources=resources), "resources": {"limits": {"memory": "2Gi", **pod}}}


_LIMITS: Json = {"cpu": "500m", "memory": "1Gi"}
_POD: Json = {"limits": {"cpu": "2", "memory": "2Gi"}}
_INIT: Json = {
    **app(resources={"requests": {"cpu": "1", "memory": "1Gi"}}),
    "initContainers": [
        {"name": "big", "image": "i:1", "resources": {"requests": {"cpu": "1500m"}}}
    ],
}

LISTED = [
    Spelling(f"pull policy of {image}", app(image), app(image, imagePullPolicy=policy))
    for image, policy in {
        "app:1": "IfNotPresent",
        "app": "Always",
        "app:latest": "Always",
        "registry.example.com:5000/app": "Always",
        "registry.example.com:5000/app:2": "IfNotPresent",
        f"app@sha256:{'a' * 64}": "IfNotPresent",
        f"app:latest@sha256:{'a' * 64}": "Always",
        f"app:1@sha256:{'a' * 64}": "IfNotPresent",
        "App": "IfNotPresent",
        "localhost/app": "Always",
        "Example/app": "Always",
        "a__b/c-d": "Always",
        "a" * 64: "IfNotPresent",
        "not a name": "IfNotPresent",
    }.items()
] + [
    Spelling(
        "pull policy of an image volume",
        _volume(image={"reference": "models:1"}),
        _volume(image={"reference": "models:1", "pullPolicy": "IfNotPresent"}),
    ),
    Spelling(
        "pull policy of an image volume without a tag",
        _volume(image={"reference": "models"}),
        _volume(image={"reference": "models", "pullPolicy": "Always"}),
    ),
    Spelling("a volume of no kind", _volume(), _volume(emptyDir={})),
    Spelling("a host port", _on_host(), _on_host(hostPort=80)),
    Spelling(
        "requests of limits",
        app(resources={"limits": _LIMITS}),
        app(resources={"limits": _LIMITS, "requests": {**_LIMITS, "memory": "1024Mi"}}),
    ),
    Spelling(
        "one request of limits",
        app(resources={"limits": _LIMITS, "requests": {"cpu": "0.25"}}),
        app(resources={"limits": _LIMITS, "requests": {"cpu": "250m", "memory": "1Gi"}}),
    ),
    Spelling(
        "less than a thousandth",
        app(resources={"requests": {"cpu": "0.1m"}}),
        app(resources={"requests": {"cpu": "1m"}}),
    ),
    Spelling(
        "requests of the pod, of its limits",
        {**app(), "resources": _POD},
        {**app(), "resources": {**_POD, "requests": _POD["limits"]}},
    ),
    Spelling(
        "requests of the pod, of its containers",
        {**_INIT, "resources": _POD},
        {**_INIT, "resources": {**_POD, "requests": {"cpu": "1500m", "memory": "1Gi"}}},
    ),
    Spelling("huge pages of the pod", _huge(), _huge(**{"hugepages-2Mi": "2Mi"})),
    Spelling("the older account", {**app(), "serviceAccountName": "default"},
             {**app(), "serviceAccount": "default"}),
    Spelling("both accounts", {**app(), "serviceAccountName": "default"},
             {**app(), "serviceAccountName": "default", "serviceAccount": "other"}),
    Spelling("the account", app(), {**app(), "serviceAccountName": "default"}),
    Spelling("the priority", app(), {**app(), "priority": 0}),
    Spelling("preemption", app(), {**app(), "preemptionPolicy": "PreemptLowerPriority"}),
    Spelling("no host network", app(), {**app(), "hostNetwork": False, "hostPID": False}),
    Spelling("nothing in lists and maps", app(),
             {**app(command=[], env=[], ports=[]), "volumes": [], "nodeSelector": {},
              "tolerations": [], "imagePullSecrets": [], "hostAliases": []}),
    Spelling("blanks", app(),
             {**app(workingDir="", imagePullPolicy="", terminationMessagePath=""),
              "hostname": "", "nodeName": "", "priorityClassName": "", "dnsPolicy": "",
              "schedulerName": "", "restartPolicy": ""}),
    Spelling("zeros of a probe", app(livenessProbe={"tcpSocket": {"port": 1}}),
             app(livenessProbe={"tcpSocket": {"port": 1, "host": ""}, "periodSeconds": 0,
                                "initialDelaySeconds": 0, "failureThreshold": 0})),
    Spelling("the protocol of a probe", app(livenessProbe={"httpGet": {"port": 1}}),
             app(livenessProbe={"httpGet": {"port": 1, "protocol": "HTTP1"}})),
    Spelling("no terminal", app(), app(stdin=False, tty=False, stdinOnce=False)),
    Spelling("a variable without a value", app(env=[{"name": "A"}]),
             app(env=[{"name": "A", "value": ""}])),
    Spelling("quantities", app(resources={"requests": {"cpu": "500m", "memory": "1Gi"}}),
             app(resources={"requests": {"cpu": 0.5, "memory": "1024Mi"}})),
]  # fmt: skip

DIFFERENT: dict[str, tuple[Json, Json]] = {
    "another protocol": (app(ports=[{"containerPort": 80}]),
                         app(ports=[{"containerPort": 80, "protocol": "UDP"}])),
    "the other pull policy": (app(), app(imagePullPolicy="Always")),
    "a policy of latest that is not its default": (
        app("app:latest"), app("app:latest", imagePullPolicy="IfNotPresent")),
    "another restart policy": (app(), {**app(), "restartPolicy": "OnFailure"}),
    "another grace period": (app(), {**app(), "terminationGracePeriodSeconds": 31}),
    "another period": (app(livenessProbe={"tcpSocket": {"port": 1}}),
                       app(livenessProbe={"tcpSocket": {"port": 1}, "periodSeconds": 11})),
    "another mode": (_volume(secret={"secretName": "s"}),
                     _volume(secret={"secretName": "s", "defaultMode": 256})),
    "other requests than the limits": (
        app(resources={"limits": _LIMITS}),
        app(resources={"limits": _LIMITS, "requests": {"cpu": "499m"}})),
    "no service links": (app(), {**app(), "enableServiceLinks": False}),
    "not privileged, said": (app(), app(securityContext={"privileged": False})),
    "a security context without anything in it": (app(), app(securityContext={"runAsUser": 0})),
    "the order of variables": (app(env=[{"name": "A"}, {"name": "B"}]),
                               app(env=[{"name": "B"}, {"name": "A"}])),
    "the order of ports": (app(ports=[{"containerPort": 1}, {"containerPort": 2}]),
                           app(ports=[{"containerPort": 2}, {"containerPort": 1}])),
    "the order of containers": (
        {"containers": [*app()["containers"], {"name": "b", "image": "b:1"}]},
        {"containers": [{"name": "b", "image": "b:1"}, *app()["containers"]]}),
    "the order of arguments": (app(args=["a", "b"]), app(args=["b", "a"])),
    "an operator of a toleration": ({**app(), "tolerations": [{"key": "a", "value": "b"}]},
                                    {**app(), "tolerations": [
                                        {"key": "a", "operator": "Equal", "value": "b"}]}),
    "a policy of topology": (
        SAMPLES["scheduling"],
        {**SAMPLES["scheduling"], "topologySpreadConstraints": [
            {**SAMPLES["scheduling"]["topologySpreadConstraints"][0],
             "nodeTaintsPolicy": "Ignore"}]}),
    "another account": (app(), {**app(), "serviceAccountName": "other"}),
    "another interface": (_volume(iscsi={"targetPortal": "a", "iqn": "iqn.2001-04.com.a:b"}),
                          _volume(iscsi={"targetPortal": "a", "iqn": "iqn.2001-04.com.a:b",
                                         "iscsiInterface": "other"})),
}  # fmt: skip
"""Pairs of specs that look similar and mean different pods."""


def spellings() -> list[Spelling]:
    """Returns all pairs: those that the table of defaults gives, and those of `LISTED`."""
    return [*_of_table(), *LISTED]


def _of_table() -> Iterator[Spelling]:
    for name, spec in SAMPLES.items():
        for path, kind in _places(spec, "PodSpec"):
            holder = _at(spec, path)
            for field, default in KINDS[kind].defaults.items():
                if field in holder or (kind, field) in _NOT_VALID_EMPTY:
                    continue
                written = copy.deepcopy(spec)
                _at(written, path)[field] = copy.deepcopy(default)
                where = ".".join(map(str, (name, *path, field)))
                yield Spelling(where, spec, written, (kind, field))


def _places(
    value: Any, kind: str, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _places(item, kind, (*path, index))
        return
    yield path, kind
    for field, part in KINDS[kind].parts.items():
        if field in value:
            yield from _places(value[field], part, (*path, field))


def _at(value: Any, path: tuple[str | int, ...]) -> Any:
    for part in path:
        value = value[part]
    return value


def fully_written(spec: Json, pick: Any = lambda _: True) -> Json:
    """Returns the spec with the defaults of the table written out.

    `pick` is called with a field's name and returns True if the field's default is written out; by
    default all are.
    """
    written = copy.deepcopy(spec)
    for path, kind in _places(spec, "PodSpec"):
        holder = _at(written, path)
        for field, default in KINDS[kind].defaults.items():
            if field not in holder and (kind, field) not in _NOT_VALID_EMPTY and pick(field):
                holder[field] = copy.deepcopy(default)
    return written


OTHERS: dict[str, Json] = {
    "GPUs alone": app(resources={"limits": {"nvidia.com/gpu": 1}}),
    "a limit of 0": app(resources={"limits": {"cpu": "0"}}),
    "requests of 0": app(resources={"requests": {"cpu": "0", "memory": 0}}),
    "twenty digits": app(resources={"requests": {"memory": "1" * 20}}),
    "more than fits": app(resources={"requests": {"memory": "16Ei"}}),
    "an exponent": app(resources={"requests": {"memory": "12e2", "cpu": "1000e-3"}}),
    "fractions of a binary unit": app(resources={"requests": {"memory": "0.1Ki"}}),
    "requests of the pod": {**app(resources={"requests": {"cpu": "1"}}),
                            "resources": {"requests": {"memory": "1Gi"}}},
    "limits of all containers": {**app(resources={"limits": {"cpu": "1", "memory": "1Gi"}}),
                                 "initContainers": [{"name": "init", "image": "init:1", "resources":
                                                     {"limits": {"cpu": "2", "ephemeral-storage":
                                                                 "1Gi"}}}],
                                 "resources": {"requests": {"cpu": "3"}}},
    "nothing of the pod's own": {**app(resources={"limits": {"cpu": "1", "memory": "1Gi"}}),
                                 "resources": {}},
    "no requests of the pod's own": {**app(resources={"limits": {"cpu": "1", "memory": "1Gi"}}),
                                     "resources": {"requests": {}}},
    "limits of the pod": {**app(), "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}},
    "zeros of volumes": {
        **app(),
        "volumes": [
            {"name": "i", "iscsi": {"targetPortal": "10.0.0.1:3260", "lun": 0, "fsType": "",
                                    "iqn": "iqn.2001-04.com.example:a", "readOnly": False,
                                    "chapAuthDiscovery": False, "chapAuthSession": False}},
            {"name": "c", "csi": {"driver": "csi.example.com", "readOnly": False, "fsType": ""}},
            {"name": "a", "azureDisk": {"diskName": "d", "diskURI": "https://example.com/d",
                                        "readOnly": True, "fsType": ""}},
            {"name": "g", "gcePersistentDisk": {"pdName": "d", "partition": 0, "fsType": ""}},
            {"name": "n", "nfs": {"server": "s", "path": "/p", "readOnly": False}},
            {"name": "s", "secret": {"secretName": "s", "optional": False, "items": []}},
            {"name": "e", "emptyDir": {"medium": "", "sizeLimit": "0.5Gi"}},
        ],
    },
    "pointers to nothing": {
        **app(securityContext={"privileged": False, "runAsNonRoot": False, "runAsUser": 0},
              env=[{"name": "A", "valueFrom": {"configMapKeyRef": {
                  "name": "c", "key": "k", "optional": False}}}]),
        "automountServiceAccountToken": False, "hostUsers": True, "setHostnameAsFQDN": False,
        "shareProcessNamespace": False, "securityContext": {"fsGroup": 0, "supplementalGroups": []},
        "dnsConfig": {"options": [{"name": "ndots", "value": ""}, {"name": "edns0"}]},
        "affinity": {}, "hostAliases": [{"ip": "10.0.0.1", "hostnames": []}],
    },
    "a negative grace period": {**app(), "terminationGracePeriodSeconds": -1},
}  # fmt: skip
"""Pods for which only a real API server shows how they are stored."""
