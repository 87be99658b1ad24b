"""Prints a rehearsal as text, and returns it as an object for `-o json` and `-o yaml`.

`print_rehearsal` is the entry point for text, `as_document` for programs.
"""

import re
from collections import Counter
from collections.abc import Iterable
from math import ceil
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from kubectl_tapp.base.words import plural, rounded_duration
from kubectl_tapp.forecast.rehearsal import Rehearsal
from kubectl_tapp.forecast.rehearsed_run import Moment, Played
from kubectl_tapp.show.plan import escape
from simulator.schedule import KINDS
from tapp.words.groups import grouped
from tapp.words.ranges import id_list

_FIRST, _LAST = 14, 6  # Lines that are printed of a long timeline, at its beginning and at its end
_MAX_NAMED = 5  # Largest number of seeds that a line names
WHAT_IT_IS = (
    "This is a random search in a simulator, and no proof: other faults, or the same ones at other "
    "moments, may do more harm.",
    "The simulator knows kubelets, controllers and Metacontroller as docs/simulator.md says. It "
    "does not know your programs, your data and the room on your nodes.",
)
A_BUG = (
    "This is a bug of TApp or of its simulator, not of your edit. Please open an issue with the "
    "manifests, this version and the output of the same command with {replay} -o json."
)
_STYLES = {"fault": "magenta", "write": "default", "serving": "dim", "broken": "red"}


def print_rehearsal(console: Console, found: Rehearsal) -> None:
    """Prints the results of a rehearsal as text."""
    title = f"TApp {found.namespace}/{found.name}"
    if found.refused:
        console.print(f"[bold]{escape(title)}[/]: [red]this edit is refused[/]")
        _print_lines(console, found.refused, "red")
        return
    console.print(f"[bold]{escape(title)}[/]: {escape(headline(found))}")
    _print_summary(console, found)
    for name, lines, style in sections(found):
        console.print(f"\n[bold]{name}[/]")
        _print_lines(console, lines, style)
    if found.settings.replay is None and len(found.played) > 1:
        _print_kinds(console, found)
    _print_timeline(console, found)
    for title, texts in (
        ("Note", found.remarks),
        ("Assumed", (*found.notes, faults_line(found))),
        ("What this is", WHAT_IT_IS),
    ):
        if texts:
            console.print(f"\n[bold]{title}[/]")
            _print_lines(console, texts, "dim")


def _print_lines(console: Console, lines: Iterable[str], style: str) -> None:
    for line in lines:
        console.print(f"  [{style}]{escape(line)}[/]", soft_wrap=True)


def headline(found: Rehearsal) -> str:
    """Returns one line that says how many runs there were, with which faults and which seeds."""
    count, faults = len(found.played), found.settings.faults
    if found.interrupted:
        return f"interrupted after {count} of {found.settings.runs} runs"
    each = f"{faults} {plural(faults, 'fault')} in the first {rounded_duration(found.within)}"
    if found.settings.replay is not None:
        return f"the run of seed {found.settings.replay}, with {each}"
    last = found.settings.seed + count - 1
    return f"{count} runs (seeds {found.settings.seed} to {last}), each with {each}"


def _print_summary(console: Console, found: Rehearsal) -> None:
    table = Table(box=None, pad_edge=False, padding=(0, 2), show_edge=False)
    for header in ("", "undisturbed", "worst run", ""):
        table.add_column(header, overflow="fold")
    console.print()
    for row in summary(found):
        table.add_row(*(escape(cell) for cell in row))
    console.print(table)


def summary(found: Rehearsal) -> list[tuple[str, ...]]:
    """Returns the rows of the summary table: a measure, its value without faults, its worst value
    with faults, and a remark.

    The result is empty if the edit was refused.
    """
    calm, worst = found.undisturbed, found.worst
    if calm is None:
        return []
    few = min(found.played, key=lambda each: each.should_run - each.worst.count, default=None)
    pair = (calm, few)
    allowed = found.allowed
    budget = "no budget applies" if allowed is None else f"the budget allows {allowed}"
    rows: list[tuple[str, ...]] = [
        ("fewest serving", *map(_serving, pair), "" if few is None else f"seed {few.seed}"),
        ("  taken by updates", *(_count(x, "by_update") for x in pair), budget),
        ("  taken by the fault", *(_count(x, "by_fault") for x in pair), ""),
    ]
    if any(each is not None and each.worst.new for each in pair):
        rows.append(("  not there yet", *(_count(x, "new") for x in pair), ""))
    rows.append(("time until all is done", _lasted(calm), _lasted(slowest(found)), times(found)))
    if worst is not None and worst.seed != getattr(few, "seed", None):
        rows.append(("worst run", "", f"seed {worst.seed}", "shown below"))
    return rows


