"""The amount that a container gets: by its template, or by whoever resizes its pod."""

from typing import Any

import pytest

from simulator.api.admission import lean_pods
from simulator.api.store import InvalidError
from tests.scenarios.apps import tapp, template
from tests.scenarios.life import Document, Life, each

IGNORE = {"inPlaceUpdateStrategy": {"resources": "Ignore"}}
COUNT = {"inPlaceUpdateStrategy": {"resources": None}}
NATIVE = {"name": "native", "image": "native:1", "restartPolicy": "Always"}


def asking(cpu: str = "100m", image: str = "web:1", **more: Any) -> Document:
    """A template whose containers ask for so much."""
    resources = {"limits": {"cpu": cpu, "memory": "64Mi"}}
    init = {**NATIVE, "resources": {"requests": {"cpu": cpu}}}
    return template(image, container={"resources": resources}, initContainers=[init], **more)


def begun(strategy: Document | None = None, *, lean: bool = False, **spec: Any) -> Life:
    """Three instances, at rest."""
    update = {"maxUnavailable": 2, **(strategy or {})}
    life = Life(policies=[lean_pods] if lean else [])
    life.apply(tapp(replicas=3, template=asking(), updateStrategy=update, **spec))
    life.writes()
    return life


def resize(life: Life, cpu: str, *ids: int) -> Life:
    """A vertical autoscaler gives pods so much."""
    for id in ids or range(3):
        limits = {"limits": {"cpu": cpu}, "requests": {"cpu": cpu}}
        life.world.resize(f"web-{id}", limits, "web")
        life.world.resize(f"web-{id}", {"requests": {"cpu": cpu}}, "native")
    return life.settle()


def cpus(life: Life) -> list[str]:
    """Requests of each pod's containers."""
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


@pytest.mark.parametrize("lean", [False, True])
@pytest.mark.parametrize("strategy", [{}, IGNORE])
def test_what_somebody_resizes_is_left_so(strategy: Document, lean: bool) -> None:
    life = begun(strategy, lean=lean)
    born = life.uids()
    resize(life, "200m")
    assert set(life.writes()) <= {f"update Pod web-{id}" for id in range(3)}  # its annotation
    life.idle()
    assert life.writes() == []
    assert (life.uids(), cpus(life), life.complete) == (born, ["200m 200m"] * 3, True)


@pytest.mark.parametrize("lean", [False, True])
def test_a_template_that_asks_for_what_its_pods_have_writes_labels_only(lean: bool) -> None:
    life = begun(lean=lean)
    born = life.uids()
    resize(life, "200m")
    life.writes()
    life.patch(template=asking("0.2"))
    assert sorted(life.writes()) == each("update Pod", "web-0", "web-1", "web-2")
    assert (life.uids(), restarted(life), life.complete) == (born, 0, True)
    life.patch(template=asking("0.2", "web:2"))
    assert (life.uids(), restarted(life), life.complete) == (born, 3, True)


def test_an_image_may_change_at_the_same_time() -> None:
    life = resize(begun(), "200m")
    born = life.uids()
    life.patch(template=asking("200m", "web:2"))
    assert (life.uids(), life.images(), restarted(life)) == (born, "web:2 web:2 web:2", 3)
    assert (cpus(life), life.complete) == (["200m 200m"] * 3, True)


def test_a_pod_with_other_resources_gets_a_successor() -> None:
    life = resize(begun(), "200m", 1)
    life.world.resize("web-2", {"limits": {"cpu": "200m"}, "requests": {"cpu": "200m"}}, "web")
    life.settle()
    born = life.uids()
    life.patch(template=asking("200m"))
    assert {id for id, uid in life.uids().items() if uid == born[id]} == {1}
    assert (cpus(life), life.complete) == (["200m 200m"] * 3, True)


@pytest.mark.parametrize(
    "more",
    [
        {"resources": {"limits": {"cpu": "200m"}}},  # the pod has a memory limit, too
        {"resources": {"limits": {"cpu": "200m", "memory": "64Mi"}}, "args": ["x"]},
    ],
)
def test_what_else_differs_needs_a_new_pod(more: Document) -> None:
    life = resize(begun(), "200m")
    born = life.uids()
    body = asking("200m")
    body["spec"]["containers"][0] |= more
    life.patch(template=body)
    assert not set(life.uids().values()) & set(born.values())


