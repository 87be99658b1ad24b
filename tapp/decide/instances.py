"""Instances, the numbers of a TApp: its pod, its template, its status, and what it may wait for."""

import msgspec

from tapp.decide.filling import Filling
from tapp.kube.names import is_dns_label
from tapp.kube.restarts import COMPLETED
from tapp.pod.inplace import NO_UPDATE, Progress, ended_by_update, progress
from tapp.pod.pace import Pace, pace
from tapp.pod.pod import Pod
from tapp.pod.resize import Resizing, Wanted
from tapp.pod.trouble import PATIENCE
from tapp.spec.lookup import Templates
from tapp.spec.model import TApp
from tapp.spec.templates import Template, Unresolved
from tapp.storage.claims import Claims, Made
from tapp.words.notes import UpdateNote, decode_names, decoded
from tapp.words.quoted import quoted
from tapp.words.times import seconds
from tapp.words.vocabulary import AppStatus, InstanceStatus
from tapp.world import Options, World

FINISHED = (InstanceStatus.SUCC, InstanceStatus.FAILED)
KILLING = InstanceStatus.KILLING
RECHECK = 1.0
"""Seconds after which to look again where no event of the cluster will wake us."""


class Instance(msgspec.Struct, gc=False):
    """One number of a TApp, with all that its verdict depends on.

    Attributes:
        id: its number.
        pod: the observed pod, if any.
        template: what it should run.
        status: its entry in `status.statuses` as it is now.
        wanted: whether the number is below `spec.replicas`.
        killed: whether the author stopped it.
        never_migrate: whether a completed pod of it is never replaced.
        should_run: whether the author wants it to run, and it has not run to its end: the base of
            every budget.
        remove_finished: whether its finished pod is due for removal.
        updated: whether its pod carries the revision of its template.
        recorded: the hash without images and resources (`Hashes.bare`) of the template whose
            revision its pod carries instead; "" where nobody can tell (`recall.py`).
        alike: whether that one means the same, but for images, labels and annotations.
        respelled: whether it means the same in everything.
        resize: what its pod lacks of its template's resources (`resizes.py`); None where a change
            of these is not done in the pod.
        resizing: how far its kubelet is with resources that its template asks for; None if done.
        infeasible: why its kubelet can never give its pod what its template asks for, or "".
        leaving: whether its completed pod was to go because it was killed, and is still there.
        blocked: why its pod must not be created now, or "".
        unmade: why no pod could be made of its template, as far as that shows (`unmade.py`), or "";
            one that it has does not go for it.
        update: how far the last in-place update of its pod has come.
        pace: how soon its completed pod is replaced; None where that need not wait.
        due: whether that time has come.
        kept: the revision at which the partition keeps it (`partition.py`), "" where it is to run
            the newest.
        past: the TApp as it was then, where that is more than the template: what its pod is made of
            beside it.
        service_name: the Service that its pod's host name is in, "" for none.
        otherwise: what that is which the spec has no longer, for a person; "" where nothing.
        doubt: what is not known of how it was, "" where all is.
    """

    id: int
    pod: Pod | None
    template: Template | Unresolved
    status: InstanceStatus = InstanceStatus.NOT_CREATED
    wanted: bool = True
    killed: bool = False
    should_run: bool = True
    remove_finished: bool = False
    never_migrate: bool = False
    updated: bool = False
    recorded: str = ""
    alike: bool = False
    respelled: bool = False
    resize: Wanted | None = None
    resizing: Resizing | None = None
    infeasible: str = ""
    leaving: bool = False
    blocked: str = ""
    unmade: str = ""
    update: Progress = NO_UPDATE
    pace: Pace | None = None
    due: bool = True
    kept: str = ""
    past: Templates | None = None
    service_name: str = ""
    otherwise: str = ""
    doubt: str = ""

    @property
    def made(self) -> Made:
        """Template and past that its pod is made of."""
        return Made(self.id, self.template, self.past)

    @property
    def finished(self) -> bool:
        """True if it ran to its end and is not run again."""
        return self.status in FINISHED


def gives_way(pod: Pod, update: Progress) -> bool:
    """True if a completed pod gives way (docs/design.md, "Completed and finished instances")."""
    if pod.made_failed or pod.refused_by_kubelet or ended_by_update(pod, update):
        return True
    return not pod.ran_to_its_end


_RUNNING = InstanceStatus.RUNNING


def instance_status(  # noqa: PLR0913, PLR0917 - what is known of it
    pod: Pod | None,
    killed: bool,
    remembered: str,
    never_migrate: bool,
    update: Progress,
    now: float,
) -> InstanceStatus:
    """The status of one instance, from its pod and its memory."""
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
        if update.unfinished or pod.spec.drains:
            return InstanceStatus.UPDATING
        if pod.ready is not False:
            return _RUNNING
        since = pod.silent_since
        silent = since is not None and since + PATIENCE <= now
        return InstanceStatus.UNKNOWN if silent else InstanceStatus.PENDING
    if phase == "Unknown":
        return InstanceStatus.UNKNOWN
    if not pod.completed:
        return InstanceStatus.PENDING
    # What an update has ended is broken, not finished, also where it must not be replaced.
    broken = pod.made_failed or ended_by_update(pod, update)
    replaced = broken or (gives_way(pod, update) and not never_migrate)
    if phase == "Failed":
        return InstanceStatus.POD_FAILED if replaced else InstanceStatus.FAILED
    return InstanceStatus.POD_SUCC if replaced else InstanceStatus.SUCC


