"""The service in the cluster, from what is shipped: Dockerfile and metacontroller/base, unrelaxed.

The image is built as a release's is, and runs on the real node under the name that the Deployment
gives it, in a namespace that enforces "restricted". Of the manifests only two things are other than
shipped: where the pods land, and the toleration that this API server adds by default, which a user
of such an API server has to set as well.
"""

from __future__ import annotations

import copy
import json
import os
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from hooks.app import create_app
from hooks.service.settings import Settings
from tests.contract.test_recorded import FILES

from . import shipped
from .cluster import REPOSITORY, wait_namespace_gone, wait_namespace_ready
from .controlplane import EVICTION_GRACE
from .kube import Json, Kube, KubeError
from .patience import PATIENCE, until
from .pods import is_ready
from .proxy import HookProxy
from .realnode.kubelet import LABEL
from .realnode.network import PodNetwork
from .realnode.node import RealNode
from .realnode.trial import Trial

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]
NAMESPACE = "tapp-system"
NAME = "tapp-hooks"
PLACED: Json = {
    "nodeSelector": {LABEL: "true"},
    "tolerations": [{"key": LABEL, "operator": "Exists"}],
}
TOLERATION: Json = {"name": "TAPP_TOLERATION_SECONDS", "value": str(EVICTION_GRACE)}


def manifests(kubectl: Callable[..., str]) -> list[Json]:
    """What `kubectl apply -k metacontroller/base` would apply."""
    return list(yaml.safe_load_all(kubectl("kustomize", str(REPOSITORY / "metacontroller/base"))))


def placed(deployment: Json) -> Json:
    """The Deployment, its pods sent to the real node; all else as shipped."""
    made = copy.deepcopy(deployment)
    spec = made["spec"]["template"]["spec"]
    spec |= PLACED
    spec["containers"][0]["env"].append(TOLERATION)
    return made


@dataclass
class Service:
    """The service at work in the cluster."""

    kube: Kube
    node: RealNode
    deployment: Json

    @property
    def pods(self) -> list[Json]:
        """Its pods that are not about to go, by name."""
        found = self.kube.list_all("v1", "pods", NAMESPACE)
        here = [each for each in found if "deletionTimestamp" not in each["metadata"]]
        return sorted(here, key=lambda each: str(each["metadata"]["name"]))

    def wait(self, seconds: float = PATIENCE) -> None:
        """Waits until all replicas are of the newest template and available, and no other is."""

        def rolled() -> bool:
            found = self.kube.get("apps/v1", "deployments", NAMESPACE, NAME)
            status, wanted = found.get("status") or {}, found["spec"]["replicas"]
            counts = {status.get(f"{word}Replicas") for word in ("updated", "available", "ready")}
            seen = status.get("observedGeneration") == found["metadata"]["generation"]
            return bool(seen and counts == {wanted} and status["replicas"] == wanted)

        until(rolled, f"{NAME} is as its template says", seconds)

    def urls(self) -> list[str]:
        """Where each pod answers."""
        return [f"http://{each['status']['podIP']}:8080" for each in self.pods]


@pytest.fixture(scope="module")
def image(running_node: RealNode, workspace: Path, note: list[str]) -> None:
    """The image, built and on the node, under the name that the Deployment gives it."""
    problem = shipped.missing()
    if problem is not None:
        if os.environ.get("E2E_REAL_NODE") == "1":
            pytest.fail(f"E2E_REAL_NODE=1, but {problem}", pytrace=False)
        note.append(problem)
        pytest.skip(problem)
    (deployment,) = yaml.safe_load_all(
        (REPOSITORY / "metacontroller" / "base" / "deployment.yaml").read_text()
    )
    name = deployment["spec"]["template"]["spec"]["containers"][0]["image"]
    begun = time.monotonic()
    with shipped.Builder(workspace / "image") as builder:
        running_node.containerd.load(builder.build(name))
    note.append(f"image built on {builder.based_on} in {time.monotonic() - begun:.0f} s")


@pytest.fixture(scope="module")
def service(
    image: None,  # noqa: ARG001
    running_node: RealNode,
    kube: Kube,
    kubectl: Callable[..., str],
    note: list[str],
) -> Iterator[Service]:
    """metacontroller/base, applied; but for its CompositeController, which the suite registers."""
    running_node.rest()
    documents = [each for each in manifests(kubectl) if each["kind"] != "CompositeController"]
    (deployment,) = [each for each in documents if each["kind"] == "Deployment"]
    one = Service(kube, running_node, deployment)
    with PodNetwork(running_node):
        try:
            for each in documents:
                if each is not deployment:
                    kube.apply(each)
            wait_namespace_ready(kube, NAMESPACE)
            begun = time.monotonic()
            kube.apply(placed(deployment))
            one.wait()
            note.append(f"the shipped service ready in {time.monotonic() - begun:.0f} s")
            yield one
        finally:
            remove(kube, documents)


def remove(kube: Kube, documents: list[Json]) -> None:
    """Removes what was applied, but for TApp's definition; returns when the namespace is gone."""
    for each in documents:
        if each["kind"].startswith(("ClusterRole", "Namespace", "ValidatingAdmissionPolicy")):
            plural, _ = kube.resource_of(each["apiVersion"], each["kind"])
            kube.delete(each["apiVersion"], plural, None, each["metadata"]["name"])
    wait_namespace_gone(kube, NAMESPACE)


def ask(url: str, body: bytes | None = None) -> bytes:
    """What an HTTP request is answered with; raises unless that is 200."""
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        found: bytes = answer.read()
        return found


