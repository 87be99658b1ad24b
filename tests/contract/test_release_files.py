"""Tests the files of a release that name its origin: chart, plugin, manifest for krew, manual
page.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
import yaml

from hooks.version import VERSION
from kubectl_tapp.main import command
from release import chart, man, plugin
from release.__main__ import checked_page, main
from release.kustomize import ROOT, ReleaseError
from tests.contract.charts import IMAGE

HOME = "https://github.com/example/tapp"


# --- the chart ------------------------------------------------------------------------------------


def test_chart_has_the_url_of_the_repository(tmp_path: Path) -> None:
    chart.copy(tmp_path / "tapp", VERSION, IMAGE, HOME)
    found = yaml.safe_load((tmp_path / "tapp" / "Chart.yaml").read_text())
    assert found["home"] == HOME
    assert found["sources"] == [HOME]
    assert found["icon"] == f"{HOME}/raw/v{VERSION}/docs/img/icon.svg"
    assert (ROOT / chart.ICON).read_text().startswith("<svg ")


def test_chart_without_a_repository_has_no_urls(tmp_path: Path) -> None:
    chart.copy(tmp_path / "tapp", VERSION, IMAGE)
    found = yaml.safe_load((tmp_path / "tapp" / "Chart.yaml").read_text())
    assert not {"home", "sources", "icon", "maintainers"} & set(found)
    assert found["version"] == VERSION
    assert found["appVersion"] == VERSION
    assert chart.CHART.joinpath("Chart.yaml").read_text().count(VERSION) == 2
    assert found["keywords"]
    assert "http" not in json.dumps([found[key] for key in ("keywords", "description")])


# --- krew -----------------------------------------------------------------------------------------


def archive(place: Path, system: str, machine: str, version: str = VERSION) -> Path:
    """Creates a file with the name of an archive of the plugin, and returns it.

    `system` and `machine` are the platform in the name.
    """
    file = place / f"kubectl-tapp-{version}-{system}-{machine}.tar.gz"
    file.write_text(f"{system} {machine}")
    return file


def test_krew_manifest_has_every_archive_with_its_checksum(tmp_path: Path) -> None:
    (tmp_path / "given").mkdir()
    (tmp_path / "dist").mkdir()
    for system, machine in (("linux", "amd64"), ("linux", "arm64"), ("darwin", "arm64")):
        archive(tmp_path / "given", system, machine)
    plugin.write_plugin(tmp_path / "dist", tmp_path / "given", HOME)
    text = (tmp_path / "dist" / "tapp.yaml").read_text()
    spec = yaml.safe_load(text)["spec"]
    assert spec["version"] == f"v{VERSION}"
    assert len(spec["shortDescription"]) <= 50
    assert not spec["shortDescription"].endswith(".")
    for platform in spec["platforms"]:
        name = platform["uri"].removeprefix(f"{HOME}/releases/download/v{VERSION}/")
        content = (tmp_path / "dist" / name).read_bytes()
        assert platform["sha256"] == hashlib.sha256(content).hexdigest()
        assert content.decode() == " ".join(platform["selector"]["matchLabels"].values())
        assert platform["bin"] == "kubectl-tapp"
    assert len(spec["platforms"]) == 3


def test_without_a_repository_there_is_no_krew_manifest(tmp_path: Path) -> None:
    (tmp_path / "given").mkdir()
    (tmp_path / "dist").mkdir()
    archive(tmp_path / "given", "linux", "amd64")
    plugin.write_plugin(tmp_path / "dist", tmp_path / "given", "")
    assert [file.suffix for file in (tmp_path / "dist").iterdir()] == [".gz"]


def test_archives_of_another_version_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="no archive found; `make plugin` makes one"):
        plugin.collect(tmp_path, tmp_path)
    archive(tmp_path, "linux", "amd64", "9.9.9")
    with pytest.raises(ReleaseError, match=r"9\.9\.9-linux-amd64\.tar\.gz is not of version"):
        plugin.collect(tmp_path, tmp_path)


@pytest.mark.parametrize("home", ["github.com/a/b", "http://github.com/a/b", "https://a", "x y"])
def test_invalid_url_of_the_repository_is_refused(
    home: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--version", VERSION, "--image", IMAGE, "--home", home]) == 1
    assert f"PAGE={home} is not the URL of a project" in capsys.readouterr().err
    assert checked_page(f"{HOME}/") == HOME


def test_archive_has_only_plain_files_without_an_owner(tmp_path: Path) -> None:
    """Packs a directory with a link: the archive has the linked file instead, and no owners.

    krew does not unpack links.
    """
    whole = tmp_path / "whole"
    (whole / "inner").mkdir(parents=True)
    (whole / "kubectl-tapp").write_text("x")
    (whole / "kubectl-tapp").chmod(0o700)
    (whole / "inner" / "link").symlink_to(whole / "kubectl-tapp")
    plugin.pack(whole, tmp_path / "a.tar.gz")
    with tarfile.open(tmp_path / "a.tar.gz") as packed:
        members = {each.name: each for each in packed.getmembers()}
    assert set(members) == {"kubectl-tapp/kubectl-tapp", "kubectl-tapp/inner/link"}
    assert all(each.isreg() and (each.uid, each.uname) == (0, "") for each in members.values())
    assert members["kubectl-tapp/kubectl-tapp"].mode == 0o755


def test_every_bundled_package_has_a_license_file() -> None:
    names = {found.metadata["Name"].lower() for found in plugin.bundled()}
    assert {"pydantic", "pydantic_core", "typer", "rich", "msgspec"} <= names
    assert not {"gunicorn", "gevent", "pytest"} & names
    assert [
        found.metadata["Name"]
        for found in plugin.bundled()
        if not list(plugin.license_files(found))
    ] == []


# --- the manual page ------------------------------------------------------------------------------


def test_manual_page_has_the_text_of_help() -> None:
    text = man.PAGE.read_text(encoding="utf-8")
    assert text == man.page()
    plain = re.sub(r"\\&|\\\(dq", "", text.replace("\\-", "-"))
    for name, each in man.commands(command(), "kubectl tapp"):
        assert f'.SS "{name}"' in plain
        assert " ".join(each.help.split("\n\n")[0].split()).replace('"', "") in plain
    for code in ("0", "1", "2", "3", "4", "5", "6", "130"):
        assert f"\n.B {code}\n" in text
    assert plain.count("\n.B --kubeconfig FILE\n") == 1


def test_manual_page_has_no_groff_warnings() -> None:
    if shutil.which("groff") is None:
        pytest.skip("there is no groff")
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-z", man.PAGE], capture_output=True, check=False
    )
    assert done.returncode == 0
    assert done.stderr == b""


def test_check_finds_a_stale_manual_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(man, "ROOT", tmp_path)
    monkeypatch.setattr(man, "PAGE", tmp_path / "man" / "kubectl-tapp.1")
    monkeypatch.setattr(man, "COMMANDS", tmp_path / "commands.md")
    assert man.main(["--check"]) == 1
    said = capsys.readouterr().err
    assert "man/kubectl-tapp.1 is stale: run `make generate`" in said
    assert "commands.md is stale: run `make generate`" in said
    assert man.main([]) == 0
    assert man.main(["--check"]) == 0
