"""Judges each instance alone: what should happen to it, and why.

The first rule that applies gives the verdict (docs/design.md, "Verdicts"). The stages decide
afterwards over all instances whether an update may run in this sync (`stages.py`).
"""

from collections.abc import Collection, Iterable
from typing import NamedTuple

import msgspec

from tapp.decide.changes import Adopt, Create, Resize, Update
from tapp.decide.instances import NOT_COMPARED, Instance
from tapp.decide.verdicts import UP_TO_DATE, Action, Verdict, wait
from tapp.declared.adopt import describes, differs_in_images_only
from tapp.declared.revision import without_resources
from tapp.declared.templates import Template, running
from tapp.kube.canonical import comparable
from tapp.kube.resources import canonical_resources
from tapp.kube.restarts import COMPLETED
from tapp.pod.inplace import ended_by_update
from tapp.pod.pod import Pod, PodSpec
from tapp.pod.resize import RESIZE_DEFERRED, Resizing, obstacle_to_resize
from tapp.pod.update import changed_images, edited_images, obstacle_to, plan_restart, restarts_of
from tapp.words.quoted import quoted, short
from tapp.words.ranges import name_list
from tapp.words.reasons import Reason
from tapp.words.times import written
from tapp.words.vocabulary import RESTART_INSTANCE, RESTARTED_AT


class Attempt(NamedTuple):
    """The result of trying to bring a pod to its template without replacing the pod.

    If both fields are empty, the pod needs none of the changes that were tried.
    """

    verdict: Verdict | None = None  # None if the attempt failed, or there was nothing to do
    obstacle: str = ""  # why the attempt failed; "" if there was nothing to do


_TERMINATING = wait(
    Reason.TERMINATING, "its pod is being deleted; the TApp service continues when the pod is gone"
)
_NOTHING = Attempt()
_IN_MORE = "more than images and metadata"


def verdict_on(instance: Instance) -> Verdict:
    """Returns the verdict on an instance.

    The message of an update that returns the instance to an older revision says so.
    """
    verdict, history = judge(instance), instance.history
    if history is not None and history.rolled_back and verdict.is_update:
        return msgspec.structs.replace(verdict, message=f"{history.why}: {verdict.message}")
    return verdict


def judge(instance: Instance) -> Verdict:
    """Returns the verdict of the first rule that applies to an instance.

    The rules have the same numbers as in docs/design.md, "Verdicts".
    """
    pod, template = instance.pod, instance.template
    # 1. No pod is wanted: beyond replicas, killed, or finished and due for removal.
    if not instance.should_run and (unwanted := _not_wanted(instance)) is not None:
        return unwanted
    # 2. No pod: create the pod, if its template allows that.
    if pod is None:
        return _missing(instance)
    # 3. Terminating: the new pod has the same name, so the old pod has to be gone first.
    if pod.terminating:
        return _TERMINATING
    # 4. A pod that the service cannot read is left alone: in doubt, nothing is deleted.
    if pod.unreadable:
        return wait(
            Reason.UNREADABLE_POD,
            "the TApp service cannot read its pod, so it does not change the pod: "
            f"{short(pod.unreadable)}",
        )
    # 5. Completed: replace the pod, or leave it for users to look at.
    if pod.phase in COMPLETED:
        return _completed(instance, pod)
    # 6. No template: a typing error in the spec is no reason to delete a pod.
    if template is None:
        return _decided(instance)
    # If the node can never do a resize that rule 7 or 8 requests, a new pod is needed.
    if instance.resize is not None and instance.infeasible:
        return _recreate(instance, template, Reason.NOT_IN_PLACE, instance.infeasible)
    # 7. The pod has its template's revision: a restart may be requested, or a resize may be due.
    if instance.updated:
        if pod.spec.pending_requests and restarts_of(pod.spec, template, instance.metadata_before):
            attempt, way = _in_place(instance, pod, template), Reason.NOT_IN_PLACE
            return attempt.verdict or _recreate(instance, template, way, attempt.obstacle)
        if pod.image_writers and (images := edited_images(pod)):
            message = (
                f"{images}. The TApp service keeps the pod's image. To use that image in new pods, "
                "too, write it into the template. To go back to the template's image, replace the "
                "pod"
            )
            return wait(Reason.IMAGES_EDITED, message)
        return _with_resources(instance, pod, template)
    # 8. Another revision: update in place if only images or metadata differ, else replace the pod.
    return _different(instance, pod, template)


def _decided(instance: Instance) -> Verdict:
    """Returns the verdict on an instance without a template.

    The caller has checked that the instance has no template.
    """
    assert instance.decided is not None  # noqa: S101 - one of both is always there
    return instance.decided


