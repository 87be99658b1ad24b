"""Tests that the short forecast of a long rollout has the same result as a full one.

A short forecast simulates only some turns: updates of as many instances as the budget allows. The
others are assumed to be alike.
"""

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubectl_tapp.forecast import turns
from kubectl_tapp.forecast.forecast import Forecast, InstanceForecast
from tests.builders import claim_template, manifest
from tests.plugin.fake_kubectl import StandIn, kubectl_tapp
from tests.plugin.forecasts import foretell
from tests.scenarios.apps import storing, template
from tests.scenarios.life import Document, Life
from tests.sizes import cases, size

PROBE = {"readinessProbe": {"httpGet": {"port": 80}, "periodSeconds": 1}}
SLOW_PROBE = {"readinessProbe": {"httpGet": {"port": 80}, "periodSeconds": 7}}
STARTUP = {"startupProbe": {"httpGet": {"port": 80}, "periodSeconds": 3}}
GATE = {"readinessGates": [{"conditionType": "apps.tkestack.io/InPlaceUpdateReady"}]}


GONE = "gone:1"
BROKEN = (GONE, "web:none")
"""Images that do not become Ready."""
ROW = size(24, 80)
"""Instances of which a forecast plays 9 one by one."""
BY_TWO = size(40, 120)
"""18 here."""
LATE = size(22, 50)
"""One far behind the turns that are played."""


def life_of(replicas: int, **spec: Any) -> Life:
    """Returns a simulated cluster in which a TApp has run for ten minutes; `spec` has fields of its
    spec.
    """
    given = {"template": template("web:1", container=PROBE), **spec}
    life = Life(check_every=10**9)
    life.begin(manifest(replicas=replicas, **given)).settle(allow_errors=True)
    life.world.run(600)
    return life


def with_image(tapp: Document, name: str = "") -> None:
    """Changes the image of a template, which is an update in place; "" stands for the default
    template.
    """
    spec = tapp["spec"]
    body = spec["templatePool"][name] if name else spec["template"]
    body["spec"]["containers"][0]["image"] = "web:2"


