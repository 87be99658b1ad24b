"""The demo as an animated picture: `python -m demo --film FILE` writes an SVG without scripts.

Each picture shows text that the demo prints, drawn by the library rich. The pictures lie on top of
each other, and CSS animations show them one after another. Browsers play these animations in
`<img>` as well.
"""

import io
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.rule import Rule
from rich.text import Text

from demo.screen import BAR, Screen, chart, legend
from demo.stage import Act, Document, Goal, Stage

COLUMNS = 80
# Width of a letter, height of a line, and the margin, in the units of rich's SVG
LETTER, LINE, MARGIN = 12.2, 24.4, 24
CHART_STEPS = 4  # Number of pictures in which a chart is drawn
# How many seconds the film shows a change, a step of a chart, and the end of an act
CHANGE_SECONDS, STEP_SECONDS, END_SECONDS = 4.5, 0.3, 7.0

PICTURE = "{styles}\0{backgrounds}{matrix}"
PAGE = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img">
<title>The demo: {title}</title>
<style>
text {{ font: 20px "Fira Code", "DejaVu Sans Mono", Menlo, Consolas, monospace; white-space: pre; }}
svg > g {{ visibility: hidden; animation: {seconds:g}s step-end infinite; }}
svg > g:last-of-type {{ visibility: visible; }}
{styles}
@media (prefers-reduced-motion) {{ svg > g {{ animation: none }} }}
</style>
<rect width="100%" height="100%" rx="8" fill="#1b1f27"/>
{pictures}
</svg>
"""


@dataclass(frozen=True)
class Picture:
    """One picture of the film: the content of the console after an act or a part of an act."""

    styles: str  # CSS of the text
    texts: str  # SVG of the text
    lines: int  # number of lines
    seconds: float  # how long it is shown


class Film(Screen):
    """A screen that records pictures of the demo, and writes them as an animated SVG at the end."""

    def __init__(self, path: Path) -> None:
        """Starts without pictures. `close` writes the film to the file `path`."""
        super().__init__(_console())
        self._path = path
        self.pictures: list[Picture] = []
        self.titles: list[str] = []

    def open(self, base: str) -> None:
        """Prints nothing.

        The introduction names the URL of the service (`base`), and a film has no service.
        """

    def title(self, number: int, act: Act) -> None:
        """Stores the title and the text of an act, which are at the top of all pictures of the act.

        `number` is the number of the act.
        """
        self.titles.append(act.title)
        self._head = [Rule(Text(f"{number}. {act.title}", style="bold"), align="left"), act.text]

    def change(self, before: Document, after: Document | None) -> None:
        """Records a picture with the difference between two specs of the TApp.

        Args:
            before: the spec before the act.
            after: the spec that the act writes; None if the act deletes the TApp.
        """
        with self._picture(CHANGE_SECONDS):
            super().change(before, after)

    def chart(self, stage: Stage) -> None:
        """Records several pictures, in which the bars of the chart grow.

        `stage` has the record of the act that the chart shows.
        """
        self._stage = stage
        for step in range(1, CHART_STEPS):
            with self._picture(STEP_SECONDS):
                self._chart(stage, BAR * step // CHART_STEPS)

    def reasons(self, stage: Stage) -> None:
        """Prints nothing, because the picture that `goals` records also has the reasons."""

    def goals(self, goals: Iterable[Goal]) -> None:
        """Records the last picture of an act: the chart, the reasons and the goals of the act."""
        with self._picture(END_SECONDS):
            self._chart(self._stage, BAR)
            super().reasons(self._stage)
            super().goals(goals)

    def _chart(self, stage: Stage, upto: int) -> None:
        self._print()
        self._print(legend())
        self._print()
        self._print(chart(stage, upto))

    # The number of calls and the seconds differ on each machine, so the film does not show them.
    def close(
        self,
        stage: Stage,  # noqa: ARG002
        missed: list[str],
        seconds: float,  # noqa: ARG002
        *,
        left_out: int,  # noqa: ARG002
    ) -> None:
        """Writes the film to its file if all goals were reached.

        If goals were missed, they are printed to standard error, and no film is written. `missed`
        are the missed goals. `stage`, `seconds` and `left_out` are not used.
        """
        for goal in missed:
            print(f"no film, because a goal was missed: {goal}", file=sys.stderr)
        if not missed:
            self._path.write_text(self.svg(), encoding="utf-8")

    @contextmanager
    def _picture(self, seconds: float) -> Iterator[None]:
        """Records all text that is printed in the `with` block as one picture.

        `seconds` is how long the film shows the picture.
        """
        self.console = _console()
        for line in self._head:
            self._print(line)
        yield
        lines = self.console.export_text(clear=False).rstrip().count("\n") + 1
        name = f"p{len(self.pictures)}"
        drawn = self.console.export_svg(unique_id=name, code_format=PICTURE)
        styles, _, texts = drawn.partition("\0")
        texts = re.sub(r' clip-path="[^"]*"|<text [^>]*>(?:\n|&#160;)*</text>', "", texts)
        self.pictures.append(Picture(styles, texts, lines, seconds))

    def svg(self) -> str:
        """Returns the film as an SVG, which shows all pictures one after another and repeats
        without end.
        """
        seconds = sum(picture.seconds for picture in self.pictures)
        at, styles, groups = 0.0, [], []
        for number, picture in enumerate(self.pictures):
            start, end = 100 * at / seconds, 100 * (at + picture.seconds) / seconds
            shown = f"{start:.2f}% {{ visibility: visible }} {end:.2f}% {{ visibility: hidden }}"
            first = "0% { visibility: hidden } " if number else ""
            styles.append(f"@keyframes p{number} {{ {first}{shown} }}")
            styles.append(f"#p{number} {{ animation-name: p{number} }}")
            styles.append(" ".join(picture.styles.split()))
            place = f"translate({MARGIN} {MARGIN})"
            groups.append(f'<g id="p{number}" transform="{place}">{picture.texts}</g>')
            at += picture.seconds
        return PAGE.format(
            width=COLUMNS * LETTER + 2 * MARGIN,
            height=max(picture.lines for picture in self.pictures) * LINE + 2 * MARGIN,
            title=", ".join(self.titles).lower(),
            seconds=seconds,
            styles="\n".join(styles),
            pictures="\n".join(groups),
        )


def _console() -> Console:
    return Console(width=COLUMNS, file=io.StringIO(), record=True, force_terminal=True)
