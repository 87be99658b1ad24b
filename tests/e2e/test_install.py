"""Runs the documented commands for the bearer token on a real API server in their
documented order.
"""

from __future__ import annotations

import base64
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from .cluster import REPOSITORY, Cluster, wait_namespace_gone
from .kube import Kube
from .plugin import environment_with_kubectl

pytestmark = pytest.mark.e2e

TOKEN = REPOSITORY / "metacontroller" / "components" / "bearer-token"
NAMESPACE = "tapp-system"
KUSTOMIZATION = "deploy/kustomization.yaml"


def commands(kustomization: Path) -> list[str]:
    """Returns the commands in the comments of a file: indented lines, with continued lines
    joined.
    """
    text = kustomization.read_text(encoding="utf-8").replace("\\\n#", "")
    return re.findall(r"(?m)^#   (?=kubectl|[A-Z]+=)(.+)$", text)


COMPONENTS = ["pod-status", "bearer-token"]


@pytest.fixture
def clone(cluster: Cluster, kube: Kube, tmp_path: Path) -> Iterator[Path]:
    """The manifests with a directory `deploy`.

    The namespace that the commands create is deleted at the end.
    """
    if cluster.backend != "local":
        pytest.skip("makes a namespace of that name")
    for name in ("metacontroller", "crds"):
        shutil.copytree(REPOSITORY / name, tmp_path / name)
    (tmp_path / "deploy").mkdir()
    deploy = {"resources": ["../metacontroller/base"]}
    deploy["components"] = [f"../metacontroller/components/{name}" for name in COMPONENTS]
    (tmp_path / KUSTOMIZATION).write_text(yaml.safe_dump(deploy))
    yield tmp_path
    kube.delete("v1", "namespaces", None, NAMESPACE)
    wait_namespace_gone(kube, NAMESPACE)


def test_bearer_token_commands_work_in_their_documented_order(
    cluster: Cluster, kube: Kube, clone: Path
) -> None:
    """The Secret needs its namespace, and the Deployment and the hooks need the Secret."""
    *before, last = commands(TOKEN / "kustomization.yaml")
    assert last == "kubectl apply --server-side -k deploy"
    # The last command is a dry run, because other tests use their own CompositeController.
    script = "\n".join([*before, f"{last} --force-conflicts --dry-run=server"])
    done = subprocess.run(
        ["sh", "-eu", "-c", script],
        cwd=clone,
        env={**environment_with_kubectl(), "KUBECONFIG": str(cluster.kubeconfig)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "deployment.apps/tapp-hooks serverside-applied (server dry run)" in done.stdout
    assert "decoratorcontroller.metacontroller.k8s.io/tapp-pod-status serverside" in done.stdout
    stored = kube.get("v1", "secrets", NAMESPACE, "tapp-hooks-token")["data"]
    token, accepted = (base64.b64decode(stored[key]) for key in ("token", "accepted"))
    assert token == accepted
    assert len(token) == 64
