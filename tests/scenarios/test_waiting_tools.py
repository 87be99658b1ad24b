"""Tests that tools that wait for a TApp agree with each other in every state."""

import pytest
import yaml

from tests.argocd_lua import run
from tests.conditions import WAITED
from tests.kstatus import compute
from tests.plugin.fake_kubectl import StandIn, kubectl_tapp
from tests.scenarios.argocd import HEALTH
from tests.scenarios.gitops import STATES
from tests.scenarios.life import ROOT, Life

GRACE = 35
"""Seconds that a pod may take to end; the service waits as long for broken instances."""
BY_STATE = {
    "new": "its newest spec is not answered",
    "changed": "its newest spec is not answered",
    "creating": "`Reconciling` is True",
    "healthy": "`Ready` is True",
    "updating": "`Reconciling` is True",
    "paused": "`Ready` is False with reason `Paused`",
    "paused-with-nothing-to-do": "`Ready` is True",
    "partitioned": "`Ready` is True",
    "killed": "`Ready` is True",
    "breaking": "`Reconciling` is True",
    "broken": "`Stalled` is True",
    "repairing": "`Reconciling` is True",
    "stalled": "`Stalled` is True",
    "rolled-back": "`Stalled` is True",
    "refused": "`Stalled` is True",
    "deleting": "it is being deleted",
}


def test_table_covers_every_state() -> None:
    assert list(BY_STATE) == list(STATES)
    assert set(BY_STATE.values()) == {row[0] for row in WAITED}


@pytest.mark.parametrize("state", STATES)
def test_tools_agree_in_each_state(state: str) -> None:
    """Compares kstatus, Argo CD and `kubectl tapp wait` for a TApp in each state with the table.

    If they do not agree at first, they agree soon after `kubectl tapp wait` has ended.
    """
    life = STATES[state]()
    _, at_first, *seen = next(row for row in WAITED if row[0] == BY_STATE[state])
    assert shown(life) == seen
    end = waited(life)
    assert at_first in ("waits", end)
    ended = life.world.clock.now
    life.until(lambda: shown(life) in [[*seen] for _, then, *seen in WAITED if then == end])
    assert life.world.clock.now <= ended + GRACE


def shown(life: Life) -> list[str]:
    """Returns the state of the TApp for kstatus and for Argo CD."""
    return [compute(life.tapp), run(HEALTH, life.tapp)["status"]]


def waited(life: Life) -> str:
    """Runs `kubectl tapp wait` and returns its result: `done`, `paused`, `stuck` or `gone`."""
    said = kubectl_tapp(StandIn(life.world), "wait", life.name, "--timeout", "1h")
    if not said.code:
        return "done"
    words = {"is paused": "paused", "is stuck": "stuck", "is being deleted": "gone"}
    (end,) = {word for text, word in words.items() if text in said.err}
    return end


def test_status_of_the_old_controller_is_in_progress() -> None:
    """A status that the old controller wrote is in progress for kstatus and Argo CD.

    Such a status has no `observedGeneration`, so the API server sets -1.
    """
    life = Life().begin(STATES["healthy"]().tapp)
    kind = life.world.kinds.find("TApp")
    life.world.cluster.update_status(kind, life.tapp | {"status": {"replicas": 3}})
    assert life.status == {"replicas": 3, "observedGeneration": -1}
    assert compute(life.tapp) == "InProgress"
    assert run(HEALTH, life.tapp)["status"] == "Progressing"


def test_flux_needs_no_health_check_expressions() -> None:
    kustomization = yaml.safe_load((ROOT / "gitops" / "flux" / "kustomization.yaml").read_text())
    assert kustomization["spec"]["wait"] is True
    assert "healthCheckExprs" not in kustomization["spec"]
