"""Meaning of a pod spec, however it is written: which two make the same pod?

Those of which the API server stores the same: whether a default is written out or left out plays no
part (`tapp/kube/stored.py`). The order of lists does, because it is stored. Revisions are hashes of
what is written, and are frozen; so this is asked where they differ.
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
    """A pod spec in the one form of all that make the same pod, but for default tolerations."""
    made = dict(spec)
    for section in _SECTIONS:
        try:
            if section in spec:
                made[section] = without_repeats(spec[section])
        except RepeatedEnvError:
            made[section] = spec[section]  # no pod is made of it
    found: Document = comparable(admitted_spec(stored_spec(made)))
    return found


class Content(NamedTuple):
    """Digests of a template's meaning: equal parts mean the same."""

    uniq: str  # hash of its spec, without the images of running containers and without tolerations
    bare: str  # the same without the resources of running containers
    tolerations: list[Document]  # as they are written: what is added to them is the cluster's
    pulling: frozenset[str]  # containers that say `imagePullPolicy: Always`


@dataclass(eq=False, slots=True)
class Meaning:
    """Meaning of a template: found out when it is first asked for, and then known."""

    spec: Callable[[], Document]  # makes its pod spec, in canonical form, with all of its volumes
    _found: Content | None = None

    @property
    def content(self) -> Content:
        """Parts to compare."""
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
