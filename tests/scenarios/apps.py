"""Builds the manifests of the TApps that the scenarios play."""

from typing import Any

from tests import builders
from tests.builders import Document, claim_template, manifest


def template(image: str = "web:1", **spec: Any) -> Document:
    """Returns a pod template with one container `web` that runs `image`.

    `spec` has further fields of the pod spec; its key `container` has further fields of the
    container.
    """
    container = {"name": "web", **spec.pop("container", {})}
    return builders.template(image, container=container, **spec)


def storing(image: str = "web:1", **container: Any) -> Document:
    """Returns a pod template whose container mounts the claim `data` of its instance."""
    mounts = [{"name": "data", "mountPath": "/data"}]
    return template(image, container={"volumeMounts": mounts, **container})


def tapp(image: str = "web:1", replicas: int = 5, **spec: Any) -> Document:
    """Returns the manifest of a TApp `web`; `spec` has further fields of its spec."""
    return manifest(replicas=replicas, **{"template": template(image), **spec})


def stored(image: str = "web:1", replicas: int = 3, **spec: Any) -> Document:
    """Returns the manifest of a TApp `web` whose instances have a claim each."""
    more = {"template": storing(image), "volumeClaimTemplates": [claim_template()]}
    return tapp(image, replicas, **{**more, **spec})
