"""`resources: InPlace` on a real node: the service resizes pods, with the component's account."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .cluster import REPOSITORY, Cluster
from .component import account_of, replicas
from .hook import HookService
from .kube import Json, Kube
from .proxy import HookProxy
from .realnode.trial import Trial
from .realnode.workloads import container

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
COMPONENT = REPOSITORY / "metacontroller" / "components" / "resize"
ACCOUNT = "tapp-hooks-resize"
USER = f"system:serviceaccount:tapp-system:{ACCOUNT}"
RESTART = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]


@pytest.fixture(scope="module")
def account(kube: Kube, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The component's account and role in the cluster; token and CA as a pod would have them."""
    return account_of(kube, cluster, COMPONENT, ACCOUNT, tmp_path_factory.mktemp("account"))


@pytest.fixture(scope="module")
def resizing(account: Path, kube: Kube, workspace: Path) -> Iterator[HookService]:
    """Two replicas of the service with the component, two workers each."""
    with replicas(kube, workspace / "resizing", account, "TAPP_RESIZE") as service:
        yield service


@pytest.fixture
def sized(real: Trial, hook_proxy: HookProxy, resizing: HookService) -> Iterator[Trial]:
    """A TApp whose syncs are answered by these replicas."""
    usual, hook_proxy.target = hook_proxy.target, resizing.url
    yield real
    hook_proxy.target = usual


def asking(cpu: str, **more: Any) -> Json:
    """A container with its limit; it requests less, so the pod is Burstable."""
    resources = {
        "limits": {"cpu": cpu, "memory": "64Mi"},
        "requests": {"cpu": "20m", "memory": "16Mi"},
    }
    return container("1", resources=resources, **more)


def began(real: Trial, first: Json) -> Trial:
    """Three instances that are resized one at a time."""
    strategy = {"maxUnavailable": 1, "inPlaceUpdateStrategy": {"resources": "InPlace"}}
    return real.began(first, updateStrategy=strategy)


def limits(real: Trial) -> list[str]:
    """The cpu limit of each container, as its kubelet tells of it."""
    return [real.container(number)["resources"]["limits"]["cpu"] for number in range(3)]


def asked(cluster: Cluster, mark: int, real: Trial) -> set[str]:
    """What the account has asked of the API server."""
    assert cluster.audit is not None
    found = cluster.audit.asked(mark, USER)
    return {write.what for write in found if write.namespace == real.app.namespace}


def test_two_resizes_in_a_row_restart_nothing(sized: Trial, cluster: Cluster) -> None:
    mark = cluster.audit.mark() if cluster.audit else 0
    began(sized, asking("200m"))
    born, ran = sized.app.uids(), {each.id for each in sized.witness.now(sized.app.namespace)}
    for cpu in ("300m", "250m"):
        sized.roll(asking(cpu))
        assert limits(sized) == [cpu] * 3
        assert {each.id for each in sized.witness.now(sized.app.namespace)} == ran
    assert sized.app.uids() == born
    assert sized.never_fewer_than(3)
    assert asked(cluster, mark, sized) == {"patch pods/resize"}
    assert sized.app.idle()


def test_a_container_whose_policy_restarts_it_counts_in_the_budget(sized: Trial) -> None:
    began(sized, asking("200m", resizePolicy=RESTART))
    born, ran = sized.app.uids(), {each.id for each in sized.witness.now(sized.app.namespace)}
    sized.roll(asking("300m", resizePolicy=RESTART))
    assert (limits(sized), sized.app.uids()) == (["300m"] * 3, born)
    assert ran.isdisjoint({each.id for each in sized.witness.now(sized.app.namespace)})
    assert set(sized.app.restarts().values()) == {1}
    assert sized.never_fewer_than(2)


def test_more_than_the_node_has_means_a_new_pod_within_the_budget(sized: Trial) -> None:
    """The API server refuses the resize; a new pod has no room either, so the others run on."""
    began(sized, asking("200m"))
    born = sized.app.uids()
    huge = asking("2000")
    huge["resources"]["requests"]["cpu"] = "1000"
    sized.change(huge)
    sized.app.until(lambda: sized.app.uids().get(0, born[0]) != born[0], "a new pod", 150)
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
)
def test_the_account_may_patch_that_subresource_and_nothing_else(
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
