"""Whose own template a sync fills in, where there are too many: a decision has a bound of its own.

To fill in a large template for each of thousands of instances takes minutes. So one sync fills in
so many, counted in work and not in time, as the same request has the same answer; the others keep
their pods, or get theirs with one of the next (docs/design.md, "Own values"). Those whose pod says
that it is made of the template as it is now are not looked at again, once a sync of this generation
has: `status.outdated` has the others.
"""

from tapp.declared.templates import Template, Unresolved
from tapp.kube.restarts import COMPLETED
from tapp.pod.pod import Pod
from tapp.storage.records import Contents, content_name
from tapp.words.notes import decode_kept
from tapp.words.ranges import numbers
from tapp.words.reasons import Reason
from tapp.words.vocabulary import InstanceStatus
from tapp.world import World

MOST = 500_000  # Work of one sync, in `Slots.weight`: of about five microseconds each
_EACH = 10  # Work for an instance, however little is filled in
LATER = "its template is filled in with one of the next answers: there is too much for one"


def is_late(template: Template | Unresolved) -> bool:
    """True if it is only filled in by a later sync."""
    return isinstance(template, Unresolved) and template.reason is Reason.WAITING_FOR_TURN


class Filling:
    """Gives instances their templates; `whole` if all of them are filled in, as nearly always.

    `known`: instances whose pod is known to run its template, without another look.
    """

    def __init__(self, world: World) -> None:
        """Counts what there is to do."""
        self._world, self._templates, spec = world, world.templates, world.tapp.spec
        weights = {
            name: found.slots.weight + _EACH
            for name in {*spec.templates.values(), spec.default_name}
            if isinstance(found := world.templates.named(name), Template) and found.slots
        }
        self._weights = weights
        self._chosen, self.known = set[int](), set[int]()
        self.whole = not weights or self._work() <= MOST
        if not self.whole:
            self._choose()

    def of(self, id: int) -> Template | Unresolved:
        """The template that an instance is to run, as far as this sync knows it."""
        if self.whole or id in self._chosen:
            return self._templates.of(id)
        name = self._world.tapp.spec.template_name(id)
        if name not in self._weights:
            return self._templates.of(id)
        if id in self.known:
            return Unresolved(name, "runs its template", Reason.UP_TO_DATE)
        return Unresolved(name, LATER, Reason.WAITING_FOR_TURN)

    def newest(self, id: int) -> Template | Unresolved:
        """The template that the spec gives an instance; as it is written, if there is too much."""
        if self.whole:
            return self._templates.of(id)
        return self._templates.named(self._world.tapp.spec.template_name(id))

    def _work(self) -> int:
        spec, surplus = self._world.tapp.spec, len(self._world.pods)
        named = [
            self._weights.get(spec.template_name(id), 0)
            for id in range(spec.replicas)
            if str(id) in spec.templates
        ]
        rest = spec.replicas - len(named) + surplus
        return sum(named) + rest * self._weights.get(spec.default_name, 0)

    def _choose(self) -> None:
        spec, status, pods = self._world.tapp.spec, self._world.tapp.status, self._world.pods
        answered = status.observed_generation == self._world.tapp.metadata.generation
        outdated = set(numbers(status.outdated))
        kept = self._kept_elsewhere()
        first, then = list[int](), list[int]()
        for id in range(spec.replicas):
            name = spec.template_name(id)
            if name not in self._weights or spec.statuses.get(str(id)) == InstanceStatus.KILLED:
                continue
            pod = pods.get(id)
            if pod is None or pod.phase in COMPLETED:
                first.append(id)
            elif id not in kept:
                if answered and id not in outdated and self._is_made_of(pod, name):
                    self.known.add(id)
                else:
                    then.append(id)
        left = MOST
        for id in (*first, *then):
            if left <= 0:
                break
            self._chosen.add(id)
            left -= self._weights[spec.template_name(id)]

    def _kept_elsewhere(self) -> set[int]:
        """Instances that a partition keeps at another content than the newest."""
        spec, kept = self._world.tapp.spec, self._world.tapp.status.kept
        if spec.update_strategy.partition == 0 or not kept:
            return set()
        content = Contents(self._world).of(spec.rolling_name)
        newest = "" if content is None else content_name(content)
        return {id for id, revision in decode_kept(kept).items() if revision != newest}

    def _is_made_of(self, pod: Pod, name: str) -> bool:
        found = self._templates.named(name)
        return (
            isinstance(found, Template)
            and pod.spec.written == found.revision
            and not (pod.terminating or pod.unreadable or pod.foreign)
            and not (pod.spec.asked or pod.image_writers)
        )
