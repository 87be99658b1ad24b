"""Builds TApps with a history, rolls out their templates, and reads their ControllerRevisions."""

from typing import Any

from tests.builders import tapp, template
from tests.unit.world import World

REVISION = "ControllerRevision"
LABEL = "tapp_template_hash_key"
TEMPLATE = "apps.tkestack.io/template"


def tapp_with_history(**spec: Any) -> World:
    """Returns a TApp whose CompositeController declares ControllerRevisions, after it has
    settled.
    """
    return World(tapp(**spec), history=True).settle()


def roll_out(found: World, *images: str) -> World:
    """Rolls out the default template with one image after the other, and returns the world."""
    for image in images:
        found.change(template=template(image)).settle()
    return found


def verbs_of_revision_writes(found: World) -> list[str]:
    """Runs a sync, which must write nothing but ControllerRevisions, and returns the verbs of its
    writes.
    """
    found.sync()
    assert [line for line in found.writes if REVISION not in line] == []
    return [line.partition(" ")[0] for line in found.writes]
