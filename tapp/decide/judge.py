"""Judges each instance alone: what should happen to it, and why.

The rules of docs/design.md, "Verdicts"; first match wins. A verdict is what the instance needs;
whether an update may happen now is decided afterwards, over all instances, by `rollout`.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

import msgspec

from tapp.decide.changes import Adopt, Create, Mark, Resize, Update
from tapp.decide.instances import Instance
from tapp.declared.adopt import describes, differs_in_images_only
from tapp.declared.revision import without_resources
from tapp.declared.templates import Template, Unresolved, running
from tapp.kube.canonical import comparable
from tapp.kube.resources import asked_for
from tapp.kube.restarts import COMPLETED
from tapp.pod.inplace import ended_by_update
from tapp.pod.pod import Pod, PodSpec
from tapp.pod.resize import DEFERRED, Resizing, obstacle_to_resize
from tapp.pod.update import changed_images, edited_images, obstacle_to, plan_restart, restarts_of
from tapp.words.quoted import quoted, short
from tapp.words.ranges import name_list
from tapp.words.reasons import Reason
from tapp.words.times import written
from tapp.words.vocabulary import RESTART_INSTANCE, RESTARTED_AT, Wish


class Action(StrEnum):
    """The kinds of what a sync does about an instance."""

    CREATE = "Create"
    KEEP = "Keep"
    ADOPT = "Adopt"  # Write our labels on a pod that the template already describes
    MARK = "Mark"  # Write a label, an annotation or a toleration that asks for something
    UPDATE = "UpdateInPlace"
    RECREATE = "Recreate"
    DELETE = "Delete"
    ABSENT = "Absent"  # No pod, and none is wanted (or none can be made)


DISRUPTIVE = (Action.UPDATE, Action.RECREATE)


class Verdict(msgspec.Struct, frozen=True, gc=False):
    """An action, a CamelCase reason and a sentence for a person."""

    action: Action
    reason: Reason
    message: str
    # what is written for it; None where an existing pod stays as it is, or goes
    change: Create | Adopt | Mark | Update | Resize | None = None


def wait(reason: Reason, message: str) -> Verdict:
    """Nothing happens now."""
    return Verdict(Action.KEEP, reason, message)


class Attempt(NamedTuple):
    """A try at bringing a pod to its template without another pod."""

    verdict: Verdict | None = None  # what it comes to; None where this way leads nowhere
    obstacle: str = ""  # why, "" where there is nothing to be done in this way


UP_TO_DATE = wait(Reason.UP_TO_DATE, "runs its template")
_TERMINATING = wait(Reason.TERMINATING, "wait until its pod is gone")
_NOTHING = Attempt()
_IN_MORE = "more than images and metadata"


def judge(instance: Instance) -> Verdict:
    """The verdict on one instance: the first rule that applies, numbered as in the design."""
    pod, template = instance.pod, instance.template
    # 1. No pod is wanted: beyond replicas, killed, or finished and due for removal.
    if not instance.should_run and (unwanted := _not_wanted(instance)) is not None:
        return unwanted
    # 2. No pod: create it, as far as its template can be resolved.
    if pod is None:
        return _missing(instance)
    # 3. Terminating: its name is free only when it is gone.
    if pod.terminating:
        return _TERMINATING
    # 4. A pod that we cannot read is left alone: a doubt is never a deletion.
    if pod.unreadable:
        return wait(Reason.UNREADABLE_POD, f"left alone: {short(pod.unreadable)}")
    # 5. Completed: replace it, or leave it for a person to look at.
    if pod.phase in COMPLETED:
        return _completed(instance, pod)
    # 6. The template cannot be resolved: a typo is no reason to delete.
    if isinstance(template, Unresolved):
        return wait(template.reason, template.message)
    # A resize that cannot be done, under rule 7 or 8, needs a new pod.
    if instance.infeasible:
        return _recreate(instance, template, Reason.NOT_IN_PLACE, instance.infeasible)
    # 7. The pod carries the revision of its template: a restart may be asked for, or a resize due.
    if instance.updated:
        if pod.spec.asked and restarts_of(pod.spec, template, instance.metadata_before):
            attempt, way = _in_place(instance, pod, template), Reason.NOT_IN_PLACE
            return attempt.verdict or _recreate(instance, template, way, attempt.obstacle)
        if pod.image_writers and (images := edited_images(pod)):
            message = f"{images}; it is left so: write it into the template, or replace the pod"
            return wait(Reason.IMAGES_EDITED, message)
        return _with_resources(instance, pod, template)
    # 8. In place where only images or metadata differ, else by a new pod.
    return _different(instance, pod, template)


def _not_wanted(instance: Instance) -> Verdict | None:
    if not instance.wanted:
        reason, message = Reason.SCALED_DOWN, "its number is not below spec.replicas"
    elif instance.killed:
        reason, message = Reason.KILLED, "spec.statuses asks for it to be stopped"
    elif instance.pod is None or instance.remove_finished:
        reason, message = Reason.FINISHED, f"it ended as {instance.status} and is not run again"
    else:
        return None
    return Verdict(Action.ABSENT if instance.pod is None else Action.DELETE, reason, message)


def _missing(instance: Instance) -> Verdict:
    template = instance.template
    if isinstance(template, Unresolved):
        return Verdict(Action.ABSENT, template.reason, template.message)
    if blocked := instance.unmade or template.obstacle:
        return Verdict(Action.ABSENT, Reason.BLOCKED, blocked)
    message = f"create it from template {quoted(template.name)}"
    if instance.kept:
        message += f" as it was at revision {instance.kept}"
    message += instance.otherwise and f", {instance.otherwise}"
    message += instance.doubt and f"; {instance.doubt}"
    return Verdict(Action.CREATE, Reason.NO_POD, message, Create(template))


def _completed(instance: Instance, pod: Pod) -> Verdict:
    template = instance.template
    if instance.finished:
        return wait(Reason.FINISHED, f"it ended as {instance.status} and is kept")
    if instance.leaving:
        message = "it was stopped, and is to start with a new pod"
        return Verdict(Action.DELETE, Reason.KILLED, message)
    if isinstance(template, Unresolved):
        return wait(template.reason, template.message)
    if obstacle := template.obstacle or instance.unmade:
        return wait(Reason.BLOCKED, obstacle)
    if pod.made_failed:
        reason, why = Reason.NODE_LOST, "was on a node that is lost"
    elif ended_by_update(pod, instance.update):
        reason, why = Reason.ENDED_BY_UPDATE, "was ended by its update"
    elif pod.disruption:
        reason, why = Reason.COMPLETED, f"was disrupted ({short(pod.disruption)})"
    else:
        reason, why = Reason.COMPLETED, f"has {pod.phase.lower()}"
    if instance.never_migrate:
        message = f"its pod {why}; spec.neverMigrate keeps it from being replaced"
        return wait(Reason.NEVER_MIGRATE, message)
    if instance.pace is not None and not instance.pace.is_due:
        failures = instance.pace.failures
        times = "once" if failures == 1 else f"{failures} times"
        when = written(instance.pace.due + 1)
        message = f"its pod {why} soon after it was made, {times} in a row; the next one follows"
        return wait(Reason.BACK_OFF, f"{message} at {when}")
    return Verdict(Action.DELETE, reason, f"its pod {why} and is replaced")


def _names(containers: Iterable[str]) -> str:
    return short(name_list([*containers]))


def _recreate(instance: Instance, template: Template, reason: Reason, message: str) -> Verdict:
    """A new pod; the one that there is stays where no other could follow."""
    if obstacle := template.obstacle or instance.unmade:
        return wait(Reason.BLOCKED, obstacle)
    return Verdict(Action.RECREATE, reason, message)


def _with_resources(instance: Instance, pod: Pod, template: Template) -> Verdict:
    """Judges a pod at its template's revision until it has the resources, too."""
    if verdict := _resize(instance, pod, template).verdict:
        return verdict
    if (state := instance.resizing) is None:
        if not instance.kept:
            return UP_TO_DATE
        more = instance.otherwise and f", {instance.otherwise}"
        return wait(Reason.KEPT, f"the partition keeps it at revision {instance.kept}{more}")
    return _resizing(state)


