"""Fixtures of all tests of the plugin."""

import pytest

from tests.scenarios import life
from tests.sizes import size


@pytest.fixture(autouse=True)
def service_is_looked_at_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks the service's invariants rarely; `make full` checks every sync."""
    monkeypatch.setattr(life, "CHECK_EVERY", size(10, 1))


@pytest.fixture(autouse=True)
def kubectl_has_no_preferences(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ignores the kuberc of the user who runs the tests."""
    monkeypatch.setenv("KUBERC", "off")
