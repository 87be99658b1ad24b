"""Argo CD's health and actions: the shipped Lua, run on what TApps really say.

`pytest tests/scenarios --update-golden` writes the documents and the ConfigMap anew.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_tapp.edit import edits
from tapp.words.vocabulary import GROUP, KIND, RESTARTED_AT
from tests.builders import patch_between
from tests.gopher import V3_1_0, V3_1_1, ScriptError, Version, acted, run
from tests.scenarios.apps import tapp, template
from tests.scenarios.gitops import STATES, document
from tests.scenarios.life import ROOT, Life

Document = dict[str, Any]

ARGO_CD = ROOT / "gitops" / "argocd"
TAPP = ARGO_CD / "resource_customizations" / GROUP / KIND
HEALTH = (TAPP / "health.lua").read_text()
DISCOVERY = (TAPP / "actions" / "discovery.lua").read_text()
ACTIONS = {path.parent.name: path.read_text() for path in TAPP.glob("actions/*/action.lua")}


def loaded(path: Path) -> Any:
    return yaml.load(path.read_text(), yaml.CSafeLoader)


HEALTH_TESTS = loaded(TAPP / "health_test.yaml")["tests"]
TESTS = loaded(TAPP / "actions" / "action_test.yaml")


def state_of(case: Document) -> str:
    return Path(case["inputPath"]).stem


# --- health ---------------------------------------------------------------------------------------


def test_every_state_has_its_health() -> None:
    assert [state_of(case) for case in HEALTH_TESTS] == list(STATES)


@pytest.mark.parametrize("case", HEALTH_TESTS, ids=state_of)
def test_health_of(case: Document, update_golden: bool) -> None:
    found = document(state_of(case))
    golden = TAPP / case["inputPath"]
    if update_golden:
        golden.write_text(yaml.safe_dump(found, sort_keys=False, width=100))
    assert found == loaded(golden)
    assert run(HEALTH, found) == case["healthStatus"]


def test_what_is_degraded_says_so_before_what_is_in_progress() -> None:
    """A sync wave has to fail rather than wait for ever."""
    found = document("broken")
    ready = next(each for each in found["status"]["conditions"] if each["type"] == "Ready")
    ready["reason"] = "Paused"
    assert run(HEALTH, found)["status"] == "Degraded"


def test_a_status_without_our_conditions_is_not_healthy() -> None:
    """The old controller's status, before the first sync by the new one."""
    found = document("healthy") | {"status": {"replicas": 3, "observedGeneration": 1}}
    assert run(HEALTH, found)["status"] == "Progressing"


# --- actions --------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", TESTS["discoveryTests"], ids=state_of)
def test_actions_of(case: Document) -> None:
    found = run(DISCOVERY, loaded(TAPP / "actions" / case["inputPath"]))
    expected = {each["name"]: {**each} for each in case["result"]}
    for name, action in expected.items():
        del action["name"]
        assert {key: value for key, value in found[name].items() if value is not False} == action
    assert set(found) == set(expected) == set(ACTIONS)


VERSIONS = pytest.mark.parametrize("version", [V3_1_0, V3_1_1], ids=["3.1.0", "3.1.1"])


@VERSIONS
@pytest.mark.parametrize(
    "case", TESTS["actionTests"], ids=lambda case: f"{case['action']}-{state_of(case)}"
)
def test_action(case: Document, version: Version) -> None:
    before = loaded(TAPP / "actions" / case["inputPath"])
    script, parameters = ACTIONS[case["action"]], case.get("parameters")
    if "expectedErrorMessage" in case:
        with pytest.raises(ScriptError, match=f"^{re.escape(case['expectedErrorMessage'])}$"):
            acted(script, before, parameters, version)
    else:
        expected = loaded(TAPP / "actions" / case["expectedOutputPath"])
        assert acted(script, before, parameters, version) == expected


def test_an_emptied_object_comes_back_in_old_versions() -> None:
    """The rule that the actions have to live with: a script that leaves one changes nothing."""
    script = "obj.spec.statuses['1'] = nil\nreturn obj"
    before = tapp(replicas=3, statuses={"1": "Killed"})
    assert acted(script, before, version=V3_1_0) == before
    assert acted(script, before, version=V3_1_1)["spec"]["statuses"] == {}


_LAST: dict[str, tuple[str, Document, Document]] = {
    "the last that was killed": (
        "start", {"statuses": {"1": "Killed"}}, {"statuses": None}
    ),
    "one of two": (
        "start", {"statuses": {"1": "Killed", "2": "Killed"}}, {"statuses": {"1": None}}
    ),
    "paused alone": (
        "resume", {"updateStrategy": {"paused": True}}, {"updateStrategy": {"paused": False}}
    ),
    "paused false alone": ("resume", {"updateStrategy": {"paused": False}}, {}),
    "paused beside another field": (
        "resume", {"updateStrategy": {"paused": True, "maxUnavailable": 2}},
        {"updateStrategy": {"paused": None}},
    ),
    "an empty strategy": ("resume", {"updateStrategy": {}}, {}),
    "no strategy": ("resume", {}, {}),
    "kill beside an empty map": (
        "kill", {"statuses": {}}, {"statuses": {"1": "Killed"}}
    ),
    "pause beside an empty strategy": (
        "pause", {"updateStrategy": {}}, {"updateStrategy": {"paused": True}}
    ),
}  # fmt: skip


