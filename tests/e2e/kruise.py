"""Runs the manager of OpenKruise as a host process, to compare its Advanced StatefulSet with a
TApp.

`KRUISE_DIR` names a directory with the built `manager` and its CRDs in `crds`. The manager is built
without webhooks (`webhook.SetupWithManager`, `Initialize` and `WaitReady` in main.go). So their
cost is not counted, and this module writes the fields that they would default.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from .cluster import Cluster
from .kube import Json, Kube, documents
from .metacontroller import account_kubeconfig
from .process import Process, free_ports

API = "apps.kruise.io/v1beta1"
SPACE, ACCOUNT = "kruise-system", "kruise"
USER = f"system:serviceaccount:{SPACE}:{ACCOUNT}"


def directory(environment: Mapping[str, str]) -> Path | None:
    """Returns the directory of OpenKruise, or None if the environment does not name it."""
    found = environment.get("KRUISE_DIR")
    return Path(found) if found else None


@contextmanager
def manager(built: Path, cluster: Cluster, kube: Kube, workspace: Path) -> Iterator[Process]:
    """Runs the manager with the client limits that Metacontroller has in the shipped manifests."""
    for file in sorted((built / "crds").glob("*.yaml")):
        for each in documents(file):
            kube.apply(each)
    account = {"namespace": SPACE, "name": ACCOUNT}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    for each in (
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": ACCOUNT},
            "roleRef": role,
            "subjects": [{"kind": "ServiceAccount", **account}],
        },
    ):
        kube.apply(each)
    kubeconfig = workspace / "kruise.kubeconfig"
    account_kubeconfig(cluster, kube, kubeconfig, **account)
    metrics, health = free_ports(2)
    process = Process(
        "kruise",
        [
            built / "manager",
            "--enable-leader-election=false",
            "--enable-pprof=false",
            f"--metrics-addr=127.0.0.1:{metrics}",
            f"--health-probe-addr=127.0.0.1:{health}",
            "--rest-config-qps=200",
            "--rest-config-burst=400",
        ],
        workspace / "kruise.log",
        environment={**os.environ, "KUBECONFIG": str(kubeconfig)},
        directory=workspace,
    )
    process.start()
    try:
        process.wait_http(f"http://127.0.0.1:{health}/readyz", timeout=60)
        yield process
    finally:
        process.stop()


def statefulset(name: str, replicas: int, budget: str, template: Json) -> Json:
    """Returns an Advanced StatefulSet that updates in place, with the readiness gate that
    it needs.
    """
    labels, gates = {"app": name}, [{"conditionType": "InPlaceUpdateReady"}]
    spec = {**template["spec"], "readinessGates": gates}
    rolling = {"partition": 0, "maxUnavailable": budget, "podUpdatePolicy": "InPlaceIfPossible"}
    return {
        "apiVersion": API,
        "kind": "StatefulSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "serviceName": name,
            "selector": {"matchLabels": labels},
            "podManagementPolicy": "Parallel",
            "revisionHistoryLimit": 10,
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }
