"""The whole check: which test notices each patch (`--only WORD`, `--start N`)."""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.mutation.table import MUTATIONS, Mutation

ROOT = Path(__file__).parents[2]
LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv", ".hypothesis", "__pycache__", ".*_cache", "e2e", "mutation"
)
SLOW = ("properties", "lookalike", "wire_cost", "migration")
TESTS = (
    ("tests/unit", *(f"--ignore=tests/unit/test_{name}.py" for name in SLOW)),
    ("tests/unit/test_properties.py", "tests/unit/test_lookalike.py"),
    ("tests/model/test_guarantee.py", "tests/contract/test_upgrade.py"),
    ("tests/model",),
    ("tests/scenarios", "--ignore=tests/scenarios/test_demo.py"),
    ("tests/contract/test_http.py", "tests/contract/test_http_errors.py"),
)
"""What is run on each patch, the quickest first; the first failure is enough."""
OPTIONS = ("-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly")


def caught_by(tree: Path, mutation: Mutation) -> str:
    """The first test that fails with the patch, "" if none does."""
    path = tree / mutation.file
    text = path.read_text()
    if text.count(mutation.old) != 1:
        raise SystemExit(f"{mutation.file}: found {text.count(mutation.old)} times: {mutation.old}")
    path.write_text(text.replace(mutation.old, mutation.new))
    try:
        for tests in TESTS:
            found = _first_failure(tree, tests)
            if found:
                return found
        return ""
    finally:
        path.write_text(text)


def _first_failure(tree: Path, tests: tuple[str, ...]) -> str:
    command = [sys.executable, "-m", "pytest", *OPTIONS, *tests]
    done = subprocess.run(
        command, cwd=tree, capture_output=True, text=True, check=False, timeout=900
    )
    if done.returncode == 0:
        return ""
    found = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return found[1] if found else f"{tests[0]}: {done.stdout[-300:]}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--only", default="", help="only patches whose text holds this word")
    parser.add_argument("--start", type=int, default=1, help="number of the first patch")
    options = parser.parse_args()
    chosen = [item for item in MUTATIONS if options.only in " ".join(item)][options.start - 1 :]
    surprises = 0
    with tempfile.TemporaryDirectory() as directory:
        tree = Path(directory) / "tree"
        shutil.copytree(ROOT, tree, ignore=LEFT_OUT)
        (tree / "tests" / "mutation").mkdir()
        for tests in TESTS:
            found = _first_failure(tree, tests)
            if found:
                raise SystemExit(f"fails without any patch: {found}")
        for number, mutation in enumerate(chosen, options.start):
            started = time.monotonic()
            found = caught_by(tree, mutation)
            surprises += bool(found) == bool(mutation.survives)
            verdict = found or f"SURVIVES {mutation.survives}"
            say(f"{number:3} {mutation.file}: {mutation.breaks}")
            say(f"      {verdict} ({time.monotonic() - started:.0f} s)")
    say(f"{len(chosen)} patches, {surprises} not as the table says")
    return 1 if surprises else 0


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
