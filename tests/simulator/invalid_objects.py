"""Defines objects that every API server refuses: the simulated one and, in the e2e tests, a real
one.
"""

from __future__ import annotations

from simulator.objects.objects import Object
from tests.simulator.fake_hook import pod


def _labelled(key: str) -> Object:
    made = pod("p")
    return {**made, "metadata": {**made["metadata"], "labels": {key: "v"}}}


def _container(name: str = "a", **more: object) -> Object:
    return {"name": name, "image": "x", **more}


_SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a.b"}}
_BEYOND = {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}
_NO_VOLUME = [{"name": "no", "mountPath": "/x"}]

IMPOSSIBLE: dict[str, tuple[Object, str]] = {
    "a name in capitals": (pod("Bad_Name"), "metadata.name"),
    "two dots in a row": (pod("two..dots"), "metadata.name"),
    "a dot in a Service's name": (_SERVICE, "metadata.name"),
    "a label's long key": (_labelled("k" * 64), "metadata.labels"),
    "a label's odd prefix": (_labelled("a..b/k"), "metadata.labels"),
    "a dot in a container's name": (
        pod("p", containers=[_container("a.b")]), "spec.containers[0].name"
    ),
    "a container's long name": (
        pod("p", containers=[_container("a" * 64)]), "spec.containers[0].name"
    ),
    "requests beyond limits": (
        pod("p", containers=[_container(resources=_BEYOND)]),
        "spec.containers[0].resources.requests",
    ),
    "no container": (pod("p", containers=[]), "spec.containers"),
    "an unknown restart policy": (pod("p", restartPolicy="Sometimes"), "spec.restartPolicy"),
    "two containers of one name": (
        pod("p", containers=[_container(), _container()]), "spec.containers[1].name"
    ),
    "two volumes of one name": (pod("p", volumes=[{"name": "v"}] * 2), "spec.volumes[1].name"),
    "a volume that is not there": (
        pod("p", containers=[_container(volumeMounts=_NO_VOLUME)]),
        "spec.containers[0].volumeMounts[0].name",
    ),
}  # fmt: skip
"""Description of the mistake -> the object, and the path of the invalid field."""
