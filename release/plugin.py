"""Builds archives of the plugin that need no Python, and the manifest that krew installs.

`python -m release.plugin` builds the archive for the current platform, because PyInstaller cannot
build for other platforms. The module `release` takes the archives of all platforms from a
directory, and writes one manifest for all of them.
"""

import argparse
import hashlib
import os
import platform
import re
import shutil
import stat
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

import yaml
from packaging.requirements import Requirement

from hooks.version import VERSION

from . import metacontroller
from .kustomize import ROOT, Document, ReleaseError
from .man import PAGE

NAME = "kubectl-tapp"
COMPLETION = "kubectl_complete-tapp"
ARCHIVE = re.compile(
    rf"{NAME}-{re.escape(VERSION)}-(?P<os>linux|darwin)-(?P<arch>amd64|arm64)\.tar\.gz"
)
_SYSTEMS = {"linux": "linux", "darwin": "darwin"}
_MACHINES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
_ENTRY = """\
import os
from kubectl_tapp.entry import complete, main
complete() if os.environ.get("KUBECTL_TAPP_COMPLETES") else main()
"""
_COMPLETION_SCRIPT = f"""\
#!/bin/sh
# What kubectl calls to complete the words behind `kubectl tapp`: {NAME} itself, by another name.
KUBECTL_TAPP_COMPLETES=1 exec {NAME} "$@"
"""
_HIDDEN = ("kubectl_tapp.main", "kubectl_tapp.complete_command")
"""Modules that the entry script imports by name, so that PyInstaller does not find them."""
_UNUSED = (
    *("mypy", "hypothesis", "IPython", "pytest", "tkinter", "pip", "setuptools"),
    *("attr", "attrs", "chardet", "dotenv", "tomli_w"),
)
"""Modules that dependencies import if they are installed, and that the plugin does not need."""


def build(directory: Path) -> Path:
    """Builds the archive of the plugin for the current platform, and returns its path.

    The archive contains a directory, because a single frozen file would unpack itself at each call.
    Raises ReleaseError if the plugin cannot be built here or does not start. `directory` is the
    directory for the archive.
    """
    system, machine = _SYSTEMS.get(sys.platform), _MACHINES.get(platform.machine().lower())
    if not system or not machine:
        raise ReleaseError(f"the plugin cannot be built for {sys.platform} on {platform.machine()}")
    made = directory / f"{NAME}-{VERSION}-{system}-{machine}.tar.gz"
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        entry = place / "entry.py"
        entry.write_text(_ENTRY, encoding="utf-8")
        freeze = [sys.executable, "-m", "PyInstaller", "--noconfirm", "--log-level", "ERROR"]
        options = [
            *("--onedir", "--name", NAME, "--paths", str(ROOT)),
            *("--distpath", str(place / "dist"), "--workpath", str(place / "work")),
            *("--specpath", str(place)),
            *[part for each in _HIDDEN for part in ("--hidden-import", each)],
            *[part for each in _UNUSED for part in ("--exclude-module", each)],
        ]
        data = [
            f"--add-data={ROOT / own}{os.pathsep}{Path(theirs).parent}"
            for own, theirs in (*files_of_plugin(), *_files_of_web_page())
        ]
        done = metacontroller.run(*freeze, *options, *data, entry)
        whole = place / "dist" / NAME
        if done.returncode != 0 or not whole.is_dir():
            raise ReleaseError(
                f"PyInstaller could not build the plugin: {metacontroller.last_line(done.stderr)}"
            )
        _add_files(whole)
        said = metacontroller.run(whole / NAME, "--version")
        if said.stdout.strip() != VERSION:
            raise ReleaseError(
                f"the frozen plugin does not start: {metacontroller.last_line(said.stderr)}"
            )
        pack(whole, made)
    return made


def files_of_plugin() -> list[tuple[str, str]]:
    """Returns (path in the repository, path in the plugin) of each file that the plugin reads."""
    included = _project()["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    return sorted(included.items())


def _files_of_web_page() -> list[tuple[str, str]]:
    files = (ROOT / "kubectl_tapp" / "web" / "static").iterdir()
    return [(str(file.relative_to(ROOT)),) * 2 for file in sorted(files)]


def _project() -> Document:
    found: Document = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return found


def _add_files(whole: Path) -> None:
    """Adds the completion script, the manual page and the licenses of packages to a directory."""
    script = whole / COMPLETION
    script.write_text(_COMPLETION_SCRIPT, encoding="utf-8")
    script.chmod(0o755)
    shutil.copy(ROOT / "LICENSE", whole)
    (whole / "man").mkdir()
    shutil.copy(PAGE, whole / "man")
    for found in bundled():
        for text in license_files(found):
            _add_file(text, whole / "licenses" / found.metadata["Name"])
    _add_file(Path(os.__file__).parent / "LICENSE.txt", whole / "licenses" / "Python")


def _add_file(file: Path, place: Path) -> None:
    if file.exists():
        place.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, place)


def license_files(found: Distribution) -> Iterator[Path]:
    """Yields the paths of the license files of a Python package."""
    for file in found.files or ():
        if re.match(r"(LICEN[CS]E|COPYING|NOTICE)", file.name):
            yield Path(str(file.locate()))


