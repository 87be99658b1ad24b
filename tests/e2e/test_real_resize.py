"""`resources: InPlace` on a real node: the service resizes pods with the component's account."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hook_calls import conditions

from .cluster import Cluster
from .component import RESIZE, RESIZE_ACCOUNT, account_of, replicas
from .hook import HookService
from .kube import Json, Kube
from .metacontroller import Controller
from .pods import is_ready
from .proxy import HookProxy
from .realnode.trial import Trial
from .realnode.workloads import container, environment, real_spec

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
USER = f"system:serviceaccount:tapp-system:{RESIZE_ACCOUNT}"
GATE = "apps.tkestack.io/InPlaceUpdateReady"
GRACE = {"terminationGracePeriodSeconds": 4}
RESTART = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]


@pytest.fixture(scope="module")
def account(
    kube: Kube, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """The component's account and role in the cluster, with token and CA as a pod gets them."""
    place = tmp_path_factory.mktemp("account")
    with account_of(kube, cluster, RESIZE, RESIZE_ACCOUNT, place) as account:
        yield account


@pytest.fixture(scope="module")
def resizing(account: Path, kube: Kube, workspace: Path) -> Iterator[HookService]:
    """Two replicas of the service with the component, and two workers each."""
    with replicas(kube, workspace / "resizing", account, "TAPP_RESIZE") as service:
        yield service


@pytest.fixture
def sized(real: Trial, hook_proxy: HookProxy, resizing: HookService) -> Iterator[Trial]:
    """A TApp whose syncs go to these replicas."""
    with hook_proxy.led_to(resizing.url):
        yield real


def asking(cpu: str, requests: str = "20m", **more: Any) -> Json:
    """Returns a container with a CPU limit and a smaller request, so that the pod is Burstable."""
    resources = {
        "limits": {"cpu": cpu, "memory": "64Mi"},
        "requests": {"cpu": requests, "memory": "16Mi"},
    }
    return container("1", resources=resources, **more)


def create_resizable(real: Trial, first: Json, **more: Any) -> Trial:
    """Creates three instances that are resized one at a time."""
    strategy = {"maxUnavailable": 1, "inPlaceUpdateStrategy": {"resources": "InPlace"}}
    return real.create(first, updateStrategy=strategy, **more)


def limit_of(pod: Json) -> str:
    """Returns the CPU limit in the spec of a pod."""
    return str(pod["spec"]["containers"][0]["resources"]["limits"]["cpu"])


def limits(real: Trial) -> list[str]:
    """Returns the CPU limit of each container from the kubelet's status."""
    return [real.container(number)["resources"]["limits"]["cpu"] for number in range(3)]


def asked(cluster: Cluster, mark: int, real: Trial) -> set[str]:
    """Returns the account's requests to the API server."""
    assert cluster.audit is not None
    found = cluster.audit.asked(mark, USER)
    return {write.what for write in found if write.namespace == real.app.namespace}


def test_successive_resizes_restart_nothing(sized: Trial, cluster: Cluster) -> None:
    mark = cluster.audit.mark() if cluster.audit else 0
    create_resizable(sized, asking("200m"))
    born, ran = sized.app.uids(), {each.id for each in sized.witness.now(sized.app.namespace)}
    for cpu in ("300m", "250m"):
        sized.roll(asking(cpu))
        assert limits(sized) == [cpu] * 3
        assert {each.id for each in sized.witness.now(sized.app.namespace)} == ran
    assert sized.app.uids() == born
    assert sized.never_fewer_than(3)
    assert asked(cluster, mark, sized) == {"patch pods/resize"}
    assert sized.app.idle()


def test_resize_that_restarts_a_container_uses_the_budget(sized: Trial) -> None:
    create_resizable(sized, asking("200m", resizePolicy=RESTART))
    born, ran = sized.app.uids(), {each.id for each in sized.witness.now(sized.app.namespace)}
    sized.roll(asking("300m", resizePolicy=RESTART))
    assert limits(sized) == ["300m"] * 3
    assert sized.app.uids() == born
    assert ran.isdisjoint({each.id for each in sized.witness.now(sized.app.namespace)})
    assert set(sized.app.restarts().values()) == {1}
    assert sized.never_fewer_than(2)


def reading(of: str = "") -> Json:
    """Returns a variable with the CPU limit of a container in millicores."""
    reference = {"resource": "limits.cpu", "divisor": "1m"} | ({"containerName": of} if of else {})
    return {"name": "SIZE", "valueFrom": {"resourceFieldRef": reference}}


