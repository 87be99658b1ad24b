"""Tests that all commands print the same sentence about an instance."""

import json

import pytest

from kubectl_tapp.cluster.access import ClusterAccess
from kubectl_tapp.decide.inspection import inspect
from kubectl_tapp.decide.progress import Progress
from tapp.words.reasons import Standing
from tests.plugin.clusters import running
from tests.plugin.fake_kubectl import StandIn, kubectl_tapp


def stuck(replicas: int) -> StandIn:
    """Returns a TApp during a rollout whose first instance cannot pull its image, so that the
    others wait.
    """
    web = running(replicas=replicas)
    web.world.kubelet.levers.bad_images.add("nginx:typo")
    kubectl_tapp(web, "set", "image", "web", "app=nginx:typo", "-y")
    web.world.run(45)
    return web


@pytest.mark.parametrize("replicas", [1, 3, 12])
def test_status_why_wait_and_documents_have_the_same_sentences(replicas: int) -> None:
    web = stuck(replicas)
    document = json.loads(kubectl_tapp(web, "status", "web", "-o", "json").out)
    sentences = [each["message"] for each in document["waits"]]
    assert sentences[0].startswith("not available: container app")
    assert len(sentences) == min(replicas, 2)
    status, why = kubectl_tapp(web, "status", "web").out, kubectl_tapp(web, "why", "web").out
    waited = kubectl_tapp(web, "wait", "web", "--timeout=1s").out
    assert f"0: {sentences[0].removeprefix('not available: ')[:20]}" in waited
    for sentence in sentences:
        assert f": {sentence}" in status
        assert f": {sentence}" in why


def test_wait_ends_with_the_sentences_of_status() -> None:
    web = stuck(3)
    said = kubectl_tapp(web, "wait", "web").err
    for line in kubectl_tapp(web, "status", "web").lines[-2:]:
        assert line.partition(": ")[2] in said


def test_each_instance_is_in_exactly_one_group() -> None:
    """A TApp has a blocked, a waiting and a done instance, and the progress counts each of them
    once.
    """
    web = stuck(3)
    kubectl_tapp(web, "kill", "web", "2", "-y")
    web.world.run(10)
    cluster = ClusterAccess({}, web)
    view = inspect(cluster, cluster.observe("web"), web.world.clock.unix())
    ways = [each.standing for each in view.standings.values()]
    assert ways == [Standing.BLOCKED, Standing.WAITING, Standing.DONE]
    assert (
        Progress(view)
        .line(None)
        .startswith("1 of 3 done; instance 1: the update waits for instance 0")
    )
    assert all(each.since for each in view.standings.values() if view.pod(each.id))
