"""The service is scaled by the requests that it has in hand, as docs/size.md says.

The real autoscaler asks the real prometheus-adapter (`ADAPTER_BIN`, built by
`go build ./cmd/adapter`), which asks the real Prometheus; what Prometheus reads are two real
services, which stand for the pods of a Deployment that a fake kubelet runs.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import yaml

from tapp.kube.resources import compare
from tests import builders

from .cluster import REPOSITORY, Cluster
from .hook import HookService
from .kube import Json, Kube, documents
from .kubelet import FakeKubelet
from .patience import until
from .process import Process, free_ports
from .prometheus import Prometheus, Target

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
SHIPPED = REPOSITORY / "metacontroller" / "components" / "hpa-hook" / "horizontalpodautoscaler.yaml"
CLIENTS = 8
"""Callers of each service at the same time."""
PATIENCE = 120.0


@pytest.fixture
def binaries() -> tuple[str, str]:
    """Prometheus and the adapter, where there are any."""
    adapter, prometheus = os.environ.get("ADAPTER_BIN", ""), shutil.which("prometheus")
    if not Path(adapter).is_file() or prometheus is None:
        pytest.skip("needs ADAPTER_BIN (prometheus-adapter) and prometheus on PATH")
    return prometheus, adapter


def printed(beginning: str) -> str:
    """The block of docs/size.md that begins so."""
    page = (REPOSITORY / "docs" / "size.md").read_text(encoding="utf-8")
    (text,) = re.findall(rf"```yaml\n({re.escape(beginning)}\n.*?)```", page, re.DOTALL)
    return str(text)


def autoscaler(namespace: str) -> Json:
    """The shipped one, with the metric of the docs."""
    (made,) = documents(SHIPPED)
    made["metadata"]["namespace"] = namespace
    values = yaml.safe_load(printed("components: {hpaHook: true}"))
    made["spec"]["metrics"] = values["autoscaling"]["metrics"]
    return made


def deployment(namespace: str) -> Json:
    """What it scales."""
    labels = {"app.kubernetes.io/name": "tapp-hooks"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "tapp-hooks", "namespace": namespace},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "hooks", "image": "tapp-hooks:dev"}]},
            },
        },
    }


@contextmanager
def adapted(  # noqa: PLR0913, PLR0917 - all that it talks to
    binary: str, prometheus: str, cluster: Cluster, kube: Kube, namespace: str, directory: Path
) -> Iterator[None]:
    """The API of custom metrics, served by the adapter."""
    config = directory / "adapter.yaml"
    config.write_text(printed("rules:"))
    (port,) = free_ports(1)
    account = [f"--{of}-kubeconfig={cluster.kubeconfig}" for of in
               ("lister", "authentication", "authorization")]  # fmt: skip
    process = Process(
        "prometheus-adapter",
        [
            binary, *account, "--authentication-skip-lookup", f"--config={config}",
            f"--prometheus-url={prometheus}", "--metrics-relist-interval=2s",
            f"--secure-port={port}", "--bind-address=127.0.0.1", f"--cert-dir={directory}",
        ],
        directory / "adapter.log",
        directory=directory,
    )  # fmt: skip
    reader = {"apiGroups": ["custom.metrics.k8s.io"], "resources": ["*"], "verbs": ["*"]}
    rbac, group = "rbac.authorization.k8s.io", "custom.metrics.k8s.io"
    made: list[Json] = [
        # The API server of the tests forwards nobody's name.
        {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": {"name": "custom-metrics"},
         "rules": [reader, {"nonResourceURLs": ["*"], "verbs": ["get"]}]},
        {"apiVersion": f"{rbac}/v1", "kind": "ClusterRoleBinding",
         "metadata": {"name": "custom-metrics"},
         "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "custom-metrics"},
         "subjects": [{"kind": "User", "apiGroup": rbac, "name": "system:anonymous"}]},
        {"apiVersion": "v1", "kind": "Service",
         "metadata": {"name": "adapter", "namespace": namespace},
         "spec": {"type": "ExternalName", "externalName": "localhost"}},
        {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
         "metadata": {"name": f"v1beta1.{group}"},
         "spec": {"group": group, "version": "v1beta1", "insecureSkipTLSVerify": True,
                  "groupPriorityMinimum": 100, "versionPriority": 100,
                  "service": {"name": "adapter", "namespace": namespace, "port": port}}},
    ]  # fmt: skip
    process.start()
    try:
        for each in made:
            kube.apply(each)
        yield
    finally:
        kube.delete("apiregistration.k8s.io/v1", "apiservices", None, f"v1beta1.{group}")
        for plural in ("clusterrolebindings", "clusterroles"):
            kube.delete(f"{rbac}/v1", plural, None, "custom-metrics")
        process.stop()


@contextmanager
def called(urls: list[str]) -> Iterator[None]:
    """Each of these services has requests in hand all the time."""
    body = json.dumps(builders.request(builders.tapp(replicas=3_000))).encode()
    over = threading.Event()

    def call(url: str) -> None:
        head = {"Content-Type": "application/json"}
        while not over.is_set():
            asked = urllib.request.Request(f"{url}/sync", body, head)
            urllib.request.urlopen(asked, timeout=60).read()

    callers = [threading.Thread(target=call, args=(url,)) for url in urls * CLIENTS]
    for each in callers:
        each.start()
    try:
        yield
    finally:
        over.set()
        for each in callers:
            each.join()


def test_it_goes_by_the_requests_in_flight(  # noqa: PLR0913, PLR0917 - all that runs
    binaries: tuple[str, str],
    cluster: Cluster,
    kube: Kube,
    namespace: str,
    kubelet: FakeKubelet,  # noqa: ARG001 - it runs the pods
    tmp_path: Path,
    note: list[str],
) -> None:
    def scaled() -> Json:
        found = kube.find("autoscaling/v2", "horizontalpodautoscalers", namespace, "tapp-hooks")
        return (found or {}).get("status") or {}

    def pods() -> list[str]:
        return [pod["metadata"]["name"] for pod in kube.list_all("v1", "pods", namespace)]

    def in_flight() -> str:
        """What the autoscaler has read: of each pod, on average."""
        shown = scaled().get("currentMetrics") or []
        found = [each["pods"]["current"]["averageValue"] for each in shown if "pods" in each]
        return found[0] if found else ""

    prometheus, adapter = binaries
    kube.apply(deployment(namespace))
    until(lambda: len(pods()) == 2, "two pods are there", PATIENCE)
    with ExitStack() as running:
        services, targets = [], []
        for pod in pods():
            (place := tmp_path / pod).mkdir()
            service = HookService(place, settings={"TAPP_PACE_SECONDS": "0"}).start()
            running.callback(service.stop)
            services.append(service.url)
            labels = {"namespace": namespace, "pod": pod}
            targets.append(Target(pod, service.url.removeprefix("http://"), labels))
        url = running.enter_context(Prometheus(prometheus, tmp_path, targets)).url
        running.enter_context(adapted(adapter, url, cluster, kube, namespace, tmp_path))
        kube.apply(autoscaler(namespace))
        until(in_flight, "the autoscaler has read the metric", PATIENCE)
        assert (in_flight(), len(pods())) == ("0", 2), "nobody calls"
        with called(services):
            until(lambda: len(pods()) > 2, "it asks for more", PATIENCE)
            assert compare(in_flight(), "2") > 0
            note.append(f"{in_flight()} requests in flight a pod: from 2 replicas to {len(pods())}")
        assert len(pods()) <= 6
