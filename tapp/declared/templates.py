"""A pod template in canonical form, with its revision and all facts that decisions need.

`resolve` builds a `Template` from a template in the spec. If the template has placeholders,
`filling.py` fills them in for each instance, and builds the instance's own `Template` with
`resolved`.
"""

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
from tapp.declared.shapes import repeated_name, shape_problem
from tapp.kube.canonical import FORMS, Forms
from tapp.kube.env import RepeatedEnvError, without_repeats
from tapp.kube.limits import MOST_ANNOTATIONS, go_length, length_in_go, limit_problem, missing_image
from tapp.kube.once import mounts_without_volume, repetition
from tapp.kube.parts import map_in, maps_of, text_of
from tapp.words.quoted import quoted
from tapp.words.reasons import Reason
from tapp.words.vocabulary import GATES, NEVER_IN_TEMPLATES, TEMPLATE_HASH

NO_FIELDS: Mapping[str, Any] = MappingProxyType({})


class Hashes(NamedTuple):
    """Two hashes of a template's spec without the images of running containers.

    `whole` includes the resources of running containers, and `bare` does not. `Revisions.uniq`
    equals `bare` if the TApp ignores resources, and `whole` if it does not.
    """

    whole: str  # Hash with the resources of running containers.
    bare: str  # Hash without the resources of running containers.


class TemplateOrigin(NamedTuple):
    """The template with placeholders from which an instance's own template was made."""

    # Revision of the template with placeholders. The history has a record of this template.
    revision: str
    # `Hashes.bare` of the instance's own template, which the history does not record.
    bare: str

    def encode(self) -> str:
        """Returns the value of the pod annotation that stores this origin."""
        return f"{self.revision} {self.bare}"

    @classmethod
    def decode(cls, text: str) -> Self:
        """Returns the origin that a pod annotation stores; both fields are empty if `text` is
        empty.

        `text` is the value of the annotation.
        """
        revision, _, bare = text.partition(" ")
        return cls(revision, bare)


class Bulk(NamedTuple):
    """The sizes of a template's parts in Metacontroller's copy of a new pod, in bytes.

    They are lengths of JSON as Go encodes it. They show whether the annotations of a new pod would
    be too large for Kubernetes, because Metacontroller stores its copy in an annotation.
    """

    all: int  # Bytes of metadata and spec.
    # Bytes of the spec's fields without volumes and without the fields in `others`. This field and
    # the next two are measured only if `is_small` is False.
    fields: int = 0
    volumes: int = 0  # Bytes of the entries of `spec.volumes`.
    # Fields of the spec in which the pods of one template may differ from each other.
    others: Mapping[str, Any] = NO_FIELDS

    @property
    def is_small(self) -> bool:
        """True if the annotations of no pod of this template can be too large for Kubernetes.

        A pod has the annotations of its template twice: directly, and in Metacontroller's copy.
        """
        return 2 * self.all <= MOST_ANNOTATIONS - _REST

    @classmethod
    def of(cls, text: bytes, spec: dict[str, Any]) -> Self:
        """Returns the sizes of a template.

        Args:
            text: the JSON of the template's metadata and spec.
            spec: the pod spec of the template.
        """
        found = cls(go_length(text))
        if found.is_small:
            return found
        others = {key: spec[key] for key in _OTHERS if key in spec}
        fields = {key: part for key, part in spec.items() if key not in {*_OTHERS, "volumes"}}
        volumes = length_in_go(spec.get("volumes") or [])
        return cls(found.all, length_in_go(fields) - 2, volumes - 2, others)


# Bytes that are reserved for parts of a pod that its template does not have. A hundred claims with
# long names need as many.
_REST = 96 << 10
_OTHERS = ("hostname", "subdomain", "tolerations")


