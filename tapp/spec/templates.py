"""Templates of one spec: what each name stands for, and its revision."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from tapp.kube.canonical import canonical
from tapp.kube.env import RepeatedEnvError, without_repeats
from tapp.spec import revision
from tapp.spec.model import TAppSpec
from tapp.spec.reads import Reads, problem_of, read_by, requests_of
from tapp.words.vocabulary import GATES, NEVER_IN_TEMPLATES, TEMPLATE_HASH


class Hashes(NamedTuple):
    """Two hashes of what a template says beyond images and metadata: with resources, without."""

    whole: str
    bare: str


@dataclass(frozen=True)
class Template:
    """A pod template that resolved.

    Attributes:
        name: its name in the TApp.
        labels: the author's labels, as far as they are for every pod.
        annotations: the author's annotations, likewise.
        finalizers: the author's finalizers, set at creation only.
        spec: the pod spec in canonical form (`canonical.canonical`), without the volumes that
            claims of the same name take precedence over.
        revision: hash of everything above, as it was written.
        uniq: hash of the spec with the images of running containers blanked.
        other_revision: what `revision` is where the resources of running containers count and here
            they do not, or the other way round.
        hashes: `uniq` with these resources, and without.
        ignores_resources: whether they are left to others, and are in neither hash.
        images: name of a running container -> its image.
        reads: what each running container has of its pod's metadata (`reads.py`).
        not_restarted: containers that annotations ask by name to restart, and that do not run on.
        watched: whether it has a readiness gate that this service opens and closes.
        obstacle: why no pod can be made of it that Metacontroller could ever update, or "".
        size: bytes of all this in a new pod's JSON, about, and never too few.
    """

    name: str
    labels: dict[str, str]
    annotations: dict[str, str]
    finalizers: list[str]
    spec: dict[str, Any]
    revision: str
    uniq: str
    other_revision: str
    hashes: Hashes
    ignores_resources: bool
    images: dict[str, str]
    reads: Reads
    not_restarted: list[str]
    watched: bool
    obstacle: str
    size: int


@dataclass(frozen=True)
class Unresolved:
    """A template name that leads nowhere, and why; `message` is for the TApp's author."""

    name: str
    message: str


@dataclass
class Templates:
    """Looks templates up by name, each one canonicalised and hashed at most once.

    May serve all requests that show the same spec: nobody changes what is in it.
    """

    spec: TAppSpec
    _found: dict[str, Template | Unresolved] = field(default_factory=dict)

    def of(self, instance: int) -> Template | Unresolved:
        """The template that `instance` should run."""
        return self.named(self.spec.template_name(instance))

    def named(self, name: str) -> Template | Unresolved:
        """The template called `name`."""
        found = self._found.get(name)
        if found is None:
            found = self._found[name] = self._resolve(name)
        return found

    def _resolve(self, name: str) -> Template | Unresolved:
        body = self.spec.find_template(name)
        if body is None:
            return Unresolved(name, f"template {name!r} is neither in spec.templatePool{_or(name)}")
        claims = frozenset(claim_name(claim) for claim in self.spec.volume_claim_templates)
        return resolve(name, body, claims, ignores_resources=self.spec.ignores_resources)


def resolve(
    name: str,
    body: Any,
    claims: frozenset[str] = frozenset(),
    *,
    ignores_resources: bool = False,
) -> Template | Unresolved:
    """A template's body, canonicalised and hashed.

    Args:
        name: its name.
        body: as its author wrote it.
        claims: names of the claim templates.
        ignores_resources: see `Template`.
    """
    problem = _problem(body)
    if problem:
        return Unresolved(name, f"template {name!r} cannot be used: {problem}")
    metadata = body.get("metadata") or {}
    whole = bare = revision.revisions(body)
    without = revision.without_resources(body["spec"])
    if without is not body["spec"]:
        bare = revision.revisions({**body, "spec": without})
    (full, uniq), (other, _) = (bare, whole) if ignores_resources else (whole, bare)
    spec = canonical(body["spec"])
    if claims and "volumes" in spec:
        spec["volumes"] = [item for item in spec["volumes"] if item["name"] not in claims]
    labels = _for_every_pod(revision.own_labels(metadata))
    annotations = _for_every_pod(revision.own_annotations(metadata))
    runs = running(spec)
    images = {item["name"]: item["image"] for item in runs if "image" in item}
    folded, obstacle = _folded(name, spec)
    text = msgspec.json.encode([metadata, folded])
    return Template(
        name=name,
        labels=labels,
        annotations=annotations,
        finalizers=metadata.get("finalizers") or [],
        spec=spec,
        revision=full,
        uniq=uniq,
        other_revision=other,
        hashes=Hashes(whole[1], bare[1]),
        ignores_resources=ignores_resources,
        images=images,
        reads=read_by(runs, {**labels, TEMPLATE_HASH: full}, annotations),
        not_restarted=[
            name
            for name in requests_of(annotations)
            if name not in {"", *(i["name"] for i in runs)}
        ],
        watched=has_served_gate(spec),
        obstacle=obstacle,
        size=len(text) + 2 * len(msgspec.json.encode(images)),  # a text within a text
    )


