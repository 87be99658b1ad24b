"""Assumptions of a plan without a cluster: whatever its files need is there. That is said.

Only a cluster knows its components and its StorageClasses. To plan as if they were missing would
refuse what most clusters do.
"""

from collections.abc import Iterable, Iterator

from kubectl_tapp.base import shipped
from kubectl_tapp.base.observed import Document
from kubectl_tapp.cluster.registration import Registration, with_services
from kubectl_tapp.forecast.forecast import Forecast
from kubectl_tapp.forecast.templates import read_spec, template_bodies
from simulator.api.admission import DEFAULT_CLASS
from tapp.words.vocabulary import GATES
from tapp.world import Options


def registration() -> Registration:
    """The registration of this release with every component, and its operator's defaults."""
    return Registration(with_services(shipped.manifest(shipped.COMPOSITE)), Options(resize=True))


def storage_classes(claims: Iterable[Document] = ()) -> list[Document]:
    """A default StorageClass and all that claims name; all of them let their claims grow."""
    names = ["standard", *(str(each["spec"].get("storageClassName") or "") for each in claims)]
    return [_storage_class(name) for name in dict.fromkeys(filter(None, names))]


def _storage_class(name: str) -> Document:
    marks = {DEFAULT_CLASS: "true"} if name == "standard" else {}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name, "annotations": marks, "uid": name, "resourceVersion": "1"},
        "provisioner": "assumed",
        "allowVolumeExpansion": True,
    }


def said(found: Forecast, *tapps: Document) -> Iterator[str]:
    """A sentence for each thing that a plan of these TApps has taken for granted."""
    if "grown" in found.claims.values():
        yield "StorageClasses are assumed to let claims grow (allowVolumeExpansion: true)"
    specs = [spec for tapp in tapps if (spec := read_spec(tapp)) is not None]
    if any(spec.service_template is not None for spec in specs):
        yield "the component services is assumed to be installed, which makes the Services"
    if any(spec.resizes for spec in specs):
        yield "the component resize is assumed to be installed (resources: InPlace)"
    if any(spec.update_strategy.in_place_update_strategy.pre_pull for spec in specs):
        yield "nodes are assumed to have no new image yet, and to mount image volumes (prePull)"
    if any(_has_gate(body) for tapp in tapps for body in template_bodies(tapp).values()):
        yield "the component pod-status is assumed to be installed, which opens the readiness gates"


def _has_gate(body: Document) -> bool:
    gates = (body.get("spec") or {}).get("readinessGates") or []
    return any(isinstance(gate, dict) and gate.get("conditionType") in GATES for gate in gates)
