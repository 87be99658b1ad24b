"""Prints an act of the demo as text.

The output has the changed spec, a chart of the instances over time, the reasons of the service's
decisions, and the goals.
"""

import difflib
import time
from collections.abc import Iterable
from typing import Any

import yaml
from rich import box
from rich.console import Console, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from demo.stage import Act, Decision, Document, Goal, Snapshot, Stage

BAR = 32
CHART_MARGIN = (
    0.06  # Length of the chart after the act has ended, as a fraction of the act's length
)

MARKS = {
    "Running": ("━", "green"), "Updating": ("▒", "yellow"), "Pending": ("░", "cyan"),
    "Broken": ("x", "bold red"), "Killing": ("╲", "magenta"), "Killed": ("·", "bright_black"),
    "Drained": ("▽", "yellow"), "Silent": ("?", "red"), "NotCreated": (" ", "bright_black"),
    "": (" ", ""),
}  # fmt: skip
AS_BEFORE = ("─", "blue")  # The mark of an instance that runs its old revision
STATES_BY_IMPORTANCE = ("Broken", "Killing", "Pending", "Updating")


def legend() -> Text:
    """Returns one line that explains the marks of the chart."""
    words = {
        "Running": "running",
        "Updating": "updating",
        "Pending": "starting",
        "Broken": "broken",
        "Killing": "stopping",
        "Killed": "stopped",
    }
    text = Text().append(*AS_BEFORE).append(" as before")
    for state, word in words.items():
        mark, style = MARKS[state]
        text.append("  ").append(mark, style).append(f" {word}")
    return text


def chart(stage: Stage, upto: int = BAR) -> Table:
    """Returns the chart of an act, which is a part of the demo.

    The chart has a row for each instance, with its states over time.

    Args:
        stage: the simulated cluster of the demo, with the states recorded during the act.
        upto: the number of characters of each bar that are drawn, for the animation. A complete bar
            has `BAR` characters.
    """
    start, seconds = stage.started, stage.seconds
    label = f"{seconds:.1f} s"
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), show_edge=False)
    table.add_column("", justify="right", width=2)
    table.add_column("template", width=8, no_wrap=True)
    table.add_column("0 s".ljust(BAR - len(label)) + label, width=BAR, no_wrap=True)
    table.add_column("image", width=15, no_wrap=True)
    table.add_column("state", width=8, no_wrap=True)
    done = upto == BAR
    for number in sorted({number for moment in stage.moments for number in moment.instances}):
        history = [
            (moment.time, moment.instances.get(number, Snapshot(""))) for moment in stage.moments
        ]
        last = history[-1][1]
        template = next(
            (snapshot.template for _, snapshot in reversed(history) if snapshot.template), ""
        )
        state = Text(last.state or "gone", style=MARKS.get(last.state, ("", ""))[1])
        bar = _bar(history, start, seconds * (1 + CHART_MARGIN), last.revision)[:upto]
        ending = (last.image, state) if done else ("", "")
        table.add_row(str(number), template, bar, *ending)
    return table


def _bar(history: list[tuple[float, Snapshot]], start: float, seconds: float, final: str) -> Text:
    width = seconds / BAR
    bar = Text()
    for column in range(BAR):
        left = start + column * width
        seen = [snapshot for at, snapshot in history if left < at <= left + width]
        before = [snapshot for at, snapshot in history if at <= left] or [history[0][1]]
        snapshot = _most_important(seen) or [*before, *seen][-1]
        as_before = snapshot.state == "Running" and snapshot.revision != final
        mark, style = AS_BEFORE if as_before else MARKS.get(snapshot.state, ("?", "red"))
        bar.append(mark, style=style)
    return bar


def _most_important(snapshots: list[Snapshot]) -> Snapshot | None:
    """Returns the snapshot with the most important state, or None if no state is important.

    One character of the chart stands for several snapshots. This choice keeps a short but important
    state visible.
    """
    for state in STATES_BY_IMPORTANCE:
        for snapshot in snapshots:
            if snapshot.state == state:
                return snapshot
    return None


