"""Instances: the numbers of a TApp, and all observations about each before it is judged.

`observe_instances` reads the pod, the spec and the status of each number. Other rules add their
part (`assembly.py` calls them in order): the partition, the comparison of templates, resizes,
problems of new pods, and pods that have ended.
"""

from typing import Final

import msgspec

from tapp.decide.verdicts import Verdict, no_template
from tapp.declared.lookup import Templates
from tapp.declared.metadata import Metadata
from tapp.declared.model import TApp
from tapp.declared.templates import Template, Unresolved
from tapp.kube.restarts import COMPLETED
from tapp.pod.inplace import NO_UPDATE, Progress, ended_by_update, progress
from tapp.pod.lost import observed_silence, silent_since
from tapp.pod.pace import Pace
from tapp.pod.pod import Pod
from tapp.pod.resize import Resizing, Wanted
from tapp.pod.trouble import TROUBLE_AFTER
from tapp.storage.claims import PodSource
from tapp.words.notes import ReadyNote, UpdateNote, decode_names, decoded
from tapp.words.times import UNKNOWN, noted_since, past_time
from tapp.words.vocabulary import AppStatus, InstanceStatus
from tapp.world import World

FINISHED = (InstanceStatus.SUCC, InstanceStatus.FAILED)
KILLING = InstanceStatus.KILLING
RECHECK = 1.0  # Seconds until the next sync if no event of the cluster will start it


class FromHistory(msgspec.Struct, frozen=True, gc=False):
    """The parts of an instance that come from a ControllerRevision instead of the current spec.

    A partition keeps the instance at an older revision (`kept_instances.py`), or the newest
    revision was rolled back (`rollback.py`).
    """

    # The revision at which the instance is kept; "" for an instance at the newest revision, whose
    # record differs from the spec in claims or Service
    revision: str = ""
    # The recorded spec, for claims and Service; None if the record has only the template
    templates: Templates | None = None
    # Text for users about claims and a Service that only the recorded spec has, or ""
    additions: str = ""
    unknown: str = ""  # sentence for users about facts that the history lacks, or ""
    # The newest revision if the instance is kept because that revision was rolled back; "" if a
    # partition keeps the instance
    rolled_back: str = ""

    @property
    def why(self) -> str:
        """Returns the clause that says why the instance is kept at the revision."""
        if self.rolled_back:
            return (
                f"revision {self.rolled_back} was rolled back, so it runs revision {self.revision}"
            )
        return f"spec.updateStrategy.partition keeps it at revision {self.revision}"


class Comparison(msgspec.Struct, frozen=True, gc=False):
    """The differences between the template that a pod was created from and its instance's template.

    `comparison.py` computes them. The defaults mean that the template of the pod is unknown.
    """

    # The hash without images and resources (`Hashes.bare`) of the pod's template; "" if unknown
    bare: str = ""
    # True if both templates make the same pod, except for images, labels and annotations
    same_spec: bool = False
    same: bool = False  # True if both templates make the same pod
    # Labels and annotations of the pod's template; None if the history lacks that template
    metadata: Metadata | None = None
    # Containers that have to restart because their environment variables have resources that the
    # template has changed (`reads.py`)
    rereads: tuple[str, ...] = ()


NOT_COMPARED: Final = Comparison()


class ResizeState(msgspec.Struct, frozen=True, gc=False):
    """The resources of a pod compared with those of its template, and the progress of a resize.

    `resizes.py` computes it, if the spec has `resources: InPlace`.
    """

    wanted: Wanted  # the resources of the template that the pod does not have
    progress: Resizing | None = None  # the resize that the kubelet has not finished, or None
    infeasible: str = ""  # why the pod can never have the resources of its template, or ""


class PodProblems(msgspec.Struct, frozen=True, gc=False):
    """Reasons why no pod can be created from an instance's template (`pod_problems.py`).

    An instance with such a problem keeps the pod that it has.
    """

    new_pod: str  # why no new pod can be created
    # Reason why the existing pod cannot be updated to its template either; or ""
    any_pod: str = ""


