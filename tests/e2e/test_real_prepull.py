"""`prePull` on a real kubelet: image volumes, and a registry that is slow or lacks the image."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .hook import HookService
from .kube import Json, KubeError
from .realnode.images import PAUSE
from .realnode.images import app as image
from .realnode.network import PodNetwork
from .realnode.node import RealNode
from .realnode.trial import Trial

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(600),
    pytest.mark.since(35, "image volumes by default"),
    pytest.mark.usefixtures("network"),  # pullers need the network, as other pods do
]
PULLER = "apps.tkestack.io/puller"
FIRST: Json = {"maxUnavailable": 1, "inPlaceUpdateStrategy": {"prePull": True}}
WITHOUT: Json = {"maxUnavailable": 1}
SLOW = 6.0


@pytest.fixture(scope="module")
def network(running_node: RealNode) -> Iterator[None]:
    """Gives addresses to pods that do not use the host's network, and waits at the end until they
    are deleted.
    """
    with PodNetwork.for_pods(running_node):
        yield


def publish(real: Trial, *tags: str) -> None:
    """Offers images in the registry that the node does not have."""
    for tag in tags:
        real.node.registry.images.add(image(tag), {"VERSION": tag})
        real.node.registry.published.add(image(tag))


def pullers(real: Trial) -> list[Json]:
    """Returns the pods that pull images."""
    kube = real.app.kube
    return kube.list_all("v1", "pods", real.app.namespace, labelSelector=PULLER)


def away(real: Trial) -> float:
    """Returns the longest time in seconds in which an instance did not serve."""
    longest, since = 0.0, dict[str, float]()
    for moment in real.witness.timeline:
        serving = {each.pod for each in moment.running if each.serving}
        for pod in real.app.uids():
            name = f"web-{pod}"
            if name in serving:
                longest = max(longest, moment.seconds - since.pop(name, moment.seconds))
            else:
                since.setdefault(name, moment.seconds)
    return longest


def test_instance_serves_while_its_image_is_pulled_first(real: Trial, note: list[str]) -> None:
    """The image has 100 MB, and the registry on this machine waits two seconds before each pull."""
    found = []
    real.create("1", replicas=2)
    real.node.registry.delay = 2
    for tag, strategy in (("large1", FIRST), ("large2", WITHOUT)):
        real.node.registry.images.add(image(tag), {"VERSION": tag}, megabytes=100)
        real.node.registry.published.add(image(tag))
        real.app.patch(updateStrategy={"inPlaceUpdateStrategy": None, **strategy})
        real.witness.begin(real.app.namespace)
        real.roll(tag)
        found.append(away(real))
        assert real.never_fewer_than(1)
        assert real.tags() == f"{tag} {tag}"
    first, without = found
    note.append(f"longest away: {first:.1f} s with the image first, {without:.1f} s without")
    assert first < without / 2
    real.app.until(lambda: not pullers(real), "the pullers are gone", 120)


def test_missing_tag_stops_no_instance(real: Trial) -> None:
    real.create("1", updateStrategy=FIRST)
    born = {each.id for each in real.witness.now(real.app.namespace)}
    real.change("tpyo")
    real.app.until(
        lambda: "PullFailed" in real.app.condition("ImagesNotPulled"),
        "the failed pull is reported",
        60,
    )
    message = real.app.condition("ImagesNotPulled")
    assert real.node.name in message
    assert image("tpyo") in message
    assert "not found" in message
    assert real.app.condition("Degraded").startswith("True ImagesNotPulled")
    real.wait(40)  # longer than the service waits for pullers that cannot run
    assert real.tags() == "1 1 1"
    assert real.never_fewer_than(3)
    real.roll("2")
    assert real.never_fewer_than(2)
    assert real.app.condition("ImagesNotPulled") == ""
    assert {each.id for each in real.witness.now(real.app.namespace)}.isdisjoint(born)


def test_edits_during_the_pulls_restart_each_instance_once(real: Trial) -> None:
    tags = [f"e{number}" for number in range(4)]
    publish(real, *tags)
    real.create("1", updateStrategy=FIRST)
    real.node.registry.delay = 3
    for tag in tags:
        real.change(tag).wait(1)
    real.app.settle(120)
    assert real.tags() == "e3 e3 e3"
    assert [*real.app.restarts().values()] == [1, 1, 1]
    assert real.never_fewer_than(2)


def test_update_finishes_after_a_kubelet_restart_during_the_pull(real: Trial) -> None:
    publish(real, "k1")
    real.create("1", updateStrategy=FIRST)
    real.node.registry.delay = SLOW
    real.change("k1")
    real.app.until(lambda: bool(pullers(real)), "a puller exists", 120)
    real.node.kubelet.stop(kill=True)
    real.wait(1)
    real.node.kubelet.start()
    real.app.settle(120)
    assert real.tags() == "k1 k1 k1"
    assert real.never_fewer_than(2)


def test_update_waits_for_an_unavailable_registry(real: Trial) -> None:
    publish(real, "r9")
    real.create("1", updateStrategy=FIRST)
    real.node.registry.failing = True
    real.change("r9")
    real.app.until(
        lambda: "PullFailed" in real.app.condition("ImagesNotPulled"),
        "the failed pull is reported",
        60,
    )
    assert real.tags() == "1 1 1"
    real.node.registry.failing = False
    real.app.settle(120)
    assert real.tags() == "r9 r9 r9"
    assert real.never_fewer_than(2)


def test_puller_whose_own_image_cannot_be_pulled_stops_no_update(
    real: Trial, hook: HookService
) -> None:
    """An air-gapped cluster lacks the puller's image: updates go on, and a condition says why."""
    publish(real, "own1")
    hook.configure(TAPP_PULLER_IMAGE=image("no-puller"))
    try:
        real.create("1", replicas=2, updateStrategy=FIRST)
        real.change("own1")
        real.app.until(lambda: real.app.condition("PullersNotRun") != "", "it is said", 120)
        said = real.app.condition("PullersNotRun")
        assert image("no-puller") in said
        assert "Updates continue without this until" in said
        assert real.app.condition("Degraded").startswith("False ")
        real.app.settle(180)
    finally:
        hook.configure(TAPP_PULLER_IMAGE=PAUSE)
    assert real.tags() == "own1 own1"
    assert real.never_fewer_than(1)


