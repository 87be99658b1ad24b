"""The TApps that scenarios tell of."""

from typing import Any

Document = dict[str, Any]

CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


def template(image: str = "web:1", **spec: Any) -> Document:
    """A pod template with one container; more fields of the pod's spec by name."""
    container: Document = {"name": "web", "image": image, **spec.pop("container", {})}
    return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container], **spec}}


def storing(image: str = "web:1", **container: Any) -> Document:
    """A template whose container mounts the instance's claim."""
    mounts = [{"name": "data", "mountPath": "/data"}]
    return template(image, container={"volumeMounts": mounts, **container})


def tapp(image: str = "web:1", replicas: int = 5, **spec: Any) -> Document:
    """A TApp `web`."""
    return {
        "apiVersion": "apps.tkestack.io/v1",
        "kind": "TApp",
        "metadata": {"name": "web"},
        "spec": {"replicas": replicas, "template": template(image), **spec},
    }


def stored(image: str = "web:1", replicas: int = 3, **spec: Any) -> Document:
    """A TApp `web` whose instances have claims."""
    more = {"template": storing(image), "volumeClaimTemplates": [CLAIM]}
    return tapp(image, replicas, **{**more, **spec})
