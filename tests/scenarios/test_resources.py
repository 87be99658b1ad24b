"""Tests the resources of a container: set by its template, or by somebody who resizes its pod."""

import pytest

from simulator.api.store import InvalidError
from tests.scenarios.apps import tapp, template
from tests.scenarios.life import Document, Life, each
from tests.scenarios.resources import IGNORE, asking, begun, resize

DEFAULT = {"inPlaceUpdateStrategy": {"resources": None}}


def cpus(life: Life) -> list[str]:
    """Returns the CPU requests of the containers of each pod, one line for each pod."""
    return [
        " ".join(
            one["resources"]["requests"]["cpu"]
            for section in ("containers", "initContainers")
            for one in pod["spec"][section]
        )
        for _, pod in sorted(life.pods.items())
    ]


def restarted(life: Life) -> int:
    return sum(life.restarts().values())


@pytest.mark.parametrize("lean", [False, True], ids=["normal pods", "lean pods"])
@pytest.mark.parametrize("strategy", [{}, IGNORE], ids=["default", "Ignore"])
def test_resize_by_somebody_else_stays(strategy: Document, lean: bool) -> None:
    life = begun(strategy, lean=lean)
    born = life.uids()
    resize(life, "200m")
    assert set(life.writes()) <= {
        f"update Pod web-{id}" for id in range(3)
    }  # the last-applied annotation
    life.idle()
    assert life.writes() == []
    assert life.uids() == born
    assert cpus(life) == ["200m 200m"] * 3
    assert life.complete


@pytest.mark.parametrize("lean", [False, True], ids=["normal pods", "lean pods"])
def test_template_that_gets_the_resources_of_its_pods_changes_only_labels(lean: bool) -> None:
    life = begun(lean=lean)
    born = life.uids()
    resize(life, "200m")
    life.writes()
    life.patch(template=asking("0.2"))
    assert sorted(life.writes()) == each("update Pod", "web-0", "web-1", "web-2")
    assert life.uids() == born
    assert restarted(life) == 0
    assert life.complete
    life.patch(template=asking("0.2", "web:2"))
    assert life.uids() == born
    assert restarted(life) == 3
    assert life.complete


def test_image_is_updated_in_place_if_the_template_gets_the_resources_of_its_pods() -> None:
    life = resize(begun(), "200m")
    born = life.uids()
    life.patch(template=asking("200m", "web:2"))
    assert life.uids() == born
    assert life.images() == "web:2 web:2 web:2"
    assert restarted(life) == 3
    assert cpus(life) == ["200m 200m"] * 3
    assert life.complete


def test_pods_with_other_resources_than_the_new_template_are_replaced() -> None:
    life = resize(begun(), "200m", 1)
    life.world.resize("web-2", {"limits": {"cpu": "200m"}, "requests": {"cpu": "200m"}}, "web")
    life.settle()
    born = life.uids()
    life.patch(template=asking("200m"))
    assert {id for id, uid in life.uids().items() if uid == born[id]} == {1}
    assert cpus(life) == ["200m 200m"] * 3
    assert life.complete


@pytest.mark.parametrize(
    "more",
    [
        {"resources": {"limits": {"cpu": "200m"}}},  # without a memory limit
        {"resources": {"limits": {"cpu": "200m", "memory": "64Mi"}}, "args": ["x"]},
    ],
    ids=["limit removed", "arguments"],
)
def test_further_difference_replaces_the_pod(more: Document) -> None:
    life = resize(begun(), "200m")
    born = life.uids()
    body = asking("200m")
    body["spec"]["containers"][0] |= more
    life.patch(template=body)
    assert not set(life.uids().values()) & set(born.values())


def test_pod_is_replaced_without_a_history() -> None:
    life = resize(begun(revisionHistoryLimit=0), "200m")
    born = life.uids()
    life.patch(template=asking("200m"))
    assert not set(life.uids().values()) & set(born.values())


def test_added_resources_replace_the_pod_without_a_history() -> None:
    life = Life().apply(tapp(replicas=1, template=template(), revisionHistoryLimit=0))
    born = life.uids()
    life.patch(template=template(container={"resources": {"limits": {"cpu": "1"}}}))
    assert life.uids() != born


