"""Opens the page in the user's browser, which the module `webbrowser` and `$BROWSER` choose.

Text browsers are left out: they cannot run the page's scripts, and would take over the terminal.
"""

import os
import shlex
import shutil
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from kubectl_tapp.web.peer import is_wsl

_TEXT_BROWSERS = {
    "browsh", "carbonyl", "cha", "chawan", "edbrowse", "elinks", "felinks", "links", "links2",
    "lynx", "retawq", "w3m", "www-browser",
}  # fmt: skip
_CHOOSERS = {"sensible-browser", "xdg-open"}
"""Commands that choose a text browser if the session has no display."""


def opener(address: str, say: Callable[[str], None]) -> Callable[[], None]:
    """Returns a function that opens an address in the user's browser.

    The function may block until the browser ends. If no browser can be started, it tells the user
    so by `say`. The browsers are looked up before the function is returned, because the lookup
    changes environment variables of the process for a moment.
    """
    chosen = [each for each in os.environ.get("BROWSER", "").split(os.pathsep) if each]
    usable = [_command(each) for each in chosen if not is_text_browser(each)]
    if chosen and not usable:
        said = (
            f"No browser was started: BROWSER is {os.pathsep.join(chosen)}, which shows text only."
        )
        return lambda: say(f"{said} Open the address above in another one.")
    # Without TERM, `webbrowser` does not register text browsers.
    with _environment(BROWSER=os.pathsep.join(usable), TERM=""):
        webbrowser.register_standard_browsers()

    def run() -> None:
        try:
            opened = webbrowser.open(address)
        except (webbrowser.Error, OSError):
            opened = False
        if not opened:
            say("No browser could be started here: open the address above yourself.")

    return run


def is_text_browser(command: str) -> bool:
    """Returns True if a command starts a text browser, also if it is a link to a text browser."""
    name = _words(command)[0]
    names = {Path(name).name, Path(shutil.which(name) or name).resolve().name}
    shown = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") or is_wsl()
    return bool(names & (_TEXT_BROWSERS if shown else _TEXT_BROWSERS | _CHOOSERS))


def _command(given: str) -> str:
    """Returns the command of a browser, with `%s` in the place of the address if it has options.

    `webbrowser` accepts options only together with `%s`.
    """
    return given if "%s" in given or len(_words(given)) == 1 else f"{given} %s"


def _words(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError:  # a quote that is not closed
        words = []
    return words if words and not shutil.which(command) else [command]


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
