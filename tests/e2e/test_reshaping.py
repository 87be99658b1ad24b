"""Admission that changes pods: what it added stays, nothing is fought over, and idle means idle."""

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


def awkward(image: str = "app:1") -> Json:
    """A template with much that the API server defaults, rewrites or adds to."""
    made = template(
        image,
        tolerations=[{"key": "gpu", "operator": "Exists"}],
        volumes=[
            {"name": "scratch", "emptyDir": {}},
            {"name": "info", "downwardAPI": {"items": [
                {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}},
            {"name": "all", "projected": {"sources": [
                {"serviceAccountToken": {"path": "token"}}]}},
        ],
        topologySpreadConstraints=[
            {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname",
             "whenUnsatisfiable": "ScheduleAnyway", "matchLabelKeys": ["tapp_uniq_hash_key"],
             "labelSelector": {"matchLabels": {"app": "web"}}},
        ],
    )  # fmt: skip
    made["spec"]["containers"][0] |= {
        "command": ["run", "all"],
        "env": [
            {"name": "EMPTY", "value": ""},
            {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        ],
        "ports": [{"name": "http", "containerPort": 8080}],
        "resources": {"limits": {"cpu": 0.5, "memory": "1024Mi"}, "requests": {"cpu": "1000m"}},
        "readinessProbe": {"httpGet": {"port": "http"}, "initialDelaySeconds": 0},
        "volumeMounts": [{"name": "scratch", "mountPath": "/s", "readOnly": False}],
    }
    made["spec"]["containers"][0]["resources"]["limits"]["cpu"] = 1
    made["spec"]["containers"].append({"name": "side", "image": "side:1"})
    return made


def two_containers(image: str) -> Json:
    made = template(image)
    made["spec"]["containers"].append({"name": "side", "image": "side:1"})
    return made


def through_a_life(
    app: App, made: Callable[[str], Json], images: str, *, notes: tuple[int, int] = (0, 0)
) -> None:
    """Create, idle, update in place, idle, scale: with the writes this takes, and no other.

    `notes` tells how many writes more a new and an updated pod takes: only the API server knows
    what admission makes of an image, and of lists that Metacontroller replaces as a whole; its own
    copy of the pod takes note of that once. Lean pods have no copy that could.
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
    assert (app.images("main"), app.uids()) == (images, born)
    assert set(app.restarts().values()) == {1}
    assert app.idle()
    app.patch(replicas=3).settle()
    assert app.wrote("create Pod web-2", *noted(0, 2))
    assert app.uids() == {**app.uids(), **born}
    assert app.idle()


def test_what_the_api_server_defaults_and_adds(app: App) -> None:
    """Tolerations, the token's volume, canonical quantities, defaults in every corner."""
    through_a_life(app, awkward, "app:2 app:2", notes=(1, 0))
    spec = app.pod(0)["spec"]
    assert len(spec["tolerations"]) == 3
    assert [volume["name"][:8] for volume in spec["volumes"]] == [
        "scratch", "info", "all", "kube-api",
    ]  # fmt: skip
    assert spec["containers"][0]["resources"]["requests"]["cpu"] == "1"


def test_defaults_of_a_limit_range(app: App, kube: Kube) -> None:
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

    app.until(limited, "the limit range counts")
    through_a_life(app, template, "app:2 app:2")
    assert app.pod(2)["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "100m"


def test_a_sidecar_that_is_injected_before_all_others(app: App, reshape: Reshape) -> None:
    reshape(["CREATE"], [INJECT])
    through_a_life(app, template, "app:2 app:2")
    names = [container["name"] for container in app.pod(0)["spec"]["containers"]]
    assert names == ["proxy", "main"]
    assert app.images("proxy") == "proxy:1 proxy:1 proxy:1"


def test_images_that_are_rewritten_when_a_pod_is_created(app: App, reshape: Reshape) -> None:
    reshape(["CREATE"], [INJECT, REWRITE])
    through_a_life(app, two_containers, "app:2 app:2", notes=(1, 0))
    assert app.images("side") == "mirror/side:1 mirror/side:1 mirror/side:1"
    assert app.images("proxy") == "mirror/proxy:1 mirror/proxy:1 mirror/proxy:1"


def test_images_that_are_rewritten_at_every_write(app: App, reshape: Reshape) -> None:
    reshape(["CREATE", "UPDATE"], [REWRITE])
    through_a_life(app, template, "mirror/app:2 mirror/app:2", notes=(1, 1))


def test_env_names_that_are_there_twice(app: App) -> None:
    """The last one counts, as in a container; the pod lives on like any other."""

    def doubled(image: str) -> Json:
        made = template(image)
        values = [("A", "1"), ("B", "2"), ("A", "3")]
        made["spec"]["containers"][0]["env"] = [{"name": n, "value": v} for n, v in values]
        return made

    through_a_life(app, doubled, "app:2 app:2")
    env = {one["name"]: one["value"] for one in app.pod(0)["spec"]["containers"][0]["env"]}
    assert env == {"A": "3", "B": "2"}
    assert app.condition("DuplicateMergeKeys") == ""
