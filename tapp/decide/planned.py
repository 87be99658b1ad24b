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
    """Everything that one sync does."""

    world: World
    instances: list[Instance]  # ascending: all below `spec.replicas`, then those that are to go
    verdicts: list[Verdict]  # what each instance needs, judged alone; in the same order
    pod_holds: PodHolds  # whose pod somebody holds, and what it is told
    delays: dict[int, Verdict]  # instance -> why that does not happen now
    decisions: list[Verdict]  # what happens to each now: its step, its delay, or its verdict
    cases: list[tuple[Instance, Verdict]]  # those that do not simply run their template
    partition: Partition  # who is kept at which revision
    ahead: Ahead  # for whom no pod could be made
    pulls: Pulls  # what is pulled on nodes before updates there
    resizes: Resizes  # how long pods wait for other resources
    roll: Roll  # how far the roll has come that is under way, and whether it is too late
    claims: ClaimPlan  # what becomes of the claims
    history: HistoryPlan  # what becomes of the ControllerRevisions
    services: ServicePlan  # what becomes of the Services
    growth: Growth  # which of those that stay are to be larger, and what stands in the way
    budgets: Budgets  # both budgets, resolved
    available: set[int]  # numbers of the available instances, before any update of this sync
    serving: Serving  # which instances serve, as the budgets see it, before any update of this sync
    troubles: dict[int, Trouble]  # instance -> what is wrong with its pod
    # what is asked for first of pods that are drained or lost, and who should act on that and does
    # not
    marks: Marks
    not_created: Since  # since when, RFC 3339 -> instances whose pod does not come to be
    not_owned: Since  # since when -> instances whose pod uses a claim that the TApp does not have
    not_exposed: Since  # since when -> instances whose Service is not there, or not as asked
    waiting: set[int]  # whose pod this answer does not ask for: it is full, or others come first
    order: set[int]  # instances that wait for others to come first, to be made or to go
    app_status: AppStatus  # `status.appStatus`
    recheck: float | None  # seconds after which to sync again, None where an event will do
    now: float  # the time of this sync, in seconds since the epoch

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
