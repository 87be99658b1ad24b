"""Moves a StatefulSet with its pods and data to a TApp, and back (docs/statefulset.md)."""

from __future__ import annotations

import json

import pytest

from tests.builders import claim_template

from .app import App, tapp, template
from .kube import Json, Kubectl
from .plugin import Plugin
from .pods import is_ready

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

COMMON = {
    "replicas": 3,
    "serviceName": "web",
    "podManagementPolicy": "OrderedReady",
    "volumeClaimTemplates": [claim_template()],
}
"""Fields with equal values in both specs."""


def body(image: str = "app:1") -> Json:
    """Returns a template that mounts its claim."""
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
    """Creates the StatefulSet and waits until all its pods are Ready."""
    app.apply(STATEFULSET)
    app.until(
        lambda: len(app.pods) == 3 and all(is_ready(pod) for pod in app.pods.values()),
        "the StatefulSet's pods are Ready",
    )


def planned(plugin: Plugin) -> str:
    """Plans the TApp while the pods and claims of the StatefulSet exist.

    Checks that the plan names them and creates none. Returns the output without line breaks.
    """
    file = plugin.directory / "tapp.json"
    file.write_text(json.dumps(TAPP))
    said = " ".join(plugin.run("plan", "-f", str(file)).split())
    assert "3 created" not in said
    assert "pods web-0, web-1, web-2 exist already, so none is created for instances 0-2" in said
    assert "claims data-web-0, data-web-1, data-web-2 exist already and will be used" in said
    return said


def test_statefulset_becomes_a_tapp_with_its_pods_and_back(
    app: App, plugin: Plugin, kubectl: Kubectl
) -> None:
    """No pod may restart and no claim may change. The next image is an update in place."""
    has_statefulset(app)
    pods, claims = app.uids(), app.claims()
    orphan = f"kubectl delete statefulset web --cascade=orphan -n {app.namespace}"
    adopt = f"kubectl tapp adopt web -n {app.namespace}"
    said = planned(plugin)
    assert f"each belongs to StatefulSet web, so the name is taken; after `{orphan}`" in said
    assert f"`{adopt}` adopts it" in said
    kubectl(*orphan.split()[1:])
    said = planned(plugin)
    assert "StatefulSet" not in said
    assert f"each has no owner; `{adopt}` adopts it" in said
    app.apply(TAPP).quiet()
    assert app.uids() == pods
    out = plugin.run("adopt", "web", "-y", "--wait")
    assert "web: 3 pods and 3 claims adopted" in out
    app.settle()
    lost = "instances 0-2: the pods have the label statefulset.kubernetes.io/pod-name"
    assert lost in " ".join(plugin.run("status", "web").split())
    assert app.uids() == pods
    assert app.claims() == claims
    assert set(app.restarts().values()) == {0}

    kubectl("delete", "tapp", "web", "-n", app.namespace, "--cascade=orphan")
    has_statefulset(app)
    path = app.kube.path("apps/v1", "statefulsets", app.namespace, "web")
    app.until(
        lambda: app.kube.request("GET", path).get("status", {}).get("updatedReplicas") == 3,
        "the StatefulSet has its pods again",
    )
    assert app.uids() == pods
    assert app.claims() == claims
    assert set(app.restarts().values()) == {0}

    kubectl("delete", "statefulset", "web", "-n", app.namespace, "--cascade=orphan")
    app.apply(TAPP).quiet()
    plugin.run("adopt", "web", "-y", "--wait")
    app.patch(template=body("app:2")).settle()
    assert app.uids() == pods
    assert app.images() == "app:2 app:2 app:2"
    app.patch(replicas=1).settle().patch(replicas=3).settle()
    assert app.claims() == claims


def test_tapp_takes_over_the_claims_of_a_statefulset_with_new_pods(
    app: App, plugin: Plugin, kubectl: Kubectl
) -> None:
    """The pods end first, and the new pods of the TApp mount the same claims."""
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