def _not_wanted(instance: Instance) -> Verdict | None:
    """Returns the verdict on an instance that should not run: it has no pod, or its pod is deleted.

    The caller has checked that the instance should not run. Returns None if the instance has
    finished and its pod stays for now.
    """
    if not instance.wanted:
        reason, message = Reason.SCALED_DOWN, "its number is not below spec.replicas"
    elif instance.killed:
        reason, message = Reason.KILLED, "spec.statuses sets it to Killed"
    elif instance.pod is None or instance.remove_finished:
        reason, message = (
            Reason.FINISHED,
            f"it has finished ({instance.status}) and does not run again",
        )
    else:
        # The pod of a finished instance stays, unless the spec says otherwise (rule 5).
        return None
    if instance.pod is None:
        return Verdict(Action.ABSENT, reason, f"{message}, so it has no pod")
    return Verdict(Action.DELETE, reason, f"{message}, so the TApp service deletes its pod")


def _missing(instance: Instance) -> Verdict:
    """Returns the verdict on an instance that has no pod: the pod is created, or a problem prevents
    that.
    """
    template, history = instance.template, instance.history
    if template is None:
        return _decided(instance)
    if blocked := instance.no_new_pod or template.obstacle:
        return Verdict(Action.ABSENT, Reason.BLOCKED, blocked)
    message = f"the TApp service creates its pod from template {quoted(template.name)}"
    if history is not None:
        if history.revision:
            message += f" as it was at revision {history.revision}"
        message += history.additions and f", {history.additions}"
        message += history.unknown and f"; {history.unknown}"
    return Verdict(Action.CREATE, Reason.NO_POD, message, Create(template))


def _completed(instance: Instance, pod: Pod) -> Verdict:
    """Returns the verdict on an instance whose pod has ended: the pod stays, or is replaced.

    The caller has checked that the phase of `pod` is Succeeded or Failed.
    """
    template = instance.template
    if instance.finished:
        message = f"it has finished ({instance.status}) and does not run again; its pod is kept"
        return wait(Reason.FINISHED, message)
    if instance.leaving:
        message = "it was stopped and is started again: a new pod follows when the old pod is gone"
        return Verdict(Action.DELETE, Reason.KILLED, message)
    if template is None:
        return _decided(instance)
    if obstacle := template.obstacle or instance.no_new_pod:
        return wait(Reason.BLOCKED, obstacle)
    if pod.failed_by_service:
        reason, why = Reason.NODE_LOST, "was on a lost node"
    elif ended_by_update(pod, instance.update):
        reason, why = Reason.ENDED_BY_UPDATE, "was ended by its update"
    elif pod.disruption:
        reason, why = Reason.COMPLETED, f"was disrupted ({short(pod.disruption)})"
    else:
        reason, why = Reason.COMPLETED, f"has {pod.phase.lower()}"
    if instance.never_migrate:
        message = f"its pod {why} and is not replaced, because spec.neverMigrate is true"
        return wait(Reason.NEVER_MIGRATE, message)
    if instance.pace is not None and not instance.pace.is_due:
        failures = instance.pace.failures
        times = "" if failures == 1 else f", {failures} times in a row"
        when = written(instance.pace.due + 1)  # `written` drops the fraction of the second
        message = f"its pod {why} soon after its creation{times}; the next pod will be created"
        return wait(Reason.BACK_OFF, f"{message} at {when}")
    return Verdict(Action.DELETE, reason, f"its pod {why}, so the TApp service replaces it")


def _names(containers: Iterable[str]) -> str:
    """Returns names of containers as one text for a message, cut if it is long."""
    return short(name_list([*containers]))


def _containers(containers: Collection[str]) -> str:
    """Returns `container web`, or `containers web, log`, for a message."""
    return f"container{'s'[: len(containers) != 1]} {_names(containers)}"


def _images(containers: Collection[str]) -> str:
    """Returns `the image of container web`, or `the images of containers web, log`."""
    return f"the image{'s'[: len(containers) != 1]} of {_containers(containers)}"


def _recreate(instance: Instance, template: Template, reason: Reason, message: str) -> Verdict:
    """Returns the verdict that replaces the pod by a new one, with this reason and message.

    If no new pod could be created from `template`, the verdict keeps the old pod and says why.
    """
    if obstacle := template.obstacle or instance.no_new_pod:
        return wait(Reason.BLOCKED, obstacle)
    if reason is Reason.NOT_IN_PLACE:
        message = f"its pod is replaced, because an update in place is not possible: {message}"
    return Verdict(Action.RECREATE, reason, message)


