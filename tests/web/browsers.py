"""Programs that stand for the browser of a user, and `kubectl tapp web` as a process."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SECONDS = 120.0  # The longest that a program may take: no measure of speed


def program(place: Path, name: str, text: str = "") -> Path:
    """Creates a program `name` in the directory `place` that writes its arguments to the file
    `NAME.told`.

    `text` is Python code that the program runs before. Returns the path of the program.
    """
    file = place / name
    noted = f"open({str(place / (name + '.told'))!r}, 'a').write(' '.join(sys.argv[1:]) + '\\n')"
    file.write_text(f"#!{sys.executable}\nimport sys\n{text}\n{noted}\n", encoding="utf-8")
    file.chmod(0o755)
    return file


@contextmanager
def page_of(place: Path, **environment: str) -> Iterator["subprocess.Popen[str]"]:
    """Runs `kubectl tapp web` as a process that finds only the programs in the directory `place`.

    `environment` has further environment variables. The process is stopped at the end of the block.
    """
    command = [sys.executable, "-m", "kubectl_tapp.main", "web"]
    inherited = {key: os.environ[key] for key in ("HOME", "PYTHONPATH") if key in os.environ}
    known = {**inherited, "PATH": str(place), "TERM": "xterm", "KUBECTL": "false"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, env=known | environment, text=True
    ) as process:
        try:
            yield process
        finally:  # A failed test must not wait for the process.
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=SECONDS)


def told_by(file: Path) -> str:
    """Waits until a program has written its arguments to the file, and returns them."""
    end = time.monotonic() + SECONDS
    while not file.exists() or not file.read_text(encoding="utf-8").endswith("\n"):
        assert time.monotonic() < end, f"{file.name} does not come about"
        time.sleep(0.05)
    return file.read_text(encoding="utf-8")


FETCHING = """
import http.client, urllib.parse
at = urllib.parse.urlsplit(sys.argv[-1])
connection = http.client.HTTPConnection(at.hostname, at.port)
connection.request("GET", f"{at.path}?{at.query}")
answer = connection.getresponse()
sys.argv.append(str(answer.status))
"""
