"""Tests the demo, the first command of the README: it succeeds, reports failures, and cleans up."""

import contextlib
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import termios
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import IO
from xml.etree import ElementTree as ET

import pytest

from demo import __main__ as demo
from demo.stage import Goal, Play, Stage
from demo.story import ACTS
from tests.scenarios.life import ROOT
from tests.sizes import cases

COMMAND = [sys.executable, "-m", "demo"]
WITHOUT_PAUSES = "import runpy; from demo import screen; screen.FRAME_SECONDS = 0; " + (
    'runpy.run_module("demo", run_name="__main__", alter_sys=True)'
)
"""The demo without pauses between its frames."""


@cache
def output_of_demo(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the demo without a terminal and returns its output; each set of arguments runs once."""
    return subprocess.run(
        [*COMMAND, *arguments], check=False, cwd=ROOT, capture_output=True, text=True, timeout=300
    )


def port_of(text: str) -> int:
    """Returns the port of the service, which the demo has printed."""
    found = re.search(r"http://127\.0\.0\.1:(\d+)", text)
    assert found is not None, text
    return int(found[1])


def listens(port: int) -> bool:
    """Returns True if a process listens on the port."""
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize("brief", cases([False, True], [True]))
def test_demo_reaches_every_goal_without_a_terminal(brief: bool) -> None:
    acts = [act for act in ACTS if act.brief or not brief]
    arguments = [] if brief else ["--all"]
    ended = output_of_demo(*arguments)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "Every goal was reached." in ended.stdout
    assert [act.title for act in ACTS if f". {act.title} ─" in ended.stdout] == [
        act.title for act in acts
    ]
    assert ended.stdout.count("✓") >= 3 * len(acts)
    assert ("make demo ALL=1" in ended.stdout) == (len(acts) < len(ACTS))
    assert "\x1b" not in ended.stdout
    assert max(map(len, ended.stdout.splitlines())) <= demo.WIDTH == 80
    assert ended.stderr == ""
    assert not listens(port_of(ended.stdout))


def test_demo_has_four_acts_by_default() -> None:
    brief = [act.title for act in ACTS if act.brief]
    assert len(brief) == 4
    assert "A canary" in brief


def test_complete_demo_shows_a_pod_outside_its_service_and_a_lost_node() -> None:
    """Runs the demo with all acts: the symbols for both appear in the charts of their acts only."""
    ended = output_of_demo("--all")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    parts = re.split(r"(?m)^\d+\. (.*?) ─+$", ended.stdout)
    acts = dict(zip(parts[1::2], parts[2::2], strict=True))
    bars = {title: re.sub(r"[^▽?]", "", "".join(bars_of(text))) for title, text in acts.items()}
    assert {title: set(marks) for title, marks in bars.items() if marks} == {
        "Out of the Service first": {"▽"},
        "A node is lost": {"?"},
    }
    assert re.search(r"update in place  0 1 at [56]\.", acts["Out of the Service first"])
    assert re.search(r"mark  \d \d at 6\d\.\d s\n +NodeLost", acts["A node is lost"])


def bars_of(text: str) -> list[str]:
    """Returns the rows of an act's chart, one for each instance."""
    return re.findall(r"(?m)^ +\d   (?:default|canary|hotfix) .*$", text)


TERMINALS = ["brief-60", "brief-80", "all-60", "all-80"]


@pytest.mark.parametrize("terminal", cases(TERMINALS, TERMINALS[1:]))
def test_no_line_of_the_animation_is_longer_than_the_terminal(terminal: str) -> None:
    """Runs the animated demo on a terminal with 60 or 80 columns, and measures its lines.

    A longer line would wrap, and the animation would be drawn below itself.
    """
    acts, _, width = terminal.partition("-")
    arguments, columns = ["--all"] if acts == "all" else [], int(width)
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, columns))
    unset = {"COLUMNS", "LINES", "NO_COLOR"}
    environment = {key: value for key, value in os.environ.items() if key not in unset}
    with subprocess.Popen(
        [sys.executable, "-c", WITHOUT_PAUSES, *arguments],
        cwd=ROOT,
        env={**environment, "TERM": "xterm-256color"},
        stdout=theirs,
    ) as process:
        os.close(theirs)
        shown = all_output(ours)
    assert process.returncode == 0
    assert "\x1b[1A" in shown, "the demo is not animated"
    lines = re.split(r"[\r\n]+", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown))
    assert max(map(len, lines)) <= columns


def all_output(terminal: int) -> str:
    """Returns the output of a pseudo-terminal until it is closed; `terminal` is its file
    descriptor.
    """
    parts = []
    with contextlib.suppress(OSError), open(terminal, "rb", buffering=0) as stream:
        while part := stream.read(65536):
            parts.append(part)
    return b"".join(parts).decode()


def test_missed_goal_is_named_and_ends_the_demo(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def impossible(stage: Stage) -> Play:
        yield {**stage.spec, "replicas": 2}
        return [Goal("there are three pods", len(stage.pods) == 3)]

    monkeypatch.setattr(demo, "ACTS", (ACTS[0], replace(ACTS[1], play=impossible), ACTS[2]))
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    assert demo.main() == 1
    text = capsys.readouterr().out
    assert "✗ missed: there are three pods" in text
    assert f"✗ {ACTS[1].title}: there are three pods" in text
    assert ACTS[2].title not in text
    assert not listens(port_of(text))


@pytest.mark.parametrize(
    ("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["SIGINT", "SIGTERM"]
)
def test_signal_stops_the_demo_and_its_service(sent: signal.Signals, code: int) -> None:
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        COMMAND,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=accept_interrupts,  # noqa: PLW1509 - nothing here has threads
    ) as process:
        assert process.stdout is not None
        port = port_of(output_until_address(process.stdout))
        assert listens(port)
        process.send_signal(sent)
        process.communicate(timeout=120)
    assert process.returncode == code
    assert not listens(port)


def accept_interrupts() -> None:
    """Enables SIGINT again, which a shell disables for jobs in the background."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def output_until_address(stream: IO[bytes]) -> str:
    """Returns the output of the demo up to the line with the address of its service."""
    text = ""
    while "http://" not in text:
        line = stream.readline().decode()
        assert line, text
        text += line
    return text


def test_service_that_does_not_start_ends_the_demo_with_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("demo.service.APPLICATION", "demo.no_such_module:application()")
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    assert demo.main() == 1
    assert "the service did not start" in capsys.readouterr().out


def test_committed_film_is_up_to_date(tmp_path: Path) -> None:
    film = tmp_path / "demo.svg"
    subprocess.run([*COMMAND, "--film", str(film)], check=True, cwd=ROOT, timeout=300)
    drawn = film.read_text()
    assert drawn == (ROOT / "docs/img/demo.svg").read_text(), "run: make film"
    texts = "".join(ET.fromstring(drawn).itertext()).replace("\xa0", " ")
    for act in ACTS:
        assert (act.title in texts) == act.brief
    assert texts.count("✓") >= 3 * len([act for act in ACTS if act.brief])
    assert "<script" not in drawn
    assert re.findall(r"(?:https?:)?//[^\s\"]+", drawn) == ["http://www.w3.org/2000/svg"]
