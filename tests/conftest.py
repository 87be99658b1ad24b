"""Parts that all tests share: hypothesis' profiles, and `--update-golden`.

That writes the golden files anew; their difference is then for a person to read.
"""

import gc
import os
import signal
import sys

import pytest
from hypothesis import HealthCheck, settings
from werkzeug.routing.rules import Rule

from tests.sizes import FULL, size

# Whoever runs the tests in the background has them ignore Ctrl-C, and all that they start as well.
signal.signal(signal.SIGINT, signal.default_int_handler)
gc.disable()  # until all is collected, a third of which it took: next to nothing is garbage there

if not FULL:
    # jsonschema's check of what is an IRI makes 38 grammars when it is imported, for a second.
    sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]
    # Thousands of tests make the application: a third of that is code for URLs that none asks for.
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
    """The option, such as in `pytest tests/scenarios --update-golden`."""
    parser.addoption("--update-golden", action="store_true", help="write golden files anew")


def pytest_configure(config: pytest.Config) -> None:
    """Nobody reads a difference that CI makes."""
    if config.getoption("--update-golden", default=False) and os.environ.get("CI"):
        raise pytest.UsageError("--update-golden is refused when CI is set")


def pytest_collection_finish() -> None:
    """Freezes what was imported: the garbage collector need not look at it, nor so often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are CPUs: some tests do nothing but wait."""
    return (os.cpu_count() or 1) + 1


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """True if golden files are to be written rather than compared."""
    return bool(request.config.getoption("--update-golden", default=False))
