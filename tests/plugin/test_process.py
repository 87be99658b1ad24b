"""The plugin as a process: pipes that close, Ctrl-C, terminals, locales, no kubectl."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kubectl_tapp.base.errors import CommandError
from kubectl_tapp.cluster import kubectl
from tests.plugin.standin import Document
from tests.plugin.test_see import web
from tests.scenarios.life import Life

ROOT = Path(__file__).parents[2]
KUBECTL = """#!/bin/sh
case " $* " in
  *" get tapps.apps.tkestack.io web "*) cat {place}/tapp.json ;;
  *" get tapps.apps.tkestack.io slow "*) touch {place}/asked; sleep 60 ;;
  *" get pods "*) cat {place}/pods.json ;;
  *" patch "*" --dry-run=server "*) cat {place}/tapp.json ;;
  *" patch "*) touch {place}/patched; cat {place}/tapp.json ;;
  *" get deployments.apps "*) echo 'Error from server (NotFound): not found' >&2; exit 1 ;;
  *) echo '{{"items": []}}' ;;
esac
"""
"""kubectl, as far as these tests go: a program that answers from files."""
ENTRY = """import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from kubectl_tapp.entry import main; main()"""
"""A call of the installed program; Ctrl-C reaches it also where the tests run in the background."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with such a kubectl: a TApp, with a letter that ASCII lacks."""
    where = tmp_path_factory.mktemp("bin")
    pool = {"défaut": web()["spec"]["template"]}
    life = Life().apply(web(defaultTemplateName="défaut", templatePool=pool))
    put(where / "tapp.json", life.tapp)
    put(where / "pods.json", {"items": life.world.list("Pod")})
    script = where / "kubectl"
    script.write_text(KUBECTL.format(place=where))
    script.chmod(0o755)
    return where


def put(file: Path, document: Document) -> None:
    """A document as JSON."""
    file.write_text(json.dumps(document), encoding="utf-8")


def command(*arguments: str) -> list[str]:
    """A call of the plugin."""
    return [sys.executable, "-c", ENTRY, *arguments]


def around(place: Path, **variables: str) -> dict[str, str]:
    """The environment of a call."""
    path = f"{place}:/usr/bin:/bin"
    return {"PATH": path, "HOME": str(place), "LC_ALL": "C.UTF-8", **variables}


def test_a_reader_that_goes_away_is_no_error(place: Path) -> None:
    """`kubectl tapp status web | head -0`."""
    process = subprocess.Popen(
        command("status", "web"),
        cwd=ROOT,
        env=around(place),
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


def test_the_page_of_a_plan_is_written_whoever_reads_the_text(place: Path, tmp_path: Path) -> None:
    """`kubectl tapp plan --html FILE | head -0`."""
    example, page = "examples/rolling-update", tmp_path / "plan.html"
    words = ["--from", f"{example}/1-create.yaml", "-f", f"{example}/2-update.yaml"]
    process = subprocess.Popen(
        command("plan", *words, "--html", str(page)),
        cwd=ROOT,
        env=around(place),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait() == 141
    assert page.read_text(encoding="utf-8").rstrip().endswith("</html>")


def test_who_says_yes_need_not_read(place: Path) -> None:
    """`kubectl tapp pause web -y | head -0`: it is done, and the shell is told so."""
    (place / "patched").unlink(missing_ok=True)
    process = subprocess.Popen(
        command("pause", "web", "-y"),
        cwd=ROOT,
        env=around(place),
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
def test_the_variable_kubectl_is_a_command(place: Path, case: str) -> None:
    """As it would be typed; one that is a program's path is that program."""
    for name in ("k3s", "my tools/kubectl"):
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text(f'#!/bin/sh\nexec "{place}/kubectl" "$@"\n')
        (place / name).chmod(0o755)
    environment = around(place, KUBECTL=WORDS[case].format(place=place))
    done = subprocess.run(
        command("status", "web"), cwd=ROOT, env=environment, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"Running" in done.stdout


@pytest.mark.parametrize(
    ("named", "sentence"),
    [
        ("'k3s kubectl", "error: the variable KUBECTL is not a command: No closing quotation"),
        ("k4s kubectl", "error: kubectl cannot be run (No such file or directory): see PATH and"),
    ],
)
def test_a_variable_that_is_no_command_is_a_sentence(
    place: Path, named: str, sentence: str
) -> None:
    environment = around(place, KUBECTL=named)
    done = subprocess.run(
        command("status", "web"), cwd=ROOT, env=environment, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.decode().startswith(sentence)


def test_ctrl_c_ends_it_without_a_word(place: Path) -> None:
    """While kubectl waits; both are in the terminal's foreground group."""
    process = subprocess.Popen(
        command("status", "slow"),
        cwd=ROOT,
        env=around(place),
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
    assert (process.returncode, out, err) == (130, "", "")


def test_a_locale_without_such_letters_gets_a_question_mark(place: Path) -> None:
    environment = around(place, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    done = subprocess.run(
        command("status", "web"), cwd=ROOT, env=environment, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"0   d?faut" in done.stdout


def test_no_kubectl_is_a_sentence(tmp_path: Path) -> None:
    done = subprocess.run(
        command("status", "web"),
        cwd=ROOT,
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "error: there is no kubectl on PATH: install it, or name it in the variable KUBECTL\n"
    )


@pytest.mark.parametrize("variable", ["", "NO_COLOR", "TERM"])
def test_colours_are_for_terminals_that_want_them(place: Path, variable: str) -> None:
    """80 columns are enough, and no line is longer."""
    wanted = {"TERM": "xterm-256color", "COLUMNS": "80"}
    wanted |= {"NO_COLOR": {"NO_COLOR": "1"}, "TERM": {"TERM": "dumb"}}.get(variable, {})
    text = on_a_terminal(command("status", "web"), around(place, **wanted))
    coloured = re.search(r"\x1b\[3\dm", text) is not None
    assert coloured == (variable == "")
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    assert "Running" in plain
    assert all(len(line.rstrip()) <= 80 for line in plain.splitlines())


def test_a_watch_on_a_terminal_ends_with_ctrl_c(place: Path) -> None:
    environment = around(place, TERM="xterm-256color", COLUMNS="100")
    text = on_a_terminal(command("status", "web", "-w"), environment, interrupt_at="Running")
    assert "Running" in text
    assert "Traceback" not in text
    assert text.endswith("exit 130")


def on_a_terminal(arguments: list[str], environment: dict[str, str], interrupt_at: str = "") -> str:
    """The screen of a call on a terminal; with its exit code where it is interrupted.

    It is, soon after it has shown these words.
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


def test_what_a_login_asks_for_is_shown_while_it_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else a person would look at nothing, and never open the page."""
    script = tmp_path / "kubectl"
    script.write_text(LOGIN)
    script.chmod(0o755)
    monkeypatch.setenv("KUBECTL", str(script))
    monkeypatch.setattr(kubectl, "_QUIET_SECONDS", 0.2)
    done = kubectl.Program().run(["patch"], "all of it " * 20_000)
    assert (done.code, len(done.out)) == (0, 200_000)
    shown = "kubectl: open https://login.example.com and type ABC\n"
    assert capsys.readouterr().err == shown
    monkeypatch.setattr(kubectl, "LOGIN_TIMEOUT", 0.1)
    with pytest.raises(CommandError, match="did not end within"):
        kubectl.Program().run(["get"])
