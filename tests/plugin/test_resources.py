"""Tests the sentences about changed resources, which are not always an update."""

import json

import pytest

from tests.plugin.fake_kubectl import Document, StandIn, kubectl_tapp
from tests.scenarios.life import Life
from tests.scenarios.resources import IGNORE, asking, begun, resize


def planned(life: Life, body: Document, strategy: Document | None = None) -> str:
    """Returns the output of `kubectl tapp plan` for an edit to the pod template `body`.

    `strategy` has further fields of the update strategy, or None.
    """
    spec = {**life.tapp["spec"], "template": body}
    spec["updateStrategy"] = {"maxUnavailable": 2} | (strategy or {})
    edited = json.dumps({**life.tapp, "spec": spec})
    out: str = kubectl_tapp(StandIn(life.world), "plan", "-f", "-", stdin=edited).out
    return out


@pytest.mark.parametrize(
    ("strategy", "cpu", "headline", "why"),
    [
        ({}, "200m", "1 labels only, 2 recreated", "replaces the pods that do not have it yet"),
        (IGNORE, "200m", "no instance changes", "for new pods only"),
        (IGNORE, "300m", "no instance changes", "for new pods only"),
    ],
    ids=["default", "resources Ignore, equal", "resources Ignore, different"],
)
def test_plan_says_which_instances_are_changed(
    strategy: Document, cpu: str, headline: str, why: str
) -> None:
    life = resize(begun(strategy), "200m", 0)
    said = planned(life, asking(cpu), strategy)
    assert headline in said.splitlines()[0], said
    assert why in said


def test_plan_says_that_a_switch_of_the_strategy_restarts_nothing() -> None:
    said = planned(begun(), asking(), IGNORE)
    assert "3 labels only" in said.splitlines()[0], said


def test_rollback_after_a_switch_of_the_strategy_restores_another_template() -> None:
    """Two revisions have the same content if they differ only in how resources count.

    The history marks the newer one as current. A rollback must restore a template with another
    content, so it skips both.
    """
    life = begun().patch(template=asking(image="web:2"))
    life.patch(updateStrategy=IGNORE)
    out = kubectl_tapp(StandIn(life.world), "history", "web", "-o", "json").out
    history: list[Document] = json.loads(out)
    assert [item["current"] for item in history] == [False, False, True]
