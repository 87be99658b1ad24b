"""Metacontroller (either of the two) and the hook runner do what the real tests rely on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask, jsonify, request
from flask.typing import ResponseReturnValue
from werkzeug.serving import make_server

from .cluster import Cluster
from .hook import HookService
from .kube import Json, Kube
from .kubelet import FakeKubelet
from .metacontroller import (
    USER,
    Controller,
    EmulatedMetacontroller,
    account_kubeconfig,
)
from .process import answers_ok
from .proxy import HookProxy

pytestmark = pytest.mark.e2e
SMOKE = "e2e.fake/v1"
COMPOSITE: Json = {
    "apiVersion": "metacontroller.k8s.io/v1alpha1",
    "kind": "CompositeController",
    "metadata": {"name": "smoke"},
    "spec": {
        "generateSelector": True,
        "parentResource": {"apiVersion": SMOKE, "resource": "smokes"},
        "childResources": [
            {"apiVersion": "v1", "resource": "pods", "updateStrategy": {"method": "InPlace"}}
        ],
        "hooks": {
            name: {"version": "v2", "webhook": {"timeout": "5s"}} for name in ("sync", "finalize")
        },
    },
}


def smoke_app() -> Flask:
    """One pod per parent, with the parent's image; a finalizer while that pod is there."""
    app = Flask("smoke")

    def pod_of(parent: Json) -> Json:
        image = parent["spec"]["image"]
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": parent["metadata"]["name"]},
            "spec": {"containers": [{"name": "main", "image": image}]},
        }

    @app.post("/sync")
    def sync() -> ResponseReturnValue:
        asked = request.get_json()
        status = {"pods": len(asked["children"]["Pod.v1"])}
        return jsonify(status=status, children=[pod_of(asked["parent"])])

    @app.post("/finalize")
    def finalize() -> ResponseReturnValue:
        left = len(request.get_json()["children"]["Pod.v1"])
        return jsonify(status={"pods": left}, children=[], finalized=left == 0)

    return app


