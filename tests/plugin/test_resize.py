"""Tests forecasts of changed resources, with which the kubelet resizes running pods."""

from typing import Any

import pytest

from kubectl_tapp.cluster.registration import service_options
from kubectl_tapp.forecast.forecast import Forecast, Outcome
from kubectl_tapp.forecast.foresee import forecast
from kubectl_tapp.show.plan import outcome_reason
from simulator.objects.clock import EPOCH
from tapp.declared.differences import Effect
from tapp.world import Options
from tests.plugin.forecasts import observe, registered
from tests.scenarios.life import Document, Life
from tests.scenarios.resizes import RESTART, asking, begun

IN_PLACE_IMPOSSIBLE = "its pod is replaced, because an update in place is not possible: "


def foretell(life: Life, body: Document, *, resize: bool = True) -> Forecast:
    edited = {**life.tapp, "spec": {**life.tapp["spec"], "template": body}}
    now = EPOCH.timestamp() + life.world.clock.now
    return forecast(observe(life), edited, registered(Options(resize=resize)), now)


@pytest.mark.parametrize(
    "more", [{}, {"resizePolicy": RESTART}], ids=["without a restart", "with a restart"]
)
def test_pods_are_resized_one_by_one(more: Document) -> None:
    life = begun(asking(**more))
    found = foretell(life, asking("200m", **more))
    assert [each.outcome for each in found.instances] == [Outcome.IN_PLACE] * 3
    restarts = "; the resizePolicy restarts container web" if more else ""
    said = f"template 'default' changes resources of containers web, native in place{restarts}"
    assert {outcome_reason(each) for each in found.instances} == {said}
    (change,) = found.templates
    assert {line.effect for line in change.differences} == {Effect.RESIZE}
    assert found.unavailable_worst == (1 if more else 0)
    assert life.patches == []


@pytest.mark.parametrize(
    ("resources", "reason"),
    [
        (
            {"limits": {"cpu": "200m"}},
            IN_PLACE_IMPOSSIBLE + "limits.memory of container 'web' cannot be removed by a resize",
        ),
        (
            {"limits": {"cpu": "200m", "memory": "64Mi", "nvidia.com/gpu": "1"}},
            IN_PLACE_IMPOSSIBLE + "nvidia.com/gpu of container 'web' cannot be resized",
        ),
    ],
    ids=["removed limit", "resource of a device"],
)
def test_plan_says_why_a_resize_needs_a_new_pod(resources: Document, reason: str) -> None:
    body: Any = asking()
    body["spec"]["containers"][0]["resources"] = resources
    found = foretell(begun(), body)
    assert [each.outcome for each in found.instances] == [Outcome.RECREATED] * 3
    assert {each.message for each in found.instances} == {reason}


def test_without_the_component_pods_are_recreated() -> None:
    found = foretell(begun(resize=False), asking("200m"), resize=False)
    assert {each.message for each in found.instances} == {
        IN_PLACE_IMPOSSIBLE
        + "resources: InPlace needs the component resize, which is not installed"
    }


def test_plugin_knows_whether_the_component_is_installed() -> None:
    env = [{"name": "TAPP_RESIZE", "value": "true"}]
    deployment = {"spec": {"template": {"spec": {"containers": [{"name": "hooks", "env": env}]}}}}
    assert service_options(deployment).resize
    assert not service_options(None).resize
