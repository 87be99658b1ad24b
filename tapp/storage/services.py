"""Services of the instances' own: which stay, which are made or changed, which go.

Each selects exactly the pod of its instance, and has its name. A Service that Metacontroller was
never told to write is somebody else's, whatever its labels say, and is left alone; what has no
place for certain is deleted, what is in doubt stays (docs/design.md, "A Service each").
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from tapp.declared.lookup import Templates
from tapp.declared.placeholders import LARGEST, UnfilledError
from tapp.declared.revision import own_annotations, own_labels
from tapp.declared.shapes import metadata_problem
from tapp.kube.limits import exceeded
from tapp.kube.names import is_dns_label
from tapp.kube.project import duplicate_merge_key, project
from tapp.kube.stored import encoded
from tapp.pod.manifest import Manifest
from tapp.storage.claims import instance_number
from tapp.storage.new_claims import annotations_problem
from tapp.words.kinds import SERVICE
from tapp.words.quoted import quoted
from tapp.words.vocabulary import CONTROLLER_UID, INSTANCE
from tapp.world import World

Document = dict[str, Any]


@dataclass
class ServicePlan:
    """Fate of the Services."""

    keep: list[Manifest] = field(default_factory=list)  # observed Services that stay as they are
    apply: dict[int, Document] = field(default_factory=dict)  # instance -> its Service as wanted
    delete: list[str] = field(default_factory=list)  # names of observed Services that go
    waits: bool = False  # some are only written with a later answer, because this one is full
    missing: list[int] = field(default_factory=list)  # whose Service is not there, or not as asked
    taken: list[int] = field(default_factory=list)  # whose name somebody else's Service has
    # why nothing can be asked for -> the instances of which that is true; none of them where it is
    # true of all
    problems: dict[str, list[int]] = field(default_factory=dict)


class OwnServices:
    """The Services, one for each instance: `spec.serviceTemplate`, filled in, or the `problem`."""

    def __init__(self, templates: Templates, uid: str) -> None:
        """`templates` know what the instances have of their own; `uid` is the TApp's."""
        self._templates, self._uid = templates, uid
        self._body: Document = templates.spec.service_template or {}
        self._common: tuple[Document, Document] | None = None
        slots = templates.service_slots()
        self.problem = _shape_problem(self._body)
        if isinstance(slots, str):
            self.problem = self.problem or slots
        else:
            self._slots = slots

    def of(self, instance: int) -> Document:
        """Returns the Service of an instance.

        Raises UnfilledError if a value is missing or wrong, or if no Service can have the name.
        """
        name = f"{self._templates.app}-{instance}"
        if not is_dns_label(name):
            raise UnfilledError(
                f"the Service would be named {quoted(name)} as its pod is, and the name of a "
                "Service is a DNS label: at most 63 lowercase letters, digits and '-', without "
                "'.'. Make the TApp anew with such a name, or remove spec.serviceTemplate"
            )
        if self._slots:
            own = self._templates.own(self._slots, instance)
            found, spec = _parts(self._slots.filled(self._body, own))
        else:
            self._common = self._common or _parts(self._body)
            found, spec = self._common
        metadata: Document = {
            "name": name,
            "namespace": self._templates.namespace,
            "labels": {**own_labels(found), INSTANCE: str(instance)},
        }
        if annotations := own_annotations(found):
            metadata["annotations"] = annotations
        selector = {CONTROLLER_UID: self._uid, INSTANCE: str(instance)}
        return {**SERVICE.type_meta, "metadata": metadata, "spec": {**spec, "selector": selector}}

    def asked(self, instance: int, service: Manifest | None) -> tuple[Document, bool]:
        """Returns the Service of an instance, and if it differs from the one that is there.

        Raises UnfilledError if a value is missing or wrong, or the API server would refuse it.
        """
        asked = self.of(instance)
        differs = service is None or project(service.document, asked) != asked
        if differs:
            why = exceeded("Service", asked) or annotations_problem(asked, self._uid)
            if why:
                raise UnfilledError(why)
        return asked, differs


def _parts(body: Document) -> tuple[Document, Document]:
    """Metadata and spec of a plain template. UnfilledError: Metacontroller could not apply it."""
    spec = encoded(_without_blanks(body["spec"]))
    if (path := duplicate_merge_key(spec)) is not None:
        raise UnfilledError(
            f"spec{path} has one port number twice, which Metacontroller cannot apply: give each "
            "entry a number of its own"
        )
    return body.get("metadata") or {}, spec


def is_ours(service: Manifest) -> bool:
    """True if Metacontroller wrote it for this TApp: one that it only adopted has no spec of it."""
    return service.projected is not None and "spec" in service.projected


def plan_services(world: World, wanted: Mapping[int, bool], most_bytes: int) -> ServicePlan:
    """Sorts the Services of a living TApp.

    `wanted`: instance that is to have one -> whether its pod is on a node. About so many bytes may
    be written anew with one answer, and one Service at least.
    """
    rest, written = dict(world.plain.get(SERVICE, {})), 0
    if SERVICE not in world.declared.plain:
        return ServicePlan(keep=[*rest.values()])  # by a registration unlike ours
    prefix, result = f"{world.tapp.metadata.name}-", ServicePlan()
    if world.tapp.spec.service_template is not None:
        own = OwnServices(world.templates, world.tapp.metadata.uid)
        if own.problem:
            return ServicePlan(keep=[*rest.values()], problems={own.problem: []})
        for instance, is_on_node in wanted.items():
            service = rest.pop(f"{prefix}{instance}", None)
            kept = [] if service is None else [service]
            if service is not None and not is_ours(service):
                result.taken.append(instance)
                result.keep += kept
                continue
            if written >= most_bytes:
                result.waits = True
                result.keep += kept
                continue
            try:
                asked, differs = own.asked(instance, service)
            except UnfilledError as error:
                result.problems.setdefault(str(error), []).append(instance)
                result.keep += kept
                continue
            result.apply[instance] = asked
            if differs:
                written += len(msgspec.json.encode(asked))
            if differs and (service is not None or is_on_node):
                result.missing.append(instance)
    for name, service in rest.items():
        if is_ours(service) and instance_number(name, prefix) is not None:
            result.delete.append(name)
        else:
            result.keep.append(service)
    return result


def _shape_problem(body: Document) -> str:
    spec = body.get("spec")
    size = len(msgspec.json.encode(body))
    if size > LARGEST:
        return f"it has {size} bytes, and each instance would have its own; at most {LARGEST}"
    if not isinstance(spec, dict):
        return "spec is missing" if spec is None else "spec is not an object"
    if "selector" in spec:
        return "spec.selector: leave it out; each Service selects the pod of its instance"
    return metadata_problem(body.get("metadata") or {})


def _without_blanks(value: Any) -> Any:
    """A spec without what is empty; the API server fills that in itself, or refuses it."""
    if isinstance(value, dict):
        items = {key: _without_blanks(item) for key, item in value.items()}
        return {key: item for key, item in items.items() if item not in (None, "", [], {})}
    return [_without_blanks(item) for item in value] if isinstance(value, list) else value
