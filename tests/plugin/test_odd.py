"""Calls that nobody means to make: the right thing happens, or one sentence is said."""

import copy
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kubectl_tapp.base.errors import printable
from kubectl_tapp.base.printed import formatted
from kubectl_tapp.edit.canaries import pick_instances
from tests.builders import manifest, template
from tests.counting import calls
from tests.plugin.standin import Said, StandIn, kubectl_tapp
from tests.scenarios.life import Life

Document = dict[str, Any]


def running(**spec: Any) -> StandIn:
    given = {"replicas": 6, "templatePool": {"v2": template("nginx:2")}, **spec}
    return StandIn(Life().apply(manifest(**given)).world)


@pytest.fixture
def web() -> StandIn:
    return running()


def hacked(standin: StandIn, kind: str, edit: Callable[[Document], object]) -> StandIn:
    """As older API servers and other hands have left it: past all validation."""
    for home in standin.world.cluster._objects.values():
        for key, found in list(home.items()):
            if found.get("kind") == kind:
                changed = copy.deepcopy(dict(found))
                edit(changed)
                home[key] = changed
    return standin


def one_sentence(said: Said, *parts: str) -> None:
    assert said.code != 0
    assert len(said.err.splitlines()) == 1
    assert "fault of kubectl-tapp" not in said.err
    for part in parts:
        assert part in said.err


# --- the same words mean the same ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "what"), [([], "6 recreated"), (["--in-place"], "6 in place")], ids=["new", "in place"]
)
def test_a_planned_restart_is_the_restart_of_the_verb(how: list[str], what: str) -> None:
    web = running(templates={"5": "v2"})
    planned = kubectl_tapp(web, "plan", "web", "--restart", *how)
    done = kubectl_tapp(web, "restart", "web", *how, "--dry-run=client")
    assert planned.lines[0].startswith(f"TApp default/web: {what}, in about ")
    assert done.lines[0] == f"TApp default/web: {what}"
    whom = slice(*(planned.lines.index(title) for title in ("What changes", "Order")))
    assert planned.lines[whom] == done.lines[whom.start : done.lines.index("Budget")]


def test_a_name_as_kubectl_prints_it_can_be_planned(web: StandIn) -> None:
    assert kubectl_tapp(web, "plan", "tapp/web", "--kill", "0").code == 0


def test_a_template_that_nothing_is_asked_of_is_not_passed_over(web: StandIn) -> None:
    said = kubectl_tapp(web, "plan", "web", "--template", "v2", "--kill", "0")
    assert said.code == 2
    one_sentence(said, "--template goes with --image or --restart")


