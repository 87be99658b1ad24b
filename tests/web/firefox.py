"""Controls Firefox by its remote protocol Marionette: JSON over a socket, without a driver.

`started` runs a Firefox, and `Firefox` sends commands to it.
"""

import itertools
import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox")
SECONDS = 120.0
"""The maximum number of seconds for a start or a response of Firefox on a busy machine."""
_KEYS = {
    "Tab": "\ue004", "Enter": "\ue007", "Home": "\ue011", "End": "\ue010",
    "ArrowRight": "\ue014", "ArrowDown": "\ue015",
}  # fmt: skip
_PREFERENCES = {
    "marionette.port": 0, "datareporting.policy.dataSubmissionEnabled": False,
    "browser.shell.checkDefaultBrowser": False, "toolkit.telemetry.reportingpolicy.firstRun": False,
    "app.update.disabledForTesting": True, "ui.prefersReducedMotion": 1,
}  # fmt: skip


class Firefox:
    """Controls one window of a running Firefox."""

    def __init__(self, port: int) -> None:
        """Connects to the Marionette server of a Firefox on `port`."""
        self._socket = socket.create_connection(("127.0.0.1", port), SECONDS)
        self._numbers = itertools.count(1)
        # Marionette first sends its version of the protocol.
        self._read()
        self.command("WebDriver:NewSession", capabilities={})

    def command(self, name: str, **parameters: Any) -> Any:
        """Runs a WebDriver command and returns its result; raises RuntimeError if Firefox reports
        an error.
        """
        message = json.dumps([0, next(self._numbers), name, parameters]).encode()
        self._socket.sendall(b"%d:%s" % (len(message), message))
        _, _, error, result = self._read()
        if error is not None:
            raise RuntimeError(f"{name}: {error['message']}")
        return result

    def goto(self, url: str) -> None:
        """Opens a URL in the window."""
        self.command("WebDriver:Navigate", url=url)

    def evaluate(self, expression: str) -> Any:
        """Returns the value of a JavaScript expression in the page."""
        script = f"return ({expression});"
        # Without a sandbox the script sees the page's globals.
        found = self.command("WebDriver:ExecuteScript", script=script, args=[], sandbox=None)
        return found["value"]

    def press(self, key: str) -> None:
        """Presses and releases a key: a letter, or a name in `_KEYS` such as `Tab`."""
        value = _KEYS.get(key, key)
        steps = [{"type": "keyDown", "value": value}, {"type": "keyUp", "value": value}]
        keyboard = {"type": "key", "id": "keyboard", "actions": steps}
        self.command("WebDriver:PerformActions", actions=[keyboard])

    def _read(self) -> Any:
        length = b""
        while (byte := self._socket.recv(1)) != b":":
            if not byte:
                raise ConnectionError("Firefox has ended")
            length += byte
        text = b""
        while len(text) < int(length):
            text += self._socket.recv(int(length) - len(text))
        return json.loads(text)

    def close(self) -> None:
        """Closes the connection to Firefox."""
        self._socket.close()


@contextmanager
def started(profile: Path) -> Iterator[Firefox]:
    """Yields a running Firefox without a display; `profile` is an empty directory for its
    profile.
    """
    lines = [
        f"user_pref({json.dumps(name)}, {json.dumps(value)});\n"
        for name, value in _PREFERENCES.items()
    ]
    (profile / "user.js").write_text("".join(lines), encoding="utf-8")
    command = [FIREFOX or "firefox", "--headless", "--marionette", "--no-remote"]
    log = (profile / "log").open("wb")
    with log, subprocess.Popen([*command, "--profile", profile], stdout=log, stderr=log) as process:
        try:
            found = Firefox(_port(profile, process))
            yield found
            found.close()
        finally:
            process.terminate()


def _port(profile: Path, process: "subprocess.Popen[bytes]") -> int:
    """Returns the port of Marionette after Firefox has written it; raises RuntimeError if Firefox
    ends before.
    """
    file, end = profile / "MarionetteActivePort", time.monotonic() + SECONDS
    while time.monotonic() < end and process.poll() is None:
        if file.exists() and (text := file.read_text(encoding="ascii")):
            return int(text)
        time.sleep(0.1)
    raise RuntimeError((profile / "log").read_text(errors="replace"))
