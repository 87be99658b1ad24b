"""Tests the inputs of a release, and the errors if one is missing."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from hooks.version import VERSION
from release import chart, metacontroller
from release.__main__ import main
from release.kustomize import parts
from tests.contract.charts import tools
from tests.contract.metacontroller_substitutes import chart_in

IMAGE = "registry.example.com/tapp-hooks:0.1.0"


@pytest.fixture(scope="module", autouse=True)
def on_path() -> Iterator[None]:
    """Adds kubectl and helm to the PATH for all tests of this file."""
    with tools():
        yield


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Returns a directory of a chart that contains only Chart.yaml."""
    (tmp_path / "tapp").mkdir()
    shutil.copy(chart.CHART / "Chart.yaml", tmp_path / "tapp")
    return tmp_path / "tapp"


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ((), f"make release VERSION={VERSION} IMAGE=registry.example.com/tapp-hooks"),
        (("--version", VERSION), "VERSION or IMAGE is missing"),
        (
            ("--version", "9.9.9", "--image", IMAGE),
            f"VERSION=9.9.9 differs from {VERSION} in hooks/version.py",
        ),
        (
            ("--version", VERSION, "--image", "set-the-image.invalid/tapp-hooks"),
            "not a valid image",
        ),
        (("--version", VERSION, "--image", "Not An Image"), "is not a valid image name"),
    ],
)
def test_invalid_arguments_are_one_error_message(
    arguments: tuple[str, ...], why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, "--dist", str(tmp_path / "dist")]) == 1
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert why in said
    assert said.count("\n") == 1
    assert not (tmp_path / "dist").exists()


@pytest.mark.parametrize("missing", ["kubectl", "helm"])
def test_missing_tool_is_an_error_with_the_way_to_get_it(
    missing: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    other = {"kubectl": "helm", "helm": "kubectl"}[missing]
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / other).symlink_to(str(shutil.which(other)))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    dist = str(tmp_path / "dist")
    assert main(["--version", VERSION, "--image", IMAGE, "--dist", dist]) == 1
    said = capsys.readouterr().err
    assert missing in said
    assert "is on PATH" in said or "is not on PATH" in said
    assert "make e2e-binaries" in said


def test_failed_download_is_an_error_with_the_url_and_the_alternative(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with pytest.raises(metacontroller.ReleaseError) as refused:
        metacontroller.manifests({})
    assert "github.com/metacontroller" in str(refused.value)
    assert "METACONTROLLER_MANIFESTS" in str(refused.value)
    with pytest.raises(metacontroller.ReleaseError) as refused:
        metacontroller.add_chart("helm", directory, {})
    assert metacontroller.REPOSITORY in str(refused.value)
    assert "METACONTROLLER_CHART" in str(refused.value)


def test_another_version_of_metacontroller_is_refused(directory: Path, tmp_path: Path) -> None:
    other = chart_in(tmp_path)
    described = yaml.safe_load((other / "Chart.yaml").read_text())
    (other / "Chart.yaml").write_text(yaml.safe_dump({**described, "version": "1.2.3"}))
    with pytest.raises(
        metacontroller.ReleaseError, match=r"is not Metacontroller's chart .*1\.2\.3"
    ):
        metacontroller.add_chart("helm", directory, {"METACONTROLLER_CHART": str(other)})


@pytest.mark.parametrize(
    ("image", "split"),
    [
        ("a/b:1", {"newName": "a/b", "newTag": "1"}),
        ("r.example:5000/b", {"newName": "r.example:5000/b"}),
        ("r.example:5000/b:1", {"newName": "r.example:5000/b", "newTag": "1"}),
        ("b:1", {"newName": "b", "newTag": "1"}),
        ("a/b@sha256:0", {"newName": "a/b", "digest": "sha256:0"}),
    ],
)
def test_image_is_split_into_the_fields_of_kustomize(image: str, split: dict[str, str]) -> None:
    assert parts(image) == split
