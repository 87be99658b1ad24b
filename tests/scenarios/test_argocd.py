"""Tests Argo CD's health and actions: the shipped Lua scripts, run on TApps of the simulator.

`pytest tests/scenarios --update-golden` rewrites the documents and the ConfigMap.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_tapp.edit import edits
from tapp.words.vocabulary import GROUP, KIND, RESTARTED_AT
from tests.argocd_lua import V3_1_0, V3_1_1, ScriptError, Version, acted, run
from tests.builders import patch_between
from tests.scenarios.apps import tapp, template
from tests.scenarios.argocd import ARGO_CD, HEALTH, TAPP
from tests.scenarios.gitops import STATES, document
from tests.scenarios.life import Life

Document = dict[str, Any]

DISCOVERY = (TAPP / "actions" / "discovery.lua").read_text()
ACTIONS = {path.parent.name: path.read_text() for path in TAPP.glob("actions/*/action.lua")}


def loaded(path: Path) -> Any:
    return yaml.load(path.read_text(), yaml.CSafeLoader)


HEALTH_TESTS = loaded(TAPP / "health_test.yaml")["tests"]
TESTS = loaded(TAPP / "actions" / "action_test.yaml")


def state_of(case: Document) -> str:
    return Path(case["inputPath"]).stem


# --- health ---------------------------------------------------------------------------------------


def test_health_is_tested_for_every_state() -> None:
    assert [state_of(case) for case in HEALTH_TESTS] == list(STATES)


@pytest.mark.parametrize("case", HEALTH_TESTS, ids=state_of)
def test_health_of_a_state_is_as_recorded(case: Document, update_golden: bool) -> None:
    found = document(state_of(case))
    golden = TAPP / case["inputPath"]
    if update_golden:
        golden.write_text(yaml.safe_dump(found, sort_keys=False, width=100))
    assert found == loaded(golden)
    assert run(HEALTH, found) == case["healthStatus"]


def test_degraded_tapp_is_not_shown_as_progressing_or_suspended() -> None:
    """A broken rollout is Degraded even if Ready has the reason Paused.

    A sync wave has to fail instead of waiting forever.
    """
    found = document("broken")
    ready = next(each for each in found["status"]["conditions"] if each["type"] == "Ready")
    ready["reason"] = "Paused"
    assert run(HEALTH, found)["status"] == "Degraded"


def test_status_of_the_old_controller_is_shown_as_progressing() -> None:
    """A status without conditions, as the old controller wrote it, is shown as Progressing.

    A TApp has such a status before the first sync of this service.
    """
    found = document("healthy") | {"status": {"replicas": 3, "observedGeneration": 1}}
    assert run(HEALTH, found)["status"] == "Progressing"


# --- actions --------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", TESTS["discoveryTests"], ids=state_of)
def test_available_actions_of_a_state_are_as_recorded(case: Document) -> None:
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
def test_action_has_the_recorded_result(case: Document, version: Version) -> None:
    before = loaded(TAPP / "actions" / case["inputPath"])
    script, parameters = ACTIONS[case["action"]], case.get("parameters")
    if "expectedErrorMessage" in case:
        with pytest.raises(ScriptError, match=f"^{re.escape(case['expectedErrorMessage'])}$"):
            acted(script, before, parameters, version)
    else:
        expected = loaded(TAPP / "actions" / case["expectedOutputPath"])
        assert acted(script, before, parameters, version) == expected


def test_old_versions_of_argo_cd_ignore_the_removal_of_the_last_entry() -> None:
    """Removes the last entry of a map by a script: before Argo CD 3.1.1 the entry stays.

    An object that a script empties keeps its old content there, which the shipped actions have to
    avoid.
    """
    script = "obj.spec.statuses['1'] = nil\nreturn obj"
    before = tapp(replicas=3, statuses={"1": "Killed"})
    assert acted(script, before, version=V3_1_0) == before
    assert acted(script, before, version=V3_1_1)["spec"]["statuses"] == {}


_LAST: dict[str, tuple[str, Document, Document]] = {
    "start the last killed instance": (
        "start", {"statuses": {"1": "Killed"}}, {"statuses": None}
    ),
    "start one of two killed instances": (
        "start", {"statuses": {"1": "Killed", "2": "Killed"}}, {"statuses": {"1": None}}
    ),
    "resume, paused is the only field": (
        "resume", {"updateStrategy": {"paused": True}}, {"updateStrategy": {"paused": False}}
    ),
    "resume, not paused": ("resume", {"updateStrategy": {"paused": False}}, {}),
    "resume, another field remains": (
        "resume", {"updateStrategy": {"paused": True, "maxUnavailable": 2}},
        {"updateStrategy": {"paused": None}},
    ),
    "resume, empty strategy": ("resume", {"updateStrategy": {}}, {}),
    "resume, no strategy": ("resume", {}, {}),
    "kill, empty statuses": (
        "kill", {"statuses": {}}, {"statuses": {"1": "Killed"}}
    ),
    "pause, empty strategy": (
        "pause", {"updateStrategy": {}}, {"updateStrategy": {"paused": True}}
    ),
}  # fmt: skip


@VERSIONS
@pytest.mark.parametrize("name", _LAST)
def test_action_sends_the_same_patch_in_every_version_of_argo_cd(
    name: str, version: Version
) -> None:
    """Runs actions that remove the last entry of a map or the last field of an object.

    Each has the same patch in every version of Argo CD.
    """
    action, more, expected = _LAST[name]
    before = tapp(replicas=3, template=template(emptyDir={}), **more)
    after = acted(ACTIONS[action], before, {"instance": "1"}, version)
    assert patch_between(before, after).get("spec", {}) == expected


@pytest.mark.parametrize(
    "given", ["", "x", "-1", "3", "1.5", "0-1", "0,1", "all", "nan", "inf", "1e9"]
)
def test_kill_refuses_a_text_that_is_no_instance_number(given: str) -> None:
    with pytest.raises(ScriptError, match="give a number from 0 to 2"):
        run(ACTIONS["kill"], tapp(replicas=3), {"instance": given})


@pytest.mark.parametrize(("given", "key"), [("2", "2"), (" 2 ", "2"), ("02", "2")])
def test_kill_normalizes_the_instance_number(given: str, key: str) -> None:
    killed = acted(ACTIONS["kill"], tapp(replicas=3), {"instance": given})
    assert killed["spec"]["statuses"] == {key: "Killed"}


def test_kill_writes_the_highest_number_without_an_exponent() -> None:
    killed = acted(ACTIONS["kill"], tapp(replicas=50_000), {"instance": "49999"})
    assert killed["spec"]["statuses"] == {"49999": "Killed"}


def test_kill_changes_nothing_else_in_the_tapp() -> None:
    """Kills an instance of a TApp with unusual templates: the patch contains nothing but
    `statuses`.

    Lua must not change empty objects, numbers and lists of a pod template.
    """
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
def test_actions_have_the_same_results_as_the_commands_of_the_plugin(before: Document) -> None:
    """Compares the spec after each action with the spec after the plugin's edit of the same name.

    An empty object that only one of both leaves does not count as a difference.
    """

    def normalized(after: Document) -> Document:
        """Returns the spec without empty objects and without `paused: false`."""
        strategy = after["spec"].get("updateStrategy", {})
        running = {key: value for key, value in strategy.items() if value is not False}
        spec = after["spec"] | {"updateStrategy": running}
        return {key: value for key, value in spec.items() if value != {}}

    def act(action: str, **parameters: str) -> Document:
        return normalized(acted(ACTIONS[action], before, parameters))

    assert act("kill", instance="1") == normalized(edits.killed(before, [1]))
    if before["spec"].get("statuses"):
        assert act("start", instance="1") == normalized(edits.started(before, [1]))
    assert act("pause") == normalized(edits.paused(before))
    assert act("resume") == normalized(edits.resumed(before))
    restarted = acted(ACTIONS["restart"], before)
    at = restarted["spec"]["template"]["metadata"]["annotations"][RESTARTED_AT]
    assert normalized(restarted) == normalized(edits.restarted(before, ["default"], at))


@VERSIONS
def test_actions_have_their_effect_on_a_running_tapp(version: Version) -> None:
    life = Life().apply(tapp(replicas=4, templatePool={"b": template("b:1")}, templates={"3": "b"}))

    def act(action: str, **parameters: str) -> Document:
        """Runs an action as Argo CD does, waits, and returns the health."""
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


# --- the layout of Argo CD's repository -----------------------------------------------------------


def test_every_file_has_the_place_that_argo_cd_expects() -> None:
    """Compares the shipped files with the paths that Argo CD's own tests in `util/lua` use.

    All those tests passed with Argo CD 3.6. `restart` has no test there, because it writes the
    current time.
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


