"""Reads the pod of the service that the chart renders."""

from __future__ import annotations

from release.kustomize import components
from tests.contract.charts import Document, camel, only

NAMES = components()
ALL = tuple(f"components.{camel(name)}=true" for name in NAMES)


def pod_template(made: list[Document]) -> Document:
    """Returns the pod template of the service."""
    found: Document = only(made, "Deployment")["spec"]["template"]
    return found


def variables_of(made: list[Document]) -> dict[str, str]:
    """Returns name -> value for the environment variables of the service; fails if a name appears
    twice.
    """
    (container,) = pod_template(made)["spec"]["containers"]
    found = {each["name"]: each["value"] for each in container["env"]}
    assert len(found) == len(container["env"])
    return found
