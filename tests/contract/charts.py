"""Renders the Helm chart of the service with helm.

`unpacked` writes the chart into a directory; `rendered` returns the objects that helm renders from
the directory.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from hooks.version import VERSION
from release import chart, metacontroller
from release.kustomize import STUB
from tests.e2e.binaries import build as binaries

from .metacontroller_substitutes import chart_in

Document = dict[str, Any]
DEFINITION = "files/tapp.yaml"
IMAGE = "registry.example.com/tapp-hooks:0.1.0"


@contextmanager
def tools() -> Iterator[None]:
    """Puts kubectl and helm on PATH within the block, if necessary those that the e2e tests have
    built.

    Skips the test if there is no kubectl or no helm.
    """
    built = [str(binaries.bin_dir()), str(binaries.helm().bin_dir)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", os.pathsep.join([os.environ["PATH"], *built]))
        patch.setenv("GOGC", "off")  # garbage collection takes a third of their time
        for tool in ("kubectl", "helm"):
            if shutil.which(tool) is None:
                pytest.skip(f"there is no {tool}: `make e2e-binaries` builds one")
        yield


def unpacked(place: Path, *, stub: bool = False) -> Path:
    """Writes the chart of the service into a directory, with a substitute for Metacontroller's
    chart.

    Returns the directory of the chart. If `stub` is True, the CRD has no schema, on which helm
    spends most of its time.
    """
    directory = place / "tapp"
    chart.copy(directory, VERSION, IMAGE)
    if stub:
        assert (directory / DEFINITION).exists()
        (directory / DEFINITION).write_text(STUB)
    theirs = chart_in(place / "theirs")
    metacontroller.add_chart("helm", directory, {"METACONTROLLER_CHART": str(theirs)})
    return directory


def helm(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Runs helm with these arguments, and returns its exit code and output."""
    return subprocess.run(["helm", *arguments], capture_output=True, text=True, check=False)


def templated(
    directory: Path, *values: str, namespace: str = "tapp-system", flags: Iterable[str | Path] = ()
) -> subprocess.CompletedProcess[str]:
    """Runs `helm template` for the chart in a directory, and returns its exit code and output.

    `values` have the form `path=JSON`; `flags` are further arguments.
    """
    given = [word for value in values for word in ("--set-json", value)]
    place = ("--namespace", namespace, "--kube-version", "1.37.0")
    return helm("template", "tapp", directory, *place, *given, *flags)


def rendered(
    directory: Path, *values: str, namespace: str = "tapp-system", flags: Iterable[str | Path] = ()
) -> list[Document]:
    """Returns the objects that `helm template` renders; fails if helm fails.

    `values` have the form `path=JSON`; `flags` are further arguments.
    """
    text = _printed(directory, values, namespace, tuple(flags))
    return [each for each in yaml.load_all(text, yaml.CSafeLoader) if each]


def installed(*given: Any, **more: Any) -> list[Document]:
    """Returns the objects that `helm template` renders, without those that only `helm test`
    creates.

    The arguments are those of `rendered`.
    """
    return [
        each for each in rendered(*given, **more) if "helm.sh/hook" not in str(each["metadata"])
    ]


@cache
def _printed(
    directory: Path, values: tuple[str, ...], namespace: str, flags: tuple[str | Path, ...]
) -> str:
    """Returns the output of `helm template`, cached by its arguments."""
    done = templated(directory, *values, namespace=namespace, flags=flags)
    assert done.returncode == 0, done.stderr
    return done.stdout


def only(documents: list[Document], kind: str, name: str | None = None) -> Document:
    """Returns the only object of a kind in a list; if `name` is given, the only one with this
    name.
    """
    (found,) = [
        each
        for each in documents
        if each["kind"] == kind and name in (None, each["metadata"]["name"])
    ]
    return found


def camel(component: str) -> str:
    """Returns the name of a component in the chart's values, for example `podStatus` for
    `pod-status`.
    """
    head, *tail = component.split("-")
    return head + "".join(word.capitalize() for word in tail)


def controller_arguments() -> list[str]:
    """Returns the command line arguments that the overlay gives to Metacontroller."""
    patch = yaml.safe_load((metacontroller.OVERLAY / "arguments.yaml").read_text())
    (container,) = patch["spec"]["template"]["spec"]["containers"]
    found: list[str] = container["args"]
    return found
