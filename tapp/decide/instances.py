"""Instances, the numbers of a TApp: its pod, its template, its status, and what it may wait for."""

import msgspec

from tapp.declared.lookup import Templates
from tapp.declared.metadata import Metadata
from tapp.declared.model import TApp
from tapp.declared.templates import Template, Unresolved
from tapp.kube.restarts import COMPLETED
from tapp.pod.inplace import NO_UPDATE, Progress, ended_by_update, progress
from tapp.pod.lost import silent_since, told_silence
from tapp.pod.pace import Pace
from tapp.pod.pod import Pod
from tapp.pod.resize import Resizing, Wanted
from tapp.pod.trouble import TROUBLE_AFTER
from tapp.storage.claims import Made
from tapp.words.notes import ReadyNote, UpdateNote, decode_names, decoded
from tapp.words.times import UNKNOWN, noted_since, past
from tapp.words.vocabulary import AppStatus, InstanceStatus
from tapp.world import World

FINISHED = (InstanceStatus.SUCC, InstanceStatus.FAILED)
KILLING = InstanceStatus.KILLING
RECHECK = 1.0  # Seconds after which to look again where no event of the cluster will wake us


class Instance(msgspec.Struct, frozen=True, gc=False):
    """One number of a TApp, with all that its verdict depends on (`assembly.py`)."""

    id: int  # its number
    pod: Pod | None  # the observed pod, if any
    template: Template | Unresolved  # what it should run
    status: InstanceStatus = InstanceStatus.NOT_CREATED  # in `status.statuses` as it is now
    wanted: bool = True  # whether the number is below `spec.replicas`
    killed: bool = False  # whether the author stopped it
    should_run: bool = True  # wanted, and not run to its end: the base of every budget
    remove_finished: bool = False  # whether its finished pod is due for removal
    never_migrate: bool = False  # whether a completed pod of it is never replaced
    updated: bool = False  # whether its pod carries the revision of its template
    # the hash without images and resources (`Hashes.bare`) of the template whose revision its pod
    # carries instead; "" where nobody can tell (`comparison.py`)
    recorded: str = ""
    alike: bool = False  # whether that one means the same, but for images, labels and annotations
    respelled: bool = False  # whether it means the same in everything
    # labels and annotations of the template whose revision its pod carries instead; None if the
    # history lacks that template, or the pod has what its template says
    before: Metadata | None = None
    # containers whose environment has resources that its template has changed since (`reads.py`)
    rereads: tuple[str, ...] = ()
    # what its pod lacks of its template's resources (`resizes.py`); None where a change of these is
    # not done in the pod
    resize: Wanted | None = None
    resizing: Resizing | None = None  # how far its template's resources are; None if done
    infeasible: str = ""  # why its kubelet can never give its pod what its template asks for, or ""
    leaving: bool = False  # its completed pod was to go because it was killed, and is there
    # why its pod must not be created now, or, of one that has a pod, why no other could be made of
    # its template, as far as that shows (`unmade.py`); or ""
    unmade: str = ""
    # since when its pod's node has not reported, in seconds since the epoch; None if it reports
    silent_since: float | None = None
    # since when its pod is seen as it is, if the condition Ready has no usable time, else `UNKNOWN`
    seen_since: float = UNKNOWN
    # why its pod cannot be as its template says, neither in place nor another (`unmade.py`); or ""
    unfit: str = ""
    update: Progress = NO_UPDATE  # how far the last in-place update of its pod has come
    pace: Pace | None = None  # how soon its completed pod is replaced; None if it need not wait
    kept: str = ""  # revision at which the partition keeps it (`partition.py`), "": the newest
    # the TApp as it was then, where that is more than the template: what its pod is made of beside
    # it
    past: Templates | None = None
    service_name: str = ""  # the Service that its pod's host name is in, "" for none
    otherwise: str = ""  # what that is which the spec has no longer, for a person; "" where nothing
    doubt: str = ""  # what is not known of how it was, "" where all is

    @property
    def made(self) -> Made:
        """Template and past that its pod is made of."""
        return Made(self.id, self.template, self.past)

    @property
    def metadata_before(self) -> Metadata | None:
        """Labels and annotations of the template that its pod was made of; None if not known."""
        if (self.updated or self.respelled) and isinstance(self.template, Template):
            return Metadata(self.template.labels, self.template.annotations)
        return self.before

    @property
    def finished(self) -> bool:
        """True if it ran to its end and is not run again."""
        return self.status in FINISHED


