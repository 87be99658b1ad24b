"""`make kind`: from a clone to a running TApp, on a kind cluster of its own.

The image is built here and loaded into the cluster; what is applied is the release's own
install-with-metacontroller.yaml, made for that image. The cluster's kubeconfig is a file of its
own, so that nobody's current context changes. Every step may be repeated: a second run continues,
and restarts the service on the image of now. `--down` is `make kind-down`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from hooks.version import VERSION

from .errors import ReleaseError
from .kustomize import ROOT
from .manifests import WHOLE, write_manifests
from .metacontroller import last

NAME = "tapp"
IMAGE = f"tapp-hooks:{VERSION}"
OLDEST = 33
"""The minor version of the oldest Kubernetes that TApp runs on."""
TOOLS = {
    "docker": "https://docs.docker.com/get-docker/",
    "kind": "https://kind.sigs.k8s.io/docs/user/quick-start/#installation",
    "kubectl": "https://kubernetes.io/docs/tasks/tools/",
    "git": "https://git-scm.com/downloads",  # kubectl fetches Metacontroller's manifests with it
}
WORKLOADS = {"metacontroller": "statefulset/metacontroller", "tapp-system": "deployment/tapp-hooks"}
PATIENCE = 120.0
NEXT = """
TApp runs, and an example with three instances. In a shell that knows the cluster and the plugin

  export KUBECONFIG={kubeconfig} PATH={bin}:$PATH

try:

  kubectl tapp status same
  kubectl tapp plan same --image web=nginx:1.29             what a new image would do
  kubectl tapp set image same web=nginx:1.29 --wait         do it, in place
  kubectl tapp kill same 1                                  stop one instance

