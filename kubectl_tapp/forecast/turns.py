"""Decides when enough updates of a long rollout were simulated, and estimates the rest.

After `PLAYED` times the budget, all further updates repeat the ones before. The rest takes the
average time of the simulated instances.
"""

from collections import defaultdict
from dataclasses import dataclass, field

from kubectl_tapp.decide.budget import allowed
from tapp.decide.instances import Instance
from tapp.decide.judge import DISRUPTIVE
from tapp.decide.rollout import DELAYED
from tapp.declared.templates import Template
from tapp.plan import Plan
from tapp.words.groups import grouped
from tapp.words.reasons import Reason

PLAYED = 8  # Number of times that each budget is used in a simulation
Made = tuple[str, ...]  # A template's name and its images
_COMING = (*DELAYED, Reason.PULLING)


def waiting(plan: Plan) -> list[Instance]:
    """Returns the available instances that are still to be updated."""
    return [
        instance
        for instance, verdict in plan.cases
        if instance.id in plan.available
        and (verdict.action in DISRUPTIVE or verdict.reason in _COMING)
    ]


@dataclass
class PlayedTurns:
    """The simulated updates, grouped by their budget."""

    # name of the budget to seconds for each instance, after `enough` was True
    pace: dict[str, float] = field(default_factory=dict)
    _began: dict[str, float] = field(default_factory=dict)
    _taken: dict[str, dict[int, Made]] = field(default_factory=lambda: defaultdict(dict))
    """Name of the budget to instance number to the template and images of the update."""

    def enough(self, plan: Plan) -> bool:
        """Returns True if the remaining updates only repeat those simulated so far.

        True if each budget that instances wait for was used `PLAYED` times, and each template and
        image that they wait for has started somewhere: a new one might fail.
        """
        for instance, verdict in plan.cases:
            if verdict.action in DISRUPTIVE:
                budget = _budget(plan, instance)
                self._began.setdefault(budget, plan.now)
                self._taken[budget][instance.id] = _made_of(instance)
        rows = grouped((_budget(plan, each), each) for each in waiting(plan))
        if not self._taken or not rows:
            return False
        away, long, pace = {instance.id for instance, _ in plan.cases}, False, {}
        for budget, row in rows.items():
            taken = self._taken[budget]
            done = [id for id in taken if id in plan.available and id not in away]
            turns = PLAYED * _allowed(plan, row[0])
            came_up = {taken[id] for id in done}
            if len(done) < turns or not came_up.issuperset(map(_made_of, row)):
                return False
            long = long or len(row) > turns
            pace[budget] = (plan.now - self._began[budget]) / len(done)
        self.pace = pace
        return long

    def seconds(self, plan: Plan) -> float:
        """Returns the seconds for the waiting instances; different budgets are used in parallel."""
        rows = grouped((_budget(plan, each), each.id) for each in waiting(plan))
        return max((self.pace.get(name, 0.0) * len(ids) for name, ids in rows.items()), default=0.0)


def _made_of(instance: Instance) -> Made:
    template = instance.template
    return template.name, *(template.images.values() if isinstance(template, Template) else ())


def _budget(plan: Plan, instance: Instance) -> str:
    return plan.budgets.limit_of(instance, plan.world.tapp.spec.rolling_name).name


def _allowed(plan: Plan, instance: Instance) -> int:
    limit = plan.budgets.limit_of(instance, plan.world.tapp.spec.rolling_name)
    found = allowed(limit)
    return limit.should_run if found is None else max(found, 1)