class Instance(msgspec.Struct, frozen=True, gc=False):
    """One instance of a TApp, with all observations on which its verdict depends.

    If a field is None, the instance has no such part.
    """

    id: int
    pod: Pod | None
    template_name: str
    template: Template | None  # what the instance should run; None if `decided` says why not
    decided: Verdict | None = None  # the verdict on an instance that has no template
    status: InstanceStatus = InstanceStatus.NOT_CREATED  # its new value in `status.statuses`
    wanted: bool = True  # whether the number is below `spec.replicas`
    killed: bool = False  # whether `spec.statuses` stops the instance
    # True if the instance is wanted, not killed and not finished; percentages refer to these
    should_run: bool = True
    never_migrate: bool = False  # `spec.neverMigrate`
    updated: bool = False  # True if the pod has its template's revision and is not being deleted
    leaving: bool = False  # the instance was killed, and its completed pod still exists
    service_name: str = ""  # the Service of the pod's host name, "" for none
    # Since when the pod's node has not reported, in seconds since the epoch; None if it reports
    silent_since: float | None = None
    # When a sync first saw the pod Ready, or its node silent, in seconds since the epoch. `UNKNOWN`
    # if the condition Ready has a usable time
    seen_since: float = UNKNOWN
    update: Progress = NO_UPDATE  # how far the last update in place of the pod has come
    history: FromHistory | None = None  # None if the instance is as the spec has it
    comparison: Comparison | None = None
    resize: ResizeState | None = None
    problems: PodProblems | None = None
    pace: Pace | None = None  # how soon the completed pod is replaced; None if it need not wait
    remove_finished: bool = False  # whether the pod of the finished instance is deleted now

    @property
    def kept(self) -> str:
        """Returns the older revision at which a partition or a rollback keeps the instance.

        Returns an empty string if neither of them keeps the instance, or if the revision is the
        newest.
        """
        return "" if self.history is None else self.history.revision

    @property
    def is_rolled_back(self) -> bool:
        """Returns True if the instance has an older revision because the newest was rolled back."""
        return self.history is not None and self.history.rolled_back != ""

    @property
    def source(self) -> PodSource:
        """Returns the number, template and spec from which the instance's next pod is created.

        The spec is None unless a partition or a rollback keeps the instance at an older revision:
        then it is the spec of that revision.
        """
        recorded = None if self.history is None else self.history.templates
        return PodSource(self.id, self.template, recorded)

    @property
    def metadata_before(self) -> Metadata | None:
        """Returns the labels and annotations of the template that the pod was created from.

        Returns None if that template is unknown.
        """
        comparison = self.comparison
        same = self.updated or (comparison is not None and comparison.same)
        if same and self.template is not None:
            return Metadata(self.template.labels, self.template.annotations)
        return None if comparison is None else comparison.metadata

    @property
    def resizing(self) -> Resizing | None:
        """Returns the progress of the resize to the template's resources that the kubelet is doing.

        Returns None if no such resize is under way.
        """
        return None if self.resize is None else self.resize.progress

    @property
    def infeasible(self) -> str:
        """Returns why the pod can never get the resources of its template.

        Returns an empty string if no such reason is known.
        """
        return "" if self.resize is None else self.resize.infeasible

    @property
    def no_new_pod(self) -> str:
        """Returns why no new pod can be created from the template, or an empty string."""
        return "" if self.problems is None else self.problems.new_pod

    @property
    def finished(self) -> bool:
        """Returns True if the instance has run to its end and does not run again.

        The pod may have succeeded or failed.
        """
        return self.status in FINISHED


def with_parts(  # noqa: PLR0913 - the parts that rules add after the partition
    instance: Instance,
    *,
    comparison: Comparison | None,
    resize: ResizeState | None,
    problems: PodProblems | None,
    pace: Pace | None,
    remove_finished: bool,
) -> Instance:
    """Returns a copy of the instance with the parts that other rules have computed.

    Args:
        instance: the instance, as the partition has left it.
        comparison: the differences between the template that the pod was created from and the
            instance's template; None if there are none.
        resize: the state of the pod's resources; None without `resources: InPlace`.
        problems: why no pod can be created from the template; None if one can be created.
        pace: when the completed pod may be replaced; None if it need not wait.
        remove_finished: True if the pod of the finished instance is deleted now.
    """
    return msgspec.structs.replace(
        instance,
        comparison=comparison,
        resize=resize,
        problems=problems,
        pace=pace,
        remove_finished=remove_finished,
    )