def test_container_restarts_after_a_resize_of_resources_that_it_reads(sized: Trial) -> None:
    """A process keeps the environment of its start, while the kubelet updates a volume.

    The other container reads no resources and continues to run.
    """
    item = {"path": "cpu", "resourceFieldRef": reading("main")["valueFrom"]["resourceFieldRef"]}
    volumes = [{"name": "info", "downwardAPI": {"items": [item]}}]
    mounts = [{"name": "info", "mountPath": "/info"}]

    def made(cpu: str) -> tuple[Json, Json]:
        main = asking(cpu, volumeMounts=mounts)
        reader = container("r1", "reader", env=[reading("main")])
        return main, reader

    # An image that was loaded into the node has no digest, so it cannot get another name.
    sized.node.registry.publish("r1")
    strategy = {"maxUnavailable": 1, "inPlaceUpdateStrategy": {"resources": "InPlace"}}
    sized.create(*made("200m"), pod={"volumes": volumes}, updateStrategy=strategy)
    born = sized.app.uids()
    assert all("SIZE=200" in sized.environment(number) for number in range(3))
    sized.roll(*made("300m"), volumes=volumes)
    assert limits(sized) == ["300m"] * 3
    assert sized.app.uids() == born
    for number in range(3):
        assert {"SIZE=300"} == {e for e in sized.environment(number) if e.startswith("SIZE=")}
        assert sized.container(number)["restartCount"] == 0
        assert sized.container(number, 1)["restartCount"] == 1
    # The kubelet updates the files of a volume in its sync, about once a minute.
    sized.app.until(
        lambda: all(sized.file(number, "/info/cpu") == "300" for number in range(3)),
        "the volumes are updated",
        180,
    )
    assert all(sized.container(number)["restartCount"] == 0 for number in range(3))
    assert sized.never_fewer_than(2)
    assert sized.app.idle()


def test_resize_finishes_after_the_kubelet_was_killed(sized: Trial) -> None:
    create_resizable(sized, asking("200m"))
    born, ran = sized.app.uids(), {each.id for each in sized.witness.now(sized.app.namespace)}
    sized.change(asking("300m"))
    sized.app.until(lambda: "300m" in limits(sized), "the first resize has begun", 60)
    sized.node.kubelet.stop(kill=True)
    sized.wait(1)
    sized.node.kubelet.start()
    sized.app.settle(150)
    assert limits(sized) == ["300m"] * 3
    assert sized.app.uids() == born
    assert ran == {each.id for each in sized.witness.now(sized.app.namespace)}
    assert sized.never_fewer_than(3)


@pytest.mark.parametrize("part", ["kubelet", "containerd"])
def test_resize_finishes_after_a_restart_on_the_node_during_a_container_restart(
    sized: Trial, part: str
) -> None:
    """The kubelet may have raised only the container's limit, which then exceeds its pod's limit.

    Such a container never starts (Kubernetes 1.36, cgroup v1). A condition names it, the others
    continue to run, and a replacement repairs the instance.
    """
    slow: Json = {"env": environment(TERM_SECONDS=1), "resizePolicy": RESTART}
    create_resizable(sized, asking("200m", **slow), pod=GRACE)
    sized.change(asking("300m", **slow), **GRACE)
    sized.app.until(
        lambda: sum(sized.app.restarts().values()) >= 1, "the first container has restarted", 60
    )
    stopped = getattr(sized.node, part)
    stopped.stop(kill=True)
    sized.wait(1)
    stopped.start()

    def stuck() -> bool:
        return "RunContainerError" in sized.app.condition("Degraded")

    sized.app.until(
        lambda: stuck() or limits(sized) == ["300m"] * 3,
        "all resizes end, or a container is stuck",
        150,
    )
    if stuck():
        number = next(number for number in range(3) if not sized.ready(number))
        path = sized.app.kube.path("v1", "pods", sized.app.namespace, f"web-{number}")
        sized.app.kube.request("DELETE", path)
    sized.app.settle(150)
    assert limits(sized) == ["300m"] * 3
    assert sized.never_fewer_than(2)


def test_resize_finishes_after_metacontroller_was_killed(sized: Trial, tapps: Controller) -> None:
    create_resizable(sized, asking("200m", resizePolicy=RESTART))
    born, ran = sized.app.uids(), {each.id for each in sized.witness.now(sized.app.namespace)}
    sized.change(asking("300m", resizePolicy=RESTART))
    sized.app.until(lambda: "300m" in limits(sized), "the first resize has begun", 60)
    tapps.restart(kill=True)
    sized.app.settle(150)
    assert limits(sized) == ["300m"] * 3
    assert sized.app.uids() == born
    assert ran.isdisjoint({each.id for each in sized.witness.now(sized.app.namespace)})
    assert sized.never_fewer_than(2)


def test_resize_restarts_a_container_only_after_it_left_its_services(sized: Trial) -> None:
    """The gate must be closed before the container stops, and open again when the new one runs."""
    pod = {"readinessGates": [{"conditionType": GATE}]}
    strategy = {"resources": "InPlace", "gracePeriodSeconds": 2}
    first, second = (asking(cpu, resizePolicy=RESTART) for cpu in ("200m", "300m"))
    update = {"maxUnavailable": 1, "inPlaceUpdateStrategy": strategy}
    sized.create(first, pod=pod, updateStrategy=update)
    sized.roll(second, **pod)
    assert limits(sized) == ["300m"] * 3
    assert set(sized.app.restarts().values()) == {1}
    for number in range(3):
        seen = [each.pod for each in sized.history.of(f"web-{number}")]
        first_of = next(found for found in seen if limit_of(found) == "300m")
        assert not is_ready(first_of), "it was resized while it was Ready"
        assert is_ready(sized.app.pod(number))
    assert sized.never_fewer_than(2)


