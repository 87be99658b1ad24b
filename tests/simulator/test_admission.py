"""Tests pods as the simulated API server stores them: defaults, canonical forms, injected parts,
policies.
"""

from __future__ import annotations

from typing import Any

import pytest

from simulator.api.admission import lean_pods
from simulator.api.apply import LAST_APPLIED
from simulator.api.store import InvalidError
from simulator.objects.objects import Object, annotations_of
from tapp.kube.stored import encoded
from tapp.kube.tolerations import SILENT
from tests.policies import inject_sidecar, rewrite_images, strip_last_applied
from tests.simulator.fake_hook import group, make_world, pod
from tests.simulator.last_applied import CUT, LEFT_ALONE


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("0.5", "500m"),
        ("1000m", "1"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Mi", "512Ki"),
        ("1000", "1k"),
        ("1e3", "1e3"),
        ("1023Ki", "1023Ki"),
        ("0.1Ki", "102400m"),
        ("0", "0"),
        (1, "1"),
        (0.25, "250m"),
        ("1" * 20, "1" * 20),
        ("123456789012345678901234567890m", "123456789012345678901234567890m"),
        ("9" * 30 + "k", "9" * 30 + "k"),
        ("16Ei", "9223372036854775807"),
        ("12e2", "1200"),
        ("1000e3", "1e6"),
        (" 1Gi ", "1Gi"),
    ],
)
def test_quantities_are_canonical(given: Any, stored: str) -> None:
    for amount in (given, stored):
        assert encoded({"limits": {"x": amount}}) == {"limits": {"x": stored}}


def _create(manifest: Object, **options: Any) -> Object:
    world = make_world(**options)
    return world.apply(manifest)


def test_minimal_pod_gets_the_defaults_of_the_api_server() -> None:
    stored = _create(pod("p"))
    spec, container = stored["spec"], stored["spec"]["containers"][0]
    assert spec["restartPolicy"] == "Always"
    assert spec["terminationGracePeriodSeconds"] == 30
    assert spec["serviceAccountName"] == "default"
    assert [t["tolerationSeconds"] for t in spec["tolerations"]] == [300, 300]
    assert container["imagePullPolicy"] == "IfNotPresent"
    assert container["resources"] == {}
    volume = spec["volumes"][-1]["name"]
    assert volume.startswith("kube-api-access-")
    assert len(volume) == len("kube-api-access-") + 5
    assert container["volumeMounts"][0]["name"] == volume
    assert stored["status"]["phase"] == "Pending"
    assert stored["status"]["qosClass"] == "BestEffort"


def test_empty_optional_fields_are_not_stored() -> None:
    """Creates a pod with empty fields: optional ones are dropped.

    Required fields, and fields that are pointers in Go, are stored even if they are empty.
    """
    spec: dict[str, Any] = {
        "hostNetwork": False,
        "nodeSelector": {},
        "securityContext": {},
        "automountServiceAccountToken": False,
        "hostname": "",
        "volumes": [{"name": "tmp", "emptyDir": {}}],
    }
    manifest = pod("p", **spec)
    manifest["spec"]["containers"][0] |= {
        "command": [],
        "env": [{"name": "EMPTY", "value": ""}, {"name": "SET", "value": "1"}],
        "resources": {"limits": {"cpu": "0.5", "memory": "1024Mi"}},
    }
    stored = _create(manifest)["spec"]
    assert not {"hostNetwork", "nodeSelector", "hostname"} & stored.keys()
    assert stored["securityContext"] == {}
    assert stored["automountServiceAccountToken"] is False
    assert stored["volumes"] == [{"name": "tmp", "emptyDir": {}}]
    container = stored["containers"][0]
    assert "command" not in container
    assert container["env"] == [{"name": "EMPTY"}, {"name": "SET", "value": "1"}]
    assert container["resources"]["requests"] == {"cpu": "500m", "memory": "1Gi"}


def _asking(*resources: Object, **pod_resources: Any) -> Object:
    made = pod("p", **pod_resources)
    containers = [
        {"name": f"c{i}", "image": "a:1", "resources": r} for i, r in enumerate(resources)
    ]
    return {**made, "spec": {**made["spec"], "containers": containers}}


