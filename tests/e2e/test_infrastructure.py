"""The cluster itself has what the real tests rely on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .audit import tally
from .cluster import Cluster, wait_namespace_ready
from .informer import Informer
from .kube import Kube
from .pods import Pods, container, is_ready

pytestmark = pytest.mark.e2e


class TestCluster:
    def test_has_what_pods_need(self, kube: Kube) -> None:
        """The default namespace is there, with the service account that pods run under."""
        wait_namespace_ready(kube, "default")

    def test_tells_its_true_version(self, cluster: Cluster, kube: Kube) -> None:
        """`kubectl version` can read what the API server says of itself."""
        version = kube.request("GET", "/version")
        assert version["gitVersion"].startswith("v1.")
        assert cluster.backend in {"local", "existing", "kind"}

    def test_kubectl_is_current(self, kubectl: Callable[..., str]) -> None:
        """A kubectl of the cluster's time reads its version and explains TApp."""
        assert "Server Version: v1." in kubectl("version")
        assert "<string>" in kubectl("explain", "tapp.spec.template.spec.containers.image")

    def test_every_process_is_ours(self, cluster: Cluster) -> None:
        """Four processes, each with a pid of its own."""
        plane = cluster.control_plane
        if plane is None:
            pytest.skip("the control plane is not made of our processes")
        assert len(set(plane.pids.values())) == 4

    def test_audit_log_counts_writes(self, cluster: Cluster, kube: Kube, namespace: str) -> None:
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

    def test_restarts_on_the_same_data(self, cluster: Cluster, pods: Pods, kube: Kube) -> None:
        """API server and controller manager come back with everything, and everybody finds them."""
        plane = cluster.control_plane
        if plane is None:
            pytest.skip("not ours to restart")
        pods.create("before")
        pods.wait("before", is_ready)
        changes: list[str] = []
        path = kube.path("v1", "pods", pods.namespace)
        heard = Informer(kube, path, lambda change, obj: changes.append(change)).start()  # noqa: ARG005
        try:
            plane.restart_api(kill=True)
            plane.restart_controller_manager()
            pods.create("after")
            pods.wait("after", is_ready)
            assert heard.wait_for(lambda now: (pods.namespace, "after") in now, 60)
        finally:
            heard.stop()
        assert container(pods.get("before"))["restartCount"] == 0
