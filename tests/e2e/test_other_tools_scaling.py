"""TApps beside autoscalers: the real HorizontalPodAutoscaler, and the calls of KEDA and of the VPA.

The API server and its controllers are real. tests/e2e/README.md lists the cases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .admission import Reshape
from .app import GROUP, App, each, example, tapp, template
from .claims import claim_template
from .cluster import Cluster
from .component import RESIZE, RESIZE_ACCOUNT, account_of, replicas
from .kube import Json, Kube
from .kubelet_controls import Levers
from .metrics_server import EXTERNAL, external, served, usage
from .policies import lean_everywhere
from .proxy import HookProxy

pytestmark = pytest.mark.e2e
LONG = 90.0
"""Seconds to wait for the HorizontalPodAutoscaler, which acts every fifteen seconds."""


def scale(app: App) -> Json:
    """Returns the scale of a TApp, as an autoscaler reads it."""
    return app.kube.request("GET", app.kube.path(GROUP, "tapps", app.namespace, app.name, "scale"))


def selected(app: App, selector: str) -> set[str]:
    """Returns the names of the pods that a selector selects."""
    found = app.kube.list_all("v1", "pods", app.namespace, labelSelector=selector)
    return {pod["metadata"]["name"] for pod in found}


def test_scale_subresource_counts_only_existing_pods(app: App) -> None:
    """A killed instance counts in `spec.replicas`, but neither in `status.replicas` nor in the
    selected pods.
    """
    app.apply(tapp(replicas=4)).settle()
    app.patch(statuses={"1": "Killed"}).settle()
    found = scale(app)
    assert found["spec"]["replicas"] == 4
    assert found["status"]["replicas"] == 3
    assert selected(app, found["status"]["selector"]) == {"web-0", "web-2", "web-3"}
    app.apply(tapp("other")).settle()
    assert selected(app, found["status"]["selector"]) == {"web-0", "web-2", "web-3"}


@pytest.mark.parametrize(
    ("killed", "asked"), [(0, 8), (1, 6)], ids=["all instances run", "one instance is killed"]
)
def test_autoscaler_scales_by_the_load_of_running_pods(
    app: App, cluster: Cluster, killed: int, asked: int
) -> None:
    """Four instances have twice their target load.

    A killed instance must not distort the average.
    """
    if cluster.backend != "local":
        pytest.skip("serves the metrics of the whole cluster")
    made, autoscaler = example("hpa-for-tapp")
    made["spec"] |= {"replicas": 4, "statuses": {"3": "Killed"} if killed else {}}
    app.apply(made).settle()
    with usage(app.kube, app.namespace, cpu="140m"):
        app.apply(autoscaler)
        app.until(lambda: scale(app)["spec"]["replicas"] > 4, "the autoscaler scales up", LONG)
        assert scale(app)["spec"]["replicas"] == asked
        app.until(lambda: len(app.pods) == asked - killed, "the pods are created")


def test_tapp_scaled_to_zero_rests_until_it_is_scaled_up(
    app: App, kubectl: Callable[..., str]
) -> None:
    """KEDA itself writes 0 and 1.

    Between these, the real autoscaler rests, and afterwards it continues.
    """
    app.apply(*example("hpa-for-tapp"))
    app.until(lambda: len(app.pods) == 2, "the autoscaler scales to minReplicas", LONG).settle()
    kubectl("-n", app.namespace, "scale", "tapp", "scaled", "--replicas=0")
    app.settle()
    assert not app.pods
    app.until(lambda: autoscaler_rests(app), "the autoscaler rests", LONG)
    assert app.idle()
    kubectl("-n", app.namespace, "scale", "tapp", "scaled", "--replicas=1")
    app.until(lambda: len(app.pods) == 2, "the autoscaler scales up again", LONG).settle()


def autoscaler_rests(app: App) -> bool:
    """Returns True if the autoscaler reports that its target is scaled to zero."""
    found = app.kube.get("autoscaling/v2", "horizontalpodautoscalers", app.namespace, "scaled")
    told = {each_one.get("reason") for each_one in found.get("status", {}).get("conditions", [])}
    return "ScalingDisabled" in told


def example_at_zero(cluster: Cluster, app: App) -> tuple[Json, Json]:
    """Returns the example that scales to zero; skips if this Kubernetes does not support it."""
    if cluster.backend != "local":
        pytest.skip("serves the metrics of the whole cluster")
    found = app.kube.request("GET", "/version")
    if int(found["minor"]) < 37:
        pytest.skip("an autoscaler goes to zero by itself since Kubernetes 1.37")
    made, autoscaler = example("hpa-to-zero")
    autoscaler["spec"]["behavior"] = {"scaleDown": {"stabilizationWindowSeconds": 0}}
    return made, autoscaler


def test_autoscaler_scales_to_zero_and_back_by_the_length_of_a_queue(
    app: App, cluster: Cluster, kubectl: Callable[..., str]
) -> None:
    """With 0 instances the TApp is Ready and current, its claims follow their policy, and nothing
    is written.
    """
    made, autoscaler = example_at_zero(cluster, app)
    made["spec"] |= {
        "minReadySeconds": 1,
        "volumeClaimTemplates": [claim_template("100Mi")],
        "persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"},
    }
    length = [60]
    with served(app.kube, app.namespace, EXTERNAL, lambda _: external(length[0])):
        app.apply(made, autoscaler)
        app.until(lambda: len(app.pods) == 2, "a pod for thirty messages each", LONG).settle()
        length[0] = 0
        app.until(lambda: not app.pods and not app.claims(), "an empty queue scales to zero", LONG)
        app.settle()
        assert scale(app)["status"]["replicas"] == 0
        assert app.condition("Ready").startswith("True")
        kubectl(
            "-n", app.namespace, "wait", "tapp/worker", "--for=condition=Ready", "--timeout=10s"
        )
        app.news()
        app.apply(made)  # without `replicas` in the manifest, nothing is scaled
        app.quiet()
        assert not app.pods
        assert app.idle()
        length[0] = 60
        app.until(lambda: len(app.pods) == 2, "a filled queue scales up again", LONG).settle()
        assert set(app.claims()) == {"data-worker-0", "data-worker-1"}


def test_killed_instance_stays_killed_after_scaling_to_zero_and_back(
    app: App, cluster: Cluster
) -> None:
    """The spec keeps the status of the instance, so it is killed again after scaling up."""
    made, autoscaler = example_at_zero(cluster, app)
    made["spec"]["statuses"] = {"0": "Killed"}
    length = [60]
    with served(app.kube, app.namespace, EXTERNAL, lambda _: external(length[0])):
        app.apply(made, autoscaler)
        app.until(lambda: sorted(app.pods) == [1], "one of two instances runs", LONG).settle()
        length[0] = 0
        app.until(lambda: not app.pods, "no pod is left", LONG).settle()
        length[0] = 60
        app.until(lambda: sorted(app.pods) == [1], "one of two instances runs again", LONG).settle()


# --- vertical -------------------------------------------------------------------------------------


def template_with_cpu(image: str = "app:1", cpu: str = "100m") -> Json:
    """Returns a template that requests CPU."""
    made = template(image)
    made["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu, "memory": "64Mi"}}
    return made


def strategy_for_resources(strategy: str | None) -> Json:
    """Returns an update strategy that decides about resources set by other controllers."""
    chosen = {"inPlaceUpdateStrategy": {"resources": strategy}} if strategy else {}
    return {"maxUnavailable": 1, **chosen}


def cpus(app: App) -> list[str]:
    """Returns the CPU request of each pod."""
    return [
        pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] for pod in app.pods.values()
    ]


def resize(app: App, number: int, cpu: str) -> None:
    """Resizes a pod in place and annotates it, as the VPA's updater does."""
    where = "/spec/containers/0/resources/requests/cpu"
    app.edit(number, [{"op": "replace", "path": where, "value": cpu}], "resize")
    app.edit(number, {"metadata": {"annotations": {"vpaInPlaceUpdated": "true"}}})