def with_variable(tapp: Document) -> None:
    """Adds an environment variable to the default template, so that each instance needs a new
    pod.
    """
    tapp["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "A", "value": "1"}]


def edited(life: Life, edit: Callable[[Document], None]) -> Document:
    """Returns a copy of the live TApp after an edit."""
    document = copy.deepcopy(life.tapp)
    edit(document)
    return document


def both(life: Life, edit: Callable[[Document], None]) -> tuple[Forecast, Forecast]:
    """Returns the short forecast of an edit, and the full one, which simulates every step."""
    document = edited(life, edit)
    short = foretell(life, document, broken=BROKEN)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(turns, "SIMULATED_BUDGETS", 10**6)
        return short, foretell(life, document, broken=BROKEN)


def outcome_of(each: InstanceForecast) -> InstanceForecast:
    """Returns the forecast of an instance without its times."""
    return replace(each, began=None, done=None)


def assert_alike(short: Forecast, full: Forecast) -> None:
    """Checks that the short and the full forecast have equal results and similar durations.

    The short forecast has only the first steps of the full one.
    """
    for name in (
        *("claims", "services", "stuck", "paused", "refusals", "refused", "limits", "should_run"),
        *("unavailable_before", "unavailable_worst", "notes"),
    ):
        assert getattr(short, name) == getattr(full, name), name
    assert [outcome_of(each) for each in short.instances] == [
        outcome_of(each) for each in full.instances
    ]
    assert short.duration == pytest.approx(full.duration, rel=0.06)
    assert short.steps == full.steps[: len(short.steps)] or short.rest is None


def and_scaled(tapp: Document) -> None:
    with_image(tapp)
    tapp["spec"]["replicas"] += 3


def and_killed(tapp: Document) -> None:
    with_variable(tapp)
    tapp["spec"]["statuses"] = {"4": "Killed", str(LATE): "Killed"}


def in_two_groups(tapp: Document) -> None:
    with_image(tapp)
    with_image(tapp, "v2")


TWO: Document = {
    "templatePool": {"v2": template("web:1", container=PROBE)},
    "templates": {str(id): "v2" for id in range(20, 25)},
    "updateStrategy": {"maxUnavailable": 1, "forceUpdate": {"maxUnavailable": "2%"}},
}
MIXED: Document = {
    "templatePool": {"v2": template("web:1", container=PROBE), "v3": template("web:1")},
    "templates": {str(id): "v3" if id == ROW - 1 else "v2" for id in range(ROW)},
    "updateStrategy": {"forceUpdate": {"maxUnavailable": 1}},
}


def and_typo(tapp: Document) -> None:
    """Changes the image of template `v2`, and gives template `v3`, which one instance runs, a
    missing image.
    """
    with_image(tapp, "v2")
    tapp["spec"]["templatePool"]["v3"]["spec"]["containers"][0]["image"] = GONE


OWN: Document = {
    "template": template("web:$(tapp.values.tag)", container=PROBE),
    "defaultValues": {"tag": "1"},
}


def and_one_value(tapp: Document) -> None:
    """Gives all instances another image by a value of `spec.values`; the image of the last instance
    is missing.
    """
    tapp["spec"]["defaultValues"] = {"tag": "2"}
    tapp["spec"]["values"] = {str(ROW - 1): {"tag": "none"}}


def with_claim(tapp: Document) -> None:
    """Adds a claim template, so that each instance needs a new pod with a new claim."""
    tapp["spec"]["template"] = storing("web:1", **PROBE)
    tapp["spec"]["volumeClaimTemplates"] = [claim_template()]


CASES: dict[str, tuple[int, Document, Callable[[Document], None]]] = {
    "in place": (ROW, {}, with_image),
    "new pods": (ROW, {}, with_variable),
    "in place, two at a time": (BY_TWO, {"updateStrategy": {"maxUnavailable": 2}}, with_image),
    "new pods, a percentage": (
        size(60, 150), {"updateStrategy": {"maxUnavailable": "2%"}}, with_variable,
    ),
    "in place, and each counts after a while": (ROW, {"minReadySeconds": 7}, with_image),
    "new pods, and each counts after a while": (ROW, {"minReadySeconds": 7}, with_variable),
    "a probe that looks rarely": (
        ROW, {"template": template("web:1", container=SLOW_PROBE)}, with_image,
    ),
    "a startup probe": (
        ROW, {"template": template("web:1", container=STARTUP)}, with_image,
    ),
    "out of the Services first": (
        ROW,
        {
            "template": template("web:1", container=PROBE, **GATE),
            "updateStrategy": {"inPlaceUpdateStrategy": {"gracePeriodSeconds": 4}},
        },
        with_image,
    ),
    "out of the Services first, three at a time": (
        size(56, 140),
        {
            "template": template("web:1", container=PROBE, **GATE),
            "updateStrategy": {
                "inPlaceUpdateStrategy": {"gracePeriodSeconds": 4}, "maxUnavailable": 3,
            },
        },
        with_image,
    ),
    "with claims": (
        ROW,
        {"template": storing("web:1", **PROBE), "volumeClaimTemplates": [claim_template()]},
        with_variable,
    ),
    "more instances at the same time": (ROW, {}, and_scaled),
    "some stopped at the same time": (size(30, 90), {}, and_killed),
    "the last one first": (ROW, {"updateStrategy": {"order": "Descending"}}, with_image),
    "two groups": (size(36, 100), TWO, in_two_groups),
    "some of them kept": (ROW, {"updateStrategy": {"partition": size(5, 15)}}, with_image),
    "images pulled first": (
        ROW, {"updateStrategy": {"inPlaceUpdateStrategy": {"prePull": True}}}, with_image,
    ),
    "a claim that was not there": (ROW, {}, with_claim),
    "a template that does not come up, at the end": (ROW, MIXED, and_typo),
    "an image of its own that does not come up, at the end": (ROW, OWN, and_one_value),
}  # fmt: skip


FEW = (
    "in place",
    "out of the Services first, three at a time",
    "some stopped at the same time",
    "two groups",
    "some of them kept",
    "images pulled first",
    "a claim that was not there",
    "a template that does not come up, at the end",
    "an image of its own that does not come up, at the end",
)


@pytest.mark.parametrize("case", cases(CASES, [each for each in CASES if each not in FEW]))
def test_shortened_forecast_has_the_same_result_as_the_full_one(case: str) -> None:
    """Both forecasts have the same outcomes, claims, refusals and stuck instances.

    The largest number of unavailable instances is the same, too.
    """
    replicas, spec, edit = CASES[case]
    assert_alike(*both(life_of(replicas, **spec), edit))


def test_forecast_shows_a_few_turns_and_counts_the_others(life: Life) -> None:
    found = foretell(life, edited(life, with_variable))
    assert found.rest is not None
    assert len([step for step in found.steps if step.recreated]) == turns.SIMULATED_BUDGETS + 1
    assert len(found.rest.instances) == ROW - turns.SIMULATED_BUDGETS - 1
    assert found.duration == pytest.approx(found.rest.at + found.rest.seconds, abs=0.1)


@pytest.fixture
def life() -> Life:
    """Returns a TApp with enough instances for a short forecast, which omits a part of the
    rollout.
    """
    return life_of(ROW)


def test_short_rollout_is_simulated_completely() -> None:
    life = life_of(2 * turns.SIMULATED_BUDGETS)
    assert foretell(life, edited(life, with_variable)).rest is None


def test_broken_instance_does_not_block_the_rest() -> None:
    life = life_of(
        BY_TWO,
        templatePool={"bad": template("odd:1", container=PROBE)},
        templates={"7": "bad"},
        updateStrategy={"maxUnavailable": 2},
    )
    assert_alike(*both(life, with_image))


@pytest.mark.parametrize("edit", cases([with_variable, with_image], [with_image]))
def test_pods_with_different_start_times_have_the_same_result(
    edit: Callable[[Document], None],
) -> None:
    """Compares both forecasts after some pods have been replaced at different times, as after
    weeks.
    """
    life = life_of(size(36, 80))
    for id in (3, 11, 30):
        life.world.delete("Pod", f"web-{id}")
        life.world.run(13.7)
    life.world.run(100)
    assert_alike(*both(life, edit))


@given(
    st.integers(1, size(40, 90)),
    st.integers(0, 9),
    st.sampled_from([PROBE, SLOW_PROBE, STARTUP, {}]),
    st.sampled_from([with_image, with_variable]),
)
@settings(max_examples=size(1, 8), deadline=None, suppress_health_check=list(HealthCheck))
def test_shortened_forecast_of_many_or_slow_instances_is_complete(
    replicas: int, patience: int, probe: Document, edit: Callable[[Document], None]
) -> None:
    body = template("web:1", container=probe)
    life = life_of(replicas, template=body, minReadySeconds=patience)
    assert_alike(*both(life, edit))


# --- output ---------------------------------------------------------------------------------------


def test_text_page_and_document_have_the_omitted_instances(life: Life, tmp_path: Any) -> None:
    """Text, page and JSON have the number and the time of the omitted instances, and `--fail-if`
    counts all.
    """
    words = ["plan", "web", "--restart"]
    rest = ROW - turns.SIMULATED_BUDGETS - 1
    text = kubectl_tapp(StandIn(life.world), *words)
    (line,) = [each for each in text.lines if "follow in the same way" in each]
    assert line.startswith(f"  … {rest} more instances follow in the same way, about ")
    assert text.lines[0].startswith(f"TApp default/web: {ROW} recreated, in about ")
    page = tmp_path / "plan.html"
    conditions = ["--fail-if", f"recreate>={ROW}", "--html", str(page)]
    said = kubectl_tapp(StandIn(life.world), *words, *conditions, "-o", "json")
    assert said.code == 3
    document = json.loads(said.out)
    assert document["rest"]["instances"] == f"{turns.SIMULATED_BUDGETS + 1}-{ROW - 1}"
    assert {each["outcome"] for each in document["instances"]} == {"recreated"}
    assert page.read_text().count(f"{rest} more instances follow in the same way") == 2


def test_broken_instance_behind_the_shown_turns_is_stuck(tmp_path: Any) -> None:
    life = life_of(ROW, **MIXED)
    file = tmp_path / "new.yaml"
    file.write_text(json.dumps(edited(life, and_typo)))
    words = ["plan", "-f", str(file), "--assume-broken", GONE, "--fail-if", "stuck"]
    assert kubectl_tapp(StandIn(life.world), *words).code == 3
