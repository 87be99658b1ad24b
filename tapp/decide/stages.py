"""The stages that turn verdicts into decisions, in their order.

A verdict is what an instance needs. A stage delays a verdict, or puts a step before it. A later
stage sees the results of the earlier stages. `STAGES` has the order and its reasons.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from tapp.decide.answer_size import AnswerSpace
from tapp.decide.cases import Case, delayed, with_steps
from tapp.decide.deadline import NO_ROLLOUT, Rollout
from tapp.decide.domains import Domains, wait_for_domains
from tapp.decide.markers import Markers, plan_markers
from tapp.decide.missing import MissingObjects
from tapp.decide.ordered_ready import one_after_another
from tapp.decide.overdue import Overdue
from tapp.decide.pod_holds import PodHolds, apply_pod_holds, label_later
from tapp.decide.pulls import Pulls, plan_pulls
from tapp.decide.resizes import Resizes
from tapp.decide.rollout import Budgets, spend
from tapp.decide.serving import Serving
from tapp.storage.attributes import NO_MODIFICATION, Modification
from tapp.storage.claims import ClaimPlan
from tapp.storage.disruption_budget import DisruptionBudgetPlan
from tapp.storage.growth import NO_GROWTH, Growth
from tapp.storage.history import HistoryPlan
from tapp.storage.services import ServicePlan
from tapp.world import Options, World


@dataclass(frozen=True)
class Situation:
    """The input of the stages, which turn verdicts into decisions one after the other.

    It has the observed objects, the options, the time and the budgets.
    """

    world: World
    options: Options
    now: float  # seconds since the epoch
    budgets: Budgets
    serving: Serving  # how the budget counts each instance, before any update of this sync


@dataclass
class StoragePlan:
    """The plans for claims, ControllerRevisions, Services and PodDisruptionBudget of a TApp."""

    claims: ClaimPlan = field(default_factory=ClaimPlan)
    growth: Growth = NO_GROWTH  # the claims that get larger, and what prevents others from it
    # the claims that get another VolumeAttributesClass, and changes that have not finished
    modification: Modification = NO_MODIFICATION
    history: HistoryPlan = field(default_factory=HistoryPlan)  # the ControllerRevisions
    services: ServicePlan = field(default_factory=ServicePlan)
    disruption_budget: DisruptionBudgetPlan = field(default_factory=DisruptionBudgetPlan)


@dataclass
class Findings:
    """The results of all rules in one sync, except for the decisions on the instances.

    Conditions, Events and the data for later syncs in the status are made from them.
    """

    holds: PodHolds = field(default_factory=PodHolds)
    domains: Domains = field(default_factory=Domains)
    pulls: Pulls = field(default_factory=Pulls)
    ordered: frozenset[int] = frozenset()  # instances that wait for other instances to come first
    markers: Markers = field(default_factory=Markers)
    space: AnswerSpace = field(default_factory=AnswerSpace)
    resizes: Resizes = field(default_factory=Resizes)
    rollout: Rollout = NO_ROLLOUT
    storage: StoragePlan = field(default_factory=StoragePlan)
    missing: MissingObjects = field(default_factory=MissingObjects)
    overdue: Overdue = field(default_factory=Overdue)

    def is_created_later(self, instance: int) -> bool:
        """Returns True if an instance gets no pod in this sync because other pods come first.

        `instance` is the number of the instance.
        """
        return instance in self.space.waiting or instance in self.ordered


# A stage returns the cases with its delays or steps, and stores its other results in the findings.
Stage = Callable[[Situation, list[Case], Findings], list[Case]]


def _keep_pods_on_hold(situation: Situation, cases: list[Case], findings: Findings) -> list[Case]:
    """Delays the verdicts that would change a pod on hold.

    Stores the pending actions of these pods in `findings`.
    """
    spec, cases = situation.world.tapp.spec, label_later(cases)
    findings.holds = apply_pod_holds(spec, cases, situation.budgets, situation.now)
    return delayed(cases, findings.holds.delays)


def _update_one_domain(situation: Situation, cases: list[Case], findings: Findings) -> list[Case]:
    """Delays updates until the failure domain of their instances is next (`domain`).

    Stores the instances without a domain in `findings`.
    """
    spec, budgets = situation.world.tapp.spec, situation.budgets
    findings.domains = wait_for_domains(spec, cases, situation.serving, budgets)
    return delayed(cases, findings.domains.delays)


def _pull_images_first(situation: Situation, cases: list[Case], findings: Findings) -> list[Case]:
    """Delays updates until their nodes have pulled the new images (`prePull`).

    Stores the pods that pull images in `findings`.
    """
    findings.pulls = plan_pulls(situation.world, cases, situation.options, situation.now)
    return delayed(cases, findings.pulls.delays)


def _spend_the_budget(situation: Situation, cases: list[Case], findings: Findings) -> list[Case]:
    """Delays updates that have no place in the budget (`maxUnavailable`)."""
    # An update that waits for another failure domain takes no place in the budget.
    pending = [
        case
        for case in cases
        if case.is_pending and case.instance.id not in findings.domains.delays
    ]
    if not pending:
        return cases
    rolling = situation.world.tapp.spec.rolling_name
    should_run = [case.instance.id for case in cases if case.instance.should_run]
    delays = spend(pending, situation.serving, situation.budgets, rolling, should_run)
    return delayed(cases, delays)


def _keep_the_order(situation: Situation, cases: list[Case], findings: Findings) -> list[Case]:
    """Delays creations and deletions until their turn (`podManagementPolicy: OrderedReady`).

    Stores the numbers of the delayed instances in `findings`.
    """
    if not situation.world.tapp.spec.ordered:
        return cases
    delays = one_after_another(cases, situation.serving)
    findings.ordered = frozenset(delays)
    return delayed(cases, delays)


def _write_markers(situation: Situation, cases: list[Case], findings: Findings) -> list[Case]:
    """Puts a step before some verdicts: a write of labels or annotations to the pod.

    For example, the step before an update takes the pod out of its Services. Stores the steps, and
    the instances that wait for their effect, in `findings`.
    """
    tapp, options = situation.world.tapp, situation.options
    findings.markers = plan_markers(tapp, cases, options, situation.now, findings.holds.requests)
    return with_steps(cases, findings.markers.steps)


STAGES: tuple[Stage, ...] = (
    # First: a pod on hold takes no place in the budget, and no image is pulled for it.
    _keep_pods_on_hold,
    # After the holds, which pass an instance over. Before the pulls and the budget: an update of a
    # later domain pulls no image and takes no place.
    _update_one_domain,
    # Before the budget, which looks at the verdicts: an update that waits for its image keeps its
    # place in the budget. Otherwise two syncs with a stale observation would update two instances.
    _pull_images_first,
    # The only stage that chooses between instances. An update on hold needs no place.
    _spend_the_budget,
    # After the budget: what an update takes down now keeps the instances behind it waiting.
    _keep_the_order,
    # Last, because it depends on the final decisions: a pod leaves its Services only for an update
    # that has its place, and a pod that stays loses markers without a purpose.
    _write_markers,
)
