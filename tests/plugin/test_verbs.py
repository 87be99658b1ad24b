"""Tests the verbs, including the plan, the question, the guarded write, and the wait."""

from typing import Any

import pytest

from kubectl_tapp.cluster.session import Session
from tests.builders import template
from tests.plugin.clusters import CAUSE, answering, running, spec_of
from tests.plugin.fake_kubectl import StandIn, kubectl_tapp

Document = dict[str, Any]


@pytest.fixture
def web() -> StandIn:
    return running()


@pytest.mark.parametrize(
    ("arguments", "path", "expected"),
    [
        (["kill", "web", "1,3"], "statuses", {"1": "Killed", "3": "Killed"}),
        (["use", "web", "v2", "0", "4-5"], "templates", {"0": "v2", "4": "v2", "5": "v2"}),
        (["pause", "web"], "updateStrategy", {"paused": True}),
        (["scale", "web", "--replicas", "4"], "replicas", 4),
        (["scale", "web", "--replicas=8"], "replicas", 8),
    ],
    ids=["kill", "use", "pause", "scale down", "scale up"],
)
def test_verb_writes_the_field_that_it_stands_for(
    web: StandIn, arguments: list[str], path: str, expected: object
) -> None:
    said = kubectl_tapp(web, *arguments, "-y")
    assert said.err == ""
    assert said.code == 0
    assert spec_of(web)[path] == expected
    assert "web: the change was written (generation 2)" in said.lines
    assert len(web.writes) == 1


def test_plan_of_an_ordered_tapp_counts_all_chosen_instances() -> None:
    """Scales up with podManagementPolicy OrderedReady: the plan creates all new instances, and none
    is stuck.

    In one sync, all but the first would look stuck. A scale-down then deletes one pod after the
    other.
    """
    ordered = running(podManagementPolicy="OrderedReady")
    said = kubectl_tapp(ordered, "scale", "web", "--replicas", "9", "--dry-run=client")
    assert "6-8 (3)" in said.out
    assert "created" in said.out
    assert "Stuck" not in said.out
    said = kubectl_tapp(ordered, "scale", "web", "--replicas", "4", "-y", "--wait")
    assert said.err == ""
    assert said.code == 0
    assert [write.name for write in ordered.world.writes if write.verb == "delete"] == [
        "web-5",
        "web-4",
    ]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["kill", "web", "1"], "1 deleted"),
        (["scale", "web", "--replicas", "4"], "2 deleted"),
        (["scale", "web", "--replicas", "0"], "5 deleted"),
        (["start", "web", "3"], "1 created"),
        (["restart", "web"], "5 recreated"),
    ],
    ids=["kill", "scale down", "scale to 0", "start", "restart"],
)
def test_plan_says_whether_deleted_pods_are_recreated(
    web: StandIn, arguments: list[str], expected: str
) -> None:
    kubectl_tapp(web, "kill", "web", "3", "-y", "--wait")
    said = kubectl_tapp(web, *arguments, "--dry-run=client")
    assert said.lines[0] == f"TApp default/web: {expected}"


def test_set_image_waits_until_the_new_image_runs(web: StandIn) -> None:
    said = kubectl_tapp(web, "set", "image", "web", "app=nginx:9", "-y", "--wait")
    assert said.err == ""
    assert said.code == 0
    assert spec_of(web)["template"]["spec"]["containers"][0]["image"] == "nginx:9"
    assert {pod["spec"]["containers"][0]["image"] for pod in web.world.list("pods")} == {"nginx:9"}
    assert said.lines[-1].startswith("web: instances 0-5 done, after ")
    assert any("instance 0: being updated in place" in line for line in said.lines)


def test_verb_waits_for_an_edit_that_changes_no_instance(web: StandIn) -> None:
    said = kubectl_tapp(web, "set", "image", "web", "app=nginx:9", "--template=v2", "-y", "--wait")
    assert said.err == ""
    assert said.code == 0
    assert said.lines[-1].startswith("web: done, after ")


def test_reason_is_written_to_the_change_cause(web: StandIn) -> None:
    kubectl_tapp(web, "set", "image", "web", "app=nginx:9", "-y")
    kubectl_tapp(web, "use", "web", "v2", "0", "-y", "--cause", "INC-7")
    notes = web.world.get("tapps", "web")["metadata"]["annotations"]
    assert notes["kubernetes.io/change-cause"] == "INC-7"


def test_start_and_resume_undo_kill_and_pause(web: StandIn) -> None:
    for arguments in (["kill", "web", "all"], ["start", "web", "0-4"], ["pause", "web"]):
        assert kubectl_tapp(web, *arguments, "-y").code == 0
    assert kubectl_tapp(web, "resume", "web", "-y", "--wait").code == 0
    assert spec_of(web)["statuses"] == {"5": "Killed"}
    assert "paused" not in spec_of(web)["updateStrategy"]
    assert len(web.world.list("pods")) == 5


