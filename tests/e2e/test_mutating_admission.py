"""Admission that changes pods: the service keeps its additions and does not write against them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .admission import Reshape
from .app import App, each, tapp, template
from .kube import Json, Kube
from .policies import lean_everywhere

pytestmark = pytest.mark.e2e

INJECT = (
    "[JSONPatch{op: 'add', path: '/spec/containers/0', "
    "value: Object.spec.containers{name: 'proxy', image: 'proxy:1'}}]"
)
REWRITE = (
    "object.spec.containers.map(c, c.image.startsWith('mirror/') ? -1 : "
    "object.spec.containers.indexOf(c)).filter(i, i >= 0).map(i, JSONPatch{op: 'replace', "
    "path: '/spec/containers/' + string(i) + '/image', "
    "value: 'mirror/' + object.spec.containers[i].image})"
)


def two_containers(image: str) -> Json:
    made = template(image)
    made["spec"]["containers"].append({"name": "side", "image": "side:1"})
    return made


def through_a_life(
    app: App, made: Callable[[str], Json], images: str, *, notes: tuple[int, int] = (0, 0)
) -> None:
    """Creates, updates in place and scales a TApp, and asserts that no further write happens.

    `notes` are the numbers of additional writes for a new and for an updated pod. Only the API
    server knows how admission changes images and lists that Metacontroller replaces as a whole.
    Metacontroller updates its copy of the pod once for that. Lean pods have no such copy.
    """
    if lean_everywhere():
        notes = (0, 0)

    def noted(which: int, *numbers: int) -> list[str]:
        return each("update Pod", "web", *numbers) * notes[which]

    app.apply(tapp(replicas=2, template=made("app:1"))).settle()
    assert app.wrote(*each("create Pod", "web", 0, 1), *noted(0, 0, 1))
    assert app.idle()
    born = app.uids()
    app.patch(template=made("app:2")).settle()
    assert app.wrote(*each("update Pod", "web", 0, 1), *noted(1, 0, 1))
    assert app.images("main") == images
    assert app.uids() == born
    assert set(app.restarts().values()) == {1}
    assert app.idle()
    app.patch(replicas=3).settle()
    assert app.wrote("create Pod web-2", *noted(0, 2))
    assert app.uids() == {**app.uids(), **born}
    assert app.idle()


def test_defaults_of_a_limit_range_cause_no_further_writes(app: App, kube: Kube) -> None:
    limits = {"default": {"cpu": "2", "memory": "1Gi"}, "defaultRequest": {"cpu": "100m"}}
    metadata = {"name": "defaults", "namespace": app.namespace}
    spec = {"limits": [{"type": "Container", **limits}]}
    kube.create({"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": spec})

    def limited() -> bool:
        pod = {"metadata": {"name": "p", "namespace": app.namespace}, "spec": template()["spec"]}
        path = kube.path("v1", "pods", app.namespace)
        made = kube.request("POST", path, {"apiVersion": "v1", "kind": "Pod", **pod},
                            {"dryRun": "All"})  # fmt: skip
        return bool(made["spec"]["containers"][0]["resources"])

    app.until(limited, "the limit range has an effect")
    through_a_life(app, template, "app:2 app:2")
    assert app.pod(2)["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "100m"


def test_images_rewritten_at_creation_cause_one_further_write(app: App, reshape: Reshape) -> None:
    reshape(["CREATE"], [INJECT, REWRITE])
    through_a_life(app, two_containers, "app:2 app:2", notes=(1, 0))
    assert app.images("side") == "mirror/side:1 mirror/side:1 mirror/side:1"
    assert app.images("proxy") == "mirror/proxy:1 mirror/proxy:1 mirror/proxy:1"


def test_images_rewritten_at_every_write_cause_one_further_write_each(
    app: App, reshape: Reshape
) -> None:
    reshape(["CREATE", "UPDATE"], [REWRITE])
    through_a_life(app, template, "mirror/app:2 mirror/app:2", notes=(1, 1))
