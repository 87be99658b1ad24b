"""Decides whether two pod specs make the same pod although they are written differently.

They do if the API server would store both identically: a default may be written out or left out
(`tapp/kube/stored.py`). The order of lists counts, because it is stored. Revisions are frozen
hashes of what the author wrote, so two revisions may have the same meaning. The rules compare
meanings only if revisions differ.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from tapp.declared.revision import digest, without_images, without_resources
from tapp.kube.canonical import comparable
from tapp.kube.env import RepeatedEnvError, without_repeats
from tapp.kube.stored import admitted_spec, stored_spec

Document = dict[str, Any]

_SECTIONS = ("containers", "initContainers")


def meaning(spec: Document) -> Document:
    """Returns the canonical form of a pod spec: specs that make the same pod have the same one.

    Default tolerations are not added, because the cluster's settings decide on them.
    """
    folded = dict(spec)
    for section in _SECTIONS:
        try:
            if section in spec:
                folded[section] = without_repeats(spec[section])
        except RepeatedEnvError:
            # No pod can be made from such a spec, so this form is only used to compare it.
            folded[section] = spec[section]
    found: Document = comparable(admitted_spec(stored_spec(folded)))
    return found


class Content(NamedTuple):
    """Digests of a template's meaning; templates with equal parts make the same pod."""

    uniq: str  # Hash of the spec without images of running containers and without tolerations.
    bare: str  # Hash of the spec that also lacks the resources of running containers.
    # The tolerations as the author wrote them. The cluster adds its defaults to them.
    tolerations: list[Document]
    pulling: frozenset[str]  # Names of the containers with `imagePullPolicy: Always`.


@dataclass(eq=False, slots=True)
class Meaning:
    """The meaning of a template, which depends on nothing but the template's spec.

    It costs time to compute, and few templates are compared, so it is computed on first use.
    """

    # Returns the template's pod spec in canonical form, with all of its volumes.
    spec: Callable[[], Document]
    _found: Content | None = None

    @property
    def content(self) -> Content:
        if self._found is None:
            self._found = _content(self.spec())
        return self._found


def _content(spec: Document) -> Content:
    blanked = without_images(meaning(spec))
    tolerations = blanked.pop("tolerations", [])
    pulling = frozenset(
        item["name"]
        for section in _SECTIONS
        for item in spec.get(section) or []
        if item.get("imagePullPolicy") == "Always"
    )
    return Content(digest(blanked), digest(without_resources(blanked)), tolerations, pulling)