def test_resize_on_a_full_node_waits_until_there_is_room(sized: Trial) -> None:
    """The kubelet reports Deferred.

    The instance continues to run, the others wait, and no pod is replaced.
    """
    create_resizable(sized, asking("200m"))
    born, ran = sized.app.uids(), {each.id for each in sized.witness.now(sized.app.namespace)}
    kube, space = sized.app.kube, sized.app.namespace
    free = room(sized)
    filler = container("1", "main", resources={"requests": {"cpu": f"{free - 50}m"}})
    spec = real_spec(filler, nodeName=sized.node.name)
    kube.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "filler", "namespace": space},
            "spec": spec,
        }
    )
    path = kube.path("v1", "pods", space, "filler")
    sized.app.until(lambda: is_ready(kube.request("GET", path)), "the node is full", 60)
    sized.change(asking("300m", requests="180m"))
    sized.app.until(lambda: pending(sized) == {0: "Deferred"}, "the resize is deferred", 60)
    sized.app.until(
        lambda: "ResizeDeferred" in sized.app.condition("PodsNotResized"),
        "ResizeDeferred is reported",
        120,
    )
    assert limits(sized) == ["200m"] * 3
    assert sized.app.uids() == born
    kube.request("DELETE", path)
    sized.app.settle(150)
    assert limits(sized) == ["300m"] * 3
    assert sized.app.uids() == born
    assert ran == {each.id for each in sized.witness.now(space) if each.pod != "filler"}
    assert sized.never_fewer_than(3)


def room(real: Trial) -> int:
    """Returns the unrequested CPU of the node in millicores."""
    kube = real.app.kube
    node = kube.get("v1", "nodes", None, real.node.name)
    asked = [
        one.get("resources", {}).get("requests", {}).get("cpu", "0")
        for pod in kube.list_all("v1", "pods")
        if pod["spec"].get("nodeName") == real.node.name
        and pod["status"].get("phase") not in ("Succeeded", "Failed")
        for one in pod["spec"]["containers"]
    ]
    return milli(node["status"]["allocatable"]["cpu"]) - sum(milli(each) for each in asked)


def milli(quantity: str) -> int:
    if quantity.endswith("m"):
        return int(quantity[:-1])
    return int(float(quantity) * 1000)


def pending(real: Trial) -> dict[int, str]:
    """Returns for each waiting instance why its kubelet has not begun the resize."""
    found = {number: conditions(pod) for number, pod in real.app.pods.items()}
    return {
        number: each["PodResizePending"]["reason"]
        for number, each in found.items()
        if "PodResizePending" in each
    }


def test_resize_beyond_the_node_replaces_one_pod_within_the_budget(sized: Trial) -> None:
    """The API server refuses the resize.

    The new pod does not fit either, so the other instances must continue to run.
    """
    create_resizable(sized, asking("200m"))
    born = sized.app.uids()
    huge = asking("2000")
    huge["resources"]["requests"]["cpu"] = "1000"
    sized.change(huge)
    sized.app.until(lambda: sized.app.uids().get(0, born[0]) != born[0], "the pod is replaced", 150)
    sized.wait(5)
    assert {n: uid for n, uid in sized.app.uids().items() if n} == {1: born[1], 2: born[2]}
    assert sized.never_fewer_than(2)
    sized.roll(asking("200m"))
    assert {n: uid for n, uid in sized.app.uids().items() if n} == {1: born[1], 2: born[2]}
    assert limits(sized) == ["200m"] * 3
    assert sized.never_fewer_than(2)


@pytest.mark.parametrize(
    ("verb", "resource", "allowed"),
    [
        ("patch", "pods/resize", True),
        ("update", "pods/resize", False),
        ("get", "pods/resize", False),
        ("patch", "pods", False),
        ("get", "pods", False),
        ("patch", "pods/status", False),
        ("get", "secrets", False),
    ],
    ids=[
        "patch of pods/resize is allowed",
        "update of pods/resize is refused",
        "get of pods/resize is refused",
        "patch of pods is refused",
        "get of pods is refused",
        "patch of pods/status is refused",
        "get of secrets is refused",
    ],
)
def test_account_of_resize_may_only_patch_the_resize_subresource(
    kube: Kube, account: Path, verb: str, resource: str, allowed: bool
) -> None:
    assert (account / "token").stat().st_size
    name, _, subresource = resource.partition("/")
    attributes = {"namespace": "default", "verb": verb, "resource": name}
    attributes |= {"subresource": subresource} if subresource else {}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": USER,
            "groups": ["system:serviceaccounts", "system:serviceaccounts:tapp-system"],
            "resourceAttributes": attributes,
        },
    }
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    assert kube.request("POST", path, review)["status"]["allowed"] == allowed
