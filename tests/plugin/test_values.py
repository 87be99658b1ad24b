"""Tests values of instances (`spec.values`) in the plugin: set, shown, planned, and rolled back."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders import manifest, template
from tests.plugin.clusters import spec_of
from tests.plugin.fake_kubectl import StandIn, kubectl_tapp
from tests.scenarios.life import Life, registration

Document = dict[str, Any]


def env(value: str, image: str = "nginx:1") -> Document:
    return template(image, container={"env": [{"name": "OWN", "value": value}]})


OWN = env("$(tapp.values.a)")


def running(**spec: Any) -> StandIn:
    """Returns a fake kubectl for a running TApp `web` with four instances, whose template reads the
    value `a`.
    """
    given = {"replicas": 4, "template": OWN, "defaultValues": {"a": "x"}, **spec}
    return StandIn(Life().apply(manifest(**given)).world)


SET: dict[str, tuple[list[str], Document, Document]] = {
    "of some": (["1,3", "a=b"], {"1": {"a": "b"}, "2": {"c": "d"}, "3": {"a": "b"}}, {"a": "x"}),
    "of one that has another": (["2", "a=b"], {"2": {"a": "b", "c": "d"}}, {"a": "x"}),
    "with an equals sign": (["0", "a=b=c"], {"0": {"a": "b=c"}, "2": {"c": "d"}}, {"a": "x"}),
    "to nothing": (["0", "a="], {"0": {"a": ""}, "2": {"c": "d"}}, {"a": "x"}),
    "taken away": (["all", "c-"], {}, {"a": "x"}),
    "by default": (["--default", "a=z", "b=y"], {"2": {"c": "d"}}, {"a": "z", "b": "y"}),
}


@pytest.mark.parametrize("case", SET)
def test_values_are_set(case: str) -> None:
    words, values, defaults = SET[case]
    web = running(values={"2": {"c": "d"}})
    said = kubectl_tapp(web, "set", "value", "web", *words, "-y")
    assert said.err == ""
    assert said.code == 0
    spec = spec_of(web)
    assert spec["values"] == values
    assert spec["defaultValues"] == defaults


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["1"], "no value is given: write KEY=TEXT to set a value, or KEY- to remove it"),
        (["a=b"], "name either instances or --default"),
        (["1", "--default", "a=b"], "name either instances or --default"),
        (["1", "a b=c"], "'a b' is not a valid key"),
        (["1", "a=b", "a-"], "the value 'a' is given twice"),
        (["9", "a=b"], "there is no instance 9"),
    ],
    ids=[
        "no value",
        "no instance",
        "instance and default",
        "invalid key",
        "key given twice",
        "unknown instance",
    ],
)
def test_invalid_arguments_are_refused(words: list[str], said: str) -> None:
    web = running()
    found = kubectl_tapp(web, "set", "value", "web", *words, "-y")
    assert found.code == 2
    assert said in found.err
    assert web.writes == []


def test_plan_has_the_value_and_its_effect_on_each_instance() -> None:
    said = kubectl_tapp(running(), "set", "value", "web", "1,3", "a=b", "--dry-run=client")
    assert '+ spec.values: {"1":{"a":"b"},"3":{"a":"b"}}' in said.out
    because = "template default: replaced because of spec.containers[app].env[OWN].value"
    assert f"1, 3 (2)  recreated  {because}" in said.out
    assert "0, 2 (2)  unchanged" in said.out


def test_plan_of_a_move_from_templates_to_values_names_the_differences(tmp_path: Any) -> None:
    pool = {"a": env("a"), "b": env("b"), "c": env("c")}
    names = {"0": "a", "1": "b", "2": "c"}
    life = Life().apply(manifest(replicas=3, template=None, templatePool=pool, templates=names))
    file = tmp_path / "one.yaml"
    values = "'0': {a: a}, '1': {a: b}, '2': {a: %s}"
    text = """apiVersion: apps.tkestack.io/v1
kind: TApp
metadata: {name: web}
spec:
  replicas: 3
  values: {VALUES}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: app, image: 'nginx:1', env: [{name: OWN, value: $(tapp.values.a)}]}]