def _resizing(state: Resizing) -> Verdict:
    """Waits for the kubelet, which has yet to give containers the resources of the pod's spec."""
    quote = f": {state.message}" if state.message else ""
    if state.pending == DEFERRED:
        message = f"its node has no room now for the resources of its template{quote}"
        return wait(Reason.RESIZE_DEFERRED, message)
    message = f"its kubelet gives its containers the resources of its template{quote}"
    return wait(Reason.RESIZING, message)


def _resize(instance: Instance, pod: Pod, template: Template) -> Attempt:
    wanted = instance.resize
    if wanted is None or (not wanted.resources and not wanted.obstacle):
        return _NOTHING
    if wanted.wrong and not instance.updated:
        return Attempt(wait(Reason.BLOCKED, f"template {quoted(template.name)}: {wanted.wrong}"))
    if obstacle := obstacle_to_resize(pod, wanted):
        return Attempt(obstacle=obstacle)
    names = _names(wanted.resources)
    message = f"template {quoted(template.name)} changes resources of {names} in place"
    if wanted.restarts:
        message += f"; by its resizePolicy it restarts {_names(wanted.restarts)}"
    if instance.rereads:
        message += f"; then {_names(instance.rereads)} restarts, to read its resources anew"
    change = Resize(pod, template, wanted.resources)
    return Attempt(Verdict(Action.UPDATE, Reason.TEMPLATE_CHANGED, message, change))


