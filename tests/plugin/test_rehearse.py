"""Tests `kubectl tapp rehearse`: its results, its judgment of known bugs, and its output.

All runs come from files, without a cluster, but for one test of a TApp in a cluster.
"""

import copy
import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_tapp.commands.rehearse_options import FaultKind
from kubectl_tapp.commands.rehearsing import NODES
from kubectl_tapp.forecast import assumed, rehearsal
from kubectl_tapp.forecast.forecast import Assumptions
from kubectl_tapp.forecast.foresee import Start, as_running, start_of
from kubectl_tapp.forecast.rehearsal import Rehearsal, Settings, rehearse
from kubectl_tapp.show.rehearsal import as_document
from simulator.metacontroller.hook_client import WsgiHook
from simulator.schedule import KINDS
from simulator.world import World
from tapp.decide.serving import Serving, ServingState
from tests.builders import claim_template, manifest, template
from tests.commands import ROOT, block
from tests.plugin.fake_kubectl import Said, StandIn, kubectl_tapp
from tests.plugin.test_from_files import running
from tests.scenarios.life import EXAMPLES, registration
from tests.sizes import size

Document = dict[str, Any]
NOW = 1.77e9
GATE = "apps.tkestack.io/InPlaceUpdateReady"


def start(before: Document, after: Document) -> Start:
    """Returns the beginning of runs of an edit, of a TApp that is assumed to be running."""
    registration = assumed.registration()
    observed = as_running(before, registration, NOW, NODES)
    return start_of(observed, after, registration, NOW, Assumptions(made_up=True))


def edit(replicas: int = 4, **more: Any) -> Start:
    """Returns the beginning of runs of a new image; `more` are further fields of the spec."""
    spec = {"replicas": replicas, "template": template("web:1"), **more}
    after = copy.deepcopy(spec)
    after["template"]["spec"]["containers"][0]["image"] = "web:2"
    return start(manifest("web", **spec), manifest("web", **after))


def found(begin: Start, runs: int = 200, *kinds: str, **more: Any) -> Rehearsal:
    """Rehearses in this process, because a test may have changed the service."""
    return rehearse(begin, Settings(runs, kinds=kinds, **more))


@pytest.fixture(autouse=True)
def _one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsal, "_processors", lambda: 1)


def broken(result: Rehearsal) -> list[int]:
    """Returns the seeds of the runs that broke a promise; 0 stands for the undisturbed run."""
    return [run.seed for run in result.everything if run.violations]


# Runs.


def test_undisturbed_run_uses_the_budget_and_faults_take_more() -> None:
    result = found(edit(12, updateStrategy={"maxUnavailable": 2}), size(20, 200))
    assert result.undisturbed is not None
    assert result.undisturbed.worst.count == result.allowed == 2
    assert max(run.worst.count for run in result.played) > 2
    assert max(run.by_update for run in result.everything) == 2
    assert broken(result) == []
    assert all(run.duration is not None and not run.stuck for run in result.everything)


@pytest.mark.parametrize("replicas", [1, 2, 3, 12])
def test_each_kind_of_fault_keeps_the_promises(replicas: int) -> None:
    begin = edit(replicas, minReadySeconds=3)
    for kind in KINDS:
        result = found(begin, size(2, 40), kind, faults=2)
        assert broken(result) == [], kind
        assert len(result.played) == size(2, 40)


def test_same_seed_plays_the_same_run() -> None:
    begin = edit(3)
    both = [found(begin, 6), found(begin, 6)]
    assert both[0].played == both[1].played
    replayed = found(begin, replay=4)
    assert replace(replayed.played[0]) == both[0].played[3]
    assert replayed.worst is not None
    assert replayed.worst.timeline


def test_runs_in_several_processes_are_those_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = edit(2)
    alone = found(begin, 8)
    monkeypatch.setattr(rehearsal, "_processors", lambda: 2)
    monkeypatch.setattr(rehearsal, "_RUNS_OF_A_PROCESS", 4)
    assert found(begin, 8).played == alone.played


def test_broken_image_is_reported_as_stuck() -> None:
    begin = edit(3)
    begin = replace(begin, assumptions=Assumptions(("web:2",), made_up=True))
    result = found(begin, 3, "crash")
    assert all(run.stuck and run.duration is None for run in result.everything)


def test_interruption_keeps_the_results_so_far() -> None:
    def stop(count: int) -> None:
        if count == 3:
            raise KeyboardInterrupt

    result = rehearse(edit(2), Settings(50), stop)
    assert result.interrupted
    assert len(result.played) == 3
    assert as_document(result)["summary"] == "interrupted after 3 of 50 runs"


