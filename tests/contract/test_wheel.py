"""Tests the wheel of the kubectl plugin: its files, its requirements, and its version."""

import ast
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from hooks.version import VERSION
from kubectl_tapp.base import shipped
from tests.contract.imports import imports

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
NEEDS = [Requirement(text) for text in PROJECT["project"]["dependencies"]]
PAGE = [Requirement(text) for text in PROJECT["project"]["optional-dependencies"]["web"]]
MANIFESTS = (shipped.COMPOSITE, shipped.DECORATOR)


def pins() -> dict[str, str]:
    """Returns package name -> version for all packages that the environment of the tests pins."""
    texts = [file.read_text(encoding="utf-8") for file in ROOT.glob("requirements*.in")]
    return dict(re.findall(r"(?m)^([\w-]+)==(\S+)$", "\n".join(texts)))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """Returns the wheel as pip builds it from the repository, opened as a zip file."""
    where = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(where)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (built,) = where.glob("*.whl")
    return zipfile.ZipFile(built)


@pytest.mark.parametrize("need", [*NEEDS, *PAGE[:1]], ids=lambda need: need.name)
def test_versions_in_the_tests_meet_the_requirements_of_the_wheel(need: Requirement) -> None:
    pinned = pins()[need.name]
    assert Version(pinned) in need.specifier
    assert version(need.name) == pinned


def test_wheel_has_the_version_of_the_service(wheel: zipfile.ZipFile) -> None:
    (metadata,) = [name for name in wheel.namelist() if name.endswith("dist-info/METADATA")]
    assert f"\nVersion: {VERSION}\n" in wheel.read(metadata).decode()


@pytest.mark.parametrize("path", MANIFESTS)
def test_wheel_has_the_manifests_of_the_repository(wheel: zipfile.ZipFile, path: str) -> None:
    assert wheel.read(f"kubectl_tapp/shipped/{path}") == (ROOT / path).read_bytes()
    assert shipped.manifest(path)["kind"]


def test_wheel_has_both_commands_and_no_tests(wheel: zipfile.ZipFile) -> None:
    names = wheel.namelist()
    (entries,) = [name for name in names if name.endswith("dist-info/entry_points.txt")]
    assert re.findall(r"(?m)^(\S+) = ", wheel.read(entries).decode()) == [
        "kubectl-tapp",
        "kubectl_complete-tapp",
    ]
    tops = {name.partition("/")[0] for name in names if "dist-info" not in name}
    shared = f"tapp-{VERSION}.data"
    assert tops == {"kubectl_tapp", "tapp", "hooks", "simulator", "migration", shared}
    assert [name for name in names if name.startswith(shared)] == [
        f"{shared}/data/share/man/man1/kubectl-tapp.1"  # where pipx and man look for it
    ]
    assert [name for name in names if name.startswith(("hooks/app", "hooks/service"))] == []


def test_wheel_has_all_files_of_the_web_page(wheel: zipfile.ZipFile) -> None:
    """The wheel has each file of the web page unchanged; the server's package is in the extra
    `web`.
    """
    files = [*(ROOT / "kubectl_tapp" / "web" / "static").iterdir()]
    assert {file.suffix for file in files} == {".html", ".css", ".js"}
    for file in files:
        assert wheel.read(str(file.relative_to(ROOT))) == file.read_bytes()
    (metadata,) = [name for name in wheel.namelist() if name.endswith("dist-info/METADATA")]
    assert "Provides-Extra: web" in wheel.read(metadata).decode()


def test_plugin_starts_with_only_the_requirements_of_the_wheel() -> None:
    files = set((ROOT / "kubectl_tapp").rglob("*.py")) - {ROOT / "kubectl_tapp/web/app.py"}
    modules = [".".join(file.relative_to(ROOT).with_suffix("").parts) for file in files]
    others = ("flask", "gunicorn", "prometheus_client", "pydantic_settings", "click", "hypothesis")
    script = (
        f"import importlib, sys\nsys.modules.update(dict.fromkeys({others!r}))\n"
        f"for name in {modules!r}: importlib.import_module(name)"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_requirements_of_the_wheel_are_exactly_the_imports_of_the_plugin() -> None:
    """Each package that the plugin imports is a requirement of the wheel.

    Imports in functions count, and imports of the parts of the service that the plugin uses.
    """
    asked = {need.name.replace("pyyaml", "yaml") for need in (*NEEDS, *PAGE)}
    own = {"kubectl_tapp", "tapp", "hooks", "simulator", "migration"}
    imported = {
        name.partition(".")[0]
        for package in own - {"hooks"}
        for file in (ROOT / package).rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        for name in imports(node)
    }
    assert imported - sys.stdlib_module_names - own <= asked


def test_plugin_starts_without_importing_expensive_modules() -> None:
    """The completion command imports none of the listed modules at its start.

    Help and completion wait for all imports: 0.1 s of CPU instead of 0.4 s.
    """
    rooms = [f"tapp.{room}" for room in ("answer", "decide", "kube.objects", "plan", "pod", "spec")]
    heavy = ("hooks", "migration", "pydantic", "rich", "simulator", "yaml", *rooms)
    script = (
        "import sys, kubectl_tapp.complete_command\n"
        f"print(*sorted(set(sys.modules) & {{*{heavy!r}}}))"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    assert done.stdout.split() == []
