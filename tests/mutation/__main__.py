"""Breaks a sample of the code, one change at a time, and lists what no test notices.

For example `python -m tests.mutation tapp/plan.py --only _held --sample 0`. The exit code is 1 if a
change survives. The changes are those of `operators.py`.
"""

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.mutation.operators import Mutant, mutants

ROOT = Path(__file__).parents[2]
LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv", ".hypothesis", "__pycache__", ".*_cache", "build", "e2e"
)
SLOW = ("test_properties.py", "hooks/test_memo.py", "hooks/test_wire_cost.py")
TESTS = (
    ("tests/unit", "tests/migration", *(f"--ignore=tests/unit/{name}" for name in SLOW)),
    tuple(f"tests/contract/test_{name}.py" for name in ("upgrade", "http", "http_errors")),
    ("tests/model",),
    ("tests/unit/test_properties.py", "tests/unit/hooks/test_memo.py"),
    ("tests/scenarios", "--ignore=tests/scenarios/test_demo.py"),
)
"""What is run on each change, after the tests of its own room; the first failure is enough.

What takes minutes, or is about cost, is left out: a change that only it would notice survives.
"""
OPTIONS = ("-x", "-q", "-p", "pytest_timeout", "-p", "no:cacheprovider", "-m", "not slow")
ENVIRONMENT = {
    **os.environ,
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # to load them takes longer than to notice a change
    "PYTHONDONTWRITEBYTECODE": "1",  # by time and size a change looks like the one before
}
LONGEST = 900
"""Seconds for one line of them, should a change make it endless in spite of each test's timeout."""


def first_failure(tree: Path, file: str = "") -> str:
    """The first test that fails in a tree where that file was changed, "" if none does."""
    own = f"tests/unit/{Path(file).parent.name}", f"tests/{file.partition('/')[0]}"
    there = [(each,) for each in own if file and (tree / each).is_dir()]
    for tests in (*there, *TESTS):
        command = [sys.executable, "-m", "pytest", *OPTIONS, *tests]
        try:
            done = subprocess.run(
                command, cwd=tree, env=ENVIRONMENT, capture_output=True, text=True, check=False,
                timeout=LONGEST,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"{tests[0]} does not end"
        if done.returncode:
            told = re.search(r"^(?:FAILED|ERROR) (tests/.+?)(?: - .*)?$", done.stdout, re.MULTILINE)
            return told[1] if told else f"{tests[0]}: {(done.stdout + done.stderr)[-300:]}"
    return ""


def caught_by(tree: Path, mutant: Mutant) -> str:
    """The first test that fails with the change, "" if none does."""
    path = tree / mutant.file
    text = path.read_text(encoding="utf-8")
    path.write_text(mutant.applied(), encoding="utf-8")
    try:
        return first_failure(tree, mutant.file)
    finally:
        path.write_text(text, encoding="utf-8")


def found(paths: list[str]) -> list[Mutant]:
    """All changes below the paths."""
    files = [file for path in paths for file in [ROOT / path, *sorted((ROOT / path).rglob("*.py"))]]
    return [
        mutant
        for file in files
        if file.is_file()
        for mutant in mutants(str(file.relative_to(ROOT)), file.read_text(encoding="utf-8"))
    ]


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("paths", nargs="*", default=["tapp", "hooks"], help="files or directories")
    parser.add_argument("--only", default="", help="only functions whose full name holds this word")
    parser.add_argument("--sample", type=int, default=40, help="how many, by chance; 0: all")
    parser.add_argument("--seed", type=int, default=1, help="of the chance")
    options = parser.parse_args()
    chosen = every = [each for each in found(options.paths) if options.only in each.function]
    if 0 < options.sample < len(every):
        # Not sorted: as much of it as was tried before somebody stopped the run is a sample, too.
        chosen = random.Random(options.seed).sample(every, options.sample)
    say(f"{len(chosen)} of {len(every)} changes, seed {options.seed}")
    survivors = 0
    with tempfile.TemporaryDirectory() as directory:
        tree = shutil.copytree(ROOT, Path(directory) / "tree", ignore=LEFT_OUT)
        if failure := first_failure(tree):
            raise SystemExit(f"fails without any change: {failure}")
        for mutant in chosen:
            failure = caught_by(tree, mutant)
            survivors += not failure
            said = f"{mutant.file}:{mutant.line} {mutant.function}: {mutant.change}"
            say(f"{said}\n    {failure or 'SURVIVES'}")
    say(f"{survivors} of {len(chosen)} survive")
    return 1 if survivors else 0


def say(text: str) -> None:
    """A line of the report, at once: a run takes long, and may be stopped."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