More examples: examples/README.md. The dashboard, for a Grafana of yours, and alerts:
metacontroller/components/monitoring; docs/operations.md, "Monitoring", says how.
`make kind-down` removes the cluster."""


def main(arguments: list[str] | None = None) -> int:
    """The command; returns its exit code: 0 done, 1 not possible, 130 interrupted."""
    parser = argparse.ArgumentParser(prog="make kind", description="TApp on a kind cluster.")
    parser.add_argument("--down", action="store_true")
    parser.add_argument("--place", type=Path, default=ROOT / "build" / "kind")
    options = parser.parse_args(arguments)
    lacking = missing(("docker", "kind") if options.down else TOOLS)
    for sentence in lacking:
        print(f"error: {sentence}", file=sys.stderr)
    if lacking:
        return 1
    steps = Steps(options.place.resolve())
    try:
        steps.down() if options.down else steps.up()
    except ReleaseError as error:
        print(f"\nerror: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted: the same command continues.", file=sys.stderr)
        return 130
    return 0


def missing(tools: Iterable[str]) -> list[str]:
    """What this machine lacks, a sentence each."""
    lacking = [
        f"{tool} is not on PATH: install it ({TOOLS[tool]})"
        for tool in tools
        if not shutil.which(tool)
    ]
    if shutil.which("docker"):
        done = subprocess.run(["docker", "info"], text=True, capture_output=True, check=False)  # noqa: S607
        if done.returncode != 0:
            why = last(done.stderr)
            lacking.append(f"Docker does not answer: start it, or give your user access ({why})")
    return lacking


class Steps:
    """What is done, in a directory for the kubeconfig and the manifests."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._kubeconfig = place / "kubeconfig"
        self._creating = place / "creating"
        """There while a cluster is created: what an interrupted creation leaves does not work."""

    def up(self) -> None:
        """From image to example; raises ReleaseError with the step that failed."""
        self._place.mkdir(parents=True, exist_ok=True)
        say("Writing the release's manifests, with Metacontroller's from its repository")
        write_manifests(self._place, IMAGE)
        say("Building the image")
        self._run("docker", "build", "--tag", IMAGE, ".")
        created = self._cluster()
        say("Loading the image into the cluster")
        self._run("kind", "load", "docker-image", IMAGE, "--name", NAME)
        say("Installing Metacontroller and the service")
        self._install()
        if not created:
            self._run("kubectl", "rollout", "restart", "-n", "tapp-system", "deployment/tapp-hooks")
        for namespace, workload in WORKLOADS.items():
            self._wait("rollout", "status", "-n", namespace, workload)
        say("Applying an example")
        self._run("kubectl", "apply", "-f", "examples/same-template.yaml")
        self._wait("wait", "tapp/same", "--for=condition=Ready")
        places = {"kubeconfig": self._kubeconfig, "bin": Path(sys.executable).parent}
        print(NEXT.format(**{name: shlex.quote(str(path)) for name, path in places.items()}))

    def down(self) -> None:
        """Deletes the cluster and what belongs to it; the image stays in Docker."""
        self._run("kind", "delete", "cluster", "--name", NAME)
        shutil.rmtree(self._place, ignore_errors=True)

    def _cluster(self) -> bool:
        """Creates the cluster where there is none yet, and tells whether."""
        there = NAME in self._run("kind", "get", "clusters", quiet=True).split()
        if there and self._creating.exists():
            say("Removing a cluster whose creation was interrupted")
            self._run("kind", "delete", "cluster", "--name", NAME)
            there = False
        if there:
            say("Continuing with the cluster that is there")
            self._run("kind", "export", "kubeconfig", "--name", NAME)
        else:
            say("Creating the cluster (kind pulls a large image the first time: minutes)")
            self._creating.touch()
            self._run("kind", "create", "cluster", "--name", NAME, "--wait", "5m")
            self._creating.unlink()
        self._wait("wait", "nodes", "--all", "--for=condition=Ready")
        found = json.loads(self._run("kubectl", "version", "-o", "json", quiet=True))
        minor = int(found["serverVersion"]["minor"].rstrip("+"))
        if minor < OLDEST:
            raise ReleaseError(
                f"TApp needs Kubernetes 1.{OLDEST}, and this cluster has 1.{minor}: install a newer"
                f" kind ({TOOLS['kind']}), then `make kind-down` and `make kind`"
            )
        return not there

    def _install(self) -> None:
        """Applies the manifests until the API server serves Metacontroller's kinds."""
        command = ("kubectl", "apply", "--server-side", "-f", str(self._place / WHOLE))
        print(f"$ until {shlex.join(command)}; do sleep 2; done", flush=True)
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                self._run(*command, quiet=True)
            except ReleaseError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(2)
            else:
                return

    def _wait(self, *arguments: str) -> None:
        """Lets kubectl wait; if in vain, the pods are shown."""
        try:
            self._run("kubectl", *arguments, "--timeout=5m")
        except ReleaseError as error:
            with contextlib.suppress(ReleaseError):  # what failed first is said
                self._run("kubectl", "get", "pods", "--all-namespaces")
            raise ReleaseError(
                f"{error}. `kubectl --kubeconfig {self._kubeconfig} describe pod` says what a pod"
                " waits for. `make kind` continues, `make kind-down` and `make kind` begin anew"
            ) from None

    def _run(self, *command: str, quiet: bool = False) -> str:
        """Runs a command, which is shown; returns its output if `quiet`, else lets it be seen."""
        if not quiet:
            print(f"$ {shlex.join(command)}", flush=True)
        done = subprocess.run(  # noqa: S603 - no shell
            command,
            cwd=ROOT,
            env=os.environ | {"KUBECONFIG": str(self._kubeconfig)},
            text=True,
            capture_output=quiet,
            check=False,
        )
        if done.returncode != 0:
            why = f": {last(done.stderr)}" if quiet else ", see above"
            raise ReleaseError(f"`{shlex.join(command)}` has failed{why}")
        return done.stdout or ""


def say(what: str) -> None:
    """A line above what comes now."""
    print(f"\n==> {what}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
