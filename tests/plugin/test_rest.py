"""A long roll is played for so many turns; what becomes of the rest is as if all were played."""

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
from tests.plugin.foretold import foretell
from tests.plugin.standin import StandIn, kubectl_tapp
from tests.scenarios.apps import storing, template
from tests.scenarios.life import Document, Life
from tests.sizes import cases, size

PROBE = {"readinessProbe": {"httpGet": {"port": 80}, "periodSeconds": 1}}
SLOW_PROBE = {"readinessProbe": {"httpGet": {"port": 80}, "periodSeconds": 7}}
STARTUP = {"startupProbe": {"httpGet": {"port": 80}, "periodSeconds": 3}}
GATE = {"readinessGates": [{"conditionType": "apps.tkestack.io/InPlaceUpdateReady"}]}


GONE = "gone:1"
BROKEN = (GONE, "web:none")
"""Images that do not come up."""
ROW = size(24, 80)
"""Instances of which a forecast plays 9 one by one."""
BY_TWO = size(40, 120)
"""Here 18."""
LATE = size(22, 50)
"""One far behind the turns that are played."""


def life_of(replicas: int, **spec: Any) -> Life:
    """A TApp that has run for a while."""
    given = {"template": template("web:1", container=PROBE), **spec}
    life = Life(check_every=10**9)
    life.begin(manifest(replicas=replicas, **given)).settle(allow_errors=True)
    life.world.run(600)
    return life


def with_image(tapp: Document, name: str = "") -> None:
    """An update in place."""
    spec = tapp["spec"]
    body = spec["templatePool"][name] if name else spec["template"]
    body["spec"]["containers"][0]["image"] = "web:2"


def with_variable(tapp: Document) -> None:
    """New pods."""
    tapp["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "A", "value": "1"}]


def edited(life: Life, edit: Callable[[Document], None]) -> Document:
    """Its TApp after an edit."""
    document = copy.deepcopy(life.tapp)
    edit(document)
    return document


def both(life: Life, edit: Callable[[Document], None]) -> tuple[Forecast, Forecast]:
    """The forecast as it is, and the one of which every turn is played."""
    document = edited(life, edit)
    short = foretell(life, document, broken=BROKEN)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(turns, "SIMULATED_BUDGETS", 10**6)
        return short, foretell(life, document, broken=BROKEN)


def fate(each: InstanceForecast) -> InstanceForecast:
    """All that becomes of an instance, but when."""
    return replace(each, began=None, done=None)


def assert_alike(short: Forecast, full: Forecast) -> None:
    """The same but for the turns that are not told one by one, and about as long."""
    for name in (
        *("claims", "services", "stuck", "paused", "refusals", "refused", "limits", "should_run"),
        *("unavailable_before", "unavailable_worst", "notes"),
    ):
        assert getattr(short, name) == getattr(full, name), name
    assert [fate(each) for each in short.instances] == [fate(each) for each in full.instances]
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
    """The last one gets another template, whose image is not there."""
    with_image(tapp, "v2")
    tapp["spec"]["templatePool"]["v3"]["spec"]["containers"][0]["image"] = GONE


OWN: Document = {
    "template": template("web:$(tapp.values.tag)", container=PROBE),
    "defaultValues": {"tag": "1"},
}


def and_one_value(tapp: Document) -> None:
    """All get another image by a value, and the last one a value of which there is none."""
    tapp["spec"]["defaultValues"] = {"tag": "2"}
    tapp["spec"]["values"] = {str(ROW - 1): {"tag": "none"}}


def with_claim(tapp: Document) -> None:
    """New pods, each with a claim that has to be made."""
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
def test_the_rest_is_as_if_it_were_played(case: str) -> None:
    """Fates, claims, refusals, what gets stuck, the worst moment; the time is about the same."""
    replicas, spec, edit = CASES[case]
    assert_alike(*both(life_of(replicas, **spec), edit))


def test_as_many_turns_as_a_person_reads(life: Life) -> None:
    """However many instances there are; the others are counted, with the time that they take."""
    found = foretell(life, edited(life, with_variable))
    assert found.rest is not None
    assert len([step for step in found.steps if step.recreated]) == turns.SIMULATED_BUDGETS + 1
    assert len(found.rest.instances) == ROW - turns.SIMULATED_BUDGETS - 1
    assert found.duration == pytest.approx(found.rest.at + found.rest.seconds, abs=0.1)


@pytest.fixture
def life() -> Life:
    """A long row."""
    return life_of(ROW)


def test_a_short_row_is_played_to_its_end() -> None:
    life = life_of(2 * turns.SIMULATED_BUDGETS)
    assert foretell(life, edited(life, with_variable)).rest is None


def test_one_that_is_broken_for_good_is_in_nobodys_way() -> None:
    life = life_of(
        BY_TWO,
        templatePool={"bad": template("odd:1", container=PROBE)},
        templates={"7": "bad"},
        updateStrategy={"maxUnavailable": 2},
    )
    assert_alike(*both(life, with_image))


@pytest.mark.parametrize("edit", cases([with_variable, with_image], [with_image]))
def test_pods_that_began_at_any_time(edit: Callable[[Document], None]) -> None:
    """As after weeks: no two of them at the same second, and each with its own past."""
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
def test_however_many_and_however_slow(
    replicas: int, patience: int, probe: Document, edit: Callable[[Document], None]
) -> None:
    body = template("web:1", container=probe)
    life = life_of(replicas, template=body, minReadySeconds=patience)
    assert_alike(*both(life, edit))


# --- how it is told ------------------------------------------------------------------------------


def test_text_page_and_document_say_who_follows(life: Life, tmp_path: Any) -> None:
    """Once each, with their number and the time; conditions count all of them."""
    words = ["plan", "web", "--restart"]
    rest = ROW - turns.SIMULATED_BUDGETS - 1
    text = kubectl_tapp(StandIn(life.world), *words)
    (line,) = [each for each in text.lines if "and so on" in each]
    assert line.startswith(f"  … and so on: {rest} more, about ")
    assert text.lines[0].startswith(f"TApp default/web: {ROW} recreated, in about ")
    page = tmp_path / "plan.html"
    conditions = ["--fail-if", f"recreate>={ROW}", "--html", str(page)]
    said = kubectl_tapp(StandIn(life.world), *words, *conditions, "-o", "json")
    assert said.code == 3
    document = json.loads(said.out)
    assert document["rest"]["instances"] == f"{turns.SIMULATED_BUDGETS + 1}-{ROW - 1}"
    assert {each["outcome"] for each in document["instances"]} == {"recreated"}
    assert page.read_text().count(f"and so on: {rest} more") == 2


def test_what_does_not_come_up_at_the_end_is_stuck(tmp_path: Any) -> None:
    """Though it is far behind the turns that a person reads."""
    life = life_of(ROW, **MIXED)
    file = tmp_path / "new.yaml"
    file.write_text(json.dumps(edited(life, and_typo)))
    words = ["plan", "-f", str(file), "--assume-broken", GONE, "--fail-if", "stuck"]
    assert kubectl_tapp(StandIn(life.world), *words).code == 3