STYLES = {"+": "green", "-": "red", " ": "bright_black"}


class _Dumper(yaml.SafeDumper):
    """Writes YAML in which list items are indented below the name of their list."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002
        super().increase_indent(flow, indentless=False)


def difference(before: dict[str, Any], after: dict[str, Any]) -> list[Text]:
    """Returns the removed and added lines of the YAML of two specs, in color.

    The result includes the unchanged lines that contain a removed or added line, such as the name
    of the template.

    Args:
        before: the old spec.
        after: the new spec.
    """
    both = difflib.ndiff(_lines(before), _lines(after))
    merged = [(line[0], line[2:]) for line in both if line[0] in STYLES]
    shown: set[int] = set()
    for index, (mark, _) in enumerate(merged):
        if mark != " ":
            shown.add(index)
            shown.update(_parents(merged, index))
    return [
        Text(" ".join(merged[index]), style=STYLES[merged[index][0]]) for index in sorted(shown)
    ]


def _lines(spec: dict[str, Any]) -> list[str]:
    if not spec:
        return []
    text: str = yaml.dump({"spec": spec}, Dumper=_Dumper, sort_keys=False)
    return text.splitlines()


def _parents(merged: list[tuple[str, str]], index: int) -> list[int]:
    """Returns the indexes of the unchanged lines of YAML that contain the line at `index`.

    A line contains the lines below it that are indented further. `merged` has all lines, each as
    (mark, line). The mark is `+`, `-` or a blank.
    """
    found, depth = [], _depth(merged[index][1])
    for above in range(index - 1, -1, -1):
        mark, line = merged[above]
        if _depth(line) < depth:
            depth = _depth(line)
            if mark == " ":
                found.append(above)
    return found


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


FRAMES = 10
FRAME_SECONDS = 0.05
INDENT = 6
QUIET_REASONS = {"UpToDate", "Terminating", "Finished"}
ACTIONS = {
    "Create": "create", "Mark": "mark", "UpdateInPlace": "update in place",
    "Recreate": "replace by a new pod", "Delete": "delete", "Keep": "wait", "Adopt": "adopt",
}  # fmt: skip
MORE_ACTS = "  make demo ALL=1   {} more acts: a bad image, its repair, scaling, ..."
TRY_NEXT = """\
  make run          then, in another terminal, ask the service for its plan:
                      curl -H 'Content-Type: application/json' \\
                        -d @examples/requests/plan.json localhost:8080/plan
  examples/         one behaviour each, to apply to a cluster
  README.md         how to install it on a cluster
