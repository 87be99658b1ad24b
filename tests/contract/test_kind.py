"""`make kind`: what it calls, in which order, and what it says; Docker and kind are stand-ins."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from release import kind
from release.manifests import WHOLE, write_manifests

from .charts import tools
from .theirs import manifests_in

ROOT = Path(__file__).parents[2]
STAND_IN = """\
#!/bin/sh
call="$(basename "$0") $*"
cd {place}
echo "$call" >> calls
case "$call" in
"kind get clusters") cat clusters ;;
"kind create "*) echo tapp >> clusters ;;
"kind delete "*) : > clusters ;;
"kubectl version "*) echo '{{"serverVersion": {{"minor": "'"$(cat minor)"'"}}}}' ;;
"kubectl apply --server-side "*)
  [ -e served ] || {{ touch served; echo "error: no matches for kind" >&2; exit 1; }} ;;
esac
if grep -qf refused <<EOT
$call
EOT
then echo "it cannot be done" >&2; exit 1; fi
"""
CREATED = "kind create cluster --name tapp --wait 5m"
DELETED = "kind delete cluster --name tapp"


class Machine:
    """Where the stand-ins are, what they were asked, and what they refuse."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.bin = place / "bin"
        self.bin.mkdir(parents=True)
        self.wrote: list[tuple[Path, str]] = []
        """For which directories and images the manifests were written."""
        for name in ("calls", "clusters", "refused"):
            (place / name).touch()
        (place / "minor").write_text("36")
        for tool in kind.TOOLS:
            (self.bin / tool).write_text(STAND_IN.format(place=place))
            (self.bin / tool).chmod(0o755)

    def calls(self) -> list[str]:
        """What was called since the last time, without the question whether Docker answers."""
        found = (self.place / "calls").read_text().splitlines()
        (self.place / "calls").write_text("")
        return [each for each in found if each != "docker info"]

    def refuse(self, pattern: str = "") -> None:
        """From now on calls with this in them fail, after they have done what they do."""
        (self.place / "refused").write_text(f"{pattern}\n" if pattern else "")

    def run(self, *arguments: str) -> int:
        """`make kind`, on this machine."""
        return kind.main(["--place", str(self.place / "build"), *arguments])


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine that has all; the manifests are not written."""
    made = Machine(tmp_path / "machine")
    monkeypatch.setenv("PATH", f"{made.bin}:/usr/bin:/bin")
    monkeypatch.setattr(kind, "write_manifests", lambda *asked: made.wrote.append(asked))
    monkeypatch.setattr(kind.time, "sleep", lambda _: None)
    return made


def test_from_a_clone_to_a_tapp(machine: Machine, capfd: pytest.CaptureFixture[str]) -> None:
    """The install is applied until Metacontroller's kinds are served; each step is announced."""
    assert machine.run() == 0
    assert machine.wrote == [(machine.place / "build", kind.IMAGE)]
    install = f"kubectl apply --server-side -f {machine.place}/build/{WHOLE}"
    assert machine.calls() == [
        f"docker build --tag {kind.IMAGE} .",
        "kind get clusters",
        CREATED,
        "kubectl wait nodes --all --for=condition=Ready --timeout=5m",
        "kubectl version -o json",
        f"kind load docker-image {kind.IMAGE} --name tapp",
        install,
        install,
        "kubectl rollout status -n metacontroller statefulset/metacontroller --timeout=5m",
        "kubectl rollout status -n tapp-system deployment/tapp-hooks --timeout=5m",
        "kubectl apply -f examples/same-template.yaml",
        "kubectl wait tapp/same --for=condition=Ready --timeout=5m",
    ]
    said = capfd.readouterr().out
    assert said.count("\n==> ") == 6
    assert said.index("==> Building the image") < said.index("$ docker build")
    assert f"export KUBECONFIG={machine.place}/build/kubeconfig PATH=" in said
    assert said.endswith("`make kind-down` removes the cluster.\n")


def test_what_it_says_last_is_about_the_example_and_leads_somewhere() -> None:
    example = yaml.safe_load((ROOT / "examples" / "same-template.yaml").read_text())
    (container,) = example["spec"]["template"]["spec"]["containers"]
    assert example["metadata"]["name"] == "same"
    assert container["name"] == "web"
    assert container["image"] != "nginx:1.29"
    assert (ROOT / "metacontroller/components/monitoring/dashboard.json").exists()
    for page in ("examples/README.md", "docs/operations.md"):
        assert page in kind.NEXT
        assert (ROOT / page).exists()


