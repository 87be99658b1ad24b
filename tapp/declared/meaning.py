"""Decides whether two pod specs create the same pod although they are written differently.

Two specs create the same pod if the API server would store them identically. For example, a default
may be written or left out (`tapp/kube/stored.py`). The order of lists counts, because the API
server keeps it.

Revisions are frozen hashes of templates as their author wrote them, so templates with different
revisions may create the same pod. Canonical forms are compared only if the revisions differ.
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
    """Returns the canonical form of a pod spec, which is equal for specs that create the same pod.

    Default tolerations are not added, because they depend on the settings of the cluster.
    """
    folded = dict(spec)
    for section in _SECTIONS:
        try:
            if section in spec:
                folded[section] = without_repeats(spec[section])
        except RepeatedEnvError:
            # The API server accepts no pod with such a spec, so the section is compared as it is.
            folded[section] = spec[section]
    found: Document = comparable(admitted_spec(stored_spec(folded)))
    return found


class Content(NamedTuple):
    """The parts of a template's canonical form that are compared with those of another template.

    Two templates whose parts are all equal create the same pod, apart from images.
    """

    uniq: str  # Hash of the spec without images of running containers and without tolerations.
    bare: str  # Hash of the spec that also lacks the resources of running containers.
    # The tolerations of the template, without those that the cluster adds by default.
    tolerations: list[Document]
    pulling: frozenset[str]  # Names of the containers with `imagePullPolicy: Always`.


@dataclass(eq=False, slots=True)
class Meaning:
    """The canonical form of a template's spec, for comparisons with other templates.

    It is computed on first use, because the computation takes time and few templates are compared.
    """

    # Returns the template's pod spec in canonical form, with all of its volumes.
    spec: Callable[[], Document]
    _found: Content | None = None

    @property
    def content(self) -> Content:
        """The hashes and other parts of the canonical form, computed on first use."""
        if self._found is None:
            self._found = _content(self.spec())
        return self._found


def _content(spec: Document) -> Content:
    """Returns the hashes and other parts of a pod spec's canonical form."""
    blanked = without_images(meaning(spec))
    tolerations = blanked.pop("tolerations", [])
    pulling = frozenset(
        item["name"]
        for section in _SECTIONS
        for item in spec.get(section) or []
        if item.get("imagePullPolicy") == "Always"
    )
    return Content(digest(blanked), digest(without_resources(blanked)), tolerations, pulling)
