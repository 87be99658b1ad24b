"""Image pulls before updates (`prePull`): a node gets new images before containers there stop.

A *puller* is a pod of this service on the node (docs/in-place.md, "Pull the image first"). It
mounts the new images as volumes, so the kubelet pulls the images without running them. When the
container of the puller has been created, the node has all images, and the update continues.

At most `max_pullers` pullers of a TApp exist at the same time, in the order of the updates. An
update waits for its puller as follows:

* If an image cannot be pulled (`ErrImagePull`), the update waits until it can. A condition reports
  that.
* If the puller does not start, the update waits for at most `pull_seconds`.
* If the puller does not exist, or no kubelet runs it, the update waits for at most `NOT_THERE`
  seconds. This limit also holds if the puller fails for a reason of its own, such as the image of
  its own container.
* If the puller does not exist while other pullers exist, the update waits until the puller is
  created. A quota may allow only some pullers at a time. Once another puller is `YIELD_AFTER`
  seconds old, the service deletes the pullers of later updates to make room.

After these times the service gives the puller up, and `status.pulling` notes that. For `REMEMBERED`
seconds no update waits for a puller on the same node again. If no puller at all could be created,
no update waits on any node for that time.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import NamedTuple

from tapp.decide.cases import Case
from tapp.decide.changes import Update
from tapp.decide.instances import Instance
from tapp.decide.rollout import update_order
from tapp.decide.verdicts import Verdict, wait
from tapp.declared.templates import Template
from tapp.kube.images import names_of
from tapp.pod.inplace import NO_UPDATE
from tapp.pod.pod import Pod
from tapp.pod.trouble import has_own_trouble, image_problem, trouble
from tapp.words.notes import PullerNote, StuckNote, UnableNote, decoded
from tapp.words.quoted import short
from tapp.words.ranges import joined, name_list
from tapp.words.reasons import Reason
from tapp.words.times import noted_since, past_time, plausible_time, seconds, written
from tapp.words.vocabulary import PULLER
from tapp.world import Options, World

# Estimated bytes of a puller without its images, and of the volume and mount of one image.
_PULLER_BYTES, _IMAGE_BYTES = 1_000, 150


def is_puller(pod: Pod) -> bool:
    """Returns True if a pod is a *puller* of this TApp: it only pulls images before updates."""
    return pod.foreign and pod.manifest.labels.get(PULLER) == "true"


# Seconds until a puller is given up that does not exist, that no kubelet runs, or that fails for a
# reason of its own.
NOT_THERE = 30.0
# Seconds that another puller may exist before later pullers make room for a missing one.
YIELD_AFTER = 10.0
# Seconds for which no update waits where a puller was given up.
REMEMBERED = 3_600.0


class Puller(NamedTuple):
    """The description of a pod that pulls the new images of updates on one node."""

    name: str  # name of the pod, with a hash of node and images
    node: str  # name of the node
    images: Mapping[str, str]  # image to pull -> pull policy
    template: Template  # the template whose registry credentials the puller uses


@dataclass
class Pulls:
    """The pods that pull images before updates (*pullers*), and the updates that wait for them."""

    delays: dict[int, Verdict] = field(default_factory=dict)  # instance -> why its update waits
    keep: list[Pod] = field(default_factory=list)  # pullers that stay; the others are deleted
    create: list[Puller] = field(default_factory=list)
    running: list[Puller] = field(default_factory=list)  # existing pullers that updates wait for
    # Notes for later syncs, with times as RFC 3339:
    # - PullerNote: since when updates wait for a puller that has not started.
    # - StuckNote: since when a puller fails for a reason of its own.
    # - UnableNote: when a puller was given up on a node, or on all nodes.
    since: dict[PullerNote | StuckNote | UnableNote, str] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)  # sentences on images that cannot be pulled
    unable: list[str] = field(default_factory=list)  # sentences on pullers that cannot run
    # Until when no update waits where a puller was given up, RFC 3339; "" if none was given up
    until: str = ""
    waits: list[float] = field(default_factory=list)  # seconds until another sync is needed
    bytes: int = 0  # estimated bytes of the new pullers


def plan_pulls(world: World, cases: Sequence[Case], options: Options, now: float) -> Pulls:
    """Decides which images are pulled before the updates of this sync, and which updates wait.

    Without `prePull` in the spec, or while updates are paused, no image is pulled in advance.
    """
    strategy = world.tapp.spec.update_strategy
    if not strategy.in_place_update_strategy.pre_pull:
        return Pulls()
    pulling = _Pulling(world, options, now)
    if not strategy.paused:
        pulling.all(cases)
    pods = (case.instance.pod for case in cases)
    return pulling.remember({pod.node for pod in pods if pod is not None})


class _Pulling:
    """Decides on the pods that pull images (*pullers*) of one TApp in one sync.

    The caller calls `all` for the updates, and then `remember` for the result.
    """

    def __init__(self, world: World, options: Options, now: float) -> None:
        self.world, self.options, self.now = world, options, now
        self.found = Pulls()
        self.present: Mapping[str, set[str]] = {}  # node -> images that containers there run
        self.policies: dict[str, dict[str, str]] = {}
        self.names: dict[str, set[str]] = {}
        most = options.max_pullers
        self.next = wait(
            Reason.PULLING,
            "its new images are pulled on its node before the update, when other nodes are done: "
            f"at most {most} pull at once (TAPP_MAX_PULLERS)",
        )
        # A puller that is being deleted on a lost node may never go, so it does not count.
        self.existing = [pod for pod in world.pullers.values() if not pod.terminating]
        self.count = len(self.existing)
        self.turns = 0
        # `has_earlier` is True if the puller of an earlier update exists. `yields` is True if the
        # puller of an earlier update is missing for too long: then the pullers of later updates
        # are deleted to make room for it.
        self.has_earlier = self.yields = False
        # A puller of unknown age counts as old: no other puller has to wait for its place.
        ages = [now - plausible_time(pod.created, now) for pod in world.pullers.values()]
        self.young = [age for age in ages if age < options.pull_seconds]
        self.noted = decoded(PullerNote, world.tapp.status.pulling)
        self.given_up = decoded(UnableNote, world.tapp.status.pulling)
        self.stuck = decoded(StuckNote, world.tapp.status.pulling)
        self.nowhere = UnableNote(options.puller_image)
        if self.existing:
            self.given_up.pop(self.nowhere, None)  # some puller could be created after all

    def all(self, cases: Sequence[Case]) -> None:
        """Decides for each update in place whether it waits until its images are pulled.

        The updates are processed in the order in which they will run, so that earlier updates pull
        first. `cases` are all instances with the decisions on them.
        """
        spec = self.world.tapp.spec
        strategy, rolling = spec.update_strategy, spec.rolling_name
        updates = [
            (case.instance, change)
            for case in cases
            if isinstance(change := case.decision.change, Update)
        ]
        self.present = _running_images(case.instance for case in cases) if updates else {}
        states: dict[str, Verdict | None] = {}
        for instance, change in sorted(
            updates, key=lambda it: update_order(it[0], strategy, rolling)
        ):
            puller = self._puller(change)
            if puller is None:
                continue
            if puller.name not in states:
                states[puller.name] = self._state(puller)
            delay = states[puller.name]
            if delay is not None:
                self.found.delays[instance.id] = delay

    def remember(self, nodes: Container[str]) -> Pulls:
        """Adds the nodes on which earlier syncs could not run a puller, and returns the result.

        Nodes on which no instance runs any more are dropped. `nodes` are the names of the nodes on
        which instances run.
        """
        found, nowhere = self.found, self.nowhere
        for note, at in self.given_up.items():
            if note == nowhere or (note.image == nowhere.image and note.node in nodes):
                found.since.setdefault(note, at)
        known = {n: at for n, at in found.since.items() if isinstance(n, UnableNote)}
        if not known:
            return found
        found.until = written(max(map(seconds, known.values())) + REMEMBERED)
        if not found.unable and nowhere in known:
            found.unable.append("the pods that pull them were requested and do not exist")
        elif not found.unable:
            where = name_list(sorted(note.node for note in known))
            found.unable.append(f"the pods that pull them did not start on nodes {where}")
        return found

    def _is_known_unable(self, puller: Puller) -> bool:
        """Returns True if no puller could run on a puller's node, or on any node, not long ago.

        "Not long ago" means within the last `REMEMBERED` seconds. A puller is a pod that pulls the
        images of an update.
        """
        notes = self.nowhere, self.nowhere._replace(node=puller.node)
        times = [self.given_up.get(note, "") for note in notes]
        return any(self.now - past_time(at, self.now) < REMEMBERED for at in times)

    def _puller(self, change: Update) -> Puller | None:
        """Returns the pod that has to pull images before an update (*puller*).

        Returns None if the update need not wait for images:

        - The update stops no running container.
        - The node of the pod has all new images.
        - The pod has no node, or the node has stopped reporting.
        """
        pod, template = change.pod, change.template
        # Without a running container the update stops nothing, so it need not wait.
        runs = any(pod.container(name).now.running is not None for name in change.images)
        # A silent node pulls nothing; the budget makes the update wait until the node reports.
        if not pod.node or not runs or pod.silent:
            return None
        policies = self.policies.get(template.revision)
        if policies is None:
            policies = self.policies[template.revision] = _policies(template)
        wanted = {
            image: policies[name]
            for name, image in sorted(change.images.items())
            # With `Never` the kubelet uses only images that are on the node already.
            if policies[name] != "Never"
        }
        present = self.present.get(pod.node, set())
        missing = {i: policy for i, policy in wanted.items() if present.isdisjoint(self._known(i))}
        if not missing:
            return None
        return Puller(self._name(pod.node, missing), pod.node, missing, template)

    def _known(self, image: str) -> set[str]:
        """Returns all names of an image under which a container status may report it."""
        if image not in self.names:
            self.names[image] = names_of(image)
        return self.names[image]

    def _name(self, node: str, images: Iterable[str]) -> str:
        """Returns the name of the pod that pulls these images on a node."""
        digest = sha256("\n".join([node, *sorted(images)]).encode()).hexdigest()[:10]
        return f"{self.world.tapp.metadata.name}-pull-x{digest}"

    def _state(self, puller: Puller) -> Verdict | None:
        """Decides about one puller, and returns the delay of the updates that need the puller.

        A puller is a pod that pulls the images of an update. The function decides whether this pod
        is created, kept, or deleted to make room, and adds the decision to `found`. The delay is a
        verdict that leaves the pods of the instances as they are. It is None if the updates need
        not wait.
        """
        pod, most = self.world.pullers.get(puller.name), self.options.max_pullers
        if (pod is None or not _has_started(pod)) and self._is_known_unable(puller):
            self._give_up(puller, pod)
            return None
        # The limit counts pullers in the order of the updates, so that no later one overtakes.
        self.turns += 1
        full = self.found.bytes >= self.options.max_new_pods_bytes
        # The size of the response and the number of pods limit only new pullers.
        if self.turns > most or (pod is None and (full or self.count >= most)):
            return self.next
        if pod is not None and _has_started(pod):
            self.given_up.pop(self.nowhere._replace(node=puller.node), None)
            # The node has the images already, so a puller of an earlier update may have its place.
            if not self.yields:
                self._keep(puller, pod)
            return None
        if self.yields:
            return self.next
        own = pod is not None and self._has_own_trouble(puller, pod)
        refused = "" if pod is None else image_problem(pod)
        if refused and not own:
            sentence = f"node {short(puller.node)} cannot pull an image: {refused}"
            self.found.failed.append(sentence)
            self._keep(puller, pod)
            return wait(
                Reason.PULL_FAILED,
                f"{sentence}. The instance keeps running as it is until the image can be pulled",
            )
        return self._patience(puller, pod, own=own)

    def _has_own_trouble(self, puller: Puller, pod: Pod) -> bool:
        """Returns True if the puller's pod fails for a reason other than the pulled images."""
        return has_own_trouble(pod, self.options.puller_image, puller.images, self.now)

    def _patience(self, puller: Puller, pod: Pod | None, *, own: bool) -> Verdict | None:
        """Returns the delay of updates whose puller has not started; None if it is given up.

        The delay is a verdict that leaves the pods of the instances as they are and says what the
        updates wait for.

        Args:
            puller: the puller: a pod that pulls the images of these updates.
            pod: the observed pod; None if it does not exist.
            own: True if the pod fails for a reason of its own, such as the image of its own
                container. Then the service gives the puller up after `NOT_THERE` seconds.
        """
        if pod is None and (self.has_earlier or self.young):
            return self._in_turn(puller)
        note = PullerNote(puller.name, pod is not None)
        noted, since = noted_since(self.noted.get(note, ""), self.now)
        self.found.since[note] = noted
        most = float(self.options.pull_seconds)
        # A puller that no kubelet runs pulls nothing: it has ended, or has no node that responds.
        idle = pod is not None and (pod.completed or not pod.acknowledged)
        soon = pod is None or idle
        left = since + (min(most, NOT_THERE) if soon else most) - self.now
        # If the fault is in the puller itself, waiting for all of `pull_seconds` is in vain.
        if own:
            stuck = StuckNote(puller.name)
            self.found.since[stuck], begun = noted_since(self.stuck.get(stuck, ""), self.now)
            left = min(left, begun + NOT_THERE - self.now)
        if left > 0:
            self.found.waits.append(left)
            self._keep(puller, pod)
            node, images = f"node {short(puller.node)}", name_list([*puller.images])
            if pod is None:
                state = f"pod {puller.name} is requested and does not exist yet"
                text = f"{node} pulls {images} before the update; {state}"
                return wait(Reason.PULLING, text)
            self.found.running.append(puller)
            text = f"{node} pulls {images} before the update, in pod {puller.name}"
            return wait(Reason.PULLING, text)
        # Without any puller, something refuses all of them. Otherwise only this node is noted.
        if pod is None and not self.existing:
            self.found.since[self.nowhere] = written(self.now)
        elif pod is not None and (idle or trouble(pod, NO_UPDATE, self.now).text):
            self.found.since[self.nowhere._replace(node=puller.node)] = written(self.now)
        self._give_up(puller, pod)
        return None

    def _in_turn(self, puller: Puller) -> Verdict:
        """Requests a puller that does not exist yet, and returns the delay of its updates.

        The caller has checked that pullers of other updates exist. A quota may allow only some
        pullers at a time, so this puller may have to wait for its turn:

        - If the puller of an earlier update exists, this puller waits until that one has finished.
        - If not, the oldest of the other pullers may stay until it is `YIELD_AFTER` seconds old.
          Then the pullers of later updates are deleted to make room.

        The delay is a verdict that leaves the pods of the instances as they are.
        """
        self._keep(puller, None)
        if not self.has_earlier:
            left = YIELD_AFTER - max(self.young)
            self.yields = left <= 0
            self.found.waits += [left] if left > 0 else []
        return self.next

    def _keep(self, puller: Puller, pod: Pod | None) -> None:
        """Adds a puller to the response: keeps its pod, or creates a pod if `pod` is None."""
        if pod is None:
            self.found.bytes += _PULLER_BYTES + sum(
                _IMAGE_BYTES + len(image) for image in puller.images
            )
            self.found.create.append(puller)
            self.count += 1
        else:
            self.found.keep.append(pod)
            self.has_earlier = True

    def _give_up(self, puller: Puller, pod: Pod | None) -> None:
        """Gives a puller up, so that no update waits for it, and adds a sentence with the reason.

        An existing pod is kept, so that users can look at it. `pod` is None if the pod does not
        exist.
        """
        why = "it was requested and does not exist; the Events of the TApp show why"
        if pod is not None:
            self.found.keep.append(pod)
            self.count -= 1
            noted = self.found.since.get(PullerNote(puller.name)) or pod.created
            why = trouble(pod, NO_UPDATE, self.now).text or f"it has not started since {noted}"
        self.found.unable.append(f"pod {puller.name} on node {short(puller.node)}: {why}")


def _has_started(pod: Pod) -> bool:
    """Returns True if the container of a puller was created, so that its node has all images.

    A puller is a pod that pulls the images of an update. The kubelet creates its container only
    when all images have been pulled.
    """
    return any(status.container_id for status in pod.containers)


def _running_images(instances: Iterable[Instance]) -> dict[str, set[str]]:
    """Returns node -> names and digests of the images that running containers of instances use."""
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
    """Returns images and the nodes that pull them, for a sentence: `web:2 on nodes a, b`.

    If `pullers` is empty, returns a clause that the pods for the pulls are requested.
    """
    nodes: dict[tuple[str, ...], list[str]] = {}
    for puller in pullers:
        nodes.setdefault(tuple(puller.images), []).append(puller.node)
    parts = [
        f"{name_list(images)} on node{'s'[: len(there) != 1]} {name_list(there)}"
        for images, there in nodes.items()
    ]
    return joined(parts) or "the pods that pull them are requested"


def _policies(template: Template) -> dict[str, str]:
    """Returns container name -> `imagePullPolicy`.

    An empty string stands for the default of the API server.
    """
    both = [*template.spec.get("containers", []), *template.spec.get("initContainers", [])]
    return {item["name"]: item.get("imagePullPolicy") or "" for item in both}