def test_a_second_run_continues(machine: Machine) -> None:
    """On the cluster that is there, with the service restarted on the image of now."""
    machine.refuse("apply -f examples")
    assert machine.run() == 1
    machine.calls()
    machine.refuse()
    assert machine.run() == 0
    calls = machine.calls()
    assert CREATED not in calls
    assert calls[2] == "kind export kubeconfig --name tapp"
    restart = calls.index("kubectl rollout restart -n tapp-system deployment/tapp-hooks")
    assert calls[restart - 1].startswith("kubectl apply --server-side")


def test_what_an_interrupted_creation_left_is_removed(machine: Machine) -> None:
    machine.refuse("kind create")
    assert machine.run() == 1
    machine.refuse()
    machine.calls()
    assert machine.run() == 0
    assert machine.calls()[2:4] == [DELETED, CREATED]


def test_somebody_elses_cluster_is_left_alone(machine: Machine) -> None:
    (machine.place / "clusters").write_text("mine\ntapp-e2e-1\n")
    assert machine.run() == 0
    calls = machine.calls()
    assert CREATED in calls
    assert DELETED not in calls


@pytest.mark.parametrize("tool", kind.TOOLS)
def test_a_tool_that_is_missing_is_named_before_anything_is_done(
    machine: Machine, tool: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (machine.bin / tool).unlink()
    for needed in ("sh", "basename", "cat", "grep"):
        (machine.bin / needed).symlink_to(str(shutil.which(needed)))
    monkeypatch.setenv("PATH", str(machine.bin))
    assert machine.run() == 1
    assert capsys.readouterr().err == (
        f"error: {tool} is not on PATH: install it ({kind.TOOLS[tool]})\n"
    )
    assert machine.calls() == []


def test_a_docker_that_does_not_answer(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.refuse("docker info")
    assert machine.run() == 1
    assert capsys.readouterr().err == (
        "error: Docker does not answer: start it, or give your user access (it cannot be done)\n"
    )
    assert machine.calls() == []


def test_a_step_that_fails_is_named(machine: Machine, capfd: pytest.CaptureFixture[str]) -> None:
    machine.refuse("docker build")
    assert machine.run() == 1
    command = f"docker build --tag {kind.IMAGE} ."
    assert capfd.readouterr().err.endswith(f"\nerror: `{command}` has failed, see above\n")
    assert machine.calls() == [command]


def test_manifests_that_are_refused_are_not_tried_for_ever(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(kind, "PATIENCE", 0.0)
    (machine.place / "served").touch()
    machine.refuse("apply --server-side")
    assert machine.run() == 1
    assert f"{WHOLE}` has failed: it cannot be done\n" in capfd.readouterr().err


def test_waiting_in_vain_shows_the_pods(
    machine: Machine, capfd: pytest.CaptureFixture[str]
) -> None:
    machine.refuse("kubectl wait tapp/same")
    assert machine.run() == 1
    assert machine.calls()[-1] == "kubectl get pods --all-namespaces"
    said = capfd.readouterr().err
    assert f"`kubectl --kubeconfig {machine.place}/build/kubeconfig describe pod` says what" in said
    assert "`make kind` continues" in said


def test_a_cluster_that_does_not_answer(
    machine: Machine, capfd: pytest.CaptureFixture[str]
) -> None:
    """What is said is about the wait, not about the look at the pods."""
    machine.refuse("kubectl [wg]")
    assert machine.run() == 1
    assert "error: `kubectl wait nodes --all " in capfd.readouterr().err


def test_an_older_kubernetes_is_refused(
    machine: Machine, capfd: pytest.CaptureFixture[str]
) -> None:
    (machine.place / "minor").write_text("32+")
    assert machine.run() == 1
    assert "TApp needs Kubernetes 1.33, and this cluster has 1.32: " in capfd.readouterr().err
    assert not any("apply" in each for each in machine.calls())


def test_down(machine: Machine) -> None:
    """It asks for no more than it needs."""
    assert machine.run() == 0
    machine.calls()
    for tool in ("kubectl", "git"):
        (machine.bin / tool).unlink()
    assert machine.run("--down") == 0
    assert machine.calls() == [DELETED]
    assert not (machine.place / "build").exists()


def test_what_is_applied_is_the_releases_own_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("METACONTROLLER_MANIFESTS", str(manifests_in(tmp_path)))
    with tools():
        write_manifests(tmp_path, kind.IMAGE)
    documents = [*yaml.load_all((tmp_path / WHOLE).read_text(), yaml.CSafeLoader)]
    found = {
        (each["metadata"].get("namespace"), f"{each['kind'].lower()}/{each['metadata']['name']}")
        for each in documents
    }
    assert set(kind.WORKLOADS.items()) <= found
    (ours,) = [each for each in documents if each["kind"] == "Deployment"]
    assert ours["spec"]["template"]["spec"]["containers"][0]["image"] == kind.IMAGE
