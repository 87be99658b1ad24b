"""The PodDisruptionBudget of a TApp (`spec.disruptionBudget`): created, changed, kept or deleted.

Entry point: `plan_disruption_budget`. The object has the name of the TApp. Its `minAvailable` is a
number, because the disruption controller counts a `maxUnavailable` or a percentage from
`spec.replicas`, where killed instances count as unavailable (Kubernetes 1.37,
pkg/controller/disruption/disruption.go, `getExpectedPodCount`). A PodDisruptionBudget of somebody
else is left alone (docs/disruption-budget.md).
"""

from dataclasses import dataclass, field
from typing import Any

from tapp.kube.project import project
from tapp.pod.manifest import Manifest
from tapp.storage.services import is_ours
from tapp.words.kinds import DISRUPTION_BUDGET
from tapp.words.vocabulary import CONTROLLER_UID, PULLER
from tapp.world import World

Document = dict[str, Any]


@dataclass
class DisruptionBudgetPlan:
    """The PodDisruptionBudgets that the response keeps, applies and leaves out (deletes)."""

    keep: list[Manifest] = field(default_factory=list)  # Observed ones that stay as they are.
    # The PodDisruptionBudget of the TApp; None if the response does not apply one.
    apply: Document | None = None
    is_missing: bool = False  # True if the request does not contain the object in `apply`.
    differs: bool = False  # True if that object is missing, or differs from `apply`.
    delete: list[str] = field(default_factory=list)  # Names of the observed ones to delete.
    is_taken: bool = False  # True if a PodDisruptionBudget of somebody else has the TApp's name.
    problem: str = ""  # Why `spec.disruptionBudget` is invalid, or an empty string.


def plan_disruption_budget(world: World, least: int | str | None) -> DisruptionBudgetPlan:
    """Decides what happens to the PodDisruptionBudget of a TApp.

    The caller has checked that the TApp is not being deleted.

    Args:
        world: the TApp with its children.
        least: the value for `minAvailable`. If there is no valid value, a text that says why. None
            if the spec requests no PodDisruptionBudget.
    """
    rest, name = dict(world.plain.get(DISRUPTION_BUDGET, {})), world.tapp.metadata.name
    result = DisruptionBudgetPlan()
    if DISRUPTION_BUDGET not in world.declared.plain:
        # The CompositeController does not declare PodDisruptionBudgets as children.
        result.keep = [*rest.values()]
        return result
    existing = rest.pop(name, None)
    result.keep = [*rest.values()]
    if existing is not None and not is_ours(existing):
        # A response with a spec would overwrite the object of somebody else.
        result.keep.append(existing)
        result.is_taken = least is not None
    elif isinstance(least, int):
        result.apply = _document(world, least)
        result.is_missing = existing is None
        # The projection leaves out the fields that the API server has defaulted.
        result.differs = (
            existing is None or project(existing.document, result.apply) != result.apply
        )
    elif isinstance(least, str):
        # A mistake in the spec must not widen the budget, so the last valid one stays.
        result.problem = least
        result.keep += [] if existing is None else [existing]
    elif existing is not None:
        result.delete.append(name)
    return result


def _document(world: World, least: int) -> Document:
    """Returns the manifest of the TApp's PodDisruptionBudget; `least` is its `minAvailable`."""
    metadata = world.tapp.metadata
    return {
        **DISRUPTION_BUDGET.type_meta,
        "metadata": {"name": metadata.name, "namespace": metadata.namespace},
        "spec": {
            "minAvailable": least,
            "selector": {
                # The uid keeps a later TApp of the same name apart. Pods that pull images have the
                # uid, too, and are no instances.
                "matchLabels": {CONTROLLER_UID: metadata.uid},
                "matchExpressions": [{"key": PULLER, "operator": "DoesNotExist"}],
            },
            # A pod that is not Ready serves nobody, and must not stop a drain.
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    }