def _of_another(instance: Instance, pod: Pod, template: Template) -> Attempt:
    """Tries to take over another controller's pod; no obstacle where it differs in images only."""
    manifest = pod.manifest
    wanted, observed = comparable(template.spec), comparable(manifest.spec)
    if template.ignores_resources:
        wanted = without_resources(wanted)
    if (
        describes(wanted, observed)
        and describes(template.labels, manifest.labels)
        and describes(template.annotations, manifest.annotations)
    ):
        message = "another controller made its pod, and the template fits it"
        return Attempt(Verdict(Action.ADOPT, Reason.ADOPTED, message, Adopt(pod, template)))
    if instance.kept:
        message = "another controller made its pod, and the partition keeps it as it is"
        return Attempt(wait(Reason.KEPT, message))
    return _NOTHING if differs_in_images_only(wanted, observed) else Attempt(obstacle=_IN_MORE)


def _different(instance: Instance, pod: Pod, template: Template) -> Verdict:
    spec = pod.spec
    if pod.foreign:
        attempt, more = _of_another(instance, pod, template), _IN_MORE
        if attempt.verdict:
            return attempt.verdict
        in_place = not attempt.obstacle
    elif instance.respelled:
        return _labelled(pod, template)
    else:
        more = _beyond_metadata(instance, spec, template)
        in_place = not more
    # What the API server or the kubelet refuses in a new pod, they refuse in this one, too.
    if beyond := template.beyond or instance.unfit:
        return wait(Reason.BLOCKED, beyond)
    asked = template.annotations.get(RESTARTED_AT, "")
    blocked = template.obstacle or instance.unmade
    if not pod.foreign and asked not in ("", spec.restarted_at) and not blocked:
        why = f"asks for new pods: {RESTARTED_AT} is {short(asked)}"
        message = f"template {quoted(template.name)} {why}"
        return Verdict(Action.RECREATE, Reason.RESTART_ASKED, message)
    attempt = _NOTHING
    if in_place:
        attempt = _in_place(instance, pod, template)
    elif _differs_in_resources(instance, spec, template):
        attempt = _resize_alone(instance, pod, template)
    if attempt.verdict:
        return attempt.verdict
    if attempt.obstacle:
        return _recreate(instance, template, Reason.NOT_IN_PLACE, attempt.obstacle)
    message = f"template {quoted(template.name)} differs from its pod in {more}"
    return _recreate(instance, template, Reason.TEMPLATE_CHANGED, message)


