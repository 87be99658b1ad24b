"""Opens the page in the user's browser. The module `webbrowser` and the variable `$BROWSER` choose
the browser.

`opener` is the entry point. Text browsers are not used, because they cannot run the page's scripts.
Wrappers and `xdg-open` may start a text browser, so no program that is started here gets the
terminal. Wrappers may fail late, or end with success without starting a browser. So only the page's
server knows whether a browser has opened the page.
"""

import os
import shlex
import shutil
import threading
import time
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from kubectl_tapp.base.detached import start_detached
from kubectl_tapp.web.peer import is_wsl

_TEXT_BROWSERS = {
    "browsh", "carbonyl", "cha", "chawan", "edbrowse", "elinks", "felinks", "links", "links2",
    "lynx", "retawq", "w3m", "www-browser",
}  # fmt: skip
_CHOOSERS = {"sensible-browser", "xdg-open"}
"""Commands that start a text browser if the user's session has no display."""
_IN_BACKGROUND = "xdg-open", "gio", "gvfs-open", "gnome-open", "x-www-browser"
"""Names under which `webbrowser` knows commands that it starts with the terminal."""
_WINDOWS = (
    ["wslview"],
    ["rundll32.exe", "url.dll,FileProtocolHandler"],
    ["/mnt/c/Windows/System32/rundll32.exe", "url.dll,FileProtocolHandler"],
)
"""Commands that open an address in the browser of Windows from the Windows Subsystem for Linux."""
# Seconds within which a browser has to open the page; after that the user gets a message
_OPEN_SECONDS = 20.0
_LOOK_SECONDS = 0.1  # Seconds between two checks of a browser that is being started


def opener(
    address: str, say: Callable[[str], None], opened: threading.Event | None = None
) -> Callable[[], None]:
    """Returns a function that opens an address in the user's browser.

    The function may block until the browser ends. If no browser can be started, or if none has
    opened the page in time, it tells the user so by `say`. The browsers are looked up now and not
    in the returned function, because the lookup changes environment variables of the process for a
    moment.

    Args:
        address: the address to open.
        say: prints a text for the user.
        opened: the server sets this event when a browser has opened the page, or when the server
            ends. None if the server does not report that.
    """
    chosen = [each for each in os.environ.get("BROWSER", "").split(os.pathsep) if each]
    usable = [each for each in chosen if not is_text_browser(each)]
    hint = "".join(f"\n{each}" for each in [_reach_hint(urlsplit(address).port)] if each)
    if chosen and not usable:
        said = (
            f"No browser was started: BROWSER is {os.pathsep.join(chosen)}, which shows text only."
        )
        return lambda: say(f"{said} Open the address above in another one.{hint}")
    _register(usable, opened or threading.Event())

    def run() -> None:
        try:
            started = webbrowser.open(address)
        except (webbrowser.Error, OSError):
            started = False
        if not started:
            say(f"No browser could be started here: open the address above yourself.{hint}")
        elif opened is not None and not opened.wait(_OPEN_SECONDS):
            seconds = f"{_OPEN_SECONDS:.0f} seconds"
            say(
                f"The browser that was started has not opened the page for {seconds}: open the "
                f"address above yourself.{hint}"
            )

    return run


def _register(chosen: list[str], opened: threading.Event) -> None:
    """Registers commands with `webbrowser`: it tries the user's `chosen` commands first, and starts
    all others without the terminal.

    `opened` is set when a browser has opened the page.
    """
    # Without TERM, `webbrowser` does not register text browsers.
    with _environment(BROWSER="", TERM=""):
        webbrowser.register_standard_browsers()
    for name in _IN_BACKGROUND:
        try:
            known = webbrowser.get(name)
        except webbrowser.Error:
            continue
        if isinstance(known, webbrowser.GenericBrowser):
            _Detached([known.name, *known.args], opened).register(name, preferred=False)
    if is_wsl():
        for words in _WINDOWS:
            if shutil.which(words[0]):
                _Detached(words, opened).register(words[0], preferred=words == _WINDOWS[0])
    for command in reversed(chosen):
        _Detached(_words(command), opened).register(command, preferred=True)


class _Detached(webbrowser.BaseBrowser):
    """A command that opens an address. It runs in a process session of its own and without the
    terminal.

    So the command cannot read what the user types, and Ctrl-C does not end the browser.
    """

    def __init__(self, words: list[str], opened: threading.Event) -> None:
        """Prepares a command.

        `words` are the program and its arguments. The address replaces `%s` in them, or follows
        them if they contain no `%s`. `opened` is set when a browser has opened the page.
        """
        super().__init__(words[0])
        self._words = words if any("%s" in each for each in words) else [*words, "%s"]
        self._opened, self._has_failed = opened, False

    def register(self, name: str, *, preferred: bool) -> None:
        """Registers the command with `webbrowser`.

        If `preferred` is True, `webbrowser` tries this command before all commands that are already
        registered.
        """
        # `webbrowser` interprets a name that contains `%s` as a command line.
        webbrowser.register(name.replace("%s", "%"), None, self, preferred=preferred)

    def open(self, url: str, new: int = 0, autoraise: bool = True) -> bool:  # noqa: ARG002 - as in webbrowser
        """Starts the command. Returns False if the command fails before a browser has opened the
        page, otherwise True.
        """
        # `webbrowser` may try the command twice, because it knows the command by two names
        if self._has_failed:
            return False
        try:
            process = start_detached([each.replace("%s", url) for each in self._words])
        except OSError:
            self._has_failed = True
            return False
        end = time.monotonic() + _OPEN_SECONDS
        while process.poll() is None and time.monotonic() < end:
            if self._opened.wait(_LOOK_SECONDS):
                break
        self._has_failed = bool(process.returncode) and not self._opened.is_set()
        return not self._has_failed


def _reach_hint(port: int | None) -> str:
    """Returns a sentence that says how a browser on another machine reaches the port.

    Returns "" if this process seems to run on the user's own machine.
    """
    if os.environ.get("SSH_CONNECTION"):
        command = f"ssh -L {port}:127.0.0.1:{port} HOST"
        return (
            f"This is an ssh session: run `{command}` on your machine, and open the address there."
        )
    if any(Path(each).exists() for each in ("/.dockerenv", "/run/.containerenv")):
        return "This is a container: only programs in its network can open the address."
    return ""


def is_text_browser(command: str) -> bool:
    """Returns True if a command is a text browser, or a link to a text browser."""
    name = _words(command)[0]
    names = {Path(name).name, Path(shutil.which(name) or name).resolve().name}
    shown = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") or is_wsl()
    return bool(names & (_TEXT_BROWSERS if shown else _TEXT_BROWSERS | _CHOOSERS))


def _words(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError:  # a quote in the command is not closed
        words = []
    if not words or shutil.which(command):
        return [command]
    return words[:-1] if words[-1] == "&" and len(words) > 1 else words


@contextmanager
def _environment(**variables: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
