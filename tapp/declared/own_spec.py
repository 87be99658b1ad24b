"""The spec of one instance's own template, made again whenever it is asked for, and not held."""

from dataclasses import dataclass
from typing import Any

from tapp.declared.templates import Template, spec_of
from tapp.kube.canonical import Forms


@dataclass(frozen=True, slots=True)
class OwnSpec:
    """Makes the spec of an instance's own template."""

    template: Template  # as it is written
    own: tuple[str, ...]  # its name, and what stands in its slots
    claims: frozenset[str]  # names of the claim templates
    forms: Forms  # of its copies

    def __call__(self) -> dict[str, Any]:
        """The spec, as its pod has it."""
        return spec_of(self._body(), self.claims, self.forms)

    def whole(self) -> dict[str, Any]:
        """The same with the volumes that claims take precedence over."""
        return spec_of(self._body(), forms=self.forms)

    def _body(self) -> Any:
        slots = self.template.slots
        own = dict(zip(slots.names, self.own[1:], strict=True))
        return slots.filled(self.template.body, own)
