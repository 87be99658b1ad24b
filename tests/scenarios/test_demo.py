"""The demo is the README's first command: it succeeds, it says when it does not, it cleans up."""

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
"""The same command; what it draws one after the other it draws at once."""


@cache
def told(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Output of the demo without a terminal; each story is played once."""
    return subprocess.run(
        [*COMMAND, *arguments], check=False, cwd=ROOT, capture_output=True, text=True, timeout=300
    )


def port_of(text: str) -> int:
    """The port that the service listened on."""
    found = re.search(r"http://127\.0\.0\.1:(\d+)", text)
    assert found is not None, text
    return int(found[1])


def listens(port: int) -> bool:
    """True if something answers at the port."""
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize("brief", cases([False, True], [True]))
def test_every_goal_is_reached_without_a_terminal(brief: bool) -> None:
    acts = [act for act in ACTS if act.brief or not brief]
    arguments = [] if brief else ["--all"]
    ended = told(*arguments)
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


def test_by_default_four_acts_show_why_tapp_exists() -> None:
    brief = [act.title for act in ACTS if act.brief]
    assert len(brief) == 4
    assert "A canary" in brief


def test_the_whole_story_has_a_drain_and_a_lost_node() -> None:
    """Shown as what they are: the marks are in no other act."""
    ended = told("--all")
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
    """The rows of an act's chart."""
    return re.findall(r"(?m)^ +\d   (?:default|canary|hotfix) .*$", text)


WATCHED = ["brief-60", "brief-80", "all-60", "all-80"]


@pytest.mark.parametrize("watched", cases(WATCHED, WATCHED[1:]))
def test_the_animation_never_wraps(watched: str) -> None:
    """A line longer than the terminal would make the animation draw below itself."""
    acts, _, width = watched.partition("-")
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
        shown = everything(ours)
    assert process.returncode == 0
    assert "\x1b[1A" in shown, "it is animated"
    lines = re.split(r"[\r\n]+", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown))
    assert max(map(len, lines)) <= columns


def everything(terminal: int) -> str:
    """All that is written to a terminal until it is left."""
    parts = []
    with contextlib.suppress(OSError), open(terminal, "rb", buffering=0) as stream:
        while part := stream.read(65536):
            parts.append(part)
    return b"".join(parts).decode()


def test_a_missed_goal_is_named_and_ends_the_demo(
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


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_the_service_too(sent: signal.Signals, code: int) -> None:
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        COMMAND,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=heed_interrupts,  # noqa: PLW1509 - nothing here has threads
    ) as process:
        assert process.stdout is not None
        port = port_of(first_lines(process.stdout))
        assert listens(port)
        process.send_signal(sent)
        process.communicate(timeout=120)
    assert process.returncode == code
    assert not listens(port)


def heed_interrupts() -> None:
    """A shell starts jobs in the background deaf to SIGINT, and these tests may run in one."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def first_lines(stream: IO[bytes]) -> str:
    """The words until the address of the service is known."""
    text = ""
    while "http://" not in text:
        line = stream.readline().decode()
        assert line, text
        text += line
    return text


def test_a_service_that_does_not_start_is_an_error_with_its_last_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("demo.service.APPLICATION", "demo.no_such_module:application()")
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    assert demo.main() == 1
    assert "the service did not start" in capsys.readouterr().out


def test_the_film_shows_what_the_demo_shows_today(tmp_path: Path) -> None:
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
