"""Judges each instance alone: what should happen to it, and why.

The rules of design section 3, first match wins. A verdict is what the instance needs; whether an
update may happen now is decided afterwards, over all instances, by `rollout`.
"""

import re
from collections.abc import Callable
from enum import StrEnum
from functools import lru_cache

import msgspec

from tapp.adopt import describes, differs_in_images_only
from tapp.appearance import Appearance
from tapp.canonical import comparable
from tapp.observe import Pod
from tapp.revision import is_ours
from tapp.templates import Template, Unresolved
from tapp.vocabulary import IN_PLACE_UPDATE, INSTANCE, POD_INDEX, InstanceStatus

FINISHED = (InstanceStatus.SUCC, InstanceStatus.FAILED)


class Action(StrEnum):
    """What a sync does about an instance."""

    CREATE = "Create"
    KEEP = "Keep"
    ADOPT = "Adopt"
    """Write our labels on a pod that the template already describes; nothing restarts."""
    UPDATE = "UpdateInPlace"
    RECREATE = "Recreate"
    DELETE = "Delete"
    ABSENT = "Absent"
    """No pod, and none is wanted (or none can be made)."""


DISRUPTIVE = (Action.UPDATE, Action.RECREATE)


class Verdict(msgspec.Struct, frozen=True, gc=False):
    """An action, a CamelCase reason and a sentence for a person."""

    action: Action
    reason: str
    message: str


class Instance(msgspec.Struct, gc=False):
    """One number of a TApp, with all that its verdict depends on.

    Attributes:
        id: its number.
        pod: the observed pod, if any.
        template: what it should run.
        status: its entry in `status.statuses` as it is now.
        wanted: whether the number is below `spec.replicas`.
        killed: whether the author stopped it.
        should_run: whether the author wants it to run, and it has not run to its end: the base of
            every budget.
        remove_finished: whether its finished pod is due for removal (design section 3.2).
        blocked: why its pod must not be created now, or "".
    """

    id: int
    pod: Pod | None
    template: Template | Unresolved
    status: InstanceStatus = InstanceStatus.NOT_CREATED
    wanted: bool = True
    killed: bool = False
    should_run: bool = True
    remove_finished: bool = False
    blocked: str = ""

    @property
    def finished(self) -> bool:
        """Whether it ran to its end and is not run again."""
        return self.status in FINISHED

    @property
    def updated(self) -> bool:
        """Whether its pod carries the revision of its template."""
        pod, template = self.pod, self.template
        return (
            pod is not None
            and not pod.terminating
            and isinstance(template, Template)
            and pod.look.template_hash == template.revision
        )


def will_be_replaced(pod: Pod, never_migrate: bool) -> bool:
    """Whether a completed pod gives way to a new one (design section 3.2)."""
    if never_migrate:
        return False
    if pod.refused_by_kubelet:
        return True
    policy = pod.look.restart_policy
    return policy == "Always" or (policy == "OnFailure" and pod.phase == "Failed")


_RUNNING = InstanceStatus.RUNNING


def instance_status(
    pod: Pod | None, killed: bool, remembered: str, never_migrate: bool
) -> InstanceStatus:
    """The status of one instance, from its pod and its memory (design section 3.2)."""
    if pod is None:
        if killed:
            return InstanceStatus.KILLED
        return InstanceStatus(remembered) if remembered in FINISHED else InstanceStatus.NOT_CREATED
    phase = pod.phase
    if pod.terminating:
        if remembered in FINISHED and pod.completed:
            return InstanceStatus(remembered)
        return InstanceStatus.KILLING
    if phase == "Running":
        if pod.updating:
            return InstanceStatus.UPDATING
        return InstanceStatus.PENDING if pod.ready is False else _RUNNING
    if phase == "Unknown":
        return InstanceStatus.UNKNOWN
    if not pod.completed:
        return InstanceStatus.PENDING
    replaced = will_be_replaced(pod, never_migrate)
    if phase == "Failed":
        return InstanceStatus.POD_FAILED if replaced else InstanceStatus.FAILED
    return InstanceStatus.POD_SUCC if replaced else InstanceStatus.SUCC


CURRENT = Verdict(Action.KEEP, "UpToDate", "runs its template")


def judge(instance: Instance) -> Verdict:
    """The verdict on one instance: the first rule that applies."""
    pod, template = instance.pod, instance.template
    if (
        instance.should_run
        and pod is not None
        and not pod.terminating
        and not pod.completed
        and not pod.odd
        and type(template) is Template
        and pod.look.template_hash == template.revision
    ):
        return CURRENT  # what the rules below say of nearly every instance, said at once
    for rule in RULES:
        verdict = rule(instance)
        if verdict is not None:
            return verdict
    raise AssertionError("the last rule always applies")


def _not_wanted(instance: Instance) -> Verdict | None:
    """1. No pod is wanted: beyond replicas, killed, or finished and due for removal."""
    if not instance.wanted:
        reason, message = "ScaledDown", "its number is not below spec.replicas"
    elif instance.killed:
        reason, message = "Killed", "spec.statuses asks for it to be stopped"
    elif instance.finished and (instance.pod is None or instance.remove_finished):
        reason, message = "Finished", f"it ended as {instance.status} and is not run again"
    else:
        return None
    return Verdict(Action.ABSENT if instance.pod is None else Action.DELETE, reason, message)


def _missing(instance: Instance) -> Verdict | None:
    """2. No pod: create it, as far as its template can be resolved."""
    if instance.pod is not None:
        return None
    if isinstance(instance.template, Unresolved):
        return Verdict(Action.ABSENT, "TemplateNotFound", instance.template.message)
    if instance.blocked:
        return Verdict(Action.ABSENT, "Blocked", instance.blocked)
    return _create(instance.template.name)


