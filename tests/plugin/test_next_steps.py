"""Tests the next step that `status`, `why` and `wait` suggest."""

import json

import pytest

from tests.plugin.fake_kubectl import StandIn, kubectl_tapp
from tests.plugin.states import stuck_image, template, web
from tests.scenarios.life import Life

UNDO = (
    "next step for InstancesBroken: To undo the change, go back to the previous revision: "
    "`kubectl tapp rollback web -n default`. "
)
WHY = "To see what is wrong with each instance: `kubectl tapp why web -n default`."


@pytest.fixture
def life() -> Life:
    return Life().apply(web())


@pytest.mark.parametrize("verb", ["status", "why", "wait"])
def test_commands_name_the_next_step_of_a_stuck_rollout(life: Life, verb: str) -> None:
    """All three commands suggest a rollback or another image, and `status` and `wait` also suggest
    `why`.
    """
    stuck_image(life)
    said = kubectl_tapp(StandIn(life.world), verb, "web")
    text = said.out + said.err
    assert UNDO in text
    assert "`kubectl tapp set image web CONTAINER=IMAGE -n default`" in text
    assert (WHY in text) == (verb != "why")


def test_status_does_not_offer_a_rollback_without_an_earlier_revision() -> None:
    life = Life()
    life.world.kubelet.levers.bad_images.add("nginx:typo")
    life.world.apply(web(template=template("nginx:typo")))
    life.world.run(90)
    text = kubectl_tapp(StandIn(life.world), "status", "web").out
    assert "next step for InstancesBroken: To set another image:" in text
    assert "rollback" not in text


FORGOTTEN = {
    "pause": (["pause"], "paused: no update waits now; `kubectl tapp resume web -n default` lets"),
    "stop": (["kill", "1"], "stopped: instance 1 is stopped; `kubectl tapp start web 1 -n"),
    "hold": (["hold", "2", "--reason", "x"], "`kubectl tapp release web 2 -n default`"),
}  # fmt: skip


@pytest.mark.parametrize("case", FORGOTTEN)
def test_commands_remind_of_what_somebody_has_stopped_although_nothing_waits(
    life: Life, case: str
) -> None:
    """A pause, a stopped instance or a hold is easily forgotten, because the TApp is Ready."""
    (verb, *more), message = FORGOTTEN[case]
    cluster = StandIn(life.world)
    assert kubectl_tapp(cluster, verb, "web", *more, "-y").code == 0
    life.world.settle()
    for each in ("status", "why"):
        assert kubectl_tapp(cluster, each, "web").out.count(message) == 1
    kubectl_tapp(cluster, "resume", "web", "-y")
    kubectl_tapp(cluster, "start", "web", "1", "-y")
    kubectl_tapp(cluster, "release", "web", "2", "-y")
    life.world.settle()
    for each in ("status", "why"):
        assert message not in kubectl_tapp(cluster, each, "web").out


def test_status_of_a_normal_rollout_has_no_next_step(life: Life) -> None:
    life.begin_patch(template=template("nginx:1.29")).world.run(1)
    assert "next step" not in kubectl_tapp(StandIn(life.world), "status", "web").out
    life.world.settle()
    assert "next step" not in kubectl_tapp(StandIn(life.world), "why", "web").out


@pytest.mark.parametrize("verb", ["status", "why"])
def test_document_has_each_sentence_with_its_command(life: Life, verb: str) -> None:
    """`-o json` has the advice sentence by sentence, each once, with the command that the sentence
    quotes; None stands for no command.
    """
    stuck_image(life)
    said = kubectl_tapp(StandIn(life.world), verb, "web", "-o", "json")
    steps = json.loads(said.out)["nextSteps"]
    commands = {each["command"]: each for each in steps}
    undo = commands["kubectl tapp rollback web -n default"]
    assert undo["reason"] == "InstancesBroken"
    assert undo["sentence"] == UNDO.removeprefix("next step for InstancesBroken: ").strip()
    assert ("kubectl tapp why web -n default" in commands) == (verb != "why")
    for command, step in commands.items():
        assert command is None or f"`{command}`" in step["sentence"]
    assert commands[None]["reason"] == "WaitingForBudget"
    sentences = [each["sentence"] for each in steps]
    assert len(sentences) == len({*sentences})


def test_document_says_how_paused_updates_go_on(life: Life) -> None:
    """The text of `status` has a separate line about a pause; the document has a next step."""
    life.patch(updateStrategy={"paused": True})
    life.begin_patch(template=template("nginx:1.29")).world.run(5)
    steps = json.loads(kubectl_tapp(StandIn(life.world), "status", "web", "-o", "json").out)
    assert steps["nextSteps"] == [
        {
            "reason": "Paused",
            "sentence": "To resume the updates: `kubectl tapp resume web -n default`.",
            "command": "kubectl tapp resume web -n default",
        }
    ]


def test_document_of_a_complete_rollout_has_no_next_step(life: Life) -> None:
    document = json.loads(kubectl_tapp(StandIn(life.world), "why", "web", "-o", "json").out)
    assert document["nextSteps"] == []
