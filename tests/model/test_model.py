"""Plays a few random lives of a TApp in every test run; `python -m tests.model` plays many."""

import os

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.model.machine import Model
from tests.sizes import size

STEPS = int(os.environ.get("TAPP_MODEL_STEPS", size(200, 600)))
LENGTH = 40


def test_random_lives_keep_all_promises() -> None:
    """Checks P1, P2, P4 to P6 and P8 after every step of a life, and P3 at its end."""
    chosen = settings(
        max_examples=max(1, STEPS // LENGTH),
        stateful_step_count=LENGTH,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],  # `python -m tests.model --shrink` takes its time to minimise
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(Model, settings=chosen)


def test_life_is_repeated_by_its_seed() -> None:
    """Plays the same seed twice and compares the counters.

    So a developer can repeat a violation that the long run reports with its seed.
    """
    Model.totals.clear()
    short = settings(max_examples=2, stateful_step_count=10, deadline=None, database=None)
    counts = []
    for _ in range(2):
        run_state_machine_as_test(seed(7)(Model), settings=short)
        counts.append(dict(Model.totals))
        Model.totals.clear()
    assert counts[0] == counts[1]
