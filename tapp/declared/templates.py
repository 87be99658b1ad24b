"""Templates of one spec: what each name stands for, and its revision."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple, Self

import msgspec

from tapp.declared import revision
from tapp.declared.meaning import Meaning
from tapp.declared.metadata import Metadata
from tapp.declared.placeholders import NO_SLOTS, Slots, UnfilledError, placeholders_in
from tapp.declared.reads import Reads, read_by, requests_of, sizes_read_by
from tapp.declared.shapes import name_taken, shape_problem
from tapp.kube.canonical import FORMS, Forms
from tapp.kube.env import RepeatedEnvError, without_repeats
from tapp.kube.limits import MOST_ANNOTATIONS, exceeded, go_length, image_missing, length_in_go
from tapp.kube.once import mounted, repeated
from tapp.kube.parts import map_in, maps_of, text_of
from tapp.words.quoted import quoted
from tapp.words.reasons import Reason
from tapp.words.vocabulary import GATES, NEVER_IN_TEMPLATES, TEMPLATE_HASH

NO_FIELDS: Mapping[str, Any] = MappingProxyType({})


class Hashes(NamedTuple):
    """Two hashes of what a template says beyond images and metadata: with resources, without."""

    whole: str
    bare: str


class Written(NamedTuple):
    """Origin of a template that is an instance's own."""

    revision: str  # that of the template as it is written, which the history has
    bare: str  # `Hashes.bare` of the instance's own, which it does not

    def encode(self) -> str:
        """The annotation of a pod that is made of it."""
        return f"{self.revision} {self.bare}"

    @classmethod
    def decode(cls, text: str) -> Self:
        """Both, as an annotation has them; empty where there is none."""
        revision, _, bare = text.partition(" ")
        return cls(revision, bare)


class Bulk(NamedTuple):
    """Bytes of a template's parts in Metacontroller's copy of a new pod, as Go writes them."""

    all: int  # of metadata and spec
    # The rest is measured where all of it may be too much: of the fields of the spec but for those
    # below, and of the entries of its volumes, both with commas between
    fields: int = 0
    volumes: int = 0
    # the fields of the spec that two pods of the template may have otherwise
    others: Mapping[str, Any] = NO_FIELDS

    @property
    def is_small(self) -> bool:
        """True if no pod of the template can have too large annotations, whatever else it has.

        The annotations of a template are there once themselves and once in Metacontroller's copy.
        """
        return 2 * self.all <= MOST_ANNOTATIONS - _REST

    @classmethod
    def of(cls, text: bytes, spec: dict[str, Any]) -> Self:
        """Measures a template, from its JSON and from the spec that a new pod gets."""
        found = cls(go_length(text))
        if found.is_small:
            return found
        others = {key: spec[key] for key in _OTHERS if key in spec}
        fields = {key: part for key, part in spec.items() if key not in {*_OTHERS, "volumes"}}
        volumes = length_in_go(spec.get("volumes") or [])
        return cls(found.all, length_in_go(fields) - 2, volumes - 2, others)


_REST = 96 << 10  # Bytes of what a pod has beside its template: a hundred claims with long names
_OTHERS = ("hostname", "subdomain", "tolerations")


@dataclass(frozen=True, slots=True)
class Template:
    """A pod template that resolved: an instance's own, or as it is written."""

    name: str  # its name in the TApp
    labels: dict[str, str]  # the author's labels, as far as they are for every pod
    annotations: dict[str, str]  # the author's annotations, likewise
    finalizers: list[str]  # the author's finalizers, set at creation only
    # `spec`, or what makes it where each instance has its own: few of these are asked for
    made: dict[str, Any] | Callable[[], dict[str, Any]]
    revision: str  # hash of everything above, as it was written
    uniq: str  # hash of the spec with the images of running containers blanked
    # what `revision` is where the resources of running containers count and here they do not, or
    # the other way round
    other_revision: str
    hashes: Hashes  # `uniq` with these resources, and without
    ignores_resources: bool  # whether they are left to others, and are in neither hash
    images: dict[str, str]  # name of a running container -> its image
    metadata: bytes  # a summary of these labels and annotations (`metadata.py`)
    reads: Reads  # what each running container has of its pod's metadata (`reads.py`)
    sizes: Reads  # the resources that each running container has in its environment, likewise
    not_restarted: list[str]  # containers that annotations ask by name to restart, and cannot
    mounts: dict[str, str]  # name -> container that mounts it, of no volume of its own: claims
    watched: bool  # whether it has a readiness gate that this service opens and closes
    # why neither a new pod nor an update in place can have what it says (`tapp/kube/limits.py`), ""
    beyond: str
    # why no new pod can be made of it, unless admission adds what is missing; ""
    lacking: str
    # `beyond`, or why no new pod can be made of it, or none that Metacontroller could ever update
    obstacle: str
    bulk: Bulk  # what it adds to Metacontroller's copy of a new pod
    size: int  # bytes of all this in a new pod's JSON, about, and never too few
    meaning: Meaning = field(compare=False)  # what it means, however it is written
    slots: Slots = NO_SLOTS  # its placeholders, none in one that an instance can run
    body: Any = None  # where it has placeholders, the template as its author wrote it
    written: Written | None = None  # what it is an instance's own of, None without placeholders

    @property
    def spec(self) -> dict[str, Any]:
        """The pod spec in canonical form (`canonical.canonical`).

        Without the volumes that claims of the same name take precedence over.
        """
        return self.made() if callable(self.made) else self.made


