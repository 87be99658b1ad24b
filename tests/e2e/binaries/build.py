#!/usr/bin/env python3
"""Builds etcd, Kubernetes, kubectl, helm and containerd from their published Go modules.

With `E2E_KUBE_STATE_METRICS=1` it also builds kube-state-metrics, whose packages have other
versions than those of the other programs. The additional build takes two minutes on one core.

The program runs `go build` on the modules that each go.mod and go.sum pin. The program downloads Go
modules only, and writes nothing into the repository. A stamp beside the binaries names their
sources, so a run without changes ends at once. `E2E_KUBERNETES=1.34` chooses the module in
`kubernetes-1.34`.

Exit codes: 0 if all is built, 3 if there is no usable Go toolchain, otherwise the code of go.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
NEWEST = "1.37"
CONTROL_PLANE = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
ETCD = "go.etcd.io/etcd/server/v3"
CONTAINERD = "github.com/containerd/containerd/v2"
HELM = "helm.sh/helm/v4"
STATES = "k8s.io/kube-state-metrics/v2"
CONTAINERD_NAMES = ("containerd", "containerd-shim-runc-v2", "ctr")
NO_TOOLCHAIN = 3


@dataclass(frozen=True)
class Part:
    """Programs that are built from one pinned Go module, and the arguments that build them."""

    title: str
    version: str
    module: Path
    names: tuple[str, ...]
    calls: tuple[tuple[str, ...], ...]
    """Arguments of `go build`, each without `-o`."""

    @property
    def bin_dir(self) -> Path:
        """The directory of the binaries: a cache outside the repository, which may not
        exist yet.
        """
        cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        prefix = "" if self.title == "Kubernetes" else f"{self.title}-"
        return Path(cache) / "tapp-e2e" / f"{prefix}{self.version}" / "bin"

    def stamp(self, go_version: str) -> str:
        """Returns a text about the sources of the binaries: equal stamps mean equal binaries."""
        digest = hashlib.sha256(repr(self.calls).encode())
        for name in ("go.mod", "go.sum"):
            digest.update((self.module / name).read_bytes())
        return f"{go_version} {platform.machine()} {digest.hexdigest()}\n"


def say(line: object) -> None:
    """Prints a line without buffering, even to a pipe."""
    print(line, flush=True)  # noqa: T201


def required(module: Path, path: str) -> str:
    """Returns the version of `path` in the module's go.mod, such as `v1.36.3`."""
    text = (module / "go.mod").read_text()
    found = re.search(rf"^require {re.escape(path)} (\S+)", text, re.MULTILINE)
    if found is None:
        raise SystemExit(f"{module / 'go.mod'} does not require {path}")
    return found.group(1)


def kubernetes_module(wanted: str = "") -> Path:
    """Returns the directory of a Kubernetes version; by default of the version in the
    environment.
    """
    wanted = wanted or os.environ.get("E2E_KUBERNETES") or NEWEST
    module = HERE if wanted == NEWEST else HERE / f"kubernetes-{wanted}"
    if not (module / "go.mod").exists():
        others = [each.parent.name.partition("-")[2] for each in HERE.glob("kubernetes-*/go.mod")]
        known = ", ".join(sorted([NEWEST, *others]))
        raise SystemExit(f"E2E_KUBERNETES={wanted} is not one of {known}")
    return module


def kubernetes_version(wanted: str = "") -> str:
    """Returns the pinned version, such as `v1.37.2`."""
    return required(kubernetes_module(wanted), "k8s.io/kubernetes")


def bin_dir() -> Path:
    """Returns the directory of etcd and Kubernetes, which may not exist yet."""
    return kubernetes().bin_dir


def kubernetes(wanted: str = "") -> Part:
    """Returns Kubernetes with its etcd. The kubelet is built on Linux only."""
    names = (*CONTROL_PLANE, "kubelet") if sys.platform == "linux" else CONTROL_PLANE
    packages = tuple(f"k8s.io/kubernetes/cmd/{name}" for name in names)
    version = kubernetes_version(wanted)
    calls = (("-ldflags", version_flags(version), *packages), ("-ldflags", "-s -w", ETCD))
    return Part("Kubernetes", version, kubernetes_module(wanted), ("etcd", *names), calls)


def containerd() -> Part:
    """Returns the container runtime of the real node."""
    module = HERE / "containerd"
    version = required(module, CONTAINERD)
    flags = f"-s -w -X {CONTAINERD}/version.Version={version.removeprefix('v')}"
    packages = tuple(f"{CONTAINERD}/cmd/{name}" for name in CONTAINERD_NAMES)
    # Without the snapshotters that need C libraries or other file systems than overlay.
    tags = "no_btrfs no_devmapper no_zfs no_aufs"
    calls = (("-tags", tags, "-ldflags", flags, *packages),)
    return Part("containerd", version, module, CONTAINERD_NAMES, calls)