@lru_cache(maxsize=256)
def _create(template: str) -> Verdict:
    """One verdict for all instances that a template is to start."""
    return Verdict(Action.CREATE, "NoPod", f"create it from template {template!r}")


def _terminating(instance: Instance) -> Verdict | None:
    """3. Terminating: its name is free only when it is gone."""
    if instance.pod is None or not instance.pod.terminating:
        return None
    return Verdict(Action.KEEP, "Terminating", "wait until its pod is gone")


def _unreadable(instance: Instance) -> Verdict | None:
    """A pod that we cannot read is left alone: a doubt is never a deletion."""
    if instance.pod is None or not instance.pod.odd:
        return None
    return Verdict(Action.KEEP, "UnreadablePod", f"left alone: {instance.pod.odd}")


def _completed(instance: Instance) -> Verdict | None:
    """4. Completed: replace it, or leave it for a person to look at."""
    pod = instance.pod
    if pod is None or not pod.completed:
        return None
    if instance.finished:
        return Verdict(Action.KEEP, "Finished", f"it ended as {instance.status} and is kept")
    if isinstance(instance.template, Unresolved):
        return _unresolved(instance)
    return Verdict(Action.DELETE, "Completed", f"its pod has {pod.phase.lower()} and is replaced")


def _unresolved(instance: Instance) -> Verdict | None:
    """5. The template cannot be resolved: a typo is no reason to delete (bug B1)."""
    if not isinstance(instance.template, Unresolved):
        return None
    return Verdict(Action.KEEP, "TemplateNotFound", instance.template.message)


def _current(instance: Instance) -> Verdict | None:
    """6. The pod carries the revision of its template."""
    pod, template = instance.pod, instance.template
    assert pod is not None  # noqa: S101 - rule 2
    assert isinstance(template, Template)  # noqa: S101 - rule 5
    if pod.look.template_hash == template.revision:
        return CURRENT
    return None


def _different(instance: Instance) -> Verdict:
    """7. In place where only images or metadata differ, else by a new pod."""
    pod, template = instance.pod, instance.template
    assert pod is not None  # noqa: S101 - rule 2
    assert isinstance(template, Template)  # noqa: S101 - rule 5
    # Pods that look alike differ alike from a template, unless it says what is a pod's own.
    known = pod.look.verdicts.get(template)
    if known is None:
        if _is_ours(pod.look) or not _speaks_of_pods(template, pod.name):
            known = pod.look.verdicts[template] = _compared(pod.look, template)
        else:
            known = _compared(pod.alone().look, template)
    verdict, mortal = known
    for name in mortal:
        state = pod.container(name).state
        if state is not None and state.terminated is not None:
            return _not_in_place(
                f"container {name!r} has terminated and the kubelet would not start it again"
            )
    return verdict


def _is_ours(look: Appearance) -> bool:
    return is_ours(look.template_hash) and is_ours(look.uniq_hash)


_OWN = rf'"({INSTANCE}|{POD_INDEX}|{IN_PLACE_UPDATE}|nodeName)":|kube-api-access-'


def _speaks_of_pods(template: Template, pod: str) -> bool:
    """Whether a template says what is each pod's own (`pattern.Values`), such as a name."""
    instance = re.escape(pod.rstrip("0123456789")) + r"\d"
    return bool(re.search(f"{instance}|{_OWN}", template.text))


def _compared(look: Appearance, template: Template) -> tuple[Verdict, list[str]]:
    """What a pod that looks so needs to run a template that it does not run.

    And the containers that must not have terminated for it: those that would not be started again.
    """
    if _is_ours(look):
        in_place = look.uniq_hash == template.uniq
    else:
        template_spec, observed_spec = comparable(template.spec), comparable(look.spec)
        if (
            describes(template_spec, observed_spec)
            and describes(template.labels, look.labels)
            and describes(template.annotations, look.annotations)
        ):
            message = "another controller made its pod, and the template fits it"
            return Verdict(Action.ADOPT, "Adopted", message), []
        in_place = differs_in_images_only(template_spec, observed_spec)
    if not in_place:
        message = (
            f"template {template.name!r} differs from its pod in more than images and metadata"
        )
        return Verdict(Action.RECREATE, "TemplateChanged", message), []
    changed = changed_images(look, template)
    strange = [name for name in changed if name not in look.restart_policies]
    if look.duplicates:
        path = look.duplicates[0]
        obstacle = f"Metacontroller cannot merge {path} (two entries of one merge key)"
        return _not_in_place(obstacle), []
    if strange:
        return _not_in_place(f"its pod has no container {strange[0]!r}"), []
    what = "images of " + ", ".join(changed) if changed else "labels and annotations"
    message = f"template {template.name!r} changes {what} in place"
    mortal = [name for name in changed if look.restart_policies[name] != "Always"]
    return Verdict(Action.UPDATE, "TemplateChanged", message), mortal


def _not_in_place(obstacle: str) -> Verdict:
    return Verdict(Action.RECREATE, "NotInPlace", obstacle)


RULES: tuple[Callable[[Instance], Verdict | None], ...] = (
    _not_wanted,
    _missing,
    _terminating,
    _unreadable,
    _completed,
    _unresolved,
    _current,
    _different,
)


def changed_images(look: Appearance, template: Template) -> dict[str, str]:
    """Container name -> new image, for the containers whose image an in-place update sets.

    What the template said when the pod was last written is compared with what it says now, so that
    a container whose image admission rewrote is left alone unless its own template changed. Without
    that record (an adopted pod) the pod's own spec is compared. By name, never by index (bug B10).
    """
    return {
        name: image
        for name, image in template.images.items()
        if look.images.get(name) != image and look.template_images.get(name) != image
    }
