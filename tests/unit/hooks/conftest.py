"""Provides a fake API server to which the service writes, and the directory of its service
account.
"""

import gc
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hooks.service import cluster, events
from hooks.service.cluster import Cluster
from hooks.service.events import Recorder
from tests.api_server import ApiServer, api_server


@pytest.fixture
def account(tmp_path: Path) -> Path:
    return tmp_path / "account"


@pytest.fixture
def server(account: Path) -> Iterator[ApiServer]:
    with api_server(account) as running:
        yield running


@pytest.fixture
def short_pauses_and_no_leaks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Shortens the pauses of the writer of Events, and checks that a test leaves no thread and no
    connection.
    """
    gc.freeze()  # objects of earlier tests are not checked below
    monkeypatch.setattr(events, "PAUSES", (0.01, 0.01, 0.01, 0.01))
    monkeypatch.setattr(cluster, "TIMEOUT", (60, 60))
    made: list[Recorder] = []
    opened: list[Cluster] = []

    def noted(self: Recorder, *arguments: Any, **options: Any) -> None:
        made.append(self)
        init(self, *arguments, **options)

    def noted_too(self: Cluster, *arguments: Any, **options: Any) -> None:
        opened.append(self)
        begin(self, *arguments, **options)

    init, begin = Recorder.__init__, Cluster.__init__
    monkeypatch.setattr(Recorder, "__init__", noted)
    monkeypatch.setattr(Cluster, "__init__", noted_too)
    yield
    for each in made:
        each.close(0)
        if each._pid:
            each._thread.join(60)
            assert not each._thread.is_alive()
    for each_cluster in opened:
        each_cluster.close()
    with warnings.catch_warnings(record=True) as left:
        warnings.simplefilter("always")
        gc.collect()
    # Python does not close a socket that is reset before its TLS handshake; that socket has no peer
    # address any more. A socket with a peer address was left open by our code.
    assert [str(each.message) for each in left if "raddr=" in str(each.message)] == []
