"""Tests the output if no controller has acted on a spec: since when, and which steps wait."""

import json
from typing import Any

import pytest

from demo.web import session_of
from kubectl_tapp.decide.inspection import inspect
from kubectl_tapp.live import model
from kubectl_tapp.live.page_words import in_page_words
from tapp.words.times import written
from tests.builders import manifest
from tests.plugin.clusters import unvalidated
from tests.plugin.fake_kubectl import StandIn, kubectl_tapp
from tests.scenarios.life import Life

Document = dict[str, Any]


def idle(seconds: float, *, new: bool = False) -> tuple[StandIn, str]:
    """Returns a fake kubectl for a TApp on which no controller has acted for `seconds`, and the
    time of its last edit.

    With `new`, no controller has ever acted on the TApp. Otherwise its last edit has added two
    instances.
    """
    standin = StandIn(Life().apply(manifest(replicas=2)).world)
    at = written(standin.world.clock.unix() - seconds)

    def edit(tapp: Document) -> None:
        metadata = tapp["metadata"]
        field = {"manager": "kubectl", "time": at, "fieldsV1": {"f:spec": {"f:replicas": {}}}}
        later = {"manager": "other", "time": written(2e9), "fieldsV1": {"f:metadata": {}}}
        metadata["managedFields"] = [field, later]
        tapp["spec"]["replicas"] = 4
        if new:
            tapp.pop("status", None)
        else:
            metadata["generation"] += 1

    return unvalidated(standin, "TApp", edit), at


@pytest.mark.parametrize("command", ["status web", "why web", "plan web --replicas 5"])
def test_unobserved_spec_is_reported_with_its_time_and_a_command(command: str) -> None:
    standin, at = idle(300)
    said = kubectl_tapp(standin, *command.split())
    assert said.code == 0, said.err
    text = " ".join(said.out.split())
    assert f"TApp web: no controller has acted on its generation 2 since {at}" in text
    assert "(status.observedGeneration is 1), so nothing changes." in text
    assert "`kubectl describe tapp web -n default` shows their Events" in text


def test_planned_steps_are_not_shown_as_running_without_a_controller() -> None:
    standin, _ = idle(300)
    for command in ("status", "why"):
        said = kubectl_tapp(standin, command, "web")
        assert "2, 3: waits for a controller to act: Create" in said.out
        assert "2, 3: Create" not in said.out


def test_recently_written_spec_is_no_problem() -> None:
    """Three seconds after the edit, only the headline of `status` says that no controller has
    acted.

    Metacontroller may take seconds, so `status` neither blames it nor shows waiting steps.
    """
    standin, at = idle(3)
    said = kubectl_tapp(standin, "status", "web")
    assert f"no controller has acted on its generation 2 since {at}" in said.lines[0]
    assert "Metacontroller" not in said.out
    assert "waits for a controller" not in said.out
    assert "2, 3: Create" in said.out


def test_tapp_that_was_never_observed_is_reported() -> None:
    standin, at = idle(300, new=True)
    said = kubectl_tapp(standin, "status", "web")
    assert f"no controller has acted on it since {at}" in said.lines[0]
    assert f"TApp web: no controller has acted on it since {at}" in " ".join(said.lines[1:])


def test_generation_is_reported_if_the_time_is_unknown() -> None:
    """Without managedFields, `status` names the generation on which no controller has acted, and no
    time.

    Such a spec may be of any age, so Metacontroller is not blamed.
    """
    standin, _ = idle(300)
    unvalidated(standin, "TApp", lambda tapp: tapp["metadata"].pop("managedFields"))
    said = kubectl_tapp(standin, "status", "web")
    assert said.lines[0].endswith("no controller has acted on its generation 2")
    assert "Metacontroller" not in said.out


def test_page_has_the_sentence_of_the_documents_in_its_own_words() -> None:
    standin, at = idle(300)
    document = json.loads(kubectl_tapp(standin, "status", "web", "-o", "json").out)
    assert f"generation 2 since {at}" in document["idle"]
    cluster = session_of(standin).cluster
    view = inspect(cluster, cluster.observe("web"), standin.world.clock.unix())
    notes = model.model_of(view, [])["head"]["notes"]
    assert notes[0] == in_page_words(document["idle"])
    assert notes[0].endswith("the timeline shows their Events")
    assert json.loads(kubectl_tapp(running(), "status", "web", "-o", "json").out)["idle"] == ""


def running() -> StandIn:
    return StandIn(Life().apply(manifest(replicas=2)).world)
