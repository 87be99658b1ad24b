"""Conditions about overdue deletions, of a living TApp and of one that is being deleted."""

from tapp.decide.overdue import Overdue, claims_sentence, pods_sentence, services_sentence
from tapp.words.conditions import Finding, Type
from tapp.words.reasons import Reason


def not_deleted(overdue: Overdue, namespace: str) -> list[Finding]:
    """Returns the conditions about deletions that are overdue, one for each kind of object."""
    found = {
        Type.PODS_NOT_DELETED: pods_sentence(overdue.pods, namespace),
        Type.CLAIMS_NOT_DELETED: claims_sentence(overdue.claims, namespace),
        Type.SERVICES_NOT_DELETED: services_sentence(overdue.services, namespace),
    }
    return [Finding(type, "True", Reason.OVERDUE, text) for type, text in found.items() if text]
