"""The benchmark's streams: what differs from request to request is what they say, and no more."""

import json
import subprocess
import sys
from collections.abc import Callable
from functools import cache, partial
from itertools import pairwise
from pathlib import Path

import pytest

from bench import over_http, stream, streams, tables
from bench.herd import Call
from bench.inprocess import ROOT, call
from bench.parent import NEW
from hooks.app import create_app
from hooks.service.settings import Settings
from tests.builders import Document


def bodies(calls: list[Call]) -> list[Document]:
    return [json.loads(sent.body) for sent in calls]


def pods(body: Document) -> Document:
    found: Document = body["children"]["Pod.v1"]
    return found


def differing(before: Document, after: Document) -> set[str]:
    return {name for name, pod in pods(after).items() if pods(before)[name] != pod}


STREAMS: dict[str, tuple[Callable[[], list[Call]], int]] = {
    "one changed": (cache(partial(streams.one_changed, 20, 8)), 1),
    "many templates": (cache(partial(streams.one_changed, 20, 8, 9)), 1),
    "a value each": (cache(partial(streams.one_changed, 20, 8, values=True)), 1),
    "middle of a roll": (cache(partial(streams.rolling, 40, 2, 4)), 4),
}


@pytest.mark.parametrize(("make", "changed"), STREAMS.values(), ids=STREAMS)
def test_so_many_pods_differ_from_the_request_before(
    make: Callable[[], list[Call]], changed: int
) -> None:
    found = bodies(make())
    assert {len(differing(*pair)) for pair in pairwise(found)} == {changed}


@pytest.mark.parametrize("make", [make for make, _ in STREAMS.values()], ids=STREAMS)
def test_a_request_has_the_status_of_the_answer_before(make: Callable[[], list[Call]]) -> None:
    calls = make()
    now = calls[0].now
    app = create_app(Settings(log_level="ERROR"), clock=lambda: now)
    statuses, parents = [], []
    for sent in calls:
        now = sent.now
        parents.append(json.loads(sent.body)["parent"])
        statuses.append(json.loads(call(app, "/sync", sent.body))["status"])
    for answered, parent in zip(statuses, parents[1:], strict=False):
        assert {**answered, "observedGeneration": parent["metadata"]["generation"]} == (
            parent["status"]
        )


def test_a_changed_pod_has_never_been_seen_before() -> None:
    calls = STREAMS["one changed"][0]()
    seen: set[bytes] = set()
    for sent in calls:
        new = {part for part in sent.parts if b'"Pod"' in part} - seen
        assert len(new) >= (1 if seen else 20)
        seen |= new
    # Only the parent's part and one pod's are not those of the request before.
    for before, after in pairwise(calls):
        same = {id(part) for part in before.parts}
        assert sum(b'"kind":"Pod"' in part for part in after.parts if id(part) not in same) == 1


def test_every_kind_of_change_is_counted_as_often() -> None:
    for found in streams.streams([10, 20]):
        assert (len(found.calls()) - found.warm) % streams.KINDS == 0


def test_pods_in_the_middle_of_a_roll_are_updated_where_they_are() -> None:
    first, *_, last = bodies(STREAMS["middle of a roll"][0]())
    assert {key: pod["metadata"]["uid"] for key, pod in pods(first).items()} == {
        key: pod["metadata"]["uid"] for key, pod in pods(last).items()
    }
    running = [
        sum(
            status["ready"] and status["image"] == NEW
            for pod in pods(body).values()
            for status in pod["status"]["containerStatuses"]
        )
        for body in (first, last)
    ]
    assert running == [20, 20 + 5 * 2]


# --- figures --------------------------------------------------------------------------------------


def test_what_is_measured_is_shown_written_and_compared(tmp_path: Path) -> None:
    file = tmp_path / "build" / "bench.json"
    options = ["--sizes", "10", "--rounds", "1", "--best", "--json", str(file)]
    shown = ran("bench", *options)
    figures = json.loads(file.read_text())
    assert all(tables.shown(figures[part]) in shown for part in ("stream", "http", "memory"))
    (changed, first), (http,) = figures["stream"], figures["http"]
    assert (changed["what"], first["what"]) == ("one pod changed", "first request")
    assert all(row["handler ms"] > 0 < row["REF ms"] for row in (changed, first))
    assert 0 < http["p50 ms"] <= http["p99 ms"]
    assert 0 < http["requests"] <= over_http.REQUESTS  # a busy machine stops before
    assert http["target"].startswith("<= 1.5 ms")
    taken = figures["memory"]
    assert [row["what"] for row in taken] == [streams.NOTHING, streams.ROLL]
    assert all(10 < row["idle"] <= row["peak"] for row in taken)
    for row in (changed, first):
        row["/ REF"] *= 2
    file.with_name("other.json").write_text(json.dumps(figures))
    compared = ran("bench.compare", str(file), str(file.with_name("other.json")))
    assert (compared.count("+100%"), compared.count("+0%")) == (2, 3)


def ran(*module: str) -> str:
    """What a command prints; a process of its own, as a measurement changes how Python collects."""
    command = [sys.executable, "-m", *module]
    return subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.PIPE, text=True).stdout


def test_growth_is_told_for_each_tenfold_number_of_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    times = {10: 1.0, 100: 12.0, 200: 20.0}

    def row(found: streams.Stream, _rounds: int, *, best: bool) -> tables.Row:
        assert best
        return {"what": found.name, "pods": found.pods, "handler ms": times[found.pods]}

    monkeypatch.setattr(stream, "_row", row)
    rows = list(stream.measure(1, list(times), best=True, say=lambda _: None))
    assert [each.get("growth") for each in rows if each["what"] == streams.ONE_CHANGED] == [
        None, "12.0 missed", None,
    ]  # fmt: skip


def test_a_table_is_markdown() -> None:
    rows: list[tables.Row] = [
        {"what": "a", "pods": 1_000, "/ REF": 0.5},
        {"what": "b", **tables.judged(3, 2, " ms")},
    ]
    lines = tables.shown(rows).splitlines()
    assert [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in lines if "-" not in line
    ] == [
        ["what", "pods", "/ REF", "target"],
        ["a", "1,000", "0.50", ""],
        ["b", "", "", "<= 2 ms missed"],
    ]