def test_test_files_have_only_keys_that_argo_cd_reads() -> None:
    """The files of Argo CD's tests have known keys only.

    Argo CD ignores other keys, so a test with a typo would check nothing.
    """
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


# --- the ConfigMap and the Application ------------------------------------------------------------


class MultilineText(str):
    """A text that `Writer` writes as a YAML block."""


class Writer(yaml.SafeDumper):
    """Writes YAML in which a `MultilineText`, such as a script, is a block."""


Writer.add_representer(
    MultilineText,
    lambda writer, text: writer.represent_scalar("tag:yaml.org,2002:str", text, style="|"),
)


def config_map() -> str:
    """Returns the ConfigMap `argocd-cm` with the scripts."""
    actions = {
        "discovery.lua": MultilineText(DISCOVERY),
        "definitions": [
            {"name": name, "action.lua": MultilineText(script)}
            for name, script in sorted(ACTIONS.items())
        ],
    }
    text = yaml.dump(actions, Dumper=Writer, sort_keys=False, width=100)
    data = {
        f"resource.customizations.health.{GROUP}_{KIND}": MultilineText(HEALTH),
        f"resource.customizations.actions.{GROUP}_{KIND}": MultilineText(text),
    }
    patch = {"data": data}
    return yaml.dump(patch, Dumper=Writer, sort_keys=False, width=100)


def test_config_map_has_the_shipped_scripts(update_golden: bool) -> None:
    """Compares the shipped ConfigMap `argocd-cm` with the scripts; users of Argo CD install the
    scripts with it.
    """
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


def test_application_ignores_the_fields_that_actions_write() -> None:
    """The example of an Application ignores exactly the fields that actions write.

    Otherwise a sync from Git would revert the actions.
    """
    application = loaded(ARGO_CD / "application.yaml")
    (ignored,) = application["spec"]["ignoreDifferences"]
    assert ignored["group"] == GROUP
    assert ignored["kind"] == KIND
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
