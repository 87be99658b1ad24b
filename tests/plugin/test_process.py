"""Tests the plugin as a process: closed pipes, Ctrl-C, terminals, locales, and a missing
kubectl.
"""

import os
import pty
import re
import select
import signal
import subprocess
import time
from pathlib import Path

import pytest

from kubectl_tapp.base.errors import CommandError
from kubectl_tapp.cluster import kubectl
from tests.plugin.processes import ROOT, command, environment_of


def test_closed_pipe_of_the_output_is_no_error(place: Path) -> None:
    """Closes the pipe of standard output, as `kubectl tapp status web | head -0` does.

    The plugin prints no error, and its exit code is that of SIGPIPE.
    """
    process = subprocess.Popen(
        command("status", "web"),
        cwd=ROOT,
        env=environment_of(place),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait() == 141
    process.stderr.close()


def test_html_page_of_a_plan_is_written_although_the_pipe_is_closed(
    place: Path, tmp_path: Path
) -> None:
    """Closes the pipe of standard output, as `kubectl tapp plan --html FILE | head -0` does.

    The page is complete nevertheless.
    """
    example, page = "examples/rolling-update", tmp_path / "plan.html"
    words = ["--from", f"{example}/1-create.yaml", "-f", f"{example}/2-update.yaml"]
    process = subprocess.Popen(
        command("plan", *words, "--html", str(page)),
        cwd=ROOT,
        env=environment_of(place),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait() == 141
    assert page.read_text(encoding="utf-8").rstrip().endswith("</html>")


def test_verb_with_yes_writes_although_the_pipe_is_closed(place: Path) -> None:
    """Closes the pipe of standard output, as `kubectl tapp pause web -y | head -0` does.

    The edit is written, and the exit code is 0.
    """
    (place / "patched").unlink(missing_ok=True)
    process = subprocess.Popen(
        command("pause", "web", "-y"),
        cwd=ROOT,
        env=environment_of(place),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait() == 0
    assert (place / "patched").exists()
    process.stderr.close()


WORDS = {
    "words": "{place}/k3s kubectl",
    "with options": "{place}/k3s kubectl --kubeconfig 'a b'",
    "by PATH": "k3s kubectl",
    "a path": "{place}/kubectl",
    "a path with a blank": "{place}/my tools/kubectl",
    "only blanks": "  ",
}


@pytest.mark.parametrize("case", WORDS)
def test_variable_kubectl_may_be_a_command_with_arguments(place: Path, case: str) -> None:
    """Runs the plugin with KUBECTL set to a path, to a command with options, or to blanks.

    If the variable is the path of a program, blanks in the path do not separate arguments.
    """
    for name in ("k3s", "my tools/kubectl"):
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text(f'#!/bin/sh\nexec "{place}/kubectl" "$@"\n')
        (place / name).chmod(0o755)
    environment = environment_of(place, KUBECTL=WORDS[case].format(place=place))
    done = subprocess.run(
        command("status", "web"), cwd=ROOT, env=environment, capture_output=True, check=False
    )
    assert done.stderr == b""
    assert done.returncode == 0
    assert b"Running" in done.stdout


@pytest.mark.parametrize(
    ("named", "sentence"),
    [
        ("'k3s kubectl", "error: the variable KUBECTL is not a command: No closing quotation"),
        ("k4s kubectl", "error: kubectl cannot be run (No such file or directory): see PATH and"),
    ],
)
def test_invalid_variable_kubectl_is_one_error(place: Path, named: str, sentence: str) -> None:
    environment = environment_of(place, KUBECTL=named)
    done = subprocess.run(
        command("status", "web"), cwd=ROOT, env=environment, capture_output=True, check=False
    )
    assert done.returncode == 1
    assert done.stdout == b""
    assert done.stderr.decode().startswith(sentence)


def test_ctrl_c_ends_the_plugin_without_output(place: Path) -> None:
    """Sends SIGINT while the plugin waits for kubectl: it ends with code 130 and prints nothing.

    Like a terminal, this test sends the signal to kubectl as well.
    """
    process = subprocess.Popen(
        command("status", "slow"),
        cwd=ROOT,
        env=environment_of(place),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    end = time.monotonic() + 120
    while not (place / "asked").exists():
        assert time.monotonic() < end
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert out == ""
    assert err == ""


def test_letters_that_the_locale_lacks_are_printed_as_question_marks(place: Path) -> None:
    environment = environment_of(place, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    done = subprocess.run(
        command("status", "web"), cwd=ROOT, env=environment, capture_output=True, check=False
    )
    assert done.stderr == b""
    assert done.returncode == 0
    assert b"0   d?faut" in done.stdout


def test_missing_kubectl_is_one_error(tmp_path: Path) -> None:
    done = subprocess.run(
        command("status", "web"),
        cwd=ROOT,
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == (
        "error: there is no kubectl on PATH: install it, or name it in the variable KUBECTL\n"
    )


@pytest.mark.parametrize("variable", ["", "NO_COLOR", "TERM"])
def test_only_terminals_that_want_colors_get_them(place: Path, variable: str) -> None:
    """The output has colors, unless NO_COLOR or TERM=dumb is set, and no line is longer than 80
    columns.
    """
    wanted = {"TERM": "xterm-256color", "COLUMNS": "80"}
    wanted |= {"NO_COLOR": {"NO_COLOR": "1"}, "TERM": {"TERM": "dumb"}}.get(variable, {})
    text = on_a_terminal(command("status", "web"), environment_of(place, **wanted))
    coloured = re.search(r"\x1b\[3\dm", text) is not None
    assert coloured == (variable == "")
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    assert "Running" in plain
    assert all(len(line.rstrip()) <= 80 for line in plain.splitlines())


def test_watch_on_a_terminal_ends_with_ctrl_c(place: Path) -> None:
    environment = environment_of(place, TERM="xterm-256color", COLUMNS="100")
    text = on_a_terminal(command("status", "web", "-w"), environment, interrupt_at="Running")
    assert "Running" in text
    assert "Traceback" not in text
    assert text.endswith("exit 130")


def on_a_terminal(arguments: list[str], environment: dict[str, str], interrupt_at: str = "") -> str:
    """Returns the output of a call on a pseudo-terminal.

    If `interrupt_at` is not empty, the test presses Ctrl-C soon after the call has printed this
    text. The exit code is then added to the output.
    """
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        arguments, cwd=ROOT, env=environment, stdin=theirs, stdout=theirs, stderr=theirs,
        start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    text, sent = b"", False
    while process.poll() is None or select.select([ours], [], [], 0)[0]:
        if select.select([ours], [], [], 0.1)[0]:
            try:
                text += os.read(ours, 65536)
            except OSError:  # the other side has been closed
                break
        if interrupt_at and not sent and interrupt_at in text.decode(errors="replace"):
            time.sleep(0.3)
            os.killpg(process.pid, signal.SIGINT)
            sent = True
    os.close(ours)
    code = process.wait(timeout=120)
    return text.decode(errors="replace") + (f"exit {code}" if interrupt_at else "")


LOGIN = """#!/bin/sh
echo 'open https://login.example.com and type ABC' >&2
sleep 1
cat
"""


def test_prompt_of_a_login_is_shown_during_the_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """While kubectl waits for a login, its messages on standard error are shown at once.

    Otherwise users would never open the page that the login names. After a limit the plugin gives
    up.
    """
    script = tmp_path / "kubectl"
    script.write_text(LOGIN)
    script.chmod(0o755)
    monkeypatch.setenv("KUBECTL", str(script))
    monkeypatch.setattr(kubectl, "_QUIET_SECONDS", 0.2)
    done = kubectl.Program().run(["patch"], "all of it " * 20_000)
    assert done.code == 0
    assert len(done.out) == 200_000
    shown = "kubectl: open https://login.example.com and type ABC\n"
    assert capsys.readouterr().err == shown
    monkeypatch.setattr(kubectl, "LOGIN_TIMEOUT", 0.1)
    with pytest.raises(CommandError, match="did not end within"):
        kubectl.Program().run(["get"])
