"""What Flux takes a TApp for: by kstatus alone, and by the shipped health check."""

import pytest
import yaml

from tapp.words.vocabulary import API_VERSION, KIND
from tests.kstatus import compute, evaluate
from tests.scenarios.gitops import STATES, document
from tests.scenarios.life import ROOT

KUSTOMIZATION = yaml.safe_load((ROOT / "gitops" / "flux" / "kustomization.yaml").read_text())
(CHECK,) = KUSTOMIZATION["spec"]["healthCheckExprs"]

SEEN = {
    "new": ("Current", "InProgress"),  # kstatus cannot know that a status will come
    "changed": ("InProgress", "InProgress"),
    "creating": ("InProgress", "InProgress"),
    "healthy": ("Current", "Current"),
    "updating": ("InProgress", "InProgress"),
    "paused": ("InProgress", "InProgress"),
    "paused-with-nothing-to-do": ("Current", "Current"),
    "killed": ("Current", "Current"),
    "broken": ("InProgress", "Failed"),  # kstatus waits until the timeout
    "stalled": ("Failed", "Failed"),
    "refused": ("InProgress", "Failed"),
    "deleting": ("Terminating", "InProgress"),
}


def test_every_state_is_seen() -> None:
    assert list(SEEN) == list(STATES)


@pytest.mark.parametrize("state", STATES)
def test_flux_sees(state: str) -> None:
    found = document(state)
    assert (compute(found), evaluate(found, CHECK)) == SEEN[state]


def test_a_status_of_the_old_controller_is_waited_for() -> None:
    found = document("healthy") | {"status": {"replicas": 3}}
    assert evaluate(found, CHECK) == "InProgress"


def test_the_check_is_of_tapps_and_waits_for_all() -> None:
    assert (CHECK["apiVersion"], CHECK["kind"]) == (API_VERSION, KIND)
    assert KUSTOMIZATION["spec"]["wait"] is True
