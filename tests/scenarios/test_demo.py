"""The demo is the README's first command: it succeeds, it says when it does not, it cleans up."""

import os
import re
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from typing import IO

import pytest

from demo import __main__ as demo
from demo.stage import Stage
from demo.story import ACTS, Goal, Play
from tests.scenarios.life import ROOT

COMMAND = [sys.executable, "-m", "demo"]


def port_of(text: str) -> int:
    """The port that the service listened on."""
    found = re.search(r"http://127\.0\.0\.1:(\d+)", text)
    assert found is not None, text
    return int(found[1])


def listens(port: int) -> bool:
    """Whether something answers at the port."""
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0


def test_every_goal_is_reached_without_a_terminal() -> None:
    ended = subprocess.run(
        COMMAND, check=False, cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "Every goal was reached." in ended.stdout
    assert ended.stdout.count("✓") >= 3 * len(ACTS)
    assert "\x1b" not in ended.stdout
    assert max(map(len, ended.stdout.splitlines())) <= demo.WIDTH
    assert ended.stderr == ""
    assert not listens(port_of(ended.stdout))


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
        process.communicate(timeout=30)
    assert process.returncode == code
    assert not listens(port)


def heed_interrupts() -> None:
    """A shell starts jobs in the background deaf to SIGINT, and these tests may run in one."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def first_lines(stream: IO[bytes]) -> str:
    """What is said until the address of the service is known."""
    text = ""
    while "http://" not in text:
        line = stream.readline().decode()
        assert line, text
        text += line
    return text


def test_a_service_that_does_not_start_is_an_error_with_its_last_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("demo.service.ROOT", ROOT / "docs")  # there is no `hooks` to import
    monkeypatch.setattr("demo.service.ATTEMPTS", 1)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    assert demo.main() == 1
    assert "the service did not start" in capsys.readouterr().out
