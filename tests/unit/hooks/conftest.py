"""Provides a fake API server to which the service writes, and the directory of its service
account.
"""

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
