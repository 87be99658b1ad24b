"""Tests unusual calls: the plugin does the right thing, or prints one error."""

import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from kubectl_tapp.base.errors import printable
from kubectl_tapp.base.printed import formatted
from kubectl_tapp.edit.canaries import pick_instances
from tests.builders import manifest, template
from tests.counting import calls
from tests.plugin.clusters import one_sentence, running, unvalidated
from tests.plugin.fake_kubectl import StandIn, kubectl_tapp

Document = dict[str, Any]


@pytest.fixture
def web() -> StandIn:
    return running()


# --- consistent words -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "what"), [([], "6 recreated"), (["--in-place"], "6 in place")], ids=["new", "in place"]
)
def test_plan_of_a_restart_is_that_of_the_verb(how: list[str], what: str) -> None:
    web = running(templates={"5": "v2"})
    planned = kubectl_tapp(web, "plan", "web", "--restart", *how)
    done = kubectl_tapp(web, "restart", "web", *how, "--dry-run=client")
    assert planned.lines[0].startswith(f"TApp default/web: {what}, in about ")
    assert done.lines[0] == f"TApp default/web: {what}"
    whom = slice(*(planned.lines.index(title) for title in ("What changes", "Order")))
    assert planned.lines[whom] == done.lines[whom.start : done.lines.index("Budget")]


def test_plan_accepts_the_name_as_kubectl_prints_it(web: StandIn) -> None:
    assert kubectl_tapp(web, "plan", "tapp/web", "--kill", "0").code == 0


def test_plan_refuses_template_without_image_or_restart(web: StandIn) -> None:
    said = kubectl_tapp(web, "plan", "web", "--template", "v2", "--kill", "0")
    assert said.code == 2
    one_sentence(said, "--template needs --image or --restart")


def test_number_of_unavailable_instances_is_the_same_in_all_formats(
    web: StandIn, tmp_path: Path
) -> None:
    """Plans three more instances: text, page, JSON and `--fail-if` have the same number of
    unavailable ones.

    Instances that are being created are unavailable, too.
    """
    page = tmp_path / "plan.html"
    grow = ["plan", "web", "--replicas", "9", "--html", str(page)]
    said = kubectl_tapp(web, *grow, "--fail-if", "unavailable>2")
    assert said.code == 3
    assert "at most 3 unavailable at a time (0 are now)" in said.out
    assert "create 6-8 (3)  (3 unavailable)" in said.out
    text = page.read_text()
    assert "<b>3 of 9</b><span>unavailable at most; 0 are now" in text
    assert '<td class="right">3</td>' in text
    assert kubectl_tapp(web, *grow, "--fail-if", "unavailable>3").code == 0
    document = json.loads(kubectl_tapp(web, *grow, "-o", "json").out)
    assert document["unavailableBefore"] == 0
    assert document["unavailableWorst"] == 3
    assert max(each["instances"] for each in document["unavailable"]) == 3


VERBS = (
    ["kill", "web", "0"],
    ["start", "web", "5"],
    ["use", "web", "v2", "1"],
    ["set", "image", "web", "app=nginx:3"],
    ["restart", "web"],
    ["scale", "web", "--replicas", "9"],
    ["pause", "web"],
    ["resume", "web"],
    ["rollback", "web"],
)