# --- how it runs ----------------------------------------------------------------------------------


def test_every_replica_is_ready_and_behind_the_service(service: Service) -> None:
    """Startup, liveness and readiness probes are green, and nothing has been restarted."""
    addresses = {each["status"]["podIP"] for each in service.pods if is_ready(each)}
    assert len(addresses) == service.deployment["spec"]["replicas"]
    slices = service.kube.list_all("discovery.k8s.io/v1", "endpointslices", NAMESPACE)
    ready = {
        address
        for each in slices
        for endpoint in each["endpoints"]
        for address in endpoint["addresses"]
        if endpoint["conditions"]["ready"]
    }
    assert ready == addresses
    time.sleep(service.deployment["spec"]["template"]["spec"]["containers"][0]["livenessProbe"][
        "periodSeconds"
    ])  # fmt: skip
    statuses = [one for each in service.pods for one in each["status"]["containerStatuses"]]
    assert [(one["started"], one["ready"], one["restartCount"]) for one in statuses] == [
        (True, True, 0)
    ] * len(addresses)


def test_the_processes_have_no_privilege(service: Service) -> None:
    """Asked of the kernel: the user, no capability, no new privilege, seccomp, read-only root."""
    for pod in service.pods:
        (process,) = service.node.witness.processes(NAMESPACE, pod["metadata"]["name"])
        lines = (line.partition(":") for line in (process / "status").read_text().splitlines())
        status = {key: value.split() for key, _, value in lines}
        # The image's user; of an image a kubelet takes no group, and 0 without capabilities may
        # do no more than read what everybody may.
        assert (status["Uid"], status["Gid"]) == (["65532"] * 4, ["0"] * 4)
        assert {int(status[each][0], 16) for each in ("CapEff", "CapPrm", "CapBnd")} == {0}
        assert (status["NoNewPrivs"], status["Seccomp"]) == (["1"], ["2"])
        mounts = [line.split() for line in (process / "mountinfo").read_text().splitlines()]
        writable = {each[4] for each in mounts if "rw" in each[5].split(",")}
        assert "/tmp" in writable
        assert not writable & {"/", "/app", "/venv"}


@pytest.mark.parametrize("wish", ["hostNetwork", "root", "capability"])
def test_the_namespace_admits_no_more_than_that(service: Service, wish: str) -> None:
    """The level is enforced while the service runs: a pod that asks for more is refused."""
    template = service.deployment["spec"]["template"]
    pod = {"apiVersion": "v1", "kind": "Pod", **copy.deepcopy(template)}
    pod["metadata"] |= {"name": "more", "namespace": NAMESPACE}
    path = service.kube.path("v1", "pods", NAMESPACE)
    service.kube.request("POST", path, pod, {"dryRun": "All"})
    if wish == "hostNetwork":
        pod["spec"]["hostNetwork"] = True
    elif wish == "root":
        pod["spec"]["securityContext"] |= {"runAsNonRoot": False, "runAsUser": 0}
    else:
        context = pod["spec"]["containers"][0]["securityContext"]
        context["capabilities"]["add"] = ["SYS_ADMIN"]
    with pytest.raises(KubeError, match='violates PodSecurity "restricted') as refused:
        service.kube.request("POST", path, pod, {"dryRun": "All"})
    assert refused.value.status == 403


# --- what it does ---------------------------------------------------------------------------------


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.stem))
def test_every_replica_answers_as_this_checkout_does(service: Service, file: Path) -> None:
    """Calls that a real Metacontroller made, at the same second."""
    record = json.loads(file.read_text())
    body = json.dumps(record["request"]).encode()
    settings = Settings(log_level="ERROR", toleration_seconds=EVICTION_GRACE)
    for url in service.urls():
        for _ in range(5):
            second = int(time.time())
            found = json.loads(ask(f"{url}/{record['hook']}", body))
            if int(time.time()) == second:
                break
        client = create_app(settings, clock=lambda now=second: float(now)).test_client()
        assert found == json.loads(client.post(f"/{record['hook']}", data=body).data)


def test_metacontroller_rolls_a_tapp_through_it(
    service: Service, real: Trial, hook_proxy: HookProxy
) -> None:
    """Real containers, updated in place by the service in the cluster, and by nobody else."""
    url = service.urls()[0]
    ours, hook_proxy.target = hook_proxy.target, url
    try:
        real.began("1").roll("2")
        assert real.tags() == "2 2 2"
        assert set(real.app.restarts().values()) == {1}
        assert real.never_fewer_than(2)
        assert real.app.idle()
    finally:
        hook_proxy.target = ours
    counted = [line for line in ask(f"{url}/metrics").decode().splitlines() if "sync" in line]
    requests = [line for line in counted if line.startswith("tapp_hook_requests_total")]
    assert sum(float(line.split()[-1]) for line in requests) >= len(real.app.calls())


def test_a_restart_of_the_service_loses_no_replica(
    service: Service, kubectl: Callable[..., str]
) -> None:
    """New pods serve before old ones go, and those end by themselves, in time."""
    before = {each["metadata"]["name"] for each in service.pods}
    witness = service.node.witness
    witness.begin(NAMESPACE, "hooks")
    kubectl("-n", NAMESPACE, "rollout", "restart", f"deployment/{NAME}")
    service.wait()
    assert witness.fewest == len(before), str(witness)
    assert not before & {each["metadata"]["name"] for each in service.pods}
