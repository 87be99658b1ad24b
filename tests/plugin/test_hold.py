"""Tests `kubectl tapp hold` and `release`, and other commands for TApps with pods on hold."""

import json
from typing import Any

import pytest

from tests.builders import manifest, template
from tests.plugin.fake_kubectl import StandIn, kubectl_tapp
from tests.scenarios.life import Life

Document = dict[str, Any]
GROUP = "apps.tkestack.io"
HOLD, FOR, WANTED, HELD = (f"{GROUP}/{key}" for key in ("hold", "hold-for", "wanted", "held"))
NEW = template("nginx:2", container={"command": ["run"]})


@pytest.fixture
def web() -> StandIn:
    """Returns a fake kubectl for a running TApp `web` with six instances."""
    return StandIn(Life().apply(manifest(replicas=6)).world)


def hold(web: StandIn, ids: str, *more: str) -> None:
    said = kubectl_tapp(web, "hold", "web", ids, "--reason", "match 42", "-y", *more)
    assert said.err == ""
    assert said.code == 0


def pod(web: StandIn, id: int) -> Document:
    found: Document = web.world.get("pods", f"web-{id}")
    return found


def notes(web: StandIn, id: int) -> Document:
    found: Document = pod(web, id)["metadata"]["annotations"]
    return found


def test_hold_writes_only_annotations_of_pods(web: StandIn) -> None:
    before = web.world.get("tapps", "web")["spec"]
    said = kubectl_tapp(web, "hold", "web", "1,4", "--reason", "match 42", "--for", "update", "-y")
    assert said.err == ""
    assert said.code == 0
    assert said.lines == [
        "TApp web:", "  1, 4  up to date: no action is pending",
        "web: instances 1, 4 on hold",
    ]  # fmt: skip
    assert notes(web, 1)[HOLD] == "match 42"
    assert notes(web, 1)[FOR] == "update"
    assert HOLD not in notes(web, 2)
    assert web.world.get("tapps", "web")["spec"] == before
    hold(web, "4")
    assert FOR not in notes(web, 4)


def test_hold_with_wait_returns_after_the_service_has_observed_it(web: StandIn) -> None:
    hold(web, "3", "--wait")
    assert pod(web, 3)["metadata"]["labels"][HELD] == "true"
    said = kubectl_tapp(web, "release", "web", "3", "-y", "--wait")
    assert said.code == 0
    assert HELD not in pod(web, 3)["metadata"]["labels"]
    assert "instance 3: getting a new label or annotation" in said.out
    assert "leaving their Services" not in said.out


def test_held_instance_is_updated_last_after_its_release(web: StandIn) -> None:
    hold(web, "3", "--wait")
    uid = pod(web, 3)["metadata"]["uid"]
    said = kubectl_tapp(
        web, "set", "image", "web", "app=nginx:2", "-y", "--wait", "--timeout", "5m"
    )
    assert said.code == 4
    assert "web is not done after 5m: 5 of 6 done; instance 3: on hold; " in said.err
    assert "leaving their Services" not in said.out
    assert notes(web, 3)[WANTED] == "Update"
    assert pod(web, 5)["spec"]["containers"][0]["image"] == "nginx:2"
    shown = kubectl_tapp(web, "status", "web").out
    assert " Held " in shown
    assert "6 of 6 instances run, 6 are available" in shown
    assert (
        "instance 3: Held: its pod is on hold (reason: 'match 42'); "
        "the update has been pending since" in shown
    )
    why = kubectl_tapp(web, "why", "web", "3").out
    assert "Held: its pod is on hold (reason: 'match 42'); the update has been pending since" in why
    assert "pod Running on node-0 for " in why
    assert "hold: `kubectl tapp release web 3 -n default` removes the hold" in why
    said = kubectl_tapp(web, "release", "web", "3", "-y", "--wait")
    assert said.err == ""
    assert said.code == 0
    assert (
        "  3  TemplateChanged: template 'default' changes the image of container app in place"
        in said.lines
    )
    assert HOLD not in notes(web, 3)
    assert pod(web, 3)["metadata"]["uid"] == uid
    assert WANTED not in notes(web, 3)
    assert pod(web, 3)["spec"]["containers"][0]["image"] == "nginx:2"


@pytest.mark.parametrize(
    "ids", [[], ["all"], ["0", "2-5"]], ids=["no argument", "all", "numbers and a range"]
)
def test_why_names_holds_without_an_effect(web: StandIn, ids: list[str]) -> None:
    hold(web, "0,2-4")
    kubectl_tapp(web, "hold", "web", "5", "--reason", "match 43", "-y")
    said = kubectl_tapp(web, "why", "web", *ids).out
    for reason, named in (("match 42", "0,2-4"), ("match 43", "5")):
        ends = f"`kubectl tapp release web {named} -n default`"
        text = f"hold: '{reason}'; this delays nothing now; {ends}"
        assert said.count(text) == 1


def test_why_has_the_command_that_releases_all_blocked_instances(web: StandIn) -> None:
    hold(web, "0,2-4", "--wait")
    kubectl_tapp(web, "set", "image", "web", "app=nginx:2", "-y")
    web.world.run(60)
    said = kubectl_tapp(web, "why", "web")
    assert "    hold: `kubectl tapp release web 0,2-4 -n default` removes the hold" in said.lines


def test_wait_does_not_report_a_hold_with_an_end_as_stuck(web: StandIn) -> None:
    hold(web, "5", "--wait")
    kubectl_tapp(web, "kill", "web", "5", "-y")
    web.world.run(120)
    assert kubectl_tapp(web, "wait", "web", "--for=stuck", "--timeout", "2m").code == 4
    run, begun = web.world.run, web.world.clock.now

    def released(seconds: float) -> None:
        if web.world.clock.now - begun > 120:
            web.world.patch("pods", "web-5", {"metadata": {"annotations": {HOLD: None}}})
        run(seconds)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(web.world, "run", released)
        said = kubectl_tapp(web, "wait", "web", "5")
    assert said.err == ""
    assert said.code == 0


