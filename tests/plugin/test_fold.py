"""A long roll is foretold from a short one: to the last write and second what all would do."""

import copy
import time
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubectl_tapp.forecast import foresee
from kubectl_tapp.forecast.forecast import Forecast
from kubectl_tapp.forecast.record import Record
from kubectl_tapp.forecast.unfold import unfold
from tests.builders import claim_template, manifest
from tests.plugin.foretold import foretell
from tests.scenarios.apps import storing, template
from tests.scenarios.life import Document, Life
from tests.sizes import cases, size

PROBE = {"readinessProbe": {"httpGet": {"port": 80}, "periodSeconds": 1}}
SLOW_PROBE = {"readinessProbe": {"httpGet": {"port": 80}, "periodSeconds": 7}}
STARTUP = {"startupProbe": {"httpGet": {"port": 80}, "periodSeconds": 3}}
GATE = {"readinessGates": [{"conditionType": "apps.tkestack.io/InPlaceUpdateReady"}]}


ROW = size(60, 80)
"""Instances of which a forecast plays 28 one by one, and folds no fewer than twice as many."""
BY_TWO = size(100, 120)
"""Here 48."""


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


def both(life: Life, edit: Callable[[Document], None]) -> tuple[Forecast, Forecast, int]:
    """The forecast from a few, the one of all, and how often the first one was unfolded."""
    unfolded = []

    def noted(*arguments: Any) -> Any:
        found = unfold(*arguments)
        unfolded.append(isinstance(found, Record))
        return found

    document = edited(life, edit)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(foresee, "unfold", noted)
        short = foretell(life, document)
        patched.setattr(foresee, "long_row", lambda *_: None)
        return short, foretell(life, document), sum(unfolded)


def assert_equal(short: Forecast, full: Forecast) -> None:
    """Field by field, so that a difference is short."""
    for each in fields(Forecast):
        assert getattr(short, each.name) == getattr(full, each.name), each.name


def and_scaled(tapp: Document) -> None:
    with_image(tapp)
    tapp["spec"]["replicas"] += 3


def and_killed(tapp: Document) -> None:
    with_variable(tapp)
    tapp["spec"]["statuses"] = {"4": "Killed", "50": "Killed"}


def in_two_groups(tapp: Document) -> None:
    with_image(tapp)
    with_image(tapp, "v2")


TWO: Document = {
    "templatePool": {"v2": template("web:1", container=PROBE)},
    "templates": {str(id): "v2" for id in range(20, 25)},
    "updateStrategy": {"maxUnavailable": 1, "forceUpdate": {"maxUnavailable": "2%"}},
}
CASES: dict[str, tuple[int, Document, Callable[[Document], None]]] = {
    "in place": (ROW, {}, with_image),
    "new pods": (ROW, {}, with_variable),
    "in place, two at a time": (BY_TWO, {"updateStrategy": {"maxUnavailable": 2}}, with_image),
    "new pods, a percentage": (
        size(100, 150), {"updateStrategy": {"maxUnavailable": "2%"}}, with_variable,
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
        140,
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
    "some stopped at the same time": (size(64, 90), {}, and_killed),
    "the last one first": (ROW, {"updateStrategy": {"order": "Descending"}}, with_image),
    "two groups": (size(70, 100), TWO, in_two_groups),
}  # fmt: skip


OTHERS_SAY_AS_MUCH = (
    "in place",
    "new pods",
    "new pods, a percentage",
    "in place, and each counts after a while",
    "new pods, and each counts after a while",
    "in place, two at a time",
    "a probe that looks rarely",
    "a startup probe",
    "out of the Services first, three at a time",
    "more instances at the same time",
    "the last one first",
)
"""Two of what the other cases have one by one, or less: they run the same lines."""


@pytest.mark.parametrize("case", cases(CASES, OTHERS_SAY_AS_MUCH))
def test_a_short_roll_unfolds_to_the_long_one(case: str) -> None:
    replicas, spec, edit = CASES[case]
    short, full, unfolded = both(life_of(replicas, **spec), edit)
    assert unfolded == 1, "it was played in full"
    assert_equal(short, full)


def test_one_that_is_broken_for_good_is_in_nobodys_way() -> None:
    life = life_of(
        BY_TWO,
        templatePool={"bad": template("odd:1", container=PROBE)},
        templates={"7": "bad"},
        updateStrategy={"maxUnavailable": 2},
    )
    short, full, _ = both(life, with_image)
    assert_equal(short, full)


@pytest.mark.parametrize("edit", cases([with_variable, with_image], [with_image]))
def test_pods_that_began_at_any_time(edit: Callable[[Document], None]) -> None:
    """As after weeks: no two of them at the same second, and each with its own past."""
    life = life_of(size(66, 80))
    for id in (3, 11, 40):
        life.world.delete("Pod", f"web-{id}")
        life.world.run(13.7)
    life.world.run(100)
    short, full, _ = both(life, edit)
    assert_equal(short, full)


@given(
    st.integers(62, size(72, 90)),
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
    short, full, _ = both(life, edit)
    assert_equal(short, full)


@pytest.mark.slow
@pytest.mark.parametrize("edit", cases([with_variable, with_image], [with_image]))
def test_many_one_by_one_take_seconds(edit: Callable[[Document], None]) -> None:
    """Measured in seconds of one processor: what else runs on the machine does not count."""
    life = life_of(count := size(200, 1000))
    document = edited(life, edit)
    begun = time.process_time()
    found = foretell(life, document)
    assert time.process_time() - begun < 5
    assert len([step for step in found.steps if step.updated or step.recreated]) == count
    assert found.unavailable_worst == 1
