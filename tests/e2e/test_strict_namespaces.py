"""`prePull` in namespaces with quotas and policies of a real API server."""

from __future__ import annotations

import time

import pytest

from tests import builders
from tests.prepull import is_puller

from .admission import Demand
from .app import App, tapp
from .kube import Json, KubeError
from .kubelet_controls import Levers
from .plugin import Plugin

pytestmark = pytest.mark.e2e
FIRST: Json = {"maxUnavailable": 1, "inPlaceUpdateStrategy": {"prePull": True}}
LITTLE = {"cpu": "50m", "memory": "64Mi"}
RESTRICTED_V2 = (
    "(!has(object.spec.securityContext) || !has(object.spec.securityContext.runAsUser)) && "
    "object.spec.containers.all(c, !has(c.securityContext) || !has(c.securityContext.runAsUser))"
)
"""The rule of OpenShift, which assigns user ids and refuses others."""
SIZED = (
    "object.spec.containers.all(c, [c.resources.?requests, c.resources.?limits].all(kinds, "
    "kinds.hasValue() && ['cpu', 'memory'].all(kind, kind in kinds.value())))"
)
"""A common rule of clusters: all containers need requests and limits."""
NO_VOLUMES = "!has(object.spec.volumes) || !object.spec.volumes.exists(v, has(v.image))"


def sized_template(image: str) -> Json:
    """Returns a template with requests and limits."""
    container: Json = {"name": "main", "resources": {"requests": LITTLE, "limits": LITTLE}}
    return builders.template(image, container=container, terminationGracePeriodSeconds=1)


def is_refused(app: App, spec: Json) -> bool:
    """Returns True if the namespace refuses such a pod."""
    path = app.kube.path("v1", "pods", app.namespace)
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "tried"}, "spec": spec}
    try:
        app.kube.request("POST", path, pod, query={"dryRun": "All"})
    except KubeError as error:
        return error.status == 403
    return False


def pullers(app: App) -> list[Json]:
    """Returns the pods that pull images."""
    listed = app.kube.list_all("v1", "pods", app.namespace)
    return [pod for pod in listed if is_puller(pod)]


def seconds_until_first_update(app: App, image: str) -> float:
    """Updates all instances to an image, and returns the seconds until the first update."""
    begun = time.monotonic()
    app.patch(template=sized_template(image))
    app.until(lambda: image in app.images(), f"the update to {image} begins", 90)
    took = time.monotonic() - begun
    app.settle(120)
    return took


def test_pullers_are_admitted_in_a_strict_namespace(
    app: App, levers: Levers, demand: Demand
) -> None:
    """With a compute quota and the rule of OpenShift, nothing is delayed or refused."""
    hard = {f"{kind}.cpu": "4" for kind in ("requests", "limits")}
    hard |= {f"{kind}.memory": "4Gi" for kind in ("requests", "limits")}
    app.quota("compute", **hard)
    demand(f"{RESTRICTED_V2} && {SIZED}")
    named = {**sized_template("app:1")["spec"], "securityContext": {"runAsUser": 65535}}
    app.until(lambda: is_refused(app, named), "the policy is in force")
    assert not is_refused(app, sized_template("app:1")["spec"])
    app.apply(tapp(template=sized_template("app:1"), updateStrategy=FIRST)).settle()
    app.writes()
    levers.pull_seconds = 4
    app.patch(template=sized_template("app:2"))
    app.until(lambda: bool(pullers(app)), "a puller exists", 30)
    app.until(
        lambda: "app:2 on node" in app.condition("Progressing"), "Progressing names the pull", 30
    )
    assert app.condition("Progressing").startswith("True PullingImages: ")
    app.settle(120)
    assert app.images() == "app:2 app:2 app:2"
    assert app.condition("PullersNotRun") == ""
    app.writes()  # fails if a write was refused


@pytest.mark.since(35, "image volumes by default")
def test_refused_pullers_delay_only_the_first_rollout(
    app: App, demand: Demand, plugin: Plugin
) -> None:
    """Only the first rollout waits, and for an hour the service creates no puller again."""
    demand(NO_VOLUMES)
    image = {"volumes": [{"name": "v", "image": {"reference": "app:1"}}]}
    app.until(
        lambda: is_refused(app, {**sized_template("app:1")["spec"], **image}),
        "the policy is in force",
    )
    app.apply(tapp(template=sized_template("app:1"), updateStrategy=FIRST)).settle()
    begun = time.monotonic()
    app.patch(template=sized_template("app:2"))
    app.until(
        lambda: "PullingImages" in app.condition("Progressing"), "PullingImages is reported", 20
    )
    assert "before the update, in pod" not in plugin.run("why", "web", "0")
    seconds_until_first_update(app, "app:2")
    assert time.monotonic() - begun < 90  # for the whole rollout; TAPP_PULL_SECONDS is ten minutes
    said = app.condition("PullersNotRun")
    assert said.endswith("; later updates try again")
    assert app.condition("Degraded").startswith("False ")
    app.news(refused=(403, 409))
    assert seconds_until_first_update(app, "app:3") < 15
    assert app.condition("PullersNotRun") == said
    if app.counted:
        assert [write.what for write in app.news() if write.code == 403] == []