def _with_resources(instance: Instance, pod: Pod, template: Template) -> Verdict:
    """Returns the verdict on a pod that has its template's revision, but perhaps not its resources.

    A resize does not change the revision of a pod, so the resources have to be compared as well.
    The verdict is one of these:

    - to resize the pod, if its resources differ from those of the template;
    - to wait, if the kubelet has not finished a resize;
    - that the pod is up to date, or that the partition keeps the pod at its revision.
    """
    if instance.resize is not None:
        if verdict := _resize(instance, pod, template).verdict:
            return verdict
        if instance.resize.progress is not None:
            return _resizing(instance.resize.progress)
    history = instance.history
    if history is None or not history.revision:
        return UP_TO_DATE
    more = history.additions and f", {history.additions}"
    return wait(Reason.KEPT, f"{history.why}{more}")


def _resizing(state: Resizing) -> Verdict:
    """Returns the verdict that waits, because the kubelet has not finished a resize of the pod.

    `state` is the progress of the resize, as the pod's status shows it.
    """
    quote = f": {state.message}" if state.message else ""
    if state.pending == RESIZE_DEFERRED:
        message = (
            f"its node has no room for the resources of its template, so the resize waits{quote}"
        )
        return wait(Reason.RESIZE_DEFERRED, message)
    message = f"the kubelet is resizing its containers to the resources of the template{quote}"
    return wait(Reason.RESIZING, message)


def _resize(instance: Instance, pod: Pod, template: Template) -> Attempt:
    """Tries to give a pod the resources of its template by a resize, without a new pod.

    The result is one of these:

    - An attempt with the verdict to resize the pod.
    - An attempt with an obstacle, if Kubernetes cannot resize the pod.
    - An empty attempt, if the pod already requests the resources, or if the spec does not resize
      pods (`resources: InPlace`).
    """
    wanted = None if instance.resize is None else instance.resize.wanted
    if wanted is None or (not wanted.resources and not wanted.obstacle):
        return _NOTHING
    if obstacle := obstacle_to_resize(pod, wanted):
        return Attempt(obstacle=obstacle)
    names = _containers(wanted.resources)
    message = f"template {quoted(template.name)} changes resources of {names} in place"
    if wanted.restarts:
        message += f"; the resizePolicy restarts {_containers(wanted.restarts)}"
    if rereads := (instance.comparison or NOT_COMPARED).rereads:
        restarts = "restarts" if len(rereads) == 1 else "restart"
        message += f"; then {_containers(rereads)} {restarts}, to read the new resources"
    change = Resize(pod, template, wanted.resources)
    return Attempt(Verdict(Action.UPDATE, Reason.TEMPLATE_CHANGED, message, change))


def _of_another(instance: Instance, pod: Pod, template: Template) -> Attempt:
    """Tries to adopt a pod that another controller has created.

    The pod has no hashes of this service, so template and pod are compared field by field. The
    result is one of these:

    - An attempt with a verdict, if the template describes the pod, or the partition keeps the pod.
    - An empty attempt, if only images differ: the caller then tries to update the pod in place.
    - An attempt with an obstacle, if other fields differ.
    """
    manifest = pod.manifest
    wanted, observed = comparable(template.spec), comparable(manifest.spec)
    if template.ignores_resources:
        wanted = without_resources(wanted)
    if (
        describes(wanted, observed)
        and describes(template.labels, manifest.labels)
        and describes(template.annotations, manifest.annotations)
    ):
        message = (
            "another controller created its pod, and the pod matches the template, so the TApp "
            "service only adds its own labels to the pod"
        )
        return Attempt(Verdict(Action.ADOPT, Reason.ADOPTED, message, Adopt(pod, template)))
    if instance.history is not None and instance.kept:
        message = (
            f"another controller created its pod, which stays as it is: {instance.history.why}"
        )
        return Attempt(wait(Reason.KEPT, message))
    return _NOTHING if differs_in_images_only(wanted, observed) else Attempt(obstacle=_IN_MORE)


def _different(instance: Instance, pod: Pod, template: Template) -> Verdict:
    """Returns the verdict on a pod whose revision differs from the revision of its template.

    The verdict is to adopt the pod if the template describes the same pod. Otherwise it is to
    update the pod in place, to resize it or to replace it, in this order of preference. If none of
    these is possible, the pod stays as it is.
    """
    spec, foreign = pod.spec, pod.foreign
    if foreign:
        attempt, more = _of_another(instance, pod, template), _IN_MORE
        if attempt.verdict:
            return attempt.verdict
        in_place = not attempt.obstacle
    elif instance.comparison is not None and instance.comparison.same:
        message = f"template {quoted(template.name)} is written differently and describes the same "
        message += "pod, so only labels of the pod change, and nothing restarts"
        return Verdict(Action.ADOPT, Reason.SAME_MEANING, message, Adopt(pod, template))
    else:
        more = _beyond_metadata(instance, spec, template)
        in_place = not more
    # The API server and the kubelet refuse the same fields in a new pod and in an update.
    any_pod = "" if instance.problems is None else instance.problems.any_pod
    if beyond := template.limit_problem or any_pod:
        return wait(Reason.BLOCKED, beyond)
    # `kubectl rollout restart` requests new pods, so no update in place is tried.
    restarted_at = template.annotations.get(RESTARTED_AT, "")
    blocked = template.obstacle or instance.no_new_pod
    if not foreign and restarted_at not in ("", spec.restarted_at) and not blocked:
        why = f"requests new pods: its annotation {RESTARTED_AT} is {short(restarted_at)}"
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
    message = (
        f"template {quoted(template.name)} differs from its pod in {more}, so the pod is replaced"
    )
    return _recreate(instance, template, Reason.TEMPLATE_CHANGED, message)