def _for_every_pod(entries: dict[str, str]) -> dict[str, str]:
    """Labels or annotations without what tells of one pod only; the revision counts that, too.

    (It did before such were left out of pods, and another revision would touch the pods.)
    """
    return {key: value for key, value in entries.items() if key not in NEVER_IN_TEMPLATES}


def _folded(name: str, spec: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The spec with each variable once, or why there is none."""
    folded = dict(spec)
    try:
        for section in ("containers", "initContainers"):
            folded[section] = without_repeats(spec.get(section) or [])
    except RepeatedEnvError as error:
        why = f"template {name!r}: {error}; Metacontroller cannot apply both: write it once"
        return spec, why
    return folded, ""


def has_served_gate(spec: dict[str, Any]) -> bool:
    """Whether a pod spec has a readiness gate that this service opens and closes."""
    gates = spec.get("readinessGates")
    items = gates if isinstance(gates, list) else []
    return any(isinstance(gate, dict) and gate.get("conditionType") in GATES for gate in items)


def claim_name(claim_template: dict[str, Any]) -> str:
    """The name of a claim template, "" where it has none."""
    metadata = claim_template.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) else ""


def running(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """The containers of a pod spec that keep running: containers and native sidecars."""
    return [
        item
        for section in ("containers", "initContainers")
        for item in spec.get(section) or []
        if revision.runs_on(section, item)
    ]


def _or(name: str) -> str:
    return " nor set as spec.template" if name == "default" else " nor 'default'"


_UNNAMED = ("tolerations", "readinessGates")


def _problem(body: Any) -> str:
    """Why no pod can be made of a template, or "": the shapes that the rest relies on."""
    if not isinstance(body, dict):
        return "it is not an object"
    metadata = body.get("metadata") or {}
    if not isinstance(metadata, dict):
        return "metadata is not an object"
    for part in ("labels", "annotations"):
        entries = metadata.get(part) or {}
        if not isinstance(entries, dict):
            return f"metadata.{part} is not an object"
        for key, value in entries.items():
            if value is not None and not isinstance(value, str):
                return f"metadata.{part}[{key!r}] is not a string"
    if problem := problem_of(metadata.get("annotations") or {}):
        return problem
    spec = body.get("spec")
    if not isinstance(spec, dict):
        return "spec is missing" if spec is None else "spec is not an object"
    if not spec.get("containers"):
        return "spec.containers is empty"
    for section in ("containers", "initContainers", "volumes", *_UNNAMED):
        items = spec.get(section)
        problem = _list_problem(section, [] if items is None else items)
        if problem:
            return problem
    return ""


def _list_problem(section: str, items: Any) -> str:
    if not isinstance(items, list):
        return f"spec.{section} is not a list"
    names = set()
    for index, item in enumerate(items):
        where = f"spec.{section}[{index}]"
        if not isinstance(item, dict):
            return f"{where} is not an object"
        if section in _UNNAMED:
            continue
        name = item.get("name")
        if not isinstance(name, str) or not name:
            return f"{where}.name is missing"
        if name in names:
            return f"{where}.name {name!r} is taken by an earlier entry"
        names.add(name)
        if not isinstance(item.get("image", ""), str):
            return f"{where}.image is not a string"
    return ""