def test_wait_reports_a_broken_instance_as_stuck_despite_a_hold(web: StandIn) -> None:
    hold(web, "3", "--wait")
    web.world.kubelet.levers.bad_images.add("nginx:2")
    said = kubectl_tapp(web, "set", "image", "web", "app=nginx:2", "-y", "--wait")
    assert said.code == 4
    assert "web is stuck: instance 0: not available: container app: " in said.err


def test_hold_says_which_hold_it_replaces(web: StandIn) -> None:
    hold(web, "1-2", "--for", "update")
    same = ("--reason", "match 42", "--for=update")
    assert "hold already" not in kubectl_tapp(web, "hold", "web", "1", *same, "-y").out
    said = kubectl_tapp(web, "hold", "web", "1-3", "--reason", "match 43", "-y")
    text = "  1, 2  already on hold: 'match 42', for update; the new hold replaces this one"
    assert said.lines[1] == text


def test_restart_in_place_says_that_the_instance_is_on_hold(web: StandIn) -> None:
    hold(web, "2", "--wait")
    said = kubectl_tapp(web, "restart", "web", "1,2", "--in-place", "--dry-run=client")
    assert said.lines[0] == "TApp web, within the budget:"
    assert "  1  UpdateInPlace: annotation" in said.out
    assert "  2  Held: its pod is on hold (reason: 'match 42')" in said.out


@pytest.mark.parametrize("verb", [["hold", "--reason", "x"], ["release"]], ids=["hold", "release"])
def test_hold_and_release_without_pods_change_nothing(web: StandIn, verb: list[str]) -> None:
    kubectl_tapp(web, "scale", "web", "--replicas", "0", "-y", "--wait")
    said = kubectl_tapp(web, verb[0], "web", "all", *verb[1:], "-y")
    assert said.err == "error: web has no pods now\n"
    assert said.code == 1


def test_plan_knows_instances_on_hold(web: StandIn) -> None:
    hold(web, "3", "--wait")
    said = kubectl_tapp(web, "plan", "web", "--image", "app=nginx:2", "--fail-if", "stuck")
    assert said.code == 0
    assert "its pod is on hold (reason: 'match 42')" in said.out
    said = kubectl_tapp(web, "plan", "web", "--image", "app=nginx:2", "-o", "json")
    assert {each["id"]: each["outcome"] for each in json.loads(said.out)["instances"]} == {
        **dict.fromkeys((0, 1, 2, 4, 5), "in place"),
        3: "waiting",
    }
    said = kubectl_tapp(web, "kill", "web", "2-3", "--dry-run=client")
    assert "its pod is on hold (reason: 'match 42')" in said.out


def test_scaled_down_instance_on_hold_can_be_released(web: StandIn) -> None:
    hold(web, "5", "--wait")
    assert kubectl_tapp(web, "scale", "web", "--replicas", "4", "-y").code == 0
    web.world.run(60)
    names = {each["metadata"]["name"] for each in web.world.list("pods")}
    assert names == {"web-0", "web-1", "web-2", "web-3", "web-5"}
    assert kubectl_tapp(web, "release", "web", "5", "-y").code == 0
    web.world.run(60)
    assert len(web.world.list("pods")) == 4


def test_restart_waits_for_an_instance_on_hold(web: StandIn) -> None:
    hold(web, "2")
    uid = pod(web, 2)["metadata"]["uid"]
    said = kubectl_tapp(web, "restart", "web", "2", "-y", "--timeout", "10s")
    assert said.code == 4
    assert "its pod is on hold (reason: 'match 42')" in said.err
    assert pod(web, 2)["metadata"]["uid"] == uid


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["hold", "web", "0"], 2, "missing option '--reason'"),
        (["hold", "web", "0", "--reason", " "], 2, "--reason is empty: give a reason"),
        (
            ["hold", "web", "0", "--reason", 1001 * "x"],
            2,
            "--reason is longer than 1,000 characters",
        ),
        (["hold", "web", "0", "--reason", "x", "--for", "kill"], 2, "'kill' is not one of"),
        (
            ["hold", "web", "9", "--reason", "x"],
            2,
            "there is no instance 9: the instances are 0 to 5",
        ),
        (["hold", "web", "3", "--reason", "x"], 1, "instance 3 has no pod now"),
        (["release", "web", "3"], 1, "instance 3 has no pod now"),
    ],
    ids=[
        "no reason",
        "blank reason",
        "long reason",
        "unknown action",
        "unknown instance",
        "hold of an instance without a pod",
        "release of an instance without a pod",
    ],
)
def test_invalid_arguments_are_refused(
    web: StandIn, arguments: list[str], code: int, message: str
) -> None:
    kubectl_tapp(web, "kill", "web", "3", "-y", "--wait")
    said = kubectl_tapp(web, *arguments, "-y")
    assert said.code == code
    assert message in said.err


def test_all_means_the_instances_with_a_pod(web: StandIn) -> None:
    kubectl_tapp(web, "kill", "web", "3", "-y", "--wait")
    hold(web, "all")
    assert (
        kubectl_tapp(web, "release", "web", "all", "-y").lines[-1]
        == "web: instances 0-2, 4, 5 released"
    )


def test_release_does_not_write_pods_without_a_hold(web: StandIn) -> None:
    said = kubectl_tapp(web, "release", "web", "1", "-y")
    assert said.code == 0
    assert said.lines == ["web: instance 1 is not on hold: no change needed"]