# --- questions ------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", ["y\n", "Y\n", " yes \n"])
def test_question_accepts_yes_in_several_spellings(web: StandIn, answer: str) -> None:
    said = answering(web, answer, "kill", "web", "0")
    assert said.code == 0
    assert "Apply? [y/N]" in said.out
    assert spec_of(web)["statuses"] == {"0": "Killed"}


@pytest.mark.parametrize("answer", ["\n", "n\n", "yep\n", ""])
def test_question_takes_every_other_answer_as_no(web: StandIn, answer: str) -> None:
    said = answering(web, answer, "kill", "web", "0")
    assert said.code == 5
    assert said.err == "error: not confirmed; nothing was written\n"
    assert web.writes == []


def test_without_a_terminal_a_verb_is_refused_instead_of_asking(web: StandIn) -> None:
    said = kubectl_tapp(web, "kill", "web", "0", stdin="y\n")
    assert said.code == 2
    assert (
        "the command cannot ask for confirmation without a terminal; nothing was written. Repeat "
        "it with -y" in said.err
    )
    assert web.writes == []


def test_interrupt_at_the_question_writes_nothing(
    web: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: str) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(Session, "ask", staticmethod(interrupted))
    said = answering(web, "", "kill", "web", "0")
    assert said.code == 130
    assert said.err == "interrupted; nothing was written\n"
    assert web.writes == []


def test_verb_without_a_change_writes_nothing(web: StandIn) -> None:
    said = kubectl_tapp(web, "start", "web", "0")
    assert said.code == 0
    assert said.lines == ["web: no change needed"]
    assert web.writes == []


def test_start_does_not_restart_a_finished_instance() -> None:
    web = running(template=template("job:1", restartPolicy="Never"), replicas=1)
    web.world.kubelet.levers.completes = lambda *_: (1.0, 0)
    web.world.patch("tapps", "web", {"spec": {"replicas": 2}})
    web.world.settle()
    said = kubectl_tapp(web, "start", "web", "1")
    assert said.lines == [
        "Finished: instance 1. To run a finished instance again, kill it and then start it.",
        "web: no change needed",
    ]


# --- the guard ----------------------------------------------------------------------------------


def test_edit_by_another_client_is_not_overwritten(web: StandIn) -> None:
    web.before.append(lambda: web.world.patch("tapps", "web", {"spec": {"replicas": 7}}))
    said = kubectl_tapp(web, "kill", "web", "0", "-y")
    assert said.code == 6
    assert "web changed after the plan was made; nothing was written" in said.err
    assert "statuses" not in spec_of(web)


def test_status_update_before_the_write_is_no_conflict(web: StandIn) -> None:
    def status() -> None:
        live = dict(web.world.get("tapps", "web"))
        live["status"] = {**live["status"], "ready": "0/6"}
        web.world.cluster.update_status(web.world.kinds.find("tapps"), live)

    web.before.append(status)
    assert kubectl_tapp(web, "kill", "web", "0", "-y").code == 0


