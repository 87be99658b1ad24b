"""The Service name and the claim templates of a spec, which ControllerRevisions record.

A revision consists of a pod template and of these two parts. The history records all of them, so
that the next pod of a kept instance is like the pod before (docs/partition.md).
"""

from typing import Any

import msgspec

from tapp.declared.model import MOST_CLAIMS, TAppSpec
from tapp.declared.templates import claim_name
from tapp.kube.depth import is_too_deep


class ClaimsAndService(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The Service name and claim templates of a spec; the fields are named as in `spec`."""

    # `spec.serviceName`; None if the record was too large to include it.
    service_name: str | None = None
    # The claim templates, as their author wrote them; None if the record was too large to include
    # them.
    volume_claim_templates: list[dict[str, Any]] | None = None

    def differs_from(self, now: "ClaimsAndService") -> bool:
        """Returns True if a part of a ControllerRevision differs from the current spec.

        `now` are the parts of the current spec. A part that the ControllerRevision lacks does not
        differ.
        """
        return self.service_name not in {None, now.service_name} or (
            self.volume_claim_templates is not None
            and self.volume_claim_templates != now.volume_claim_templates
        )

    @property
    def as_kept(self) -> dict[str, Any]:
        """The Service name and the claim templates as entries of a ControllerRevision's `data`.

        A part that is None is left out.
        """
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found


NOT_RECORDED = ClaimsAndService()
_decode = msgspec.json.Decoder(ClaimsAndService).decode


def claim_templates(spec: TAppSpec) -> dict[str, dict[str, Any]]:
    """Returns the claim templates of a spec by their names.

    Claim templates that lack a valid name or a spec are left out.
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

    `data` is the JSON of its `data`. Returns `NOT_RECORDED` if it cannot be read, or has too many
    claim templates.
    """
    try:
        found = _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return NOT_RECORDED
    return NOT_RECORDED if len(found.volume_claim_templates or ()) > MOST_CLAIMS else found
