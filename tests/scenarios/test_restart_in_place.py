"""Tests containers that restart in their pods, by an annotation or for a label that they read."""

from typing import Any

import pytest

from simulator.api.admission import lean_pods
from tests.scenarios.apps import tapp, template
from tests.scenarios.life import Document, Life

RESTART = "apps.tkestack.io/restart-in-place"
READS = {"name": "TIER", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['tier']"}}}
SIDE = {"name": "side", "image": "side:1"}


def asking(image: str = "web:1", labels: Document | None = None, **more: Any) -> Document:
    """Returns a pod template that requests restarts in place.

    The arguments `restart` and `restart_web` become the annotations for all containers and for the
    container `web`. All other arguments are those of `template`; the pods always have the label
    `app: web`.
    """
    asked = {
        RESTART + key.removeprefix("restart").replace("_", "."): more.pop(key)
        for key in list(more)
        if key.startswith("restart")
    }
    return template(image, annotations=asked, labels={"app": "web", **(labels or {})}, **more)


@pytest.fixture
def life() -> Life:
    """Returns a TApp with five instances of two containers, of which two instances may be
    unavailable.
    """
    spec = {"template": asking(sidecars=[SIDE]), "updateStrategy": {"maxUnavailable": 2}}
    life = Life().apply(tapp(**spec))
    life.writes()
    life.watch_readiness()
    return life


def restart_counts(life: Life, container: str) -> list[int]:
    """Returns the restart count of the container in each pod, by instance number."""
    return [
        next(
            s["restartCount"] for s in pod["status"]["containerStatuses"] if s["name"] == container
        )
        for _, pod in sorted(life.pods.items())
    ]


def digests(life: Life) -> set[str]:
    """Returns the different image IDs of all containers."""
    return {
        status["imageID"]
        for pod in life.pods.values()
        for status in pod["status"]["containerStatuses"]
    }


def test_changed_annotation_restarts_all_containers_within_the_budget(life: Life) -> None:
    born, content = life.uids(), digests(life)
    for number, text in enumerate(["2026-01-02", "sha256:1f0c", "again", "and again"], start=1):
        life.patch(template=asking(sidecars=[SIDE], restart=text))
        assert restart_counts(life, "web") == [number] * 5
        assert restart_counts(life, "side") == [number] * 5
        assert life.complete
    assert life.uids() == born
    assert life.fewest_ready == 3
    assert digests(life) == content


def test_annotation_for_one_container_restarts_only_that_container(life: Life) -> None:
    life.patch(template=asking(sidecars=[SIDE], restart_side="1"))
    assert restart_counts(life, "web") == [0] * 5
    assert restart_counts(life, "side") == [1] * 5
    life.patch(template=asking(sidecars=[SIDE], restart_side="1", restart_web="1"))
    assert restart_counts(life, "web") == [1] * 5
    assert restart_counts(life, "side") == [1] * 5


def test_removed_annotation_restarts_nothing(life: Life) -> None:
    life.patch(template=asking(sidecars=[SIDE], restart="1"))
    life.patch(template=asking(sidecars=[SIDE]))
    assert restart_counts(life, "web") == [1] * 5
    assert life.complete


def test_restart_together_with_a_new_image_restarts_each_container_once(life: Life) -> None:
    life.patch(template=asking("web:2", sidecars=[SIDE], restart="1"))
    assert restart_counts(life, "web") == [1] * 5
    assert restart_counts(life, "side") == [1] * 5
    assert life.images() == " ".join(["web:2"] * 5)


def test_later_edits_are_compared_with_the_template_and_not_with_the_digest(life: Life) -> None:
    """After a restart in place, the image of the pod has a digest; later edits still restart the
    right containers.
    """
    life.patch(template=asking(sidecars=[SIDE], restart="1"))
    assert "@sha256:" in life.images()
    life.patch(template=asking(sidecars=[SIDE], restart="1", labels={"v": "2"}))
    assert restart_counts(life, "web") == [1] * 5  # the digest alone is no update
    life.patch(template=asking("web:2", sidecars=[SIDE], restart="1"))
    assert restart_counts(life, "web") == [2] * 5
    assert restart_counts(life, "side") == [1] * 5
    life.patch(template=asking("web:1", sidecars=[SIDE], restart="1"))
    assert life.images() == " ".join(["web:1"] * 5)
    life.patch(template=asking("web:1", sidecars=[SIDE], restart="2"))
    assert restart_counts(life, "web") == [4] * 5
    assert life.condition("ImagesEdited") == ""
    assert life.complete


def test_all_containers_start_after_the_last_of_several_edits(life: Life) -> None:
    for number in range(6):
        life.begin_patch(template=asking(sidecars=[SIDE], restart=f"{number}"))
        life.world.run(1.3)
    edited = life.world.clock.now
    life.begin_patch(template=asking(sidecars=[SIDE], restart="last")).settle()
    for pod in life.pods.values():
        worker = life.world.kubelet.worker(pod)
        assert worker is not None
        assert all(one.run is not None and one.run.started > edited for one in worker.local.mains)
    assert life.fewest_ready == 3
    assert life.complete


def test_container_whose_image_has_a_digest_restarts() -> None:
    digest = "web@sha256:" + "4" * 64
    life = Life().apply(tapp(replicas=2, template=asking(digest)))
    life.patch(template=asking(digest, restart="1"))
    life.patch(template=asking(digest, restart="2"))
    assert restart_counts(life, "web") == [2, 2]
    assert life.complete


def test_container_restarts_when_a_label_that_it_reads_changes(life: Life) -> None:
    reading = {"container": {"env": [READS]}, "sidecars": [SIDE]}
    life.patch(template=asking(**reading, labels={"tier": "gold"}))
    born = life.uids()
    life.patch(template=asking(**reading, labels={"tier": "silver"}))
    assert restart_counts(life, "web") == [1] * 5
    assert restart_counts(life, "side") == [0] * 5
    life.patch(template=asking(**reading, labels={"tier": "silver", "other": "1"}))
    assert restart_counts(life, "web") == [1] * 5
    life.patch(template=asking(**reading, labels={"tier": None}))  # removed
    assert restart_counts(life, "web") == [2] * 5
    assert life.uids() == born
    assert life.complete


def test_restart_of_an_unknown_container_sets_a_condition(life: Life) -> None:
    life.patch(template=asking(sidecars=[SIDE], restart_wbe="1"))
    assert life.condition("UnknownContainers") == (
        "True NoContainer: template 'default': annotation apps.tkestack.io/restart-in-place.wbe "
        "restarts nothing, because the template has no container 'wbe' that keeps running"
    )
    assert restart_counts(life, "web") == [0] * 5


def test_restart_waits_for_a_container_that_has_not_started() -> None:
    life = Life()
    life.world.kubelet.levers.bad_images.add("web:1")
    life.apply(tapp(replicas=2, template=asking())).writes()
    life.patch(template=asking(restart="1"))
    assert life.writes() == []
    assert life.condition("Progressing").startswith("True Updating: updating instances 0, 1")
    life.world.kubelet.levers.bad_images.clear()
    life.idle()
    assert restart_counts(life, "web") == [1, 1]
    assert life.complete


def test_pod_with_a_container_that_cannot_start_is_replaced() -> None:
    life = Life()
    life.world.kubelet.levers.bad_images.add("side:0")
    broken = [{**SIDE, "image": "side:0"}]
    life.apply(tapp(replicas=2, template=asking(sidecars=broken))).writes()
    born = life.uids()
    life.patch(template=asking("web:2", sidecars=broken, restart="1"))
    assert life.uids().keys() == born.keys()
    assert set(life.uids().values()).isdisjoint(born.values())


def request_restart(life: Life, number: int, text: str, container: str = "") -> None:
    """Requests a restart in one pod by an annotation of the pod; "" stands for all containers.

    `text` is the value of the annotation, of which each new value is a new request.
    """
    key = f"apps.tkestack.io/restart-instance{container and '.'}{container}"
    life.world.patch("Pod", f"web-{number}", {"metadata": {"annotations": {key: text}}})


def test_annotation_of_a_pod_restarts_only_that_pod(life: Life) -> None:
    for number, text in enumerate(["1", "2", "3"], start=1):
        request_restart(life, 2, text)
        life.settle()
        assert restart_counts(life, "web") == [0, 0, number, 0, 0]
        assert restart_counts(life, "side") == [0, 0, number, 0, 0]
        assert life.complete
    request_restart(life, 4, "now", "side")
    life.settle()
    assert restart_counts(life, "web") == [0, 0, 3, 0, 0]
    assert restart_counts(life, "side") == [0, 0, 3, 0, 1]
    life.patch(template=asking("web:2", sidecars=[SIDE]))  # earlier requests restart nothing
    assert restart_counts(life, "web") == [1, 1, 4, 1, 1]
    assert restart_counts(life, "side") == [0, 0, 3, 0, 1]
    life.patch(template=asking("web:2", sidecars=[SIDE], labels={"v": "2"}))
    assert restart_counts(life, "web") == [1, 1, 4, 1, 1]
    assert restart_counts(life, "side") == [0, 0, 3, 0, 1]
    assert life.condition("ImagesEdited") == ""


def test_restarts_of_all_pods_are_limited_by_the_budget(life: Life) -> None:
    for number in range(5):
        request_restart(life, number, "now")
    life.settle()
    assert restart_counts(life, "web") == [1] * 5
    assert life.fewest_ready == 3


def test_requested_restart_and_update_restart_a_container_once(life: Life) -> None:
    life.patch(updateStrategy={"maxUnavailable": 2, "paused": True})
    request_restart(life, 0, "now")
    life.settle()
    assert restart_counts(life, "web") == [0] * 5
    life.patch(template=asking("web:2", sidecars=[SIDE]), updateStrategy={"paused": False})
    assert restart_counts(life, "web") == [1] * 5
    assert restart_counts(life, "side") == [1, 0, 0, 0, 0]


def test_restart_of_an_unknown_container_of_a_pod_has_no_effect(life: Life) -> None:
    request_restart(life, 0, "now", "typo")
    life.settle()
    assert restart_counts(life, "web") == [0] * 5
    assert life.complete


@pytest.mark.parametrize("code", [0, 1], ids=["succeeded", "failed"])
@pytest.mark.parametrize("lean", [False, True], ids=["normal pods", "lean pods"])
def test_restart_after_a_crash_does_not_complete_a_requested_restart(lean: bool, code: int) -> None:
    """Requests a restart while two containers restart after a crash; they count as restarted only
    later.

    The kubelet first restarts such a container with the old spec, and then stops it once more.
    """
    life = Life(policies=[lean_pods] if lean else [])
    life.apply(tapp(template=asking(), updateStrategy={"maxUnavailable": 2}))
    behaviour = life.world.kubelet.levers
    behaviour.start_seconds, behaviour.stop_seconds = 3.0, 5.0
    for number in (0, 1):
        life.world.kubelet.finish(life.pods[number], code)
    life.until(lambda: life.statuses.count("Pending") == 2)
    life.watch_readiness()
    life.begin_patch(template=asking(restart="1"))
    life.settle()
    assert restart_counts(life, "web") == [2, 2, 1, 1, 1]
    assert life.fewest_ready == 3
    assert life.complete


PROBED = {"livenessProbe": {"tcpSocket": {"port": 80}}}


@pytest.mark.parametrize("turns_seen", [True, False], ids=["slow stop", "fast stop"])
def test_restart_by_a_liveness_probe_does_not_complete_a_requested_restart(
    turns_seen: bool,
) -> None:
    """Requests a restart just after a liveness probe has failed in two containers.

    Such a container looks as if the kubelet had stopped it for the request, but that happens only
    later.
    """
    life = Life().apply(tapp(template=asking(container=PROBED), updateStrategy=TWO))
    behaviour = life.world.kubelet.levers
    behaviour.start_seconds, behaviour.stop_seconds = 3.0, 5.0 if turns_seen else 0.0
    for number in (0, 1):
        life.world.kubelet.fail_liveness(life.pods[number], "web")
    life.watch_readiness()
    life.begin_patch(template=asking(container=PROBED, restart="1"))
    life.settle()
    assert sorted(restart_counts(life, "web")) == [1, 1, 1, 2, 2]
    assert life.fewest_ready == 3
    assert life.complete


TWO = {"maxUnavailable": 2}


def test_restart_of_a_probed_container_is_complete_when_its_stop_was_observed() -> None:
    """Requests a restart of containers with a liveness probe; it is complete soon after the status
    has shown their stop.

    The restart stays complete, with any later report of the kubelet.
    """
    life = Life().apply(tapp(template=asking(container=PROBED), updateStrategy=TWO))
    life.world.kubelet.levers.stop_seconds = 5.0
    began = life.world.clock.now
    life.patch(template=asking(container=PROBED, restart="1"))
    assert life.complete
    assert life.world.clock.now - began < 45  # three rounds, although one grace period is 30 s
    assert life.status["turned"] == {f"{number}/2": "web" for number in range(5)}
    life.patch(template=asking(container=PROBED, restart="1", labels={"app": "web", "v": "2"}))
    assert life.complete
    life.patch(template=asking("web:2", container=PROBED, restart="1"))
    assert "turned" not in life.status


@pytest.mark.parametrize("lean", [False, True], ids=["normal pods", "lean pods"])
def test_pod_that_is_evicted_during_a_restart_is_replaced(lean: bool) -> None:
    """Evicts a pod after one of its two containers has restarted, but not the other one.

    Both had run for a long time before, so the time alone would prove the restart, and the pod
    would count as finished.
    """
    first = asking(sidecars=[SIDE], terminationGracePeriodSeconds=1)
    second = asking(sidecars=[SIDE], terminationGracePeriodSeconds=1, restart="1")
    for body in (first, second):
        body["spec"]["restartPolicy"] = "Never"
    life = Life(policies=[lean_pods] if lean else [])
    life.apply(tapp(template=first))
    life.world.run(60)
    life.world.kubelet.levers.start_seconds = 3.0
    life.begin_patch(template=second)
    worker = life.world.kubelet.worker(life.pods[0])
    assert worker is not None
    web, side = worker.local.mains
    life.until(lambda: web.run is not None and web.run.restarts == 1)
    assert not side.alive
    life.world.kubelet.evict(life.pods[0])
    life.settle()
    assert life.statuses == " ".join(["Running"] * 5)
    assert life.complete