@pytest.mark.parametrize(
    ("at_first", "meanwhile"),
    [(None, {"a": "1"}), ({"a": "0"}, {"a": None}), ({CAUSE: "x"}, {CAUSE: None, "b": "2"})],
    ids=["added", "removed", "change cause removed"],
)
def test_annotations_of_other_clients_are_kept(
    web: StandIn, at_first: Document | None, meanwhile: Document, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another client changes annotations while the user reads the question; the write keeps these
    changes.

    An annotation does not change the generation, so the generation does not guard the patch. A
    patch with all old annotations would remove a new one.
    """
    web.world.patch("tapps", "web", {"metadata": {"annotations": None}})
    web.world.patch("tapps", "web", {"metadata": {"annotations": at_first}})

    def read(_: str) -> str:
        web.world.patch("tapps", "web", {"metadata": {"annotations": meanwhile}})
        return "y"

    monkeypatch.setattr(Session, "ask", staticmethod(read))
    said = answering(web, "", "set", "image", "web", "app=nginx:9")
    assert said.err == ""
    assert said.code == 0
    kept = {key: value for key, value in meanwhile.items() if value and key != CAUSE}
    notes = web.world.get("tapps", "web")["metadata"]["annotations"]
    assert notes == {**kept, CAUSE: "kubectl tapp set image web app=nginx:9 in default"}


def test_deletion_of_the_tapp_during_the_question_is_an_error(web: StandIn) -> None:
    web.before.append(lambda: web.world.delete("tapps", "web"))
    said = kubectl_tapp(web, "kill", "web", "0", "-y")
    assert said.code != 0
    assert len(said.err.splitlines()) == 1


# --- refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["kill", "wbe", "0"], "no TApp 'wbe' in namespace default; did you mean 'web'?"),
        (["kill", "web", "6"], "there is no instance 6: the instances are 0 to 5"),
        (["kill", "web", "x"], "'x' is not a list of instances"),
        (["use", "web", "v3", "0"], "there is no template 'v3'; did you mean 'v2'?"),
        (["use", "web", "v2"], "name instances, or pick them with --canary"),
        (["use", "web", "v2", "1", "--canary", "1"], "name instances, or pick them with --canary"),
        (["use", "web", "v2", "--canary", "0"], "'0' is not a share of 6 instances"),
        (["set", "image", "web", "nginx:9"], "'nginx:9' does not set an image"),
        (["set", "image", "web", "ap=nginx:9"], "no container 'ap'; did you mean 'app'?"),
        (["scale", "web", "--replicas", "-1"], "'-1' is not a number of instances"),
        (["scale", "web", "--replicas", "50001"], "'50001' is not a number of instances"),
        (["pause", "web", "--timeout", "soon"], "'soon' is not a duration"),
    ],
    ids=[
        "unknown TApp",
        "unknown instance",
        "no number",
        "unknown template",
        "no instance",
        "instance and canary",
        "canary of 0 instances",
        "no container",
        "unknown container",
        "negative replicas",
        "too many replicas",
        "invalid duration",
    ],
)
def test_invalid_arguments_are_one_error_and_write_nothing(
    web: StandIn, arguments: list[str], message: str
) -> None:
    said = kubectl_tapp(web, *arguments, "-y")
    assert said.code in (1, 2)
    assert said.err.startswith("error: ")
    assert message in said.err
    assert len(said.err.splitlines()) == 1
    assert web.writes == []


def test_without_permission_the_error_comes_before_the_question(web: StandIn) -> None:
    web.forbid("patch tapps")
    said = answering(web, "y\n", "kill", "web", "0")
    assert said.code == 1
    assert "no permission" in said.err
    assert "Apply?" not in said.out


def test_without_permission_to_list_pods_nothing_is_changed(web: StandIn) -> None:
    web.forbid("list pods")
    said = kubectl_tapp(web, "kill", "web", "0", "-y")
    assert said.code == 1
    assert "cannot list" in said.err
    assert web.writes == []


# --- canaries -----------------------------------------------------------------------------------


def test_canary_explains_its_choice_of_instances(web: StandIn) -> None:
    said = kubectl_tapp(web, "use", "web", "v2", "--canary", "34%", "-y")
    picked = spec_of(web)["templates"]
    assert len(picked) == 3
    assert "Canary of 3 of 6 instances: " in said.out
    assert "all available, on 3 nodes, chosen from the highest number down" in said.out
    nodes = {pod["spec"]["nodeName"] for pod in web.world.list("pods")
             if pod["metadata"]["name"].rpartition("-")[2] in picked}  # fmt: skip
    assert len(nodes) == 3


def test_larger_canary_keeps_the_instances_of_a_smaller_one(web: StandIn) -> None:
    kubectl_tapp(web, "use", "web", "v2", "--canary", "1", "-y")
    first = set(spec_of(web)["templates"])
    kubectl_tapp(web, "use", "web", "v2", "--canary", "50%", "-y")
    assert first < set(spec_of(web)["templates"])
    said = kubectl_tapp(web, "use", "web", "v2", "--canary", "2", "-y")
    assert "no instance is picked" in said.out
    assert len(spec_of(web)["templates"]) == 3


def test_canary_of_an_image_gets_a_new_template(web: StandIn) -> None:
    said = kubectl_tapp(web, "set", "image", "web", "app=nginx:9", "--canary", "1", "-y", "--wait")
    assert said.err == ""
    assert said.code == 0
    spec = spec_of(web)
    assert spec["template"]["spec"]["containers"][0]["image"] == "nginx:1.25"
    assert spec["templatePool"]["canary"]["spec"]["containers"][0]["image"] == "nginx:9"
    assert list(spec["templates"].values()) == ["canary"]


def test_broken_instance_is_not_chosen_as_canary() -> None:
    web = running(templates={"5": "broken"}, templatePool={
        "v2": template("nginx:2"), "broken": template("nginx:2")})  # fmt: skip
    kubectl_tapp(web, "kill", "web", "5", "-y", "--wait")
    kubectl_tapp(web, "use", "web", "v2", "--canary", "1", "-y")
    assert spec_of(web)["templates"].get("4") == "v2"


def test_set_image_names_instances_with_another_template(web: StandIn) -> None:
    kubectl_tapp(web, "use", "web", "v2", "4,5", "-y")
    said = kubectl_tapp(web, "set", "image", "web", "app=nginx:9", "-y")
    note = "Template 'v2' of instances 4, 5 does not change: --template v2 changes it."
    assert note in said.out


# --- other tools ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "tool"),
    [
        ("argocd.argoproj.io/instance", "Argo CD"),
        ("kustomize.toolkit.fluxcd.io/name", "Flux"),
        ("meta.helm.sh/release-name", "Helm"),
    ],
)
def test_verb_warns_first_that_another_tool_will_undo_the_change(
    web: StandIn, key: str, tool: str
) -> None:
    web.world.patch("tapps", "web", {"metadata": {"annotations": {key: "shop"}}})
    said = kubectl_tapp(web, "pause", "web", "-y")
    assert said.code == 0
    assert said.err.startswith(f"warning: {tool} manages this TApp: ")