def helm() -> Part:
    """Returns helm, which installs the chart of a release."""
    module = HERE / "helm"
    version = required(module, HELM)
    flags = f"-s -w -X {HELM}/internal/version.version={version}"
    calls = (("-ldflags", flags, f"{HELM}/cmd/helm"),)
    return Part("helm", version, module, ("helm",), calls)


def kube_state_metrics() -> Part:
    """Returns kube-state-metrics, which exposes metrics of TApps."""
    module = HERE / "kube-state-metrics"
    calls = (("-ldflags", "-s -w", STATES),)
    version = required(module, STATES)
    return Part("kube-state-metrics", version, module, ("kube-state-metrics",), calls)


def parts() -> list[Part]:
    """Returns all parts for this machine."""
    everywhere = [kubernetes(), helm()]
    if os.environ.get("E2E_KUBE_STATE_METRICS") == "1":
        everywhere.append(kube_state_metrics())
    return [*everywhere, containerd()] if sys.platform == "linux" else everywhere


def go_environment() -> dict[str, str]:
    """Returns Go's settings: no toolchain download, no cgo, and an unchanged go.mod."""
    return os.environ | {
        "GOTOOLCHAIN": "local",
        "CGO_ENABLED": "0",
        "GOFLAGS": "-mod=readonly -buildvcs=false -trimpath",
        "GOWORK": "off",
    }


def version_flags(version: str) -> str:
    """Returns linker flags that set the version in `/version` and `kubectl version`.

    Without them the server reports `v0.0.0-master+$Format:%H$`, which clients fail to parse. The
    second package is the source of user agents, and so of the audit log.
    """
    major, minor, _ = version.removeprefix("v").split(".")
    values = {
        "gitVersion": version,
        "gitMajor": major,
        "gitMinor": minor,
        "gitTreeState": "clean",
        "gitCommit": "0" * 40,
    }
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    flags = [f"-X {each}.{name}={value}" for each in packages for name, value in values.items()]
    return " ".join(["-s -w", *flags])


def go_toolchain(module: Path) -> tuple[str, str] | str:
    """Returns the go command and its version, or a line that says why there is no usable one."""
    go = shutil.which("go")
    if go is None:
        return "no Go toolchain on PATH"
    found = subprocess.run(
        [go, "env", "GOVERSION"], env=go_environment(), cwd=module, text=True, capture_output=True,
        check=False,
    )  # fmt: skip
    if found.returncode != 0:
        return f"{go} is not usable: {found.stderr.strip().splitlines()[-1]}"
    return go, found.stdout.strip()


def compile_into(target: Path, go: str, part: Part) -> None:
    """Builds all binaries. Raises CalledProcessError after go has printed its message."""
    for call in part.calls:
        # etcd's package is called `server`, so its binary needs a name.
        output = str(target / "etcd") if ETCD in call else f"{target}/"
        command = [go, "build", "-o", output, *call]
        subprocess.run(command, cwd=part.module, env=go_environment(), check=True)


def build(part: Part) -> int:
    """Builds a part unless it exists, and prints the result in one line."""
    toolchain = go_toolchain(part.module)
    if isinstance(toolchain, str):
        say(f"e2e-binaries: {toolchain}; nothing built")
        return NO_TOOLCHAIN
    go, go_version = toolchain
    target = part.bin_dir
    target.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    with (target.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        mark, wanted = target.parent / "stamp", part.stamp(go_version)
        done = mark.exists() and mark.read_text() == wanted
        if done and all((target / name).exists() for name in part.names):
            say(f"e2e-binaries: {part.title} {part.version} is in {target}")
            return 0
        mark.unlink(missing_ok=True)
        say(f"e2e-binaries: building {part.title} with {go_version} (minutes without a cache)")
        try:
            compile_into(target, go, part)
        except subprocess.CalledProcessError as failed:
            return failed.returncode
        mark.write_text(wanted)
    seconds = time.monotonic() - started
    say(f"e2e-binaries: {part.title} {part.version} built into {target} in {seconds:.0f} s")
    return 0


def main() -> int:
    """Builds all missing parts. Stops at the first failure and returns its exit code."""
    if sys.argv[1:] == ["--print-dir"]:
        say(bin_dir())
        return 0
    for part in parts():
        code = build(part)
        if code != 0:
            return code
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
