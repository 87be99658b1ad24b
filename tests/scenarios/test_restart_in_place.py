"""Containers that start anew in their pods: because a template asks, or for what they read."""

from typing import Any

import pytest

from simulator.api.admission import lean_pods
from tests.scenarios.apps import tapp, template
from tests.scenarios.life import Document, Life

RESTART = "apps.tkestack.io/restart-in-place"
READS = {"name": "TIER", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['tier']"}}}
SIDE = {"name": "side", "image": "side:1"}


def asking(image: str = "web:1", labels: Document | None = None, **more: Any) -> Document:
    """A template; what is named `restart` or `restart_web` goes into its annotations."""
    asked = {
        RESTART + key.removeprefix("restart").replace("_", "."): more.pop(key)
        for key in list(more)
        if key.startswith("restart")
    }
    return template(image, annotations=asked, labels={"app": "web", **(labels or {})}, **more)


@pytest.fixture
def life() -> Life:
    """Five instances of two containers, of which two may be unavailable."""
    spec = {"template": asking(sidecars=[SIDE]), "updateStrategy": {"maxUnavailable": 2}}
    life = Life().apply(tapp(**spec))
    life.writes()
    life.watch_readiness()
    return life


def counts(life: Life, container: str) -> list[int]:
    """Restarts of a container of each pod, by number."""
    return [
        next(
            s["restartCount"] for s in pod["status"]["containerStatuses"] if s["name"] == container
        )
        for _, pod in sorted(life.pods.items())
    ]


def digests(life: Life) -> set[str]:
    """The images that run."""
    return {
        status["imageID"]
        for pod in life.pods.values()
        for status in pod["status"]["containerStatuses"]
    }


def test_another_text_restarts_all_containers_within_the_budget(life: Life) -> None:
    born, content = life.uids(), digests(life)
    for number, text in enumerate(["2026-01-02", "sha256:1f0c", "again", "and again"], start=1):
        life.patch(template=asking(sidecars=[SIDE], restart=text))
        assert (counts(life, "web"), counts(life, "side")) == ([number] * 5, [number] * 5)
        assert life.complete
    assert (life.uids(), life.fewest_ready, digests(life)) == (born, 3, content)


def test_only_the_named_container_restarts(life: Life) -> None:
    life.patch(template=asking(sidecars=[SIDE], restart_side="1"))
    assert (counts(life, "web"), counts(life, "side")) == ([0] * 5, [1] * 5)
    life.patch(template=asking(sidecars=[SIDE], restart_side="1", restart_web="1"))
    assert (counts(life, "web"), counts(life, "side")) == ([1] * 5, [1] * 5)


def test_a_text_that_is_taken_away_restarts_nothing(life: Life) -> None:
    life.patch(template=asking(sidecars=[SIDE], restart="1"))
    life.patch(template=asking(sidecars=[SIDE]))
    assert counts(life, "web") == [1] * 5
    assert life.complete


def test_an_image_and_a_restart_in_one_edit_are_one_restart(life: Life) -> None:
    life.patch(template=asking("web:2", sidecars=[SIDE], restart="1"))
    assert (counts(life, "web"), counts(life, "side")) == ([1] * 5, [1] * 5)
    assert life.images() == " ".join(["web:2"] * 5)


def test_what_follows_a_restart_is_judged_by_the_template(life: Life) -> None:
    """The pod's image is spelt with its digest then; the template never was."""
    life.patch(template=asking(sidecars=[SIDE], restart="1"))
    assert "@sha256:" in life.images()
    life.patch(template=asking(sidecars=[SIDE], restart="1", labels={"v": "2"}))
    assert counts(life, "web") == [1] * 5  # its image is no update by itself
    life.patch(template=asking("web:2", sidecars=[SIDE], restart="1"))
    assert (counts(life, "web"), counts(life, "side")) == ([2] * 5, [1] * 5)
    life.patch(template=asking("web:1", sidecars=[SIDE], restart="1"))
    assert life.images() == " ".join(["web:1"] * 5)
    life.patch(template=asking("web:1", sidecars=[SIDE], restart="2"))
    assert counts(life, "web") == [4] * 5
    assert life.condition("ImagesEdited") == ""
    assert life.complete


def test_edits_in_a_row_end_with_containers_that_started_after_the_last_one(life: Life) -> None:
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


def test_an_image_that_is_given_by_its_digest_restarts_too() -> None:
    digest = "web@sha256:" + "4" * 64
    life = Life().apply(tapp(replicas=2, template=asking(digest)))
    life.patch(template=asking(digest, restart="1"))
    life.patch(template=asking(digest, restart="2"))
    assert counts(life, "web") == [2, 2]
    assert life.complete


def test_a_container_restarts_for_the_label_that_it_reads(life: Life) -> None:
    reading = {"container": {"env": [READS]}, "sidecars": [SIDE]}
    life.patch(template=asking(**reading, labels={"tier": "gold"}))
    born = life.uids()
    life.patch(template=asking(**reading, labels={"tier": "silver"}))
    assert (counts(life, "web"), counts(life, "side")) == ([1] * 5, [0] * 5)
    life.patch(template=asking(**reading, labels={"tier": "silver", "other": "1"}))
    assert counts(life, "web") == [1] * 5
    life.patch(template=asking(**reading, labels={"tier": None}))  # it leaves
    assert counts(life, "web") == [2] * 5
    assert life.uids() == born
    assert life.complete


def test_a_typo_is_said(life: Life) -> None:
    life.patch(template=asking(sidecars=[SIDE], restart_wbe="1"))
    assert life.condition("UnknownContainers") == (
        "True NoContainer: template 'default': annotation apps.tkestack.io/restart-in-place.wbe "
        "restarts nothing: it has no container 'wbe' that keeps running"
    )
    assert counts(life, "web") == [0] * 5


def test_a_container_that_has_not_started_is_waited_for() -> None:
    life = Life()
    life.world.kubelet.levers.bad_images.add("web:1")
    life.apply(tapp(replicas=2, template=asking())).writes()
    life.patch(template=asking(restart="1"))
    assert life.writes() == []
    assert life.condition("Progressing").startswith("True Updating: updating: 0, 1")
    life.world.kubelet.levers.bad_images.clear()
    life.idle()
    assert counts(life, "web") == [1, 1]
    assert life.complete


def test_what_mends_a_pod_does_not_wait_for_what_does_not_run() -> None:
    life = Life()
    life.world.kubelet.levers.bad_images.add("side:0")
    broken = [{**SIDE, "image": "side:0"}]
    life.apply(tapp(replicas=2, template=asking(sidecars=broken))).writes()
    born = life.uids()
    life.patch(template=asking("web:2", sidecars=broken, restart="1"))
    assert life.uids().keys() == born.keys()
    assert set(life.uids().values()).isdisjoint(born.values())


def ask(life: Life, number: int, text: str, container: str = "") -> None:
    """Somebody annotates one pod."""
    key = f"apps.tkestack.io/restart-instance{container and '.'}{container}"
    life.world.patch("Pod", f"web-{number}", {"metadata": {"annotations": {key: text}}})


def test_one_instance_restarts_because_its_pod_is_asked_to(life: Life) -> None:
    for number, text in enumerate(["1", "2", "3"], start=1):
        ask(life, 2, text)
        life.settle()
        assert counts(life, "web") == [0, 0, number, 0, 0]
        assert counts(life, "side") == [0, 0, number, 0, 0]
        assert life.complete
    ask(life, 4, "now", "side")
    life.settle()
    assert (counts(life, "web"), counts(life, "side")) == ([0, 0, 3, 0, 0], [0, 0, 3, 0, 1])
    life.patch(template=asking("web:2", sidecars=[SIDE]))  # what was met stays so
    assert (counts(life, "web"), counts(life, "side")) == ([1, 1, 4, 1, 1], [0, 0, 3, 0, 1])
    life.patch(template=asking("web:2", sidecars=[SIDE], labels={"v": "2"}))
    assert (counts(life, "web"), counts(life, "side")) == ([1, 1, 4, 1, 1], [0, 0, 3, 0, 1])
    assert life.condition("ImagesEdited") == ""


def test_requests_of_all_pods_at_once_go_through_the_budget(life: Life) -> None:
    for number in range(5):
        ask(life, number, "now")
    life.settle()
    assert (counts(life, "web"), life.fewest_ready) == ([1] * 5, 3)


def test_a_request_and_an_update_are_one_restart(life: Life) -> None:
    life.patch(updateStrategy={"maxUnavailable": 2, "paused": True})
    ask(life, 0, "now")
    life.settle()
    assert counts(life, "web") == [0] * 5
    life.patch(template=asking("web:2", sidecars=[SIDE]), updateStrategy={"paused": False})
    assert (counts(life, "web"), counts(life, "side")) == ([1] * 5, [1, 0, 0, 0, 0])


def test_a_request_for_a_container_that_is_not_there_does_nothing(life: Life) -> None:
    ask(life, 0, "now", "typo")
    life.settle()
    assert counts(life, "web") == [0] * 5
    assert life.complete


@pytest.mark.parametrize("code", [0, 1])
@pytest.mark.parametrize("lean", [False, True])
def test_a_crash_that_the_older_spec_repairs_is_not_taken_for_the_restart(
    lean: bool, code: int
) -> None:
    """The kubelet starts the container with the spec that it knew, then stops it once more."""
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
    assert counts(life, "web") == [2, 2, 1, 1, 1]
    assert life.fewest_ready == 3
    assert life.complete


PROBED = {"livenessProbe": {"tcpSocket": {"port": 80}}}


@pytest.mark.parametrize("turns_seen", [True, False])
def test_a_failed_liveness_probe_is_not_taken_for_the_restart(turns_seen: bool) -> None:
    """It ends as one does that was stopped, and what follows it is about to be stopped, too."""
    life = Life().apply(tapp(template=asking(container=PROBED), updateStrategy=TWO))
    behaviour = life.world.kubelet.levers
    behaviour.start_seconds, behaviour.stop_seconds = 3.0, 5.0 if turns_seen else 0.0
    for number in (0, 1):
        life.world.kubelet.fail_liveness(life.pods[number], "web")
    life.watch_readiness()
    life.begin_patch(template=asking(container=PROBED, restart="1"))
    life.settle()
    assert sorted(counts(life, "web")) == [1, 1, 1, 2, 2]
    assert life.fewest_ready == 3
    assert life.complete


TWO = {"maxUnavailable": 2}


def test_a_probed_container_is_done_when_its_kubelet_was_seen_to_turn_to_it() -> None:
    """And stays done, whatever the kubelet reports later."""
    life = Life().apply(tapp(template=asking(container=PROBED), updateStrategy=TWO))
    life.world.kubelet.levers.stop_seconds = 5.0
    began = life.world.clock.now
    life.patch(template=asking(container=PROBED, restart="1"))
    assert life.complete
    assert life.world.clock.now - began < 45  # three rounds; the grace period alone is 30
    assert life.status["turned"] == {f"{number}/2": "web" for number in range(5)}
    life.patch(template=asking(container=PROBED, restart="1", labels={"app": "web", "v": "2"}))
    assert life.complete
    life.patch(template=asking("web:2", container=PROBED, restart="1"))
    assert "turned" not in life.status


@pytest.mark.parametrize("lean", [False, True])
def test_a_pod_that_is_evicted_in_the_middle_was_ended_by_its_restart(lean: bool) -> None:
    """One of two containers has not been started again, however long it has run before."""
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
