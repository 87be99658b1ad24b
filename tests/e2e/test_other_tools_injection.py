"""TApps beside controllers that inject into pods or write on them: service meshes and OpenKruise.

The API server and its admission are real. Policies and calls play the controllers.
tests/e2e/README.md lists the cases, and those that were only read in sources.
"""

from __future__ import annotations

import pytest

from .admission import VOLUME, Demand, Reshape, added, mutation
from .app import App, each, tapp, template
from .kube import Json, KubeError
from .kubelet import FakeKubelet
from .kubelet_controls import Levers

pytestmark = pytest.mark.e2e


def annotation(name: str, value: str) -> str:
    """Returns an operation that adds an annotation.

    The pods have some already, from Metacontroller.
    """
    return added(f"'/metadata/annotations/' + jsonpatch.escapeKey('{name}')", f"'{value}'")


SIDECAR = (
    added("'/spec/initContainers'", "[]"),
    added(
        "'/spec/initContainers/0'",
        "Object.spec.initContainers{name: 'proxy', image: 'proxy:1', restartPolicy: 'Always'}",
    ),
)
CONTAINER = added("'/spec/containers/0'", "Object.spec.containers{name: 'proxy', image: 'proxy:1'}")
INJECTED = {
    "a native sidecar, as Istio's": mutation(
        *SIDECAR, *VOLUME, annotation("sidecar.istio.io/status", "injected")
    ),
    "a container before the first, as Linkerd's": mutation(
        CONTAINER, *VOLUME, annotation("linkerd.io/proxy-version", "1")
    ),
}


def with_volume(image: str = "app:1") -> Json:
    """Returns a template with one volume."""
    return template(image, volumes=[{"name": "scratch", "emptyDir": {}}])


def containers(pod: Json) -> dict[str, str]:
    """Returns the images of all containers of a pod, including init containers, by name."""
    every = [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]
    return {one["name"]: one["image"] for one in every}


@pytest.mark.parametrize("mutations", INJECTED.values(), ids=[*INJECTED])
def test_injected_containers_stay_through_an_update_in_place(
    reshape: Reshape, app: App, mutations: list[str]
) -> None:
    """A service that removed injected containers would fight with the mesh forever."""
    reshape(["CREATE"], mutations, injected)
    app.apply(tapp(template=with_volume())).settle()
    born = app.uids()
    assert {tuple(sorted(containers(pod).items())) for pod in app.pods.values()} == {
        (("main", "app:1"), ("proxy", "proxy:1"))
    }
    assert app.idle()
    app.watcher.begin()
    app.patch(template=with_volume("app:2")).settle()
    assert app.wrote_in_order(*each("update Pod", "web", 0, 1, 2))
    assert app.uids() == born
    assert app.watcher.fewest == 2
    assert set(app.restarts().values()) == {1}
    for pod in app.pods.values():
        assert containers(pod) == {"main": "app:2", "proxy": "proxy:1"}
        assert {volume["name"] for volume in pod["spec"]["volumes"]} >= {"scratch", "certs"}
    assert app.idle()


def injected(pod: Json) -> bool:
    """Returns True if a pod has the injected container."""
    return "proxy" in containers(pod)


# --- SidecarSet -----------------------------------------------------------------------------------

HASH = "kruise.io/sidecarset-hash"
INJECTED_BY_KRUISE = mutation(CONTAINER, annotation(HASH, "one"))


def test_container_updated_by_a_sidecarset_is_left_unchanged(reshape: Reshape, app: App) -> None:
    """Its controller writes image and hash in one update.

    Updates of both controllers may follow each other.
    """
    reshape(["CREATE"], INJECTED_BY_KRUISE, injected)
    app.apply(tapp()).settle()
    born = app.uids()
    app.news()
    for number in range(3):
        upgrade(app, number, "proxy:2", "two")
    app.until(lambda: app.restarts() == {0: 1, 1: 1, 2: 1}, "the sidecars restart").settle()
    assert app.wrote()
    assert app.idle()
    app.patch(template=template("app:2")).settle()
    assert app.wrote_in_order(*each("update Pod", "web", 0, 1, 2))
    for number, pod in app.pods.items():
        assert containers(pod) == {"proxy": "proxy:2", "main": "app:2"}
        assert pod["metadata"]["annotations"][HASH] == "two"
        upgrade(app, number, "proxy:3", "three")
    app.settle()
    assert app.uids() == born
    assert app.reasons() == ["AsExpected", "AsSpecified"]
    assert app.idle()


