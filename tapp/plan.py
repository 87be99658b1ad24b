"""The plan of one sync: what happens to every instance and to all other objects of a TApp.

`make_plan(world, options, now)` is a pure function. It assembles the instances
(`tapp/decide/assembly.py`), judges each of them alone (`tapp/decide/judge.py`), and sends all of
them through the stages (`tapp/decide/stages.py`). Then it plans how much of that fits into the
response, and the claims, ControllerRevisions, Services and PodDisruptionBudget. `tapp/answer/`
makes the response from a plan.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from tapp.decide.answer_size import fit_into_answer, without_node
from tapp.decide.assembly import Assembly, assemble
from tapp.decide.cases import Case, delayed
from tapp.decide.deadline import follow_rollout
from tapp.decide.evictions import min_available
from tapp.decide.instances import RECHECK, Instance
from tapp.decide.judge import verdict_on
from tapp.decide.missing import MissingObjects, missing_since, waits_for, without_claim
from tapp.decide.overdue import Overdue, overdue_of
from tapp.decide.partition import Partition, follow_current
from tapp.decide.pod_problems import CreationProblems
from tapp.decide.resizes import track_resizes
from tapp.decide.rollback import Rollback
from tapp.decide.rollout import Budgets, budgets_of
from tapp.decide.serving import Serving, serving_of, troubles_of
from tapp.decide.stages import STAGES, Findings, Situation, StoragePlan
from tapp.decide.standing import InstanceStanding, standings_of
from tapp.declared.lookup import Templates
from tapp.declared.templates import Template
from tapp.pod.waiting import Trouble
from tapp.storage.attributes import modify
from tapp.storage.claims import plan_claims
from tapp.storage.disruption_budget import DisruptionBudgetPlan, plan_disruption_budget
from tapp.storage.existing_claims import existing_claims
from tapp.storage.growth import grow
from tapp.storage.history import HistoryPlan, plan_history, unchanged_history
from tapp.storage.services import ServicePlan, plan_services
from tapp.words.kinds import SERVICE
from tapp.words.reasons import Reason
from tapp.words.times import noted_since
from tapp.words.vocabulary import AppStatus
from tapp.world import Options, World


@dataclass
class Plan:
    """All decisions of one sync.

    `tapp/answer/` makes the children, the status and the Events of the response from a plan.
    """

    world: World
    options: Options
    now: float  # the time of this sync, in seconds since the epoch
    # Sorted by number: the instances below `spec.replicas`, then surplus pods with higher numbers
    cases: list[Case]
    partition: Partition  # which instances are kept at which older revision
    rollback: Rollback  # whether the newest revision is rolled back
    problems: CreationProblems  # why no pod can be created for some instances
    budgets: Budgets  # how many instances may be unavailable because of updates
    serving: Serving  # how the budget counts the instances, before any update of this sync
    troubles: dict[int, Trouble]  # instance -> trouble of its pod
    # Instance -> how it stands, and why; an available instance that is done has no entry
    standings: Mapping[int, InstanceStanding]
    app_status: AppStatus  # `status.appStatus`
    findings: Findings  # the results of all rules, except for the decisions on instances
    # Seconds after which to sync again; None if an event of the cluster will start the next sync
    recheck: float | None
    instances: list[Instance] = field(init=False)  # the instances of `cases`
    # The cases without those whose pod simply runs its template and to which nothing is written
    notable: list[Case] = field(init=False)
    by_reason: dict[Reason, list[Case]] = field(init=False)  # reason of a decision -> notable cases

    def __post_init__(self) -> None:
        self.instances = [case.instance for case in self.cases]
        self.notable = [case for case in self.cases if case.is_notable]
        self.by_reason = {}
        for case in self.notable:
            self.by_reason.setdefault(case.decision.reason, []).append(case)

    @property
    def available(self) -> set[int]:
        """Returns the numbers of the instances that are available before this sync updates any."""
        return self.serving.available


def make_plan(world: World, options: Options, now: float) -> Plan:
    """Decides what happens to the instances and all other objects of a TApp.

    Args:
        world: the TApp with its children, as the request shows them.
        options: the operator's settings for all TApps.
        now: the time of this sync, in seconds since the epoch.
    """
    assembly = assemble(world, options, now)
    instances, partition = assembly.instances, assembly.partition
    budgets = budgets_of(world.tapp.spec, instances)
    rollback = assembly.rollback
    serving = serving_of(world, instances, now, is_turned=rollback.is_turned)
    situation, findings = Situation(world, options, now, budgets, serving), Findings()

    cases = [Case(instance, verdict_on(instance)) for instance in instances]
    for stage in STAGES:
        cases = stage(situation, cases, findings)
    cases, is_early = _plan_objects(situation, assembly, cases, findings)
    if world.tapp.spec.resizes:
        findings.resizes = track_resizes(world, cases, now)
    findings.missing = _missing_objects(situation, instances, findings)
    findings.overdue = _overdue(world, now)
    troubles = troubles_of(world.tapp, instances, options, now)
    standings = standings_of(cases, serving, troubles, findings.missing, now)
    if len(serving.available) < budgets.should_run or any(case.is_pending for case in cases):
        findings.rollout = follow_rollout(
            world.tapp,
            cases,
            standings,
            serving.available,
            now,
            turned_at=rollback.turned_at,
            # A partition keeps the current revision in a complete rollout, too.
            is_incomplete=bool(rollback.in_use) and not partition.is_set,
        )
    if findings.rollout.exceeded:
        rollback = rollback.after(findings.rollout.waiting, world.tapp.spec.rolling_name)
    waits = (
        *(assembly.waits, serving.waits, findings.holds.waits, findings.markers.waits),
        *(findings.space.waits, findings.pulls.waits, findings.resizes.waits),
        *(findings.rollout.waits, findings.overdue.waits),
        waits_for(findings.missing.claims, now),
        waits_for(findings.missing.services, now),
        waits_for(findings.missing.disruption_budget, now),
        [RECHECK] if is_early else [],
        # The note in the status starts no sync (`ignoreStatusChanges` of the CompositeController).
        [RECHECK] if rollback.begins or rollback.is_turned else [],
        [i.update.wait for i in instances if i.update.wait is not None],
        [each.wait for each in troubles.values() if each.wait is not None],
    )
    current = partition.current
    # A complete return is no complete rollout of the newest revision.
    if rollback.active is None:
        current = follow_current(world, partition, instances, serving.available)
    return Plan(
        world,
        options,
        now,
        cases,
        replace(partition, current=current),
        rollback,
        assembly.problems,
        budgets,
        serving,
        troubles,
        standings,
        assembly.app_status,
        findings,
        min(chain.from_iterable(waits), default=None),
    )


def _plan_objects(
    situation: Situation, assembly: Assembly, cases: list[Case], findings: Findings
) -> tuple[list[Case], bool]:
    """Plans all objects except pods, and which pods fit into the response.

    The response has a size limit. ControllerRevisions come first, because an update could not be
    undone without them. Then come pods with their claims, and Services in the remaining space.

    Args:
        situation: the observed objects, the options, the time and the budgets.
        assembly: the partition and the records of the history.
        cases: the instances with their decisions so far.
        findings: the function adds its plans to this object.

    Returns:
        The cases, in which updates and creations that do not fit are delayed to a later sync. The
        second value is True if another sync has to follow soon, because it is too early for a
        change or an object does not fit.
    """
    world, options = situation.world, situation.options
    left = options.max_new_pods_bytes - findings.pulls.bytes
    instances = [case.instance for case in cases]
    history, is_early = _history(situation, assembly, instances, left)
    # Metacontroller's cache may not show the last updates yet, so another sync has to follow.
    is_early = is_early or (
        situation.serving.unsettled
        and any(
            case.delay is not None and case.delay.reason is Reason.SPEC_JUST_CHANGED
            for case in cases
        )
    )
    left -= history.bytes
    unscheduled = without_node(cases)
    space = findings.space = fit_into_answer(world, cases, unscheduled, left, situation.now)
    services = _services(world, instances, max(1, left - space.bytes))
    sources = [item.source for item in unscheduled if item.id not in space.waiting]
    claims = plan_claims(world, sources)
    existing = existing_claims(world, claims.keep, _recorded(instances))
    growth, modification = grow(world, existing), modify(world, existing)
    cases = delayed(cases, space.delays)
    evictions = _disruption_budget(situation, cases)
    findings.storage = StoragePlan(claims, growth, modification, history, services, evictions)
    return cases, is_early or services.waits or history.waits


def _recorded(instances: Sequence[Instance]) -> dict[int, Templates]:
    """Returns instance number -> older spec at which a partition keeps the instance.

    An instance has no entry if it follows the current spec, or if its ControllerRevision has only
    the template.
    """
    return {
        item.id: item.history.templates
        for item in instances
        if item.history is not None and item.history.templates is not None
    }


def _history(
    situation: Situation, assembly: Assembly, instances: Sequence[Instance], limit: int
) -> tuple[HistoryPlan, bool]:
    """Plans which ControllerRevisions are created and deleted, within `limit` bytes.

    While updates of the previous spec may still be under way, the ControllerRevisions stay
    unchanged. The second value is True if changes were put off for this reason.
    """
    world = situation.world
    running = _running(world, instances)
    in_use = assembly.partition.in_use | assembly.rollback.in_use
    plan = plan_history(world, assembly.records, running, in_use, limit)
    # Their events would start the next sync at once, before the cache shows the pods' last updates.
    if situation.serving.unsettled and (plan.delete or plan.create):
        return unchanged_history(world), True
    return plan, False


def _running(world: World, instances: Sequence[Instance]) -> list[Template]:
    """Returns the templates that the current spec gives to the instances below `spec.replicas`.

    Each template is contained once. An instance that is kept at an older revision counts with its
    template of the current spec. Templates that cannot be resolved are left out.
    """
    names = {
        # The history is checked first, because most instances have none and `kept` is a call.
        item.template_name: world.templates.of(item.id)
        if item.history is not None and item.kept
        else item.template
        for item in instances
        if item.wanted
    }
    return [template for template in names.values() if isinstance(template, Template)]


def _services(world: World, instances: Sequence[Instance], limit: int) -> ServicePlan:
    """Plans the Services of the instances, one for each, in at most `limit` bytes of the response.

    An instance that is deleted or killed keeps its Service until its pod is gone, because clients
    may still use the pod.
    """
    name = world.tapp.metadata.name
    kept = world.tapp.spec.service_retention_policy.when_killed == "Retain"
    services = world.plain.get(SERVICE, {})
    wanted = {}
    if world.tapp.spec.service_template is not None:
        wanted = {
            item.id: item.pod is not None and bool(item.pod.node)
            for item in instances
            if (item.wanted and (kept or not item.killed))
            or (item.pod is not None and f"{name}-{item.id}" in services)
        }
    return plan_services(world, wanted, limit)


def _disruption_budget(situation: Situation, cases: list[Case]) -> DisruptionBudgetPlan:
    """Plans the PodDisruptionBudget of the TApp; `cases` have the decisions of this sync."""
    world, budget = situation.world, situation.world.tapp.spec.disruption_budget
    if budget is None:
        return plan_disruption_budget(world, None)
    try:
        least = min_available(budget, cases, situation.serving.available, world.foreign)
    except ValueError as error:
        return plan_disruption_budget(world, str(error))
    return plan_disruption_budget(world, least)


def _missing_objects(
    situation: Situation, instances: Sequence[Instance], findings: Findings
) -> MissingObjects:
    """Returns the instances that lack a pod, a claim or a Service, with the time since when.

    Includes the time since when the TApp lacks its PodDisruptionBudget.
    """
    world, status, now = situation.world, situation.world.tapp.status, situation.now
    services = findings.storage.services.missing
    unguarded = findings.storage.disruption_budget.is_missing
    return MissingObjects(
        findings.space.not_created,
        missing_since(status.not_owned, without_claim(world, instances), now),
        missing_since(status.not_exposed, services, now),
        {noted_since(status.unguarded, now)[0]: []} if unguarded else {},
    )


def _overdue(world: World, now: float) -> Overdue:
    """Returns the pods, claims and Services whose deletion is overdue.

    A deletion is overdue `TROUBLE_AFTER` seconds after the grace period. `now` is the time of this
    sync, in seconds since the epoch.
    """
    services = world.plain.get(SERVICE, {}).values()
    pods = chain(world.pods.values(), world.pullers.values(), world.foreign)
    return overdue_of(pods, world.claims.values(), services, now)
