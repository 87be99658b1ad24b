"""A StatefulSet becomes a TApp with its pods and its data (docs/statefulset.md), and back."""

from __future__ import annotations

import pytest

from tests.builders import claim_template

from .app import App, tapp, template
from .kube import Json
from .plugin import Plugin
from .pods import is_ready
from .test_crd import Kubectl

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

COMMON = {
    "replicas": 3,
    "serviceName": "web",
    "podManagementPolicy": "OrderedReady",
    "volumeClaimTemplates": [claim_template()],
}
"""What both have, word for word."""


def body(image: str = "app:1") -> Json:
    """A template that mounts its claim."""
    made = template(image)
    made["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    return made


STATEFULSET: Json = {
    "apiVersion": "apps/v1",
    "kind": "StatefulSet",
    "metadata": {"name": "web"},
    "spec": {**COMMON, "selector": {"matchLabels": {"app": "web"}}, "template": body()},
}
TAPP = tapp(**COMMON, template=body(), updateStrategy={"order": "Descending"})


def has_statefulset(app: App) -> None:
    """The StatefulSet is there, and all its pods are Ready."""
    app.apply(STATEFULSET)
    app.until(
        lambda: len(app.pods) == 3 and all(is_ready(pod) for pod in app.pods.values()),
        "the StatefulSet's pods are Ready",
    )


def test_with_its_pods_and_back(app: App, plugin: Plugin, kubectl: Kubectl) -> None:
    """No pod restarts, no claim is another; the next image is an update in place."""
    has_statefulset(app)
    pods, claims = app.uids(), app.claims()
    kubectl("delete", "statefulset", "web", "-n", app.namespace, "--cascade=orphan")
    app.apply(TAPP).quiet()
    assert app.uids() == pods
    out = plugin.run("adopt", "web", "-y", "--wait")
    assert "web: 3 pods and 3 claims adopted" in out
    app.settle()
    assert (app.uids(), app.claims()) == (pods, claims)
    assert set(app.restarts().values()) == {0}

    kubectl("delete", "tapp", "web", "-n", app.namespace, "--cascade=orphan")
    has_statefulset(app)
    path = app.kube.path("apps/v1", "statefulsets", app.namespace, "web")
    app.until(
        lambda: app.kube.request("GET", path).get("status", {}).get("updatedReplicas") == 3,
        "the StatefulSet has its pods again",
    )
    assert (app.uids(), app.claims()) == (pods, claims)
    assert set(app.restarts().values()) == {0}

    kubectl("delete", "statefulset", "web", "-n", app.namespace, "--cascade=orphan")
    app.apply(TAPP).quiet()
    plugin.run("adopt", "web", "-y", "--wait")
    app.patch(template=body("app:2")).settle()
    assert app.uids() == pods
    assert app.images() == "app:2 app:2 app:2"
    app.patch(replicas=1).settle().patch(replicas=3).settle()
    assert app.claims() == claims


def test_with_new_pods_on_its_claims(app: App, plugin: Plugin, kubectl: Kubectl) -> None:
    """The pods end first; the TApp's own mount the same claims."""
    has_statefulset(app)
    claims = app.claims()
    kubectl("scale", "statefulset", "web", "-n", app.namespace, "--replicas=0")
    app.until(lambda: not app.pods, "no pod is left")
    kubectl("delete", "statefulset", "web", "-n", app.namespace)
    app.apply(TAPP)
    out = plugin.run("adopt", "web", "-y")
    assert "web: 3 claims adopted" in out
    app.settle()
    assert app.claims() == claims
    mounted = [
        volume["persistentVolumeClaim"]["claimName"]
        for _, pod in sorted(app.pods.items())
        for volume in pod["spec"]["volumes"]
        if "persistentVolumeClaim" in volume
    ]
    assert mounted == ["data-web-0", "data-web-1", "data-web-2"]
