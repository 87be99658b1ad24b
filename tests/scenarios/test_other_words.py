"""Templates that say the same in other words: moving over, and then the chart's own text."""

from typing import Any

import pytest

from simulator.api.admission import Policy, lean_pods
from tests.builders import Document
from tests.scenarios.apps import stored, storing
from tests.scenarios.life import Life
from tests.spellings import fully_written

PLAIN = storing(ports=[{"containerPort": 80}], livenessProbe={"httpGet": {"port": 80}})


def printed(template: Document) -> Document:
    """The template as `kubectl get statefulset -o yaml` prints it."""
    spec = fully_written(template["spec"], lambda field: field != "enableServiceLinks")
    spec["containers"][0]["imagePullPolicy"] = "IfNotPresent"
    metadata = {**template["metadata"], "creationTimestamp": None}
    return {"metadata": metadata, "spec": spec}


@pytest.mark.parametrize(
    ("policies", "limit"),
    [
        pytest.param((), 10, id="a history"),
        pytest.param((), 0, id="no history, but what was applied"),
        pytest.param((lean_pods,), 10, id="lean pods and a history"),
    ],
)
def test_the_plain_text_after_what_kubectl_printed_restarts_nothing(
    policies: tuple[Policy, ...], limit: int
) -> None:
    """Each pod gets one write, all at once; afterwards nothing is left to be done."""
    life = Life(policies=policies).apply(
        stored(template=printed(PLAIN), revisionHistoryLimit=limit)
    )
    life.writes()
    life.watch_readiness()
    born = life.uids()
    life.patch(template=PLAIN)
    assert [line for line in life.writes() if "Pod" in line] == [
        f"update Pod web-{id}" for id in range(3)
    ]
    assert life.uids() == born
    assert set(life.restarts().values()) == {0}
    assert life.fewest_ready == 3
    assert life.complete
    assert life.status["updatedReplicas"] == 3
    life.idle()
    assert life.writes() == []


def test_a_container_that_restarted_in_place_has_the_same_template() -> None:
    """Its image is spelt by digest, and stays so."""
    annotations = {"apps.tkestack.io/restart-in-place": "1"}

    def asking(body: Document, notes: dict[str, Any]) -> Document:
        return {**body, "metadata": {**body["metadata"], "annotations": notes}}

    for limit in (10, 0):
        life = Life().apply(stored(template=PLAIN, revisionHistoryLimit=limit))
        life.patch(template=asking(PLAIN, annotations))
        assert "@sha256:" in life.images()
        before = life.uids(), life.restarts(), life.images()
        life.patch(template=asking(printed(PLAIN), annotations))
        assert (life.uids(), life.restarts(), life.images()) == before
        assert life.status["updatedReplicas"] == 3


def test_the_history_has_both_and_a_rollback_restarts_nothing() -> None:
    """Each text is a revision of its own."""
    life = Life().apply(stored(template=PLAIN))
    born = life.uids()
    life.patch(template=printed(PLAIN))
    assert len(life.history()) == 2
    life.patch(template=PLAIN)
    assert (life.uids(), set(life.restarts().values())) == (born, {0})