@pytest.fixture
def resizable(app: App, levers: Levers) -> App:
    """A TApp on nodes whose kubelet resizes pods."""
    levers.resizes = True
    levers.resize_seconds = 0.2
    return app


@pytest.mark.parametrize(
    ("strategy", "after"),
    [(None, ["200m", "200m", "200m"]), ("Ignore", ["100m", "250m", "100m"])],
    ids=["unset", "Ignore"],
)
def test_resources_of_a_resized_pod_stay_until_the_strategy_says_otherwise(
    resizable: App, strategy: str | None, after: list[str]
) -> None:
    """An update of the image in place keeps the resources; Metacontroller writes its annotation
    once more.

    If the template changes the resources, unset means new pods with these resources. With Ignore,
    the autoscaler's resources stay until the pod is replaced.
    """
    app = resizable
    app.apply(
        tapp(template=template_with_cpu(), updateStrategy=strategy_for_resources(strategy))
    ).settle()
    born = app.uids()
    app.news()
    resize(app, 1, "250m")
    app.quiet()
    assert app.wrote(*([] if lean_everywhere() else ["update Pod web-1"]))
    assert cpus(app) == ["100m", "250m", "100m"]
    assert app.idle()
    app.patch(template=template_with_cpu("app:2")).settle()
    assert app.wrote_in_order(*each("update Pod", "web", 0, 1, 2))
    assert cpus(app) == ["100m", "250m", "100m"]
    assert app.uids() == born
    assert app.idle()
    app.patch(template=template_with_cpu("app:2", cpu="200m")).settle()
    assert cpus(app) == after
    assert (app.uids() == born) is (strategy == "Ignore")
    assert app.idle()