@dataclass(frozen=True)
class Unresolved:
    """A template name that leads nowhere, and why."""

    name: str  # the template's name
    message: str  # for the TApp's author
    # of the decision: there is no such template, or it cannot be this instance's
    reason: Reason = Reason.TEMPLATE_NOT_FOUND


def resolve(
    name: str, body: Any, claims: frozenset[str] = frozenset(), *, ignores_resources: bool = False
) -> Template | Unresolved:
    """A template's body as its author wrote it, canonicalised and hashed; `claims` are names."""
    slots, problem = NO_SLOTS, shape_problem(body)
    if not problem:
        try:
            slots = placeholders_in(body)
        except UnfilledError as error:
            problem = str(error)
    if problem:
        return Unresolved(name, f"template {quoted(name)} cannot be used: {problem}")
    if taken := name_taken(body["spec"]):
        return Unresolved(name, f"template {quoted(name)}: {taken}", Reason.BLOCKED)
    found = resolved(name, body, claims, ignores_resources=ignores_resources, filled=not slots)
    return replace(found, slots=slots, body=body) if slots else found


def resolved(  # noqa: PLR0913 - a template, and what it is resolved with
    name: str,
    body: Any,
    claims: frozenset[str],
    forms: Forms = FORMS,
    *,
    ignores_resources: bool,
    filled: bool = True,
) -> Template:
    """The same of a body that has the shape for it; what it has to fill in stays as it is.

    `filled` is False while there are placeholders in it: no limit is checked then.
    """
    metadata = body.get("metadata") or {}
    compared = forms.comparable(body["spec"])
    without = revision.without_resources(compared)
    whole = bare = revision.revisions_of(metadata, compared)
    if without is not compared:
        bare = revision.revisions_of(metadata, without)
    (full, uniq), (other, _) = (bare, whole) if ignores_resources else (whole, bare)
    spec = spec_of(body, claims, forms)
    labels = _for_every_pod(revision.own_labels(metadata))
    annotations = _for_every_pod(revision.own_annotations(metadata))
    runs = running(spec)
    images = {item["name"]: item["image"] for item in runs if "image" in item}
    folded, obstacle = _folded(name, spec)
    beyond = ""
    if filled:
        own = {
            "labels": labels,
            "annotations": annotations,
            "finalizers": metadata.get("finalizers"),
        }
        beyond = exceeded("Pod", {"metadata": own, "spec": spec})
        beyond = beyond and f"template {quoted(name)}: {beyond}"
    lacking = image_missing(spec)
    text = msgspec.json.encode([metadata, folded])
    return Template(
        name=name,
        labels=labels,
        annotations=annotations,
        finalizers=metadata.get("finalizers") or [],
        made=spec,
        revision=full,
        uniq=uniq,
        other_revision=other,
        hashes=Hashes(whole.uniq, bare.uniq),
        ignores_resources=ignores_resources,
        images=images,
        metadata=Metadata(labels, annotations).summary(),
        reads=read_by(runs, {**labels, TEMPLATE_HASH: full}, annotations),
        sizes=sizes_read_by(runs, [*spec["containers"], *(spec.get("initContainers") or [])]),
        not_restarted=[
            name
            for name in requests_of(annotations)
            if name not in {"", *(i["name"] for i in runs)}
        ],
        mounts=mounted(spec),
        watched=has_served_gate(spec),
        beyond=beyond,
        lacking=lacking and f"template {quoted(name)}: {lacking}",
        obstacle=beyond or obstacle or _refused(name, spec),
        bulk=Bulk.of(text, folded),
        size=len(text) + 2 * len(msgspec.json.encode(images)),  # a text within a text
        meaning=Meaning(lambda: spec_of(body)),
    )


def spec_of(
    body: Any, claims: frozenset[str] = frozenset(), forms: Forms = FORMS
) -> dict[str, Any]:
    """A template's spec in canonical form, without the volumes of claims."""
    spec: dict[str, Any] = forms.canonical(body["spec"])
    if claims and "volumes" in spec:
        kept = [item for item in spec["volumes"] if item["name"] not in claims]
        spec = {**spec, "volumes": kept}
    return spec


def _for_every_pod(entries: dict[str, str]) -> dict[str, str]:
    """Labels or annotations without what tells of one pod only; the revision counts that, too.

    (It did before such were left out of pods, and another revision would touch the pods.)
    """
    return {key: value for key, value in entries.items() if key not in NEVER_IN_TEMPLATES}


def _folded(name: str, spec: dict[str, Any]) -> tuple[dict[str, Any], str]:
    folded = dict(spec)
    try:
        for section in ("containers", "initContainers"):
            if section in spec:
                folded[section] = without_repeats(spec[section])
    except RepeatedEnvError as error:
        why = f"template {quoted(name)}: {error}; Metacontroller cannot apply both: write it once"
        return spec, why
    return folded, ""


def _refused(name: str, spec: dict[str, Any]) -> str:
    found = repeated(spec)
    return f"template {quoted(name)}: {found}: the API server refuses such a pod" if found else ""


def has_served_gate(spec: dict[str, Any]) -> bool:
    """True if a pod spec has a readiness gate that this service opens and closes."""
    return any(gate.get("conditionType") in GATES for gate in maps_of(spec.get("readinessGates")))


def claim_name(claim_template: dict[str, Any]) -> str:
    """The name of a claim template, "" where it has none."""
    return text_of(map_in(claim_template, "metadata").get("name"))


def running(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """The containers of a pod spec that keep running: containers and native sidecars."""
    return [
        item
        for section in ("containers", "initContainers")
        for item in spec.get(section) or []
        if revision.runs_on(section, item)
    ]