@VERSIONS
@pytest.mark.parametrize("name", _LAST)
def test_an_action_sends_the_same_patch_in_every_version(name: str, version: Version) -> None:
    """Also if it takes the last entry of a map, or the last field of an object."""
    action, more, expected = _LAST[name]
    before = tapp(replicas=3, template=template(emptyDir={}), **more)
    after = acted(ACTIONS[action], before, {"instance": "1"}, version)
    assert patch_between(before, after).get("spec", {}) == expected


@pytest.mark.parametrize(
    "given", ["", "x", "-1", "3", "1.5", "0-1", "0,1", "all", "nan", "inf", "1e9"]
)
def test_no_instance_is_killed_that_is_not_there(given: str) -> None:
    with pytest.raises(ScriptError, match="give a number from 0 to 2"):
        run(ACTIONS["kill"], tapp(replicas=3), {"instance": given})


@pytest.mark.parametrize(("given", "key"), [("2", "2"), (" 2 ", "2"), ("02", "2")])
def test_the_number_of_an_instance_is_written_in_one_way(given: str, key: str) -> None:
    killed = acted(ACTIONS["kill"], tapp(replicas=3), {"instance": given})
    assert killed["spec"]["statuses"] == {key: "Killed"}


def test_the_highest_number_is_written_in_full() -> None:
    killed = acted(ACTIONS["kill"], tapp(replicas=50_000), {"instance": "49999"})
    assert killed["spec"]["statuses"] == {"49999": "Killed"}


def test_an_action_changes_nothing_else() -> None:
    """Empty objects, numbers and lists of a pod template come back as they were."""
    odd = template(
        container={
            "args": [],
            "ports": [{"containerPort": 80}],
            "resources": {"limits": {"cpu": 0.5, "memory": 1 << 33}},
            "stdin": True,
        },
        emptyDir={},
        volumes=[{"name": "a", "emptyDir": {}}, {"name": "b", "emptyDir": {}}],
    )
    before = tapp(replicas=3, template=odd, templatePool={"b": odd}, templates={"2": "b"})
    after = acted(ACTIONS["kill"], before, {"instance": "0"})
    assert patch_between(before, after) == {"spec": {"statuses": {"0": "Killed"}}}


@pytest.mark.parametrize(
    "before",
    [
        tapp(replicas=3),
        tapp(replicas=3, statuses={"1": "Killed"}, updateStrategy={"paused": True}),
        tapp(replicas=3, statuses={"1": "Killed", "2": "Killed"}, updateStrategy={"template": "b"}),
    ],
    ids=["running", "killed and paused", "two killed"],
)
def test_actions_are_those_of_the_plugin(before: Document) -> None:
    """Or they would mean two things. An object that is left empty may stay or go."""

    def told(after: Document) -> Document:
        """The edited spec, without what is empty and without `paused: false`."""
        strategy = after["spec"].get("updateStrategy", {})
        running = {key: value for key, value in strategy.items() if value is not False}
        spec = after["spec"] | {"updateStrategy": running}
        return {key: value for key, value in spec.items() if value != {}}

    def act(action: str, **parameters: str) -> Document:
        return told(acted(ACTIONS[action], before, parameters))

    assert act("kill", instance="1") == told(edits.killed(before, [1]))
    if before["spec"].get("statuses"):
        assert act("start", instance="1") == told(edits.started(before, [1]))
    assert act("pause") == told(edits.paused(before))
    assert act("resume") == told(edits.resumed(before))
    restarted = acted(ACTIONS["restart"], before)
    at = restarted["spec"]["template"]["metadata"]["annotations"][RESTARTED_AT]
    assert told(restarted) == told(edits.restarted(before, ["default"], at))


@VERSIONS
def test_actions_do_to_a_running_tapp_what_they_say(version: Version) -> None:
    life = Life().apply(tapp(replicas=4, templatePool={"b": template("b:1")}, templates={"3": "b"}))

    def act(action: str, **parameters: str) -> Document:
        """Runs an action as Argo CD does, and waits."""
        before = life.tapp
        patch: Document = patch_between(before, acted(ACTIONS[action], before, parameters, version))
        life.world.patch(KIND, "web", patch)
        life.settle()
        health: Document = run(HEALTH, life.tapp)
        return health

    born = life.uids()
    assert act("kill", instance="1")["status"] == "Healthy"
    assert life.uids() == {id: uid for id, uid in born.items() if id != 1}
    assert act("start", instance="1")["status"] == "Healthy"
    assert sorted(life.pods) == [0, 1, 2, 3]
    act("pause")
    life.patch(template=template("web:2"))
    assert life.images() == "web:1 web:1 web:1 b:1"
    assert run(HEALTH, life.tapp)["status"] == "Suspended"
    assert act("resume")["status"] == "Healthy"
    assert life.images() == "web:2 web:2 web:2 b:1"
    born = life.uids()
    life.watch_readiness()
    assert act("restart")["status"] == "Healthy"
    assert not set(born.values()) & set(life.uids().values())
    assert life.fewest_ready >= 2
    stamped = life.tapp["spec"]["templatePool"]["b"]["metadata"]["annotations"][RESTARTED_AT]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", stamped)


