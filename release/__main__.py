"""`make release VERSION=0.1.0 IMAGE=registry.example.com/tapp-hooks`: writes `dist/`.

The directory then has these files:

- install.yaml and install-with-metacontroller.yaml.
- The JSON Schema of TApps (tapp.schema.json).
- The chart, and the wheel with `kubectl tapp`.
- Archives of the plugin that need no Python (plugin.py), and a manifest for krew.
- An SBOM of the image's requirements, and checksums.

PAGE=https://github.com/OWNER/NAME is the page on which the release is published. Without it, there
is no manifest for krew, and the chart has no links. ARCHIVES=DIRECTORY names the directory with the
plugin's archives of all platforms (`make plugin` on each). Without it, only the archive of the
current platform is built.

The command needs kubectl (or kustomize) and helm on PATH. It needs the network for Metacontroller's
chart and manifests (metacontroller.py) and for PyPI.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shutil
import sys
import tempfile
import venv
from pathlib import Path

import yaml

from hooks.version import VERSION

from . import chart, metacontroller
from .kustomize import PLACEHOLDER, ROOT, Document, ReleaseError, composed, parts
from .plugin import write_plugin

WITH_METACONTROLLER = "install-with-metacontroller.yaml"


def write_manifests(dist: Path, image: str) -> None:
    """Writes install.yaml and install-with-metacontroller.yaml into the directory `dist`.

    The second file contains Metacontroller as well. `image` is the image of the service, with a tag
    or a digest.
    """
    ours = composed((), image)
    write(dist / "install.yaml", ours)
    write(dist / WITH_METACONTROLLER, [*metacontroller.manifests(), *ours])


def write(file: Path, documents: list[Document]) -> None:
    """Writes Kubernetes objects to one YAML file, each object as a YAML document."""
    text = yaml.dump_all(documents, Dumper=yaml.CSafeDumper, sort_keys=False, width=100)
    file.write_text(text, encoding="utf-8")


DIST = ROOT / "dist"
JSON_SCHEMA = ROOT / "crds" / "tapp.schema.json"
REQUIREMENTS = ROOT / "requirements.txt"  # The requirements that the Dockerfile installs
HOME = re.compile(r"https://[\w.-]+(/[\w.-]+)+/?")
IMAGE = re.compile(
    r"[a-z0-9][\w.-]*(:\d+)?(/[a-z0-9][a-z0-9._-]*)*(:[\w.-]+)?(@sha256:[0-9a-f]{64})?"
)


def main(arguments: list[str] | None = None) -> int:
    """Builds a release in a directory, and returns the exit code.

    `arguments` are those of the command line; None reads them from the process. The exit code is 0
    after a success and 1 if a step failed. A wrong usage ends the process with 2.
    """
    parser = argparse.ArgumentParser(prog="make release", description="Writes a release to dist/.")
    parser.add_argument("--version", default="")
    parser.add_argument("--image", default="")
    parser.add_argument("--home", default="", help="the project's page on a forge")
    parser.add_argument(
        "--archives", type=Path, help="directory with the plugin's archives of all platforms"
    )
    parser.add_argument("--dist", type=Path, default=DIST)
    options = parser.parse_args(arguments)
    try:
        image, home = image_with_tag(options.version, options.image), checked_page(options.home)
        helm = path_of("helm")
        shutil.rmtree(options.dist, ignore_errors=True)
        options.dist.mkdir(parents=True)
        write_manifests(options.dist, image)
        shutil.copy(JSON_SCHEMA, options.dist)
        write_chart(options.dist, image, helm, home)
        write_wheel(options.dist)
        write_plugin(options.dist, options.archives, home)
        write_sbom(options.dist)
        write_checksums(options.dist)
    except ReleaseError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for file in sorted(options.dist.iterdir()):
        print(file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file)
    return 0


def image_with_tag(version: str, image: str) -> str:
    """Returns an image with a tag or digest.

    If the image has neither, `version` becomes its tag. Raises ReleaseError if the version or the
    image is missing or invalid.
    """
    if not version or not image:
        raise ReleaseError(
            "VERSION or IMAGE is missing; a release needs both: make release"
            f" VERSION={VERSION} IMAGE=registry.example.com/tapp-hooks"
        )
    if version != VERSION:
        raise ReleaseError(
            f"VERSION={version} differs from {VERSION} in hooks/version.py: change it there, and in"
            " the files that `make test` then names"
        )
    if not IMAGE.fullmatch(image) or image.startswith(PLACEHOLDER):
        raise ReleaseError(
            f"IMAGE={image} is not a valid image name: give its name in your registry, with or"
            " without a tag or a digest"
        )
    return image if {"newTag", "digest"} & parts(image).keys() else f"{image}:{version}"


def path_of(tool: str) -> str:
    """Returns the path of a program; raises ReleaseError if the program is not on PATH."""
    path = shutil.which(tool)
    if path is None:
        raise ReleaseError(
            f"{tool} is not on PATH: install it, or build it with `make e2e-binaries` and put its"
            " directory on PATH"
        )
    return path


def checked_page(home: str) -> str:
    """Returns the URL of the project's page without a trailing slash; empty if `home` is empty.

    Raises ReleaseError if `home` is not the URL of a project.
    """
    if home and not HOME.fullmatch(home):
        raise ReleaseError(
            f"PAGE={home} is not the URL of a project: give it as https://github.com/OWNER/NAME"
        )
    return home.rstrip("/")


def write_chart(dist: Path, image: str, helm: str, home: str) -> None:
    """Writes the packed Helm chart, which contains Metacontroller's chart, if `helm lint` passes.

    Args:
        dist: the directory of the release.
        image: the image of the service, with a tag or a digest.
        helm: the path of the program helm.
        home: the URL of the project's page; empty if the release is not published.
    """
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary) / "tapp"
        chart.copy(directory, VERSION, image, home)
        metacontroller.add_chart(helm, directory)
        for verb, *rest in (("lint", "--strict"), ("package", "--destination", str(dist))):
            done = metacontroller.run(helm, verb, directory, *rest)
            if done.returncode != 0:
                raise ReleaseError(f"helm {verb}: {done.stdout.strip()} {done.stderr.strip()}")


def write_wheel(dist: Path) -> None:
    """Writes the Python wheel with `kubectl tapp` into `dist`."""
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    run_step("the wheel", *pip, "--wheel-dir", dist, ROOT)


def write_sbom(dist: Path) -> None:
    """Writes the SBOM of the image's requirements and their dependencies, in CycloneDX format."""
    with tempfile.TemporaryDirectory() as temporary:
        venv.create(temporary, with_pip=False)
        python = Path(temporary) / "bin" / "python"
        pip = (sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet")
        run_step("the SBOM", *pip, "--disable-pip-version-check", "-r", REQUIREMENTS)
        make = (sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible")
        described = ("--pyproject", ROOT / "pyproject.toml", "-o", dist / "sbom.cdx.json")
        run_step("the SBOM", *make, *described, python)


def run_step(what: str, *command: str | Path) -> None:
    """Runs a command that builds a part of the release.

    Raises ReleaseError, with the last line of the command's error output, if the command fails.
    `what` names the part of the release.
    """
    done = metacontroller.run(*command)
    if done.returncode != 0:
        raise ReleaseError(f"{what} could not be built: {metacontroller.last_line(done.stderr)}")


def write_checksums(dist: Path) -> None:
    """Writes the file SHA256SUMS with the checksums of all files in the directory `dist`.

    Users check the files with `sha256sum --check`.
    """
    lines = [
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n"
        for file in sorted(dist.iterdir())
    ]
    (dist / "SHA256SUMS").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    raise SystemExit(main())
