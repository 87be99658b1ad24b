"""Builds TApps with pods on hold, and causes the actions that a hold prevents."""

from collections.abc import Callable
from typing import Any

from tests.builders import NOW, Document, template
from tests.unit.world import World, settled

GROUP = "apps.tkestack.io"
HOLD, FOR, WANTED, SINCE = (
    f"{GROUP}/{key}" for key in ("hold", "hold-for", "wanted", "wanted-since")
)
HELD = f"{GROUP}/held"
BEGAN = "2026-01-05T11:00:00Z"
"""`NOW` as a timestamp: when each world begins."""

Change = Callable[[World], World]


def annotated(**marks: str | None) -> Callable[[Document], Document]:
    """Returns a function that sets annotations of a hold on a pod; None removes an annotation.

    The arguments are `hold` (the reason), `only` (hold-for), `wanted` and `since` (the pending
    action and its time).
    """
    keys = {"hold": HOLD, "only": FOR, "wanted": WANTED, "since": SINCE}

    def change(pod: Document) -> Document:
        meta = pod["metadata"]
        notes = {**meta["annotations"], **{keys[name]: text for name, text in marks.items()}}
        notes = {key: text for key, text in notes.items() if text is not None}
        return {**pod, "metadata": {**meta, "annotations": notes}}

    return change


def tapp_on_hold(id: int = 0, only: str | None = None, **spec: Any) -> World:
    """Returns a TApp with one pod on hold, after it has settled.

    `id` is the number of its instance, `only` is the annotation hold-for, and `spec` has fields of
    the TApp's spec.
    """
    world = settled(**{"replicas": 3, **spec})
    return world.modify(id, annotated(hold="match 42", only=only)).settle()


def pending_action(world: World, id: int = 0) -> tuple[str | None, ...]:
    """Returns a pod's pending action, the time of the action, and the hold label; None for each
    that is missing.
    """
    meta = world.pod(id)["metadata"]
    return (*(meta["annotations"].get(key) for key in (WANTED, SINCE)), meta["labels"].get(HELD))


def on_lost_node(pod: Document, since: str) -> Document:
    """Returns a pod as the node lifecycle controller changes it when its node stops reporting: not
    Ready.

    `since` is the time of this change.
    """
    turned = {"status": "False", "lastTransitionTime": since}
    found = pod["status"]["conditions"]
    conditions = [{**item, **(turned if item["type"] == "Ready" else {})} for item in found]
    return {**pod, "status": {**pod["status"], "conditions": conditions}}


def is_on_hold(world: World, id: int = 0) -> bool:
    return world.decisions()[id].endswith("/Held")


def at_second(world: World, seconds: float) -> World:
    """Sets the clock of the service to `seconds` seconds after `NOW`, and returns the world."""
    world.hook.now = NOW + seconds
    return world


# --- which actions a hold prevents ----------------------------------------------------------------


def in_place(world: World) -> World:
    return world.change(template=template("nginx:2"))


def by_new_pods(world: World) -> World:
    return world.change(template=template("nginx:1.25", container={"command": ["run"]}))


def killed(world: World) -> World:
    return world.change(statuses={"0": "Killed"})


def scaled_down(world: World) -> World:
    return world.change(replicas=0)


def with_invalid_status(pod: Document) -> Document:
    return {**pod, "status": {**pod["status"], "conditions": [None]}}


# --- what users write -----------------------------------------------------------------------------


def planned(world: World, id: int = 0) -> Document:
    plan = world.hook.answer("/plan", world.request())["instances"]
    return next(item for item in plan if item["id"] == id)
