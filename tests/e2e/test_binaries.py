"""What is built for the end-to-end tests. This builds nothing, so it always runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .binaries import build
from .cluster import REPOSITORY


def test_the_kubernetes_version_is_chosen_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory with a pinned module is a version; a name without one is refused."""
    monkeypatch.setenv("E2E_KUBERNETES", "1.2")
    with pytest.raises(SystemExit, match=rf"E2E_KUBERNETES=1.2 is not one of .*{build.NEWEST}"):
        build.kubernetes_version()
    (tmp_path / "kubernetes-1.2").mkdir()
    (tmp_path / "kubernetes-1.2" / "go.mod").write_text("require k8s.io/kubernetes v1.2.7\n")
    (tmp_path / "kubernetes-1.2" / "go.sum").write_text("")
    monkeypatch.setattr(build, "HERE", tmp_path)
    assert build.kubernetes_version() == "v1.2.7"
    assert build.bin_dir().parts[-2:] == ("v1.2.7", "bin")
    older = build.kubernetes()
    monkeypatch.undo()
    assert older.stamp("go") != build.kubernetes().stamp("go")


PINNED = sorted(build.HERE.glob("kubernetes-*/go.mod"))


@pytest.mark.parametrize(
    "file", [build.HERE / "go.mod", *PINNED], ids=lambda file: file.parent.name
)
def test_all_of_kubernetes_is_of_one_version(file: Path) -> None:
    """A staging module of another version would be built without a word."""
    version = build.required(file.parent, "k8s.io/kubernetes")
    _, _, named = file.parent.name.partition("-")
    assert version.startswith(f"v{named or build.NEWEST}.")
    replaced = re.findall(r"^\t(k8s\.io/\S+) => (\S+) (\S+)$", file.read_text(), re.MULTILINE)
    assert len(replaced) > 25
    assert {(here, version) for _, here, version in replaced} == {
        (name, version.replace("v1.", "v0.")) for name, _, _ in replaced
    }


@pytest.mark.parametrize("page", ["README.md", "docs/migration.md"])
def test_the_oldest_that_is_promised_can_be_run(page: str) -> None:
    oldest = min(file.parent.name.partition("-")[2] for file in PINNED)
    assert f"Kubernetes {oldest} or newer" in (REPOSITORY / page).read_text()
