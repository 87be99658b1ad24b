"""Looks templates up: by name as they are written, by instance as it runs them."""

from dataclasses import dataclass, field, replace
from typing import Any, Final

import msgspec

from tapp.declared.beside import UNSAID, Beside, recorded_beside
from tapp.declared.meaning import Meaning
from tapp.declared.model import TAppSpec
from tapp.declared.placeholders import NO_SLOTS, Slots, UnfilledError, placeholders_in, weight_of
from tapp.declared.shapes import name_taken
from tapp.declared.templates import (
    Template,
    Unresolved,
    Written,
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
    """`data` of a ControllerRevision: a template as it was, and the values that it read."""

    template: dict[str, Any]
    values: dict[str, dict[str, str]] = {}
    default_values: dict[str, str] = {}


class _Bare(msgspec.Struct):
    """The same without the values: odd ones hide no template."""

    template: dict[str, Any]


_decode_data = msgspec.json.Decoder(_Data).decode
_decode_bare = msgspec.json.Decoder(_Bare).decode
MOST_OF_ALL: Final = 1_000_000  # Work for all instances at each sync, in `Slots.weight`
_MOST_RECORDS: Final = 16  # Held records' templates: more are in use only by unfinished rolls


@dataclass(frozen=True, slots=True)
class _OwnSpec:
    """Makes the spec of an instance's own template whenever it is asked for: it is not held."""

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


@dataclass
class Templates:
    """Looks templates up by name, each one canonicalised and hashed at most once.

    One that has placeholders is another for each instance: that is made once for all instances that
    have the same in these places. May serve all requests that show the same spec of one TApp:
    nobody changes what is in it.
    """

    spec: TAppSpec  # the TApp's spec
    app: str = ""  # its name
    namespace: str = ""
    beside: Beside = UNSAID  # what a record says of the rest of its spec; of today's, nothing
    _claims: frozenset[str] = field(init=False)
    _found: dict[str, Template | Unresolved] = field(default_factory=dict)
    _own: dict[tuple[str, ...], Template | Unresolved] = field(default_factory=dict)
    _of: dict[int, Template | Unresolved] = field(default_factory=dict)
    _forms: dict[str, Forms] = field(default_factory=dict)
    _values: dict[str, KeptValues] = field(default_factory=dict)
    _valued_by: dict[str, list[str]] | None = None
    _claim_slots: dict[str, Slots | str] | None = None
    _service_slots: Slots | str | None = None
    _recorded: dict[tuple[str, int, int], "Templates | None"] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._claims = frozenset(map(claim_name, self.spec.volume_claim_templates))

    def of(self, instance: int) -> Template | Unresolved:
        """The template that `instance` should run."""
        found = self._of.get(instance)
        if found is None:
            found = self.named(self.spec.template_name(instance))
            if isinstance(found, Template) and found.slots:
                found = self._of[instance] = self._own_of(found, instance)
        return found

    def body_of(self, instance: int) -> dict[str, Any] | None:
        """The template of `instance`, written for it alone; None where it does not resolve."""
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
        """The template called `name` if it is the same for all instances, else None."""
        found = self.named(name)
        return None if isinstance(found, Template) and found.slots else found

    def named(self, name: str) -> Template | Unresolved:
        """The template called `name`, as it is written."""
        found = self._found.get(name)
        if found is None:
            found = self._found[name] = self._resolve(name)
        return found

    def values_of(self, name: str) -> KeptValues:
        """The values that the template called `name` reads, for the history."""
        found = self._values.get(name)
        if found is None:
            template = self.named(name)
            slots = template.slots if isinstance(template, Template) else NO_SLOTS
            kept = kept_values(self.spec, slots, self._valued(name)) if slots else NO_VALUES
            found = self._values[name] = kept
        return found

    def filled_alike(self, name: str, data: bytes) -> bool:
        """True if a record fills in the template called `name` as the spec does, for all it runs.

        It may have values of more instances: of those that ran the template, too, when it was made.
        """
        template = self.named(name)
        if not isinstance(template, Template) or not template.slots:
            return False
        try:
            found = _decode_data(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return False
        ids = {id for id in found.values if self._name_of(id) == name}.union(self._valued(name))
        return fill_alike(self.spec, template.slots, ids, found.values, found.default_values)

    def _valued(self, name: str) -> list[str]:
        """The instances with values that run the template called `name`, found once for all."""
        if self._valued_by is None:
            self._valued_by = grouped((self._name_of(id), id) for id in self.spec.values)
        return self._valued_by.get(name, [])

    def _name_of(self, id: str) -> str:
        return self.spec.templates.get(id) or self.spec.default_name

    def unread_values(self) -> list[str]:
        """The keys of values that neither a template nor a claim template reads, sorted."""
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
        """The templates as a record's JSON has them: all run `name`; None if it is no record."""
        key = name, len(data), hash(data)
        if key in self._recorded:
            return self._recorded[key]
        if len(self._recorded) >= _MOST_RECORDS:
            self._recorded = {}
        found = self._recorded[key] = self._as_recorded(name, data)
        return found

    @property
    def made(self) -> int:
        """Size of what has been looked up so far: it grows with what is held."""
        recorded = sum([found.made for found in self._recorded.values() if found is not None])
        own = len(self._found) + len(self._own) + len(self._of) + len(self._values)
        return own + len(self._recorded) + recorded

    def _as_recorded(self, name: str, data: bytes) -> "Templates | None":
        try:
            found = _read_data(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        beside = recorded_beside(data)
        service = beside.service_name
        past = {
            "template": None,
            "template_pool": {name: found.template},
            "templates": {},
            "default_template_name": name,
            "values": found.values,
            "default_values": found.default_values,
            "service_name": self.spec.service_name if service is None else service,
            "volume_claim_templates": beside.volume_claim_templates or [],
        }
        spec = self.spec.model_copy(update=past)
        return Templates(spec, self.app, self.namespace, beside=beside)

    def claim_slots(self) -> dict[str, Slots | str]:
        """Claim template -> its placeholders, or what is wrong with them."""
        if self._claim_slots is None:
            found = {
                claim_name(claim): _slots_or_problem(claim)
                for claim in self.spec.volume_claim_templates
            }
            weights = [slots.weight for slots in found.values() if isinstance(slots, Slots)]
            if problem := self._too_many(sum(weights)):
                found = {name: problem if slots else slots for name, slots in found.items()}
            self._claim_slots = found
        return self._claim_slots

    def service_slots(self) -> Slots | str:
        """The placeholders of `spec.serviceTemplate`, or what is wrong with them."""
        if self._service_slots is None:
            found = _slots_or_problem(self.spec.service_template)
            # Whole in each answer, and compared with what is there, also without placeholders.
            weight = weight_of(self.spec.service_template)
            weight = max(weight, found.weight) if isinstance(found, Slots) else 0
            problem = self._too_many(weight)
            self._service_slots = problem or found
        return self._service_slots

    def _too_many(self, weight: int) -> str:
        """The problem of what each sync fills in for all instances, "" where that is little."""
        replicas = self.spec.replicas
        if weight * replicas <= MOST_OF_ALL:
            return ""
        return (
            f"its placeholders and its length are too much for {replicas} instances: use fewer "
            "placeholders, or a shorter template"
        )

    def own(self, slots: Slots, instance: int) -> dict[str, str]:
        """Values of placeholders in what `instance` is made of. UnfilledError: it lacks one."""
        return own_of(self.spec, slots, instance, self.app, self.namespace)

    def _resolve(self, name: str) -> Template | Unresolved:
        body = self.spec.find_template(name)
        if body is None:
            called = quoted(name, ONCE)
            other = "set as spec.template" if name == "default" else "'default'"
            return Unresolved(
                name, f"template {called} is neither in spec.templatePool nor {other}"
            )
        return resolve(name, body, self._claims, ignores_resources=self.spec.ignores_resources)

    def _own_of(self, template: Template, instance: int) -> Template | Unresolved:
        name, slots = template.name, template.slots
        try:
            own = self.own(slots, instance)
            known = self._own.get(key := (name, *own.values()))
            if known is not None:
                return known
            body = slots.filled(template.body, own)
        except UnfilledError as error:
            return Unresolved(name, f"template {quoted(name)}: {error}", Reason.BLOCKED)
        if taken := name_taken(body["spec"]):
            return Unresolved(name, f"template {quoted(name)}: {taken}", Reason.BLOCKED)
        claims, ignored = self._claims, self.spec.ignores_resources
        forms = self._forms.get(name)
        if forms is None:
            forms = self._forms[name] = Forms.of_copies(template.body["spec"])
        filled = resolved(name, body, claims, forms, ignores_resources=ignored)
        same = {
            part: value
            for part in _SHARED
            if (value := getattr(template, part)) == getattr(filled, part)
        }
        made = _OwnSpec(template, key, claims, forms)
        found = self._own[key] = replace(
            filled,
            **same,
            made=made,
            meaning=Meaning(made.whole),
            written=Written(template.revision, filled.hashes.bare),
        )
        return found


_SHARED = (
    *("labels", "annotations", "metadata", "finalizers", "images", "reads"),
    *("not_restarted", "mounts"),
)
"""Parts that instances mostly have in common, and then hold once."""


def _read_data(data: bytes) -> _Data:
    try:
        return _decode_data(data)
    except msgspec.ValidationError:
        return _Data(_decode_bare(data).template)


def _slots_or_problem(body: Any) -> Slots | str:
    try:
        return placeholders_in(body)
    except UnfilledError as error:
        return str(error)
