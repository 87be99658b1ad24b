"""The image first: what has to be on a node before an instance there is updated in place.

docs/design.md, "The image first". Pods of our own, the pullers, mount the new images as volumes,
which makes their kubelet pull them, and runs nothing of them. A puller that has started has all of
its images.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import NamedTuple

from tapp.decide.changes import Update
from tapp.decide.instances import Instance
from tapp.decide.judge import Verdict, hold
from tapp.decide.rollout import turn
from tapp.kube.images import names_of
from tapp.pod.inplace import NO_UPDATE
from tapp.pod.pod import Pod
from tapp.pod.trouble import no_image, trouble
from tapp.spec.templates import Template
from tapp.words.quoted import short
from tapp.words.ranges import listed
from tapp.words.reasons import Reason
from tapp.words.times import noted_since
from tapp.words.vocabulary import PULLER
from tapp.world import Options, World

_OWN, _OF_AN_IMAGE = 1_000, 150
"""Bytes of a puller that are neither images nor their volumes; of an image's volume and mount."""


def is_puller(pod: Pod) -> bool:
    """Whether a pod is one of ours that pulls images."""
    return pod.foreign and pod.manifest.labels.get(PULLER) == "true"


class Puller(NamedTuple):
    """A pod that pulls images on a node.

    Attributes:
        name: its name, which node and images give.
        node: the node.
        images: image -> pull policy.
        template: a template that runs them, whose credentials are used.
    """

    name: str
    node: str
    images: Mapping[str, str]
    template: Template


@dataclass
class Pulls:
    """What has to be pulled first.

    Attributes:
        holds: instance -> why its update does not happen now.
        keep: pullers that stay; the others go.
        create: pullers that are made.
        since: name of a puller that has not finished -> since when it is waited for, RFC 3339.
        failed: sentences on images that cannot be had.
        unable: sentences on pullers that cannot run, for which nobody waits any more.
        waits: seconds after which to look again.
        bytes: of those that are made, about.
    """

    holds: dict[int, Verdict] = field(default_factory=dict)
    keep: list[Pod] = field(default_factory=list)
    create: list[Puller] = field(default_factory=list)
    since: dict[str, str] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    unable: list[str] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    bytes: int = 0


def pulls(
    world: World,
    instances: Sequence[Instance],
    verdicts: Sequence[Verdict],
    options: Options,
    now: float,
) -> Pulls:
    """What is pulled before the updates of this sync.

    Args:
        world: what was observed.
        instances: all instances.
        verdicts: what each of them needs.
        options: the operator's choices.
        now: seconds since the epoch.
    """
    strategy = world.tapp.spec.update_strategy
    if not strategy.in_place_update_strategy.pre_pull or strategy.paused:
        return Pulls()
    return _Pulling(world, options, now).all(instances, verdicts)


class _Pulling:
    """The pulls of one sync."""

    def __init__(self, world: World, options: Options, now: float) -> None:
        self.world, self.options, self.now = world, options, now
        self.found = Pulls()
        self.there: Mapping[str, set[str]] = {}
        self.policies: dict[str, dict[str, str]] = {}
        self.names: dict[str, set[str]] = {}
        most = options.max_pullers
        self.next = hold(
            Reason.PULLING,
            f"its node pulls its new images first, as one of the next; {most} pull at once",
        )
        # One that is on its way out of a lost node may stay so for ever.
        self.pulling = sum(not pod.terminating for pod in world.pullers.values())

    def all(self, instances: Sequence[Instance], verdicts: Sequence[Verdict]) -> Pulls:
        """Goes over all instances, in the order in which the budget is spent."""
        spec = self.world.tapp.spec
        strategy, rolling = spec.update_strategy, spec.rolling_name
        pairs = zip(instances, verdicts, strict=True)
        updates = [(i, v.change) for i, v in pairs if isinstance(v.change, Update)]
        self.there = _running(instances) if updates else {}
        states: dict[str, Verdict | None] = {}
        for instance, change in sorted(updates, key=lambda it: turn(it[0], strategy, rolling)):
            puller = self._puller(change)
            if puller is None:
                continue
            if puller.name not in states:
                states[puller.name] = self._state(puller, turn=len(states))
            held = states[puller.name]
            if held is not None:
                self.found.holds[instance.id] = held
        return self.found

    def _puller(self, change: Update) -> Puller | None:
        """What an update needs on its node; None where nothing would stop, or all is there."""
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

    def _state(self, puller: Puller, turn: int) -> Verdict | None:
        """Why the updates that need this puller wait; None where they do not."""
        pod, most = self.world.pullers.get(puller.name), self.options.max_pullers
        full = self.found.bytes >= self.options.max_new_pods_bytes
        if turn >= most or (pod is None and (full or self.pulling >= most)):
            return self.next
        if pod is None:
            self.found.bytes += _OWN + sum(_OF_AN_IMAGE + len(image) for image in puller.images)
            self.found.create.append(puller)
            self.pulling += 1
        else:
            self.found.keep.append(pod)
        if pod is not None and any(status.container_id for status in pod.containers):
            return None
        refused = "" if pod is None else no_image(pod)
        if refused and self.options.puller_image not in refused:  # updates do without that one
            sentence = f"node {short(puller.node)}: {refused}"
            self.found.failed.append(sentence)
            return hold(Reason.PULL_FAILED, f"{sentence}; nothing is stopped for it")
        return self._patience(puller, pod)

    def _patience(self, puller: Puller, pod: Pod | None) -> Verdict | None:
        """A puller that has not started is waited for, for a while."""
        noted, since = noted_since(self.world.tapp.status.pulling.get(puller.name, ""), self.now)
        self.found.since[puller.name] = noted
        left = since + self.options.pull_seconds - self.now
        why = "it was asked for and is not there; the events of the TApp say why"
        if pod is not None:
            why = trouble(pod, NO_UPDATE, self.now).text or f"it has not started since {noted}"
        if left > 0:
            self.found.waits.append(left)
            return hold(Reason.PULLING, f"{_what(puller)}, by pod {puller.name}")
        self.found.unable.append(f"pod {puller.name} on node {short(puller.node)}: {why}")
        return None


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


def _what(puller: Puller) -> str:
    return f"node {short(puller.node)} first pulls {listed([*puller.images])}"


def _policies(template: Template) -> dict[str, str]:
    """Container -> when its image is pulled, as Kubernetes takes it; no `Never` for a default."""
    both = [*template.spec.get("containers", []), *template.spec.get("initContainers", [])]
    return {item["name"]: item.get("imagePullPolicy") or "" for item in both}
