"""Fills in the placeholders of a template for one instance, and limits the work of one sync.

`fill_in` returns an instance's own template. `filling_problem` refuses a TApp if the filled-in
templates of all instances together would have too many bytes. The placeholders of no instance are
filled in then.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from tapp.declared.meaning import Meaning
from tapp.declared.placeholders import PLACEHOLDER_BYTES, UnfilledError
from tapp.declared.shapes import repeated_name
from tapp.declared.templates import Template, TemplateOrigin, Unresolved, resolved, spec_of
from tapp.words.quoted import quoted
from tapp.words.reasons import Reason

# Most bytes (`Slots.bytes`) of the filled-in templates of all instances of a TApp in one sync. The
# limit applies three times: to all pod templates, to all claim templates, and to Service templates.
MOST_FILLED_IN: Final = 50_000_000


def filling_problem(total: int, instances: int, most_of_it: str = "") -> str:
    """Returns why the filled-in templates of all instances would be too large, or an empty string.

    Args:
        total: the bytes (`Slots.bytes`) of the filled-in templates of all instances.
        instances: the number of instances, for the message.
        most_of_it: a clause for the message that names the largest template; empty if there is only
            one template.
    """
    if total <= MOST_FILLED_IN:
        return ""
    return (
        f"its placeholders make {total:,} bytes of text for {instances} instances{most_of_it} (the "
        f"length, and {PLACEHOLDER_BYTES} for each placeholder), and the TApp service fills in at "
        f"most {MOST_FILLED_IN:,}: move text into a ConfigMap, use fewer placeholders, or run "
        "fewer instances"
    )


def fill_in(
    template: Template, texts: Mapping[str, str], claims: frozenset[str], *, ignores_resources: bool
) -> Template | Unresolved:
    """Returns the template of one instance, with its placeholders filled in.

    Returns `Unresolved` if a field does not accept its filled-in text, or if two containers or two
    volumes get the same name.

    Args:
        template: the template with placeholders.
        texts: placeholder -> text of the instance, in the order of `slots.names`.
        claims: names of the claim templates.
        ignores_resources: True if other controllers set the resources of running containers.
    """
    name = template.name
    try:
        body = template.slots.filled(template.body, texts)
    except UnfilledError as error:
        return Unresolved(name, f"template {quoted(name)}: {error}", Reason.BLOCKED)
    if repeated := repeated_name(body["spec"]):
        return Unresolved(name, f"template {quoted(name)}: {repeated}", Reason.BLOCKED)
    found = resolved(name, body, claims, template.forms, ignores_resources=ignores_resources)
    # Parts that equal those of the template with placeholders are shared. That saves much memory in
    # TApps with many instances.
    same = {
        part: value
        for part in _SHARED
        if (value := getattr(template, part)) == getattr(found, part)
    }
    source = _OwnSpec(template, tuple(texts.values()), claims)
    origin = TemplateOrigin(template.revision, found.hashes.bare)
    return replace(found, **same, spec_source=source, meaning=Meaning(source.whole), origin=origin)


# Fields of `Template` that are usually equal in all instances.
_SHARED = (
    *("labels", "annotations", "metadata", "finalizers", "images", "reads"),
    *("not_restarted", "mounts"),
)


@dataclass(frozen=True, slots=True)
class _OwnSpec:
    """Builds the pod spec of one instance, with placeholders filled in, each time it is needed.

    Storing the specs of all instances would take much memory.
    """

    template: Template  # The template with placeholders.
    texts: tuple[str, ...]  # The texts of its placeholders, in the order of `slots.names`.
    claims: frozenset[str]  # Names of the claim templates.

    def __call__(self) -> dict[str, Any]:
        """Returns the spec without volumes that have the name of a claim template."""
        return spec_of(self._body(), self.claims, self.template.forms)

    def whole(self) -> dict[str, Any]:
        """Returns the spec with all volumes, including those that have the name of a claim
        template.
        """
        return spec_of(self._body(), forms=self.template.forms)

    def _body(self) -> Any:
        """Returns the template as its author wrote it, with the placeholders of the instance filled
        in.
        """
        slots = self.template.slots
        own = dict(zip(slots.names, self.texts, strict=True))
        return slots.filled(self.template.body, own)
