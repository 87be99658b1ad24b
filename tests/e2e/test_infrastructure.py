"""The parts themselves: cluster, kubelet and controllers do what the real tests rely on."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from .audit import tally
from .cluster import Cluster, wait_namespace_ready
from .informer import Informer
from .kube import Kube
from .kubelet import FakeKubelet
from .kubelet_levers import Levers

Json = dict[str, Any]
pytestmark = pytest.mark.e2e


def pod(namespace: str, name: str, **spec: Any) -> Json:
    """A pod with one container `main`, unless the spec says otherwise."""
    containers = [{"name": "main", "image": "app:1"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"containers": containers, "terminationGracePeriodSeconds": 1} | spec,
    }


class Pods:
    """The pods of a namespace, with short ways to wait for them."""

    def __init__(self, kube: Kube, namespace: str) -> None:
        self.kube = kube
        self.namespace = namespace

    def get(self, name: str) -> Json:
        return self.kube.get("v1", "pods", self.namespace, name)

    def create(self, name: str, **spec: Any) -> Json:
        return self.kube.create(pod(self.namespace, name, **spec))

    def delete(self, name: str, **options: Any) -> bool:
        return self.kube.delete("v1", "pods", self.namespace, name, **options)

    def set_image(
        self, name: str, image: str, container: int = 0, group: str = "containers"
    ) -> None:
        patch = [{"op": "replace", "path": f"/spec/{group}/{container}/image", "value": image}]
        self.kube.patch(self.kube.path("v1", "pods", self.namespace, name), patch)

    def wait(self, name: str, ready: Callable[[Json], bool], timeout: float = 20) -> Json:
        deadline = time.monotonic() + timeout
        while True:
            found = self.get(name)
            if ready(found):
                return found
            assert time.monotonic() < deadline, found.get("status")
            time.sleep(0.03)

    def wait_gone(self, name: str, timeout: float = 20) -> None:
        deadline = time.monotonic() + timeout
        while self.kube.find("v1", "pods", self.namespace, name):
            assert time.monotonic() < deadline, f"{name} is still there"
            time.sleep(0.03)


@pytest.fixture
def pods(kube: Kube, namespace: str, kubelet: FakeKubelet) -> Pods:  # noqa: ARG001
    return Pods(kube, namespace)


def is_ready(found: Json) -> bool:
    return any(
        each["type"] == "Ready" and each["status"] == "True"
        for each in (found.get("status") or {}).get("conditions") or []
    )


def container(found: Json, index: int = 0, group: str = "containerStatuses") -> Json:
    status: Json = (found["status"].get(group) or [{}] * (index + 1))[index]
    return status


def waiting(found: Json) -> str:
    state = container(found).get("state") or {}
    return str((state.get("waiting") or {}).get("reason", ""))


def phase(found: Json) -> str:
    return str(found["status"]["phase"])


class TestCluster:
    def test_has_what_pods_need(self, kube: Kube) -> None:
        """The default namespace is there, with the service account that pods run under."""
        wait_namespace_ready(kube, "default")

    def test_tells_its_true_version(self, cluster: Cluster, kube: Kube) -> None:
        """`kubectl version` can read what the API server says of itself."""
        version = kube.request("GET", "/version")
        assert version["gitVersion"].startswith("v1.")
        assert cluster.backend in {"local", "existing", "kind"}

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
            pods.wait("after", is_ready, timeout=40)
            assert heard.wait_for(lambda now: (pods.namespace, "after") in now, 10)
        finally:
            heard.stop()
        assert container(pods.get("before"))["restartCount"] == 0


class TestKubelet:
    def test_runs_a_pod(self, pods: Pods) -> None:
        """A plain pod becomes Ready, observed at its generation, and then is left alone."""
        pods.create("plain")
        found = pods.wait("plain", is_ready)
        assert phase(found) == "Running"
        assert found["status"]["observedGeneration"] == found["metadata"]["generation"]
        assert container(found)["image"] == "docker.io/library/app:1"
        time.sleep(0.5)
        again = pods.get("plain")["metadata"]["resourceVersion"]
        assert again == found["metadata"]["resourceVersion"]

    def test_replaces_a_container_in_place(self, pods: Pods) -> None:
        """A new image: same pod, new containerID, one more restart, the old run in lastState."""
        two = [{"name": "main", "image": "app:1"}, {"name": "side", "image": "side:1"}]
        pods.create("place", containers=two)
        old = pods.wait("place", is_ready)
        pods.set_image("place", "app:2")
        new = pods.wait("place", lambda p: container(p)["restartCount"] == 1 and is_ready(p))
        assert new["metadata"]["uid"] == old["metadata"]["uid"]
        assert container(new)["containerID"] != container(old)["containerID"]
        assert (
            container(new)["lastState"]["terminated"]["containerID"]
            == container(old)["containerID"]
        )
        assert container(new, 1) == container(old, 1)
        assert new["status"]["observedGeneration"] == 2

    def test_fails_to_pull_and_recovers(self, pods: Pods, levers: Levers) -> None:
        """A bad image ends in ImagePullBackOff; the next good one runs at once."""
        pods.create("pull")
        pods.wait("pull", is_ready)
        levers.bad_images.add("app:bad")
        pods.set_image("pull", "app:bad")
        stuck = pods.wait("pull", lambda p: waiting(p) == "ImagePullBackOff")
        assert not is_ready(stuck)
        assert phase(stuck) == "Running"
        pods.set_image("pull", "app:3")
        pods.wait("pull", lambda p: is_ready(p) and container(p)["image"].endswith("app:3"))

    def test_a_bad_registry_recovers(self, pods: Pods, levers: Levers) -> None:
        """A first pull that fails keeps the pod Pending until the image can be had."""
        levers.bad_images.add("app:1")
        pods.create("first")
        stuck = pods.wait("first", lambda p: waiting(p) == "ImagePullBackOff")
        assert phase(stuck) == "Pending"
        levers.bad_images.clear()
        assert container(pods.wait("first", is_ready))["restartCount"] == 0

    def test_slow_pull_can_be_silent(self, pods: Pods, levers: Levers) -> None:
        """As on a real node, the API may show the old container while the new one is pulled."""
        pods.create("silent")
        old = pods.wait("silent", is_ready)
        levers.silent_pulls, levers.pulls = True, {"app:2": 1.0}
        pods.set_image("silent", "app:2")
        time.sleep(0.6)
        during = pods.get("silent")
        assert is_ready(during)
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

    def test_init_containers_and_sidecars(self, pods: Pods) -> None:
        """Init containers run once and in order; a native sidecar restarts on a new image."""
        inits = [
            {"name": "prepare", "image": "init:1"},
            {"name": "proxy", "image": "proxy:1", "restartPolicy": "Always"},
        ]
        pods.create("inits", initContainers=inits)
        old = pods.wait("inits", is_ready)
        assert container(old, 0, "initContainerStatuses")["state"]["terminated"]["exitCode"] == 0
        pods.set_image("inits", "init:2", 0, "initContainers")
        pods.set_image("inits", "proxy:2", 1, "initContainers")
        key = "initContainerStatuses"
        new = pods.wait("inits", lambda p: container(p, 1, key)["restartCount"] == 1)
        assert container(new, 0, key) == container(old, 0, key)
        assert container(new) == container(old)

    @pytest.mark.parametrize(
        ("policy", "code", "end"),
        [("Never", 0, "Succeeded"), ("Never", 3, "Failed"), ("OnFailure", 0, "Succeeded")],
    )
    def test_completes(
        self, pods: Pods, kubelet: FakeKubelet, policy: str, code: int, end: str
    ) -> None:
        """A container that exits ends the pod, unless its restart policy says otherwise."""
        pods.create("job", restartPolicy=policy)
        pods.wait("job", is_ready)
        kubelet.finish(pods.namespace, "job", code)
        found = pods.wait("job", lambda p: phase(p) == end)
        assert container(found)["state"]["terminated"]["exitCode"] == code

    def test_restarts_on_failure(self, pods: Pods, kubelet: FakeKubelet) -> None:
        """OnFailure: a failed container runs again in the same pod."""
        pods.create("again", restartPolicy="OnFailure")
        pods.wait("again", is_ready)
        kubelet.finish(pods.namespace, "again", 1)
        pods.wait("again", lambda p: container(p)["restartCount"] == 1 and is_ready(p))

    def test_sidecars_end_with_the_pod(self, pods: Pods, kubelet: FakeKubelet) -> None:
        """A pod whose main containers are done stops its native sidecars and completes."""
        side = {"name": "proxy", "image": "proxy:1", "restartPolicy": "Always"}
        pods.create("done", restartPolicy="Never", initContainers=[side])
        pods.wait("done", is_ready)
        kubelet.finish(pods.namespace, "done")
        pods.wait("done", lambda p: phase(p) == "Succeeded")

    def test_crash_loop_and_rescue(self, pods: Pods, levers: Levers) -> None:
        """A crashing image backs off; a new image starts without waiting."""
        levers.crashing["app:bad"] = 1
        pods.create("crash")
        pods.wait("crash", is_ready)
        pods.set_image("crash", "app:bad")
        pods.wait("crash", lambda p: waiting(p) == "CrashLoopBackOff")
        pods.set_image("crash", "app:4")
        pods.wait("crash", lambda p: is_ready(p) and container(p)["image"].endswith("app:4"))

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
        found = pods.create("stranded", nodeSelector={"kubernetes.io/hostname": "fake-1"})
        pods.wait("stranded", is_ready)
        kubelet.lose("fake-1")
        begun = time.monotonic()
        found = pods.wait("stranded", lambda p: "deletionTimestamp" in p["metadata"], 60)
        note.append(f"lost node: pods Terminating after {time.monotonic() - begun:.1f} s")
        assert not is_ready(found)
        time.sleep(2)
        pods.get("stranded")
        begun = time.monotonic()
        kubelet.recover("fake-1")
        pods.wait_gone("stranded")
        note.append(f"lost node: pods gone {time.monotonic() - begun:.1f} s after its return")
        deadline = time.monotonic() + 20
        while kube.get("v1", "nodes", None, "fake-1")["spec"].get("taints"):
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

    @pytest.mark.slow
    def test_500_pods(self, pods: Pods, kube: Kube, note: list[str]) -> None:
        """500 pods are Ready within a minute, by the kubelet's doing not the test's patience."""
        begun = time.monotonic()
        for number in range(500):
            pods.create(f"many-{number}")
        created = time.monotonic() - begun
        path = kube.path("v1", "pods", pods.namespace)
        heard = Informer(kube, path).start()
        try:
            all_ready = heard.wait_for(lambda now: sum(map(is_ready, now.values())) == 500, 90)
        finally:
            heard.stop()
        assert all_ready
        seconds = time.monotonic() - begun
        note.append(f"500 plain pods: created in {created:.1f} s, all Ready after {seconds:.1f} s")
