"""An API server for what the service writes beside its answers, and the account to ask it with."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api_server import ApiServer, api_server


@pytest.fixture
def account(tmp_path: Path) -> Path:
    return tmp_path / "account"


@pytest.fixture
def server(account: Path) -> Iterator[ApiServer]:
    with api_server(account) as running:
        yield running
