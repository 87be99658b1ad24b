"""Fills in the placeholders of a template for one instance, and limits the bytes of one sync.

`fill_in` returns an instance's own template. `filling_problem` refuses a TApp whose templates would
need too many bytes for all instances together. In this case no instance's template is filled in.
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

# Most bytes (`Slots.bytes`) that one sync fills in for all instances of a TApp. The limit applies
# to the pod templates together, to the claim templates together, and to `spec.serviceTemplate`.
MOST_FILLED_IN: Final = 50_000_000


def filling_problem(total: int, instances: int, most_of_it: str = "") -> str:
    """Returns why the placeholders of templates cannot be filled in for all instances, or "".

    Args:
        total: the bytes (`Slots.bytes`) for all instances together.
        instances: the number of instances, for the message.
        most_of_it: a clause about the largest template, for the message; empty if there is only
            one.
    """
    if total <= MOST_FILLED_IN:
        return ""
    return (
        f"its placeholders make {total:,} bytes of text for {instances} instances{most_of_it} (the "
        f"length, and {PLACEHOLDER_BYTES} for each placeholder), and the service fills in at most "
        f"{MOST_FILLED_IN:,}: move text into a ConfigMap, use fewer placeholders, or run fewer "
        "instances"
    )


def fill_in(
    template: Template, texts: Mapping[str, str], claims: frozenset[str], *, ignores_resources: bool
) -> Template | Unresolved:
    """Returns the template of one instance, with its placeholders filled in.

    Returns `Unresolved` if a field does not accept its text, or if the result repeats a name.

    Args:
        template: the template with placeholders.
        texts: the instance's text for each placeholder, in the order of `slots.names`.
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
    # Instances share equal parts, which saves much memory in large TApps.
    same = {
        part: value
        for part in _SHARED
        if (value := getattr(template, part)) == getattr(found, part)
    }
    source = _OwnSpec(template, tuple(texts.values()), claims)
    origin = TemplateOrigin(template.revision, found.hashes.bare)
    return replace(found, **same, spec_source=source, meaning=Meaning(source.whole), origin=origin)


# Parts of a template that usually are equal in all instances.
_SHARED = (
    *("labels", "annotations", "metadata", "finalizers", "images", "reads"),
    *("not_restarted", "mounts"),
)


@dataclass(frozen=True, slots=True)
class _OwnSpec:
    """Builds the pod spec of one instance, with placeholders filled in, whenever it is needed.

    Keeping the specs of all instances would take much memory.
    """

    template: Template  # The template with placeholders.
    texts: tuple[str, ...]  # The texts of its placeholders, in the order of `slots.names`.
    claims: frozenset[str]  # Names of the claim templates.

    def __call__(self) -> dict[str, Any]:
        """Returns the spec without the volumes that claims replace."""
        return spec_of(self._body(), self.claims, self.template.forms)

    def whole(self) -> dict[str, Any]:
        """Returns the spec with all volumes, also those that claims replace."""
        return spec_of(self._body(), forms=self.template.forms)

    def _body(self) -> Any:
        """Returns the template as its author wrote it, with the placeholders filled in."""
        slots = self.template.slots
        own = dict(zip(slots.names, self.texts, strict=True))
        return slots.filled(self.template.body, own)
