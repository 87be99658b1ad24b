"""The instances by time: a row each, with template, image and state."""

from rich import box
from rich.table import Table
from rich.text import Text

from demo.stage import Snapshot, Stage

BAR = 32
TAIL = 0.06  # The chart's length in lengths of the act, so that the end can be seen

MARKS = {
    "Running": ("━", "green"),
    "Updating": ("▒", "yellow"),
    "Pending": ("░", "cyan"),
    "Broken": ("x", "bold red"),
    "Killing": ("╲", "magenta"),
    "Killed": ("·", "bright_black"),
    "Drained": ("▽", "yellow"),
    "Silent": ("?", "red"),
    "NotCreated": (" ", "bright_black"),
    "": (" ", ""),
}
BEFORE = ("─", "blue")  # Running, still as before the change
LOUDNESS = ("Broken", "Killing", "Pending", "Updating")


def legend() -> Text:
    """The meaning of the marks."""
    words = {
        "Running": "running",
        "Updating": "updating",
        "Pending": "starting",
        "Broken": "broken",
        "Killing": "stopping",
        "Killed": "stopped",
    }
    text = Text().append(*BEFORE).append(" as before")
    for state, word in words.items():
        mark, style = MARKS[state]
        text.append("  ").append(mark, style).append(f" {word}")
    return text


def chart(stage: Stage, upto: int = BAR) -> Table:
    """The chart of an act, drawn up to some column."""
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
        bar = _bar(history, start, seconds * (1 + TAIL), last.revision)[:upto]
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
        snapshot = _loudest(seen) or [*before, *seen][-1]
        as_before = snapshot.state == "Running" and snapshot.revision != final
        mark, style = BEFORE if as_before else MARKS.get(snapshot.state, ("?", "red"))
        bar.append(mark, style=style)
    return bar


def _loudest(snapshots: list[Snapshot]) -> Snapshot | None:
    """Marks that must not be overlooked though they were short."""
    for state in LOUDNESS:
        for snapshot in snapshots:
            if snapshot.state == state:
                return snapshot
    return None
