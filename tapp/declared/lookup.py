"""`Templates`: looks up the templates of a TApp, by name or by instance.

A template without placeholders is the same for all of its instances. A template with placeholders
is filled in for each instance; `Templates.of` returns the instance's own template.
"""

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from tapp.declared.claims_and_service import NOT_RECORDED, ClaimsAndService, recorded_parts
from tapp.declared.filling import filling_problem
from tapp.declared.meaning import Meaning
from tapp.declared.model import TAppSpec
from tapp.declared.placeholders import NO_SLOTS, Slots, UnfilledError, length_of, placeholders_in
from tapp.declared.shapes import repeated_name
from tapp.declared.templates import (
    Template,
    TemplateOrigin,
    Unresolved,
    claim_name,
    resolve,
    resolved,
    spec_of,
)
from tapp.declared.values import NO_VALUES, KeptValues, fill_alike, kept_values, own_of
from tapp.kube.canonical import Forms
from tapp.words.groups import grouped
from tapp.words.quoted import ONCE, quoted
from tapp.words.reasons import Reason
from tapp.words.vocabulary import DEFAULT_TEMPLATE


class _Data(msgspec.Struct, rename="camel"):
    """`data` of a ControllerRevision: a recorded template, and the values that it reads."""

    template: dict[str, Any]
    values: dict[str, dict[str, str]] = {}
    default_values: dict[str, str] = {}


class _TemplateOnly(msgspec.Struct):
    """`data` of a ControllerRevision without its values, for a record whose values cannot be
    read.
    """

    template: dict[str, Any]


_decode_data = msgspec.json.Decoder(_Data).decode
_decode_template_only = msgspec.json.Decoder(_TemplateOnly).decode


@dataclass(frozen=True, slots=True)
class _OwnSpec:
    """Builds the spec of an instance's own template when it is needed, so that it takes no
    memory.
    """

    template: Template  # The template with placeholders.
    # The template's name, and the texts of its placeholders in the order of `slots.names`.
    own: tuple[str, ...]
    claims: frozenset[str]  # Names of the claim templates.
    forms: Forms  # Cache of the canonical forms of the template's copies.

    def __call__(self) -> dict[str, Any]:
        """Returns the spec without the volumes that claims replace."""
        return spec_of(self._body(), self.claims, self.forms)

    def whole(self) -> dict[str, Any]:
        """Returns the spec with all volumes."""
        return spec_of(self._body(), forms=self.forms)

    def _body(self) -> Any:
        slots = self.template.slots
        own = dict(zip(slots.names, self.own[1:], strict=True))
        return slots.filled(self.template.body, own)