@pytest.fixture
def component(
    kube: Kube, cluster: Cluster, workspace: Path, tmp_path: Path, hook_proxy: HookProxy
) -> Iterator[None]:
    """Runs the service with the component `resize` and its service account."""
    with (
        account_of(kube, cluster, RESIZE, RESIZE_ACCOUNT, tmp_path) as account,
        replicas(kube, workspace / "resizing-beside", account, "TAPP_RESIZE") as service,
        hook_proxy.led_to(service.url),
    ):
        yield


@pytest.mark.parametrize("installed", [True, False], ids=["with the component", "without"])
def test_in_place_strategy_reverts_a_foreign_resize_if_the_component_is_installed(
    request: pytest.FixtureRequest, resizable: App, installed: bool
) -> None:
    """Without the component the service cannot resize, and must not replace the pod for it."""
    app = resizable
    if installed:
        request.getfixturevalue("component")
    app.apply(
        tapp(template=template_with_cpu(), updateStrategy=strategy_for_resources("InPlace"))
    ).settle()
    born = app.uids()
    resize(app, 1, "250m")
    app.quiet()
    app.trigger_sync()
    wanted = ["100m", "100m" if installed else "250m", "100m"]
    app.until(
        lambda: cpus(app) == wanted, "the resources are reverted, or stay without the component"
    ).settle()
    assert app.uids() == born
    assert app.idle()


def test_template_with_the_present_resources_restarts_nothing(resizable: App) -> None:
    """A template with the resources that its pods already have must restart nothing."""
    app = resizable
    app.apply(tapp(template=template_with_cpu())).settle()
    born = app.uids()
    for number in range(3):
        resize(app, number, "250m")
    app.quiet()
    app.patch(template=template_with_cpu(cpu="250m")).settle()
    assert app.uids() == born
    assert set(app.restarts().values()) == {0}
    assert app.idle()


RECOMMENDED = [
    "has(object.spec.containers[0].resources.requests) ?"
    " [JSONPatch{op: 'replace', path: '/spec/containers/0/resources/requests/cpu', value: '250m'}]"
    " : [JSONPatch{op: 'add', path: '/metadata/annotations/vpaUpdates', value: 'by the VPA'}]"
]
"""Patches of the VPA's webhook for a pod that requests CPU.

The probe of `reshape` requests none.
"""


def test_replacement_of_an_evicted_pod_keeps_the_recommended_resources(
    reshape: Reshape, app: App
) -> None:
    """The updater evicts the pod, and the webhook sets the recommendation in its replacement."""
    app.apply(tapp(template=template_with_cpu())).settle()
    reshape(["CREATE"], RECOMMENDED, lambda pod: "vpaUpdates" in pod["metadata"]["annotations"])
    born = app.uids()
    app.evict(1)
    app.wait_until_replaced(1, born).settle()
    assert cpus(app) == ["100m", "250m", "100m"]
    assert app.idle()
    app.patch(template=template_with_cpu("app:2")).settle()
    assert cpus(app) == ["100m", "250m", "100m"]
    assert {**app.uids(), 1: ""} == {**born, 1: ""}
    assert app.idle()