@dataclass(frozen=True, slots=True)
class Template:
    """A pod template after validation, with its hashes and all facts that decisions need.

    It is one of two things:

    - A template as a user wrote it, which may have placeholders.
    - The own template of one instance, with its placeholders filled in.
    """

    name: str  # The template's name in the TApp.
    # The labels that the author wrote, without keys that belong to a single pod.
    labels: dict[str, str]
    # The annotations that the author wrote, without keys that belong to a single pod.
    annotations: dict[str, str]
    finalizers: list[str]  # The author's finalizers, which only new pods get.
    # The pod spec, or a function that builds it. If the template has placeholders, each instance
    # has its own spec, and storing all of these specs would take much memory.
    spec_source: dict[str, Any] | Callable[[], dict[str, Any]]
    revision: str  # Hash of labels, annotations and spec, as the author wrote them.
    uniq: str  # Hash of the spec without the images of running containers.
    # The revision that the template would have if `ignores_resources` had the other value.
    other_revision: str
    hashes: Hashes  # `uniq` with and without the resources of running containers.
    # True if other controllers set the resources of running containers. `revision` and `uniq` do
    # not include these resources then.
    ignores_resources: bool
    images: dict[str, str]  # Name of a running container -> its image.
    metadata: bytes  # Summary of labels and annotations (`Metadata.summary`).
    # Labels and annotations that each running container reads when it starts (`reads.py`).
    reads: Reads
    # Resources that each running container reads when it starts (`reads.sizes_read_by`).
    sizes: Reads
    # Names in restart annotations for which there is no container that keeps running.
    not_restarted: list[str]
    # Volume name -> container that mounts the volume, for volumes that the template lacks. Claims
    # have to provide these volumes.
    mounts: dict[str, str]
    watched: bool  # True if the template has a readiness gate of this service.
    # Reason why neither a new pod nor an update in place is possible: a limit of Kubernetes
    # (`tapp/kube/limits.py`). Empty if both are possible.
    limit_problem: str
    # Reason why no new pod is possible unless admission adds the image of a container; empty if all
    # containers have an image.
    missing_image: str
    # Reason why no new pod is possible, or why Metacontroller could never update a new pod. It is
    # `limit_problem` if that is not empty. Empty if there is no reason.
    obstacle: str
    bulk: Bulk  # Bytes that the template contributes to Metacontroller's copy of a new pod.
    # True if the template can be used for every instance without a check of each instance. No
    # container lacks its image or a volume, and the annotations of no pod can be too large.
    suits_all: bool
    size: int  # Upper estimate of the bytes of a new pod's JSON.
    # The canonical form that shows whether a template that is written differently creates the same
    # pod.
    meaning: Meaning = field(compare=False)
    slots: Slots = NO_SLOTS  # The placeholders; empty in a template that an instance can run.
    body: Any = None  # The template as its author wrote it, if it has placeholders.
    # Functions that compute the canonical forms of filled-in copies, if the template has
    # placeholders.
    forms: Forms = field(default=FORMS, compare=False)
    # The template with placeholders from which this instance's own template was made; None if this
    # is not the own template of an instance.
    origin: TemplateOrigin | None = None

    @property
    def spec(self) -> dict[str, Any]:
        """The pod spec in canonical form (`canonical.canonical`).

        It lacks volumes that have the name of a claim template, because claims take precedence.
        """
        return self.spec_source() if callable(self.spec_source) else self.spec_source


@dataclass(frozen=True)
class Unresolved:
    """The result for a template that does not exist or that cannot be used."""

    name: str  # Name of the template.
    message: str  # Reason, for the author of the TApp.
    # Reason of the instance's verdict: the template does not exist, or it cannot be used for this
    # instance.
    reason: Reason = Reason.TEMPLATE_NOT_FOUND


def resolve(
    name: str, body: Any, claims: frozenset[str] = frozenset(), *, ignores_resources: bool = False
) -> Template | Unresolved:
    """Validates a template of the spec, and returns it with its hashes and facts.

    Returns `Unresolved` if the template has the wrong shape, if two containers or volumes have the
    same name, or if a placeholder is invalid.

    Args:
        name: the name of the template in the TApp.
        body: the template as its author wrote it.
        claims: names of the TApp's claim templates.
        ignores_resources: True if other controllers set the resources of running containers.
    """
    slots, problem = NO_SLOTS, shape_problem(body)
    if not problem:
        try:
            slots = placeholders_in(body)
        except UnfilledError as error:
            problem = str(error)
    if problem:
        return Unresolved(name, f"template {quoted(name)} cannot be used: {problem}")
    if repeated := repeated_name(body["spec"]):
        return Unresolved(name, f"template {quoted(name)}: {repeated}", Reason.BLOCKED)
    found = resolved(name, body, claims, ignores_resources=ignores_resources, filled=not slots)
    if not slots:
        return found
    return replace(found, slots=slots, body=body, forms=Forms.of_copies(body["spec"]))


