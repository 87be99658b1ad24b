"""Volume claims: which stay, which are made, and the few that may ever be deleted.

A claim is deleted only where its policy says `Delete`; what has no place stays (docs/design.md,
"Claims").
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from tapp.kube.objects import ClaimObject
from tapp.spec.lookup import Templates
from tapp.spec.model import TAppSpec
from tapp.spec.placeholders import NO_SLOTS, UnfilledError
from tapp.spec.templates import claim_name
from tapp.words.quoted import quoted

_DIGITS = 10
"""More digits no instance's number has."""


@dataclass(frozen=True)
class NewClaim:
    """A claim to create: its name, its instance and its template."""

    name: str
    instance: int
    template: dict[str, Any]


@dataclass
class ClaimPlan:
    """What becomes of the claims.

    Attributes:
        keep: observed claims that are returned, so that they stay.
        delete: observed claims that are left out, so that they go.
        create: claims of instances whose pod is about to be created, or is not on a node yet.
    """

    keep: list[ClaimObject] = field(default_factory=list)
    delete: list[ClaimObject] = field(default_factory=list)
    create: list[NewClaim] = field(default_factory=list)


def instance_number(name: str, prefix: str) -> int | None:
    """The instance's number in `<prefix><number>`; None where there is no canonical one.

    `007` is no number of ours: two names would mean one instance.
    """
    digits = name[len(prefix) :]
    if not (name.startswith(prefix) and digits.isascii() and digits.isdigit()):
        return None
    canonical = len(digits) <= _DIGITS and (digits[0] != "0" or digits == "0")
    return int(digits) if canonical else None


def claim_templates(spec: TAppSpec) -> dict[str, dict[str, Any]]:
    """Name -> claim template, without those that have no usable name or spec."""
    return {
        claim_name(template): template
        for template in spec.volume_claim_templates
        if claim_name(template) and isinstance(template.get("spec"), dict)
    }


class OwnClaims:
    """The claim templates of each instance: those of the spec, with their placeholders filled in.

    Attributes:
        differ: whether any of them has placeholders.
    """

    def __init__(self, templates: Templates) -> None:
        """`templates` know what the instances have of their own."""
        self._templates, self._written = templates, claim_templates(templates.spec)
        found = templates.claim_slots()
        self._slots = {name: slots for name in self._written if (slots := found[name])}
        self.differ = bool(self._slots)

    def of(self, instance: int) -> dict[str, dict[str, Any]]:
        """Name -> claim template of one instance.

        Raises:
            UnfilledError: one cannot be filled in.
        """
        return {name: self.named(name, instance) for name in self._written}

    def named(self, name: str, instance: int) -> dict[str, Any]:
        """The claim template of this name, of one instance.

        Raises:
            UnfilledError: it cannot be filled in.
        """
        slots, written = self._slots.get(name, NO_SLOTS), self._written[name]
        try:
            if isinstance(slots, str):
                raise UnfilledError(slots)
            if not slots:
                return written
            filled: dict[str, Any] = slots.filled(written, self._templates.own(slots, instance))
        except UnfilledError as error:
            raise UnfilledError(f"claim template {quoted(name)}: {error}") from None
        return filled

    def problem_of(self, instance: int) -> str:
        """Why those of an instance cannot be filled in, "" where they can."""
        try:
            self.of(instance)
        except UnfilledError as error:
            return str(error)
        return ""


def claims_of(app: str, instance: int, templates: Mapping[str, Any]) -> dict[str, str]:
    """Claim template name -> name of the instance's claim: `<claim>-<tapp>-<id>`."""
    return {name: f"{name}-{app}-{instance}" for name in templates}


def plan_claims(
    app: str,
    templates: Templates,
    observed: Mapping[str, ClaimObject],
    with_pod: set[int],
    waiting: list[int],
) -> ClaimPlan:
    """Sorts the claims of a living TApp.

    Args:
        app: the TApp's name.
        templates: its templates, with its spec.
        observed: claim name -> claim.
        with_pod: instances that have a pod, a Terminating one too.
        waiting: instances whose pod is about to be created, or waits for a node: a claim that was
            refused once, or deleted meanwhile, keeps it from getting one.
    """
    result = ClaimPlan()
    spec, own = templates.spec, OwnClaims(templates)
    prefixes = [f"{name}-{app}-" for name in claim_templates(spec)]
    delete_scaled = spec.persistent_volume_claim_retention_policy.when_scaled == "Delete"
    for name in sorted(observed):
        claim = observed[name]
        numbers = [instance_number(name, prefix) for prefix in prefixes] if delete_scaled else []
        number = next((number for number in numbers if number is not None), None)
        gone = number is not None and number >= spec.replicas and number not in with_pod
        (result.delete if gone else result.keep).append(claim)
    for instance in waiting:
        with suppress(UnfilledError):  # it has a pod that waits for a node
            filled = own.of(instance)
            for template_name, wanted in claims_of(app, instance, filled).items():
                if wanted not in observed:
                    result.create.append(NewClaim(wanted, instance, filled[template_name]))
    return result
