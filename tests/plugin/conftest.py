"""Fixtures that apply to all tests of the plugin."""

from collections.abc import Iterator

import pytest

from kubectl_tapp.base import hints
from tests.plugin.processes import place
from tests.scenarios import life
from tests.sizes import size

__all__ = ["place"]


@pytest.fixture(autouse=True)
def rare_invariant_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks the service's invariants only for some syncs; `make full` checks every sync."""
    monkeypatch.setattr(life, "CHECK_EVERY", size(10, 1))


@pytest.fixture(autouse=True)
def kubectl_has_no_preferences(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the plugin ignore the kubectl preferences (kuberc) of the user running the tests."""
    monkeypatch.setenv("KUBERC", "off")


@pytest.fixture(autouse=True)
def command_line_is_forgotten() -> Iterator[None]:
    """Removes the options that the last command line has stored after each test.

    The plugin of a user runs only one command line in a process.
    """
    yield
    hints.remember_options({})