def gives_way(pod: Pod, update: Progress, remembered: str = "") -> bool:
    """True if a completed pod gives way (docs/design.md, "Completed and finished instances").

    `remembered` is the instance's status so far. The pod of a finished instance may be evicted,
    too, when its node is drained: its work is over all the same.
    """
    if pod.made_failed or pod.refused_by_kubelet or ended_by_update(pod, update):
        return True
    if pod.disruption and remembered not in FINISHED:
        return True
    return not pod.ran_to_its_end


def instance_status(  # noqa: PLR0913, PLR0917 - what is known of it
    pod: Pod | None,
    killed: bool,
    remembered: str,
    never_migrate: bool,
    update: Progress,
    silent_since: float | None,
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
            return InstanceStatus.RUNNING
        silent = silent_since is not None and silent_since + TROUBLE_AFTER <= now
        return InstanceStatus.UNKNOWN if silent else InstanceStatus.PENDING
    if phase == "Unknown":
        return InstanceStatus.UNKNOWN
    if not pod.completed:
        return InstanceStatus.PENDING
    # What an update has ended is broken, not finished, also where it must not be replaced.
    broken = pod.made_failed or ended_by_update(pod, update)
    replaced = broken or (gives_way(pod, update, remembered) and not never_migrate)
    if phase == "Failed":
        return InstanceStatus.POD_FAILED if replaced else InstanceStatus.FAILED
    return InstanceStatus.POD_SUCC if replaced else InstanceStatus.SUCC


def instances_of(world: World, now: float) -> list[Instance]:
    """All numbers below `spec.replicas`, then those that are to go; ascending."""
    tapp, templates = world.tapp, world.templates
    spec, pods, remembered = tapp.spec, world.pods, tapp.status.statuses
    replicas, never_migrate = spec.replicas, spec.never_migrate
    killed = {id for id, status in spec.statuses.items() if status == InstanceStatus.KILLED}
    leaving_uids = tapp.status.replacing
    unproved_since = decoded(UpdateNote, tapp.status.settling)
    seen_by_kubelet = decoded(UpdateNote, tapp.status.turned)
    undated = decoded(ReadyNote, tapp.status.unserved)
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
            update = progress(pod, now, past(unproved_since.get(note), now), seen)
        seen_since, silent = UNKNOWN, None
        if pod is not None and (pod.ready is not None or pod.unacknowledged):
            if pod.ready:
                unclear = spec.min_ready_seconds and pod.told(pod.ready_since, now) == UNKNOWN
            else:
                unclear = told_silence(pod, now) == UNKNOWN
            if unclear:
                noted = undated.get(ReadyNote(id, pod.ready is True), "")
                seen_since = noted_since(noted, now)[1]
            silent = silent_since(pod, now, seen_since)
        before = remembered.get(key, "")
        leaving = (
            pod is not None
            and pod.phase in COMPLETED
            and (is_killed or (before == KILLING and leaving_uids.get(key) == pod.uid))
        )
        status = (
            KILLING
            if leaving
            else instance_status(pod, is_killed, before, never_migrate, update, silent, now)
        )
        template = templates.of(id) if default is None or key in named else default
        should_run = wanted and not is_killed and status not in FINISHED
        instances.append(
            Instance(
                id,
                pod,
                template,
                status,
                wanted,
                is_killed,
                should_run,
                never_migrate=never_migrate,
                updated=is_updated(pod, template),
                leaving=leaving and wanted,
                silent_since=silent,
                seen_since=seen_since,
                update=update,
                service_name=spec.service_name,
            )
        )
    return instances


def runs(pod: Pod | None, template: Template | Unresolved) -> bool:
    """True if a pod is made of a template, also while it ends."""
    return (
        pod is not None
        and type(template) is Template
        and pod.spec.template_hash == template.revision
    )


def is_updated(pod: Pod | None, template: Template | Unresolved) -> bool:
    """True if a pod is made of a template, and stays."""
    return runs(pod, template) and pod is not None and not pod.terminating


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