def _resize_alone(instance: Instance, pod: Pod, template: Template) -> Attempt:
    """Tries to bring a pod to its changed template by nothing but a resize.

    The function only decides, and sends no request. The caller has checked that pod and template
    differ only in resources, images and metadata. If images differ, the attempt has an obstacle,
    because a resize cannot change images. Otherwise the result is that of `_resize`.
    """
    images = changed_images(pod.spec, template)
    if images and instance.resize is not None:
        verb = "changes" if len(images) == 1 else "change"
        why = f"{_images(images)} {verb} as well, which a resize cannot do"
        return Attempt(obstacle=why)
    return _resize(instance, pod, template)


def _beyond_metadata(instance: Instance, spec: PodSpec, template: Template) -> str:
    """Returns a difference between pod and template that an update in place cannot change.

    Returns an empty string if they differ at most in images, labels and annotations. Resources are
    no difference if the TApp ignores them, or if the pod already has the template's resources
    because somebody has resized it.

    Args:
        instance: the instance of the pod.
        spec: the pod's spec.
        template: the template that the instance should run.
    """
    if spec.uniq_hash == template.uniq or (instance.comparison or NOT_COMPARED).same_spec:
        return ""
    if not _differs_in_resources(instance, spec, template):
        return _IN_MORE
    if template.ignores_resources:
        return ""
    for container in running(template.spec):
        name = container["name"]
        if canonical_resources(container.get("resources")) != canonical_resources(
            spec.resources_of(name)
        ):
            return f"the resources of container {quoted(name)}"
    return ""


def _differs_in_resources(instance: Instance, spec: PodSpec, template: Template) -> bool:
    """Returns True if a pod differs from its template at most in resources, images and metadata.

    Returns False if the pod differs in more, or if it may differ in more: neither the hashes in its
    labels nor the history prove the contrary.
    """
    bare = (instance.comparison or NOT_COMPARED).bare
    return spec.uniq_hash in template.hashes or bare == template.hashes.bare


def _in_place(instance: Instance, pod: Pod, template: Template) -> Attempt:
    """Tries to update a pod in place, by new metadata or images or by a restart of containers.

    The caller has checked that pod and template differ in nothing else. The result is one of these:

    - An attempt with the verdict to update the pod, or to wait until a container can restart.
    - An attempt with an obstacle, if Kubernetes cannot do the update in the existing pod.
    """
    spec, name = pod.spec, f"template {quoted(template.name)}"
    comparison = instance.comparison or NOT_COMPARED
    images = changed_images(spec, template) if not instance.updated else {}
    rereads = [each for each in comparison.rereads if each in template.images]
    if rereads and instance.resizing is not None:
        # A container that restarts now would read the resources of before the resize.
        return Attempt(_resizing(instance.resizing))
    requested = [*restarts_of(spec, template, instance.metadata_before), *rereads]
    restarts = [each for each in dict.fromkeys(requested) if each not in images]
    if obstacle := obstacle_to([*images, *restarts], pod):
        return Attempt(obstacle=obstacle)
    restart = plan_restart(pod, restarts, instance.update, images)
    if restart.delay:
        return Attempt(wait(Reason.RESTART_WAITS, f"its restart in place waits: {restart.delay}"))
    if restart.obstacle:
        return Attempt(obstacle=restart.obstacle)
    parts = [f"changes {_images(images)}"] if images else []
    parts += [f"restarts {_containers(restarts)}"] if restarts else []
    change = Update(pod, template, {**images, **restart.images}, tuple(restarts))
    if instance.updated:
        message = f"annotation {RESTART_INSTANCE} of its pod {parts[0]} in place"
        return Attempt(Verdict(Action.UPDATE, Reason.RESTART_ASKED, message, change))
    message = f"{name} {' and '.join(parts) or 'changes labels and annotations'} in place"
    same = spec.uniq_hash == template.uniq or comparison.same_spec or template.ignores_resources
    if not same and not pod.foreign:
        message += "; its pod has the resources of the template already"
    return Attempt(Verdict(Action.UPDATE, Reason.TEMPLATE_CHANGED, message, change))
