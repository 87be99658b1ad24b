"""Decides when enough updates of a long rollout were simulated, and estimates the time of the
others.

The simulation stops when the number of updates is `SIMULATED_BUDGETS` times the budget, because
further updates only repeat earlier ones. Each remaining update is estimated to take the average
time of the simulated updates.
"""

from collections import defaultdict
from dataclasses import dataclass, field

from kubectl_tapp.decide.budget import max_unavailable_of
from tapp.decide.cases import ids_of
from tapp.decide.instances import Instance
from tapp.decide.rollout import DELAYED
from tapp.plan import Plan
from tapp.words.groups import grouped
from tapp.words.reasons import Reason

# Updates that are simulated under each budget, as a multiple of the instances that the budget
# allows
SIMULATED_BUDGETS = 8
TemplateImages = tuple[str, ...]  # A template's name and its images
_UPDATE_FOLLOWS = (*DELAYED, Reason.PULLING)


def waiting_for_update(plan: Plan) -> list[Instance]:
    """Returns the available instances whose update has not begun yet."""
    return [
        case.instance
        for case in plan.notable
        if case.instance.id in plan.available
        and (case.decision.is_update or case.decision.reason in _UPDATE_FOLLOWS)
    ]


@dataclass
class SimulatedUpdates:
    """The updates that a simulation has carried out, grouped by the budget that allowed them."""

    # name of the budget -> average seconds for one instance; empty until `is_repeating` has
    # returned True
    pace: dict[str, float] = field(default_factory=dict)
    _began_at: dict[str, float] = field(default_factory=dict)
    _updated: dict[str, dict[int, TemplateImages]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    """Name of the budget -> instance number -> template name and images after the update."""

    def is_repeating(self, plan: Plan) -> bool:
        """Returns True if the remaining updates would only repeat the updates that were simulated
        so far.

        Also records the updates that `plan` begins. The result is True if three conditions hold.
        Under each budget that instances wait for, `SIMULATED_BUDGETS` times as many updates are
        complete as the budget allows at once. The waiting instances get only templates and images
        that have already started in some instance, because another image might fail. Under at least
        one budget, more instances wait than have to be simulated.
        """
        for case in plan.notable:
            instance = case.instance
            if case.decision.is_update:
                budget = _budget_name(plan, instance)
                self._began_at.setdefault(budget, plan.now)
                self._updated[budget][instance.id] = _template_images(instance)
        rows = grouped((_budget_name(plan, each), each) for each in waiting_for_update(plan))
        if not self._updated or not rows:
            return False
        away, long, pace = set(ids_of(plan.notable)), False, {}
        for budget, row in rows.items():
            taken = self._updated[budget]
            done = [id for id in taken if id in plan.available and id not in away]
            turns = SIMULATED_BUDGETS * _budget_size(plan, row[0])
            came_up = {taken[id] for id in done}
            if len(done) < turns or not came_up.issuperset(map(_template_images, row)):
                return False
            long = long or len(row) > turns
            pace[budget] = (plan.now - self._began_at[budget]) / len(done)
        self.pace = pace
        return long

    def seconds(self, plan: Plan) -> float:
        """Returns an estimate of the seconds until all waiting instances are updated.

        Must be called after `is_repeating` has returned True. The updates under different budgets
        run in parallel, so the longest estimate counts.
        """
        rows = grouped((_budget_name(plan, each), each.id) for each in waiting_for_update(plan))
        return max((self.pace.get(name, 0.0) * len(ids) for name, ids in rows.items()), default=0.0)


def _template_images(instance: Instance) -> TemplateImages:
    template = instance.template
    images = () if template is None else template.images.values()
    return instance.template_name, *images


def _budget_name(plan: Plan, instance: Instance) -> str:
    return plan.budgets.limit_of(instance, plan.world.tapp.spec.rolling_name).name


def _budget_size(plan: Plan, instance: Instance) -> int:
    limit = plan.budgets.limit_of(instance, plan.world.tapp.spec.rolling_name)
    found = max_unavailable_of(limit)
    return limit.should_run if found is None else max(found, 1)
