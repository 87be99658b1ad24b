"""Tests cases in which the simulator once differed from a real cluster.

The differential end-to-end test found these differences.
"""

from __future__ import annotations

from tests.builders import Document, manifest, template
from tests.scenarios.life import Life


def tapp(**spec: object) -> Document:
    prepare = [{"name": "prepare", "image": "side:1"}]
    body = template("app:1", container={"name": "main"}, initContainers=prepare)
    return manifest(namespace="default", **{"template": body, **spec})


def test_succeeded_init_container_is_ready() -> None:
    life = Life().apply(tapp(replicas=1))
    (prepared,) = life.pods[0]["status"]["initContainerStatuses"]
    assert list(prepared["state"]) == ["terminated"]
    assert prepared["ready"]


def test_custom_resource_gets_defaults_when_it_is_created() -> None:
    life = Life().apply(tapp())
    assert life.tapp["spec"]["replicas"] == 1
    assert list(life.pods) == [0]


def test_custom_resource_gets_defaults_when_it_is_changed() -> None:
    life = Life().apply(tapp(replicas=3))
    life.patch(replicas=None)
    assert life.tapp["spec"]["replicas"] == 1
    assert list(life.pods) == [0]