@pytest.mark.parametrize("lean", [False, True], ids=["normal pods", "lean pods"])
def test_ignored_resources_cause_no_update_and_reach_new_pods(lean: bool) -> None:
    life = resize(begun(IGNORE, lean=lean), "300m", 0)
    born, kept = life.uids(), life.history()
    life.writes()
    life.patch(template=asking("200m"))
    assert life.writes() == []
    assert life.uids() == born
    assert life.history() == kept
    assert cpus(life) == ["300m 300m", "100m 100m", "100m 100m"]
    assert life.complete
    life.world.delete("Pod", "web-2")
    life.settle()
    assert cpus(life) == ["300m 300m", "100m 100m", "200m 200m"]


@pytest.mark.parametrize("lean", [False, True], ids=["normal pods", "lean pods"])
def test_ignored_resources_are_not_written_by_an_update_in_place(lean: bool) -> None:
    life = resize(begun(IGNORE, lean=lean), "300m", 0)
    born = life.uids()
    life.patch(template=asking("200m", "web:2", labels={"app": "web", "tier": "front"}))
    assert life.uids() == born
    assert life.images() == "web:2 web:2 web:2"
    assert life.complete
    assert cpus(life) == ["300m 300m", "100m 100m", "100m 100m"]


@pytest.mark.parametrize("history", [0, 10], ids=["no history", "history"])
def test_switching_resources_ignore_on_and_off_restarts_nothing(history: int) -> None:
    reading = {"name": "R", "valueFrom": {"fieldRef": {
        "fieldPath": "metadata.labels['tapp_template_hash_key']"}}}  # fmt: skip
    body = asking()
    body["spec"]["containers"][0]["env"] = [reading]
    life = begun(revisionHistoryLimit=history).patch(template=body)
    born, labels = life.uids(), revisions(life)
    life.writes()
    for strategy in (IGNORE, DEFAULT):
        life.patch(updateStrategy=strategy)
        assert sorted(life.writes()) == each("update Pod", "web-0", "web-1", "web-2")
        assert life.uids() == born
        assert restarted(life) == 0
        assert life.complete
        assert (revisions(life) == labels) == (strategy == DEFAULT)


def revisions(life: Life) -> set[str]:
    """Returns the different revisions that the labels of the pods have."""
    return {pod["metadata"]["labels"]["tapp_template_hash_key"] for pod in life.pods.values()}


def test_switching_to_ignore_together_with_other_resources_causes_no_update() -> None:
    life = begun()
    born = life.uids()
    life.patch(updateStrategy=IGNORE, template=asking("200m"))
    assert life.uids() == born
    assert cpus(life) == ["100m 100m"] * 3
    assert life.complete


def test_switching_ignore_off_replaces_pods_with_other_resources() -> None:
    life = resize(begun(IGNORE, revisionHistoryLimit=0), "300m", 0)
    life.patch(template=asking("300m"))
    born = life.uids()
    life.patch(updateStrategy=DEFAULT)
    assert {id for id, uid in life.uids().items() if uid == born[id]} == {0}
    assert cpus(life) == ["300m 300m"] * 3
    assert life.complete


def test_switching_to_ignore_without_resources_causes_no_write() -> None:
    life = Life().apply(tapp(replicas=2))
    life.writes()
    life.patch(updateStrategy=IGNORE)
    assert life.writes() == []
    assert life.complete


def test_simulated_api_server_validates_updates_and_resizes_like_a_real_one() -> None:
    """Tries invalid updates and resizes: the simulator refuses them with Kubernetes' messages.

    Kubernetes decides this in ValidatePodUpdate and ValidatePodResize.
    """
    life = begun()
    world, pod = life.world, life.pods[0]
    container = {**pod["spec"]["containers"][0], "resources": {}, "image": "web:9"}
    edited = {**pod, "spec": {**pod["spec"], "containers": [container]}}
    with pytest.raises(InvalidError, match="may not change fields other than"):
        world.cluster.update(world.kinds.find("Pod"), edited)
    with pytest.raises(InvalidError, match="QOS Class may not change"):
        world.resize("web-0", {"limits": None, "requests": None})
    with pytest.raises(InvalidError, match="requests cannot be removed"):
        world.resize("web-0", {"requests": {"cpu": None}}, "native")
    with pytest.raises(InvalidError, match="only cpu and memory"):
        world.resize("web-0", {"limits": {"x.io/gpu": "1"}}, "web")
    world.resize("web-0", {"requests": {"cpu": "50m"}}, "native")
    assert life.pods[0]["metadata"]["generation"] == 2
    assert life.pods[0]["spec"]["containers"][0]["image"] == "web:1"
