"""Tests watches, TApps with thousands of instances, events, and other output formats."""

import io
import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from kubectl_tapp.base.words import short_duration
from kubectl_tapp.complete_command import complete
from kubectl_tapp.decide.inspection import Row
from kubectl_tapp.show.status import table
from simulator.objects.kinds import Kind
from simulator.objects.objects import with_meta
from tapp.words.ranges import numbers
from tests.plugin.fake_kubectl import Document, StandIn, kubectl_tapp
from tests.plugin.states import many, stuck_image, template, web
from tests.plugin.watches import watched
from tests.scenarios.life import Life
from tests.sizes import FULL


def test_watch_prints_changes_until_ctrl_c(capsys: pytest.CaptureFixture[str]) -> None:
    life = Life().apply(web())
    steps = [
        lambda: life.begin_patch(statuses={"2": "Killed"}),
        lambda: life.begin_patch(template=template("nginx:1.29")),
        lambda: None,
        lambda: None,
    ]
    code = watched(life, steps)
    assert code == 130
    said = capsys.readouterr()
    assert said.err == ""
    changes = [line for line in said.out.splitlines() if line.startswith("2026-")]
    assert changes[0].endswith(
        "instance 2: Delete, Killed: spec.statuses sets it to Killed, so the TApp service deletes "
        "its pod"
    )
    assert any("instance 2: Running, 1/1 ready, nginx:1.28 -> " in line for line in changes)
    updating = "instance 0: Running, 1/1 ready, nginx:1.28 -> Updating, 1/1 ready, nginx:1.29"
    assert any(line.endswith(updating) for line in changes)
    assert any("WaitingForBudget" in line for line in changes)


def test_watch_without_changes_reads_only_the_tapp_and_its_pods() -> None:
    """While nothing changes, `status -w` reads only the TApp and its pods again.

    After the TApp has changed, all other objects are read again, too.
    """
    life = Life().apply(web())
    standin = StandIn(life.world)
    assert watched(life, 5 * [lambda: None], standin) == 130
    read = Counter(call[call.index("get") + 1] for call in standin.calls if "get" in call)
    often = {kind for kind, count in read.items() if count > 1}
    assert often == {"tapps.apps.tkestack.io", "pods"}
    standin.calls.clear()
    assert (
        watched(life, [lambda: life.begin_patch(replicas=5), *2 * [lambda: None]], standin) == 130
    )
    read = Counter(call[call.index("get") + 1] for call in standin.calls if "get" in call)
    assert read["persistentvolumeclaims"] > 1


def test_watch_ends_when_the_tapp_is_deleted(capsys: pytest.CaptureFixture[str]) -> None:
    life = Life().apply(web())
    code = watched(life, [life.delete])
    assert code == 0
    assert capsys.readouterr().err == "note: TApp web was deleted\n"


@pytest.mark.parametrize("count", [1000, *([5000] if FULL else [])])
def test_status_of_thousands_of_instances_has_a_few_lines(count: int) -> None:
    standin = many(count)
    said = kubectl_tapp(standin, "status", "web")
    assert said.code == 0
    assert len(said.lines) < 20
    (folded,) = [line for line in said.lines if f"-{count - 1} " in line and "40 nodes" in line]
    assert "nginx:1.28" in folded
    assert any(f"-{count - 1}: WaitingForBudget" in line for line in said.lines)
    said = kubectl_tapp(standin, "why", "web")
    assert len(said.lines) < 30


def test_status_with_all_has_a_line_for_each_instance() -> None:
    said = kubectl_tapp(many(60), "status", "web", "--unfold")
    assert [line.split()[0] for line in said.lines[2:62]] == [str(id) for id in range(60)]


def event(about: Document, reason: str, message: str, **more: object) -> Document:
    """Returns a warning Event about an object; `more` has further fields, such as its time and
    count.
    """
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{reason}-{len(message)}".lower(), "namespace": "default"},
        "type": "Warning",
        "reason": reason,
        "message": message,
        "involvedObject": {
            "kind": about["kind"],
            "name": about["metadata"]["name"],
            "uid": about["metadata"]["uid"],
        },
        **more,
    }


