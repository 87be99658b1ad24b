"""Tests that requests of a real cluster get the same responses as at the time of the recording.

`recorded/real-*.json` have requests and responses of a kube-apiserver with the real Metacontroller,
without traces of the machine. `tests/e2e/test_recording.py` describes how to record them again.
"""

import json
from pathlib import Path

import pytest

from tests.contract.recordings import FILES, RECORDED, Document, replay
from tests.invariants import check, writes

CREATED = [
    "create Pod/web-0",
    "create Pod/web-1",
    "create PersistentVolumeClaim/data-web-0",
    "create PersistentVolumeClaim/data-web-1",
]
EVERY_CALL = pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)


def load(name: str) -> Document:
    record: Document = json.loads((RECORDED / f"real-{name}.json").read_text())
    return record


def test_there_are_recordings() -> None:
    assert len(FILES) >= 7


@EVERY_CALL
def test_response_is_the_recorded_one(file: Path) -> None:
    record = json.loads(file.read_text())
    assert replay(record) == record["answer"]


@EVERY_CALL
def test_response_keeps_every_invariant(file: Path) -> None:
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
def test_metacontroller_writes_the_expected_objects(name: str, expected: list[str]) -> None:
    record = load(name)
    assert writes(record["request"], replay(record)) == expected


@EVERY_CALL
def test_recording_has_no_traces_of_the_machine(file: Path) -> None:
    text = file.read_text()
    assert len(text) < 40_000
    for trace in ("tapp-e2e", "127.0.0.1", "e2e.fake"):
        assert trace not in text
