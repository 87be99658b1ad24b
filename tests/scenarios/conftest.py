"""`--update-golden` writes the golden files anew; their difference is then for a person to read."""

import os

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option, for runs that name this directory: `pytest tests/scenarios --update-golden`."""
    parser.addoption("--update-golden", action="store_true", help="write tests/golden anew")


def pytest_configure(config: pytest.Config) -> None:
    """Nobody reads a difference that CI makes."""
    if config.getoption("--update-golden", default=False) and os.environ.get("CI"):
        raise pytest.UsageError("--update-golden is refused when CI is set")


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be written rather than compared."""
    return bool(request.config.getoption("--update-golden", default=False))
