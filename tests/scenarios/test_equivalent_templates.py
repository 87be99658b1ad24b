"""Tests equivalent templates: a short one is applied after the long form that kubectl has
printed.
"""

from typing import Any

import pytest

from simulator.api.admission import Policy, lean_pods
from tests.builders import Document
from tests.equivalent_specs import fully_written
from tests.scenarios.apps import stored, storing
from tests.scenarios.life import Life

PLAIN = storing(ports=[{"containerPort": 80}], livenessProbe={"httpGet": {"port": 80}})


def printed(template: Document) -> Document:
    """Returns the template with its defaults, as `kubectl get statefulset -o yaml` prints it."""
    spec = fully_written(template["spec"], lambda field: field != "enableServiceLinks")
    spec["containers"][0]["imagePullPolicy"] = "IfNotPresent"
    metadata = {**template["metadata"], "creationTimestamp": None}
    return {"metadata": metadata, "spec": spec}


@pytest.mark.parametrize(
    ("policies", "limit"),
    [
        pytest.param((), 10, id="history"),
        pytest.param((), 0, id="no history"),
        pytest.param((lean_pods,), 10, id="lean pods and history"),
    ],
)
def test_short_template_after_the_printed_one_restarts_nothing(
    policies: tuple[Policy, ...], limit: int
) -> None:
    """Replaces the long form of a template by the short one: each pod gets new labels in one sync,
    and no more.
    """
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


@pytest.mark.parametrize("limit", [10, 0], ids=["history", "no history"])
def test_equivalent_template_after_a_restart_in_place_restarts_nothing(limit: int) -> None:
    """Replaces a template by one with all defaults, after a restart in place: no container
    restarts.

    After the restart in place the pod's image has a digest, which stays.
    """
    annotations = {"apps.tkestack.io/restart-in-place": "1"}

    def asking(body: Document, notes: dict[str, Any]) -> Document:
        return {**body, "metadata": {**body["metadata"], "annotations": notes}}

    life = Life().apply(stored(template=PLAIN, revisionHistoryLimit=limit))
    life.patch(template=asking(PLAIN, annotations))
    uids, restarts, images = life.uids(), life.restarts(), life.images()
    assert "@sha256:" in images
    life.patch(template=asking(printed(PLAIN), annotations))
    assert life.uids() == uids
    assert life.restarts() == restarts
    assert life.images() == images
    assert life.status["updatedReplicas"] == 3


def test_equivalent_templates_have_their_own_revisions_and_a_rollback_restarts_nothing() -> None:
    life = Life().apply(stored(template=PLAIN))
    born = life.uids()
    life.patch(template=printed(PLAIN))
    assert len(life.history()) == 2
    life.patch(template=PLAIN)
    assert life.uids() == born
    assert set(life.restarts().values()) == {0}
