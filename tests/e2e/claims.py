"""TApps with claims, and the owners of claims."""

from __future__ import annotations

from tests import builders

from .app import App, tapp, template
from .kube import Json

MOUNTED: Json = {
    "name": "main",
    "image": "app:1",
    "volumeMounts": [{"name": "data", "mountPath": "/d"}],
}
NAMES = ["data-web-0", "data-web-1"]


def stored(when_deleted: str = "Retain", when_scaled: str = "Retain", **spec: object) -> Json:
    """Returns a TApp of two instances, each with a claim."""
    policy = {"whenDeleted": when_deleted, "whenScaled": when_scaled}
    whole: Json = {
        "replicas": 2,
        "template": template(containers=[MOUNTED]),
        "volumeClaimTemplates": [builders.claim_template()],
        "persistentVolumeClaimRetentionPolicy": policy,
    }
    return tapp(**{**whole, **spec})


def owners(app: App, name: str) -> list[str]:
    """Returns the kinds of a claim's owners."""
    claim = app.kube.get("v1", "persistentvolumeclaims", app.namespace, name)
    return sorted(ref["kind"] for ref in claim["metadata"].get("ownerReferences") or [])


def collector_has_worked(app: App) -> None:
    """Waits until the garbage collector has deleted an object with a missing owner."""
    nobody = {"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody"}
    ownerless = {**nobody, "uid": "00000000-0000-4000-8000-000000000000"}
    metadata = {"name": "bait", "namespace": app.namespace, "ownerReferences": [ownerless]}
    app.kube.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    app.until(
        lambda: app.kube.find("v1", "configmaps", app.namespace, "bait") is None,
        "the garbage collector works",
    )


def claim_template(size: str, name: str | None = None) -> Json:
    """Returns a claim template for a storage class, or for the default class."""
    made = builders.claim_template("data", size)
    made["spec"] |= {"storageClassName": name} if name else {}
    return made
