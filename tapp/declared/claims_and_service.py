"""The Service name and the claim templates of a spec, which ControllerRevisions record.

A revision consists of a pod template, its values, and these two parts of the spec.
ControllerRevisions record all of them. So the next pod of a kept instance is like its pod before
(docs/partition.md).
"""

from typing import Any

import msgspec

from tapp.declared.model import MOST_CLAIMS, TAppSpec
from tapp.declared.templates import claim_name
from tapp.kube.depth import is_too_deep


class ClaimsAndService(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The Service name and claim templates of a spec; the fields are named as in `spec`."""

    # `spec.serviceName`; None if the ControllerRevision lacks it, because it would be too large.
    service_name: str | None = None
    # The claim templates, as their author wrote them; None if the ControllerRevision lacks them,
    # because it would be too large.
    volume_claim_templates: list[dict[str, Any]] | None = None

    def differs_from(self, now: "ClaimsAndService") -> bool:
        """Returns True if recorded parts of the spec differ from the current ones.

        `self` has the parts that a ControllerRevision has recorded, and `now` has the parts of the
        current spec. A part that the ControllerRevision lacks does not count as different.
        """
        return self.service_name not in {None, now.service_name} or (
            self.volume_claim_templates is not None
            and self.volume_claim_templates != now.volume_claim_templates
        )

    @property
    def as_kept(self) -> dict[str, Any]:
        """The Service name and the claim templates, as entries of a ControllerRevision's field
        `data`.

        A part that is None is left out.
        """
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found


NOT_RECORDED = ClaimsAndService()
_decode = msgspec.json.Decoder(ClaimsAndService).decode


def claim_templates(spec: TAppSpec) -> dict[str, dict[str, Any]]:
    """Returns name -> claim template, for the claim templates of a spec.

    Claim templates without a valid name or without a spec are left out.
    """
    return {
        claim_name(template): template
        for template in spec.volume_claim_templates
        if claim_name(template) and isinstance(template.get("spec"), dict)
    }


def parts_of(spec: TAppSpec) -> ClaimsAndService:
    """Returns the Service name and claim templates of the current spec.

    Returns `NOT_RECORDED` if the claim templates are nested too deeply to be recorded.
    """
    claims = list(claim_templates(spec).values())
    return NOT_RECORDED if is_too_deep(claims) else ClaimsAndService(spec.service_name, claims)


def recorded_parts(data: bytes) -> ClaimsAndService:
    """Returns the Service name and claim templates that a ControllerRevision has recorded.

    Returns `NOT_RECORDED` if `data` cannot be read or has too many claim templates. `data` is the
    JSON of the ControllerRevision's field `data`.
    """
    try:
        found = _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return NOT_RECORDED
    return NOT_RECORDED if len(found.volume_claim_templates or ()) > MOST_CLAIMS else found