def test_why_shows_events_of_the_current_pod_the_claims_and_the_tapp() -> None:
    """`why` prints Events of the pod and of the TApp, and none of an earlier pod with the same
    name.
    """
    life = Life().apply(web())
    stuck_image(life)
    world = life.world
    pod, tapp = world.get("Pod", "web-0"), life.tapp
    earlier = with_meta(pod, uid="of-an-earlier-pod")
    at = {"lastTimestamp": world.clock.timestamp(world.clock.now - 120), "count": 7}
    now = {"lastTimestamp": world.clock.timestamp(), "count": 7}
    events = world.kinds.add(Kind("v1", "Event", "events", has_status=False))
    for found in (
        event(pod, "BackOff", "Back-off pulling image", **at),
        event(earlier, "FailedMount", "volume is gone", **at),
        event(tapp, "SyncError", "Sync error: sync hook failed:\n connection refused", **now),
    ):
        world.cluster.create(events, found)
    standin = StandIn(world)
    said = kubectl_tapp(standin, "why", "web", "0")
    assert "    event: BackOff 7 times, last 2m ago: Back-off pulling image" in said.lines
    assert "FailedMount" not in said.out
    sync = "SyncError 7 times, last 0s ago: sync hook failed: connection refused"
    assert f"event: {sync}" in said.lines
    assert f"note: {sync}" in kubectl_tapp(standin, "status", "web").lines


@pytest.mark.parametrize(
    ("reason", "path"),
    [
        ("FailedScheduling", ""),
        ("FailedMount", ""),
        ("BackOff", "spec.containers{web}"),
        ("Unhealthy", "spec.containers{web}"),
    ],
)
@pytest.mark.parametrize("is_old", [True, False], ids=["old", "new"])
def test_why_hides_events_of_solved_problems(reason: str, path: str, is_old: bool) -> None:
    """After a repair, `why` hides Events from before the repair and still prints new ones.

    A failed pull and the last exit of a container are over after a repair.
    """
    life = Life().apply(web())
    stuck_image(life)
    life.patch(template=template("nginx:1.30"))
    life.world.run(3600)
    world = life.world
    pod = world.get("Pod", "web-0")
    events = world.kinds.add(Kind("v1", "Event", "events", has_status=False))
    at = pod["metadata"]["creationTimestamp"] if is_old else world.clock.timestamp()
    told = event(pod, reason, "what was wrong", lastTimestamp=at, count=3)
    told["involvedObject"]["fieldPath"] = path
    world.cluster.create(events, told)
    said = kubectl_tapp(StandIn(world), "why", "web", "0")
    assert ("what was wrong" in said.out) is not is_old
    assert "before, it ended" not in said.out


@pytest.mark.parametrize(
    ("form", "read"), [("json", json.loads), ("yaml", yaml.safe_load)], ids=["json", "yaml"]
)
def test_json_and_yaml_have_the_same_content(form: str, read: Callable[[str], Document]) -> None:
    life = Life().apply(web())
    stuck_image(life)
    standin = StandIn(life.world)
    status = read(kubectl_tapp(standin, "status", "web", "-o", form).out)
    assert status["outdated"] == [1, 2, 3]
    assert [row["state"] for row in status["instances"]] == ["ErrImagePull", *3 * ["Running"]]
    assert status["waits"][1]["instances"] == [1, 2, 3]
    assert status["budget"]["rollingMustStayAvailable"] == 3
    why = read(kubectl_tapp(standin, "why", "web", "1", "-o", form).out)
    (case,) = why["instances"]
    assert case["id"] == 1
    assert case["reason"] == "WaitingForBudget"
    assert case["available"] is True
    listed = read(kubectl_tapp(standin, "list", "-o", form).out)
    assert [each["metadata"]["name"] for each in listed["items"]] == ["web"]


