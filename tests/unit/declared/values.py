"""Builds templates with placeholders, and the new pods of their instances."""

from typing import Any

from tests.builders import Document, tapp, template
from tests.hook_calls import desired
from tests.unit.world import World


def template_with_variable(value: str, **more: Any) -> Document:
    """Returns a template whose container has one environment variable with this value.

    `more` are further arguments of `template`.
    """
    return template(container={"env": [{"name": "OWN", "value": value}]}, **more)


def new_pods(**spec: Any) -> dict[str, Document]:
    """Returns name -> pod for the pods that the first sync creates."""
    return desired(World(tapp(**spec)).sync(), "Pod")