def upgrade(app: App, number: int, image: str, mark: str) -> None:
    """Reads, changes and replaces a pod, as the controller of a SidecarSet does."""
    while True:
        pod = app.pod(number)
        (sidecar,) = (one for one in pod["spec"]["containers"] if one["name"] == "proxy")
        sidecar["image"] = image
        pod["metadata"]["annotations"][HASH] = mark
        try:
            app.kube.replace({"apiVersion": "v1", "kind": "Pod", **pod})
        except KubeError as error:
            if error.status != 409:  # a conflict means another write in between
                raise
        else:
            return


# --- ContainerRecreateRequest ---------------------------------------------------------------------


def test_container_recreated_on_request_causes_no_write(
    app: App, kubelet: FakeKubelet, levers: Levers
) -> None:
    """OpenKruise's daemon stops the container in the runtime, and the kubelet starts it again."""
    levers.ready_seconds = 1.5
    app.apply(tapp()).settle()
    born = app.uids()
    app.news()
    kubelet.finish(app.namespace, "web-1", code=137)
    app.until(lambda: app.status["availableReplicas"] == 2, "instance 1 counts as unavailable")
    app.until(lambda: app.restarts()[1] == 1, "the container of instance 1 restarts").settle()
    assert app.wrote()
    assert app.uids() == born
    assert app.idle()


# --- PersistentPodState ---------------------------------------------------------------------------

STICKY = mutation(
    added("'/spec/nodeSelector'", "{}"),
    added("'/spec/nodeSelector/' + jsonpatch.escapeKey('kubernetes.io/os')", "'linux'"),
    annotation("kruise.io/injected-persistent-pod-state", "web"),
)


def test_node_selector_of_persistent_pod_state_stays_through_updates(
    reshape: Reshape, app: App
) -> None:
    """OpenKruise's webhook adds a node selector to the replacement, which must stay through
    updates.
    """
    app.apply(tapp()).settle()
    reshape(["CREATE"], STICKY, lambda pod: "nodeSelector" in pod["spec"])
    born = app.uids()
    app.delete_pod(1).wait_until_replaced(1, born).settle()
    assert app.idle()
    app.patch(template=template("app:2")).settle()
    assert app.pod(1)["spec"]["nodeSelector"] == {"kubernetes.io/os": "linux"}
    assert app.images() == "app:2 app:2 app:2"
    assert app.idle()


# --- PodUnavailableBudget -------------------------------------------------------------------------


UNAVAILABLE = (
    "!(object.spec.containers.exists(c, oldObject.spec.containers.exists(o,"
    " o.name == c.name && o.image != c.image)))"
)
"""The rule of OpenKruise's webhook for updates while its budget is used up, as a policy."""


def test_update_refused_by_a_foreign_budget_is_retried(app: App, demand: Demand) -> None:
    """A refused update must not stop the rollout, or let another instance take its place."""
    app.apply(tapp()).settle()
    born = app.uids()
    demand(UNAVAILABLE, "refused by the budget", ["UPDATE"])
    app.until(lambda: budget_refuses(app), "the budget is in force")
    app.news()
    app.patch(template=template("app:2"))
    refused_names: set[str] = set()

    def refused() -> bool:
        refused_names.update(refused_pods(app))
        return bool(refused_names)

    app.until(refused, "the update is refused")
    assert app.images() == "app:1 app:1 app:1"
    demand("true", operations=["UPDATE"])
    app.until(lambda: not budget_refuses(app), "the budget allows it")
    app.trigger_sync()
    app.settle()
    refused()
    assert refused_names == {"web-0"}
    assert app.uids() == born


def budget_refuses(app: App) -> bool:
    """Returns True if the dry run of another image is refused."""
    path = app.kube.path("v1", "pods", app.namespace, "web-2")
    image = {"op": "replace", "path": "/spec/containers/0/image", "value": "app:9"}
    try:
        app.kube.request("PATCH", path, [image], {"dryRun": "All"})
    except KubeError as error:
        return "refused by the budget" in error.message
    return False


def refused_pods(app: App) -> list[str]:
    """Returns the pods whose update by Metacontroller was refused by admission since the
    last call.
    """
    written = app.news(refused=(403, 404, 409, 422))
    return [write.name for write in written if not write.accepted and write.code in (403, 422)]