def gives_way(pod: Pod, update: Progress, remembered: str = "") -> bool:
    """Returns True if a completed pod is to be replaced, and False if its instance has finished.

    Args:
        pod: the pod; the caller has checked that its phase is Succeeded or Failed.
        update: the progress of the pod's last update in place. A pod that this update ended is
            replaced.
        remembered: the status of the instance in the last sync (docs/finished.md). If it says that
            the instance had finished, an eviction of the pod is no reason to replace the pod.
    """
    if pod.failed_by_service or pod.refused_by_kubelet or ended_by_update(pod, update):
        return True
    # The pod of a finished instance may be evicted, too, when its node is drained. The work of the
    # instance is done all the same.
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
    """Returns the status of an instance for `status.statuses`, such as Running or Updating.

    Args:
        pod: the pod of the instance, or None.
        killed: True if `spec.statuses` stops the instance.
        remembered: the status of the instance in the last sync, or an empty string.
        never_migrate: True if `spec.neverMigrate` keeps completed pods from being replaced.
        update: the progress of the last update in place of the pod.
        silent_since: since when the pod's node has not reported, in seconds since the epoch; None
            if the node reports.
        now: the time of this sync, in seconds since the epoch.
    """
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
    # An instance whose pod was ended by an update is broken, not finished, also if
    # spec.neverMigrate keeps the pod.
    broken = pod.failed_by_service or ended_by_update(pod, update)
    replaced = broken or (gives_way(pod, update, remembered) and not never_migrate)
    if phase == "Failed":
        return InstanceStatus.POD_FAILED if replaced else InstanceStatus.FAILED
    return InstanceStatus.POD_SUCC if replaced else InstanceStatus.SUCC


def observe_instances(world: World, now: float) -> list[Instance]:
    """Returns the instances, sorted by number.

    All numbers below `spec.replicas` have an instance, with or without a pod. Pods with higher
    numbers have one, too. `now` is the time of this sync, in seconds since the epoch.
    """
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
            update = progress(pod, now, past_time(unproved_since.get(note), now), seen)
        seen_since, silent = UNKNOWN, None
        if pod is not None and (pod.ready is not None or pod.unacknowledged):
            if pod.ready:
                unclear = spec.min_ready_seconds and pod.ready_at(now) == UNKNOWN
            else:
                unclear = observed_silence(pod, now) == UNKNOWN
            if unclear:
                noted = undated.get(ReadyNote(id, pod.ready is True), "")
                seen_since = noted_since(noted, now)[1]
            # The node of a Ready pod reports.
            if not pod.ready or pod.phase != "Running":
                silent = silent_since(pod, now, seen_since)
        before = remembered.get(key, "")
        # A killed instance starts again with a new pod. Its completed pod does not count as
        # finished, also if the author starts the instance before that pod is deleted.
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
        found = templates.of(id) if default is None or key in named else default
        template = found if isinstance(found, Template) else None
        decided = None
        if isinstance(found, Unresolved):
            decided = no_template(found.reason, found.message, has_pod=pod is not None)
        should_run = wanted and not is_killed and status not in FINISHED
        instances.append(
            Instance(
                id,
                pod,
                found.name,
                template,
                decided,
                status,
                wanted,
                is_killed,
                should_run,
                never_migrate,
                is_updated(pod, template),
                leaving and wanted,
                spec.service_name,
                silent,
                seen_since,
                update,
            )
        )
    return instances


def runs(pod: Pod | None, template: Template | None) -> bool:
    """Returns True if a pod has the revision of a template, even if the pod is being deleted.

    Returns False if the pod or the template is None.
    """
    return pod is not None and template is not None and pod.spec.template_hash == template.revision


def is_updated(pod: Pod | None, template: Template | None) -> bool:
    """Returns True if a pod has the revision of a template and is not being deleted.

    Returns False if the pod or the template is None.
    """
    if pod is None or template is None or pod.terminating:
        return False
    return pod.spec.template_hash == template.revision


def is_fresh(tapp: TApp, id: int) -> bool:
    """Returns True if an instance starts for the first time, or again after it was killed or ended.

    The status of the last sync decides:

    - If the status has an entry for the instance, the entry says whether it was killed or ended.
    - If it has no entry and the spec has changed since, the instance is new.
    - If it has no entry and the spec has not changed, the instance has lost its pod, and other pods
      are created first. The result is then False.

    `id` is the number of the instance.
    """
    before = tapp.status.statuses.get(str(id))
    if before:
        return before == InstanceStatus.KILLED or before in FINISHED
    return tapp.status.observed_generation != tapp.metadata.generation


_ALIVE = frozenset(InstanceStatus) - {*FINISHED, InstanceStatus.KILLED}


def app_status(instances: list[Instance]) -> AppStatus:
    """Returns `status.appStatus`: one status for all instances below `spec.replicas` together."""
    statuses = {instance.status for instance in instances if instance.wanted}
    if not statuses:
        return AppStatus.PENDING
    if statuses & _ALIVE:
        return AppStatus.RUNNING
    if InstanceStatus.FAILED in statuses:
        return AppStatus.FAILED
    return AppStatus.SUCC if InstanceStatus.SUCC in statuses else AppStatus.KILLED