def test_quota_without_room_for_pullers_stops_no_update(real: Trial) -> None:
    publish(real, "q1")
    real.create("1", updateStrategy=FIRST)
    real.app.quota("full", pods="3")
    real.change("q1").wait(5)
    assert real.tags() == "1 1 1"
    real.app.until(
        lambda: bool(real.app.condition("PullersNotRun")), "PullersNotRun is reported", 60
    )
    real.app.settle(120)
    assert real.tags() == "q1 q1 q1"
    assert real.never_fewer_than(2)


def test_puller_is_admitted_by_pod_security_restricted(real: Trial) -> None:
    """The API server's admission accepts the pod at its strictest level."""
    publish(real, "s1")
    real.create("1", updateStrategy=FIRST)
    real.node.registry.delay = 4
    real.change("s1")
    real.app.until(lambda: bool(pullers(real)), "a puller exists", 120)
    found = pullers(real)[0]
    name = f"{real.app.namespace}-strict"
    label = {"pod-security.kubernetes.io/enforce": "restricted"}
    strict = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": label}}
    real.app.kube.create(strict)
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": found["spec"]}
    metadata = {"name": "copy", "namespace": name}
    try:
        real.app.kube.create({**pod, "metadata": metadata})
        instance = {
            **pod,
            "metadata": {**metadata, "name": "other"},
            "spec": real.app.pod(0)["spec"],
        }
        with pytest.raises(KubeError, match="violates PodSecurity"):
            real.app.kube.create(instance)
    finally:
        real.app.kube.delete("v1", "namespaces", None, name)
    real.app.settle(120)
