"""Effects of platforms on an installation: stored objects, placement of pods, and refused
user ids.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from release.kustomize import components, composed

from .definitions import definition_files
from .installed_release import IMAGE, Fresh, fresh_cluster
from .kube import Json

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
NAMESPACE = "tapp-system"
FOREIGN = ("cert-manager.io", "monitoring.coreos.com")
"""Groups of kinds that an empty cluster does not have."""
LINUX, ZONE = "kubernetes.io/os", "topology.kubernetes.io/zone"
RESTRICTED = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: restricted-v2}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
      - {apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}
  validations:
    - expression: >-
        !has(object.spec.securityContext.runAsUser) && !has(object.spec.securityContext.runAsGroup)
        && !has(object.spec.securityContext.fsGroup) && object.spec.containers.all(each,
        !has(each.securityContext) || !has(each.securityContext.runAsUser))
      message: "runAsUser, runAsGroup, fsGroup: must be in the range of the namespace"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: restricted-v2}
spec: {policyName: restricted-v2, validationActions: [Deny]}
"""
"""A policy in place of OpenShift, where each namespace has a range of user ids and refuses
others.
"""


@pytest.fixture(scope="module")
def fresh(workspace: Path) -> Iterator[Fresh]:
    """An empty control plane with three nodes and Metacontroller's kinds."""
    with fresh_cluster(workspace) as made:
        made.do("kubectl", "create", "-f", definition_files(os.environ)[-1])
        yield made


@pytest.fixture
def shipped(fresh: Fresh, tmp_path: Path) -> Path:
    """A file with all shipped manifests and components whose kinds an empty cluster has."""
    lacking = {"shards"} | ({"admission-policies"} if fresh.kube.minor < 36 else set())
    names = [name for name in components() if name not in lacking]
    found = [each for each in composed(names, IMAGE) if not each["apiVersion"].startswith(FOREIGN)]
    file = tmp_path / "install.yaml"
    file.write_text(yaml.dump_all(found, Dumper=yaml.CSafeDumper))
    return file


def differing(wanted: Any, stored: Any, path: str = "") -> list[str]:
    """Returns the places of a manifest whose stored value differs."""
    if isinstance(wanted, dict):
        inside = stored if isinstance(stored, dict) else {}
        return [
            place
            for key, each in wanted.items()
            for place in differing(each, inside.get(key), f"{path}.{key}")
        ]
    if isinstance(wanted, list) and isinstance(stored, list) and len(wanted) == len(stored):
        return [
            place
            for index, (one, other) in enumerate(zip(wanted, stored, strict=True))
            for place in differing(one, other, f"{path}[{index}]")
        ]
    return [] if wanted == stored else [f"{path}: {wanted!r} is stored as {stored!r}"]


@pytest.mark.parametrize("side", ["--server-side=false", "--server-side"])
def test_stored_manifests_equal_the_applied_ones(fresh: Fresh, shipped: Path, side: str) -> None:
    """Otherwise Argo CD would report a difference and apply the manifests again and again."""
    force = ["--force-conflicts"] if side == "--server-side" else []
    fresh.until_done("kubectl", "apply", side, *force, "-f", shipped)
    wanted = list(yaml.load_all(shipped.read_text(), yaml.CSafeLoader))
    got = yaml.load(fresh.do("kubectl", "get", "-f", shipped, "-o", "yaml"), yaml.CSafeLoader)
    assert len(got["items"]) == len(wanted)
    for one, other in zip(wanted, got["items"], strict=True):
        where = f"{one['kind']}/{one['metadata']['name']}"
        assert differing(one, other, where) == []
    again = fresh.do("kubectl", "apply", side, *force, "-f", shipped, "-o", "name")
    assert len(again.splitlines()) == len(wanted)


@pytest.mark.parametrize(
    ("labels", "nodes"),
    [
        ([{}, {}, {}], 2),
        ([{ZONE: "a"}, {ZONE: "a"}, {ZONE: "a"}], 2),
        ([{ZONE: "a"}, {ZONE: "b"}, {ZONE: "b"}], 2),
        ([{ZONE: "a"}, {}, {}], 2),
        ([{}, {}, {LINUX: "windows"}], 2),
        ([{LINUX: "windows"}, {}, {LINUX: "windows"}], 1),
    ],
    ids=["no zones", "one zone", "two zones", "a zone", "one with Windows", "one with Linux"],
)
def test_replicas_of_the_service_run_on_different_linux_nodes(
    fresh: Fresh, shipped: Path, labels: list[dict[str, str]], nodes: int
) -> None:
    """The real scheduler must use no Windows node, and must start both replicas on a single
    node.
    """
    for number, given in enumerate(labels):
        whole = {LINUX: "linux", ZONE: None, **given}
        fresh.kube.patch(f"/api/v1/nodes/fake-{number}", {"metadata": {"labels": whole}})
    fresh.until_done("kubectl", "apply", "--server-side", "--force-conflicts", "-f", shipped)
    name = ("deployment/tapp-hooks", "-n", NAMESPACE)
    fresh.do("kubectl", "scale", *name, "--replicas=0")
    fresh.until(lambda: not pods(fresh), "the pods are gone")
    fresh.do("kubectl", "scale", *name, "--replicas=2")
    fresh.until(lambda: len(nodes_of_pods(fresh)) == 2, "both pods have a node")
    assert len(set(nodes_of_pods(fresh))) == nodes


def test_manifests_set_no_user_id_that_openshift_would_refuse(
    fresh: Fresh, shipped: Path, tmp_path: Path
) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(RESTRICTED)
    fresh.until_done("kubectl", "apply", "--server-side", "--force-conflicts", "-f", shipped)
    fresh.do("kubectl", "apply", "-f", policy)
    try:
        fixed = ("kubectl", "run", "fixed", "--image=a", "-n", "default")
        with_id = '--overrides={"spec":{"securityContext":{"runAsUser":1}}}'
        fresh.until(
            lambda: fresh.run(*fixed, with_id, "--dry-run=server").returncode != 0,
            "the policy refuses the pod",
        )
        before = {each["metadata"]["uid"] for each in pods(fresh)}
        name = ("deployment/tapp-hooks", "-n", NAMESPACE)
        fresh.do("kubectl", "rollout", "restart", *name)
        fresh.do("kubectl", "rollout", "status", *name, "--timeout=60s")
        fresh.until(
            lambda: not before & {each["metadata"]["uid"] for each in pods(fresh)},
            "all pods are replaced",
        )
    finally:
        fresh.do("kubectl", "delete", "-f", policy)


def pods(fresh: Fresh) -> list[Json]:
    """Returns the pods of the service."""
    return fresh.kube.list_all("v1", "pods", NAMESPACE)


def nodes_of_pods(fresh: Fresh) -> list[str]:
    """Returns the nodes of the service's pods that have one."""
    return [each["spec"]["nodeName"] for each in pods(fresh) if each["spec"].get("nodeName")]
