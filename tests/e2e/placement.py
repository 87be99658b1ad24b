"""Sends the pods of the tests to the fake nodes of a cluster that also has real nodes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from .cluster import wait_namespace_ready
from .kube import Kube, documents
from .waiting import until

POLICY = Path(__file__).resolve().parent / "steer.yaml"
NAMESPACE_LABEL = "e2e.fake/namespace"
PROBE = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "probe"},
    "spec": {"containers": [{"name": "main", "image": "app:1"}]},
}


@contextlib.contextmanager
def steered(kube: Kube) -> Iterator[None]:
    """Installs the policy, waits until it has an effect, and deletes it at the end."""
    made = [kube.apply(each) for each in documents(POLICY)]
    home = kube.create(
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"generateName": "tapp-e2e-probe-", "labels": {NAMESPACE_LABEL: "true"}},
        }
    )
    name = home["metadata"]["name"]
    try:
        wait_obeyed(kube, name)
        yield
    finally:
        kube.delete("v1", "namespaces", None, name)
        for each in reversed(made):
            kube.request("DELETE", kube.path_of(each))


def wait_obeyed(kube: Kube, namespace: str) -> None:
    """Waits until the dry run of a pod gets a node selector from the policy."""
    wait_namespace_ready(kube, namespace)
    path = kube.path("v1", "pods", namespace)
    until(
        lambda: "nodeSelector" in kube.request("POST", path, PROBE, {"dryRun": "All"})["spec"],
        "the API server obeys the steering policy (from 1.36 on)",
        60,
    )
