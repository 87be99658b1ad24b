"""The real node itself: it runs pods, its levers work, and it leaves nothing behind."""

from __future__ import annotations

import itertools
import time

import pytest

from .kube import Kube
from .pods import container as status_of
from .pods import is_ready, waiting
from .realnode.images import app
from .realnode.node import RealNode
from .realnode.workloads import RealPods, container

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]


def image_of(pods: RealPods, name: str = "a") -> str:
    """The image that the kubelet says runs."""
    return str(status_of(pods.get(name)).get("image"))


def test_an_image_is_changed_in_place(kube: Kube, real_node: RealNode, real_pods: RealPods) -> None:
    """The witness, who asks nobody, saw one process end and then the other begin."""
    witness = real_node.witness
    witness.begin(real_pods.namespace)
    born = real_pods.create("a")
    real_pods.wait("a", is_ready)
    real_pods.set_image("a", app("2"))
    found = real_pods.wait("a", lambda pod: status_of(pod)["image"] == app("2"))
    assert found["metadata"]["uid"] == born["metadata"]["uid"]
    assert status_of(found)["restartCount"] == 1
    while not witness.timeline[-1].running:
        time.sleep(0.1)  # on a busy machine the kubelet's word is faster than its next look
    ran = [{each.image for each in moment.running} for moment in witness.timeline]
    assert [images for images, _ in itertools.groupby(ran)] == [
        set(),
        {app("1")},
        set(),
        {app("2")},
    ]
    while "has 2 running ready=True" not in real_pods.history.story("a")[-1]:
        time.sleep(0.1)  # the history's own watch may be a moment behind
    told = real_pods.history.story("a")
    if kube.pods_tell_what_was_seen:
        seen = next(line for line in told if line.startswith("generation 2 seen 2"))
        assert "main wants 2 has 1 running ready=True restarts=0" in seen  # before it is killed
    else:
        assert all(" seen 0" in line for line in told)
    assert "main wants 2 has 2 running ready=True restarts=1" in told[-1]


def test_a_pull_that_is_refused_recovers(real_node: RealNode, real_pods: RealPods) -> None:
    """The name is not there, then its registry is away, then all is well."""
    late = app("late-a")
    real_node.images.add(late, {"VERSION": "late"})
    real_pods.create("a", container("late-a"))
    real_pods.wait("a", lambda pod: waiting(pod) == "ErrImagePull")
    assert "not found" in status_of(real_pods.get("a"))["state"]["waiting"]["message"]
    real_node.registry.failing = True
    real_pods.wait("a", lambda pod: "503" in str(status_of(pod)["state"]))
    real_node.registry.failing = False
    real_node.registry.published.add(late)
    real_pods.wait("a", is_ready)
    assert late in real_node.registry.pulls


def test_a_process_that_does_not_serve_is_told_apart(
    real_node: RealNode, real_pods: RealPods
) -> None:
    real_node.witness.begin(real_pods.namespace)
    real_pods.create("a", container("slow"))
    real_pods.wait("a", is_ready)
    served = [each.serving for each in real_node.witness.now(real_pods.namespace)]
    assert served == [False]
    assert real_node.witness.fewest_serving == 0


def test_containers_outlive_kubelet_and_containerd(
    real_node: RealNode, real_pods: RealPods
) -> None:
    real_pods.create("a")
    before = status_of(real_pods.wait("a", is_ready))["containerID"]
    real_node.witness.begin(real_pods.namespace)
    real_node.kubelet.stop()
    real_node.containerd.restart(kill=True)
    real_node.kubelet.start()
    real_pods.set_image("a", app("2"))
    real_pods.wait("a", lambda pod: status_of(pod)["image"] == app("2"))
    first = real_node.witness.timeline[0].running
    assert [f"containerd://{each.id}" for each in first] == [before]


def test_a_silent_node_is_lost_and_comes_back(real_node: RealNode, real_pods: RealPods) -> None:
    """Its pods are not Ready, though their containers are, and run on."""
    real_pods.create("a")
    real_pods.wait("a", is_ready)
    real_node.witness.begin(real_pods.namespace)
    real_node.silence()
    found = real_pods.wait("a", lambda pod: not is_ready(pod))
    conditions = {each["type"]: each["status"] for each in found["status"]["conditions"]}
    assert conditions["ContainersReady"] == "True"
    real_node.rest()
    found = real_pods.wait("a", is_ready)
    assert status_of(found)["restartCount"] == 0
    assert real_node.witness.fewest == 1
