"""Builds pods that are not Ready."""

from collections.abc import Callable
from typing import Any

from tests.builders import NOW, Document
from tests.unit.nodes import timestamp
from tests.unit.world import condition

BOUND = NOW - 20


def pending(*conditions: tuple[str, str], node: str = "node-1", **status: Any) -> Document:
    """Returns the node and the status of a Pending pod, for `with_state`.

    `conditions` are types and statuses of its conditions, which changed at `BOUND`. `status` has
    further fields of the status.
    """
    found = [
        {"type": kind, "status": value, "lastTransitionTime": timestamp(BOUND)}
        for kind, value in conditions
    ]
    return {"node": node, "status": {"phase": "Pending", "conditions": found, **status}}


def with_state(state: Document) -> Callable[[Document], Document]:
    def change(pod: Document) -> Document:
        spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
        spec |= {"nodeName": state["node"]} if state["node"] else {}
        meta = {**pod["metadata"], "creationTimestamp": timestamp(BOUND)}
        return {**pod, "metadata": meta, "spec": spec, "status": state["status"]}

    return change


def message_of(answer: Document, type: str, status: str, reason: str) -> str:
    """Returns the message of a condition, which must have this status and reason."""
    found = condition(answer, type)
    assert found is not None
    assert found["status"] == status
    assert found["reason"] == reason
    return str(found["message"])