def test_unavailable_means_the_same_in_every_form(web: StandIn, tmp_path: Path) -> None:
    """Unavailable is all that is to run and does not serve: also what is being created."""
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
    assert (document["unavailableBefore"], document["unavailableWorst"]) == (0, 3)
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
def test_a_verb_decides_once_and_plays_nothing(
    words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An emergency cannot wait for a roll-out to be played to its end."""
    web = running(statuses={"5": "Killed"}, updateStrategy={"paused": words[0] == "resume"})
    if words[0] == "rollback":
        assert kubectl_tapp(web, "set", "image", "web", "app=nginx:2", "-y").code == 0
        web.world.run(60)

    def played(*_: object, **__: object) -> None:
        raise AssertionError("it was played")

    monkeypatch.setattr("kubectl_tapp.forecast.foresee.Run", played)
    said = kubectl_tapp(web, *words, "-y")
    assert (said.code, said.err) == (0, "")
    assert said.lines[0].startswith("TApp default/web: ")
    assert web.writes


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--canary", "1", "--copy-as", ""], "is no name for a template"),
        (["--copy-as", "v3"], "--copy-as goes with --canary"),
        (["--template", ""], "there is no template ''"),
    ],
)
def test_a_canary_without_a_name_does_not_become_a_roll_out(
    web: StandIn, words: list[str], message: str
) -> None:
    """As an empty variable of a script would have it."""
    one_sentence(kubectl_tapp(web, "set", "image", "web", "app=nginx:9", "-y", *words), message)
    assert web.writes == []


def test_a_history_of_other_templates_is_not_called_none(web: StandIn) -> None:
    said = kubectl_tapp(web, "history", "web", "-t", "defalt")
    one_sentence(said, "the history has no template 'defalt'; did you mean 'default'?")


def test_what_admission_denies_is_refused_and_no_want_of_permission(web: StandIn) -> None:
    """Both are called Forbidden. A plan passed the one over, as if nobody had looked."""
    words = 'admission webhook "policy.example.com" denied the request: no such registry'
    web.failing["--dry-run=server"] = f"Error from server (Forbidden): {words}"
    said = kubectl_tapp(web, "plan", "web", "--image", "app=nginx:9")
    assert (said.code, said.err) == (1, "")
    assert said.lines == ["TApp default/web: this edit is refused", f"  {words}"]
    one_sentence(
        kubectl_tapp(web, "kill", "web", "0", "-y"), f"error: {words}; nothing was written"
    )


# --- paused is not stuck ------------------------------------------------------------------------


def test_a_pause_is_meant_so_and_not_stuck(web: StandIn) -> None:
    kubectl_tapp(web, "pause", "web", "-y")
    edit = ["plan", "web", "--image", "app=nginx:9"]
    said = kubectl_tapp(web, *edit, "--fail-if", "stuck")
    assert (said.code, said.err) == (0, "")
    assert said.lines[0].endswith("6 waiting, in about 1 s, until updates are resumed")
    assert "Stuck" not in said.out
    assert "  instances 0-5: updates are paused (spec.updateStrategy.paused)" in said.lines
    assert kubectl_tapp(web, *edit, "--fail-if", "paused").code == 3
    assert "gets stuck" not in kubectl_tapp(web, "kill", "web", "1", "--dry-run=client").out


def test_a_pause_hides_nothing_that_is_stuck() -> None:
    web = running(templates={"5": "v3"}, updateStrategy={"paused": True})
    edit = ["plan", "web", "--image", "app=nginx:9"]
    assert kubectl_tapp(web, *edit, "--fail-if", "stuck").code == 3


def test_who_waits_for_a_paused_tapp_is_told_that_it_is_paused(web: StandIn) -> None:
    kubectl_tapp(web, "pause", "web", "-y")
    said = kubectl_tapp(web, "set", "image", "web", "app=nginx:9", "-y", "--wait")
    assert said.code == 4
    assert said.err.startswith("error: web is paused: instances 0-5: ")


# --- waiting ------------------------------------------------------------------------------------


def test_what_nobody_has_looked_at_yet_is_not_called_done(web: StandIn) -> None:
    kubectl_tapp(web, "pause", "web", "-y")
    kubectl_tapp(web, "set", "image", "web", "app=nginx:9", "-y")
    web.world.settle()
    said = kubectl_tapp(web, "resume", "web", "-y", "--wait")
    assert said.code == 0
    assert (
        "web: 0 of 6 done; no controller has acted on its newest spec yet; waiting: 0-5" in said.out
    )


def test_a_tapp_that_goes_is_not_as_asked(web: StandIn) -> None:
    hacked(web, "TApp", lambda it: it["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z"))
    one_sentence(kubectl_tapp(web, "wait", "web"), "TApp web is being deleted")
    assert kubectl_tapp(web, "why", "web").lines[0] == "TApp web is being deleted"


def test_a_tapp_in_deletion_says_what_the_deletion_waits_for(web: StandIn) -> None:
    """A pod with a finalizer hangs: every look names the finalizer, and nothing is "created"."""

    def keep(pod: Document) -> None:
        if pod["metadata"]["name"] == "web-5":
            pod["metadata"]["finalizers"] = ["a.example/x"]

    hacked(web, "Pod", keep)
    web.world.delete("tapps", "web")
    told = kubectl_tapp(web, "status", "web").out
    assert "its status does not say so yet: the controllers of its finalizers" in told
    web.world.run(200)
    for verb in ("status", "why"):
        said = kubectl_tapp(web, verb, "web").out
        assert "the TApp is being deleted since" in said
        assert "finalizer a.example/x keeps the object" in said
        assert "gone: the TApp is being deleted" in said
        assert "create it" not in said
    one_sentence(kubectl_tapp(web, "wait", "web"), "is being deleted", "a.example/x")
    assert "Terminating" in kubectl_tapp(web, "list").out
    document = json.loads(kubectl_tapp(web, "why", "web", "-o", "json").out)
    assert {each["reason"] for each in document["instances"]} == {"Deleting"}


def test_who_is_scaled_away_is_not_restarted(web: StandIn) -> None:
    def scale() -> None:
        web.world.patch("tapps", "web", {"spec": {"replicas": 2}})
        web.world.settle()

    web.before.append(scale)
    said = kubectl_tapp(web, "restart", "web", "2", "4", "-y")
    assert said.code == 1
    assert "error: instance 4 is gone: the TApp has fewer now" in said.err


# --- what validation would not let through ------------------------------------------------------


def test_a_spec_that_makes_no_sense_is_said_to_be_so_and_can_be_repaired(web: StandIn) -> None:
    hacked(web, "TApp", lambda it: it["spec"].update(replicas="x"))
    one_sentence(kubectl_tapp(web, "wait", "web"), "TApp web is invalid: ", "spec.replicas")
    said = kubectl_tapp(web, "scale", "web", "--replicas", "3", "--dry-run=client")
    assert (said.code, said.err) == (0, "")


def test_templates_may_be_called_anything() -> None:
    pool = {"[/b]": template("nginx:2"), "~x/y .z": template("nginx:3"), "[red]": template()}
    web = running(templatePool=pool, templates={"0": "[/b]", "1": "[red]"})
    said = kubectl_tapp(web, "status", "web")
    assert (said.code, said.err) == (0, "")
    assert [line.split()[:2] for line in said.lines[2:4]] == [["0", "[/b]"], ["1", "[red]"]]
    assert kubectl_tapp(web, "use", "web", "~x/y .z", "3", "-y", "--wait").code == 0
    assert kubectl_tapp(web, "set", "image", "web", "app=q:1", "-t", "~x/y .z", "-y").code == 0
    assert kubectl_tapp(web, "list", "-o", "wide").code == 0


@pytest.mark.parametrize("body", [{"spec": 5}, {"spec": {"containers": [{"image": "x"}]}}, {}])
def test_a_template_that_is_none_harms_only_who_uses_it(body: Document) -> None:
    web = hacked(running(), "TApp", lambda it: it["spec"]["templatePool"].update(odd=body))
    for arguments in (
        ["status", "web"], ["why", "web"], ["list", "-o", "wide"],
        ["plan", "web", "--image", "app=nginx:9"], ["restart", "web", "--dry-run=client"],
        ["set", "image", "web", "*=nginx:9", "--dry-run=client"],
    ):  # fmt: skip
        assert (kubectl_tapp(web, *arguments).code, arguments) == (0, arguments)
    if body:
        one_sentence(kubectl_tapp(web, "set", "image", "web", "app=q", "-t", "odd"), "'odd'.spec")


@pytest.mark.parametrize(
    "data",
    [{"template": {"spec": 5}}, {"template": {"spec": {"containers": [5]}}}, {"template": [1]},
     {"template": {"metadata": 3}}, "x", None],
)  # fmt: skip
def test_a_revision_that_cannot_be_read_is_left_out_of_the_history(
    web: StandIn, data: object
) -> None:
    kubectl_tapp(web, "set", "image", "web", "app=nginx:9", "-y", "--wait")

    def spoil(revision: Document) -> None:
        if revision["revision"] == 1:
            revision["data"] = data

    hacked(web, "ControllerRevision", spoil)
    said = kubectl_tapp(web, "history", "web")
    assert (said.code, said.err) == (0, "")
    assert [line.split()[1] for line in said.lines[1:]] == ["2"]
    one_sentence(kubectl_tapp(web, "rollback", "web"), "no earlier 'default' is kept")


@pytest.mark.parametrize("answer", ["null", "[]", "{}", '{"metadata": {}}', '{"metadata": 5}'])
def test_an_answer_that_is_no_object_is_one_sentence(
    web: StandIn, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    monkeypatch.setattr(StandIn, "_get", lambda *_: answer)
    one_sentence(kubectl_tapp(web, "status", "web"), "kubectl get: its answer is no")


# --- what a terminal or a script makes of it ----------------------------------------------------


def test_what_a_container_said_last_does_not_command_the_terminal(web: StandIn) -> None:
    def die(pod: Document) -> None:
        words = "\x1b]0;owned\x07\x1b[2Jbye\x9b31m"
        (status,) = pod["status"]["containerStatuses"]
        status["lastState"] = {"terminated": {"exitCode": 1, "message": words}}
        status["restartCount"], status["ready"] = 3, False
        status["state"] = {"waiting": {"reason": "CrashLoopBackOff", "message": words}}
        pod["status"]["conditions"] = [{"type": "Ready", "status": "False"}]

    hacked(web, "Pod", die)
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


def test_only_controls_are_taken_away() -> None:
    assert printable("a\tb\nc → ü") == "a\tb\nc → ü"
    text = formatted({"a": "\x85ü"}, "json")
    assert (json.loads(text), "\x85" in text) == ({"a": "\x85ü"}, False)


def test_a_pipe_gets_all_of_it() -> None:
    long = "registry.example.com/" + "team/" * 20 + "web@sha256:" + "0123456789abcdef" * 4
    web = running(templatePool={"v2": template(long)})
    said = kubectl_tapp(web, "list", "-A", "-o", "wide")
    assert long in said.out
    assert said.lines[0].split()[:3] == ["NAMESPACE", "NAME", "READY"]


# --- thousands ----------------------------------------------------------------------------------


def test_a_large_canary_is_picked_as_one_after_the_other_would_be() -> None:
    """The rule, one pick at a time, for some; and no time for thousands."""

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


def test_verbs_on_twice_as_many_instances_make_twice_as_many_calls() -> None:
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
        assert (back["spec"]["templates"], back["spec"]["statuses"]) == ({}, {})

    assert calls(lambda: edited(20_000)) < 2.5 * calls(lambda: edited(10_000))