@dataclass
class Templates:
    """The templates of one version of a TApp's spec; each is brought into
    canonical form at most once.

    A template with placeholders is filled in once for all instances with equal values. One object
    may serve all requests with the same spec of one TApp.
    """

    spec: TAppSpec  # The TApp's spec.
    app: str = ""  # The TApp's name.
    namespace: str = ""  # The TApp's namespace.
    # Recorded Service name and claim templates, if the spec is that of a record.
    other_parts: ClaimsAndService = NOT_RECORDED
    _claims: frozenset[str] = field(init=False)  # Names of the claim templates.
    # Template name -> template, as its author wrote it.
    _found: dict[str, Template | Unresolved] = field(default_factory=dict)
    # Template name and texts of its placeholders -> template filled in.
    _own: dict[tuple[str, ...], Template | Unresolved] = field(default_factory=dict)
    # Instance -> its own template.
    _of: dict[int, Template | Unresolved] = field(default_factory=dict)
    # Template name -> cache of canonical forms.
    _forms: dict[str, Forms] = field(default_factory=dict)
    # Template name -> values that it reads.
    _values: dict[str, KeptValues] = field(default_factory=dict)
    # Template name -> instances that run it and have values; None if not computed yet.
    _valued_instances: dict[str, list[str]] | None = None
    _claim_slots: dict[str, Slots | str] | None = None  # Cache of `claim_slots`.
    _service_slots: Slots | str | None = None  # Cache of `service_slots`.
    _too_large: str | None = None  # Cache of `filling_problem`.

    def __post_init__(self) -> None:
        self._claims = frozenset(map(claim_name, self.spec.volume_claim_templates))

    def of(self, instance: int) -> Template | Unresolved:
        """Returns the template that `instance` should run, with its placeholders filled in."""
        found = self._of.get(instance)
        if found is not None:
            return found
        found = self.named(self.spec.template_name(instance))
        if not isinstance(found, Template) or not found.slots:
            return found
        if problem := self.filling_problem():
            return Unresolved(found.name, f"template {quoted(found.name)}: {problem}")
        own = self._own_of(found, instance)
        if instance < self.spec.replicas:
            self._of[instance] = own
        return own

    def fill_in(self) -> list[tuple[Template, Template]]:
        """Fills in the templates of all instances below `spec.replicas`.

        Returns each filled-in template once, together with its template with placeholders.
        """
        for instance in range(self.spec.replicas):
            self.of(instance)
        return [
            (unfilled, own)
            for own in self._own.values()
            if isinstance(own, Template) and isinstance(unfilled := self.named(own.name), Template)
        ]

    def filling_problem(self) -> str:
        """Returns why the pod templates cannot be filled in for all instances, or an empty
        string.
        """
        if self._too_large is None:
            self._too_large = self._problem_of_templates()
        return self._too_large

    def body_of(self, instance: int) -> dict[str, Any] | None:
        """Returns the body of the template of `instance`, filled in; None if it cannot be used."""
        name = self.spec.template_name(instance)
        found = self.named(name)
        if isinstance(found, Unresolved) or isinstance(self.of(instance), Unresolved):
            return None
        body = self.spec.find_template(name)
        filled: dict[str, Any] | None = (
            found.slots.filled(body, self.own(found.slots, instance)) if found.slots else body
        )
        return filled

    def shared(self, name: str) -> Template | Unresolved | None:
        """Returns the template called `name` if it has no placeholders, otherwise None."""
        found = self.named(name)
        return None if isinstance(found, Template) and found.slots else found

    def named(self, name: str) -> Template | Unresolved:
        """Returns the template called `name`, with its placeholders."""
        found = self._found.get(name)
        if found is None:
            found = self._found[name] = self._resolve(name)
        return found

    def values_of(self, name: str) -> KeptValues:
        """Returns the values that the template called `name` reads, for the history."""
        found = self._values.get(name)
        if found is None:
            template = self.named(name)
            slots = template.slots if isinstance(template, Template) else NO_SLOTS
            kept = (
                kept_values(self.spec, slots, self._instances_with_values(name))
                if slots
                else NO_VALUES
            )
            found = self._values[name] = kept
        return found

    def filled_alike(self, name: str, data: bytes) -> bool:
        """Returns True if recorded values fill in a template like those of the current spec do.

        `data` is the record's JSON. The instances that run the template now and have values in the
        spec or in the record are compared. The record may have values of further instances, which
        ran the template when it was written.
        """
        template = self.named(name)
        if not isinstance(template, Template) or not template.slots:
            return False
        try:
            found = _decode_data(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return False
        ids = {id for id in found.values if self._name_of(id) == name}.union(
            self._instances_with_values(name)
        )
        return fill_alike(self.spec, template.slots, ids, found.values, found.default_values)

    def _instances_with_values(self, name: str) -> list[str]:
        """Returns the instances that run the template called `name` and
        are listed in `spec.values`.
        """
        if self._valued_instances is None:
            self._valued_instances = grouped((self._name_of(id), id) for id in self.spec.values)
        return self._valued_instances.get(name, [])

    def _name_of(self, id: str) -> str:
        return self.spec.templates.get(id) or self.spec.default_name

    def unread_values(self) -> list[str]:
        """Returns the keys of values that no template reads, sorted."""
        keys = {key for own in self.spec.values.values() for key in own}
        keys |= self.spec.default_values.keys()
        if not keys:
            return []
        names = [*self.spec.template_pool, self.spec.default_name, DEFAULT_TEMPLATE]
        for template in map(self.named, names):
            keys -= template.slots.keys if isinstance(template, Template) else set()
        for slots in (*self.claim_slots().values(), self.service_slots()):
            keys -= slots.keys if isinstance(slots, Slots) else set()
        return sorted(keys)

    def recorded(self, name: str, data: bytes) -> "Templates | None":
        """Returns the templates of a record: all instances run `name`. None
        if the JSON is not a record.
        """
        try:
            found = _read_data(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        other_parts = recorded_parts(data)
        service = other_parts.service_name
        recorded_fields = {
            "template": None,
            "template_pool": {name: found.template},
            "templates": {},
            "default_template_name": name,
            "values": found.values,
            "default_values": found.default_values,
            "service_name": self.spec.service_name if service is None else service,
            "volume_claim_templates": other_parts.volume_claim_templates or [],
        }
        spec = self.spec.model_copy(update=recorded_fields)
        return Templates(spec, self.app, self.namespace, other_parts=other_parts)

    def claim_slots(self) -> dict[str, Slots | str]:
        """Returns the placeholders of each claim template, or why they are invalid."""
        if self._claim_slots is None:
            found = {
                claim_name(claim): _slots_or_problem(claim)
                for claim in self.spec.volume_claim_templates
            }
            each = sum([slots.bytes for slots in found.values() if isinstance(slots, Slots)])
            if problem := self._problem_of(each):
                found = {name: problem if slots else slots for name, slots in found.items()}
            self._claim_slots = found
        return self._claim_slots

    def service_slots(self) -> Slots | str:
        """Returns the placeholders of `spec.serviceTemplate`, or why they are invalid."""
        if self._service_slots is None:
            found = _slots_or_problem(self.spec.service_template)
            # Each response contains the Service of every instance, even if it has no placeholders.
            each = length_of(self.spec.service_template)
            each = max(each, found.bytes) if isinstance(found, Slots) else 0
            self._service_slots = self._problem_of(each) or found
        return self._service_slots

    def _problem_of_templates(self) -> str:
        """Returns why the pod templates are too large to be filled in for all instances, or ""."""
        replicas, spec = self.spec.replicas, self.spec
        named = [spec.template_name(id) for id in range(replicas) if str(id) in spec.templates]
        counts = Counter(named)
        counts[spec.default_name] += replicas - len(named)
        found = {
            name: template.slots.bytes * count
            for name, count in counts.items()
            if isinstance(template := self.named(name), Template)
        }
        largest = max(found, key=found.__getitem__, default="")
        return filling_problem(
            sum(found.values()), counts[largest], f", most of it {quoted(largest)}"
        )

    def _problem_of(self, each: int) -> str:
        """Returns why `each` bytes per instance are too many, or an empty string."""
        replicas = self.spec.replicas
        return filling_problem(each * replicas, replicas)

    def own(self, slots: Slots, instance: int) -> dict[str, str]:
        """Returns the texts of placeholders for one instance. Raises
        UnfilledError if one is missing.
        """
        return own_of(self.spec, slots, instance, self.app, self.namespace)

    def _resolve(self, name: str) -> Template | Unresolved:
        body = self.spec.find_template(name)
        if body is None:
            quoted_name = quoted(name, ONCE)
            other = "set as spec.template" if name == "default" else "'default'"
            return Unresolved(
                name, f"template {quoted_name} is neither in spec.templatePool nor {other}"
            )
        return resolve(name, body, self._claims, ignores_resources=self.spec.ignores_resources)

    def _own_of(self, template: Template, instance: int) -> Template | Unresolved:
        """Returns the filled-in template of one instance."""
        name, slots = template.name, template.slots
        try:
            own = self.own(slots, instance)
            known = self._own.get(key := (name, *own.values()))
            if known is not None:
                return known
            body = slots.filled(template.body, own)
        except UnfilledError as error:
            return Unresolved(name, f"template {quoted(name)}: {error}", Reason.BLOCKED)
        if repeated := repeated_name(body["spec"]):
            return Unresolved(name, f"template {quoted(name)}: {repeated}", Reason.BLOCKED)
        claims, ignored = self._claims, self.spec.ignores_resources
        forms = self._forms.get(name)
        if forms is None:
            forms = self._forms[name] = Forms.of_copies(template.body["spec"])
        filled = resolved(name, body, claims, forms, ignores_resources=ignored)
        # Instances share equal parts, which saves much memory in large TApps.
        same = {
            part: value
            for part in _SHARED
            if (value := getattr(template, part)) == getattr(filled, part)
        }
        own_spec = _OwnSpec(template, key, claims, forms)
        found = self._own[key] = replace(
            filled,
            **same,
            spec_source=own_spec,
            meaning=Meaning(own_spec.whole),
            origin=TemplateOrigin(template.revision, filled.hashes.bare),
        )
        return found


# Parts of a template that usually are equal in all instances.
_SHARED = (
    *("labels", "annotations", "metadata", "finalizers", "images", "reads"),
    *("not_restarted", "mounts"),
)


def _read_data(data: bytes) -> _Data:
    """Decodes a record; values of a wrong type are dropped, so that
    the template can still be used.
    """
    try:
        return _decode_data(data)
    except msgspec.ValidationError:
        return _Data(_decode_template_only(data).template)


def _slots_or_problem(body: Any) -> Slots | str:
    try:
        return placeholders_in(body)
    except UnfilledError as error:
        return str(error)