def test_kinds_of_the_option_are_those_of_the_simulator() -> None:
    assert sorted(each.value for each in FaultKind) == sorted(KINDS)


# Ten edits of the examples.

EDITS = (
    ("rolling-update/1-create.yaml", "rolling-update/2-update.yaml"),
    ("rolling-update-percent/1-create.yaml", "rolling-update-percent/2-update.yaml"),
    ("update-chosen-instances/1-create.yaml", "update-chosen-instances/2-canary.yaml"),
    ("update-chosen-instances/2-canary.yaml", "update-chosen-instances/3-promote.yaml"),
    ("force-update/1-create.yaml", "force-update/2-hotfix.yaml"),
    ("scale/1-create.yaml", "scale/2-up.yaml"),
    ("scale/2-up.yaml", "scale/3-down.yaml"),
    ("kill/1-create.yaml", "kill/2-kill.yaml"),
    ("volumes/1-create.yaml", "volumes/2-scale-down.yaml"),
    ("configuration/1-create.yaml", "configuration/2-changed.yaml"),
)


def example(path: str) -> Document:
    documents = yaml.safe_load_all((EXAMPLES / path).read_text(encoding="utf-8"))
    tapp: Document = next(each for each in documents if each["kind"] == "TApp")
    tapp["metadata"]["namespace"] = "default"
    return tapp


@pytest.mark.parametrize(("before", "after"), EDITS)
def test_edits_of_the_examples_keep_the_promises(before: str, after: str) -> None:
    result = found(start(example(before), example(after)), size(6, 200))
    assert broken(result) == []
    assert [run.seed for run in result.everything if run.stuck] == []


# Known bugs, put back into the service.


def ignore_unready_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    """The budget counts each instance with a pod as available, also if the pod is not Ready."""
    from tapp import plan  # noqa: PLC0415 - the name is patched

    real = plan.serving_of

    def serving_of(*args: Any, **options: Any) -> Serving:
        _, instances, *_ = args
        serving = real(*args, **options)
        states = dict(serving.states)
        for each in instances:
            if each.pod is not None and each.should_run and not each.update.unfinished:
                states[each.id] = ServingState.AVAILABLE
        return Serving(states, serving.unsettled, serving.waits)

    monkeypatch.setattr(plan, "serving_of", serving_of)


