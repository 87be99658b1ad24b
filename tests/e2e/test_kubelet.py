"""What the tests make the fake kubelet do: its levers, and what a kubelet does beside containers.

What it makes of containers is compared with a real one by test_kubelet_differential.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from .cluster import Cluster
from .kube import Kube
from .kubelet import FakeKubelet
from .kubelet_levers import Levers
from .pods import Pods, container, is_ready, phase, waiting

pytestmark = pytest.mark.e2e


class TestKubelet:
    def test_runs_a_pod(self, pods: Pods) -> None:
        """A plain pod becomes Ready, and then is left alone."""
        pods.create("plain")
        found = pods.wait("plain", is_ready)
        assert phase(found) == "Running"
        assert container(found)["image"] == "docker.io/library/app:1"
        time.sleep(0.5)
        again = pods.get("plain")["metadata"]["resourceVersion"]
        assert again == found["metadata"]["resourceVersion"]

    def test_tells_which_spec_it_has_seen(
        self, pods: Pods, needs: Callable[[int, str], None]
    ) -> None:
        """From the generation that a pod is born with to that of its newest image."""
        needs(34, "status.observedGeneration of pods")
        pods.create("seen")
        assert pods.wait("seen", is_ready)["status"]["observedGeneration"] == 1
        pods.set_image("seen", "app:2")
        new = pods.wait("seen", lambda p: container(p)["restartCount"] == 1)
        assert new["status"]["observedGeneration"] == new["metadata"]["generation"] == 2

    def test_a_bad_registry_recovers(self, pods: Pods, levers: Levers) -> None:
        """A first pull that fails keeps the pod Pending until the image can be had."""
        levers.bad_images.add("app:1")
        pods.create("first")
        stuck = pods.wait("first", lambda p: waiting(p) == "ImagePullBackOff")
        assert phase(stuck) == "Pending"
        levers.bad_images.clear()
        assert container(pods.wait("first", is_ready))["restartCount"] == 0

    def test_a_slow_pull_is_silent(self, pods: Pods, levers: Levers) -> None:
        """As on a real node, the API shows the old container while the new one is pulled."""
        pods.create("silent")
        old = pods.wait("silent", is_ready)
        levers.pulls = {"app:2": 1.0}
        pods.set_image("silent", "app:2")
        time.sleep(0.6)
        during = pods.get("silent")
        assert is_ready(during)
        told = 2 if levers.reports_generation else None
        assert during["status"].get("observedGeneration") == told
        assert container(during)["containerID"] == container(old)["containerID"]
        pods.wait("silent", lambda p: container(p)["restartCount"] == 1 and is_ready(p))

    def test_honours_readiness_gates(self, pods: Pods, kube: Kube) -> None:
        """Running containers do not make a pod Ready while a gate is closed."""
        pods.create("gated", readinessGates=[{"conditionType": "e2e.fake/gate"}])
        found = pods.wait("gated", lambda p: bool(container(p).get("ready")))
        assert not is_ready(found)
        gate = {"type": "e2e.fake/gate", "status": "True"}
        path = kube.path("v1", "pods", pods.namespace, "gated", "status")
        kube.patch(path, [{"op": "add", "path": "/status/conditions/-", "value": gate}])
        pods.wait("gated", is_ready)

    def test_evicts(self, pods: Pods, kubelet: FakeKubelet) -> None:
        """An evicted pod has failed, with the reason that says so."""
        pods.create("evicted")
        pods.wait("evicted", is_ready)
        kubelet.evict(pods.namespace, "evicted")
        found = pods.wait("evicted", lambda p: phase(p) == "Failed")
        assert found["status"]["reason"] == "Evicted"

    def test_refuses(self, pods: Pods, levers: Levers) -> None:
        """A pod that the kubelet refuses has failed without any container."""
        levers.refuse[f"{pods.namespace}/refused"] = ("OutOfpods", "Too many pods")
        pods.create("refused")
        found = pods.wait("refused", lambda p: phase(p) == "Failed")
        assert found["status"]["reason"] == "OutOfpods"
        assert found["spec"]["nodeName"]
        assert "containerStatuses" not in found["status"]

    def test_deletes_with_grace(self, pods: Pods, levers: Levers) -> None:
        """A deleted pod stays Terminating while its containers stop."""
        levers.stop_seconds = 0.8
        pods.create("grace", terminationGracePeriodSeconds=5)
        pods.wait("grace", is_ready)
        begun = time.monotonic()
        pods.delete("grace")
        assert pods.get("grace")["metadata"]["deletionTimestamp"]
        pods.wait_gone("grace")
        assert 0.7 < time.monotonic() - begun < 5

    def test_deletion_can_hang(self, pods: Pods, kubelet: FakeKubelet) -> None:
        """A hanging deletion ends when the lever is released."""
        key = f"{pods.namespace}/hangs"
        kubelet.levers.hang_deletion.add(key)
        pods.create("hangs")
        pods.wait("hangs", is_ready)
        pods.delete("hangs")
        time.sleep(1.5)
        assert pods.get("hangs")["metadata"]["deletionTimestamp"]
        kubelet.levers.hang_deletion.discard(key)
        kubelet.poke()
        pods.wait_gone("hangs")

    def test_loses_and_recovers_a_node(
        self, pods: Pods, kubelet: FakeKubelet, kube: Kube, note: list[str]
    ) -> None:
        """A silent node becomes Unknown, its pods Terminating and stuck; its return frees them."""
        pods.create("stranded", nodeSelector={"kubernetes.io/hostname": "fake-1"})
        pods.wait("stranded", is_ready)
        kubelet.lose("fake-1")
        begun = time.monotonic()
        pods.wait("stranded", lambda p: "deletionTimestamp" in p["metadata"], 60)
        note.append(f"lost node: pods Terminating after {time.monotonic() - begun:.1f} s")
        pods.wait("stranded", lambda p: not is_ready(p))  # the node controller's own pace
        time.sleep(2)
        pods.get("stranded")
        begun = time.monotonic()
        kubelet.recover("fake-1")
        pods.wait_gone("stranded")
        note.append(f"lost node: pods gone {time.monotonic() - begun:.1f} s after its return")
        deadline = time.monotonic() + 20
        while "node.kubernetes.io" in str(kube.get("v1", "nodes", None, "fake-1")["spec"]):
            assert time.monotonic() < deadline
            time.sleep(0.1)

    def test_claims_are_bound(self, pods: Pods, kube: Kube, cluster: Cluster) -> None:
        """A pod with a claim starts: the claim gets a volume, and keeps it from its deletion."""
        if cluster.backend != "local":
            pytest.skip("claims get their volumes from this cluster's own provisioner")
        kube.create(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": "store", "namespace": pods.namespace},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "1Gi"}},
                },
            }
        )
        volume = {"name": "store", "persistentVolumeClaim": {"claimName": "store"}}
        pods.create("stored", volumes=[volume])
        pods.wait("stored", is_ready)
        assert kube.get("v1", "persistentvolumeclaims", pods.namespace, "store")["spec"][
            "volumeName"
        ]
