"""Tests docs/tutorial.md: types each command in the demo's shell, and compares the output."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from tests.commands import ROOT, TUTORIAL, block, run

pytestmark = pytest.mark.slow  # its rollouts take place in real time
SHELL = [sys.executable, "-m", "demo.shell"]
END = "--- end of the output ---"


@pytest.fixture(scope="module")
def shell() -> Iterator[Callable[[str], str]]:
    """Yields a function that types a line into the demo's shell and returns the output."""
    process = subprocess.Popen(
        SHELL, cwd=ROOT, text=True, env={**os.environ, "COLUMNS": "120"},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None

    def typed(line: str) -> str:
        process.stdin.write(f"{line}\necho '{END}'\n")
        process.stdin.flush()
        lines = []
        for printed in process.stdout:
            if printed.strip() == END:
                return "".join(lines)
            lines.append(printed)
        raise AssertionError("".join(["the shell ended: ", *lines]))

    typed("true")  # ends after the welcome text
    yield typed
    process.stdin.close()
    process.wait(60)
    process.stdout.close()
    assert process.returncode == 0


def test_commands_of_the_tutorial_print_the_documented_output(shell: Callable[[str], str]) -> None:
    for name in TUTORIAL:
        run(block(name), shell)


@pytest.mark.parametrize(
    ("line", "printed"),
    [
        ("kubectl get services", "No resources found.\n"),
        ("kubectl get services -o name", "No resources found.\n"),
        ("kubectl get services -o yaml", "apiVersion: v1\nkind: List\n"),
        ("kubectl get nonsense", "error: the server doesn't have"),
        ("kubectl logs web-0", "error: this shell's kubectl does not have `logs`\n"),
        ("kubectl apply -f missing.yaml", "No such file or directory"),
        ("kubectl delete tapp web", 'tapps "web" not found'),
        ("kubectl delete pods", "error: a name is required\n"),
        ("echo 'a: [' | kubectl apply -f -", "error: "),
        ("echo 'kind: Odd' | kubectl apply -f -", "error: "),
        ("kubectl", "error: this shell's kubectl does not have ``\n"),
    ],
)
def test_demo_shell_reports_commands_that_it_cannot_serve(
    shell: Callable[[str], str], line: str, printed: str
) -> None:
    assert printed in shell(line)
