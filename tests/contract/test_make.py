"""Tests `make` in a new clone of the repository."""

import ast
import re
import shutil
import subprocess
import sys
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest

from tests.contract.imports import imports

ROOT = Path(__file__).parents[2]
OLD = """#!/bin/sh
exec {python} -c 'import sys; sys.version_info = (3, 9, 2); exec(sys.argv[1])' "$2"
"""
"""A Python that reports an older version, and supports only `-c`."""

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Returns a directory with the files that `make` reads, without a virtualenv."""
    for file in (ROOT / "Makefile", ROOT / "pyproject.toml", *ROOT.glob("requirements*.txt")):
        shutil.copy(file, tmp_path)
    return tmp_path


def make(where: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs `make` in a directory with an almost empty environment, and returns its exit code and
    output.
    """
    return subprocess.run(
        ["make", *arguments],
        cwd=where,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("target", ["demo", "run", "test", "install"])
def test_old_python_is_an_error_with_the_required_version(clone: Path, target: str) -> None:
    old = clone / "old"
    old.write_text(OLD.format(python=sys.executable))
    old.chmod(0o755)
    done = make(clone, target, f"PYTHON={old}")
    assert done.returncode == 2
    assert f"needs Python 3.11 or newer, and {old} is 3.9: make PYTHON=" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (clone / ".venv").exists()


@pytest.mark.parametrize(
    ("arguments", "developer", "last"),
    [
        (["demo"], False, ".venv/bin/python -m demo"),
        (["demo", "ALL=1"], False, ".venv/bin/python -m demo --all"),
        (["kind"], False, "release/kind.sh"),
        (["run"], False, ".venv/bin/python -m hooks"),
        (["test"], True, ".venv/bin/pytest -n auto --dist worksteal"),
    ],
    ids=["brief", "all", "kind", "run", "test"],
)
def test_only_targets_for_developers_install_the_tools_of_developers(
    clone: Path, arguments: list[str], developer: bool, last: str
) -> None:
    steps = make(clone, "-n", *arguments).stdout.splitlines()
    assert steps[-1].strip() == last
    assert any("-r requirements-plugin.txt" in step for step in steps)
    assert any("requirements-dev.txt" in step for step in steps) == developer


def test_make_installs_everything_that_the_demo_imports() -> None:
    pinned = set()
    for name in ("requirements.in", "requirements-plugin.in"):
        text = (ROOT / name).read_text(encoding="utf-8")
        pinned |= set(re.findall(r"(?m)^([\w-]+)==", text))
    brought = {
        re.split(r"[^\w-]", need, maxsplit=1)[0].lower()
        for name in pinned
        for need in requires(name) or ()
    }
    own = {"demo", "simulator", "hooks", "tapp", "kubectl_tapp", "migration"}
    imported = {
        name.partition(".")[0]
        for directory in own
        for file in (ROOT / directory).rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        for name in imports(node)
    }
    found = packages_distributions()
    missing = [
        name
        for name in imported - sys.stdlib_module_names - own
        if not {each.lower().replace("_", "-") for each in found[name]} & (pinned | brought)
    ]
    assert missing == []


@pytest.mark.parametrize("level", ["", "-plugin", "-dev"])
def test_locked_requirements_have_the_requested_versions_and_hashes(level: str) -> None:
    """The locked requirements have a hash for each package, and the versions of the `.in` file.

    All levels have the same versions, because one environment gets several files.
    """
    entries = re.split(r"\n(?=\w)", (ROOT / f"requirements{level}.txt").read_text("utf-8"))[1:]
    assert [each for each in entries if "--hash=sha256:" not in each] == []
    locked = pins("\n".join(entries))
    asked = pins((ROOT / f"requirements{level}.in").read_text("utf-8"))
    everything = pins((ROOT / "requirements-dev.txt").read_text("utf-8"))
    assert asked.items() <= locked.items() <= everything.items()


def pins(text: str) -> dict[str, str]:
    """Returns package name -> version for the pinned packages in a text of requirements."""
    return {name.lower(): found for name, found in re.findall(r"(?m)^([\w-]+)==([^\s;]+)", text)}
