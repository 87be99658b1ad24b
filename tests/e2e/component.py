"""Starts replicas of the service with a component that uses a service account of the cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from .cluster import REPOSITORY, Cluster
from .hook import HookService
from .kube import Kube, authority_of, documents

NAMESPACE = REPOSITORY / "metacontroller" / "base" / "namespace.yaml"

RESIZE = REPOSITORY / "metacontroller" / "components" / "resize"
RESIZE_ACCOUNT = "tapp-hooks-resize"


@contextmanager
def account_of(
    kube: Kube, cluster: Cluster, component: Path, name: str, directory: Path
) -> Iterator[Path]:
    """Creates a component's account and role, and writes token and CA as a pod gets them.

    The role binding is deleted at the end, because other test files check the rights of an account.

    Args:
        kube: the client of the cluster.
        cluster: the cluster.
        component: the component's directory.
        name: the name of the account.
        directory: the directory for token and CA.
    """
    if cluster.hook_in_cluster or cluster.audit is None:
        pytest.skip("the hook's replicas and the audit log are not this host's")
    made = documents(component / "account.yaml")
    for document in [*documents(NAMESPACE), *made]:
        kube.apply(document)
    (directory / "token").write_text(kube.token("tapp-system", name))
    (directory / "ca.crt").write_bytes(authority_of(cluster.kubeconfig))
    yield directory
    for each in made:
        if each["kind"] == "ClusterRoleBinding":
            name = each["metadata"]["name"]
            kube.delete(each["apiVersion"], "clusterrolebindings", None, name)


@contextmanager
def replicas(kube: Kube, directory: Path, account: Path, setting: str) -> Iterator[HookService]:
    """Runs two replicas of the service with two workers each, and with this setting switched on."""
    directory.mkdir()
    server = urlsplit(kube.server)
    settings = {
        setting: "true",
        "TAPP_EVENTS_ACCOUNT": str(account),
        "KUBERNETES_SERVICE_HOST": server.hostname or "",
        "KUBERNETES_SERVICE_PORT": str(server.port),
    }
    service = HookService(directory, settings=settings).start(replicas=2)
    yield service
    service.stop()