@pytest.mark.parametrize("words", VERBS, ids=lambda words: words[0])
def test_verb_simulates_no_rollout(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A verb writes its edit without a forecast of the rollout, because in an emergency nobody can
    wait for that.
    """
    web = running(statuses={"5": "Killed"}, updateStrategy={"paused": words[0] == "resume"})
    if words[0] == "rollback":
        assert kubectl_tapp(web, "set", "image", "web", "app=nginx:2", "-y").code == 0
        web.world.run(60)

    def played(*_: object, **__: object) -> None:
        raise AssertionError("it was played")

    monkeypatch.setattr("kubectl_tapp.forecast.foresee.Run", played)
    said = kubectl_tapp(web, *words, "-y")
    assert said.err == ""
    assert said.code == 0
    assert said.lines[0].startswith("TApp default/web: ")
    assert web.writes


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--canary", "1", "--copy-as", ""], "is not a valid template name"),
        (["--copy-as", "v3"], "--copy-as needs --canary"),
        (["--template", ""], "there is no template ''"),
    ],
    ids=["empty name of the copy", "copy without a canary", "empty template name"],
)
def test_empty_template_name_of_a_canary_is_an_error(
    web: StandIn, words: list[str], message: str
) -> None:
    """An empty text as a template's name is refused, because an empty variable in a script must
    start no rollout.
    """
    one_sentence(kubectl_tapp(web, "set", "image", "web", "app=nginx:9", "-y", *words), message)
    assert web.writes == []


def test_history_of_an_unknown_template_is_an_error(web: StandIn) -> None:
    said = kubectl_tapp(web, "history", "web", "-t", "defalt")
    one_sentence(said, "the history has no template 'defalt'; did you mean 'default'?")


def test_denial_by_admission_is_not_reported_as_missing_permission(web: StandIn) -> None:
    """`plan` reports the denial of an admission webhook as a refusal of the edit.

    The API server calls both Forbidden. A plan may continue without a permission, but not after a
    denial.
    """
    words = 'admission webhook "policy.example.com" denied the request: no such registry'
    web.failing["--dry-run=server"] = f"Error from server (Forbidden): {words}"
    said = kubectl_tapp(web, "plan", "web", "--image", "app=nginx:9")
    assert said.err == ""
    assert said.code == 1
    assert said.lines == ["TApp default/web: this edit is refused", f"  {words}"]
    one_sentence(
        kubectl_tapp(web, "kill", "web", "0", "-y"), f"error: {words}; nothing was written"
    )


def test_plan_of_a_spec_of_the_wrong_type_prints_the_refusal(web: StandIn, tmp_path: Path) -> None:
    """Plans a file with a text as `replicas`: the plan prints the API server's refusal and does not
    crash.
    """
    file = tmp_path / "web.yaml"
    file.write_text(yaml.safe_dump(manifest(replicas="two")))
    words = 'spec.replicas: Invalid value: "string": must be of type integer'
    web.failing["--dry-run=server"] = f'The TApp "web" is invalid: {words}'
    said = kubectl_tapp(web, "plan", "-f", str(file))
    assert said.err == ""
    assert said.code == 1
    assert said.lines[0] == "TApp default/web: this edit is refused"
    assert words in said.out


# --- paused or stuck ------------------------------------------------------------------------------


def test_plan_of_a_paused_tapp_is_not_stuck(web: StandIn) -> None:
    kubectl_tapp(web, "pause", "web", "-y")
    edit = ["plan", "web", "--image", "app=nginx:9"]
    said = kubectl_tapp(web, *edit, "--fail-if", "stuck")
    assert said.err == ""
    assert said.code == 0
    assert said.lines[0].endswith(
        "6 waiting, in about 1 s, then the rest waits until updates are resumed"
    )
    assert "Stuck" not in said.out
    assert "  instances 0-5: updates are paused (spec.updateStrategy.paused)" in said.lines
    assert kubectl_tapp(web, *edit, "--fail-if", "paused").code == 3
    assert "gets stuck" not in kubectl_tapp(web, "kill", "web", "1", "--dry-run=client").out


def test_plan_of_a_paused_tapp_reports_stuck_instances() -> None:
    web = running(templates={"5": "v3"}, updateStrategy={"paused": True})
    edit = ["plan", "web", "--image", "app=nginx:9"]
    assert kubectl_tapp(web, *edit, "--fail-if", "stuck").code == 3


def test_wait_for_a_paused_tapp_says_that_it_is_paused(web: StandIn) -> None:
    kubectl_tapp(web, "pause", "web", "-y")
    said = kubectl_tapp(web, "set", "image", "web", "app=nginx:9", "-y", "--wait")
    assert said.code == 4
    assert said.err.startswith("error: web is paused: instances 0-5: ")


# --- waits ----------------------------------------------------------------------------------------


def test_resume_with_wait_says_that_no_controller_has_acted_yet(web: StandIn) -> None:
    kubectl_tapp(web, "pause", "web", "-y")
    kubectl_tapp(web, "set", "image", "web", "app=nginx:9", "-y")
    web.world.settle()
    said = kubectl_tapp(web, "resume", "web", "-y", "--wait")
    assert said.code == 0
    assert (
        "web: 0 of 6 done; no controller has acted on its newest spec yet; instances 0-5: the "
        "update waits" in said.out
    )


def test_wait_for_a_tapp_in_deletion_is_an_error(web: StandIn) -> None:
    unvalidated(
        web, "TApp", lambda it: it["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z")
    )
    one_sentence(kubectl_tapp(web, "wait", "web"), "TApp web is being deleted")
    assert kubectl_tapp(web, "why", "web").lines[0] == "TApp web is being deleted"


def test_output_for_a_tapp_in_deletion_names_the_blocking_finalizer(web: StandIn) -> None:
    """Deletes a TApp while a pod has a finalizer: all commands name the finalizer.

    No command says that an instance is created.
    """

    def keep(pod: Document) -> None:
        if pod["metadata"]["name"] == "web-5":
            pod["metadata"]["finalizers"] = ["a.example/x"]

    unvalidated(web, "Pod", keep)
    web.world.delete("tapps", "web")
    told = kubectl_tapp(web, "status", "web").out
    assert "its status does not say so yet: the controllers of its finalizers" in told
    web.world.run(200)
    for verb in ("status", "why"):
        said = kubectl_tapp(web, verb, "web").out
        assert "the TApp is being deleted (since" in said
        assert "finalizer a.example/x keeps the object" in said
        assert "its pod is gone: the TApp is being deleted" in said
        assert "create it" not in said
    one_sentence(kubectl_tapp(web, "wait", "web"), "is being deleted", "a.example/x")
    assert "Terminating" in kubectl_tapp(web, "list").out
    document = json.loads(kubectl_tapp(web, "why", "web", "-o", "json").out)
    assert {each["reason"] for each in document["instances"]} == {"Deleting"}


def test_restart_ends_with_an_error_if_a_chosen_instance_is_scaled_down(web: StandIn) -> None:
    def scale() -> None:
        web.world.patch("tapps", "web", {"spec": {"replicas": 2}})
        web.world.settle()

    web.before.append(scale)
    said = kubectl_tapp(web, "restart", "web", "2", "4", "-y")
    assert said.code == 1
    assert "error: instance 4 does not exist any more: the TApp was scaled down" in said.err


# --- objects that validation would refuse ---------------------------------------------------------


def test_invalid_spec_is_reported_and_can_be_repaired(web: StandIn) -> None:
    unvalidated(web, "TApp", lambda it: it["spec"].update(replicas="x"))
    one_sentence(kubectl_tapp(web, "wait", "web"), "TApp web is invalid: ", "spec.replicas")
    said = kubectl_tapp(web, "scale", "web", "--replicas", "3", "--dry-run=client")
    assert said.err == ""
    assert said.code == 0


def test_template_names_may_be_any_text() -> None:
    pool = {"[/b]": template("nginx:2"), "~x/y .z": template("nginx:3"), "[red]": template()}
    web = running(templatePool=pool, templates={"0": "[/b]", "1": "[red]"})
    said = kubectl_tapp(web, "status", "web")
    assert said.err == ""
    assert said.code == 0
    assert [line.split()[:2] for line in said.lines[2:4]] == [["0", "[/b]"], ["1", "[red]"]]
    assert kubectl_tapp(web, "use", "web", "~x/y .z", "3", "-y", "--wait").code == 0
    assert kubectl_tapp(web, "set", "image", "web", "app=q:1", "-t", "~x/y .z", "-y").code == 0
    assert kubectl_tapp(web, "list", "-o", "wide").code == 0


INVALID_TEMPLATES = {
    "spec is a number": {"spec": 5},
    "container without a name": {"spec": {"containers": [{"image": "x"}]}},
    "empty": {},
}


def with_invalid_template(body: Document) -> StandIn:
    """Returns a cluster with a running TApp whose pool has the template `odd` with this body."""
    return unvalidated(running(), "TApp", lambda it: it["spec"]["templatePool"].update(odd=body))


@pytest.mark.parametrize(
    "arguments",
    [
        ["status", "web"], ["why", "web"], ["list", "-o", "wide"],
        ["plan", "web", "--image", "app=nginx:9"], ["restart", "web", "--dry-run=client"],
        ["set", "image", "web", "*=nginx:9", "--dry-run=client"],
    ],
    ids=" ".join,
)  # fmt: skip
@pytest.mark.parametrize("body", INVALID_TEMPLATES.values(), ids=INVALID_TEMPLATES)
def test_invalid_template_affects_only_its_instances(body: Document, arguments: list[str]) -> None:
    said = kubectl_tapp(with_invalid_template(body), *arguments)
    assert said.code == 0, said.err


@pytest.mark.parametrize("name", ["spec is a number", "container without a name"])
def test_edit_of_an_invalid_template_is_refused(name: str) -> None:
    web = with_invalid_template(INVALID_TEMPLATES[name])
    one_sentence(kubectl_tapp(web, "set", "image", "web", "app=q", "-t", "odd"), "'odd'.spec")


@pytest.mark.parametrize(
    "data",
    [{"template": {"spec": 5}}, {"template": {"spec": {"containers": [5]}}}, {"template": [1]},
     {"template": {"metadata": 3}}, "x", None],
    ids=[
        "pod spec is a number", "container is a number", "template is a list",
        "metadata are a number", "data are a text", "no data",
    ],
)  # fmt: skip
def test_history_skips_unreadable_revisions(web: StandIn, data: object) -> None:
    kubectl_tapp(web, "set", "image", "web", "app=nginx:9", "-y", "--wait")

    def spoil(revision: Document) -> None:
        if revision["revision"] == 1:
            revision["data"] = data

    unvalidated(web, "ControllerRevision", spoil)
    said = kubectl_tapp(web, "history", "web")
    assert said.err == ""
    assert said.code == 0
    assert [line.split()[1] for line in said.lines[1:]] == ["2"]
    one_sentence(kubectl_tapp(web, "rollback", "web"), "no earlier revision of template 'default'")


@pytest.mark.parametrize("answer", ["null", "[]", "{}", '{"metadata": {}}', '{"metadata": 5}'])
def test_response_that_is_no_object_is_one_error(
    web: StandIn, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    monkeypatch.setattr(StandIn, "_get", lambda *_: answer)
    one_sentence(kubectl_tapp(web, "status", "web"), "kubectl get returned")


# --- terminals and scripts ------------------------------------------------------------------------


def test_control_characters_in_a_container_message_are_not_printed(web: StandIn) -> None:
    def die(pod: Document) -> None:
        words = "\x1b]0;owned\x07\x1b[2Jbye\x9b31m"
        (status,) = pod["status"]["containerStatuses"]
        status["lastState"] = {"terminated": {"exitCode": 1, "message": words}}
        status["restartCount"], status["ready"] = 3, False
        status["state"] = {"waiting": {"reason": "CrashLoopBackOff", "message": words}}
        pod["status"]["conditions"] = [{"type": "Ready", "status": "False"}]

    unvalidated(web, "Pod", die)
    for verb in ("status", "why"):
        said = kubectl_tapp(web, verb, "web")
        assert said.code == 0
        assert "CrashLoopBackOff" in said.out
        assert verb == "status" or "bye" in said.out
        assert not {"\x1b", "\x07", "\x9b"} & set(said.out)
    document = kubectl_tapp(web, "why", "web", "-o", "json").out
    assert "\x9b" not in document
    assert any("\x1b[2Jbye\x9b31m" in text
               for text in json.loads(document)["instances"][0]["containers"])  # fmt: skip


def test_only_control_characters_are_removed() -> None:
    assert printable("a\tb\nc → ü") == "a\tb\nc → ü"
    text = formatted({"a": "\x85ü"}, "json")
    assert json.loads(text) == {"a": "\x85ü"}
    assert "\x85" not in text


def test_complete_output_is_written_to_a_pipe() -> None:
    long = "registry.example.com/" + "team/" * 20 + "web@sha256:" + "0123456789abcdef" * 4
    web = running(templatePool={"v2": template(long)})
    said = kubectl_tapp(web, "list", "-A", "-o", "wide")
    assert long in said.out
    assert said.lines[0].split()[:3] == ["NAMESPACE", "NAME", "READY"]


# --- thousands of instances -----------------------------------------------------------------------


def test_large_canary_has_the_same_instances_as_repeated_small_ones() -> None:
    """Compares the canaries of a percentage with a choice of one instance after the other.

    In addition, the choice among 20,000 instances must need few function calls.
    """

    def world(number: int) -> Any:
        made = [
            SimpleNamespace(id=id, should_run=True, pod=SimpleNamespace(node=f"n{id * id % 7}"))
            for id in range(number)
        ]
        spec = SimpleNamespace(template_name=lambda id: "v2" if id % 9 == 0 else "v1")
        ready = frozenset(id for id in range(number) if id % 5)
        world = SimpleNamespace(tapp=SimpleNamespace(spec=spec))
        return SimpleNamespace(world=world, instances=made, available=ready)

    small = world(60)
    node = {each.id: each.pod.node for each in small.instances}
    have, ids = [id for id in node if id % 9 == 0], list[int]()
    taken = Counter(node[id] for id in have)
    while len(have) + len(ids) < 45:
        free = [id for id in node if id not in (*have, *ids)]
        ids.append(min(free, key=lambda id: (id not in small.available, taken[node[id]], -id)))
        taken[node[ids[-1]]] += 1
    assert pick_instances(small, "v2", "75%")[0] == sorted(ids)
    large = world(20_000)
    assert calls(lambda: pick_instances(large, "v2", "50%")) < 100 * 20_000
    assert len(pick_instances(large, "v2", "50%")[0]) == 10_000 - 2223


def test_function_calls_of_verbs_grow_linearly_with_the_instances() -> None:
    from kubectl_tapp.edit import edits  # noqa: PLC0415 - what is measured

    def edited(number: int) -> None:
        tapp: Document = {"metadata": {}, "spec": {"replicas": number, "template": template(),
                          "templatePool": {"v2": template()}}}  # fmt: skip
        stopped = edits.killed(tapp, range(number))
        used = edits.with_assigned_template(stopped, "v2", range(number))
        back = edits.with_assigned_template(
            edits.started(used, range(number)), "default", range(number)
        )
        assert len(used["spec"]["templates"]) == len(stopped["spec"]["statuses"]) == number
        assert back["spec"]["templates"] == {}
        assert back["spec"]["statuses"] == {}

    assert calls(lambda: edited(20_000)) < 2.5 * calls(lambda: edited(10_000))
