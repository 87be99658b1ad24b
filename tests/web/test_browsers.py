"""Tests which browser `kubectl tapp web` starts, and what it says if no browser opens the page."""

import os
import signal
import sys
import threading
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from kubectl_tapp.web import opening
from kubectl_tapp.web.opening import is_text_browser, opener
from tests.web.browsers import FETCHING, SECONDS, page_of, program, told_by
from tests.web.test_opening import ask


@pytest.mark.parametrize("options", ["", " --new %s", " --new"], ids=["plain", "place", "option"])
def test_browser_in_the_foreground_gets_the_page(tmp_path: Path, options: str) -> None:
    """Starts a `$BROWSER` that loads the page itself before it ends, with and without options."""
    browser = program(tmp_path, "mine", FETCHING)
    with page_of(tmp_path, BROWSER=f"{browser}{options}"):
        told = told_by(tmp_path / "mine.told").split()
    assert told[-2].startswith("http://127.0.0.1:")
    assert told[-1] == "303"
    assert ("--new" in told) == ("--new" in options)


TEXT = {
    "BROWSER=w3m": ({"BROWSER": "w3m"}, "BROWSER is w3m"),
    "BROWSER=lynx with options": ({"BROWSER": "lynx -accept_all_cookies"}, "BROWSER is lynx"),
    "a path": ({"BROWSER": "PLACE/w3m"}, "BROWSER is"),
    "two of them": ({"BROWSER": f"w3m{os.pathsep}lynx"}, "BROWSER is w3m"),
    "one that chooses": ({"BROWSER": "xdg-open"}, "BROWSER is xdg-open"),
    "no DISPLAY": ({}, "No browser could be started here"),
    "one that is missing": ({"BROWSER": "nothing"}, "No browser could be started here"),
    "Debian's choice": ({"BROWSER": "www-browser"}, "BROWSER is www-browser"),
    "a link to one": ({"BROWSER": "mine"}, "BROWSER is mine"),
}


@pytest.mark.parametrize("name", TEXT)
def test_browser_of_the_terminal_is_not_started(tmp_path: Path, name: str) -> None:
    """Sets `$BROWSER` to text browsers, or to none: the command prints the address and starts no
    program.

    A text browser would take over the terminal, and could not show the page.
    """
    for each in ("w3m", "lynx", "links", "elinks", "www-browser", "xdg-open"):
        program(tmp_path, each)
    (tmp_path / "mine").symlink_to(tmp_path / "w3m")
    environment, said = TEXT[name]
    given = {key: each.replace("PLACE", str(tmp_path)) for key, each in environment.items()}
    with page_of(tmp_path, **given) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        answer = ask(lines[0].split()[-1])
        assert answer.status == 303
    assert said in lines[2]
    assert [*tmp_path.glob("*.told")] == []


def test_first_graphical_browser_is_started(tmp_path: Path) -> None:
    """Sets `$BROWSER` to a text browser and another browser: the other one is started."""
    program(tmp_path, "w3m")
    mine = program(tmp_path, "mine", FETCHING)
    with page_of(tmp_path, BROWSER=f"w3m{os.pathsep}{mine}"):
        assert told_by(tmp_path / "mine.told").split()[-1] == "303"
    assert not (tmp_path / "w3m.told").exists()


LATE = {
    "exits late with an error": "import time; time.sleep(1); sys.exit(3)",
    "exits at once with an error": "sys.exit(3)",
    "cannot reach the page": "",
}


