"""The record of one sync's decisions, for whoever answers them, tells of them or forecasts."""

from dataclasses import dataclass

from tapp.decide.deadline import Roll
from tapp.decide.instances import Instance
from tapp.decide.judge import Action, Verdict
from tapp.decide.marks import Marks
from tapp.decide.missing import Since
from tapp.decide.partition import Partition
from tapp.decide.pod_holds import PodHolds
from tapp.decide.pulls import Pulls
from tapp.decide.resizes import Resizes
from tapp.decide.rollout import BUDGET_REASONS, Budgets
from tapp.decide.serving import Serving
from tapp.decide.unmade import Ahead
from tapp.pod.trouble import Trouble
from tapp.storage.claims import ClaimPlan
from tapp.storage.growth import Growth
from tapp.storage.history import HistoryPlan
from tapp.storage.services import ServicePlan
from tapp.words.reasons import Reason
from tapp.words.vocabulary import AppStatus
from tapp.world import World


@dataclass
class Plan:
    """Everything that one sync does.

    Attributes:
        instances: by ascending number: all below `spec.replicas`, then those that are to go.
        verdicts: what each instance needs, judged alone; one per instance, in the same order.
        pod_holds: whose pod somebody holds, and what it is told.
        delays: instance -> why that does not happen now.
        marks: what is asked for first of pods that are drained or lost, and who should act on that
            and does not.
        decisions: what happens to each instance now: its step, its delay, or its verdict.
        cases: the instances that do not simply run their template, with their decisions.
        partition: who is kept at which revision.
        ahead: for whom no pod could be made.
        resizes: how long pods wait for other resources.
        roll: how far the roll has come that is under way, and whether it is too late.
        pulls: what is pulled on nodes before updates there.
        claims: what becomes of the claims.
        history: what becomes of the ControllerRevisions.
        services: what becomes of the Services.
        growth: which of those that stay are to be larger, and what stands in the way.
        budgets: both budgets, resolved.
        available: numbers of the available instances, before any update of this sync.
        serving: which instances serve, as the budgets see it, before any update of this sync.
        troubles: instance -> what is wrong with its pod.
        not_created: since when, RFC 3339 -> instances whose pod does not come to be.
        not_owned: since when -> instances whose pod uses a claim that the TApp does not have.
        not_exposed: since when -> instances whose Service is not there, or not as asked.
        waiting: instances whose pod is not asked for in this answer: it is full, or others come
            first.
        order: instances that wait for others to come first, to be made or to go.
        app_status: `status.appStatus`.
        recheck: seconds after which to sync again, None where an event will do.
        now: the time of this sync, in seconds since the epoch.
    """

    world: World
    instances: list[Instance]
    verdicts: list[Verdict]
    pod_holds: PodHolds
    delays: dict[int, Verdict]
    decisions: list[Verdict]
    cases: list[tuple[Instance, Verdict]]
    partition: Partition
    ahead: Ahead
    pulls: Pulls
    resizes: Resizes
    roll: Roll
    claims: ClaimPlan
    history: HistoryPlan
    services: ServicePlan
    growth: Growth
    budgets: Budgets
    available: set[int]
    serving: Serving
    troubles: dict[int, Trouble]
    marks: Marks
    not_created: Since
    not_owned: Since
    not_exposed: Since
    waiting: set[int]
    order: set[int]
    app_status: AppStatus
    recheck: float | None
    now: float

    @property
    def replacing(self) -> dict[str, str]:
        """Instance -> uid of its pod, for pods replaced now that were not available.

        An entry stays while the instance waits for the budget: its deletion may still be unseen.
        Also for the completed pod of an instance that was killed: it may be started again before
        that is gone, and is not finished then.
        """
        return {
            str(instance.id): instance.pod.uid
            for instance, verdict in self.cases
            if instance.pod is not None
            and instance.pod.uid
            and instance.id not in self.available
            and (
                verdict.action is Action.RECREATE
                or instance.leaving
                or (instance.id in self.serving.deletion_unconfirmed and self._waits(instance.id))
            )
        }

    def _waits(self, id: int) -> bool:
        """Tells whether an update waits for the budget, or something is asked of its pod first."""
        delay = self.delays.get(id)
        waits = delay is not None and delay.reason in (*BUDGET_REASONS, Reason.HELD)
        return waits or id in self.marks.steps
