"""The image as it is shipped: the Dockerfile's, built without Docker.

buildah needs no daemon and, with chroot isolation, no more than root. Where no registry gives the
base image, one of the same name is made of Debian's python3 by debootstrap, once for a machine. How
pip finds packages is this machine's affair: its settings are lent to the build and are in no image.
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
# In memory, as thousands of small files are; and gone whenever this ends.
MAKE_BASE = """
mount -t tmpfs -o mode=755 tmpfs "$1"
debootstrap --variant=minbase --include="$2" "$3" "$1" >&2
tar -C "$1" --one-file-system --exclude="./var/log/*" --exclude="./var/*/apt/*" -cf "$4" .
"""
BASE = 'FROM scratch\nADD base.tar /\nCMD ["python3"]\n'
PIP_SETTINGS = ("index-url", "extra-index-url", "trusted-host", "proxy")


def missing() -> str | None:
    """One line saying why the image cannot be built here, or None where it can."""
    lacking = [tool for tool in TOOLS if shutil.which(tool) is None]
    return f"no image: needs the packages {' and '.join(lacking)}" if lacking else None


def base_image() -> str:
    """The image that the Dockerfile builds on."""
    found = re.search(r"^FROM (\S+)", (REPOSITORY / "Dockerfile").read_text(), re.MULTILINE)
    assert found is not None
    return found.group(1)


class Builder:
    """buildah with a storage of its own in a directory, which is removed when it is done."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._built = 0
        directory.mkdir()
        self.based_on = ""
        """Where the base image came from."""

    def __enter__(self) -> Builder:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._directory, ignore_errors=True)

    def build(self, name: str, place: Path = REPOSITORY) -> Path:
        """Builds a Dockerfile under this name; returns an archive that containerd reads."""
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
        """A directory that builds a Debian with python3: from the cache, or made now."""
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
            whole.rename(kept)  # in one step: what is in the cache is whole
        return kept

    def _pip(self) -> list[str]:
        """Mounts that lend the build this machine's settings of pip."""
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
    """Runs a command to its end and returns what it prints; raises with its last words."""
    done = subprocess.run(
        command, text=True, capture_output=True, timeout=timeout, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if done.returncode != 0:
        raise ProcessError(f"{command[0]}: code {done.returncode}\n{done.stderr[-2000:]}")
    return done.stdout
