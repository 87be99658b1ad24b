"""Which cluster is chosen, and what becomes of processes. These need no cluster and always run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .binaries import build
from .cluster import REPOSITORY, Choice, Workspace, choose
from .controlplane import NEEDED
from .kind import Kind, kind_answers
from .kubelet_levers import Levers
from .process import Process, ProcessError

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: stub
contexts: [{name: stub, context: {cluster: stub, user: stub}}]
clusters: [{name: stub, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: stub, user: {token: none}}]
"""


@pytest.fixture
def nothing_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def binaries(directory: Path) -> Path:
    directory.mkdir(parents=True)
    for name in NEEDED:
        (directory / name).touch()
    return directory


@pytest.mark.usefixtures("nothing_built")
class TestChoice:
    def test_kubeconfig_comes_first(self, tmp_path: Path) -> None:
        """A given cluster wins over local binaries."""
        file = tmp_path / "config"
        file.touch()
        environment = {
            "E2E_KUBECONFIG": str(file),
            "E2E_CONTEXT": "there",
            "KUBEBUILDER_ASSETS": str(binaries(tmp_path / "bin")),
        }
        assert choose(environment) == Choice("existing", kubeconfig=file, context="there")

    def test_default_kubeconfig_is_never_taken(self, tmp_path: Path) -> None:
        """KUBECONFIG alone chooses nothing."""
        assert isinstance(choose({"KUBECONFIG": str(tmp_path), "HOME": str(Path.home())}), str)

    def test_given_binaries_come_before_built_ones(self, tmp_path: Path) -> None:
        """KUBEBUILDER_ASSETS wins over what `make e2e-binaries` built."""
        binaries(build.bin_dir())
        given = binaries(tmp_path / "bin")
        assert choose({"KUBEBUILDER_ASSETS": str(given)}) == Choice("local", binaries=given)
        assert choose({}) == Choice("local", binaries=build.bin_dir())

    def test_what_is_missing_is_named(self, tmp_path: Path) -> None:
        """A wrong setting is an answer of its own, never a silent other choice."""
        (binaries(tmp_path / "bin") / "etcd").unlink()
        assert "lacks etcd" in str(choose({"KUBEBUILDER_ASSETS": str(tmp_path / "bin")}))
        assert "not a file" in str(choose({"E2E_KUBECONFIG": str(tmp_path / "none")}))

    def test_nothing_is_one_line(self) -> None:
        """Without any of them, one line says how to get each."""
        reason = choose({})
        assert isinstance(reason, str)
        assert "\n" not in reason
        assert all(word in reason for word in ("e2e-binaries", "E2E_KUBECONFIG", "E2E_KIND"))


