"""What Flux, kpt and other users of kstatus make of an object that they have no rules for.

`compute` is `status.Compute` of kubernetes-sigs/cli-utils (`checkGenericProperties`, then
`checkReadyCondition`); `evaluate` is Flux's `StatusEvaluator` for `healthCheckExprs`
(fluxcd/pkg, runtime/cel).
"""

from typing import Any

import celpy

Document = dict[str, Any]


def compute(obj: Document) -> str:
    """InProgress, Current, Failed or Terminating."""
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    if _is_behind(obj):
        return "InProgress"
    conditions = {each["type"]: each["status"] for each in _status(obj).get("conditions", ())}
    if conditions.get("Reconciling") == "True":
        return "InProgress"
    if conditions.get("Stalled") == "True":
        return "Failed"
    return "Current" if conditions.get("Ready", "True") == "True" else "InProgress"


def evaluate(obj: Document, expressions: dict[str, str]) -> str:
    """InProgress, Current or Failed; an expression that cannot be evaluated is waited for."""
    if _is_behind(obj):
        return "InProgress"
    for field, result in (
        ("inProgress", "InProgress"),
        ("failed", "Failed"),
        ("current", "Current"),
    ):
        try:
            if field in expressions and _true(expressions[field], obj):
                return result
        except celpy.CELEvalError:
            return "InProgress"
    return "InProgress"


def _true(expression: str, obj: Document) -> bool:
    """Whether it is true of an object whose fields are its variables."""
    environment = celpy.Environment()
    program = environment.program(environment.compile(expression))
    return bool(program.evaluate({key: celpy.json_to_cel(value) for key, value in obj.items()}))


def _is_behind(obj: Document) -> bool:
    """Whether the status is of an older spec; one without `observedGeneration` is not."""
    generation = obj["metadata"]["generation"]
    return bool(_status(obj).get("observedGeneration", generation) != generation)


def _status(obj: Document) -> Document:
    status: Document = obj.get("status") or {}
    return status
