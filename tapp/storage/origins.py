"""The templates that pods were made of: as the history has them, or else the pods themselves."""

from tapp.pod.applied import applied_body
from tapp.pod.pod import Pod
from tapp.spec.templates import Template, resolve
from tapp.storage.records import Recorded
from tapp.world import World


class Origins:
    """Looks up what pods of ours were made of."""

    def __init__(self, world: World, most: int) -> None:
        """Nothing is looked at yet. `most` is as much as is filled in."""
        self._world, self._recorded = world, Recorded(world, most)

    @property
    def full(self) -> bool:
        """True if some could not be filled in, because there is too much for one sync."""
        return self._recorded.full

    def recorded(self, pod: Pod, instance: int, called: str) -> Template | None:
        """The template that a pod was made of or updated to; None where no record has it.

        Args:
            pod: the pod.
            instance: its number.
            called: what its template is called now.
        """
        label = pod.spec.written or pod.spec.template_hash or ""
        name = self._recorded.of_pod(pod, instance, called, ())
        if not label or not name.startswith(label):
            return None
        return self._recorded.template(name, instance, called)

    def applied(self, pod: Pod) -> Template | None:
        """The same as the pod's own text has it; None where that does not tell.

        Resources there may be somebody's resize: they are believed only if the revision says so.
        """
        body = applied_body(self._world.manifest_of(pod))
        if body is None:
            return None
        found = resolve("", body, ignores_resources=self._world.tapp.spec.ignores_resources)
        if not isinstance(found, Template):
            return None
        known = pod.spec.template_hash in (found.revision, found.other_revision)
        return found if known or found.hashes.whole == found.hashes.bare else None
