"""Simulates one edit once, with faults: `RehearsedRun.rehearse` is the entry point.

Runs with the same seed are equal. `simulator.schedule` causes the faults, `promises.py` checks the
safety properties, and `serving_watch.py` follows which instances serve.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from kubectl_tapp.base.words import instances_phrase
from kubectl_tapp.forecast.foresee import Start
from kubectl_tapp.forecast.promises import PromiseJudge
from kubectl_tapp.forecast.run import MAX_SECONDS, Run
from kubectl_tapp.forecast.run_log import stuck_sentences
from kubectl_tapp.forecast.serving_watch import FAULT, UPDATE, Away, Outage, ServingWatch
from simulator.faults import Faults
from simulator.recording import INJECTED, Write
from simulator.schedule import Fault, Schedule
from tapp.answer.resize_patches import Patch
from tapp.plan import Plan
from tapp.words.reasons import Standing

_LEFT_OUT = ("ControllerRevision", "TApp")  # Kinds of objects whose writes the timeline leaves out
_BY = {UPDATE: " (by the update)", FAULT: " (by the fault)"}


@dataclass(frozen=True)
class Moment:
    """One line of the timeline of a run."""

    at: float  # seconds since the edit
    kind: str  # `fault`, `write`, `serving` or `broken`
    text: str


@dataclass(frozen=True)
class Played:
    """The result of one run."""

    seed: int  # 0 for the run without faults
    faults: tuple[str, ...]  # a sentence about the beginning of each fault
    # the first time at which the fewest instances served, and the instances that did not
    worst: Away
    by_update: int  # the largest number of instances that updates kept from serving at one time
    should_run: int  # number of instances that should run at the end
    # seconds until each instance was as the spec asks and stayed so; None if that never happened
    duration: float | None
    stuck: tuple[str, ...]  # sentences about instances that never reach their goal
    deleted_claims: tuple[str, ...]  # names of the claims that were deleted
    violations: tuple[str, ...]  # a sentence about each violated safety property
    timeline: tuple[Moment, ...] = ()  # empty if the caller did not ask for a timeline

    @property
    def rank(self) -> tuple[int, int, int, int, float]:
        """Key by which runs are compared: the worst run has the largest key.

        In this order, more violations, more stuck instances, more instances that do not serve, more
        deleted claims and a longer duration are worse.
        """
        lasted = float("inf") if self.duration is None else self.duration
        return (
            len(self.violations),
            len(self.stuck),
            self.worst.count,
            len(self.deleted_claims),
            lasted,
        )


class RehearsedRun(Run):
    """One simulation of an edit with faults."""

    def __init__(self, start: Start) -> None:
        self._behaviour = start.behaviour()
        super().__init__(start.observed, start.registration, self._behaviour, start.now)
        self._start, self._moments = start, list[Moment]()
        self._finished: float | None = None
        tapp = start.edited
        space = tapp["metadata"]["namespace"]
        self.watch = ServingWatch(self.world, start.observed.name, space)
        self.judge = PromiseJudge(self.watch, _same_template(start))
        faults = Faults(self.world, self.calls, space)
        exists = bool(start.observed.tapp["metadata"].get("uid"))
        self.schedule = Schedule(
            self.world,
            faults,
            "TApp",
            is_target=lambda pod: self.watch.id_of(pod) is not None,
            forget=self.hook.restart,
            edit=self._edit if exists else None,
            told=partial(self._note, "fault"),
        )

    def rehearse(self, seed: int, faults: Sequence[Fault], *, detailed: bool = False) -> Played:
        """Writes the edited TApp, causes the faults at their times, and returns the result.

        The run ends when all faults are over and nothing has changed for `Start.quiet_seconds`.
        Raises ApiError if the simulated API server refuses the edit. `seed` is only copied into the
        result. If `detailed` is True, the result has a timeline.
        """
        patience = self._start.quiet_seconds(self._behaviour)
        self.schedule.start(faults)
        self.apply(self._start.edited)
        clock, writes = self.world.clock, self.world.writes
        count, over = 0, self._start.now
        while self.now - self._start.now < MAX_SECONDS:
            if self.schedule.pending:
                over = self.now
            end = max(self._changed, over) + patience
            if not clock.step(
                float("inf") if self.schedule.pending else clock.now + end - self.now
            ):
                break
            news, count = writes[count:], len(writes)
            self._record_writes(news)
            self._judge(news)
        return self._result(seed, detailed=detailed)

    def _judge(self, writes: Sequence[Write]) -> None:
        """Checks the changes of one step of the simulated clock, and adds violations of safety
        properties and outages to the timeline.

        `writes` are the writes of Metacontroller in this step.
        """
        events = self.watch.news(writes)
        if not events and not writes:
            return
        before = dict(self.watch.outages)
        broken = len(self.judge.violations)
        for write in writes:
            self.judge.judge_write(write)
        for event, mine in events:
            self.judge.judge(event, mine, self._plan)
            self.watch.see(event)
        self.watch.end_step(self.now)
        for text in self.judge.violations[broken:]:
            self._note("broken", f"a promise is broken: {text}")
        self._note_serving(before)

    def _note_serving(self, before: Mapping[int, Outage]) -> None:
        """Adds a line to the timeline for instances that have begun or stopped to serve.

        `before` are the outages before this step of the clock, by instance number.
        """
        after = self.watch.outages
        for cause, words in _BY.items():
            ids = [x for x in sorted(after.keys() - before.keys()) if after[x].cause == cause]
            if ids:
                verb = "stops" if len(ids) == 1 else "stop"
                self._note("serving", f"{instances_phrase(ids)} {verb} serving{words}")
        ids = sorted((before.keys() - after.keys()) & self.watch.serving.keys())
        if ids:
            verb = "serves" if len(ids) == 1 else "serve"
            self._note("serving", f"{instances_phrase(ids)} {verb}")

    def _note(self, kind: str, text: str) -> None:
        self._moments.append(Moment(round(self.now - self._start.now, 2), kind, text))

    def _edit(self, back: bool) -> None:
        """Writes the TApp as it was before the edit if `back` is True, and otherwise as it is after
        the edit.
        """
        tapp = self._start.observed.tapp if back else self._start.edited
        self.apply({**tapp, "metadata": {**self._start.edited["metadata"]}} if back else tapp)

    def _on_plan(self, plan: Plan) -> None:
        super()._on_plan(plan)
        self.watch.should_run = {each.id for each in plan.instances if each.should_run}
        self.watch.generation = plan.world.tapp.metadata.generation
        if not _is_done(plan):
            self._finished = None
        elif self._finished is None:
            self._finished = plan.now

    def _resize(self, patch: Patch) -> None:
        self.judge.resized.add(int(patch.name.rpartition("-")[2]))
        super()._resize(patch)

    def _result(self, seed: int, *, detailed: bool) -> Played:
        watch, log = self.watch, self.log
        log.last, log.ended = self._plan, self._changed
        start = self._start.now
        history = watch.history or [Away(start)]
        worst = max(history, key=lambda away: away.count)
        began = tuple(each.text for each in self._moments if each.kind == "fault")
        return Played(
            seed,
            began,
            Away(round(worst.at - start, 2), worst.by_update, worst.by_fault, worst.new),
            max(len(away.by_update) for away in history),
            len(watch.should_run),
            None if self._finished is None else round(max(self._finished - start, 0.0), 2),
            tuple(text for text in stuck_sentences(log) if INJECTED not in text),
            tuple(self.judge.deleted_claims),
            tuple(self.judge.violations),
            self._timeline() if detailed else (),
        )

    def _timeline(self) -> tuple[Moment, ...]:
        """Returns faults, writes, violations and outages of the run as lines, sorted by time."""
        start, found = self._start.now, list(self._moments)
        for act in self.log.acts:
            if act.kind in _LEFT_OUT:
                continue
            why = "" if act.verdict is None or act.instance is None else f": {act.verdict.message}"
            refused = "" if act.outcome == "ok" else f" is refused ({act.outcome}: {act.message})"
            text = f"{act.verb} {act.kind} {act.name}{refused or why}"
            found.append(Moment(round(act.at - start, 2), "write", text))
        order = ("fault", "write", "broken", "serving")
        return tuple(sorted(found, key=lambda each: (each.at, order.index(each.kind))))


def _is_done(plan: Plan) -> bool:
    """Returns True if, by this plan, every instance is as the spec asks and enough instances are
    available.
    """
    return len(plan.available) >= plan.budgets.should_run and all(
        each.standing is Standing.DONE for each in plan.standings.values()
    )


def _same_template(start: Start) -> set[int]:
    """Returns the numbers of the instances whose assigned template the edit does not change."""
    before, after = (tapp.get("spec") or {} for tapp in (start.observed.tapp, start.edited))
    names = [
        (spec.get("templates") or {}, spec.get("defaultTemplateName")) for spec in (before, after)
    ]
    if names[0][1] != names[1][1]:
        return set()
    (old, _), (new, _) = names
    count = int(after.get("replicas") or 0)
    return {id for id in range(count) if old.get(str(id)) == new.get(str(id))}