def _serving(run: Played | None) -> str:
    """Returns the least number of serving instances in a run, such as `2 of 3`.

    Returns "" without a run.
    """
    return "" if run is None else f"{run.should_run - run.worst.count} of {run.should_run}"


def _count(run: Played | None, part: str) -> str:
    """Returns how many instances did not serve for one cause at the worst time of a run.

    `part` is `by_update`, `by_fault` or `new`. Returns "" without a run.
    """
    return "" if run is None else str(len(getattr(run.worst, part)))


def _lasted(run: Played | None) -> str:
    """Returns the duration of a run, or `never` if the run did not complete the edit.

    Returns "" without a run.
    """
    if run is None:
        return ""
    return "never" if run.duration is None else rounded_duration(run.duration)


def slowest(found: Rehearsal) -> Played | None:
    """Returns the run that took longest; None if there is no run.

    A run that never completed the edit counts as the longest.
    """
    return max(
        found.played, key=lambda x: float("inf") if x.duration is None else x.duration, default=None
    )


def times(found: Rehearsal) -> str:
    """Returns a phrase with the median and the 95th percentile of the runs' durations.

    Returns "" if fewer than two runs completed the edit.
    """
    known = found.durations
    if len(known) < 2:  # noqa: PLR2004 - of one run there is no median
        return ""
    half, most = (known[max(ceil(share * len(known)) - 1, 0)] for share in (0.5, 0.95))
    return f"median {rounded_duration(half)}, 95% within {rounded_duration(most)}"


def sections(found: Rehearsal) -> list[tuple[str, list[str], str]]:
    """Returns the sections about broken promises, stuck instances and deleted claims: title, lines
    and color of each.

    A section without problems has one line that says so.
    """
    runs = found.everything
    broken = _with_seeds((text, run) for run in runs for text in run.violations)
    stuck = _with_seeds((_without_numbers(text), run) for run in runs for text in run.stuck)
    claims = Counter(name for run in runs for name in run.deleted_claims)
    lost = [
        f"claim {name} is deleted in {number} of {len(runs)} runs, with its data"
        for name, number in sorted(claims.items())
    ]
    advice = A_BUG.format(replay=_replay_of(found)) if broken else ""
    return [
        ("Broken promises", [*broken, advice], "red")
        if broken
        else ("Broken promises", ["none (docs/guarantees.md: P2 to P6)"], "green"),
        ("Stuck", stuck, "red") if stuck else ("Stuck", ["no run"], "green"),
        ("Data", lost, "red") if lost else ("Data", ["no claim is deleted"], "green"),
    ]


def _replay_of(found: Rehearsal) -> str:
    """Returns the option that repeats the first run with a broken promise; "" if there is none."""
    seeds = [run.seed for run in found.played if run.violations]
    return f"--replay {seeds[0]}" if seeds else ""


def _with_seeds(found: Iterable[tuple[str, Played]]) -> list[str]:
    """Returns each different sentence once, followed by the seeds of its runs."""
    lines = []
    for text, runs in grouped(found).items():
        seeds = sorted({run.seed for run in runs})
        names = [f"seed {each}" if each else "undisturbed" for each in seeds[:_MAX_NAMED]]
        more = f" and {len(seeds) - _MAX_NAMED} more" if len(seeds) > _MAX_NAMED else ""
        lines.append(f"{text} ({', '.join(names)}{more})")
    return lines


def _without_numbers(text: str) -> str:
    """Returns a sentence with "some instances" instead of the instance numbers, so that sentences
    about different instances can be grouped.
    """
    return re.sub(r"^instances? [0-9, -]+", "some instances", text)


def _print_kinds(console: Console, found: Rehearsal) -> None:
    console.print("\n[bold]By kind of fault[/]")
    table = Table(box=None, pad_edge=False, padding=(0, 2), show_edge=False)
    for header in ("  kind", "runs", "fewest serving", "longest", "stuck"):
        table.add_column(header)
    for row in by_kind(found):
        table.add_row(f"  {row[0]}", *row[1:])
    console.print(table)


