#!/usr/bin/env python3
"""Builds etcd, the Kubernetes control plane and kubectl from their published Go modules.

Only `go build` on the modules that go.mod and go.sum pin; nothing is downloaded but Go modules,
and nothing is written into the repository. A stamp beside the binaries says what they were built
from, so a run that has nothing to do ends at once.

Exit codes: 0 built (or already there), 3 no usable Go toolchain, else go's own failure.
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
from pathlib import Path

MODULE = Path(__file__).resolve().parent
KUBERNETES = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
ETCD = "go.etcd.io/etcd/server/v3"
NAMES = ("etcd", *KUBERNETES)
NO_TOOLCHAIN = 3


def say(line: object) -> None:
    """Prints one line at once, also when the output is a pipe."""
    print(line, flush=True)  # noqa: T201


def kubernetes_version() -> str:
    """The pinned version, for example `v1.36.3`."""
    found = re.search(
        r"^require k8s\.io/kubernetes (\S+)", (MODULE / "go.mod").read_text(), re.MULTILINE
    )
    if found is None:
        raise SystemExit("go.mod does not require k8s.io/kubernetes")
    return found.group(1)


def bin_dir() -> Path:
    """Where the binaries are, or would be: a cache outside the repository."""
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "tapp-e2e" / kubernetes_version() / "bin"


def go_environment() -> dict[str, str]:
    """Go's settings: no toolchain download, no cgo, and go.mod stays as committed."""
    return os.environ | {
        "GOTOOLCHAIN": "local",
        "CGO_ENABLED": "0",
        "GOFLAGS": "-mod=readonly -buildvcs=false -trimpath",
        "GOWORK": "off",
    }


def version_flags() -> str:
    """Linker flags that make `/version` and `kubectl version` tell the true version.

    Without them the server says `v0.0.0-master+$Format:%H$`, which clients fail to parse; the
    second package is where user agents, and so the audit log, get it from.
    """
    version = kubernetes_version()
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


def go_toolchain() -> tuple[str, str] | str:
    """The go command and its version, or one line saying why there is none to use."""
    go = shutil.which("go")
    if go is None:
        return "no Go toolchain on PATH"
    found = subprocess.run(
        [go, "env", "GOVERSION"], env=go_environment(), cwd=MODULE, text=True, capture_output=True,
        check=False,
    )  # fmt: skip
    if found.returncode != 0:
        return f"{go} is not usable: {found.stderr.strip().splitlines()[-1]}"
    return go, found.stdout.strip()


def stamp(go_version: str) -> str:
    """What the binaries are made of: equal stamps, equal binaries."""
    digest = hashlib.sha256(version_flags().encode())
    for name in ("go.mod", "go.sum"):
        digest.update((MODULE / name).read_bytes())
    return f"{go_version} {platform.machine()} {digest.hexdigest()}\n"


def compile_into(target: Path, go: str) -> None:
    """Builds every binary; raises CalledProcessError with go's message already printed."""
    packages = [f"k8s.io/kubernetes/cmd/{name}" for name in KUBERNETES]
    calls = (
        [go, "build", "-ldflags", version_flags(), "-o", f"{target}/", *packages],
        [go, "build", "-ldflags", "-s -w", "-o", str(target / "etcd"), ETCD],
    )
    for call in calls:
        subprocess.run(call, cwd=MODULE, env=go_environment(), check=True)


def main() -> int:
    """Builds what is missing and says in one line what it did."""
    target = bin_dir()
    if sys.argv[1:] == ["--print-dir"]:
        say(target)
        return 0
    toolchain = go_toolchain()
    if isinstance(toolchain, str):
        say(f"e2e-binaries: {toolchain}; nothing built")
        return NO_TOOLCHAIN
    go, go_version = toolchain
    target.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    with (target.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        mark, wanted = target.parent / "stamp", stamp(go_version)
        done = mark.exists() and mark.read_text() == wanted
        if done and all((target / name).exists() for name in NAMES):
            say(f"e2e-binaries: Kubernetes {kubernetes_version()} is in {target}")
            return 0
        mark.unlink(missing_ok=True)
        say(f"e2e-binaries: building with {go_version} (minutes when nothing is cached)")
        try:
            compile_into(target, go)
        except subprocess.CalledProcessError as failed:
            return failed.returncode
        mark.write_text(wanted)
    seconds = time.monotonic() - started
    say(f"e2e-binaries: Kubernetes {kubernetes_version()} built into {target} in {seconds:.0f} s")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