class TestKind:
    """kind itself is not needed for this: stubs record how it would be called."""

    @pytest.fixture
    def calls(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """Stubs on PATH; `kind get clusters` tells of one cluster whose run is gone."""
        log, stubs = tmp_path / "calls", tmp_path / "stubs"
        stubs.mkdir()
        gone = 2**22 + 1  # above the kernel's largest pid
        script = (
            f'#!/bin/sh\necho "$(basename $0) $*" >> {log}\n'
            f'case "$(basename $0) $*" in "kind get clusters") '
            f"echo tapp-e2e-{gone}; echo tapp-e2e-{os.getpid()}; echo mine;;\n"
            f"\"kind create\"*) printf %s '{KUBECONFIG}' > {tmp_path}/kind.kubeconfig;; esac\n"
        )
        for name in ("docker", "kind", "kubectl"):
            (stubs / name).write_text(script)
            (stubs / name).chmod(0o755)
        monkeypatch.setenv("PATH", f"{stubs}:{os.environ['PATH']}")
        return log

    def test_life(self, calls: Path, tmp_path: Path) -> None:
        """Image built and loaded, shipped manifests applied, cluster deleted; leftovers, too."""
        assert kind_answers() is None
        cluster = Kind(tmp_path, [], REPOSITORY)
        cluster.start()
        cluster.stop()
        text = calls.read_text()
        words = [line.split()[:3] for line in text.splitlines()]
        assert ["kind", "delete", "cluster"] in words
        assert "delete cluster --name tapp-e2e-4194305" in text
        assert "--name mine" not in text
        assert text.count(f"delete cluster --name tapp-e2e-{os.getpid()}") == 1
        order = [
            text.index(part) for part in ("docker build", "kind create", "kind load", "kubectl")
        ]
        assert order == sorted(order)
        assert "metacontroller/overlays/kind" in text
        assert "@DIRECTORY@" not in (tmp_path / "kind.yaml").read_text()

    def test_no_docker_is_one_line(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """E2E_KIND without Docker says so."""
        monkeypatch.setenv("PATH", str(tmp_path))
        assert kind_answers() == "E2E_KIND=1, but docker is not on PATH"


class TestProcess:
    def test_dies_with_its_starter(self, tmp_path: Path) -> None:
        """Killing the tests kills what they started."""
        code = (
            "import sys, time; from pathlib import Path\n"
            "from tests.e2e.process import Process\n"
            "p = Process('sleeper', ['sleep', '60'], Path(sys.argv[1])); p.start()\n"
            "print(p.pid, flush=True); time.sleep(60)\n"
        )
        starter = subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path / "log")],
            stdout=subprocess.PIPE, text=True, cwd=REPOSITORY,
        )  # fmt: skip
        with starter:
            assert starter.stdout is not None
            sleeper = int(starter.stdout.readline())
            while "sleep" not in Path(f"/proc/{sleeper}/comm").read_text():
                time.sleep(0.01)
            starter.send_signal(signal.SIGKILL)
        deadline = time.monotonic() + 5
        while runs(sleeper):
            assert time.monotonic() < deadline, "it outlived its starter"
            time.sleep(0.02)

    def test_a_death_tells_why(self, tmp_path: Path) -> None:
        """A process that ends while it is waited for is an error with its last words."""
        process = Process("broken", ["sh", "-c", "echo no flag --such; exit 3"], tmp_path / "log")
        process.start()
        with pytest.raises(ProcessError, match=r"broken ended with code 3:\s+no flag --such"):
            process.wait_until(lambda: False, "miracle", timeout=10)
        process.stop()

    def test_stop_takes_the_whole_group(self, tmp_path: Path) -> None:
        """What the program forked goes with it, even when it does not listen."""
        script = "trap '' TERM; sleep 60 & echo $!; wait"
        process = Process("stubborn", ["sh", "-c", script], tmp_path / "log")
        process.start()
        process.wait_until(lambda: process.log.read_text().strip().isdigit(), "child")
        child = int(process.log.read_text())
        process.stop(grace=0.2)
        assert not process.alive
        deadline = time.monotonic() + 5
        while runs(child):
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def test_logs_are_kept_and_dead_runs_swept(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A directory whose run is gone is removed by the next run; logs can be kept."""
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        left = tmp_path / "tapp-e2e-left"
        left.mkdir()
        (left / "owner").write_text(str(2**22 + 1))
        place = Workspace()
        assert not left.exists()
        (place.directory / "etcd.log").write_text("last words")
        kept = Workspace.keep([place.directory / "etcd.log"], {"E2E_LOGS": str(tmp_path / "logs")})
        place.remove()
        assert not place.directory.exists()
        assert (kept / "etcd.log").read_text() == "last words"


def runs(pid: int) -> bool:
    """True if the process is there and not just waiting to be reaped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_two_names_can_have_one_image_id() -> None:
    """Digests tell nothing about which tag was asked for."""
    levers = Levers(digests={"app:1": "aa", "app:2": "aa"})
    assert levers.image_id("app:1") == levers.image_id("app:2") == "docker.io/library/app@sha256:aa"
    assert levers.image_id("app@sha256:00").startswith("docker.io/library/app@sha256:")
    assert levers.image_id("r.test:5000/app").startswith("r.test:5000/app@sha256:")
    assert levers.image_id("nginx") == levers.image_id("docker.io/library/nginx:latest")