def _resize_alone(instance: Instance, pod: Pod, template: Template) -> Attempt:
    """Tries to resize a pod whose template has changed in nothing else that matters."""
    images = changed_images(pod.spec, template)
    if images and instance.resize is not None:
        why = f"images change, too, of {_names(images)}: a resize changes nothing else"
        return Attempt(obstacle=why)
    return _resize(instance, pod, template)


def _labelled(pod: Pod, template: Template) -> Verdict:
    """The labels of a template that makes the pod that there is."""
    message = f"template {quoted(template.name)} makes the same pod, written in another way"
    if pod.spec.hold is not None and pod.spec.hold.covers(Wish.UPDATE):
        return wait(Reason.UP_TO_DATE, f"{message}; it is labelled when its hold ends")
    return Verdict(Action.ADOPT, Reason.SAME_MEANING, message, Adopt(pod, template))


def _beyond_metadata(instance: Instance, spec: PodSpec, template: Template) -> str:
    """In what a pod of ours differs that no update in place changes, "" if in nothing.

    Resources are no such thing if they are left to others, or if the pod has those of the template:
    somebody has resized it.
    """
    if spec.uniq_hash == template.uniq or instance.alike:
        return ""
    if not _differs_in_resources(instance, spec, template):
        return _IN_MORE
    if template.ignores_resources:
        return ""
    for container in running(template.spec):
        name = container["name"]
        if asked_for(container.get("resources")) != asked_for(spec.resources_of(name)):
            return f"resources, and container {quoted(name)} has others"
    return ""


def _differs_in_resources(instance: Instance, spec: PodSpec, template: Template) -> bool:
    """True if a pod of ours may differ in resources, beyond what an update in place changes."""
    return spec.uniq_hash in template.hashes or instance.recorded == template.hashes.bare


def _in_place(instance: Instance, pod: Pod, template: Template) -> Attempt:
    """Tries to update a pod that differs in images and metadata only."""
    spec, name = pod.spec, f"template {quoted(template.name)}"
    images = changed_images(spec, template) if not instance.updated else {}
    rereads = [each for each in instance.rereads if each in template.images]
    if rereads and instance.resizing is not None:
        return Attempt(_resizing(instance.resizing))  # it would read the resources of before
    asked = [*restarts_of(spec, template, instance.metadata_before), *rereads]
    restarts = [each for each in dict.fromkeys(asked) if each not in images]
    if obstacle := obstacle_to([*images, *restarts], pod):
        return Attempt(obstacle=obstacle)
    restart = plan_restart(pod, restarts, instance.update, images)
    if restart.delay:
        return Attempt(wait(Reason.RESTART_WAITS, f"it shall restart in place: {restart.delay}"))
    if restart.obstacle:
        return Attempt(obstacle=f"it cannot restart in place: {restart.obstacle}")
    parts = [f"changes images of {_names(images)}"] if images else []
    parts += [f"restarts {_names(restarts)}"] if restarts else []
    change = Update(pod, template, {**images, **restart.images}, tuple(restarts))
    if instance.updated:
        message = f"annotation {RESTART_INSTANCE} of its pod {parts[0]} in place"
        return Attempt(Verdict(Action.UPDATE, Reason.RESTART_ASKED, message, change))
    message = f"{name} {' and '.join(parts) or 'changes labels and annotations'} in place"
    same = spec.uniq_hash == template.uniq or instance.alike or template.ignores_resources
    if not pod.foreign and not same:
        message += "; its pod has the resources already"
    return Attempt(Verdict(Action.UPDATE, Reason.TEMPLATE_CHANGED, message, change))