# --- the layout of Argo CD's own repository -------------------------------------------------------


def test_every_file_has_its_place_and_its_use() -> None:
    """As `util/lua`'s own tests walk through them; all of these passed there (Argo CD 3.6).

    But for `restart`: it writes the time, which those tests overlook only for kinds that they name.
    """
    states = {f"testdata/{state}.yaml" for state in STATES}
    tests = [*TESTS["discoveryTests"], *TESTS["actionTests"]]
    used = {
        case[key] for case in tests for key in ("inputPath", "expectedOutputPath") if key in case
    }
    wanted = {
        *("health.lua", "health_test.yaml", "actions/discovery.lua", "actions/action_test.yaml"),
        *(f"actions/{name}/action.lua" for name in ACTIONS),
        *states,
        *(f"actions/{path}" for path in used),
    }
    found = {str(path.relative_to(TAPP)) for path in TAPP.rglob("*") if path.is_file()}
    assert found == wanted
    assert {case["action"] for case in TESTS["actionTests"]} == set(ACTIONS) - {"restart"}


def test_tests_have_the_keys_that_argo_cd_reads() -> None:
    """It takes no notice of others, so a mistyped one would test nothing."""
    keys = {
        "tests": (HEALTH_TESTS, {"inputPath", "healthStatus"}),
        "discoveryTests": (TESTS["discoveryTests"], {"inputPath", "result"}),
        "actionTests": (
            TESTS["actionTests"],
            {"action", "inputPath", "expectedOutputPath", "expectedErrorMessage", "parameters"},
        ),
    }
    for cases, known in keys.values():
        assert [case for case in cases if not set(case) <= known] == []
    assert set(TESTS) == {"discoveryTests", "actionTests"}
    for case in HEALTH_TESTS:
        assert set(case["healthStatus"]) == {"status", "message"}


# --- what is installed ----------------------------------------------------------------------------


class Block(str):
    """A text that is written in lines, as a person would."""


class Writer(yaml.SafeDumper):
    """Writes scripts in lines."""


Writer.add_representer(
    Block, lambda writer, text: writer.represent_scalar("tag:yaml.org,2002:str", text, style="|")
)


def config_map() -> str:
    """`argocd-cm` with the scripts."""
    actions = {
        "discovery.lua": Block(DISCOVERY),
        "definitions": [
            {"name": name, "action.lua": Block(script)} for name, script in sorted(ACTIONS.items())
        ],
    }
    text = yaml.dump(actions, Dumper=Writer, sort_keys=False, width=100)
    data = {
        f"resource.customizations.health.{GROUP}_{KIND}": Block(HEALTH),
        f"resource.customizations.actions.{GROUP}_{KIND}": Block(text),
    }
    patch = {"data": data}
    return yaml.dump(patch, Dumper=Writer, sort_keys=False, width=100)


def test_the_config_map_has_the_scripts(update_golden: bool) -> None:
    """Argo CD reads them from `argocd-cm`; its own tree has them as files."""
    path = ARGO_CD / "argocd-cm.yaml"
    heading = path.read_text().partition("data:\n")[0]
    if update_golden:
        path.write_text(heading + config_map())
    assert path.read_text() == heading + config_map()
    data = loaded(path)["data"]
    assert data[f"resource.customizations.health.{GROUP}_{KIND}"] == HEALTH
    actions = yaml.safe_load(data[f"resource.customizations.actions.{GROUP}_{KIND}"])
    assert actions["discovery.lua"] == DISCOVERY
    assert {each["name"]: each["action.lua"] for each in actions["definitions"]} == ACTIONS


def test_the_application_leaves_to_actions_what_they_write() -> None:
    """A sync leaves alone what Git does not have of them; what Git has, it must not set back."""
    application = loaded(ARGO_CD / "application.yaml")
    (ignored,) = application["spec"]["ignoreDifferences"]
    assert (ignored["group"], ignored["kind"]) == (GROUP, KIND)
    assert "RespectIgnoreDifferences=true" in application["spec"]["syncPolicy"]["syncOptions"]
    before = tapp(replicas=3, statuses={"0": "Killed"}, updateStrategy={"paused": True})
    written = set()
    for action, parameters in (
        ("kill", {"instance": "1"}),
        ("start", {"instance": "0"}),
        ("resume", {}),
    ):
        patch = patch_between(before, acted(ACTIONS[action], before, parameters))
        written |= set(re.findall(r'"(statuses|paused)"', json.dumps(patch)))
    assert written == {"statuses", "paused"}
    assert {path.rpartition("/")[2] for path in ignored["jsonPointers"]} == written
