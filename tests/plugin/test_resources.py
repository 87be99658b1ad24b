"""Sentences about other resources, which are not always an update."""

import json

import pytest

from tests.plugin.standin import Document, StandIn, kubectl_tapp
from tests.scenarios.life import Life
from tests.scenarios.resources import IGNORE, asking, begun, resize


def planned(life: Life, body: Document, strategy: Document | None = None) -> str:
    """The words of `kubectl tapp plan` about another template."""
    spec = {**life.tapp["spec"], "template": body}
    spec["updateStrategy"] = {"maxUnavailable": 2} | (strategy or {})
    edited = json.dumps({**life.tapp, "spec": spec})
    out: str = kubectl_tapp(StandIn(life.world), "plan", "-f", "-", stdin=edited).out
    return out


@pytest.mark.parametrize(
    ("strategy", "cpu", "headline", "why"),
    [
        ({}, "200m", "1 labels only, 2 recreated", "but for those that have it already"),
        (IGNORE, "200m", "nothing happens", "for new pods only"),
        (IGNORE, "300m", "nothing happens", "for new pods only"),
    ],
)
def test_the_plan_foretells_who_is_touched(
    strategy: Document, cpu: str, headline: str, why: str
) -> None:
    life = resize(begun(strategy), "200m", 0)
    said = planned(life, asking(cpu), strategy)
    assert headline in said.splitlines()[0], said
    assert why in said


def test_the_plan_foretells_that_switching_restarts_nothing() -> None:
    said = planned(begun(), asking(), IGNORE)
    assert "3 labels only" in said.splitlines()[0], said


def test_a_rollback_after_switching_goes_back_to_another_template() -> None:
    """Records of both forms are of the current one, as far as they say the same."""
    life = begun().patch(template=asking(image="web:2"))
    life.patch(updateStrategy=IGNORE)
    out = kubectl_tapp(StandIn(life.world), "history", "web", "-o", "json").out
    history: list[Document] = json.loads(out)
    assert [item["current"] for item in history] == [False, True, True]
