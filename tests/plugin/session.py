"""Records the terminal sessions in the docs as SVG pictures: `python -m tests.plugin.session`.

The plugin really runs against the simulated cluster, at simulated time. The pictures show the
output of the commands with colors.
"""

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.status import Status
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from kubectl_tapp.cluster.session import Session
from kubectl_tapp.main import run
from tests.builders import manifest, template
from tests.plugin.fake_kubectl import StandIn
from tests.scenarios.life import Life

PICTURES = Path(__file__).parents[2] / "docs" / "img"
COLUMNS = 118
_FONTS = re.compile(r"@font-face \{\{.*?\}\}", re.DOTALL)
FORMAT = _FONTS.sub("", CONSOLE_SVG_FORMAT).replace(
    "font-family: Fira Code,", 'font-family: "Fira Code", "DejaVu Sans Mono", Menlo, Consolas,'
)
"""The template with which rich draws a terminal as SVG, without fonts from the network."""
THEME = TerminalTheme(
    (27, 31, 39),
    (208, 212, 220),
    [(60, 66, 78), (240, 113, 120), (126, 200, 130), (233, 196, 106),
     (110, 168, 254), (197, 134, 230), (97, 201, 208), (208, 212, 220)],
    [(120, 128, 142), (255, 139, 145), (150, 220, 154), (250, 215, 130),
     (140, 190, 255), (215, 160, 245), (125, 220, 226), (255, 255, 255)],
)  # fmt: skip
_LIVE = re.compile(r"\x1b\[\?25l.*?\x1b\[\?25h(?:\r?\x1b\[1A|\r?\x1b\[2K|\r)*", re.DOTALL)
"""Matches a line that rich repaints while a command waits, and erases at the end.

In the picture, each text that such a line had becomes a line of its own.
"""


class Terminal(io.StringIO):
    """Replaces standard output, and claims to be a terminal."""

    def isatty(self) -> bool:
        return True


@dataclass
class Recording:
    """Records the commands that a user types in a terminal, and their output.

    Attributes:
        standin: the cluster.
        typed: the commands so far.
    """

    standin: StandIn
    typed: list[str] = field(default_factory=list)
    _screen: Console = field(
        default_factory=lambda: Console(
            record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True,
            color_system="truecolor", highlight=False,
        )
    )  # fmt: skip

    def type(self, line: str, answer: str = "", seconds: float = 0) -> None:
        """Runs a command and records its output.

        Args:
            line: the command, as the user types it.
            answer: the answer to the command's question.
            seconds: the simulated time that passes afterwards.
        """
        self._screen.print(Text.assemble(("$ ", "bold green"), (line, "bold")))
        self.typed.append(line)
        for each in self._called(line.split()[2:], answer).splitlines():
            self._screen.print(Text.from_ansi(each), overflow="fold")
        self._screen.print()
        self.standin.world.run(seconds)

    def save(self, path: Path) -> None:
        """Writes the recorded terminal to a file as an SVG picture."""
        path.parent.mkdir(exist_ok=True)
        name = path.stem
        self._screen.save_svg(
            str(path), title="kubectl tapp", theme=THEME, code_format=FORMAT, unique_id=name
        )

    def _called(self, arguments: list[str], answer: str) -> str:
        screen, seen = Terminal(), dict[str, str]()

        def update(_: Status, status: Text) -> None:
            what, _, after = status.plain.rpartition("  ")
            seen.setdefault(what, f"\x1b[2m⠋ {what}  {after}\x1b[0m\n")

        def ask(question: str) -> str:
            screen.write(f"{question}{answer}\n")
            return answer

        with pytest.MonkeyPatch.context() as patched, _environment():
            for stream in ("sys.stdin", "sys.stdout", "sys.stderr"):
                patched.setattr(stream, screen)
            patched.setattr(Session, "ask", staticmethod(ask))
            patched.setattr(Status, "update", update)
            run(
                arguments,
                runner=self.standin,
                clock=self.standin.world.clock.unix,
                sleep=self.standin.world.run,
            )
        return _LIVE.sub(lambda _: "".join(seen.values()), screen.getvalue())


@contextmanager
def _environment() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        for name in ("NO_COLOR", "FORCE_COLOR", "CI"):
            patched.delenv(name, raising=False)
        for name, value in (
            ("COLUMNS", COLUMNS), ("LINES", 60), ("TERM", "xterm-256color"),
            ("COLORTERM", "truecolor"),
        ):  # fmt: skip
            patched.setenv(name, str(value))
        yield


def cluster() -> StandIn:
    """Returns a cluster with a running TApp `web`; the image `web:1.3-tpyo` cannot be pulled."""
    body = template("web:1.2", container={"name": "main"}, terminationGracePeriodSeconds=5)
    spec: dict[str, Any] = {
        "replicas": 6,
        "template": body,
        "updateStrategy": {"maxUnavailable": 2},
    }
    life = Life()
    life.world.kubelet.levers.bad_images.add("web:1.3-tpyo")
    return StandIn(life.apply(manifest(**spec)).world)


def record(directory: Path) -> dict[str, list[str]]:
    """Records all pictures in a directory; returns name of the picture -> its commands."""
    standin = cluster()
    see, do, plan = Recording(standin), Recording(standin), Recording(standin)
    do.type("kubectl tapp set image web main=web:1.3-tpyo --wait", "y")
    see.type("kubectl tapp status web")
    see.type("kubectl tapp why web 0 4")
    do.type("kubectl tapp history web")
    do.type("kubectl tapp rollback web --wait", "y", seconds=3600)
    plan.type("kubectl tapp plan web --image main=web:1.4 --kill 5")
    found = {"see": see, "do": do, "plan": plan}
    for name, recording in found.items():
        recording.save(directory / f"kubectl-tapp-{name}.svg")
    return {name: recording.typed for name, recording in found.items()}


if __name__ == "__main__":
    record(PICTURES)
