"""The pod templates of one spec, by name and by instance, with and without their placeholders.

`resolve_templates` validates all templates of a spec before any decision. A template without
placeholders is the same for all of its instances. A template with placeholders is filled in for
each instance (`filling.py`): `with_own_templates` does that for all instances together.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from tapp.declared.claims_and_service import NOT_RECORDED, ClaimsAndService, recorded_parts
from tapp.declared.filling import fill_in, filling_problem
from tapp.declared.model import TAppSpec
from tapp.declared.placeholders import NO_SLOTS, Slots, UnfilledError, length_of, placeholders_in
from tapp.declared.templates import Template, Unresolved, claim_name, resolve
from tapp.declared.values import NO_VALUES, KeptValues, fill_alike, kept_values, own_of
from tapp.words.groups import grouped
from tapp.words.quoted import ONCE, quoted
from tapp.words.reasons import Reason
from tapp.words.vocabulary import DEFAULT_TEMPLATE

TemplateResult = Template | Unresolved
# (Name of a template with placeholders, text of each placeholder in order) -> the template with its
# placeholders filled in.
FilledTemplates = dict[tuple[str, ...], TemplateResult]


class _Data(msgspec.Struct, rename="camel"):
    """The field `data` of a ControllerRevision: a recorded template and the values that it
    reads.
    """

    template: dict[str, Any]
    values: dict[str, dict[str, str]] = {}
    default_values: dict[str, str] = {}


class _TemplateOnly(msgspec.Struct):
    """The field `data` of a ControllerRevision without its values, which are malformed."""

    template: dict[str, Any]


_decode_data = msgspec.json.Decoder(_Data).decode
_decode_template_only = msgspec.json.Decoder(_TemplateOnly).decode


@dataclass(frozen=True)
class Templates:
    """The templates of one version of a TApp's spec, after validation.

    The version is the current spec or an older one that a ControllerRevision has recorded.
    """

    spec: TAppSpec  # The TApp's spec.
    app: str  # The TApp's name.
    namespace: str  # The TApp's namespace.
    # Template name -> template, as its author wrote it, for all templates of the spec.
    by_name: Mapping[str, TemplateResult]
    claims: frozenset[str]  # Names of the claim templates.
    # Template name -> instances that run the template and have an entry in `spec.values` (keys of
    # `spec.values`). Empty if no template has placeholders.
    valued: Mapping[str, Sequence[str]]
    # Template name -> the values of the spec that the template reads, to be recorded in a
    # ControllerRevision. Only templates with placeholders have an entry.
    values: Mapping[str, KeptValues]
    # Claim template name -> its placeholders, or why they are invalid.
    claim_slots: Mapping[str, Slots | str]
    service_slots: Slots | str  # Placeholders of `spec.serviceTemplate`, or why they are invalid.
    # Reason why the pod templates cannot be filled in for all instances, or an empty string.
    filling_problem: str
    # Recorded Service name and claim templates, if `spec` was made from a ControllerRevision.
    other_parts: ClaimsAndService = NOT_RECORDED
    # Number of an instance -> its template. If the default template has no placeholders, instances
    # that run it have no entry. `of` looks up the template of such an instance.
    own: Mapping[int, TemplateResult] = field(default_factory=dict)

    def of(self, instance: int) -> TemplateResult:
        """Returns the template that an instance has to run, with its placeholders filled in.

        Returns `Unresolved` if the template does not exist, or if it cannot be used for the
        instance. `instance` is the number of the instance.
        """
        own = self.own.get(instance)
        return self.filled_in(instance, {}) if own is None else own

    def filled_in(self, instance: int, known: FilledTemplates) -> TemplateResult:
        """Returns the template of an instance, with its placeholders filled in.

        Returns `Unresolved` if the template does not exist or cannot be used.

        Args:
            instance: the number of the instance.
            known: a cache of filled-in templates, which the function extends. Instances whose
                placeholders have equal texts share one template, which saves time and memory.
        """
        found = self.named(self.spec.template_name(instance))
        if not isinstance(found, Template) or not found.slots:
            return found
        name = found.name
        if self.filling_problem:
            return Unresolved(name, f"template {quoted(name)}: {self.filling_problem}")
        try:
            texts = self.texts_of(found.slots, instance)
        except UnfilledError as error:
            return Unresolved(name, f"template {quoted(name)}: {error}", Reason.BLOCKED)
        key = (name, *texts.values())
        own = known.get(key)
        if own is None:
            own = known[key] = fill_in(
                found, texts, self.claims, ignores_resources=self.spec.ignores_resources
            )
        return own

    def with_own_templates(self) -> "Templates":
        """Returns a copy with the filled-in templates of all instances below `spec.replicas`."""
        ids: Iterable[int] = range(self.spec.replicas)
        if self.shared(self.spec.default_name) is not None:
            ids = [id for id in ids if str(id) in self.spec.templates]
        known = FilledTemplates()
        return replace(self, own={id: self.filled_in(id, known) for id in ids})

    def filled_templates(self) -> list[tuple[Template, Template]]:
        """Returns pairs of a template with placeholders and that template with its placeholders
        filled in.

        Each filled-in template occurs once, even if several instances share it.
        """
        distinct = {id(own): own for own in self.own.values()}
        return [
            (unfilled, own)
            for own in distinct.values()
            if isinstance(own, Template) and own.origin is not None
            if isinstance(unfilled := self.named(own.name), Template)
        ]

    def body_of(self, instance: int) -> dict[str, Any] | None:
        """Returns the template of an instance as its author wrote it, with placeholders filled in.

        Returns None if the template does not exist or cannot be used. `instance` is the number of
        the instance.
        """
        name = self.spec.template_name(instance)
        found = self.named(name)
        if isinstance(found, Unresolved) or isinstance(self.of(instance), Unresolved):
            return None
        body = self.spec.find_template(name)
        filled: dict[str, Any] | None = (
            found.slots.filled(body, self.texts_of(found.slots, instance)) if found.slots else body
        )
        return filled

    def shared(self, name: str) -> TemplateResult | None:
        """Returns the template called `name` if all its instances share it; None if it has
        placeholders.

        Returns `Unresolved` if the template does not exist or cannot be used.
        """
        found = self.named(name)
        return None if isinstance(found, Template) and found.slots else found

    def named(self, name: str) -> TemplateResult:
        """Returns the template called `name`, without filling in its placeholders.

        Returns `Unresolved` if the template does not exist or cannot be used.
        """
        found = self.by_name.get(name)
        return _not_in_spec(name) if found is None else found

    def values_of(self, name: str) -> KeptValues:
        """Returns the entries of `spec.values` and `spec.defaultValues` that a template reads.

        They have the form in which a ControllerRevision records them. Returns `NO_VALUES` if the
        template called `name` reads no values.
        """
        return self.values.get(name, NO_VALUES)

    def filled_alike(self, name: str, data: bytes) -> bool:
        """Returns True if the values in a ControllerRevision give the same texts as the values in
        the spec.

        Only values are compared that the placeholders of the template read. The function compares
        instances that run the template now and have values in the spec or in the
        ControllerRevision. It ignores values of other instances, which ran the template when the
        ControllerRevision was written. Returns False if the ControllerRevision cannot be read, or
        if the template has no placeholders.

        Args:
            name: the name of the template.
            data: the JSON of the ControllerRevision's field `data`.
        """
        template = self.named(name)
        if not isinstance(template, Template) or not template.slots:
            return False
        try:
            found = _decode_data(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return False
        ids = {id for id in found.values if _name_of(self.spec, id) == name}
        ids.update(self.valued.get(name, ()))
        return fill_alike(self.spec, template.slots, ids, found.values, found.default_values)

    def unread_values(self) -> list[str]:
        """Returns the keys of `spec.values` and `spec.defaultValues` that no template reads,
        sorted.
        """
        keys = {key for own in self.spec.values.values() for key in own}
        keys |= self.spec.default_values.keys()
        if not keys:
            return []
        for template in self.by_name.values():
            keys -= template.slots.keys if isinstance(template, Template) else set()
        for slots in (*self.claim_slots.values(), self.service_slots):
            keys -= slots.keys if isinstance(slots, Slots) else set()
        return sorted(keys)

    def recorded(self, name: str, data: bytes) -> "Templates | None":
        """Returns the templates of an older spec, which a ControllerRevision has recorded.

        In that spec all instances run the recorded template. Returns None if the ControllerRevision
        cannot be read.

        Args:
            name: the name that the recorded template gets in the result.
            data: the JSON of the ControllerRevision's field `data`.
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
            "service_template": None,
            "volume_claim_templates": other_parts.volume_claim_templates or [],
        }
        spec = self.spec.model_copy(update=recorded_fields)
        return resolve_templates(spec, self.app, self.namespace, other_parts=other_parts)

    def texts_of(self, slots: Slots, instance: int) -> dict[str, str]:
        """Returns placeholder -> text for one instance.

        Raises UnfilledError if a value that a placeholder reads is missing or invalid.

        Args:
            slots: the placeholders of a template.
            instance: the number of the instance.
        """
        return own_of(self.spec, slots, instance, self.app, self.namespace)


