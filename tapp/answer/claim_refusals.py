"""Refusals about claims that do not get what their claim template asks for.

`refusals.py` calls the functions in `CHECKS`. Each of them returns one condition, or None.
"""

from collections.abc import Callable, Collection, Sequence
from itertools import chain

from tapp.answer.mistakes import place, refused
from tapp.decide.missing import overdue, since_text, unseen_claims
from tapp.plan import Plan
from tapp.storage.attributes import Progress, Unfinished
from tapp.storage.claims import Claims
from tapp.storage.growth import Obstacle
from tapp.words.conditions import Finding, Type
from tapp.words.quoted import quoted
from tapp.words.ranges import SHOWN, id_list, name_list
from tapp.words.reasons import Reason


def _claims_not_owned(plan: Plan) -> Finding | None:
    """Returns the condition about claims that pods use and that the TApp does not own, or None."""
    found = overdue(plan.findings.missing.claims, plan.now)
    if not found:
        return None
    ids, own = {id for ids in found.values() for id in ids}, Claims(plan.world)
    names = [
        name
        for item in plan.instances
        if item.id in ids
        for name in unseen_claims(plan.world, own, item)
    ]
    message = (
        f"{since_text(found)}: the pods use claims that do not belong to this TApp, so the claims "
        f"are neither expanded nor deleted with it: {name_list(names)}. "
        f"`kubectl tapp adopt {place(plan)}` adopts the claims that have no owner"
    )
    return refused(Type.CLAIMS_NOT_OWNED, Reason.NOT_OWNED, message)


def _claims_not_grown(plan: Plan) -> Finding | None:
    """Returns the condition about claims that request less storage than their template, or None."""
    obstacles, app = plan.findings.storage.growth.obstacles, plan.world.tapp.metadata.name

    def hint(found: Obstacle) -> str:
        """Returns a clause with the kubectl command that shows the storage driver's messages.

        Returns an empty string if the storage driver has not refused the expansion. `found` is the
        reason why claims have not grown.
        """
        if found.reason is not Reason.INFEASIBLE:
            return ""
        return f"; see its messages with {_describe(plan, found.template, obstacles[found])}"

    shown = sorted(obstacles, key=lambda found: (found.template, found.why, found.has))
    parts = [
        f"{_claims(f'{found.template}-{app}', obstacles[found])} {found.has} instead of "
        f"{found.wanted}, which the claim template requests: {found.why}{hint(found)}"
        for found in shown
    ]
    message = _joined(parts, [(found, obstacles[found]) for found in shown])
    if any(found.reason is Reason.NOT_EXPANDABLE for found in shown):
        return refused(Type.CLAIMS_NOT_GROWN, Reason.NOT_EXPANDABLE, message)
    return refused(Type.CLAIMS_NOT_GROWN, Reason.INFEASIBLE, message)


def _claims(prefix: str, ids: Collection[int]) -> str:
    """Returns `claim data-web-3 requests`, or `claims data-web-N (N: 0-2) request`.

    `prefix` is the name of the claims without the number of the instance.
    """
    if len(ids) == 1:
        return f"claim {prefix}-{id_list(ids)} requests"
    return f"claims {prefix}-N (N: {id_list(ids)}) request"


def _describe(plan: Plan, template: str, ids: Collection[int]) -> str:
    """Returns the kubectl command that shows the storage driver's messages about one claim.

    Args:
        plan: the plan of the sync.
        template: the name of the claim template.
        ids: the instances whose claims are meant; the command names the claim of the first one.
    """
    metadata = plan.world.tapp.metadata
    claim = f"{template}-{metadata.name}-{min(ids)}"
    return f"`kubectl describe pvc {claim} -n {metadata.namespace}`"


def _claims_not_modified(plan: Plan) -> Finding | None:
    """Returns the condition about VolumeAttributesClasses that a driver refuses, or None."""
    found = _unfinished(plan, refused_by_driver=True)
    parts = [
        f"{_attributes(plan, change, ids)}: the storage driver has refused this class; name the "
        "class that the volumes have now, or another one, in the claim template; see the driver's "
        f"messages with {_describe(plan, change.template, ids)}"
        for change, ids in found
    ]
    return refused(Type.CLAIMS_NOT_MODIFIED, Reason.INFEASIBLE, _joined(parts, found))


_PROGRESS = {
    Progress.NOT_STARTED: "no storage driver has reported that it changes the volumes",
    Progress.PENDING: (
        "the storage driver waits (status.modifyVolumeStatus is Pending); check that this "
        "VolumeAttributesClass exists"
    ),
    Progress.IN_PROGRESS: "the storage driver is changing the volumes",
}


def _claims_being_modified(plan: Plan) -> Finding | None:
    """Returns the condition about VolumeAttributesClasses that volumes do not have yet, or None."""
    found = _unfinished(plan, refused_by_driver=False)
    parts = [
        f"{_attributes(plan, change, ids)}, and their volumes do not have it yet: "
        f"{_PROGRESS[change.progress]}"
        for change, ids in found
    ]
    return refused(Type.CLAIMS_BEING_MODIFIED, Reason.MODIFYING, _joined(parts, found))


def _unfinished(plan: Plan, refused_by_driver: bool) -> list[tuple[Unfinished, list[int]]]:
    """Returns the unfinished changes of VolumeAttributesClasses, sorted, with their instances.

    `refused_by_driver` selects the changes that a storage driver has refused, or all others.
    """
    changes = plan.findings.storage.modification.unfinished
    return sorted(
        [
            (change, ids)
            for change, ids in changes.items()
            if (change.progress is Progress.INFEASIBLE) is refused_by_driver
        ],
        key=lambda item: (item[0].template, item[0].wanted, item[0].progress.value),
    )


def _attributes(plan: Plan, change: Unfinished, ids: Collection[int]) -> str:
    """Returns which claims request which VolumeAttributesClass, as the start of a sentence."""
    claims = _claims(f"{change.template}-{plan.world.tapp.metadata.name}", ids)
    return f"{claims} VolumeAttributesClass {quoted(change.wanted)}"


def _joined(parts: list[str], found: Sequence[tuple[object, list[int]]]) -> str:
    """Returns the first sentences of a list, and the number of claims that the others are about.

    Args:
        parts: the sentences.
        found: for each sentence its subject, and the instances whose claims it is about.
    """
    rest = [*chain.from_iterable(ids for _, ids in found[SHOWN:])]
    return "; ".join(parts[:SHOWN] + ([f"and {len(rest)} more claims"] if rest else []))


CHECKS: tuple[Callable[[Plan], Finding | None], ...] = (
    _claims_not_owned, _claims_not_grown, _claims_not_modified, _claims_being_modified,
)  # fmt: skip
