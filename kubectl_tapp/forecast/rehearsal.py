"""Rehearses an edit: plays it many times in the simulator, each time with other faults.

`rehearse` is the entry point. Each run has its own seed, counted up from the first one, and the
same seed plays the same run. The runs are spread over the processors.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_all_start_methods, get_context

from kubectl_tapp.decide.budget import Limit, limits
from kubectl_tapp.forecast.foresee import Start
from kubectl_tapp.forecast.rehearsed_run import Played, RehearsedRun
from simulator.api.store import ApiError
from simulator.schedule import KINDS, Fault, drawn

SECOND_EDIT = "second-edit"
_LEAST_WITHIN = 10.0  # Seconds in which faults fall at least
_UNKNOWN_DURATION = 60.0  # Seconds in which faults fall if the undisturbed edit never completes
_RUNS_OF_A_PROCESS = 25  # Fewer runs than these are not worth another process


@dataclass(frozen=True)
class Settings:
    """Which runs are played."""

    runs: int = 200
    seed: int = 1  # the seed of the first run
    kinds: tuple[str, ...] = ()  # kinds of faults; empty for all
    faults: int = 1  # number of faults in each run
    within: float | None = None  # seconds in which faults begin; None: while the edit lasts
    replay: int | None = None  # the seed of the only run


@dataclass(frozen=True)
class Rehearsal:
    """The results of all runs."""

    name: str  # name of the TApp
    namespace: str
    settings: Settings
    kinds: tuple[str, ...] = ()  # the kinds of faults that were drawn
    within: float = 0.0  # seconds in which the faults began
    limits: tuple[Limit, ...] = ()  # the budgets that apply
    undisturbed: Played | None = None  # the run without faults
    played: tuple[Played, ...] = ()  # the runs with faults
    worst: Played | None = None  # the worst of them, with its timeline
    notes: tuple[str, ...] = ()  # sentences about assumptions
    remarks: tuple[str, ...] = ()  # sentences about the edit
    refused: tuple[str, ...] = ()  # why the edit is refused as a whole
    interrupted: bool = False

    @property
    def everything(self) -> tuple[Played, ...]:
        """All runs, the one without faults included."""
        return (() if self.undisturbed is None else (self.undisturbed,)) + self.played

    @property
    def durations(self) -> list[float]:
        """The seconds until all was done, of the runs that came to an end, sorted."""
        return sorted(each.duration for each in self.played if each.duration is not None)

    @property
    def allowed(self) -> int | None:
        """The number of instances that updates may keep from serving; None without a budget."""
        known = [each.allowed for each in self.limits if each.instances]
        return None if None in known else max((x for x in known if x is not None), default=None)

    def faults_of(self, seed: int) -> list[Fault]:
        """Returns the faults of the run with this seed."""
        return drawn(seed, self.kinds, self.settings.faults, self.within)

    def of_kind(self, kind: str) -> list[Played]:
        """Returns the runs in which a fault of this kind fell."""
        return [
            each
            for each in self.played
            if any(fault.kind == kind for fault in self.faults_of(each.seed))
        ]


def rehearse(
    start: Start, settings: Settings, progress: Callable[[int], None] = lambda _count: None
) -> Rehearsal:
    """Plays an edit without faults, and then with faults as often as the settings say.

    Args:
        start: the beginning of all runs.
        settings: the number of runs, and their faults.
        progress: called with the number of finished runs after each of them.
    """
    space = start.edited["metadata"]["namespace"]
    found = Rehearsal(start.observed.name, space, settings)
    exists = bool(start.observed.tapp["metadata"].get("uid"))
    kinds = settings.kinds or tuple(sorted(KINDS))
    kinds = tuple(each for each in kinds if exists or each != SECOND_EDIT)
    if not kinds:
        why = f"--fault {SECOND_EDIT} needs a TApp that exists: nothing could be taken back"
        return replace(found, refused=(why,))
    run = RehearsedRun(start)
    try:
        undisturbed = run.rehearse(0, ())
    except ApiError as error:
        return replace(found, refused=(str(error),))
    if run.hook.refused:
        return replace(found, refused=(run.hook.refused,))
    lasts = _UNKNOWN_DURATION if undisturbed.duration is None else undisturbed.duration
    found = replace(
        found,
        kinds=kinds,
        within=max(lasts, _LEAST_WITHIN) if settings.within is None else settings.within,
        limits=() if run.log.last is None else tuple(limits(run.log.last)),
        undisturbed=undisturbed,
        notes=tuple(start.assumed_times()),
    )
    seeds = range(settings.seed, settings.seed + settings.runs)
    if settings.replay is not None:
        seeds = range(settings.replay, settings.replay + 1)
    played: list[Played] = []
    # An interruption ends the runs, and what is known so far is reported.
    interrupted = True
    with suppress(KeyboardInterrupt):
        for each in _results(start, found, seeds):
            played.append(each)
            progress(len(played))
        interrupted = False
    found = replace(found, played=tuple(played), interrupted=interrupted)
    if not played:
        return found
    worst = max(played, key=lambda each: (each.rank, -each.seed))
    again = RehearsedRun(start).rehearse(worst.seed, found.faults_of(worst.seed), detailed=True)
    return replace(found, worst=again)


def _results(start: Start, found: Rehearsal, seeds: range) -> Iterator[Played]:
    processes = min(_processors(), len(seeds) // _RUNS_OF_A_PROCESS)
    if processes < 2 or "fork" not in get_all_start_methods():  # noqa: PLR2004 - one is this one
        yield from map(partial(_play, start, found), seeds)
        return
    _inherited[:] = [(start, found)]
    with get_context("fork").Pool(processes, initializer=_ignore_interruptions) as pool:
        yield from pool.imap(_play_inherited, seeds, chunksize=4)


def _play(start: Start, found: Rehearsal, seed: int) -> Played:
    return RehearsedRun(start).rehearse(seed, found.faults_of(seed))


_inherited: list[tuple[Start, Rehearsal]] = []
"""The arguments of `_play` in the processes of the pool, which a fork copies."""


def _play_inherited(seed: int) -> Played:
    return _play(*_inherited[0], seed)


def _ignore_interruptions() -> None:
    """Leaves Ctrl-C to the main process, which then ends the pool."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _processors() -> int:
    affinity = getattr(os, "sched_getaffinity", None)  # Not on macOS and Windows
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1
