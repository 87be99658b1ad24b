"""Prints the tests to run first after a change: `python -m tests.changed`.

A file has changed if it differs from the commit where the branch left `main` (or the commit in
BASE), or is not committed. A changed test is printed itself. For a changed file of the product the
tests of its room are printed: the longest of `ROOMS` that its path begins with. Only `make test`
runs all tests.
"""

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
UNIT = ("answer", "decide", "declared", "pod", "storage")
DECISIONS = tuple(f"tests/unit/{room}" for room in UNIT)
ROOMS: dict[str, tuple[str, ...]] = {
    "tapp/": DECISIONS,
    **{f"tapp/{room}/": (f"tests/unit/{room}",) for room in UNIT},
    "tapp/declared/": ("tests/unit/declared", "tests/contract/test_crd.py"),
    "hooks/": ("tests/contract/test_http.py", "tests/unit/hooks/test_declared.py"),
    "hooks/service/": ("tests/contract/test_http.py", "tests/unit/hooks/test_events_writing.py"),
    "hooks/wire/": ("tests/unit/hooks/test_declared.py", "tests/unit/pod/test_invalid_pods.py"),
    "kubectl_tapp/": (
        "tests/plugin/test_verbs.py",
        "tests/plugin/test_refusals.py",
        "tests/plugin/test_status_output.py",
    ),
    "kubectl_tapp/forecast/": ("tests/plugin/test_forecast.py",),
    "kubectl_tapp/web/": ("tests/web/test_attacks.py", "tests/web/test_changes.py"),
    "kubectl_tapp/live/": ("tests/web/test_page.py",),
    "kubectl_tapp/show/": ("tests/plugin/test_status_output.py", "tests/plugin/test_page.py"),
    "simulator/": ("tests/simulator",),
    "crds/": ("tests/contract/test_crd.py",),
    "metacontroller/": ("tests/contract/test_manifests.py",),
    "release/": ("tests/contract/test_release.py", "tests/contract/test_chart.py"),
    "release/kind.sh": ("tests/contract/test_kind.py",),
    "migration/": ("tests/migration",),
    "demo/": ("tests/scenarios/test_demo.py",),
    "examples/": ("tests/scenarios/test_golden.py",),
    "docs/": ("tests/contract/test_docs.py",),
    "README.md": ("tests/contract/test_docs.py",),
    "CONTRIBUTING.md": ("tests/contract/test_docs.py",),
    ".github/": ("tests/contract/test_workflows.py",),
    "Makefile": ("tests/contract/test_make.py",),
}
"""Beginning of a changed path -> the tests to run for it; the longest beginning that fits
counts.
"""


def chosen_for(changed: Iterable[str]) -> list[str]:
    """Returns the paths of the tests to run for the given changed paths, sorted, each once.

    A test inside a directory that is chosen, too, is left out, and so is a deleted test.
    """
    found: set[str] = set()
    for path in changed:
        if path.startswith("tests/"):
            name = Path(path).name
            if name.startswith("test_") and name.endswith(".py") and "/e2e/" not in path:
                found.add(path)
        elif rooms := [room for room in ROOMS if path.startswith(room)]:
            found.update(ROOMS[max(rooms, key=len)])
    return sorted(
        path
        for path in found
        if (ROOT / path).exists() and not any(str(each) in found for each in Path(path).parents)
    )


def changed_files(base: str) -> list[str]:
    """Returns the files that differ from the commit where this branch left `base`, and uncommitted
    files.
    """
    since = _git("merge-base", base, "HEAD")[0]
    return [
        *_git("diff", "--name-only", "--relative", since),
        *_git("ls-files", "--others", "--exclude-standard"),
    ]


def _git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


if __name__ == "__main__":
    sys.stdout.write("\n".join(chosen_for(changed_files(os.environ.get("BASE") or "main"))))