def by_kind(found: Rehearsal) -> list[tuple[str, ...]]:
    """Returns a row for each kind of fault that occurred.

    Each row has the name, the number of runs, the fewest instances that served, the longest
    duration, and the number of stuck runs.
    """
    rows: list[tuple[str, ...]] = []
    for kind in found.kinds:
        runs = found.of_kind(kind)
        if not runs:
            continue
        few = min(runs, key=lambda each: each.should_run - each.worst.count)
        last = max(runs, key=lambda x: float("inf") if x.duration is None else x.duration)
        stuck = sum(bool(each.stuck) for each in runs)
        rows.append((kind, str(len(runs)), _serving(few), _lasted(last), str(stuck)))
    return rows


def faults_line(found: Rehearsal) -> str:
    """Returns a sentence that says how long each kind of fault lasts, in seconds."""
    spans = [
        f"{name} {KINDS[name].shortest:g}-{KINDS[name].longest:g} s"
        for name in found.kinds
        if KINDS[name].longest
    ]
    return f"each fault ends: {', '.join(spans)}" if spans else "each fault is over at once"


def _print_timeline(console: Console, found: Rehearsal) -> None:
    """Prints the timeline of the worst run.

    Only with `--replay` all lines are printed. Otherwise accepted writes are left out, and the
    middle of a long timeline.
    """
    run = found.worst
    if run is None:
        return
    console.print(f"\n[bold]The run of seed {run.seed}[/]")
    moments, whole = list(run.timeline), found.settings.replay is not None
    shown = (
        moments if whole else [x for x in moments if x.kind != "write" or " is refused" in x.text]
    )
    hidden = 0 if whole or len(shown) <= _FIRST + _LAST + 1 else len(shown) - _FIRST - _LAST
    for number, each in enumerate(shown):
        if hidden and _FIRST <= number < _FIRST + hidden:
            if number == _FIRST:
                console.print(f"  [dim]… {hidden} more lines[/]")
            continue
        console.print(f"  {_line(each)}", soft_wrap=True)
    if not whole:
        console.print(
            f"  [dim]the same command with --replay {run.seed} shows this run step by step[/]"
        )


def _line(each: Moment) -> str:
    return f"[{_STYLES[each.kind]}]{clock(each.at):>8}  {escape(each.text)}[/]"


def clock(seconds: float) -> str:
    """Returns a time of a run as text, such as `+41.2s`, or `+6:03` (minutes and seconds) from 100
    seconds on.

    `seconds` is the time since the edit.
    """
    if seconds < 100:  # noqa: PLR2004 - at most two digits before the point
        return f"+{seconds:.1f}s"
    return f"+{int(seconds) // 60}:{int(seconds) % 60:02}"


def as_document(found: Rehearsal) -> dict[str, Any]:
    """Returns a rehearsal as plain JSON values with camelCase keys, for `-o json` and `-o yaml`."""
    if found.refused:
        return {"name": found.name, "namespace": found.namespace, "refused": list(found.refused)}
    return {
        "name": found.name,
        "namespace": found.namespace,
        "summary": headline(found),
        "refused": [],
        "interrupted": found.interrupted,
        "seed": found.settings.seed,
        "faults": found.settings.faults,
        "kinds": list(found.kinds),
        "withinSeconds": found.within,
        "limits": [each.sentence for each in found.limits if each.instances],
        "undisturbed": None if found.undisturbed is None else _run(found.undisturbed),
        "runs": [_run(each) for each in found.played],
        "worst": None if found.worst is None else _run(found.worst),
        "remarks": list(found.remarks),
        "notes": list(found.notes),
    }


def _run(run: Played) -> dict[str, Any]:
    found: dict[str, Any] = {
        "seed": run.seed,
        "faults": list(run.faults),
        "shouldRun": run.should_run,
        "fewestServing": run.should_run - run.worst.count,
        "at": run.worst.at,
        "takenByUpdates": id_list(run.worst.by_update),
        "takenByFaults": id_list(run.worst.by_fault),
        "notThereYet": id_list(run.worst.new),
        "durationSeconds": run.duration,
        "stuck": list(run.stuck),
        "deletedClaims": list(run.deleted_claims),
        "brokenPromises": list(run.violations),
    }
    if run.timeline:
        found["timeline"] = [msgspec.to_builtins(each) for each in run.timeline]
    return found
