"""The audit log, by which the tests count what is written, counts right."""

from __future__ import annotations

import pytest

from .audit import tally
from .cluster import Cluster
from .kube import Kube

pytestmark = pytest.mark.e2e


def test_audit_log_counts_writes(cluster: Cluster, kube: Kube, namespace: str) -> None:
    """A create, a changing and an idle PUT are three writes, of which one changed nothing."""
    if cluster.audit is None:
        pytest.skip("no audit log here")
    mark = cluster.audit.mark()
    claim = kube.create(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "counted", "namespace": namespace},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "",
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }
    )
    claim["metadata"].setdefault("labels", {})["new"] = "yes"
    claim["metadata"].pop("managedFields")
    del claim["metadata"]["resourceVersion"]
    kube.replace(claim)
    kube.replace(claim)
    writes = [
        write
        for write in cluster.audit.writes(mark, namespace=namespace, name="counted")
        if write.agent == "tapp-e2e"
    ]
    assert tally(writes) == {
        "create persistentvolumeclaims": 1,
        "update persistentvolumeclaims": 2,
    }
    assert writes[1].resource_version == writes[2].resource_version
