"""The stages that verdicts go through until they are decisions, by name and in order.

A verdict is what an instance needs. A stage delays it, or puts a step before it; a later stage sees
what the earlier ones have decided. Only `STAGES` says in which order, and why.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from tapp.decide.instances import Instance
from tapp.decide.judge import Action, Verdict
from tapp.decide.marks import Marks, mark
from tapp.decide.pod_holds import PodHolds, apply_pod_holds
from tapp.decide.pulls import Pulls, pulls
from tapp.decide.rollout import Budgets, is_update, spend
from tapp.decide.serving import Serving
from tapp.decide.turns import AnswerRoom, is_written, one_after_another, room_in_the_answer
from tapp.declared.templates import Template
from tapp.storage.history import HistoryPlan, plan_history, unchanged_history
from tapp.storage.services import ServicePlan, plan_services
from tapp.words.kinds import SERVICE
from tapp.words.reasons import Reason
from tapp.world import Options, World

_STAYING = (Action.KEEP, Action.MARK, Action.ADOPT, Action.UPDATE)


class Case(msgspec.Struct, frozen=True, gc=False):
    """One instance on its way from what it needs to what happens to it now."""

    instance: Instance
    verdict: Verdict  # what it needs, judged alone
    delay: Verdict | None = None  # why that does not happen now; None where it does
    step: Verdict | None = None  # what is asked of its pod first; None where nothing is

    @property
    def decision(self) -> Verdict:
        """The step, else the delay, else the verdict."""
        return self.step or self.delay or self.verdict

    @property
    def is_pending(self) -> bool:
        """True for an update that goes through the budget: no hold of its pod keeps it back."""
        held = self.delay is not None and self.delay.reason is Reason.HELD
        return is_update(self.verdict) and not held


@dataclass
class Course:
    """The stages of one sync: what they are given, and what each of them has found."""

    world: World  # what was observed
    options: Options  # the operator's choices
    now: float  # seconds since the epoch
    budgets: Budgets  # both budgets
    serving: Serving  # which instances serve, before any update of this sync
    in_use: frozenset[str]  # revisions that the partition needs
    instances: list[Instance]  # all instances
    cases: list[Case]  # one for each of them, with what has been decided so far
    pod_holds: PodHolds = field(default_factory=PodHolds)  # found by the pod holds
    pulls: Pulls = field(default_factory=Pulls)  # found by the image pulls
    order: frozenset[int] = frozenset()  # those that wait for others, to be made or to go
    marks: Marks = field(default_factory=Marks)  # found by the drain
    history: HistoryPlan = field(init=False)  # of the ControllerRevisions: has its room first
    # instances whose pod is made now, or has no node yet
    without_node: list[Instance] = field(default_factory=list)
    room: AnswerRoom = field(default_factory=AnswerRoom)  # found by the room in the answer
    services: ServicePlan = field(init=False)  # of the Services, in the room that is left
    just_changed: bool = False  # something waits for the last spec's updates, perhaps unseen

    @property
    def pending(self) -> list[tuple[Instance, Verdict]]:
        """The updates that go through the budget."""
        return [(case.instance, case.verdict) for case in self.cases if case.is_pending]

    @property
    def decisions(self) -> list[Verdict]:
        """One for each instance, as far as the stages have come."""
        return [case.decision for case in self.cases]

    def run(self) -> None:
        """Sends all cases through all stages."""
        for stage in STAGES:
            stage(self)

    def delay(self, delays: Mapping[int, Verdict]) -> None:
        """Delays these instances, but for those that an earlier stage delays already."""
        if delays:
            self.cases = [
                Case(case.instance, case.verdict, delay, case.step)
                if case.delay is None and (delay := delays.get(case.instance.id)) is not None
                else case
                for case in self.cases
            ]


def _pod_holds(course: Course) -> None:
    verdicts, spec = [case.verdict for case in course.cases], course.world.tapp.spec
    course.pod_holds = apply_pod_holds(spec, course.instances, verdicts, course.budgets, course.now)
    course.delay(course.pod_holds.holds)


def _image_pulls(course: Course) -> None:
    instances, decisions = course.instances, course.decisions
    course.pulls = pulls(course.world, instances, decisions, course.options, course.now)
    course.delay(course.pulls.holds)


def _budget(course: Course) -> None:
    rolling = course.world.tapp.spec.rolling_name
    course.delay(spend(course.pending, course.serving, course.budgets, rolling))


def _order(course: Course) -> None:
    if course.world.tapp.spec.ordered:
        waiting = one_after_another(course.instances, course.decisions, course.serving)
        course.order = frozenset(waiting)
        course.delay(waiting)


def _drain(course: Course) -> None:
    tapp, asked = course.world.tapp, course.pod_holds.asked
    instances, decisions = course.instances, course.decisions
    course.marks = mark(tapp, instances, decisions, course.options, course.now, asked)
    if steps := course.marks.steps:
        course.cases = [
            Case(case.instance, case.verdict, case.delay, steps.get(case.instance.id))
            for case in course.cases
        ]


def _room_in_the_answer(course: Course) -> None:
    world, instances = course.world, course.instances
    rest = course.options.max_new_pods_bytes - course.pulls.bytes
    recorded = plan_history(world, _running(world, instances), course.in_use, rest)
    # Their events would bring the next sync at once, before the pods' watch has moved on.
    early = course.serving.unsettled and bool(recorded.delete or recorded.create)
    delays = [case.delay.reason for case in course.cases if case.delay is not None]
    course.just_changed = early or Reason.SPEC_JUST_CHANGED in delays
    course.history = unchanged_history(world) if early else recorded
    rest -= course.history.bytes
    course.without_node = _without_node(course.cases)
    written = [case.instance for case in course.cases if is_written(case.decision)]
    course.room = room_in_the_answer(world, course.without_node, written, rest, course.now)
    course.services = _services(world, instances, max(1, rest - course.room.bytes))
    course.delay(course.room.holds)


STAGES: tuple[Callable[[Course], None], ...] = (
    # First: a pod on hold takes no place in the budget, and no image is pulled for it.
    _pod_holds,
    # Before the budget, which goes by the verdicts: an update that waits for its image keeps its
    # place, or a stale observation would let two syncs take two.
    _image_pulls,
    # The only stage that weighs instances against each other; whoever is delayed by now needs none.
    _budget,
    # After it: what an update takes down now keeps those behind it waiting.
    _order,
    # On what really happens now: only an update that has its place is worth leaving a Service for.
    _drain,
    # Last: what nobody delays has to fit into the answer.
    _room_in_the_answer,
)


def _running(world: World, instances: list[Instance]) -> list[Template]:
    """Returns the templates that the spec gives to instances, each once, if they resolve."""
    names = {
        item.template.name: world.templates.of(item.id) if item.kept else item.template
        for item in instances
        if item.wanted
    }
    return [template for template in names.values() if isinstance(template, Template)]


def _without_node(cases: Sequence[Case]) -> list[Instance]:
    """Instances whose pod is about to be created, or is there and not on a node yet."""
    return [
        case.instance
        for case in cases
        if case.decision.action is Action.CREATE
        or (
            (pod := case.instance.pod) is not None
            and pod.phase == "Pending"
            and not pod.terminating
            and case.decision.action in _STAYING
            and not pod.node
        )
    ]


def _services(world: World, instances: list[Instance], most_bytes: int) -> ServicePlan:
    """A Service for each instance; who goes, or is killed, keeps one until its pod is gone."""
    name = world.tapp.metadata.name
    kept = world.tapp.spec.service_retention_policy.when_killed == "Retain"
    services = world.plain.get(SERVICE, {})
    wanted = {
        item.id: item.pod is not None and bool(item.pod.node)
        for item in instances
        if (item.wanted and (kept or not item.killed))
        or (item.pod is not None and f"{name}-{item.id}" in services)
    }
    return plan_services(world, wanted, most_bytes)