_WHOLE = {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (_asking({"limits": {"nvidia.com/gpu": 1}}), "BestEffort"),
        (_asking({"requests": {"cpu": "0", "memory": "0"}}), "BestEffort"),
        (_asking({"limits": {"example.com/fpga": "9" * 25}}), "BestEffort"),
        (_asking({"limits": _WHOLE}), "Guaranteed"),
        (_asking({"limits": {**_WHOLE, "nvidia.com/gpu": 1}}), "Guaranteed"),
        (_asking({"limits": {**_WHOLE, "memory": "0"}}), "Burstable"),
        (_asking({"limits": _WHOLE, "requests": {"memory": "1024Mi"}}), "Guaranteed"),
        (_asking({"limits": _WHOLE}, {}), "Burstable"),
        (_asking({}, resources={"limits": _WHOLE}), "Guaranteed"),
        (_asking({"requests": {"cpu": "500m"}}, resources={"limits": _WHOLE}), "Burstable"),
    ],
    ids=[
        *("GPUs alone", "requests of 0", "25 digits", "limits", "GPUs beside", "one limit of 0"),
        *("the same in other units", "a container without any", "limits of the pod"),
        "limits of the pod, and less for a container",
    ],
)
def test_quality_of_service_is_that_of_kubernetes(given: Object, expected: str) -> None:
    """Computes the QoS class of pods: only CPU and memory above zero count (ComputePodQOS)."""
    assert _create(given)["status"]["qosClass"] == expected


@pytest.mark.parametrize("amount", ["", "1Qi", "abc", "1 Gi", True])
def test_invalid_quantities_are_refused(amount: Any) -> None:
    """Creates pods with amounts that an API server cannot decode."""
    with pytest.raises(InvalidError, match="limits"):
        _create(_asking({"limits": {"cpu": amount}}))


def test_default_tolerations_are_appended() -> None:
    stored = _create(pod("p", tolerations=[{"key": "gpu", "operator": "Exists"}]))
    keys = [toleration["key"] for toleration in stored["spec"]["tolerations"]]
    assert keys == ["gpu", *SILENT]


def test_policies_change_the_stored_pod() -> None:
    """Creates a pod under three policies: the sidecar is its first container, and images are
    rewritten.

    The third policy removes the last-applied annotation when the pod is created.
    """
    policies = [
        inject_sidecar({"name": "proxy", "image": "proxy:1"}),
        rewrite_images(lambda image: image if "/" in image else f"mirror/{image}"),
        strip_last_applied,
    ]
    world = make_world(policies=policies)
    world.apply(group(1))
    world.run(0.15)
    (stored,) = world.list("Pod")
    assert [c["name"] for c in stored["spec"]["containers"]] == ["proxy", "main"]
    assert {c["image"] for c in stored["spec"]["containers"]} == {"mirror/proxy:1", "mirror/web:1"}
    assert LAST_APPLIED not in annotations_of(stored)


# --- lean pods ------------------------------------------------------------------------------------

TAPP = {"apiVersion": "apps.tkestack.io/v1", "kind": "TApp", "name": "t", "uid": "u"}


def carrying(text: str, owner: Object = TAPP) -> Object:
    """Returns a pod of a TApp whose last-applied annotation has this text."""
    made = pod("p")
    meta = {**made["metadata"], "annotations": {LAST_APPLIED: text}, "ownerReferences": [owner]}
    return {**made, "metadata": meta}


@pytest.mark.parametrize(("text", "left"), [*CUT, *((text, text) for text in LEFT_ALONE)])
def test_policy_removes_the_spec_from_the_last_applied_annotation(text: str, left: str) -> None:
    """The policy `lean_pods` removes the spec from the annotation at each creation and update.

    The policy does not change annotations of another form.
    """
    assert annotations_of(lean_pods("CREATE", carrying(text)))[LAST_APPLIED] == left
    assert annotations_of(lean_pods("UPDATE", carrying(text)))[LAST_APPLIED] == left


def test_managed_fields_are_removed_only_from_new_pods_of_tapps() -> None:
    text, _ = CUT[0]
    assert lean_pods("CREATE", carrying(text))["metadata"]["managedFields"] == []
    assert "managedFields" not in lean_pods("UPDATE", carrying(text))["metadata"]
    for other in (carrying(text, {**TAPP, "kind": "ReplicaSet"}), pod("p")):
        assert lean_pods("CREATE", other) is other
