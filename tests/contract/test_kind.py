"""Tests `make kind` with substitutes for docker, kind, kubectl and helm: its commands and its
output.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from hooks.version import VERSION

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "release" / "kind.sh"
IMAGE = f"tapp-hooks:{VERSION}"
TOOLS = ("docker", "kind", "kubectl", "helm")
SUBSTITUTE = """\
#!/bin/sh
call="$(basename "$0") $*"
cd {place}
case "$call" in
"docker image inspect"*) echo sha256:1; exit ;;
"docker info") exit ;;
"kind get clusters") cat clusters; exit ;;
"kind create "*) echo tapp >> clusters ;;
esac
echo "$call" >> calls
if [ -s refused ] && echo "$call" | grep -qf refused; then echo "it cannot be done" >&2; exit 1; fi
"""


class Machine:
    """Runs the script of `make kind` in a directory with substitutes for the tools.

    The substitutes store their calls, and fail if the test says so.

    Attributes:
        place: the directory; its file `refused` has patterns of calls that fail.
        bin: the directory with the substitutes, which is the only one on PATH.
    """

    def __init__(self, place: Path) -> None:
        self.place, self.bin = place, place / "bin"
        self.bin.mkdir(parents=True)
        for name in ("calls", "clusters", "refused"):
            (place / name).touch()
        for tool in ("basename", "cat", "dirname", "grep", "mkdir", "sed"):
            (self.bin / tool).symlink_to(str(shutil.which(tool)))
        for tool in TOOLS:
            (self.bin / tool).write_text(SUBSTITUTE.format(place=place))
            (self.bin / tool).chmod(0o755)

    def run(self) -> subprocess.CompletedProcess[str]:
        """Runs the script of `make kind` with the substitutes, and returns its exit code and
        output.
        """
        environment = {**os.environ, "PATH": str(self.bin), "METACONTROLLER_CHART": ""}
        return subprocess.run(
            [SCRIPT, self.place / "build"],
            env=environment, text=True, capture_output=True, check=False,
        )  # fmt: skip

    def calls(self) -> list[str]:
        """Returns the calls of the substitutes since the last time, and forgets them."""
        found = (self.place / "calls").read_text().splitlines()
        (self.place / "calls").write_text("")
        return found


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Returns a machine with substitutes for all tools."""
    return Machine(tmp_path / "machine")


def test_kind_installs_the_chart_and_an_example_and_can_be_repeated(machine: Machine) -> None:
    """Runs `make kind` twice: the first run makes all calls, and the second one uses the existing
    cluster.
    """
    done = machine.run()
    assert done.returncode == 0, done.stderr
    first = machine.calls()
    installs = (
        "helm upgrade --install tapp charts/tapp -n tapp-system --create-namespace --wait"
        f" --timeout 5m --set metacontroller.enabled=true,image={IMAGE}"
        " --set-string podAnnotations.image=sha256:1"
    )
    assert first == [
        f"docker build --tag {IMAGE} .",
        "kind create cluster --name tapp --wait 5m",
        "kind export kubeconfig --name tapp",
        f"kind load docker-image {IMAGE} --name tapp",
        "helm dependency update charts/tapp",
        installs,
        "kubectl apply -f examples/same-template.yaml",
        "kubectl wait tapp/same --for=condition=Ready --timeout=5m",
    ]
    assert f"export KUBECONFIG={machine.place}/build/kubeconfig PATH=" in done.stdout
    assert done.stdout.endswith("`make kind-down` removes the cluster.\n")
    assert machine.run().returncode == 0
    assert machine.calls() == [each for each in first if "kind create" not in each]


def test_hints_of_kind_fit_the_example_and_the_documentation() -> None:
    example = yaml.safe_load((ROOT / "examples" / "same-template.yaml").read_text())
    (container,) = example["spec"]["template"]["spec"]["containers"]
    assert example["metadata"]["name"] == "same"
    assert container["name"] == "web"
    assert container["image"] != "nginx:1.29"
    assert "\n## Where it runs\n" in (ROOT / "docs" / "install.md").read_text()


@pytest.mark.parametrize("tool", TOOLS)
def test_missing_tool_is_an_error_with_its_name(machine: Machine, tool: str) -> None:
    (machine.bin / tool).unlink()
    done = machine.run()
    assert done.returncode == 1
    assert f"error: {tool} is not on PATH: install it" in done.stderr
    assert machine.calls() == []


@pytest.mark.parametrize("step", ["docker build", "kind load", "helm upgrade", "kubectl wait"])
def test_failed_step_is_an_error_and_no_other_step_follows(machine: Machine, step: str) -> None:
    (machine.place / "refused").write_text(f"{step}\n")
    done = machine.run()
    assert done.returncode == 1
    assert machine.calls()[-1].startswith(step)
    assert "it cannot be done" in done.stderr
    assert "TApp runs" not in done.stdout
