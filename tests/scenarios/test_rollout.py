"""Tests gitops/rollout: each commit is the next stage of a rollout, and tools wait for each
stage.
"""

from pathlib import Path
from typing import Any

import pytest
import yaml

from release.kustomize import ReleaseError, build, command
from tests.argocd_lua import run
from tests.kstatus import compute
from tests.scenarios.argocd import HEALTH
from tests.scenarios.life import ROOT, Life

Document = dict[str, Any]
ROLLOUT = ROOT / "gitops" / "rollout"
STAGES = {"10-percent": 1, "50-percent": 5, "all": 10}


def stage(name: str) -> Document:
    """Returns the TApp of a stage, built as kustomize does with a patch that adds fields."""
    (resource,) = loaded(ROLLOUT / name / "kustomization.yaml")["resources"]
    found: Document = loaded((ROLLOUT / name / resource).resolve() / "tapp.yaml")
    for patch in loaded(ROLLOUT / name / "kustomization.yaml").get("patches", []):
        for operation in yaml.safe_load(patch["patch"]):
            assert operation["op"] == "add"
            *path, key = operation["path"].split("/")[1:]
            place = found
            for part in path:
                place = place[part]
            place[key] = operation["value"]
    return found


def loaded(path: Path) -> Document:
    document: Document = yaml.safe_load(path.read_text())
    return document


@pytest.mark.parametrize("name", STAGES)
def test_kustomize_builds_each_stage(name: str) -> None:
    try:
        command()
    except ReleaseError as error:
        pytest.skip(str(error))
    assert build(ROLLOUT / name) == [stage(name)]


def test_each_stage_updates_its_share_of_instances_and_is_healthy() -> None:
    before = stage("all")
    before["spec"]["template"]["spec"]["containers"][0]["image"] = "web:1"
    life = Life().apply(before)
    for name, updated in STAGES.items():
        life.apply(stage(name))
        assert life.images() == " ".join(["web:2"] * updated + ["web:1"] * (10 - updated))
        assert compute(life.tapp) == "Current"
        health = run(HEALTH, life.tapp)
        assert health["status"] == "Healthy"
        assert ("keeps instances" in health["message"]) == (updated < 10)
    assert life.status["currentRevision"] == life.status["updateRevision"]


def test_reverted_commit_rolls_back_only_updated_instances() -> None:
    before = stage("all")
    before["spec"]["template"]["spec"]["containers"][0]["image"] = "web:1"
    life = Life().apply(before).apply(stage("50-percent"))
    uids, restarts = life.uids(), life.restarts()
    life.apply(before)
    assert life.images() == " ".join(["web:1"] * 10)
    assert life.uids() == uids
    assert [id for id, count in life.restarts().items() if count != restarts[id]] == [*range(5)]
