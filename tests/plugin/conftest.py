"""Fixtures of all tests of the plugin."""

import pytest

from tests.scenarios import life
from tests.sizes import size


@pytest.fixture(autouse=True)
def service_is_looked_at_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """The service's promises are for its own tests; here every sync is checked by `make full`."""
    monkeypatch.setattr(life, "CHECK_EVERY", size(10, 1))


@pytest.fixture(autouse=True)
def kubectl_has_no_preferences(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kuberc of whoever runs the tests changes no plan."""
    monkeypatch.setenv("KUBERC", "off")
