"""The plan of one sync: every instance's verdict after the budget, and what becomes of the claims.

`plan(world, options, now)` is a pure function. Two phases: judge each instance alone, then spend
the budget over an explicitly ordered list.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from tapp.claims import ClaimPlan, claim_templates, claims_of, plan_claims
from tapp.judge import CURRENT, FINISHED, Action, Instance, Verdict, instance_status, judge
from tapp.model import TApp
from tapp.objects import ClaimObject
from tapp.observe import Pod
from tapp.rollout import BUDGET_REASONS, Budgets, Serving, is_update, spend
from tapp.templates import Templates
from tapp.vocabulary import AppStatus, InstanceStatus

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_RECHECK = 1.0
"""Seconds after which to look again where no event of the cluster will wake us."""


@dataclass(frozen=True)
class Options:
    """What an operator may choose for all TApps; `hooks.settings` reads it from the environment.

    Attributes:
        delete_pod_after_app_finish: keep finished pods until the whole app has finished.
        toleration_seconds: the cluster's default for the not-ready and unreachable tolerations.
    """

    delete_pod_after_app_finish: bool = True
    toleration_seconds: int = 300


@dataclass
class World:
    """What the request shows.

    Attributes:
        tapp: the parent.
        pods: instance number -> pod.
        foreign: pods of this TApp whose name is no instance's.
        claims: claim name -> claim.
        namespace_uid: uid of the TApp's Namespace, None where the request has none.
    """

    tapp: TApp
    pods: Mapping[int, Pod] = field(default_factory=dict)
    foreign: list[Pod] = field(default_factory=list)
    claims: Mapping[str, ClaimObject] = field(default_factory=dict)
    namespace_uid: str | None = None


@dataclass
class Plan:
    """What one sync does.

    Attributes:
        instances: by ascending number: all below `spec.replicas`, then those that are to go.
        verdicts: one per instance, in the same order.
        claims: what becomes of the claims.
        templates: the templates that were looked up.
        budgets: both budgets, resolved.
        available: numbers of the available instances, before any update of this sync.
        going_unseen: instances that look available, but may already be on their way out.
        app_status: `status.appStatus`.
        recheck: seconds after which to sync again, None where an event will do.
    """

    world: World
    instances: list[Instance]
    verdicts: list[Verdict]
    claims: ClaimPlan
    templates: Templates
    budgets: Budgets
    available: set[int]
    going_unseen: set[int]
    app_status: AppStatus
    recheck: float | None

    @property
    def replacing(self) -> dict[str, str]:
        """Instance -> uid of its pod, for pods replaced now that were not available.

        An entry stays while the instance waits for the budget: its deletion may still be unseen.
        """
        return {
            str(instance.id): instance.pod.uid
            for instance, verdict in self.open_cases
            if instance.pod is not None
            and instance.pod.uid
            and instance.id not in self.available
            and (
                verdict.action is Action.RECREATE
                or (instance.id in self.going_unseen and verdict.reason in BUDGET_REASONS)
            )
        }

    @cached_property
    def open_cases(self) -> list[tuple[Instance, Verdict]]:
        """Instances that do not simply run their template, with their verdicts."""
        return [
            pair
            for pair in zip(self.instances, self.verdicts, strict=True)
            if pair[1] is not CURRENT
        ]


def plan(world: World, options: Options, now: float) -> Plan:
    """Decides.

    Args:
        world: what was observed.
        options: the operator's choices.
        now: seconds since the epoch; only `minReadySeconds` looks at it.
    """
    spec = world.tapp.spec
    templates = Templates(spec)
    instances = _instances(world, templates)
    app = app_status(instances)
    rechecks = _mark_removals(instances, app, world, options)

    should_run = sum([instance.should_run for instance in instances])
    budgets = Budgets(spec.update_strategy, should_run)
    available, waits = _available(instances, spec.min_ready_seconds, now)
    going_unseen = available & _chosen_before(instances, world.tapp.status.replacing)
    available -= going_unseen
    rechecks += waits

    verdicts = [judge(instance) for instance in instances]
    open_cases = [pair for pair in zip(instances, verdicts, strict=True) if pair[1] is not CURRENT]
    pending = [pair for pair in open_cases if is_update(pair[1])]
    if pending:
        unsettled = _unsettled(world.tapp)
        serving = Serving(available, going_unseen, unsettled)
        spent = spend(pending, serving, budgets, spec.rolling_name)
        verdicts = [
            spent.get(instance.id, verdict)
            for instance, verdict in zip(instances, verdicts, strict=True)
        ]
        if unsettled and any(verdict.reason == "SpecJustChanged" for verdict in spent.values()):
            rechecks.append(_RECHECK)

    creating = [instance.id for instance, verdict in open_cases if verdict.action is Action.CREATE]
    name = world.tapp.metadata.name
    claims = plan_claims(name, spec, world.claims, set(world.pods), creating)
    return Plan(
        world=world,
        instances=instances,
        verdicts=verdicts,
        claims=claims,
        templates=templates,
        budgets=budgets,
        available=available,
        going_unseen=going_unseen,
        app_status=app,
        recheck=min(rechecks, default=None),
    )


def _instances(world: World, templates: Templates) -> list[Instance]:
    tapp = world.tapp
    spec, pods, remembered = tapp.spec, world.pods, tapp.status.statuses
    replicas, never_migrate = spec.replicas, spec.never_migrate
    killed = {id for id, status in spec.statuses.items() if status == InstanceStatus.KILLED}
    named, default = spec.templates, templates.named(spec.default_name)
    instances = []
    surplus = sorted([id for id in pods if id >= replicas])
    for id in [*range(replicas), *surplus]:
        key = str(id)
        pod, wanted, is_killed = pods.get(id), id < replicas, key in killed
        status = instance_status(pod, is_killed, remembered.get(key, ""), never_migrate)
        template = templates.of(id) if key in named else default
        should_run = wanted and not is_killed and status not in FINISHED
        instances.append(Instance(id, pod, template, status, wanted, is_killed, should_run))
    _block_creations(world, instances)
    return instances


def _block_creations(world: World, instances: list[Instance]) -> None:
    """Names what stands in the way of creating a pod, so that a person need not guess."""
    spec, name = world.tapp.spec, world.tapp.metadata.name
    dying = {n for n, claim in world.claims.items() if claim.metadata.deletion_timestamp}
    if not dying and not spec.service_name:
        return
    templates = claim_templates(spec)
    for instance in instances:
        if instance.pod is not None or not instance.wanted:
            continue
        pod_name = f"{name}-{instance.id}"
        going = dying.intersection(claims_of(name, instance.id, templates).values())
        if going:
            instance.blocked = f"claim {min(going)} is being deleted"
        elif spec.service_name and not _DNS_LABEL.fullmatch(pod_name):
            instance.blocked = (
                f"spec.serviceName needs pod names that are host names, and {pod_name!r} is none: "
                "at most 63 letters, digits and '-'"
            )


_ALIVE = frozenset(InstanceStatus) - {*FINISHED, InstanceStatus.KILLED}


def app_status(instances: list[Instance]) -> AppStatus:
    """`status.appStatus` of the instances below `spec.replicas` (design section 3.2)."""
    statuses = {instance.status for instance in instances if instance.wanted}
    if not statuses:
        return AppStatus.PENDING
    if statuses & _ALIVE:
        return AppStatus.RUNNING
    if InstanceStatus.FAILED in statuses:
        return AppStatus.FAILED
    return AppStatus.SUCC if InstanceStatus.SUCC in statuses else AppStatus.KILLED


def _mark_removals(
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
                rechecks.append(_RECHECK)
    return rechecks


def _available(
    instances: list[Instance], min_ready_seconds: int, now: float
) -> tuple[set[int], list[float]]:
    """Numbers of the available instances, and the seconds until others may become available."""
    available, waits = set(), []
    for instance in instances:
        pod = instance.pod
        if (
            pod is None
            or pod.ready is not True
            or not pod.running
            or not instance.should_run
            or instance.status is InstanceStatus.UPDATING
        ):
            continue
        if min_ready_seconds and (missing := min_ready_seconds - pod.ready_for(now)) > 0:
            waits.append(missing)
        else:
            available.add(instance.id)
    return available, waits


def _chosen_before(instances: list[Instance], replacing: Mapping[str, str]) -> set[int]:
    """Instances whose pod an earlier sync has chosen to replace while it was not available.

    A pod that is not available may be replaced without a look at the budget, and a deletion is not
    guarded by the pod's resourceVersion. Should the pod have recovered just before, then a lagging
    cache shows it available, and its deletion not yet; the budget would be spent on others. Or the
    deletion has failed, and the pod serves: then it has to wait for the budget like any other.
    """
    if not replacing:
        return set()
    return {
        instance.id
        for instance in instances
        if instance.pod is not None and replacing.get(str(instance.id)) == instance.pod.uid
    }


def _unsettled(tapp: TApp) -> bool:
    """Whether updates of the previous spec may be under way that this observation does not show.

    Metacontroller's cache may lag behind its own writes. While the spec stays the same that does no
    harm: the same instances are chosen again, and a write on an old resourceVersion is refused. But
    right after a spec change in the middle of a roll-out other instances would be chosen, on top of
    those just taken down. One sync later the cache has been seen to move on.
    """
    seen, generation = tapp.status.observed_generation, tapp.metadata.generation
    if not seen or seen == generation:
        return False
    quiet = any(
        condition.type == "Progressing" and condition.reason == "Complete"
        for condition in tapp.status.conditions
    )
    return not (quiet and seen == generation - 1)
