"""Compares pods as a real API server stores them with the simulator's table of defaults."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from simulator.api.admission import Admission
from tests.equivalent_specs import DIFFERENT, OTHERS, SAMPLES, Spelling, spellings
from tests.simulator.invalid_objects import IMPOSSIBLE

from .kube import Kube, KubeError

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

Json = dict[str, Any]
_NUMBERS = itertools.count(1)
_SECONDS = 3
"""The default seconds of tolerations in these clusters. Other clusters have 300."""


class _NoChance:
    """A random generator that always chooses the first letter."""

    def choices(self, letters: str, k: int) -> str:
        return letters[0] * k


def stored(kube: Kube, namespace: str, spec: Json) -> Json:
    """Creates a pod and returns its stored spec with the QoS class."""
    name = f"p{next(_NUMBERS)}"
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": "web"}},
        "spec": spec,
    }
    made = kube.create({**pod, "spec": {"nodeSelector": {"no": "node"}, **spec}})
    found = {**made["spec"], "qosClass": made["status"]["qosClass"]}
    if not spec.get("nodeSelector"):
        found.pop("nodeSelector", None)
    return _without_chance(found)


def simulated(spec: Json, minor: int) -> Json:
    """Returns the spec and QoS class that the simulator stores for this minor version of
    Kubernetes.
    """
    admission = Admission(_NoChance())  # type: ignore[arg-type]
    admission.adds_pod_limits = minor >= 37
    pod = admission.pod_create({"kind": "Pod", "metadata": {}, "spec": spec})
    return _without_chance({**pod["spec"], "qosClass": pod["status"]["qosClass"]})


def _without_chance(value: Any) -> Any:
    """Removes the random part of token volumes' names, and replaces the tests' seconds by the usual
    ones.
    """
    if isinstance(value, dict):
        return {key: _without_chance(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_chance(item) for item in value]
    if type(value) is int and value == _SECONDS:
        return 300
    token = isinstance(value, str) and value.startswith("kube-api-access-")
    return "kube-api-access" if token else value


def different(one: Any, other: Any, path: str = "") -> list[str]:
    """Returns the places where two values differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        return [
            line
            for key in sorted(one.keys() | other.keys())
            for line in different(one.get(key, "-"), other.get(key, "-"), f"{path}.{key}")
        ]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        return [line for i, pair in pairs for line in different(*pair, f"{path}[{i}]")]
    same = one == other and type(one) is type(other)
    return [] if same else [f"{path}: {one!r} and {other!r}"]


def known(kube: Kube, spec: Any) -> bool:
    """Returns True if this Kubernetes knows the fields: contents of images and files since 1.35."""
    return kube.minor >= 35 or not any(key in repr(spec) for key in ("fileKeyRef", "'reference'"))


def test_simulator_stores_pods_like_a_real_api_server(kube: Kube, namespace: str) -> None:
    """The pods are samples, their spellings, and pods that almost equal a sample.

    Before 1.37 empty resources of a pod decide its QoS class, so these samples are skipped.
    """
    account = {"metadata": {"name": "other", "namespace": namespace}}
    kube.create({"apiVersion": "v1", "kind": "ServiceAccount", **account})
    specs = {**SAMPLES, **OTHERS}
    if kube.minor < 37:
        specs = {name: spec for name, spec in specs.items() if "of the pod's own" not in name}
    for spelling in spellings():
        specs |= {f"{spelling.name}, left out": spelling.plain, spelling.name: spelling.written}
    for name, (one, other) in DIFFERENT.items():
        specs |= {f"{name}: before": one, f"{name}: after": other}
    seen: dict[str, Json] = {}
    found = []
    for name, spec in specs.items():
        if not known(kube, spec):
            continue
        key = repr(spec)
        if key not in seen:
            seen[key] = stored(kube, namespace, spec)
        found += [f"{name}: {line}" for line in different(simulated(spec, kube.minor), seen[key])]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_real_api_server_refuses_the_pods_that_the_simulator_refuses(
    kube: Kube, namespace: str, name: str
) -> None:
    """Both must refuse the same field."""
    manifest, path = IMPOSSIBLE[name]
    with pytest.raises(KubeError) as refusal:
        kube.create({**manifest, "metadata": {**manifest["metadata"], "namespace": namespace}})
    assert refusal.value.status == 422
    assert path in refusal.value.message


def test_written_default_gives_the_same_stored_pod(kube: Kube, namespace: str) -> None:
    """This holds for the real API server, independent of the table."""
    seen: dict[str, Json] = {}

    def of(spec: Json) -> Json:
        key = repr(spec)
        if key not in seen:
            seen[key] = stored(kube, namespace, spec)
        return seen[key]

    def lines(spelling: Spelling) -> list[str]:
        return different(of(spelling.plain), of(spelling.written))

    found = [
        f"{each.name}: {line}" for each in spellings() if known(kube, each) for line in lines(each)
    ]
    assert not found, "\n".join(found)
    pairs = {name: pair for name, pair in DIFFERENT.items() if "account" not in name}
    same = [name for name, (one, other) in pairs.items() if of(one) == of(other)]
    assert not same