"""
    for third, expected in (
        ("c", "0-2 (3) unchanged"),
        (
            "d",
            "2 recreated template default: replaced because of spec.containers[app].env[OWN].value",
        ),
    ):
        file.write_text(text.replace("VALUES", values % third))
        said = kubectl_tapp(StandIn(life.world), "plan", "-f", str(file))
        assert expected in " ".join(said.out.split())


def test_values_are_listed_with_their_references() -> None:
    web = running(values={"1": {"a": "y"}, "2": {"b": "z"}}, defaultValues=None)
    said = kubectl_tapp(web, "values", "web")
    assert [line.split() for line in said.lines] == [
        ["INSTANCES", "KEY", "VALUE", "FIRST", "USED", "AT"],
        ["0,", "2,", "3", "a", "(missing)", "spec.containers[0].env[0].value"],
        ["1", "a", "y", "spec.containers[0].env[0].value"],
        ["2", "b", "z", "(no", "template", "uses", "it)"],
    ]


def test_missing_values_are_reported() -> None:
    web = StandIn(Life().apply(manifest()).world)
    assert kubectl_tapp(web, "values", "web").lines == [
        "web has no values, and its templates use none."
    ]


def test_rollback_restores_values_only_with_its_option() -> None:
    web = running()
    kubectl_tapp(web, "set", "value", "web", "1", "a=b", "-y", "--wait")
    kubectl_tapp(web, "set", "image", "web", "app=nginx:2", "-y", "--wait")
    kubectl_tapp(web, "rollback", "web", "-y", "--wait")
    spec = spec_of(web)
    assert spec["template"]["spec"]["containers"][0]["image"] == "nginx:1"
    assert spec["values"] == {"1": {"a": "b"}}
    said = kubectl_tapp(web, "rollback", "web", "--to", "1", "--with-values", "-y", "--wait")
    assert said.code == 0
    assert spec_of(web)["values"] == {}
    assert spec_of(web)["template"] == OWN


def test_edit_of_only_values_is_in_the_history_and_can_be_rolled_back() -> None:
    web = running(values={"1": {"other": "kept"}})
    kubectl_tapp(web, "set", "value", "web", "1,3", "a=b", "-y", "--wait")
    history = kubectl_tapp(web, "history", "web").lines
    assert "value a of 1, 3" in history[-1]
    assert history[-1].endswith("kubectl tapp set value web 1,3 a=b")
    assert [line.startswith("*") for line in history[1:]] == [False, True]
    none = kubectl_tapp(web, "rollback", "web", "-y")
    assert "revision 1 differs only in values, which --with-values restores" in none.err
    said = kubectl_tapp(web, "rollback", "web", "--with-values", "-y", "--wait")
    assert said.code == 0
    assert spec_of(web)["values"] == {"1": {"other": "kept"}}


def test_history_marks_only_the_newest_of_two_revisions_that_fill_in_a_template_alike() -> None:
    """An instance that leaves a template makes an older revision equal to the newest one.

    The newest revision has a value of instance 0, which does not run the template any more.
    """
    web = running(templatePool={"v2": template("nginx:2")})
    kubectl_tapp(web, "set", "value", "web", "0", "a=b", "-y", "--wait")
    kubectl_tapp(web, "use", "web", "v2", "0", "-y", "--wait")
    found = json.loads(kubectl_tapp(web, "history", "web", "-o", "json").out)
    assert [each["revision"] for each in found if each["current"]] == [2, 3]
    marked = [line[0] for line in kubectl_tapp(web, "history", "web").lines[1:]]
    assert marked == [" ", "*", "*"]
    shown = [kubectl_tapp(web, "history", "web", "--revision", number).lines[0] for number in "12"]
    assert [line.endswith("which is there now") for line in shown] == [False, True]


def test_rollback_keeps_values_that_the_history_lacks() -> None:
    """A rollback `--with-values` keeps the current values if the revision has no values.

    The history has no values above 64 KiB, and a rollback must not remove them.
    """
    long = {str(id): {"a": f"{id}" + "x" * 1000} for id in range(70)}
    web = running(replicas=1, values=long)
    kubectl_tapp(web, "set", "image", "web", "app=nginx:2", "-y", "--wait")
    said = kubectl_tapp(web, "rollback", "web", "--with-values", "-y")
    assert "the history has no values for this revision" in said.err
    assert spec_of(web)["values"] == long


# --- Services of instances ------------------------------------------------------------------------

GUARDED = {"maxUnavailable": 1}
EXPOSED = {"spec": {"ports": [{"port": "8$(tapp.index)"}]}}


def exposing(**spec: Any) -> StandIn:
    """Returns a fake kubectl for a TApp of three instances, with the component services."""
    life = Life(exposing=True).apply(registration(exposing=True))
    return StandIn(life.apply(manifest(replicas=3, template=template(), **spec)).world)


def planned(standin: StandIn, place: Path, **spec: Any) -> str:
    """Returns the first line of `plan -f` for a TApp with these fields in its spec."""
    file = place / "tapp.yaml"
    file.write_text(json.dumps(manifest(**{"replicas": 3, "template": template(), **spec})))
    found = kubectl_tapp(standin, "plan", "-f", str(file))
    assert found.code == 0, found.err
    return str(found.out.splitlines()[0])


def test_plan_has_created_changed_and_deleted_services(tmp_path: Path) -> None:
    web = exposing()
    assert planned(web, tmp_path, serviceTemplate=EXPOSED).endswith("web: 3 Services created")
    web = exposing(serviceTemplate=EXPOSED)
    assert planned(web, tmp_path, serviceTemplate=EXPOSED).endswith("web: nothing changes")
    other = {"spec": {"ports": [{"port": 90}]}}
    assert planned(web, tmp_path, serviceTemplate=other).endswith("web: 3 Services changed")
    assert planned(web, tmp_path).endswith("web: 3 Services deleted")


def test_component_is_recognized_without_permission_for_the_registration() -> None:
    web = exposing(serviceTemplate=EXPOSED)
    web.forbid("get compositecontrollers.metacontroller.k8s.io")
    assert "ServicesNotCreated" not in kubectl_tapp(web, "status", "web").out


# --- the budget of evictions ----------------------------------------------------------------------


def test_plan_has_the_new_number_of_the_disruption_budget(tmp_path: Path) -> None:
    """An edit creates, changes or deletes the PodDisruptionBudget, and the plan says so."""
    web = exposing()
    found = planned(web, tmp_path, disruptionBudget=GUARDED)
    assert found.endswith("web: PodDisruptionBudget created (minAvailable 2)")
    web = exposing(disruptionBudget=GUARDED)
    assert planned(web, tmp_path, disruptionBudget=GUARDED).endswith("web: nothing changes")
    found = planned(web, tmp_path, disruptionBudget=GUARDED, statuses={"2": "Killed"})
    assert "PodDisruptionBudget changed (minAvailable 2 to 1)" in found
    assert planned(web, tmp_path).endswith("web: PodDisruptionBudget deleted")


def test_plan_reports_a_missing_component_for_disruption_budgets(tmp_path: Path) -> None:
    life = Life().apply(registration())
    web = StandIn(life.apply(manifest(replicas=3, template=template())).world)
    file = tmp_path / "tapp.yaml"
    spec = {"replicas": 3, "template": template(), "disruptionBudget": {}}
    file.write_text(json.dumps(manifest(**spec)))
    found = kubectl_tapp(web, "plan", "-f", str(file)).out
    assert "DisruptionBudgetNotApplied: no PodDisruptionBudget is created" in found


def test_why_and_status_say_how_many_instances_may_be_evicted() -> None:
    web = exposing(disruptionBudget=GUARDED, statuses={"2": "Killed"})
    sentence = (
        "evictions: disruptionBudget.maxUnavailable 1 of 2 instances: 1 must stay available; 2 are "
        "available, so 1 may become unavailable"
    )
    for command in ("status", "why"):
        assert sentence in kubectl_tapp(web, command, "web").out


def test_status_has_no_line_about_evictions_that_nothing_limits() -> None:
    life = Life().apply(registration())
    spec = {"replicas": 3, "template": template(), "disruptionBudget": GUARDED}
    web = StandIn(life.apply(manifest(**spec)).world)
    said = kubectl_tapp(web, "status", "web").out
    assert "DisruptionBudgetNotApplied: no PodDisruptionBudget is created" in said
    assert "evictions:" not in said


def test_component_for_disruption_budgets_is_recognized_without_the_registration() -> None:
    web = exposing(disruptionBudget={})
    web.forbid("get compositecontrollers.metacontroller.k8s.io")
    assert "DisruptionBudgetNotApplied" not in kubectl_tapp(web, "status", "web").out
