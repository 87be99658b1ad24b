"""Configures all tests: the profiles of hypothesis, the number of workers, and `--update-golden`.

With the option `--update-golden`, tests write the golden files instead of comparing them. A person
has to review the difference.
"""

import gc
import os
import signal
import sys

import pytest
from hypothesis import HealthCheck, settings
from werkzeug.routing.rules import Rule

from tests.sizes import FULL, size

# A shell starts background jobs with SIGINT ignored, and child processes inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Under nohup, programs that the tests start would ignore SIGHUP, too. A handler is not inherited.
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)
# Collection takes a third longer with the garbage collector, and finds next to no garbage.
gc.disable()

if not FULL:
    # The IRI check of jsonschema builds 38 grammars on import, which takes a second.
    sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]
    # Thousands of tests build the application, and a third of that is code for building URLs, which
    # no test needs.
    Rule._compile_builder = lambda *_: lambda *_: ("", "")  # type: ignore[method-assign]

settings.register_profile(
    "fast",
    max_examples=size(6, 30),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("nightly", max_examples=3000, deadline=None)
settings.load_profile("fast")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write golden files anew")


def pytest_configure(config: pytest.Config) -> None:
    """Refuses --update-golden in CI, where no person reviews the difference."""
    if config.getoption("--update-golden", default=False) and os.environ.get("CI"):
        raise pytest.UsageError("--update-golden is refused when CI is set")


def pytest_collection_finish() -> None:
    """Excludes all objects imported so far from garbage collection, and makes collections rarer."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Returns the number of CPUs plus one, because some tests wait without using a CPU."""
    return (os.cpu_count() or 1) + 1


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Returns True if a test has to write its golden files instead of comparing them."""
    return bool(request.config.getoption("--update-golden", default=False))