def resolve_templates(
    spec: TAppSpec,
    app: str = "",
    namespace: str = "",
    *,
    other_parts: ClaimsAndService = NOT_RECORDED,
) -> Templates:
    """Validates all templates of a spec, and returns them without filling in their placeholders.

    Args:
        spec: the spec.
        app: the name of the TApp, which placeholders can read.
        namespace: the namespace of the TApp, which placeholders can read.
        other_parts: the Service name and claim templates of a ControllerRevision, if the spec was
            made from a ControllerRevision.
    """
    claims = frozenset(map(claim_name, spec.volume_claim_templates))
    names = dict.fromkeys([spec.default_name, DEFAULT_TEMPLATE, *spec.template_pool])
    by_name = {
        name: resolve(name, body, claims, ignores_resources=spec.ignores_resources)
        for name in names
        if (body := spec.find_template(name)) is not None
    }
    slots = {
        name: template.slots
        for name, template in by_name.items()
        if isinstance(template, Template) and template.slots
    }
    valued = grouped((_name_of(spec, id), id) for id in spec.values) if slots else {}
    return Templates(
        spec,
        app,
        namespace,
        by_name,
        claims,
        valued,
        {name: kept_values(spec, each, valued.get(name, [])) for name, each in slots.items()},
        _claim_slots(spec),
        _service_slots(spec),
        _problem_of_templates(spec, slots) if slots else "",
        other_parts,
    )