def do_not_wait_for_availability(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Ready pod counts as available at once, whatever minReadySeconds says."""
    monkeypatch.setattr("tapp.decide.serving.available_in", lambda *_: 0.0)


def forget_to_leave_the_services(monkeypatch: pytest.MonkeyPatch) -> None:
    """Containers restart in place without leaving the Services first."""
    monkeypatch.setattr("tapp.decide.markers._Marking._drain", lambda *_: None)


def ignore_the_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    from tapp.decide import assembly  # noqa: PLC0415 - the name is patched

    real = assembly.partition_of
    monkeypatch.setattr(
        assembly,
        "partition_of",
        lambda world, records, instances: (real(world, records, instances)[0], instances),
    )


def delete_claims_of_missing_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    """The claim of an instance without a pod is deleted."""
    from tapp import plan  # noqa: PLC0415 - the name is patched

    real = plan.plan_claims

    def plan_claims(world: Any, waiting: Any) -> Any:
        result = real(world, waiting)
        missing = [
            claim
            for claim in result.keep
            if int(claim.metadata.name.rpartition("-")[2]) not in world.pods
        ]
        result.keep[:] = [claim for claim in result.keep if claim not in missing]
        result.delete.extend(missing)
        return result

    monkeypatch.setattr(plan, "plan_claims", plan_claims)


Bug = Callable[[pytest.MonkeyPatch], None]
BUGS: list[tuple[Bug, str, dict[str, Any]]] = [
    (ignore_unready_pods, "P2", {"updateStrategy": {"maxUnavailable": 1}}),
    (
        do_not_wait_for_availability,
        "P2",
        {"minReadySeconds": 10, "updateStrategy": {"maxUnavailable": 1}},
    ),
    (
        forget_to_leave_the_services,
        "P2",
        {
            "template": template("web:1", readinessGates=[{"conditionType": GATE}]),
            "updateStrategy": {"inPlaceUpdateStrategy": {"gracePeriodSeconds": 5}},
        },
    ),
    (ignore_the_partition, "P4", {"updateStrategy": {"partition": 2}}),
    (
        delete_claims_of_missing_pods,
        "P6",
        {
            "template": template(
                "web:1", container={"volumeMounts": [{"name": "data", "mountPath": "/data"}]}
            ),
            "volumeClaimTemplates": [claim_template("data", "1Gi")],
        },
    ),
]


@pytest.mark.parametrize(("bug", "promise", "spec"), BUGS)
def test_known_bug_is_found_within_200_runs(
    bug: Bug, promise: str, spec: Document, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each bug is put back into the service; without it the same runs keep all promises."""
    begin = edit(6, **spec)
    bug(monkeypatch)
    seeds = 0
    for first in range(1, 200, 10):
        result = found(begin, 10, seed=first)
        bad = [run for run in result.everything if run.violations]
        if bad:
            assert all(text.startswith(promise) for run in bad for text in run.violations)
            seeds = bad[-1].seed or first
            break
    assert seeds, "no run has found the bug"
    monkeypatch.undo()
    assert broken(found(begin, replay=seeds)) == []


# The command.


def files(folder: Path, replicas: int = 3) -> tuple[str, str]:
    """Writes a TApp and its edit to files, and returns their paths."""
    paths = []
    for name, image in (("old.yaml", "web:1"), ("new.yaml", "web:2")):
        path = folder / name
        tapp = manifest("web", replicas=replicas, template=template(image))
        path.write_text(yaml.safe_dump(tapp), encoding="utf-8")
        paths.append(str(path))
    return paths[0], paths[1]


@cache
def nowhere() -> StandIn:
    """Returns a fake kubectl of a cluster without TApps."""
    return StandIn(World(registration(), WsgiHook(lambda *_: [])))


def said(folder: Path, command: str, *words: str) -> Said:
    """Runs a command of the plugin with a TApp and its edit in files."""
    old, new = files(folder)
    return kubectl_tapp(nowhere(), command, "--from", old, "-f", new, *words)


def test_report_has_every_part_and_needs_no_cluster(tmp_path: Path) -> None:
    got = said(
        tmp_path, "rehearse", "--runs", "5", "--seed", "3", "--fault", "crash", "--faults", "2"
    )
    assert got.code == 0
    assert nowhere().calls == []
    assert got.lines[0].startswith("TApp default/web: 5 runs (seeds 3 to 7), each with 2 faults in")
    for part in ("fewest serving", "taken by the fault", "By kind of fault", "Broken promises",
                 "Stuck", "Data", "Assumed", "What this is", "no proof"):  # fmt: skip
        assert part in got.out, part


WORDS = (
    *("node-loss", "eviction", "node-pressure", "crash", "kubelet-restart", "failed-pull"),
    *("slow-pull", "slow-start", "refused-write", "stale-cache", "metacontroller-restart"),
    *("service-restart", "second-edit"),
)


def test_each_kind_of_fault_can_be_chosen(tmp_path: Path) -> None:
    assert list(WORDS) == [each.value for each in FaultKind]
    kinds = [word for each in WORDS for word in ("--fault", each)]
    got = said(tmp_path, "rehearse", *kinds, "--runs", "1", "-o", "json")
    assert sorted(json.loads(got.out)["kinds"]) == sorted(WORDS)


def test_replay_shows_the_run_step_by_step(tmp_path: Path) -> None:
    got = said(tmp_path, "rehearse", "--replay", "2", "--fault", "node-loss", "--within", "1s")
    assert got.lines[0].startswith("TApp default/web: the run of seed 2, with 1 fault in the first")
    assert "stops reporting" in got.out
    assert "reports again" in got.out
    assert "update Pod web-0: template 'default' changes the image" in got.out


@pytest.mark.parametrize(
    ("condition", "code"),
    [("unavailable>0", 3), ("unavailable>100%", 0), ("duration>1h", 0), ("duration>1s", 3),
     ("stuck", 0)],
)  # fmt: skip
def test_condition_of_fail_if_ends_with_code_3(tmp_path: Path, condition: str, code: int) -> None:
    got = said(
        tmp_path, "rehearse", "--runs", "2", "--fault", "kubelet-restart", "--fail-if", condition
    )
    assert got.code == code
    assert (f"--fail-if {condition}: it holds" in got.err) == bool(code)


def test_stuck_edit_fails_the_condition_stuck(tmp_path: Path) -> None:
    words = ("--runs", "1", "--assume-broken", "web:2", "--fail-if", "stuck")
    got = said(tmp_path, "rehearse", *words)
    assert got.code == 3
    assert "some instances:" in got.out or "instance 0:" in got.out


def test_condition_that_a_rehearsal_does_not_measure_is_refused(tmp_path: Path) -> None:
    got = said(tmp_path, "rehearse", "--fail-if", "recreate")
    assert got.code == 2
    assert "a rehearsal measures only unavailable, stuck, duration" in got.err


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_document_has_all_runs(tmp_path: Path, output: str) -> None:
    got = said(tmp_path, "rehearse", "--runs", "3", "--fault", "stale-cache", "-o", output)
    document = yaml.safe_load(got.out)
    assert [run["seed"] for run in document["runs"]] == [1, 2, 3]
    assert document["undisturbed"]["fewestServing"] == 2
    assert document["worst"]["timeline"]
    assert document["runs"][0]["brokenPromises"] == []


def test_page_has_no_scripts_and_shows_the_worst_run(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    assert said(tmp_path, "rehearse", "--runs", "2", "--html", str(path)).code == 0
    text = path.read_text(encoding="utf-8")
    assert "Rehearsal of TApp" in text
    assert "What happens" in text
    assert "<script" not in text


def test_edit_that_the_schema_refuses_is_not_rehearsed(tmp_path: Path) -> None:
    old, new = files(tmp_path)
    tapp = yaml.safe_load(Path(new).read_text(encoding="utf-8"))
    tapp["spec"]["replicas"] = -1
    Path(new).write_text(yaml.safe_dump(tapp), encoding="utf-8")
    got = kubectl_tapp(nowhere(), "rehearse", "--from", old, "-f", new)
    assert got.code == 1
    assert "this edit is refused" in got.out


def test_broken_promise_says_that_it_is_a_bug_and_how_to_report_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kubectl_tapp.forecast.promises.PromiseJudge._allowed", lambda *_: 0)
    got = said(tmp_path, "rehearse", "--runs", "1", "--fault", "crash")
    assert got.code == 1
    assert "P2: instance 0 is updated" in got.out
    assert "This is a bug of TApp or of its simulator, not of your edit." in got.out
    assert "--replay 1 -o json" in got.out


OPTIONS = (
    ("--image", "app=web:2"),
    ("--image", "app=web:2", "--template", "default"),
    ("--replicas", "3"),
    ("--partition", "1", "--image", "app=web:2"),
    ("--kill", "1"),
    ("--start", "1"),
    ("--restart",),
    ("--restart", "--in-place"),
    ("--use", "default=0"),
    ("--no-dry-run", "--replicas", "1"),
    ("--dry-run", "--replicas", "1"),
)


def test_tapp_of_a_cluster_is_rehearsed_with_the_options_of_plan() -> None:
    """Nothing is written, and each edit that `plan` takes is rehearsed."""
    standin = running(yaml.safe_dump(manifest("web", replicas=2, template=template("web:1"))))
    for words in OPTIONS:
        got = kubectl_tapp(standin, "rehearse", "web", *words, "--runs", "2", "-o", "json")
        assert got.code == 0, (words, got.err)
        assert json.loads(got.out)["undisturbed"]["brokenPromises"] == []
    assert standin.writes == []


def test_file_of_a_tapp_in_a_cluster_is_rehearsed(tmp_path: Path) -> None:
    _, new = files(tmp_path, 2)
    tapp = manifest("web", replicas=2, template=template("web:1"))
    standin = running(yaml.safe_dump(tapp))
    for words in (("--server-side", "--force-conflicts"), ("--no-server-side",)):
        got = kubectl_tapp(
            standin, "rehearse", "--filename", new, *words, "--runs", "1", "--output", "json"
        )
        assert got.code == 0, got.err
    assert standin.writes == []


def test_session_of_the_documentation_is_as_printed() -> None:
    ((command, shown),) = block("docs/rehearse.md: A session 1").steps
    words = command.split()
    assert words[:3] == ["kubectl", "tapp", "rehearse"]
    got = kubectl_tapp(nowhere(), *words[2:])
    assert got.code == 0
    assert [line.split() for line in got.lines if line] == [
        line.split() for line in shown.splitlines() if line
    ]


def test_page_of_the_documentation_lists_all_kinds_of_faults() -> None:
    page = (ROOT / "docs" / "rehearse.md").read_text(encoding="utf-8")
    rows = re.findall(r"(?m)^\| `([a-z][a-z-]+)` \|", page)
    assert rows == [each.value for each in FaultKind]
