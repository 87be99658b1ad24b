"""Services of the instances (`spec.serviceTemplate`): which stay, are created, changed or deleted.

Entry point: `plan_services`. Each instance's Service has the name of the instance's pod and selects
that pod only. A Service whose spec Metacontroller has never written belongs to somebody else,
whatever its labels are, and is left alone. A Service is deleted only if it certainly is a Service
of this TApp and no instance needs it (docs/service-each.md).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from tapp.declared.lookup import Templates
from tapp.declared.placeholders import LARGEST, UnfilledError
from tapp.declared.revision import own_annotations, own_labels
from tapp.declared.shapes import metadata_problem
from tapp.kube.limits import limit_problem
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
    """The Services that the response keeps, applies and leaves out (deletes), and the problems."""

    keep: list[Manifest] = field(default_factory=list)  # Observed Services that stay as they are.
    apply: dict[int, Document] = field(default_factory=dict)  # Instance -> its Service.
    delete: list[str] = field(default_factory=list)  # Names of the observed Services to delete.
    # True if further Services have to wait for the next sync, because this response is full.
    waits: bool = False
    # Instances whose Service does not exist or still differs.
    missing: list[int] = field(default_factory=list)
    # Instances whose Service name is taken by a Service of somebody else.
    taken: list[int] = field(default_factory=list)
    # Reason why a Service cannot be applied -> the instances concerned; an empty list if it
    # concerns all.
    problems: dict[str, list[int]] = field(default_factory=dict)


class OwnServices:
    """Builds the Service of each instance from `spec.serviceTemplate`.

    `problem` says why the template cannot be used; it is empty if the template can be used.
    """

    def __init__(self, templates: Templates, uid: str) -> None:
        """Checks the Service template of a spec.

        Args:
            templates: the spec, which also fills in placeholders.
            uid: the uid of the TApp, for the selectors of the Services.
        """
        self._templates, self._uid = templates, uid
        self._body: Document = templates.spec.service_template or {}
        self._common: tuple[Document, Document] | None = None
        slots = templates.service_slots
        self.problem = _shape_problem(self._body)
        if isinstance(slots, str):
            self.problem = self.problem or slots
        else:
            self._slots = slots

    def of(self, instance: int) -> Document:
        """Returns the manifest of an instance's Service; `instance` is the number of the instance.

        Raises UnfilledError if a value is missing or wrong, or if a Service cannot have the pod's
        name.
        """
        name = f"{self._templates.app}-{instance}"
        if not is_dns_label(name):
            raise UnfilledError(
                f"the Service would be named {quoted(name)} as its pod is, and the name of a "
                "Service is a DNS label: at most 63 lowercase letters, digits and '-', without "
                "'.'. Create the TApp again with such a name, or remove spec.serviceTemplate"
            )
        if self._slots:
            own = self._templates.texts_of(self._slots, instance)
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
        # The uid keeps a later TApp of the same name from receiving the traffic of this one.
        selector = {CONTROLLER_UID: self._uid, INSTANCE: str(instance)}
        return {**SERVICE.type_meta, "metadata": metadata, "spec": {**spec, "selector": selector}}

    def desired(self, instance: int, service: Manifest | None) -> tuple[Document, bool]:
        """Returns the manifest of an instance's Service, and whether it has to be written.

        Raises UnfilledError if a value is missing or wrong, or if the API server would refuse the
        Service.

        Args:
            instance: the number of the instance.
            service: the observed Service; None if it does not exist.

        Returns:
            The manifest. The second value is True if the observed Service differs from it or is
            missing.
        """
        desired = self.of(instance)
        # The projection leaves out the fields that the API server has defaulted.
        differs = service is None or project(service.document, desired) != desired
        # An applied Service has passed the checks already, so only a new or changed one is checked.
        if differs:
            why = limit_problem("Service", desired) or annotations_problem(desired, self._uid)
            if why:
                raise UnfilledError(why)
        return desired, differs


def _parts(body: Document) -> tuple[Document, Document]:
    """Returns the metadata and the spec of a Service template.

    The caller has filled in the placeholders of `body`, the template. Raises UnfilledError if
    Metacontroller could not apply the spec.
    """
    spec = encoded(_without_blanks(body["spec"]))
    if (path := duplicate_merge_key(spec)) is not None:
        raise UnfilledError(
            f"spec{path} has one port number twice, which Metacontroller cannot apply: give each "
            "entry a number of its own"
        )
    return body.get("metadata") or {}, spec


def is_ours(service: Manifest) -> bool:
    """Returns True if Metacontroller has written a Service for this TApp.

    In that case Metacontroller's annotation with the last applied object contains a spec.
    Metacontroller also adopts Services of other authors whose labels match. Its annotation on these
    Services has no spec.
    """
    return service.projected is not None and "spec" in service.projected


def plan_services(world: World, wanted: Mapping[int, bool], most_bytes: int) -> ServicePlan:
    """Decides which Services of a TApp are kept, applied and deleted.

    The caller has checked that the TApp is not being deleted.

    Args:
        world: the TApp with its children.
        wanted: number of an instance that needs a Service -> True if the instance's pod has a node.
        most_bytes: approximate limit of the bytes to write in this sync; at least one Service is
            written.
    """
    rest, written = dict(world.plain.get(SERVICE, {})), 0
    if SERVICE not in world.declared.plain:
        # The CompositeController does not declare Services as children that are updated.
        return ServicePlan(keep=[*rest.values()])
    prefix, result = f"{world.tapp.metadata.name}-", ServicePlan()
    if world.tapp.spec.service_template is not None:
        own = OwnServices(world.templates, world.tapp.metadata.uid)
        if own.problem:
            return ServicePlan(keep=[*rest.values()], problems={own.problem: []})
        for instance, is_on_node in wanted.items():
            service = rest.pop(f"{prefix}{instance}", None)
            kept = [] if service is None else [service]
            # A response with this Service's spec would overwrite the Service of somebody else.
            if service is not None and not is_ours(service):
                result.taken.append(instance)
                result.keep += kept
                continue
            if written >= most_bytes:
                result.waits = True
                result.keep += kept
                continue
            try:
                desired, differs = own.desired(instance, service)
            except UnfilledError as error:
                result.problems.setdefault(str(error), []).append(instance)
                result.keep += kept
                continue
            result.apply[instance] = desired
            if differs:
                written += len(msgspec.json.encode(desired))
            # A new Service is missed only when its pod could be serving.
            if differs and (service is not None or is_on_node):
                result.missing.append(instance)
    for name, service in rest.items():
        if is_ours(service) and instance_number(name, prefix) is not None:
            result.delete.append(name)
        else:
            result.keep.append(service)
    return result


def _shape_problem(body: Document) -> str:
    """Returns why a Service template cannot be used, or an empty string if it can."""
    spec = body.get("spec")
    # The response may contain one filled-in copy for each instance.
    size = len(msgspec.json.encode(body))
    if size > LARGEST:
        return f"it has {size} bytes, and each instance gets a copy; at most {LARGEST}"
    if not isinstance(spec, dict):
        return "spec is missing" if spec is None else "spec is not an object"
    if "selector" in spec:
        return "spec.selector: leave it out; each Service selects the pod of its instance"
    return metadata_problem(body.get("metadata") or {})


def _without_blanks(value: Any) -> Any:
    """Returns the spec of a Service without its empty values, at any depth.

    The API server drops empty values, replaces them with defaults, or refuses them.
    """
    if isinstance(value, dict):
        items = {key: _without_blanks(item) for key, item in value.items()}
        return {key: item for key, item in items.items() if item not in (None, "", [], {})}
    return [_without_blanks(item) for item in value] if isinstance(value, list) else value
