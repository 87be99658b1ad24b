"""Calls as a real cluster made them are answered as they were then.

`recorded/real-*.json`: request and answer of a kube-apiserver with the real Metacontroller, without
what was of that machine only. `tests/e2e/test_recording.py` says how to record them again.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from hooks.app import create_app
from hooks.service.settings import Settings
from tests.invariants import check, writes

Document = dict[str, Any]

RECORDED = Path(__file__).parent / "recorded"
FILES = sorted(RECORDED.glob("real-*.json"))
TOLERATION_SECONDS = 3
"""As of the API server that these were recorded on."""
CREATED = [
    "create Pod/web-0",
    "create Pod/web-1",
    "create PersistentVolumeClaim/data-web-0",
    "create PersistentVolumeClaim/data-web-1",
]
EVERY_CALL = pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)


def replay(record: Document) -> Document:
    """What the service answers now."""
    settings = Settings(log_level="ERROR", toleration_seconds=TOLERATION_SECONDS)
    client = create_app(settings, clock=lambda: float(record["now"])).test_client()
    response = client.post(f"/{record['hook']}", json=record["request"])
    assert response.status_code == 200, response.data
    answer: Document = json.loads(response.data)
    return answer


def load(name: str) -> Document:
    record: Document = json.loads((RECORDED / f"real-{name}.json").read_text())
    return record


def test_there_are_some() -> None:
    assert len(FILES) >= 7


@EVERY_CALL
def test_the_answer_is_the_same(file: Path) -> None:
    record = json.loads(file.read_text())
    assert replay(record) == record["answer"]


@EVERY_CALL
def test_the_answer_keeps_every_invariant(file: Path) -> None:
    record = json.loads(file.read_text())
    if record["hook"] != "customize":
        check(record["request"], record["answer"])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("created", CREATED),
        ("settled", []),
        ("update-begins", ["update Pod/web-0"]),
        ("update-under-way", []),
        ("deleted", ["delete Pod/web-0", "delete Pod/web-1"]),
        ("gone", []),
    ],
)
def test_what_metacontroller_then_wrote(name: str, expected: list[str]) -> None:
    record = load(name)
    assert writes(record["request"], replay(record)) == expected


@EVERY_CALL
def test_nothing_of_the_machine_is_in_it(file: Path) -> None:
    text = file.read_text()
    assert len(text) < 40_000
    for trace in ("tapp-e2e", "127.0.0.1", "e2e.fake"):
        assert trace not in text