def bundled() -> list[Distribution]:
    """Returns the Python packages in the plugin: its dependencies, and their dependencies."""
    project, found = _project()["project"], dict[str, Distribution]()
    names = [*project["dependencies"], *project["optional-dependencies"]["web"]]
    while names:
        need = Requirement(names.pop())
        if need.name.lower() in found or (need.marker and not need.marker.evaluate({"extra": ""})):
            continue
        found[need.name.lower()] = distribution(need.name)
        names += found[need.name.lower()].requires or []
    return [found[name] for name in sorted(found)]


def pack(whole: Path, archive: Path) -> None:
    """Packs the files of the directory `whole` into a .tar.gz archive, without owners and times.

    A link is packed as the file that it points to, because krew does not unpack links.
    """
    with tarfile.open(archive, "w:gz", dereference=True) as packed:
        for file in sorted(each for each in whole.rglob("*") if each.is_file()):
            packed.add(file, f"{NAME}/{file.relative_to(whole)}", filter=_normalized)


def _normalized(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    executable = entry.mode & stat.S_IXUSR
    entry.mode = 0o755 if executable else 0o644
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    entry.type = tarfile.REGTYPE
    return entry


def collect(archives: Path | None, dist: Path) -> list[Path]:
    """Writes the plugin's archives into the directory `dist`, and returns their paths.

    `archives` is a directory with the archives of all platforms, which are copied. If it is None,
    one archive is built for the current platform. Raises ReleaseError if `archives` has no archive,
    or an archive of another version.
    """
    if archives is None:
        return [build(dist)]
    found = sorted(archives.glob(f"**/{NAME}-*.tar.gz"))
    wrong = [each.name for each in found if not ARCHIVE.fullmatch(each.name)]
    if wrong or not found:
        what = f"{wrong[0]} is not of version {VERSION}" if wrong else "no archive found"
        raise ReleaseError(f"the plugin's archives in {archives}: {what}; `make plugin` makes one")
    return [Path(shutil.copy(each, dist)) for each in found]


def manifest(archives: list[Path], home: str) -> Document:
    """Returns the manifest with which krew installs the plugin from the given archives.

    `home` is the URL of the project's page, below which the archives are published.
    """
    return {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": "tapp"},
        "spec": {
            "version": f"v{VERSION}",
            "homepage": home,
            "shortDescription": "See, explain, preview and change TApps",
            "description": _DESCRIPTION,
            "caveats": _CAVEATS,
            "platforms": list(_platforms(archives, home)),
        },
    }


_DESCRIPTION = """\
TApp runs numbered instances with templates of their own. This plugin shows what
each instance does and why, from the same code that decides in the service;
previews what an edit would do, to whom and for how long; and does it: kill,
start, scale, roll back, restart, canaries. It talks to the cluster through your
own kubectl.
"""
_CAVEATS = f"""\
The cluster needs TApp itself: see the home page.

kubectl completes the words behind `kubectl tapp` where it finds
{COMPLETION} on PATH. krew does not put it there:

  ln -s "$(dirname "$(readlink -f "$(command -v {NAME})")")/{COMPLETION}" \\
    "${{KREW_ROOT:-$HOME/.krew}}/bin/"
"""


def _platforms(archives: list[Path], home: str) -> Iterator[Document]:
    for archive in archives:
        match = ARCHIVE.fullmatch(archive.name)
        if match is not None:
            yield {
                "selector": {"matchLabels": match.groupdict()},
                "uri": f"{home}/releases/download/v{VERSION}/{archive.name}",
                "sha256": hashlib.sha256(archive.read_bytes()).hexdigest(),
                "files": [{"from": f"{NAME}/*", "to": "."}],
                "bin": NAME,
            }


def write_plugin(dist: Path, archives: Path | None, home: str) -> None:
    """Writes the plugin's archives, and the manifest `tapp.yaml` for krew.

    The manifest is written only if the URL of the project's page is known.

    Args:
        dist: the directory of the release.
        archives: a directory with the archives of all platforms; None builds one archive for the
            current platform.
        home: the URL of the project's page; empty if the release is not published.
    """
    found = collect(archives, dist)
    if home:
        text = yaml.dump(manifest(found, home), Dumper=_Dumper, sort_keys=False, width=100)
        (dist / "tapp.yaml").write_text(text, encoding="utf-8")


class _Dumper(yaml.SafeDumper):
    """Writes YAML in which texts of several lines are block scalars (`|`)."""


_Dumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style="|" if "\n" in text else None
    ),
)


def main(arguments: list[str] | None = None) -> int:
    """Runs `make plugin`: builds the archive for the current platform, and returns the exit code.

    `arguments` are those of the command line; None reads them from the process.
    """
    parser = argparse.ArgumentParser(prog="make plugin", description="Writes the plugin's archive.")
    parser.add_argument("--dist", type=Path, default=ROOT / "dist")
    dist = parser.parse_args(arguments).dist
    dist.mkdir(parents=True, exist_ok=True)
    try:
        print(build(dist))
    except ReleaseError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
