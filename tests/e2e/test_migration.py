"""Runs `python -m migration` on a real API server with objects as the old controller leaves
them.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from .cluster import REPOSITORY, Cluster
from .kube import Json, Kube, documents
from .kubelet import FakeKubelet
from .metacontroller import USER, Controller
from .plugin import environment_with_kubectl
from .proxy import HookProxy
from .waiting import until

pytestmark = pytest.mark.e2e

GROUP = "apps.tkestack.io/v1"
COMPOSITE = REPOSITORY / "metacontroller" / "base" / "composite-controller.yaml"
PODS = ("web-0", "web-1")
SPEC: Json = {
    "containers": [{"name": "main", "image": "app:1"}],
    "terminationGracePeriodSeconds": 1,
}


@pytest.fixture
def register(
    cluster: Cluster, tapps: Controller, hook_proxy: HookProxy
) -> Iterator[Callable[[], None]]:
    """Unregisters the CompositeController, and yields a function that registers it again."""
    if cluster.hook_in_cluster:
        pytest.skip("the CompositeController belongs to the cluster here")
    (manifest,) = documents(COMPOSITE)
    registered = False

    def put_back() -> None:
        nonlocal registered
        if not registered:
            registered = True
            tapps.register(manifest, hook_proxy.url)

    try:
        tapps.unregister(manifest["metadata"]["name"])
        time.sleep(1)  # Metacontroller has to observe the deletion of the CompositeController
        yield put_back
    finally:  # all later tests of this process need the CompositeController
        put_back()


@dataclass
class OldApp:
    """A TApp with two pods and a claim of another controller, and the migration command for it."""

    cluster: Cluster
    kube: Kube
    namespace: str
    uid: str = ""

    def create(self) -> None:
        """Creates the TApp, its pods and its claim."""
        meta: Json = {"namespace": self.namespace}
        tapp = self.kube.create(
            {
                "apiVersion": GROUP,
                "kind": "TApp",
                "metadata": {**meta, "name": "web"},
                "spec": {"replicas": len(PODS), "template": {"spec": SPEC}},
            }
        )
        self.uid = tapp["metadata"]["uid"]
        owner = {"apiVersion": GROUP, "kind": "TApp", "name": "web", "uid": self.uid}
        meta["ownerReferences"] = [{**owner, "controller": True}]
        for name in PODS:
            old = {"tapp_template_hash_key": "4711", "tapp_instance_key": name[-1]}
            metadata = {**meta, "name": name, "labels": old}
            self.kube.create(
                {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": SPEC}
            )
        size = {"requests": {"storage": "1Gi"}}
        self.kube.create(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {**meta, "name": "data-web-0"},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": size},
            }
        )

    def pod(self, name: str) -> Json | None:
        """Returns a pod, or None if it does not exist."""
        return self.kube.find("v1", "pods", self.namespace, name)

    def adopted(self) -> bool:
        """Returns True if every pod has a revision label of this service."""
        found = [self.pod(name) or {"metadata": {}} for name in PODS]
        labels = [each["metadata"].get("labels") or {} for each in found]
        return all(each.get("tapp_template_hash_key", "").startswith("v1-") for each in labels)

    def claim(self) -> Json:
        """Returns the metadata of the claim."""
        found = self.kube.get("v1", "persistentvolumeclaims", self.namespace, "data-web-0")
        metadata: Json = found["metadata"]
        return metadata

    def migrate(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs the command as users do."""
        where = [f"--kubeconfig={self.cluster.kubeconfig}", "-n", self.namespace]
        if self.cluster.context:
            where.append(f"--context={self.cluster.context}")
        return subprocess.run(
            [sys.executable, "-m", "migration", *where, *arguments],
            cwd=REPOSITORY,
            env=environment_with_kubectl(),
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def app(cluster: Cluster, kube: Kube, namespace: str, kubelet: FakeKubelet) -> Iterator[OldApp]:  # noqa: ARG001 - runs the pods
    """The application of the old controller."""
    old = OldApp(cluster, kube, namespace)
    yield old
    kube.delete(GROUP, "tapps", namespace, "web")


def test_migrated_pods_are_adopted_without_a_restart(
    register: Callable[[], None], app: OldApp
) -> None:
    app.create()
    before = {name: app.pod(name) for name in PODS}
    dry = app.migrate()
    assert dry.returncode == 0, dry.stdout + dry.stderr
    assert "3 changes to make" in dry.stdout
    done = app.migrate("--apply")
    assert done.returncode == 0, done.stdout + done.stderr
    assert app.claim()["labels"]["controller-uid"] == app.uid
    register()

    until(app.adopted, "the pods carry the new revision label")
    for name, old in before.items():
        new = app.pod(name)
        assert old is not None
        assert new is not None
        for field in ("uid", "generation"):
            assert new["metadata"][field] == old["metadata"][field]
        assert new["metadata"]["ownerReferences"] == old["metadata"]["ownerReferences"]
    again = app.migrate()
    assert again.returncode == 0, again.stdout + again.stderr
    assert "0 changes to make, 3 done already" in again.stdout
    (manifest,) = documents(COMPOSITE)
    where = manifest["apiVersion"], "compositecontrollers", None, manifest["metadata"]["name"]
    if app.kube.find(*where) is None:
        return  # the simulator's Metacontroller has no object in the cluster
    refused = app.migrate("--apply")
    assert refused.returncode == 2
    assert "CompositeController 'tapp-controller' exists already" in refused.stderr


def test_kept_claim_outlives_its_migrated_tapp(register: Callable[[], None], app: OldApp) -> None:
    app.create()
    done = app.migrate("--apply", "--keep-claims")
    assert done.returncode == 0, done.stdout + done.stderr
    register()
    until(
        lambda: bool(app.kube.get(GROUP, "tapps", app.namespace, "web").get("status")),
        "the TApp has a status",
    )
    app.kube.delete(GROUP, "tapps", app.namespace, "web")
    until(lambda: not any(map(app.pod, PODS)), "the pods are gone")

    def left_to_the_namespace() -> bool:
        return [owner["kind"] for owner in app.claim().get("ownerReferences", [])] == ["Namespace"]

    until(left_to_the_namespace, "the claim has only its namespace as an owner")
    assert "deletionTimestamp" not in app.claim()


def test_released_pods_are_adopted_after_the_printed_commands(
    register: Callable[[], None], cluster: Cluster, app: OldApp
) -> None:
    """The section "If the order went wrong" of docs/migration.md promises this repair."""
    app.create()
    before = {name: app.pod(name) for name in PODS}
    # Metacontroller does this to a child with the right owner and without the label.
    for name in PODS:
        path = app.kube.path("v1", "pods", app.namespace, name)
        app.kube.patch(path, {"metadata": {"ownerReferences": None}})
    told = app.migrate()
    assert told.returncode == 1
    commands = re.findall(r"(kubectl label pod .*)$", told.stdout, re.MULTILINE)
    assert len(commands) == len(PODS)
    for command in commands:
        words = command.split()
        where = [f"--kubeconfig={cluster.kubeconfig}"]
        where += [f"--context={cluster.context}"] if cluster.context else []
        subprocess.run([words[0], *where, *words[1:]], env=environment_with_kubectl(), check=True)
    register()
    until(app.adopted, "the pods are owned and carry the new revision label")
    for name, old in before.items():
        new = app.pod(name)
        assert old is not None
        assert new is not None
        assert new["metadata"]["uid"] == old["metadata"]["uid"]
        assert [owner["uid"] for owner in new["metadata"]["ownerReferences"]] == [app.uid]


def test_adopted_pods_are_updated_in_place(
    register: Callable[[], None], app: OldApp, cluster: Cluster
) -> None:
    """One write adopts a running pod, and the next one updates its image."""
    app.create()
    until(lambda: all(started(app.pod(name)) for name in PODS), "the pods run")
    before = {name: app.pod(name) for name in PODS}
    assert app.migrate("--apply").returncode == 0
    mark = cluster.audit.mark() if cluster.audit else 0
    register()
    tapp = app.kube.path(GROUP, "tapps", app.namespace, "web")

    def up_to_date(generation: int) -> bool:
        status = app.kube.request("GET", tapp).get("status") or {}
        seen = status.get("observedGeneration") == generation
        return seen and status.get("updatedReplicas") == status.get("availableReplicas") == 2

    def written() -> list[str]:
        """Returns Metacontroller's accepted writes to pods since the mark."""
        log = cluster.audit
        found = log.writes(mark, user=USER, namespace=app.namespace) if log else []
        return sorted(f"{w.verb} {w.name}" for w in found if w.accepted and w.resource == "pods")

    until(lambda: up_to_date(1), "all pods are adopted")
    once = ["update web-0", "update web-1"]
    assert cluster.audit is None or written() == once
    for name, old in before.items():
        assert started(app.pod(name)) == started(old)
    spec = {**SPEC, "containers": [{"name": "main", "image": "app:2"}]}
    app.kube.patch(tapp, {"spec": {"template": {"spec": spec}}})
    until(lambda: up_to_date(2), "all pods are updated")
    assert cluster.audit is None or written() == sorted(once * 2)
    for name, old in before.items():
        new = app.pod(name)
        assert new is not None
        assert old is not None
        assert new["metadata"]["uid"] == old["metadata"]["uid"]
        assert new["status"]["containerStatuses"][0]["restartCount"] == 1


def started(pod: Json | None) -> str:
    """Returns the id of the pod's container if the container is ready, or an empty string."""
    statuses = ((pod or {}).get("status") or {}).get("containerStatuses") or [{}]
    return str(statuses[0].get("containerID", "")) if statuses[0].get("ready") else ""
