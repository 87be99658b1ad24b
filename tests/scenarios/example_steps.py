"""Lists the steps of all examples: the files below `examples/`, for the tests of each step."""

from pathlib import Path

import pytest

from tests.scenarios.life import EXAMPLES

STEPS = sorted(EXAMPLES.rglob("*.yaml"))


def step_name(path: Path) -> str:
    return str(path.relative_to(EXAMPLES).with_suffix(""))


EVERY_STEP = pytest.mark.parametrize("step", [step_name(path) for path in STEPS])