def _not_in_spec(name: str) -> Unresolved:
    """Returns the `Unresolved` for a template name that the spec lacks; its message says so."""
    where = "in spec.templatePool"
    if name == DEFAULT_TEMPLATE:
        where = "in spec.templatePool, and spec.template is not set"
    return Unresolved(name, f"there is no template {quoted(name, ONCE)} {where}")


def _name_of(spec: TAppSpec, id: str) -> str:
    """Returns the name of the template that an instance runs.

    `id` is the number of the instance as text, as in a key of `spec.values`.
    """
    return spec.templates.get(id) or spec.default_name


def _claim_slots(spec: TAppSpec) -> dict[str, Slots | str]:
    """Returns claim template name -> placeholders of the claim template.

    If the placeholders are invalid, the value is a text that says why.
    """
    found = {claim_name(claim): _slots_or_problem(claim) for claim in spec.volume_claim_templates}
    each = sum([slots.bytes for slots in found.values() if isinstance(slots, Slots)])
    if problem := _problem_of(spec, each):
        found = {name: problem if slots else slots for name, slots in found.items()}
    return found


def _service_slots(spec: TAppSpec) -> Slots | str:
    """Returns the placeholders of `spec.serviceTemplate`.

    Returns a text that says why if the placeholders are invalid, and `NO_SLOTS` if the spec has no
    Service template.
    """
    if spec.service_template is None:
        return NO_SLOTS
    found = _slots_or_problem(spec.service_template)
    # Each response contains the Service of every instance, even if it has no placeholders.
    each = length_of(spec.service_template)
    each = max(each, found.bytes) if isinstance(found, Slots) else 0
    return _problem_of(spec, each) or found


def _problem_of_templates(spec: TAppSpec, slots: Mapping[str, Slots]) -> str:
    """Returns why the filled-in pod templates of all instances would be too large, or an empty
    string.

    `slots` maps the name of each template with placeholders to its placeholders.
    """
    replicas = spec.replicas
    named = [spec.template_name(id) for id in range(replicas) if str(id) in spec.templates]
    counts = Counter(named)
    counts[spec.default_name] += replicas - len(named)
    found = {name: slots[name].bytes * count for name, count in counts.items() if name in slots}
    largest = max(found, key=found.__getitem__, default="")
    return filling_problem(sum(found.values()), counts[largest], f", most of it {quoted(largest)}")


def _problem_of(spec: TAppSpec, each: int) -> str:
    """Returns why the filled-in templates of all instances would be too large, or an empty string.

    `each` is the size of the filled-in templates of one instance, in bytes.
    """
    return filling_problem(each * spec.replicas, spec.replicas)


def _read_data(data: bytes) -> _Data:
    """Decodes the JSON of a ControllerRevision's field `data`.

    Values of a wrong type are dropped, so that the template can still be used. Raises
    msgspec.DecodeError if the template itself cannot be decoded.
    """
    try:
        return _decode_data(data)
    except msgspec.ValidationError:
        return _Data(_decode_template_only(data).template)


def _slots_or_problem(body: Any) -> Slots | str:
    """Returns the placeholders of a template, or a text that says why they are invalid.

    `body` is the template as decoded JSON.
    """
    try:
        return placeholders_in(body)
    except UnfilledError as error:
        return str(error)