@pytest.fixture(scope="module")
def smoke_hook() -> Iterator[str]:
    server = make_server("127.0.0.1", 0, smoke_app(), threaded=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(params=["chosen", "emulated"])
def smoke(
    request: pytest.FixtureRequest, cluster: Cluster, kube: Kube, smoke_hook: str, tmp_path: Path
) -> Iterator[Controller]:
    """The run's Metacontroller; and the simulator's, also where the real one was chosen."""
    chosen: Controller = request.getfixturevalue("controller")
    if cluster.hook_in_cluster:
        pytest.skip("Metacontroller in the cluster cannot reach a hook on this host")
    if request.param == "emulated":
        if not chosen.real:
            pytest.skip("the chosen one is the emulation")
        account_kubeconfig(cluster, kube, tmp_path / "kubeconfig")
        chosen = EmulatedMetacontroller(tmp_path / "kubeconfig")
    chosen.register(COMPOSITE, smoke_hook)
    yield chosen
    chosen.unregister("smoke")


def wait_until(what: str, ready: Callable[[], Any], timeout: float = 60) -> None:
    deadline = time.monotonic() + timeout
    while not ready():
        assert time.monotonic() < deadline, f"not in {timeout:.0f} s: {what}"
        time.sleep(0.03)


@pytest.mark.usefixtures("kubelet")
class TestMetacontroller:
    def test_keeps_a_parent(
        self, smoke: Controller, kube: Kube, namespace: str, cluster: Cluster, note: list[str]
    ) -> None:
        """Create, update in place, be idle, delete: with exactly the writes this takes."""
        audit = cluster.audit
        mark = audit.mark() if audit else 0
        parent = {
            "apiVersion": SMOKE,
            "kind": "Smoke",
            "metadata": {"name": "one", "namespace": namespace},
            "spec": {"image": "app:1"},
        }

        def running(image: str) -> bool:
            found = kube.find("v1", "pods", namespace, "one") or {}
            shown = (found.get("status") or {}).get("containerStatuses") or [{}]
            return shown[0].get("image", "").endswith(image) and bool(shown[0].get("ready"))

        begun = time.monotonic()
        kube.create(parent)
        wait_until("pod runs", lambda: running("app:1"))
        note.append(f"{smoke.description}: parent to Ready pod {time.monotonic() - begun:.1f} s")
        uid = kube.get("v1", "pods", namespace, "one")["metadata"]["uid"]
        path = kube.path(SMOKE, "smokes", namespace, "one")
        kube.patch(path, {"spec": {"image": "app:2"}})
        wait_until("pod runs the new image", lambda: running("app:2"))
        assert kube.get("v1", "pods", namespace, "one")["metadata"]["uid"] == uid
        wait_until("status", lambda: kube.request("GET", path)["status"].get("pods") == 1)
        if audit:
            writes = [
                write.what
                for write in audit.writes(mark, user=USER, resource="pods", settle=1)
                if write.namespace == namespace and write.accepted
            ]
            assert writes == ["create pods", "update pods"]
        kube.delete(SMOKE, "smokes", namespace, "one")
        wait_until("parent gone", lambda: not kube.find(SMOKE, "smokes", namespace, "one"))
        assert kube.find("v1", "pods", namespace, "one") is None

    def test_restarts(self, smoke: Controller, kube: Kube, namespace: str) -> None:
        """After a restart it goes on with what it finds."""
        parent = {
            "apiVersion": SMOKE,
            "kind": "Smoke",
            "metadata": {"name": "two", "namespace": namespace},
            "spec": {"image": "app:1"},
        }
        kube.create(parent)
        wait_until("pod", lambda: kube.find("v1", "pods", namespace, "two"))
        smoke.restart(kill=True)
        kube.patch(kube.path(SMOKE, "smokes", namespace, "two"), {"spec": {"image": "app:2"}})

        def updated() -> bool:
            pod = kube.get("v1", "pods", namespace, "two")
            return bool(pod["spec"]["containers"][0]["image"] == "app:2")

        wait_until("pod updated", updated)
        kube.delete(SMOKE, "smokes", namespace, "two")
        wait_until("parent gone", lambda: not kube.find(SMOKE, "smokes", namespace, "two"))


class TestHook:
    def test_serves_from_this_checkout(self, hook: HookService, hook_proxy: HookProxy) -> None:
        """The service answers, directly and through the proxy that can break it."""
        assert answers_ok(f"{hook.url}/healthz")
        hook_proxy.fail(1, 503)
        assert hook_proxy.answer("/sync", {}, b"{}")[0] == 503
        status, _ = hook_proxy.answer("/sync", {"Content-Type": "application/json"}, b"{}")
        assert status == 400

    def test_scales_and_restarts(self, hook: HookService) -> None:
        """Replicas share the port; while all are stopped, connections are refused."""
        hook.scale(3)
        assert len({process.pid for process in hook.replicas}) == 3
        hook.restart(kill=True)
        hook.stop()
        assert not answers_ok(f"{hook.url}/healthz")
        hook.start()
        assert answers_ok(f"{hook.url}/healthz")

    def test_runs_a_tapp(
        self, tapps: Controller, kubelet: FakeKubelet, kube: Kube, namespace: str
    ) -> None:
        """All parts together: a TApp of two instances gets two running pods, and goes again."""
        assert tapps.description
        assert kubelet.nodes.names
        template = {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": "app:1"}]},
        }
        kube.create(
            {
                "apiVersion": "apps.tkestack.io/v1",
                "kind": "TApp",
                "metadata": {"name": "web", "namespace": namespace},
                "spec": {"replicas": 2, "template": template},
            }
        )

        def ready() -> bool:
            found = kube.get("apps.tkestack.io/v1", "tapps", namespace, "web")
            return (found.get("status") or {}).get("readyReplicas") == 2

        wait_until("two instances ready", ready)
        kube.delete("apps.tkestack.io/v1", "tapps", namespace, "web")
        wait_until("no pods", lambda: not kube.list_all("v1", "pods", namespace))