@pytest.mark.parametrize("name", LATE)
def test_browser_that_does_not_open_the_page_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Starts wrappers that open nothing: the user is told to open the address.

    Commands such as xdg-open end with success before a browser has started, or fail late.
    """
    monkeypatch.setattr(opening, "_OPEN_SECONDS", 5.0)
    monkeypatch.setenv("BROWSER", str(program(tmp_path, "mine", LATE[name])))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("SSH_CONNECTION", raising=False)
    said: list[str] = []
    opener("http://127.0.0.1:1/", said.append, threading.Event())()
    (text,) = said
    assert "open the address above yourself" in text


def test_second_browser_is_started_if_the_first_one_fails_late(tmp_path: Path) -> None:
    """Sets two browsers, of which the first one fails after a while: the second one is started."""
    first = program(tmp_path, "first", LATE["exits late with an error"])
    second = program(tmp_path, "second", FETCHING)
    with page_of(tmp_path, BROWSER=f"{first}{os.pathsep}{second}"):
        assert told_by(tmp_path / "second.told").split()[-1] == "303"


def test_nothing_is_reported_after_the_page_was_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opens the page although the command of the browser fails afterwards: that is no problem."""
    opened, said = threading.Event(), list[str]()
    opened.set()
    monkeypatch.setenv("BROWSER", str(program(tmp_path, "mine", "sys.exit(1)")))
    opener("http://127.0.0.1:1/", said.append, opened)()
    assert said == []


DETACHED = """
import os
try:
    open("/dev/tty")
    sys.argv.append("terminal")
except OSError:
    pass
for number in (0, 1, 2):
    sys.argv.append(os.readlink(f"/proc/self/fd/{number}"))
sys.argv.append(str(os.getsid(0) == os.getpid()))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("how", ["BROWSER", "BROWSER with &", "xdg-open"])
def test_browser_gets_no_terminal(tmp_path: Path, how: str) -> None:
    """Starts a wrapper or xdg-open, which may start a text browser: it has no terminal.

    It has a session of its own, so that Ctrl-C ends the server and not the browser.
    """
    name = "xdg-open" if how == "xdg-open" else "mine"
    browser = program(tmp_path, name, DETACHED)
    given = {"BROWSER": f"{browser} %s &" if "&" in how else str(browser)}
    if name == "xdg-open":
        given = {"DISPLAY": ":0"}
    with page_of(tmp_path, **given):
        told = told_by(tmp_path / f"{name}.told").split()
    assert told[1:] == ["/dev/null"] * 3 + ["True"]


@pytest.mark.parametrize("name", ["wslview", "rundll32.exe"])
def test_browser_of_windows_is_started_in_wsl(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Opens the page in WSL, where there is no xdg-open: a command of Windows opens it."""
    program(tmp_path, name)
    monkeypatch.setattr(opening, "is_wsl", lambda: True)
    monkeypatch.setattr(opening, "_OPEN_SECONDS", 0.0)
    monkeypatch.setenv("PATH", str(tmp_path))
    for each in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(each, raising=False)
    opener("http://127.0.0.1:1/?once=x", print)()
    assert told_by(tmp_path / f"{name}.told").split()[-1] == "http://127.0.0.1:1/?once=x"


def test_ssh_session_without_a_browser_is_told_how_to_forward_the_port(tmp_path: Path) -> None:
    """Runs the server over ssh without a display: the message has the command for the port.

    The address alone leads nowhere, because the browser runs on another machine.
    """
    with page_of(tmp_path, SSH_CONNECTION="10.0.0.2 50000 10.0.0.1 22") as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(4)]
    port = urlsplit(lines[0].split()[-1]).port
    assert "No browser could be started here" in lines[2]
    assert f"`ssh -L {port}:127.0.0.1:{port} HOST`" in lines[3]


def test_end_of_the_server_does_not_wait_for_a_browser(tmp_path: Path) -> None:
    """Ends the server while the browser has not opened the page: nothing is said about that."""
    with page_of(tmp_path, BROWSER=str(program(tmp_path, "mine"))) as process:
        told_by(tmp_path / "mine.told")
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=SECONDS)
    assert said.rstrip().endswith("Ended.")
    assert "has not opened" not in said


def test_environment_is_not_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks for a browser: the environment stays as it is, because kubectl and its plugins inherit
    it.
    """
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("BROWSER", raising=False)
    before = dict(os.environ)
    opener("http://127.0.0.1:1/", print)
    assert dict(os.environ) == before


@pytest.mark.parametrize("command", ['"', "w3m '", "firefox", "/snap/bin/firefox", "code --open"])
def test_other_commands_are_not_taken_for_browsers_of_the_terminal(command: str) -> None:
    """Checks commands that are no text browsers, including some that no shell can parse."""
    assert not is_text_browser(command)