def resolved(  # noqa: PLR0913 - independent inputs
    name: str,
    body: Any,
    claims: frozenset[str],
    forms: Forms = FORMS,
    *,
    ignores_resources: bool,
    filled: bool = True,
) -> Template:
    """Returns a template with its hashes and facts; the caller has validated its shape.

    Args:
        name: the name of the template in the TApp.
        body: the template as its author wrote it, possibly with placeholders filled in.
        claims: names of the TApp's claim templates.
        forms: functions that compute canonical forms. They may cache the forms of parts that
            several templates share.
        ignores_resources: True if other controllers set the resources of running containers.
        filled: False if `body` has placeholders. The limits of Kubernetes are not checked then.
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
    folded, obstacle = _without_repeated_env(name, spec)
    beyond = ""
    if filled:
        own = {
            "labels": labels,
            "annotations": annotations,
            "finalizers": metadata.get("finalizers"),
        }
        beyond = limit_problem("Pod", {"metadata": own, "spec": spec})
        beyond = beyond and f"template {quoted(name)}: {beyond}"
    lacking, mounts = missing_image(spec), mounts_without_volume(spec)
    text = msgspec.json.encode([metadata, folded])
    bulk = Bulk.of(text, folded)
    return Template(
        name=name,
        labels=labels,
        annotations=annotations,
        finalizers=metadata.get("finalizers") or [],
        spec_source=spec,
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
        mounts=mounts,
        watched=has_served_gate(spec),
        limit_problem=beyond,
        missing_image=lacking and f"template {quoted(name)}: {lacking}",
        obstacle=beyond or obstacle or _repetition_problem(name, spec),
        bulk=bulk,
        suits_all=not lacking and not mounts and bulk.is_small,
        # A pod also has its images in an annotation. Twice their length leaves room for the
        # backslashes that escape quotation marks in JSON within JSON.
        size=len(text) + 2 * len(msgspec.json.encode(images)),
        meaning=Meaning(lambda: spec_of(body)),
    )


def spec_of(
    body: Any, claims: frozenset[str] = frozenset(), forms: Forms = FORMS
) -> dict[str, Any]:
    """Returns the pod spec of a template in canonical form, without volumes that claims replace.

    Args:
        body: the template.
        claims: names of the claim templates, which replace volumes of the same name.
        forms: functions that compute canonical forms.
    """
    spec: dict[str, Any] = forms.canonical(body["spec"])
    if claims and "volumes" in spec:
        kept = [item for item in spec["volumes"] if item["name"] not in claims]
        spec = {**spec, "volumes": kept}
    return spec


def _for_every_pod(entries: dict[str, str]) -> dict[str, str]:
    """Returns labels or annotations without the keys that belong to a single pod.

    Revisions include those keys, because all pods had them once, and the revision of an unchanged
    template must not change.
    """
    return {key: value for key, value in entries.items() if key not in NEVER_IN_TEMPLATES}


def _without_repeated_env(name: str, spec: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Returns a pod spec in which no container has two environment variables of the same name.

    The second value is the reason if the repetitions cannot be removed; the spec is then returned
    unchanged. The second value is empty if they can be removed.

    Args:
        name: the name of the template, for the reason.
        spec: the pod spec.
    """
    folded = dict(spec)
    try:
        for section in ("containers", "initContainers"):
            if section in spec:
                folded[section] = without_repeats(spec[section])
    except RepeatedEnvError as error:
        why = f"template {quoted(name)}: {error}; Metacontroller cannot apply both: write it once"
        return spec, why
    return folded, ""


def _repetition_problem(name: str, spec: dict[str, Any]) -> str:
    """Returns why the API server would refuse a pod with a repeated entry, or an empty string.

    Args:
        name: the name of the template, for the message.
        spec: the pod spec, which may repeat an entry.
    """
    found = repetition(spec)
    return f"template {quoted(name)}: {found}: the API server refuses such a pod" if found else ""


def has_served_gate(spec: dict[str, Any]) -> bool:
    """Returns True if a pod spec has a readiness gate that this service opens and closes."""
    return any(gate.get("conditionType") in GATES for gate in maps_of(spec.get("readinessGates")))


def claim_name(claim_template: dict[str, Any]) -> str:
    """Returns the name of a claim template, or an empty string if it has no name."""
    return text_of(map_in(claim_template, "metadata").get("name"))


def running(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the main containers and native sidecars of a pod spec, which keep running."""
    return [
        item
        for section in ("containers", "initContainers")
        for item in spec.get(section) or []
        if revision.runs_on(section, item)
    ]
