"""Builds the image of the Dockerfile without Docker.

buildah needs no daemon and, with chroot isolation, only root. If no registry provides the base
image, debootstrap creates an image of that name with Debian's python3, once for each machine. The
build borrows this machine's settings of pip, which are not part of the image.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from .binaries import build
from .cluster import REPOSITORY
from .process import ProcessError

TOOLS = ("buildah", "debootstrap")
PACKAGES = "python3,python3-venv,python-is-python3,ca-certificates"
# The files are in memory because there are thousands of them, and they disappear with the process.
MAKE_BASE = """
mount -t tmpfs -o mode=755 tmpfs "$1"
debootstrap --variant=minbase --include="$2" "$3" "$1" >&2
tar -C "$1" --one-file-system --exclude="./var/log/*" --exclude="./var/*/apt/*" -cf "$4" .
"""
BASE = 'FROM scratch\nADD base.tar /\nCMD ["python3"]\n'
PIP_SETTINGS = ("index-url", "extra-index-url", "trusted-host", "proxy")


def missing() -> str | None:
    """Returns a line that says why the image cannot be built here, or None if it can."""
    lacking = [tool for tool in TOOLS if shutil.which(tool) is None]
    return f"no image: needs the packages {' and '.join(lacking)}" if lacking else None


def base_image() -> str:
    """Returns the name of the Dockerfile's base image."""
    found = re.search(r"^FROM (\S+)", (REPOSITORY / "Dockerfile").read_text(), re.MULTILINE)
    assert found is not None
    return found.group(1)


class Builder:
    """buildah with its storage in a directory; a context manager that deletes the directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._built = 0
        directory.mkdir()
        self.based_on = ""
        """The origin of the base image."""

    def __enter__(self) -> Builder:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._directory, ignore_errors=True)

    def build(self, name: str, place: Path = REPOSITORY) -> Path:
        """Builds a Dockerfile under this name and returns an archive that containerd can import."""
        if not self.based_on:
            self._provide_base()
        self._buildah("build", "--pull-never", *self._pip(), "--tag", name, place)
        self._built += 1
        archive = self._directory / f"image-{self._built}.tar"
        self._buildah("push", name, f"docker-archive:{archive}:{name}")
        return archive

    def _provide_base(self) -> None:
        name = f"docker.io/library/{base_image()}"
        try:
            self._buildah("pull", name, timeout=120)
            self.based_on = base_image()
        except (ProcessError, subprocess.TimeoutExpired):
            suite = name.rpartition("-")[2]
            self.based_on = f"Debian {suite}'s python3"
            self._buildah("build", "--tag", name, self._debian(suite))

    def _debian(self, suite: str) -> Path:
        """Returns a directory with a Dockerfile for Debian with python3, from the cache or new."""
        kept = build.bin_dir().parents[1] / f"python3-{suite}"
        if not kept.exists():
            mount, fresh = self._directory / "mount", self._directory / "base"
            mount.mkdir()
            fresh.mkdir()
            arguments = [mount, PACKAGES, suite, fresh / "base.tar"]
            call("unshare", "--mount", "sh", "-euc", MAKE_BASE, "sh", *arguments)
            (fresh / "Dockerfile").write_text(BASE)
            whole = kept.with_suffix(f".{os.getpid()}")
            shutil.move(fresh, whole)
            whole.rename(kept)  # renamed in one step, so that the cache has no incomplete image
        return kept

    def _pip(self) -> list[str]:
        """Returns mounts that give the build this machine's settings of pip."""
        listed = call(sys.executable, "-m", "pip", "config", "list").splitlines()
        pairs = [line.partition("=")[::2] for line in listed]
        found = {key.rpartition(".")[2]: ast.literal_eval(value) for key, value in pairs}
        lines = ["[global]", *(f"{key} = {found[key]}" for key in PIP_SETTINGS if key in found)]
        volumes = []
        certificates = found.get("cert") or os.environ.get("SSL_CERT_FILE")
        if certificates:
            lines.append("cert = /etc/pip-certificates.pem")
            volumes += ["--volume", f"{certificates}:/etc/pip-certificates.pem:ro"]
        (self._directory / "pip.conf").write_text("\n".join(lines) + "\n")
        return [*volumes, "--volume", f"{self._directory / 'pip.conf'}:/etc/pip.conf:ro"]

    def _buildah(self, verb: str, *arguments: str | Path, timeout: float = 600) -> None:
        places = ["--root", self._directory / "root", "--runroot", self._directory / "run"]
        isolation = ["--isolation", "chroot"] if verb == "build" else []
        storage = ["--storage-driver", "vfs"]
        call("buildah", *places, *storage, verb, *isolation, *arguments, timeout=timeout)


def call(*command: str | Path, timeout: float = 900) -> str:
    """Runs a command and returns its output.

    Raises ProcessError with the end of the error output.
    """
    done = subprocess.run(
        command, text=True, capture_output=True, timeout=timeout, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if done.returncode != 0:
        raise ProcessError(f"{command[0]}: code {done.returncode}\n{done.stderr[-2000:]}")
    return done.stdout