def test_list_says_what_each_tapp_waits_for() -> None:
    life = Life().apply(web())
    stuck_image(life)
    standin = StandIn(life.world)
    said = kubectl_tapp(standin, "list", "-A")
    assert said.lines[0].split()[:3] == ["NAMESPACE", "NAME", "READY"]
    assert said.lines[1].split()[:-1] == ["default", "web", "3/4", "1", "3", "InstancesBroken"]
    assert kubectl_tapp(standin, "list", "-o", "name").lines == ["tapp.apps.tkestack.io/web"]
    empty = kubectl_tapp(standin, "list", "-n", "kube-system")
    assert empty.code == 0
    assert empty.out == ""
    assert empty.err == "There is no TApp in namespace kube-system; -A lists all.\n"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0s"), (0, "0s"), (119.9, "119s"), (120, "2m"), (190, "3m10s"), (599, "9m59s"),
        (600, "10m"), (3599, "59m"), (7199, "119m"), (7200, "2h"), (7500, "2h5m"),
        (86400, "24h"), (172800, "2d"), (176400, "2d1h"), (864000, "10d"),
    ],
)  # fmt: skip
def test_ages_have_the_format_of_kubectl(seconds: float, text: str) -> None:
    assert short_duration(seconds) == text


ROWS = st.builds(
    Row,
    id=st.just(0),
    template=st.sampled_from(["default", "v2"]),
    state=st.sampled_from(["Running", "Pending", "Killed"]),
    ready=st.sampled_from(["", "0/1", "1/1"]),
    restarts=st.integers(0, 2),
    node=st.sampled_from(["", "node-1", "node-2"]),
    since=st.one_of(st.none(), st.floats(0, 1000)),
)


@given(rows=st.lists(ROWS, max_size=40), unfold=st.booleans())
def test_table_has_each_instance_once(rows: list[Row], unfold: bool) -> None:
    """Each instance is in exactly one line of the table, with its number or in the count "and N
    more".

    Without `unfold`, instances with equal values share a line.
    """
    numbered = [replace(row, id=id) for id, row in enumerate(rows)]
    console = Console(width=400, record=True, file=io.StringIO(), force_terminal=False)
    console.print(table(numbered, 1000.0, 400, unfold=unfold))
    _, *lines = console.export_text().splitlines() or [""]
    told = [instances_in(line) for line in lines]
    shown = [id for ids, _ in told for id in ids]
    assert len(shown) == len(set(shown))
    assert len(shown) + sum(more for _, more in told) == len(rows)
    assert not unfold or len(lines) == len(rows)


def instances_in(line: str) -> tuple[set[int], int]:
    """Returns the instance numbers in a line, and the number of instances that the line only
    counts.
    """
    found = re.match(r"([\d, -]*\d)(?: and (\d+) more)?(?: {2}|$)", line)
    assert found is not None
    return set(numbers(found[1].replace(" ", ""))), int(found[2] or 0)


@pytest.fixture
def _shell(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets pytest restore, after a test, the environment variables that a completion sets."""
    for name in ("_KUBECTL_TAPP_COMPLETE", "_TYPER_COMPLETE_ARGS", "_TYPER_COMPLETE_FISH_ACTION"):
        monkeypatch.setenv(name, "")


@pytest.mark.usefixtures("_shell")
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["sta"], ["start", "status"]),
        (["status", "w"], ["web"]),
        (["status", "x"], []),
        (["why", "web", ""], ["all", "0", "1", "2", "3"]),
        (["why", "web", "0", "2"], ["2"]),
        (["status", "-n", "other", "w"], []),
        (["status", "-n", "de"], ["default"]),
        (["status", "--context", "t"], ["there"]),
        (["status", "--wa"], ["--watch"]),
        (["use", "web", ""], ["default"]),
        (["why", "nobody", ""], []),
    ],
    ids=" ".join,
)
def test_completion_offers_matching_words(
    words: list[str], offered: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    standin = StandIn(Life().apply(web()).world)
    complete(words, standin)
    *lines, directive = [line for line in capsys.readouterr().out.splitlines() if line]
    assert sorted(line.partition("\t")[0] for line in lines) == sorted(offered)
    assert directive == ":4"
    assert standin.writes == []


@pytest.mark.usefixtures("_shell")
def test_completion_offers_nothing_if_the_cluster_does_not_respond(
    capsys: pytest.CaptureFixture[str],
) -> None:
    standin = StandIn(Life().world)
    standin.failing["get"] = "The connection to the server 127.0.0.1:1 was refused\n"
    complete(["status", ""], standin)
    said = capsys.readouterr()
    assert said.out.strip() == ":4"
    assert said.err == ""
