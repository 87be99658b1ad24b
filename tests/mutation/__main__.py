"""Breaks a sample of the code, one change at a time, and lists what no test notices.

For example `python -m tests.mutation tapp/plan.py --only _held --sample 0`. The exit code is 1 if a
change survives that `equivalents.py` does not list.
"""

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from compileall import compile_dir
from pathlib import Path
from py_compile import PycInvalidationMode

from tests.mutation.equivalents import EQUIVALENTS
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
"""What is run on each change, the quickest first; the first failure is enough.

What takes minutes, or is about cost, is left out: a change that only it would notice survives.
"""
SIMULATOR_TESTS = (("tests/simulator",), *TESTS)
"""What is run where the simulator is changed."""
OPTIONS = ("-x", "-q", "-p", "pytest_timeout", "-p", "no:cacheprovider", "-m", "not slow")
ENVIRONMENT = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
"""To load all plugins takes longer than most changes need to be noticed."""
LONGEST = 900
"""Seconds for one line of them, should a change make it endless in spite of each test's timeout."""


def first_failure(tree: Path, file: str = "") -> str:
    """The first test that fails in a tree where that file was changed, "" if none does."""
    for tests in SIMULATOR_TESTS if file.startswith("simulator") else TESTS:
        command = [sys.executable, "-m", "pytest", *OPTIONS, *tests]
        try:
            done = subprocess.run(
                command,
                cwd=tree,
                env=ENVIRONMENT,
                capture_output=True,
                text=True,
                check=False,
                timeout=LONGEST,
            )
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
    path.write_text(mutant.applied(text), encoding="utf-8")
    try:
        return first_failure(tree, mutant.file)
    finally:
        path.write_text(text, encoding="utf-8")


def copied(directory: str) -> Path:
    """A copy of everything that the tests need."""
    tree = Path(directory) / "tree"
    shutil.copytree(ROOT, tree, ignore=LEFT_OUT)
    for name in ("tapp", "hooks", "simulator"):
        # By its time and size a changed file may look like the one compiled a second ago.
        compile_dir(tree / name, quiet=1, invalidation_mode=PycInvalidationMode.CHECKED_HASH)
    return tree


def found(paths: list[str], only: str) -> list[Mutant]:
    """All changes below the paths whose function holds a word, without those known to be none."""
    files = [
        file
        for path in paths
        for file in (
            sorted((ROOT / path).rglob("*.py")) if (ROOT / path).is_dir() else [ROOT / path]
        )
    ]
    every = [
        mutant
        for file in files
        for mutant in mutants(str(file.relative_to(ROOT)), file.read_text(encoding="utf-8"))
    ]
    known = {(item.function, item.change) for item in EQUIVALENTS}
    places = {mutant.function for mutant in every}
    for function, change in known - {(mutant.function, mutant.change) for mutant in every}:
        if function in places:
            say(f"equivalents.py lists what is not there any more: {function}: {change}")
    return [
        mutant
        for mutant in every
        if only in mutant.function and (mutant.function, mutant.change) not in known
    ]


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("paths", nargs="*", default=["tapp", "hooks"], help="files or directories")
    parser.add_argument("--only", default="", help="only functions whose full name holds this word")
    parser.add_argument("--sample", type=int, default=40, help="how many, by chance; 0: all")
    parser.add_argument("--seed", type=int, default=1, help="of the chance")
    parser.add_argument("--list", action="store_true", help="list them, and run nothing")
    options = parser.parse_args()
    chosen = every = found(options.paths, options.only)
    if 0 < options.sample < len(every):
        # Not sorted: as much of it as was tried before somebody stopped the run is a sample, too.
        chosen = random.Random(options.seed).sample(every, options.sample)
    say(f"{len(chosen)} of {len(every)} changes, seed {options.seed}")
    if options.list:
        for mutant in chosen:
            say(described(mutant))
        return 0
    with tempfile.TemporaryDirectory() as directory:
        tree = copied(directory)
        if failure := first_failure(tree):
            raise SystemExit(f"fails without any change: {failure}")
        survivors = [mutant for mutant in chosen if not _reported(tree, mutant)]
    say(f"\n{len(chosen) - len(survivors)} of {len(chosen)} were noticed; survivors:")
    for mutant in survivors:
        say(described(mutant))
    return 1 if survivors else 0


def _reported(tree: Path, mutant: Mutant) -> str:
    """Who noticed it, after saying so: a run takes long, and may be stopped."""
    started = time.monotonic()
    failure = caught_by(tree, mutant)
    say(f"{described(mutant)}\n    {failure or 'SURVIVES'} ({time.monotonic() - started:.0f} s)")
    return failure


def described(mutant: Mutant) -> str:
    """One line for a reader, and for `equivalents.py`."""
    return f"{mutant.file}:{mutant.line} {mutant.function}: {mutant.change}"


def say(text: str) -> None:
    """A line of the report."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