def test_without_the_history_nothing_tells_so_a_new_pod() -> None:
    life = resize(begun(revisionHistoryLimit=0), "200m")
    born = life.uids()
    life.patch(template=asking("200m"))
    assert not set(life.uids().values()) & set(born.values())


def test_a_template_without_resources_needs_no_history() -> None:
    life = Life().apply(tapp(replicas=1, template=template(), revisionHistoryLimit=0))
    born = life.uids()
    life.patch(template=template(container={"resources": {"limits": {"cpu": "1"}}}))
    assert life.uids() != born


@pytest.mark.parametrize("lean", [False, True])
def test_ignored_resources_are_no_update_and_new_pods_have_them(lean: bool) -> None:
    life = resize(begun(IGNORE, lean=lean), "300m", 0)
    born, kept = life.uids(), life.history()
    life.writes()
    life.patch(template=asking("200m"))
    assert (life.writes(), life.uids(), life.history()) == ([], born, kept)
    assert (cpus(life), life.complete) == (["300m 300m", "100m 100m", "100m 100m"], True)
    life.world.delete("Pod", "web-2")
    life.settle()
    assert cpus(life) == ["300m 300m", "100m 100m", "200m 200m"]


@pytest.mark.parametrize("lean", [False, True])
def test_ignored_resources_are_not_written_with_what_else_changes(lean: bool) -> None:
    life = resize(begun(IGNORE, lean=lean), "300m", 0)
    born = life.uids()
    life.patch(template=asking("200m", "web:2", labels={"app": "web", "tier": "front"}))
    assert (life.uids(), life.images(), life.complete) == (born, "web:2 web:2 web:2", True)
    assert cpus(life) == ["300m 300m", "100m 100m", "100m 100m"]


@pytest.mark.parametrize("history", [0, 10])
def test_switching_restarts_nothing(history: int) -> None:
    reading = {"name": "R", "valueFrom": {"fieldRef": {
        "fieldPath": "metadata.labels['tapp_template_hash_key']"}}}  # fmt: skip
    body = asking()
    body["spec"]["containers"][0]["env"] = [reading]
    life = begun(revisionHistoryLimit=history).patch(template=body)
    born, labels = life.uids(), revisions(life)
    life.writes()
    for strategy in (IGNORE, COUNT):
        life.patch(updateStrategy=strategy)
        assert sorted(life.writes()) == each("update Pod", "web-0", "web-1", "web-2")
        assert (life.uids(), restarted(life), life.complete) == (born, 0, True)
        assert (revisions(life) == labels) == (strategy == COUNT)


def revisions(life: Life) -> set[str]:
    """The revisions that pods carry."""
    return {pod["metadata"]["labels"]["tapp_template_hash_key"] for pod in life.pods.values()}


def test_switching_on_with_other_resources_is_no_update() -> None:
    life = begun()
    born = life.uids()
    life.patch(updateStrategy=IGNORE, template=asking("200m"))
    assert (life.uids(), cpus(life), life.complete) == (born, ["100m 100m"] * 3, True)


def test_switching_off_recreates_what_has_other_resources_than_its_template() -> None:
    life = resize(begun(IGNORE, revisionHistoryLimit=0), "300m", 0)
    life.patch(template=asking("300m"))
    born = life.uids()
    life.patch(updateStrategy=COUNT)
    assert {id for id, uid in life.uids().items() if uid == born[id]} == {0}
    assert (cpus(life), life.complete) == (["300m 300m"] * 3, True)


def test_pods_without_the_setting_that_have_no_resources_are_not_touched_by_it() -> None:
    life = Life().apply(tapp(replicas=2))
    life.writes()
    life.patch(updateStrategy=IGNORE)
    assert (life.writes(), life.complete) == ([], True)


def test_an_ordinary_write_does_not_change_resources_and_a_resize_nothing_else() -> None:
    """As the API server has it (ValidatePodUpdate, ValidatePodResize)."""
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
