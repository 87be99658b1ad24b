"""Tests of the choice of the cluster and of its Kubernetes version.

These tests need no cluster and always run.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .binaries import build
from .cluster import REPOSITORY, Choice, choose
from .controlplane import NEEDED

PINNED = sorted(build.HERE.glob("kubernetes-*/go.mod"))


def test_given_cluster_comes_first_and_the_default_kubeconfig_is_never_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong setting gives an error, and never another cluster without notice."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("config", *NEEDED):
        (tmp_path / name).touch()
    binaries = {"KUBEBUILDER_ASSETS": str(tmp_path)}
    given = {"E2E_KUBECONFIG": str(tmp_path / "config"), "E2E_CONTEXT": "there", **binaries}
    assert choose(given) == Choice("existing", kubeconfig=tmp_path / "config", context="there")
    assert choose(binaries) == Choice("local", binaries=tmp_path)
    assert "not a file" in str(choose({"E2E_KUBECONFIG": str(tmp_path / "none")}))
    nothing = choose({"KUBECONFIG": str(tmp_path / "config"), "HOME": str(Path.home())})
    assert isinstance(nothing, str)
    assert all(word in nothing for word in ("e2e-binaries", "E2E_KUBECONFIG", "E2E_KIND"))


@pytest.mark.parametrize(
    "file", [build.HERE / "go.mod", *PINNED], ids=lambda file: file.parent.name
)
def test_pinned_modules_of_kubernetes_have_one_version(file: Path) -> None:
    """Go would build a staging module of another version without a warning."""
    version = build.required(file.parent, "k8s.io/kubernetes")
    _, _, named = file.parent.name.partition("-")
    assert version.startswith(f"v{named or build.NEWEST}.")
    replaced = re.findall(r"^\t(k8s\.io/\S+) => (\S+) (\S+)$", file.read_text(), re.MULTILINE)
    assert len(replaced) > 25
    assert {(here, version) for _, here, version in replaced} == {
        (name, version.replace("v1.", "v0.")) for name, _, _ in replaced
    }


@pytest.mark.parametrize("page", ["README.md", "docs/migration.md"])
def test_oldest_promised_version_has_pinned_modules(page: str) -> None:
    oldest = min(file.parent.name.partition("-")[2] for file in PINNED)
    assert f"Kubernetes {oldest} or newer" in (REPOSITORY / page).read_text()