"""


class Screen:
    """Prints the demo to a terminal with animations, or to a file or pipe without them."""

    def __init__(self, console: Console) -> None:
        """Stores the console, which decides about colors and animations."""
        self.console = console

    def open(self, base: str) -> None:
        """Prints the introduction and the legend. `base` is the URL of the service."""
        self._print()
        self._print(Text("TApp for today's Kubernetes", style="bold"))
        self._print(
            f"The real service, at {base}, makes every decision.\n"
            "The cluster, Metacontroller and the time are simulated.\n"
        )
        self._print(legend())

    def title(self, number: int, act: Act) -> None:
        """Prints the number, the title and the text of an act."""
        self._print()
        self._print(Rule(Text(f"{number}. {act.title}", style="bold"), align="left"))
        if act.text:
            self._print(act.text)

    def change(self, before: Document, after: Document | None) -> None:
        """Prints the difference between two specs of the TApp.

        Args:
            before: the spec before the act.
            after: the spec that the act writes. If it is None, the act deletes the TApp, and the
                command for this is printed.
        """
        self._print()
        if after is None:
            self._print("    $ kubectl delete tapp shop")
        else:
            for line in difference(before, after):
                self._print(Text("    ").append_text(line))
        self._print()

    def chart(self, stage: Stage) -> None:
        """Prints the chart of an act. On a terminal, the chart is drawn step by step.

        `stage` has the record of the act.
        """
        if not self.console.is_terminal:
            self._print(chart(stage))
            return
        with Live(console=self.console, auto_refresh=False) as live:
            for frame in range(1, FRAMES + 1):
                live.update(chart(stage, BAR * frame // FRAMES), refresh=True)
                time.sleep(FRAME_SECONDS)

    def reasons(self, stage: Stage) -> None:
        """Prints the service's decisions in an act, with their reasons.

        If the TApp's condition Degraded is True, its message is also printed. `stage` has the
        record of the act.
        """
        self._print()
        for line in reasons(stage):
            self._print(line)
        degraded = stage.condition("Degraded")
        if degraded.get("status") == "True":
            self._print(Text("  status condition Degraded", style="red"))
            self._print(_reason_line(degraded["reason"], degraded["message"]))

    def goals(self, goals: Iterable[Goal]) -> None:
        """Prints the goals of an act, each with a mark that says whether it was reached."""
        self._print()
        for goal in goals:
            mark, style = ("✓", "green") if goal.reached else ("✗ missed:", "bold red")
            self._print(Text(f"  {mark} ", style=style).append(goal.text, style="default"))

    def close(self, stage: Stage, missed: list[str], seconds: float, *, left_out: int) -> None:
        """Prints the end of the demo: whether all goals were reached, and what to try next.

        Args:
            stage: the cluster, which knows the number of calls of the service and the slowest call.
            missed: the goals that were missed; empty after a success.
            seconds: the real seconds that the demo took.
            left_out: the number of acts that were not played.
        """
        self._print()
        self._print(Rule())
        if missed:
            self._print(Text("The demo ends here, because a goal was missed:", style="bold red"))
            for goal in missed:
                self._print(Text(f"  ✗ {goal}", style="red"))
            return
        figures = (
            f"{stage.hook.calls} calls, the slowest took {stage.hook.slowest * 1000:.0f} ms; "
            f"{seconds:.1f} s in all."
        )
        outcome = Text("Every goal was reached. ", style="bold green")
        self._print(outcome.append(figures, style="default"))
        self._print("\nTry next")
        if left_out:
            self._print(MORE_ACTS.format(left_out))
        self._print(TRY_NEXT)

    def _print(self, what: object = "") -> None:
        self.console.print(what, markup=False, highlight=False)


def reasons(stage: Stage) -> list[RenderableType]:
    """Returns the decisions of an act as lines, grouped by action and reason.

    Each group has the times of its decisions and the instances. `stage` has the record of the act.
    """
    kinds: dict[tuple[str, str], tuple[str, dict[float, list[int]]]] = {}
    latest: dict[int, tuple[str, str]] = {}
    for moment in stage.moments:
        for number, decision in moment.decisions.items():
            kind = decision.action, decision.reason
            if latest.get(number) != kind and _is_news(decision):
                _, times = kinds.setdefault(kind, (decision.message, {}))
                times.setdefault(moment.time - stage.started, []).append(number)
            latest[number] = kind
    lines: list[RenderableType] = []
    for kind, (message, times) in kinds.items():
        lines += [_decision(kind[0], times), _reason_line(kind[1], message)]
    return lines


def _is_news(decision: Decision) -> bool:
    return decision.action in ACTIONS and decision.reason not in QUIET_REASONS


def _decision(action: str, times: dict[float, list[int]]) -> Text:
    waits = action == "Keep"
    when = [
        f"{_number_list(numbers)} {'from' if waits else 'at'} {at:.1f} s"
        for at, numbers in times.items()
    ]
    heading = Text("  ").append(ACTIONS[action], style="yellow" if waits else "bold")
    return heading.append(f"  {', '.join(when)}")


def _reason_line(reason: str, message: str) -> Padding:
    words = Text(f"{reason}: ", style="bright_black").append(message, style="default")
    return Padding(words, (0, 0, 0, INDENT), expand=False)


def _number_list(numbers: list[int]) -> str:
    """Returns numbers as text: `0 1`, or `0-5` for three or more consecutive numbers."""
    first, last = numbers[0], numbers[-1]
    if len(numbers) > 2 and numbers == list(range(first, last + 1)):  # noqa: PLR2004
        return f"{first}-{last}"
    return " ".join(map(str, numbers))