def instances_of(world: World, filling: Filling, now: float) -> list[Instance]:
    """All numbers below `spec.replicas`, then those that are to go; ascending."""
    tapp, templates = world.tapp, world.templates
    spec, pods, remembered = tapp.spec, world.pods, tapp.status.statuses
    replicas, never_migrate = spec.replicas, spec.never_migrate
    killed = {id for id, status in spec.statuses.items() if status == InstanceStatus.KILLED}
    leaving_uids = tapp.status.replacing
    unproved_since = decoded(UpdateNote, tapp.status.settling)
    seen_by_kubelet = decoded(UpdateNote, tapp.status.turned)
    named, default = spec.templates, templates.shared(spec.default_name)
    instances = []
    surplus = sorted([id for id in pods if id >= replicas])
    for id in [*range(replicas), *surplus]:
        key = str(id)
        pod, wanted, is_killed = pods.get(id), id < replicas, key in killed
        update = NO_UPDATE
        if pod is not None and not pod.update_over:
            note = UpdateNote(id, pod.generation)
            seen = decode_names(seen_by_kubelet.get(note, ""))
            update = progress(pod, now, seconds(unproved_since.get(note)), seen)
        before = remembered.get(key, "")
        leaving = (
            pod is not None
            and pod.phase in COMPLETED
            and (is_killed or (before == KILLING and leaving_uids.get(key) == pod.uid))
        )
        status = (
            KILLING
            if leaving
            else instance_status(pod, is_killed, before, never_migrate, update, now)
        )
        template = filling.of(id) if default is None or key in named else default
        should_run = wanted and not is_killed and status not in FINISHED
        instance = Instance(id, pod, template, status, wanted, is_killed, should_run)
        instance.update, instance.never_migrate = update, never_migrate
        instance.service_name = spec.service_name
        instance.leaving = leaving and wanted
        instance.updated = filling.knows(id) or (
            pod is not None
            and not pod.terminating
            and type(template) is Template
            and pod.spec.template_hash == template.revision
        )
        instances.append(instance)
    return instances


def block_creations(world: World, instances: list[Instance]) -> None:
    """Names what stands in the way of creating a pod, so that a person need not guess."""
    name = world.tapp.metadata.name
    dying = {n for n, claim in world.claims.items() if claim.metadata.deletion_timestamp}
    own = Claims(world)
    for instance in instances:
        if instance.pod is not None or not instance.should_run:
            continue
        going = dying.intersection(own.of(instance.made).values()) if dying else ()
        if going:
            instance.blocked = f"claim {min(going)} is being deleted"
        elif problem := host_problem(name, instance):
            instance.blocked = problem
        elif own.differ or instance.past is not None:
            instance.blocked = own.problem_of(instance.made)


def host_problem(app: str, instance: Instance) -> str:
    """The reason why an instance's pod cannot have a host name in the headless Service, or ""."""
    pod_name = f"{app}-{instance.id}"
    if not instance.service_name or is_dns_label(pod_name):
        return ""
    return (
        f"spec.serviceName needs pod names that are host names, and {quoted(pod_name)} is none: "
        "at most 63 letters, digits and '-'"
    )


def is_fresh(tapp: TApp, id: int) -> bool:
    """True if an instance is new, or is started again, as far as the status shows.

    Without an entry it is new if the spec is: who loses its pod while others come first has none.
    """
    before = tapp.status.statuses.get(str(id))
    if before:
        return before == InstanceStatus.KILLED or before in FINISHED
    return tapp.status.observed_generation != tapp.metadata.generation


_ALIVE = frozenset(InstanceStatus) - {*FINISHED, InstanceStatus.KILLED}


def app_status(instances: list[Instance]) -> AppStatus:
    """`status.appStatus`: the word for all instances below `spec.replicas`."""
    statuses = {instance.status for instance in instances if instance.wanted}
    if not statuses:
        return AppStatus.PENDING
    if statuses & _ALIVE:
        return AppStatus.RUNNING
    if InstanceStatus.FAILED in statuses:
        return AppStatus.FAILED
    return AppStatus.SUCC if InstanceStatus.SUCC in statuses else AppStatus.KILLED


def mark_removals(
    instances: list[Instance], app: AppStatus, world: World, options: Options
) -> list[float]:
    """Marks finished pods that are due for removal.

    A pod goes only when the parent that we were sent already remembers how it ended: a status that
    was decided but not written yet would be lost with the pod, and the instance would run again.
    """
    if app is AppStatus.RUNNING and options.delete_pod_after_app_finish:
        return []
    remembered = world.tapp.status.statuses
    rechecks = []
    for instance in instances:
        if instance.finished and instance.pod is not None and instance.wanted:
            instance.remove_finished = remembered.get(str(instance.id)) == instance.status
            if not instance.remove_finished:
                rechecks.append(RECHECK)
    return rechecks


def set_pace(instances: list[Instance], world: World, now: float) -> list[float]:
    """Sets how soon completed pods are replaced; the seconds until the next one is due.

    A template that has changed since need not wait: it may be the repair.
    """
    noted, waits = world.tapp.status.failures, []
    for instance in instances:
        pod = instance.pod
        if pod is None or pod.phase not in COMPLETED or pod.terminating or not instance.should_run:
            continue
        if not instance.updated or pod.made_failed or not gives_way(pod, instance.update):
            continue
        instance.pace = pace(pod, instance.id, noted, now)
        if instance.pace is not None:
            left = instance.pace.due - now
            instance.due = left <= 0 and instance.pace.noted
            if not instance.due:
                waits.append(max(left, RECHECK))
    return waits
