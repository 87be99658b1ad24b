"""Assumptions of a plan without a cluster: all components and StorageClasses exist.

Without these assumptions, a plan would report refusals that most clusters would not cause.
`assumption_sentences` tells the user what was assumed.
"""

from collections.abc import Iterable, Iterator

from kubectl_tapp.base import shipped
from kubectl_tapp.base.observed import Document
from kubectl_tapp.cluster.registration import Registration, with_components
from kubectl_tapp.forecast.forecast import Forecast
from kubectl_tapp.forecast.templates import read_spec, template_bodies
from simulator.api.admission import DEFAULT_CLASS
from tapp.words.vocabulary import GATES
from tapp.world import Options


def registration() -> Registration:
    """Returns the CompositeController of this release with all components, and the default
    options.
    """
    return Registration(with_components(shipped.manifest(shipped.COMPOSITE)), Options(resize=True))


def storage_classes(claims: Iterable[Document] = ()) -> list[Document]:
    """Returns the StorageClasses that a plan assumes to exist; all of them allow volume expansion.

    These are a default class, and the classes that the given claims name.
    """
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


def assumption_sentences(found: Forecast, *tapps: Document) -> Iterator[str]:
    """Yields a sentence for each assumption that affects the forecast.

    `found` is the forecast, and `tapps` are the TApps before and after the edit.
    """
    if "grown" in found.claims.values():
        yield "StorageClasses are assumed to let claims grow (allowVolumeExpansion: true)"
    if "modified" in found.claims.values():
        yield "the storage driver is assumed to accept the VolumeAttributesClass of the claims"
    specs = [spec for tapp in tapps if (spec := read_spec(tapp)) is not None]
    if any(spec.service_template is not None for spec in specs):
        yield "the component services is assumed to be installed, which creates the Services"
    if any(spec.disruption_budget is not None for spec in specs):
        yield "the component disruption-budgets is assumed to be installed (disruptionBudget)"
    if any(spec.resizes for spec in specs):
        yield "the component resize is assumed to be installed (resources: InPlace)"
    if any(spec.update_strategy.in_place_update_strategy.pre_pull for spec in specs):
        yield "nodes are assumed to have no new image yet, and to mount image volumes (prePull)"
    for spec in specs:
        key = spec.update_strategy.domain
        if key and any(
            not _has_label(body, key) for tapp in tapps for body in template_bodies(tapp).values()
        ):
            yield (
                f"nodes are assumed to have no label {key}, so each instance is updated alone "
                "(updateStrategy.domain); a plan with a cluster knows the domains of its pods"
            )
            break
    if any(_has_gate(body) for tapp in tapps for body in template_bodies(tapp).values()):
        yield "the component pod-status is assumed to be installed, which opens the readiness gates"


def _has_label(body: Document, key: str) -> bool:
    labels = (body.get("metadata") or {}).get("labels") or {}
    return isinstance(labels, dict) and bool(labels.get(key))


def _has_gate(body: Document) -> bool:
    gates = (body.get("spec") or {}).get("readinessGates") or []
    return any(isinstance(gate, dict) and gate.get("conditionType") in GATES for gate in gates)
