"""`python -m migration` as a command: which Python it needs, and which kubectl it runs."""

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


def test_kubeconfig_context_and_all_namespaces_reach_kubectl() -> None:
    kubectl = old_app()
    assert main(["-A", "--kubeconfig", "/k", "--context", "c"], kubectl, lambda _: None) == 0
    for command in kubectl.commands:
        assert command[1:3] == ["--kubeconfig=/k", "--context=c"]
    assert "--all-namespaces" in kubectl.commands[0]


def test_naming_tapps_and_all_namespaces_is_a_usage_error() -> None:
    with pytest.raises(SystemExit) as ended:
        main(["-A", "web"], old_app())
    assert ended.value.code == 2


def test_a_missing_kubectl_is_said_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    def absent(command: Sequence[str]) -> Finished:
        raise FileNotFoundError(2, "No such file or directory", command[0])

    assert main([], absent) == 2
    assert "install it, or put it on PATH" in capsys.readouterr().err


def test_the_label_is_the_one_that_metacontroller_selects_by() -> None:
    assert moves.CONTROLLER_UID == vocabulary.CONTROLLER_UID


@pytest.mark.parametrize("file", sorted((ROOT / "migration").glob("*.py")), ids=lambda f: f.name)
def test_an_administrators_python_is_new_enough(file: Path) -> None:
    """Python 3.9 has the syntax and the modules, and types are not evaluated."""
    source = file.read_text(encoding="utf-8")
    tree = ast.parse(source, feature_version=(3, 6) if file.name == "__init__.py" else (3, 9))
    used = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    named = (node.names for node in ast.walk(tree) if isinstance(node, ast.Import))
    used |= {alias.name for names in named for alias in names}
    tops = {name.partition(".")[0] for name in used}
    assert tops <= {*sys.stdlib_module_names, "migration"}
    assert file.name == "__init__.py" or "__future__" in used


def test_an_older_python_is_told_in_a_sentence_what_is_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 8, 10, "final", 0))
    with pytest.raises(SystemExit, match=r"needs Python 3\.9 or newer; this is 3\.8"):
        importlib.reload(migration)


def python(version: str) -> str:
    """An interpreter of that version that works, or the test is skipped."""
    name = f"python{version}"
    asked = [name, "-c", "import sys; print(sys.executable)"]
    try:
        found = subprocess.run(asked, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip(f"there is no {name} on PATH")
    return found.stdout.strip()


def test_the_command_runs_on_the_oldest_python(tmp_path: Path) -> None:
    done = ran(python("3.9"), tmp_path)
    assert done.returncode == 0, done.stderr
    assert "No TApp found" in done.stdout


def test_the_command_itself_runs_kubectl_from_path(tmp_path: Path) -> None:
    done = ran(sys.executable, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "No TApp found" in done.stdout


def ran(interpreter: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """The command, with a kubectl that knows of nothing."""
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
