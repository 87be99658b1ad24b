"""Tests `python -m migration` as a command: which Python it needs, and which kubectl it runs."""

import ast
import importlib
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import migration
from migration import moves
from migration.__main__ import main
from migration.kubectl import Finished
from tapp.words import vocabulary
from tests.migration.fake_kubectl import old_app

ROOT = Path(__file__).parents[2]


def test_kubectl_gets_kubeconfig_context_and_all_namespaces() -> None:
    kubectl = old_app()
    assert main(["-A", "--kubeconfig", "/k", "--context", "c"], kubectl, lambda _: None) == 0
    for command in kubectl.commands:
        assert command[1:3] == ["--kubeconfig=/k", "--context=c"]
    assert "--all-namespaces" in kubectl.commands[0]


def test_names_together_with_all_namespaces_are_a_usage_error() -> None:
    with pytest.raises(SystemExit) as ended:
        main(["-A", "web"], old_app())
    assert ended.value.code == 2


def test_missing_kubectl_has_its_own_message(capsys: pytest.CaptureFixture[str]) -> None:
    def absent(command: Sequence[str]) -> Finished:
        raise FileNotFoundError(2, "No such file or directory", command[0])

    assert main([], absent) == 2
    assert "install it, or put it on PATH" in capsys.readouterr().err


def test_label_is_the_one_that_metacontroller_selects_by() -> None:
    assert moves.CONTROLLER_UID == vocabulary.CONTROLLER_UID


@pytest.mark.parametrize("file", sorted((ROOT / "migration").glob("*.py")), ids=lambda f: f.name)
def test_package_needs_only_python_3_9(file: Path) -> None:
    """Parses each file with the syntax of Python 3.9, and checks that it imports only the standard
    library.

    An administrator may have no newer Python. Types are not evaluated.
    """
    source = file.read_text(encoding="utf-8")
    tree = ast.parse(source, feature_version=(3, 6) if file.name == "__init__.py" else (3, 9))
    used = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    named = (node.names for node in ast.walk(tree) if isinstance(node, ast.Import))
    used |= {alias.name for names in named for alias in names}
    tops = {name.partition(".")[0] for name in used}
    assert tops <= {*sys.stdlib_module_names, "migration"}
    assert file.name == "__init__.py" or "__future__" in used


def test_older_python_gets_a_message_with_the_needed_version(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 8, 10, "final", 0))
    with pytest.raises(SystemExit, match=r"needs Python 3\.9 or newer; this is 3\.8"):
        importlib.reload(migration)


def python(version: str) -> str:
    """Returns the path of a Python of this version; skips the test if this machine lacks it."""
    name = f"python{version}"
    asked = [name, "-c", "import sys; print(sys.executable)"]
    try:
        found = subprocess.run(asked, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip(f"there is no {name} on PATH")
    return found.stdout.strip()


def test_command_runs_with_python_3_9(tmp_path: Path) -> None:
    done = run_command(python("3.9"), tmp_path)
    assert done.returncode == 0, done.stderr
    assert "No TApp found" in done.stdout


def test_command_runs_kubectl_from_path(tmp_path: Path) -> None:
    done = run_command(sys.executable, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "No TApp found" in done.stdout


def run_command(interpreter: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """Runs the migration with this Python interpreter and a kubectl that lists no objects; returns
    the result.
    """
    script = tmp_path / "kubectl"
    script.write_text("#!/bin/sh\necho '{\"items\": []}'\n")
    script.chmod(0o755)
    return subprocess.run(
        [interpreter, "-m", "migration", "-A"],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
