"""The record of a long roll, from that of a short one: see `fold.py`."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import msgspec

from kubectl_tapp.forecast.fold import Row, Turn
from kubectl_tapp.forecast.record import Act, Moment, Record
from tapp.decide.judge import DISRUPTIVE
from tapp.decide.rollout import BUDGET_REASONS, Budgets
from tapp.plan import Plan
from tapp.words.digits import whole


@dataclass(frozen=True)
class _Period:
    """What repeats itself: from when, until when, and how many turns it has."""

    begin: float
    end: float
    turns: int


def unfold(record: Record, marks: Sequence[Turn], row: Row, first: Plan) -> Record | Row | None:
    """What all would have done.

    Args:
        record: of those that were played.
        marks: the moments at which one of the row was taken.
        row: the row.
        first: what was decided about all, before anything was done.

    Returns:
        The record of all; or the row with as many to play as make the rest a multiple of what
        repeats itself; or None where nothing repeats itself.
    """
    last = record.last
    if last is None or record.refused or record.gave_up or not _all_done(last, row):
        return None
    events = _Events(record, row)
    period = _period(events, marks, row)
    if period is None:
        return None
    times, rest = divmod(len(row.left_out), period.turns)
    if rest:
        return replace(row, played=row.played + rest)
    return events.repeated(period, times, _last_of_all(last, row, first), first)


def _all_done(last: Plan, row: Row) -> bool:
    left_out = set(row.left_out)
    left = [verdict for instance, verdict in last.cases if instance.id not in left_out]
    return not any(
        verdict.reason in BUDGET_REASONS or verdict.action in DISRUPTIVE for verdict in left
    ) and last.available.issuperset(row.ids[: row.played])


def _last_of_all(last: Plan, row: Row, first: Plan) -> Plan:
    """The last decision about those that were played, as it is about all."""
    left_out = set(row.left_out)
    known = {instance.id: instance for instance in last.instances}
    pattern = known[row.ids[0]]
    known |= {id: msgspec.structs.replace(pattern, id=id) for id in left_out}
    instances = [known[id] for id in sorted(known)]
    should_run = sum(each.should_run for each in instances)
    found = first.budgets
    return replace(
        last,
        instances=instances,
        cases=[case for case in last.cases if case[0].id not in left_out],
        available=last.available | left_out,
        budgets=Budgets(found.strategy, should_run, found.rolling_found, found.rolling_used),
        world=replace(last.world, tapp=first.world.tapp),
    )


class _Events:
    """What a record tells, by time and by who it is about."""

    def __init__(self, record: Record, row: Row) -> None:
        self._record, self._row = record, row
        self.place = {id: place for place, id in enumerate(row.ids[: row.played])}
        left_out = set(row.left_out)
        self.states = [
            (at, id, state)
            for id, spans in record.states.items()
            if id not in left_out
            for at, state in spans
        ]
        self.states.sort(key=lambda each: each[0])
        self.of: dict[int, list[tuple[float, str]]] = defaultdict(list)
        for act in record.acts:
            id = self.whose(act)
            if id in self.place:
                self.of[self.place[id]].append((act.at, f"{act.verb} {act.kind} {act.outcome}"))

    def whose(self, act: Act) -> int:
        """The instance that a write is about; -1 for none."""
        if act.instance is not None:
            return act.instance
        if act.kind not in {"PersistentVolumeClaim", "Service"}:
            return -1
        number = whole(act.name.rpartition("-")[2])
        return -1 if number is None else number

    def taken(self, at: float) -> int | None:
        """How many of the row had their turn before this moment; None where they were not first."""
        places = [place for place, acts in self.of.items() if acts[0][0] < at]
        return len(places) if not places or max(places) == len(places) - 1 else None

    def ages(self, place: int, at: float) -> tuple[tuple[float, str], ...]:
        """How long ago what became of one of them."""
        acts = [each for each in self.of.get(place, ()) if each[0] < at]
        if not acts:
            return ()
        id, begun = self._row.ids[place], acts[0][0]
        spans = [each for each in self._record.states.get(id, ()) if begun <= each[0] <= at]
        return tuple((at - then, what) for then, what in [*acts, *spans])

    def touched(self, begin: float, end: float) -> set[int] | None:
        """The places of the row that are touched meanwhile; None where anything else is."""
        acts = [act for act in self._record.acts if begin <= act.at < end]
        ids = {self.whose(act) for act in acts}
        ids |= {id for at, id, _ in self.states if begin <= at < end}
        if any(act.outcome != "ok" for act in acts) or not ids <= self.place.keys():
            return None
        return {self.place[id] for id in ids}

    def later(self, at: float) -> set[int]:
        """The places of the row that are touched from this moment on."""
        places = {place for place, acts in self.of.items() if acts[-1][0] >= at}
        return places | {
            self.place[id] for then, id, _ in self.states if then >= at and id in self.place
        }

    def repeated(self, period: _Period, times: int, last: Plan, first: Plan) -> Record:
        """The record with what lies in the period so many times more."""
        record, row = self._record, self._row
        length, shift = period.end - period.begin, (period.end - period.begin) * times

        def parts(at: float) -> Iterator[tuple[float, int]]:
            """When something happens, and how many turns later: once, or in each repetition."""
            if at >= period.end:
                yield at + shift, period.turns * times
                return
            yield at, 0
            if at >= period.begin:
                yield from ((at + length * n, period.turns * n) for n in range(1, times + 1))

        def other(id: int, turns: int) -> int:
            return row.ids[self.place[id] + turns] if id in self.place else id

        def moved(act: Act, at: float, turns: int) -> Act:
            id = self.whose(act)
            to = other(id, turns)
            name = act.name if id == to else f"{act.name.removesuffix(str(id))}{to}"
            return replace(act, at=at, name=name, instance=None if act.instance is None else to)

        acts = [moved(act, at, turns) for act in record.acts for at, turns in parts(act.at)]
        looks = [replace(look, at=at) for look in record.looks for at, _ in parts(look.at)]
        begun = record.states[row.ids[0]][0]
        states: dict[int, list[tuple[float, str]]] = {id: [begun] for id in row.left_out}
        spread = [
            (when, other(id, turns), state)
            for at, id, state in self.states
            for when, turns in parts(at)
        ]
        for at, id, state in sorted(spread, key=lambda each: each[0]):
            spans = states.setdefault(id, [])
            if not spans or spans[-1][1] != state:
                spans.append((at, state))
        return replace(
            record,
            acts=_by_name(sorted(acts, key=lambda act: act.at)),
            looks=_changes(sorted(looks, key=lambda look: look.at)),
            states=states,
            first=first,
            last=last,
            ended=record.ended + shift,
        )


def _by_name(acts: list[Act]) -> list[Act]:
    """The writes of one sync in the order of Metacontroller, which is that of their names."""
    groups = groupby(acts, key=lambda act: (act.at, act.kind, act.verb == "delete"))
    return [act for _, group in groups for act in sorted(group, key=lambda act: act.name)]


def _changes(looks: list[Moment]) -> list[Moment]:
    return [
        look
        for look, before in zip(looks, [None, *looks], strict=False)
        if before is None or look.unavailable != before.unavailable
    ]


def _period(events: _Events, marks: Sequence[Turn], row: Row) -> _Period | None:
    """The first two moments that are the same but for whose turn it is."""
    earlier: dict[tuple[Any, ...], tuple[float, int]] = {}
    for mark in marks:
        taken = events.taken(mark.at)
        if taken is None:
            continue
        away = tuple(
            (events.place[id] - taken, events.ages(events.place[id], mark.at))
            if id in events.place
            else (None, id)
            for id in mark.away
        )
        key = mark.at % row.cycle, mark.timers, away
        if key in earlier:
            begin, before = earlier[key]
            turns, touched = taken - before, events.touched(begin, mark.at)
            # Whoever is touched afterwards is one of those whose turn is moved.
            if turns and touched and min(events.later(mark.at)) >= min(touched) + turns:
                return _Period(begin, mark.at, turns)
        earlier[key] = mark.at, taken
    return None
