"""Tests `kubectl tapp plan`: its output for an edit, and its exit codes."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_tapp.commands import planning
from kubectl_tapp.forecast.forecast import Forecast, Outcome
from tests.builders import Document
from tests.plugin.fake_kubectl import Said, StandIn, kubectl_tapp
from tests.plugin.forecasts import foretell
from tests.scenarios.apps import stored, storing, tapp, template
from tests.scenarios.life import Life
from tests.sizes import size


@pytest.fixture
def web() -> StandIn:
    """Returns a fake kubectl for a TApp with claims that has run for ten minutes."""
    life = Life().apply(stored(replicas=4))
    life.world.run(600)
    return StandIn(life.world)


def life_of(document: Document, seconds: float = 600, **levers: Any) -> Life:
    """Returns a simulated cluster in which a TApp has run for `seconds` seconds.

    `levers` are settings of the simulated kubelets, for example images that cannot be pulled.
    """
    life = Life()
    for name, value in levers.items():
        setattr(life.world.kubelet.levers, name, value)
    life.begin(document).settle(allow_errors=True)
    life.world.run(seconds)
    return life


def changed(life: Life, **spec: Any) -> Document:
    """Returns the live TApp with other values of these fields of the spec."""
    return {**life.tapp, "spec": {**life.tapp["spec"], **spec}}


def outcomes(found: Forecast) -> dict[str, list[int]]:
    """Returns outcome -> numbers of the instances with this outcome in a forecast."""
    return {str(each): [i.id for i in found.of(each)] for each in Outcome if found.of(each)}


# --- outcomes -------------------------------------------------------------------------------------

ENV = {"env": [{"name": "LEVEL", "value": "debug"}]}
EDITS: dict[str, tuple[dict[str, Any], dict[str, list[int]]]] = {
    "nothing": ({}, {"unchanged": [0, 1, 2]}),
    "an image": ({"template": template("web:2")}, {"in place": [0, 1, 2]}),
    "a variable": ({"template": template("web:1", container=ENV)}, {"recreated": [0, 1, 2]}),
    "a default that is written out": (
        {"template": template("web:1", restartPolicy="Always", dnsPolicy="ClusterFirst")},
        {"labels only": [0, 1, 2]},
    ),
    "a default that is written out, and an image": (
        {"template": template("web:2", restartPolicy="Always")},
        {"in place": [0, 1, 2]},
    ),
    "more instances": ({"replicas": 5}, {"unchanged": [0, 1, 2], "created": [3, 4]}),
    "fewer instances": ({"replicas": 1}, {"unchanged": [0], "deleted": [1, 2]}),
    "a stopped instance": ({"statuses": {"1": "Killed"}}, {"unchanged": [0, 2], "deleted": [1]}),
    "another template for one": (
        {"templatePool": {"blue": template("web:3")}, "templates": {"2": "blue"}},
        {"unchanged": [0, 1], "in place": [2]},
    ),
    "a template that is not there": (
        {"templates": {"1": "bleu"}},
        {"unchanged": [0, 2], "waiting": [1]},
    ),
    "a pause": (
        {"template": template("web:2"), "updateStrategy": {"paused": True}},
        {"waiting": [0, 1, 2]},
    ),
    "a budget that is none": (
        {"template": template("web:2"), "updateStrategy": {"maxUnavailable": "many"}},
        {"waiting": [0, 1, 2]},
    ),
}


@pytest.mark.parametrize("case", EDITS)
def test_plan_has_the_outcome_of_each_instance(case: str) -> None:
    spec, expected = EDITS[case]
    life = life_of(tapp(replicas=3))
    assert outcomes(foretell(life, changed(life, **spec))) == expected


def test_reason_of_a_new_pod_is_the_changed_field() -> None:
    life = life_of(tapp(replicas=2))
    edited = changed(life, template=template("web:2", container=ENV))
    first = foretell(life, edited).instances[0]
    assert first.outcome == Outcome.RECREATED
    assert first.fields == ("spec.containers[web].env",)


def test_explicit_default_is_reported_as_no_change(web: StandIn) -> None:
    made = storing()
    edit = stored(
        replicas=4, template={**made, "spec": {**made["spec"], "dnsPolicy": "ClusterFirst"}}
    )
    said = kubectl_tapp(web, "plan", "web", "-f", "-", stdin=json.dumps(edit))
    assert "the pods stay as they are" in said.out
    assert "labels only" in said.out
    assert "replaces the pods" not in said.out


def test_plan_has_the_claims() -> None:
    policy = {"whenScaled": "Delete"}
    life = life_of(stored(replicas=2, persistentVolumeClaimRetentionPolicy=policy))
    down = foretell(life, changed(life, replicas=1))
    assert down.claims == {"data-web-0": "kept", "data-web-1": "deleted"}
    up = foretell(life, changed(life, replicas=3))
    assert up.claims["data-web-2"] == "created"


def test_plan_has_the_maximum_of_unavailable_instances_and_the_budget() -> None:
    life = life_of(tapp(replicas=6, updateStrategy={"maxUnavailable": "50%"}))
    found = foretell(life, changed(life, template=template("web:2")))
    assert found.unavailable_before == 0
    assert found.unavailable_worst == 3
    assert [(limit.value, limit.allowed) for limit in found.limits] == [("50%", 3)]
    assert [step.updated for step in found.steps] == [(0, 1, 2), (3, 4, 5)]


# --- broken instances -----------------------------------------------------------------------------


def test_broken_instances_use_up_the_budget_of_the_others() -> None:
    """Forecasts an update while two of five instances wait for an image that does not exist.

    All other instances wait, because the budget of one is used up.
    """
    pool = {"bad": template("gone:1")}
    spec = {"templatePool": pool, "templates": {"3": "bad", "4": "bad"}}
    life = life_of(tapp(replicas=5, **spec), bad_images={"gone:1"})
    found = foretell(life, changed(life, template=template("web:2")))
    assert outcomes(found) == {"unchanged": [3, 4], "waiting": [0, 1, 2]} or found.stuck
    assert found.unavailable_before == 2
    assert any("gone:1 cannot be pulled" in line for line in found.stuck)


def test_new_image_repairs_broken_instances() -> None:
    life = life_of(tapp("gone:1", replicas=2), bad_images={"gone:1"})
    found = foretell(life, changed(life, template=template("web:2")))
    assert outcomes(found) == {"in place": [0, 1]}
    assert found.stuck == ()
    assert all(spans[-1][1] == "available" for spans in found.states.values())


@pytest.mark.parametrize("lever", ["bad_images", "crashing_images", "unready_images"])
def test_image_that_fails_now_is_expected_to_fail_in_other_instances(lever: str) -> None:
    pool = {"bad": template("odd:1")}
    document = tapp(replicas=3, templatePool=pool, templates={"2": "bad"})
    life = life_of(document, **{lever: {"odd:1"}})
    found = foretell(life, changed(life, templates={"1": "bad", "2": "bad"}))
    assert any("odd:1 is assumed to fail" in note for note in found.notes)
    assert any("instance" in line and "1" in line for line in found.stuck)


def test_option_assumes_a_broken_image() -> None:
    life = life_of(tapp(replicas=3))
    edited = changed(life, template=template("web:2"))
    found = foretell(life, edited, broken=("web:2",))
    assert found.unavailable_worst == 1
    assert outcomes(found) == {"in place": [0], "waiting": [1, 2]}


# --- durations ------------------------------------------------------------------------------------


def test_durations_are_learned_from_this_tapp() -> None:
    """Forecasts an update of four pods that have taken 40 s each to become Ready, one by one.

    The forecast takes four times this duration.
    """
    probe = {"readinessProbe": {"httpGet": {"port": 80}, "periodSeconds": 1}}
    document = tapp(replicas=4, template=template("web:1", container=probe))
    life = life_of(document, ready_seconds=40.0)
    edited = changed(life, template=template("web:1", container=probe | ENV))
    found = foretell(life, edited)
    assert 160 <= found.duration <= 220
    assert "the median of 4 starts" in found.pace[0]


class Terminal(io.StringIO):
    """Replaces standard error, and claims to be a terminal."""

    def isatty(self) -> bool:
        """Returns True, as for a terminal."""
        return True


@pytest.mark.parametrize(
    ("stream", "shown"), [(Terminal, True), (io.StringIO, False)], ids=["a terminal", "a file"]
)
def test_progress_is_shown_only_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, stream: type[io.StringIO], shown: bool, web: StandIn
) -> None:
    monkeypatch.setattr("sys.stderr", stream())
    with planning.progress_line():
        kubectl_tapp(web, "list")
    assert ("playing the plan" in sys.stderr.getvalue()) is shown  # type: ignore[attr-defined]


# --- the command ---------------------------------------------------------------------------------


def test_image_of_the_command_line_is_planned(web: StandIn) -> None:
    said = kubectl_tapp(web, "plan", "web", "--image", "web=web:2")
    assert said.err == ""
    assert said.code == 0
    assert said.lines[0].startswith("TApp default/web: 4 in place, in about ")
    assert '    ~ spec.containers[web].image: "web:1" → "web:2"  # in place' in said.lines
    assert web.writes == []


def test_file_is_planned_like_kubectl_applies_it(web: StandIn, tmp_path: Path) -> None:
    file = tmp_path / "new.yaml"
    file.write_text(yaml.safe_dump(stored("web:1", replicas=2)))
    said = kubectl_tapp(web, "plan", "-f", str(file))
    assert said.lines[0].startswith("TApp default/web: 2 deleted")
    piped = kubectl_tapp(web, "plan", "web", "-f", "-", stdin=file.read_text())
    assert piped.out == said.out


def test_new_tapp_is_planned(web: StandIn, tmp_path: Path) -> None:
    file = tmp_path / "new.yaml"
    document = tapp(replicas=2)
    document["metadata"]["name"] = "fresh"
    file.write_text(yaml.safe_dump(document))
    said = kubectl_tapp(web, "plan", "-f", str(file), "--no-dry-run")
    assert said.lines[0].startswith("TApp default/fresh: 2 created")


def test_documents_have_the_plan(web: StandIn) -> None:
    said = kubectl_tapp(web, "plan", "web", "--replicas", "5", "-o", "json")
    document = json.loads(said.out)
    assert document["summary"].startswith("1 created, 1 claim created")
    assert document["claims"]["data-web-4"] == "created"
    assert [(each["allowed"], each["shouldRun"]) for each in document["limits"]] == [(1, 5)]
    assert yaml.safe_load(kubectl_tapp(web, "plan", "web", "--replicas", "5", "-o", "yaml").out)


def test_error_of_the_api_server_is_printed(web: StandIn) -> None:
    refusal = "Error from server (Forbidden): exceeded quota: pods, requested: pods=5, used: pods=9"
    web.failing["--dry-run=server"] = refusal.replace("Forbidden", "Invalid")
    said = kubectl_tapp(web, "plan", "web", "--replicas", "9")
    assert said.code == 1
    assert "exceeded quota" in said.out


CONDITIONS = {
    "unavailable>0": 3,
    "unavailable>=1": 3,
    "unavailable>25%": 0,
    "in-place": 3,
    "in-place>4": 0,
    "recreate": 0,
    "stuck": 0,
    "duration>1s": 3,
    "duration > 2h": 0,
    "delete-claim": 0,
}


@pytest.mark.parametrize("condition", CONDITIONS)
def test_fail_if_returns_the_exit_code_of_its_condition(web: StandIn, condition: str) -> None:
    said = kubectl_tapp(web, "plan", "web", "--image", "web=web:2", "--fail-if", condition)
    assert said.code == CONDITIONS[condition]
    assert (f"--fail-if {condition}: it holds" in said.err) is (said.code == 3)


WRONG: dict[str, tuple[list[str], str, int]] = {
    "no TApp": (["plan"], "name a TApp, or give a file with -f", 2),
    "an unknown name": (["plan", "wep", "--replicas", "1"], "did you mean 'web'?", 1),
    "two edits": (["plan", "web", "-f", "x.yaml", "--replicas", "2"], "not both", 2),
    "no file": (["plan", "-f", "/no/such.yaml"], "/no/such.yaml cannot be read", 1),
    "an unknown container": (["plan", "web", "--image", "wep=x"], "'wep'", 2),
    "ids that are not there": (["plan", "web", "--kill", "9"], "there is no instance 9", 2),
    "an unknown word": (["plan", "web", "--fail-if", "recreated"], "use one of recreate", 2),
    "no limit": (["plan", "web", "--fail-if", "unavailable"], "needs a limit", 2),
    "no unit": (["plan", "web", "--fail-if", "duration>10"], "needs a unit", 2),
    "a wrong unit": (["plan", "web", "--fail-if", "recreate>10m"], "takes no unit of time", 2),
    "a percentage": (["plan", "web", "--fail-if", "delete>10%"], "can be a percentage", 2),
    "nonsense": (["plan", "web", "--fail-if", "recreate >> 2"], "write WORD or WORD>NUMBER", 2),
}


@pytest.mark.parametrize("case", WRONG)
def test_invalid_input_is_one_error(web: StandIn, case: str) -> None:
    arguments, expected, code = WRONG[case]
    said = kubectl_tapp(web, *arguments)
    assert_refused(said, expected)
    assert said.code == code
    assert web.writes == []


FILES = {
    "not YAML": ("a: [", "is not YAML"),
    "another kind": ("kind: Deployment\napiVersion: apps/v1", "has no TApp: there is only Deploy"),
    "nothing": ("", "has no TApp: there is nothing"),
    "a list": ("- a", "is not a manifest: it contains list"),
    "another TApp": (
        "kind: TApp\napiVersion: apps.tkestack.io/v1\nmetadata: {name: x}", "has no TApp web",
    ),
    "no name": ("kind: TApp\napiVersion: apps.tkestack.io/v1", "without metadata.name"),
}  # fmt: skip


@pytest.mark.parametrize("case", FILES)
def test_invalid_file_is_one_error(web: StandIn, tmp_path: Path, case: str) -> None:
    text, expected = FILES[case]
    file = tmp_path / "new.yaml"
    file.write_text(text)
    assert_refused(kubectl_tapp(web, "plan", "web", "-f", str(file)), expected)


def assert_refused(said: Said, expected: str) -> None:
    """Checks that a call printed one error with the text `expected`, and nothing on standard
    output.
    """
    assert said.out == ""
    assert said.err.startswith("error: ")
    assert said.err.count("\n") == 1
    assert expected in said.err


def test_invalid_spec_is_refused() -> None:
    life = life_of(tapp(replicas=2))
    found = foretell(life, changed(life, replicas="two"))
    assert "replicas" in found.refused[0]


@pytest.mark.slow
def test_plan_supports_many_instances() -> None:
    """Forecasts an update of many instances with a budget of 10%: ten steps, each with a tenth of
    them.
    """
    count = size(100, 1000)
    life = Life(check_every=10**9)
    life.apply(stored(replicas=count, updateStrategy={"maxUnavailable": "10%"}))
    life.world.run(600)
    found = foretell(life, changed(life, template=storing("web:2")))
    assert found.unavailable_worst == count // 10
    assert [len(step.updated) for step in found.steps] == [count // 10] * 10
