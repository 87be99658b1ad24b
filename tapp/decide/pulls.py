"""The image first: what has to be on a node before an instance there is updated in place.

docs/design.md, "The image first". Pods of our own, the pullers, mount the new images as volumes,
which makes their kubelet pull them, and runs nothing of them. A puller that has started has all of
its images. Where none can run, `status.pulling` remembers that, and no later update waits.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import NamedTuple

from tapp.decide.changes import Update
from tapp.decide.instances import Instance
from tapp.decide.judge import Verdict, wait
from tapp.decide.rollout import update_order
from tapp.declared.templates import Template
from tapp.kube.images import names_of
from tapp.pod.inplace import NO_UPDATE
from tapp.pod.pod import Pod
from tapp.pod.trouble import has_own_trouble, image_problem, trouble
from tapp.words.notes import PullerNote, StuckNote, UnableNote, decoded
from tapp.words.quoted import short
from tapp.words.ranges import joined, name_list
from tapp.words.reasons import Reason
from tapp.words.times import noted_since, past, seconds, told, written
from tapp.words.vocabulary import PULLER
from tapp.world import Options, World

_OWN, _OF_AN_IMAGE = 1_000, 150  # Bytes of a puller without images; of an image's volume and mount


def is_puller(pod: Pod) -> bool:
    """True if a pod is one of ours that pulls images."""
    return pod.foreign and pod.manifest.labels.get(PULLER) == "true"


NOT_MADE = 30.0  # Seconds for which a puller is waited for that is not there, or has ended
IN_VAIN = 10.0  # Seconds after which later pullers give way to one that is not there: full quotas
REMEMBERED = 3_600.0  # Seconds for which no update waits again where no puller could run


class Puller(NamedTuple):
    """A pod that pulls images on a node."""

    name: str  # its name, which node and images give
    node: str
    images: Mapping[str, str]  # image -> pull policy
    template: Template  # a template that runs them, whose credentials are used


@dataclass
class Pulls:
    """Pulls that come before updates."""

    holds: dict[int, Verdict] = field(default_factory=dict)  # instance -> why its update waits
    keep: list[Pod] = field(default_factory=list)  # pullers that stay; the others go
    create: list[Puller] = field(default_factory=list)  # pullers that are made
    going: list[Puller] = field(default_factory=list)  # those whose pod is there and waited for
    # puller that has not started -> since when it is waited for, RFC 3339; and where none could run
    # -> when that was found out
    since: dict[PullerNote | StuckNote | UnableNote, str] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)  # sentences on images that cannot be had
    unable: list[str] = field(default_factory=list)  # sentences on those that cannot run
    until: str = ""  # until when that is remembered, "" where it is not
    waits: list[float] = field(default_factory=list)  # seconds after which to look again
    bytes: int = 0  # of those that are made, about


def pulls(
    world: World,
    instances: Sequence[Instance],
    verdicts: Sequence[Verdict],
    options: Options,
    now: float,
) -> Pulls:
    """Decides what is pulled before the updates of this sync."""
    strategy = world.tapp.spec.update_strategy
    if not strategy.in_place_update_strategy.pre_pull:
        return Pulls()
    pulling = _Pulling(world, options, now)
    if not strategy.paused:
        pulling.all(instances, verdicts)
    return pulling.remember({i.pod.node for i in instances if i.pod is not None})


class _Pulling:
    def __init__(self, world: World, options: Options, now: float) -> None:
        self.world, self.options, self.now = world, options, now
        self.found = Pulls()
        self.there: Mapping[str, set[str]] = {}
        self.policies: dict[str, dict[str, str]] = {}
        self.names: dict[str, set[str]] = {}
        most = options.max_pullers
        self.next = wait(
            Reason.PULLING,
            f"its node is to have its new images first, as one of the next; {most} pull at once",
        )
        # One that is on its way out of a lost node may stay so for ever.
        self.made = [pod for pod in world.pullers.values() if not pod.terminating]
        self.pulling = len(self.made)
        self.turns = 0
        self.ahead = self.in_vain = False
        # A puller of unknown age is old: nothing has to wait for the room that it takes.
        ages = [now - told(pod.created, now) for pod in world.pullers.values()]
        self.others = [age for age in ages if age < options.pull_seconds]
        self.noted = decoded(PullerNote, world.tapp.status.pulling)
        self.refused = decoded(UnableNote, world.tapp.status.pulling)
        self.stuck = decoded(StuckNote, world.tapp.status.pulling)
        self.nowhere = UnableNote(options.puller_image)
        if self.made:
            self.refused.pop(self.nowhere, None)  # not everywhere, or no more

    def all(self, instances: Sequence[Instance], verdicts: Sequence[Verdict]) -> None:
        """Goes over all instances, in the order in which the budget is spent."""
        spec = self.world.tapp.spec
        strategy, rolling = spec.update_strategy, spec.rolling_name
        pairs = zip(instances, verdicts, strict=True)
        updates = [(i, v.change) for i, v in pairs if isinstance(v.change, Update)]
        self.there = _running(instances) if updates else {}
        states: dict[str, Verdict | None] = {}
        for instance, change in sorted(
            updates, key=lambda it: update_order(it[0], strategy, rolling)
        ):
            puller = self._puller(change)
            if puller is None:
                continue
            if puller.name not in states:
                states[puller.name] = self._state(puller)
            held = states[puller.name]
            if held is not None:
                self.found.holds[instance.id] = held

    def remember(self, nodes: Container[str]) -> Pulls:
        """All that was found out, and what was before, as far as it is about these nodes."""
        found, nowhere = self.found, self.nowhere
        for note, at in self.refused.items():
            if note == nowhere or (note.image == nowhere.image and note.node in nodes):
                found.since.setdefault(note, at)
        known = {n: at for n, at in found.since.items() if isinstance(n, UnableNote)}
        if not known:
            return found
        found.until = written(max(map(seconds, known.values())) + REMEMBERED)
        if not found.unable and nowhere in known:
            found.unable.append("the pods that pull them were asked for and were not there")
        elif not found.unable:
            where = name_list(sorted(note.node for note in known))
            found.unable.append(f"the pods that pull them did not start on nodes {where}")
        return found

    def _is_known_unable(self, puller: Puller) -> bool:
        notes = self.nowhere, self.nowhere._replace(node=puller.node)
        times = [self.refused.get(note, "") for note in notes]
        return any(self.now - past(at, self.now) < REMEMBERED for at in times)

    def _puller(self, change: Update) -> Puller | None:
        """The puller that an update needs on its node; None if nothing would stop or be pulled."""
        pod, template = change.pod, change.template
        runs = any(pod.container(name).now.running is not None for name in change.images)
        if not pod.node or not runs or pod.silent:
            return None
        policies = self.policies.get(template.revision)
        if policies is None:
            policies = self.policies[template.revision] = _policies(template)
        wanted = {
            image: policies[name]
            for name, image in sorted(change.images.items())
            if policies[name] != "Never"
        }
        there = self.there.get(pod.node, set())
        missing = {i: policy for i, policy in wanted.items() if there.isdisjoint(self._known(i))}
        if not missing:
            return None
        return Puller(self._name(pod.node, missing), pod.node, missing, template)

    def _known(self, image: str) -> set[str]:
        if image not in self.names:
            self.names[image] = names_of(image)
        return self.names[image]

    def _name(self, node: str, images: Iterable[str]) -> str:
        digest = sha256("\n".join([node, *sorted(images)]).encode()).hexdigest()[:10]
        return f"{self.world.tapp.metadata.name}-pull-x{digest}"

    def _state(self, puller: Puller) -> Verdict | None:
        """The delay of updates that need this puller; None where they do not wait."""
        pod, most = self.world.pullers.get(puller.name), self.options.max_pullers
        if (pod is None or not _has_started(pod)) and self._is_known_unable(puller):
            self._give_up(puller, pod)
            return None
        self.turns += 1
        full = self.found.bytes >= self.options.max_new_pods_bytes
        if self.turns > most or (pod is None and (full or self.pulling >= most)):
            return self.next
        if pod is not None and _has_started(pod):
            self.refused.pop(self.nowhere._replace(node=puller.node), None)
            if not self.in_vain:
                self._keep(puller, pod)
            return None
        if self.in_vain:
            return self.next
        own = pod is not None and self._has_own_trouble(puller, pod)
        refused = "" if pod is None else image_problem(pod)
        if refused and not own:
            sentence = f"node {short(puller.node)}: {refused}"
            self.found.failed.append(sentence)
            self._keep(puller, pod)
            return wait(Reason.PULL_FAILED, f"{sentence}; nothing is stopped for it")
        return self._patience(puller, pod, own=own)

    def _has_own_trouble(self, puller: Puller, pod: Pod) -> bool:
        return has_own_trouble(pod, self.options.puller_image, puller.images, self.now)

    def _patience(self, puller: Puller, pod: Pod | None, *, own: bool) -> Verdict | None:
        """Returns the delay of updates for a puller that has not started; None if it is given up.

        A puller that does not exist, has ended, or has trouble of its own is given up sooner.
        """
        if pod is None and (self.ahead or self.others):
            return self._in_turn(puller)
        note = PullerNote(puller.name, pod is not None)
        noted, since = noted_since(self.noted.get(note, ""), self.now)
        self.found.since[note] = noted
        most = float(self.options.pull_seconds)
        soon = pod is None or pod.completed
        left = since + (min(most, NOT_MADE) if soon else most) - self.now
        if own:
            stuck = StuckNote(puller.name)
            self.found.since[stuck], begun = noted_since(self.stuck.get(stuck, ""), self.now)
            left = min(left, begun + NOT_MADE - self.now)
        if left > 0:
            self.found.waits.append(left)
            self._keep(puller, pod)
            node, images = f"node {short(puller.node)}", name_list([*puller.images])
            if pod is None:
                asked = f"pod {puller.name} is asked for, and is not there yet"
                return wait(Reason.PULLING, f"{node} is to have {images} first; {asked}")
            self.found.going.append(puller)
            return wait(Reason.PULLING, f"{node} first pulls {images}, by pod {puller.name}")
        if pod is None and not self.made:
            self.found.since[self.nowhere] = written(self.now)
        elif pod is not None and trouble(pod, NO_UPDATE, self.now).text:
            self.found.since[self.nowhere._replace(node=puller.node)] = written(self.now)
        self._give_up(puller, pod)
        return None

    def _in_turn(self, puller: Puller) -> Verdict:
        """One that is not there while others are: a quota may have room for one after another.

        Those of later updates give way to it, and it is asked for until they are gone.
        """
        self._keep(puller, None)
        if not self.ahead:
            left = IN_VAIN - max(self.others)
            self.in_vain = left <= 0
            self.found.waits += [left] if left > 0 else []
        return self.next

    def _keep(self, puller: Puller, pod: Pod | None) -> None:
        if pod is None:
            self.found.bytes += _OWN + sum(_OF_AN_IMAGE + len(image) for image in puller.images)
            self.found.create.append(puller)
            self.pulling += 1
        else:
            self.found.keep.append(pod)
            self.ahead = True

    def _give_up(self, puller: Puller, pod: Pod | None) -> None:
        """No update waits for it; a pod that is there stays as long, to be looked at."""
        why = "it was asked for and is not there; the events of the TApp say why"
        if pod is not None:
            self.found.keep.append(pod)
            self.pulling -= 1
            noted = self.found.since.get(PullerNote(puller.name)) or pod.created
            why = trouble(pod, NO_UPDATE, self.now).text or f"it has not started since {noted}"
        self.found.unable.append(f"pod {puller.name} on node {short(puller.node)}: {why}")


def _has_started(pod: Pod) -> bool:
    """True if a puller has all of its images: its container was made."""
    return any(status.container_id for status in pod.containers)


def _running(instances: Iterable[Instance]) -> dict[str, set[str]]:
    """Node -> the names and digests of what instances run there."""
    found = dict[str, set[str]]()
    for instance in instances:
        pod = instance.pod
        if pod is not None and pod.node:
            names = found.setdefault(pod.node, set())
            for status in pod.containers:
                if status.now.running is not None:
                    names.update(names_of(status.image or "", status.image_id))
    return found


def pulled_where(pullers: Iterable[Puller]) -> str:
    """Images and the nodes that pull them, for a sentence: `web:2 on nodes a, b`."""
    nodes: dict[tuple[str, ...], list[str]] = {}
    for puller in pullers:
        nodes.setdefault(tuple(puller.images), []).append(puller.node)
    parts = [
        f"{name_list(images)} on node{'s'[: len(there) != 1]} {name_list(there)}"
        for images, there in nodes.items()
    ]
    return joined(parts) or "the pods that pull them are asked for"


def _policies(template: Template) -> dict[str, str]:
    """Container -> when its image is pulled, as Kubernetes takes it; no `Never` for a default."""
    both = [*template.spec.get("containers", []), *template.spec.get("initContainers", [])]
    return {item["name"]: item.get("imagePullPolicy") or "" for item in both}
