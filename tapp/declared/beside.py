"""The part of a spec beside a template that a pod is made of: its Service's name, its claims.

The history records it with a template, so that what a partition keeps comes back as it was
(docs/design.md, "The partition").
"""

from typing import Any

import msgspec

from tapp.declared.model import MOST_CLAIMS, TAppSpec
from tapp.declared.templates import claim_name
from tapp.kube.depth import is_too_deep


class Beside(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Parts of a spec beside its templates; the fields are those of `spec`."""

    service_name: str | None = None  # `spec.serviceName`; None where a record is too large to say
    # the claim templates, as their author wrote them; None likewise
    volume_claim_templates: list[dict[str, Any]] | None = None

    def differs_from(self, now: "Beside") -> bool:
        """True if a spec has something else now, as far as this says anything."""
        return self.service_name not in {None, now.service_name} or (
            self.volume_claim_templates is not None
            and self.volume_claim_templates != now.volume_claim_templates
        )

    @property
    def as_kept(self) -> dict[str, Any]:
        """The same as a part of a record's `data`."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found


UNSAID = Beside()
_decode = msgspec.json.Decoder(Beside).decode


def claim_templates(spec: TAppSpec) -> dict[str, dict[str, Any]]:
    """Name -> claim template, without those that have no usable name or spec."""
    return {
        claim_name(template): template
        for template in spec.volume_claim_templates
        if claim_name(template) and isinstance(template.get("spec"), dict)
    }


def beside_of(spec: TAppSpec) -> Beside:
    """The one of a spec as it is now."""
    claims = list(claim_templates(spec).values())
    return UNSAID if is_too_deep(claims) else Beside(spec.service_name, claims)


def recorded_beside(data: bytes) -> Beside:
    """The one of a record, from its `data` as JSON; nothing is said where it cannot be read."""
    try:
        found = _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return UNSAID
    return UNSAID if len(found.volume_claim_templates or ()) > MOST_CLAIMS else found
