"""Fetches Metacontroller's manifests and chart for a release; the repository does not contain them.

Manifests and chart are downloaded from the places where Metacontroller publishes them. Without a
network, two environment variables can name local copies from a checkout of Metacontroller:

- METACONTROLLER_MANIFESTS: the path of its `manifests/production`.
- METACONTROLLER_CHART: the path of its `deploy/helm/metacontroller`, or of a packed chart.
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

import yaml

from .kustomize import INSTALL, Document, ReleaseError, build

OVERLAY = INSTALL / "overlays" / "metacontroller"
REPOSITORY = "oci://ghcr.io/metacontroller"  # The registry of Metacontroller's chart


def source() -> str:
    """Returns the URL of Metacontroller's manifests, including the version.

    The URL is the one in the kustomize overlay of this repository.
    """
    content = yaml.safe_load((OVERLAY / "kustomization.yaml").read_text(encoding="utf-8"))
    (found,) = content["resources"]
    return str(found)


def version() -> str:
    """Returns the version of Metacontroller that the kustomize overlay uses, without the letter
    `v`.
    """
    return re.sub(r".*\?ref=v?", "", source())


def manifests(environment: Mapping[str, str] = os.environ) -> list[Document]:
    """Returns Metacontroller's objects, with the arguments that the kustomize overlay adds.

    `environment` are the environment variables of the process. METACONTROLLER_MANIFESTS may name a
    local directory. Raises ReleaseError if the manifests cannot be fetched.
    """
    given = environment.get("METACONTROLLER_MANIFESTS")
    if not given:
        try:
            return build(OVERLAY)
        except ReleaseError as error:
            raise ReleaseError(
                f"Metacontroller's manifests could not be fetched from {source()}: set"
                " METACONTROLLER_MANIFESTS to the path of manifests/production"
                " in a checkout of this version"
                f" ({last_line(str(error))})"
            ) from None
    directory = Path(given)
    if not (directory / "kustomization.yaml").is_file():
        raise ReleaseError(f"METACONTROLLER_MANIFESTS={given} has no kustomization.yaml")
    with tempfile.TemporaryDirectory() as temporary:
        shutil.copytree(directory, Path(temporary) / "production")
        shutil.copytree(OVERLAY, Path(temporary) / "overlay")
        file = Path(temporary) / "overlay" / "kustomization.yaml"
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace(source(), "../production"), encoding="utf-8")
        return build(Path(temporary) / "overlay")


def add_chart(helm: str, chart: Path, environment: Mapping[str, str] = os.environ) -> None:
    """Adds Metacontroller's chart to the directory `charts/` of TApp's chart.

    Raises ReleaseError if Metacontroller's chart cannot be fetched.

    Args:
        helm: the path of the program helm.
        chart: the directory of TApp's chart.
        environment: the environment variables of the process. METACONTROLLER_CHART may name a local
            chart.
    """
    given = environment.get("METACONTROLLER_CHART")
    if not given:
        done = run(helm, "dependency", "update", chart)
        if done.returncode != 0:
            raise ReleaseError(
                f"Metacontroller's chart {version()} could not be fetched from {REPOSITORY}: set"
                " METACONTROLLER_CHART to the path of deploy/helm/metacontroller"
                " in a checkout of this version"
                f" ({last_line(done.stderr)})"
            )
        return
    found = run(helm, "show", "chart", given)
    content = yaml.safe_load(found.stdout) if found.returncode == 0 else {}
    if content.get("version") != version():
        raise ReleaseError(
            f"METACONTROLLER_CHART={given} is not Metacontroller's chart {version()}"
            f" ({last_line(found.stderr) or content.get('version')})"
        )
    (chart / "charts").mkdir()
    if Path(given).is_dir():
        run(helm, "package", given, "--destination", chart / "charts").check_returncode()
    else:
        shutil.copy(given, chart / "charts")


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    """Runs a command, and returns its exit code and output, also if the command fails."""
    return subprocess.run(command, text=True, capture_output=True, check=False)  # noqa: S603


def last_line(output: str) -> str:
    """Returns the last line of a program's output that is not blank; empty if there is none."""
    lines = [line for line in output.strip().splitlines() if line.strip()]
    return lines[-1].strip() if lines else ""
