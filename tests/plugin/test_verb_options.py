"""Tests each verb with each common option, and options that no other test uses.

tests/contract/test_inputs_are_tested.py finds options without a test.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from kubectl_tapp.main import run
from tests.builders import manifest, template
from tests.plugin.clusters import CAUSE
from tests.plugin.fake_kubectl import StandIn, kubectl_tapp
from tests.plugin.old_cluster import Old
from tests.scenarios.life import Life

Document = dict[str, Any]
ENV = {"env": [{"name": "A", "value": "$(tapp.values.a)"}]}
SPEC: Document = {
    "replicas": 4,
    "template": template("nginx:1", container=ENV),
    "templatePool": {"v2": template("nginx:2")},
    "defaultValues": {"a": "x"},
    "updateStrategy": {"maxUnavailable": 2},
}
VERBS: dict[str, list[str]] = {
    "kill": ["kill", "web", "1"],
    "start": ["start", "web", "3"],
    "use": ["use", "web", "v2", "0"],
    "set image": ["set", "image", "web", "app=nginx:3"],
    "set value": ["set", "value", "web", "0", "a=z"],
    "restart": ["restart", "web"],
    "pause": ["pause", "web"],
    "resume": ["resume", "web"],
    "retry": ["retry", "web"],
    "scale": ["scale", "web", "--replicas", "6"],
    "rollback": ["rollback", "web"],
    "advance": ["advance", "web"],
    "promote": ["promote", "web"],
    "abort": ["abort", "web"],
    "hold": ["hold", "web", "1", "--reason", "match 42"],
    "release": ["release", "web", "2"],
}
"""Verb -> how it is typed, of a TApp for which it is something to do."""
BEFORE: dict[str, list[list[str]]] = {
    "start": [["kill", "web", "3"]],
    "resume": [["pause", "web"], ["set", "image", "web", "app=nginx:3"]],
    "rollback": [["set", "image", "web", "app=nginx:3"]],
    "advance": [["set", "image", "web", "app=nginx:3", "--partition", "2"]],
    "promote": [["set", "image", "web", "app=nginx:3", "--canary", "1"]],
    "abort": [["set", "image", "web", "app=nginx:3", "--canary", "1"]],
    "release": [["hold", "web", "2", "--reason", "match 42"]],
}
"""Verb -> what is done first."""


def ready_for(verb: str) -> StandIn:
    """Returns a running TApp with four instances, in a state in which the verb has something to
    do.
    """
    standin = StandIn(Life().apply(manifest(**SPEC)).world)
    for words in BEFORE.get(verb, ()):
        assert kubectl_tapp(standin, *words, "-y").code == 0
        standin.world.settle()
    if verb == "retry":
        world = standin.world
        world.kubelet.levers.unready_images.add("nginx:8")
        strategy = {"onDeadline": "Rollback", "maxUnavailable": 2}
        world.patch("TApp", "web", {"spec": {
            "template": template("nginx:8", container=ENV), "updateStrategy": strategy,
            "progressDeadlineSeconds": 10,
        }})  # fmt: skip
        world.run(60)
        world.kubelet.levers.unready_images.clear()
    standin.calls.clear()
    return standin


def content(standin: StandIn) -> list[Document]:
    """Returns metadata and spec of all objects that a verb may write to."""
    objects = [*standin.world.list("tapps"), *standin.world.list("pods")]
    return [{**each["metadata"], **each["spec"]} for each in objects]


@pytest.mark.parametrize("verb", VERBS)
def test_dry_run_of_each_verb_writes_nothing(verb: str) -> None:
    """`--dry-run=client` and `--dry-run=server` change no object; with `server`, the API server
    checks the edit.
    """
    standin = ready_for(verb)
    before = content(standin)
    for how, asked in (("client", False), ("server", True)):
        said = kubectl_tapp(standin, *VERBS[verb], f"--dry-run={how}")
        assert said.err == ""
        assert said.code == 0
        assert said.lines[-1].startswith("Dry run: nothing was written.")
        assert any("--dry-run=server" in call for call in standin.calls) == asked
        assert standin.writes == []
        assert content(standin) == before


SLOW = (
    "start", "use", "set image", "set value", "restart", "resume", "retry", "scale", "rollback",
    "advance", "promote", "abort",
)  # fmt: skip
"""Verbs that take some time."""


@pytest.mark.parametrize("verb", SLOW)
def test_timeout_of_each_verb_is_respected(verb: str) -> None:
    """With `--wait --timeout 1s` a verb writes its edit and then fails, because the rollout takes
    longer.
    """
    standin = ready_for(verb)
    begun = standin.world.clock.now
    said = kubectl_tapp(standin, *VERBS[verb], "-y", "--wait", "--timeout", "1s")
    assert said.code == 4
    assert standin.world.clock.now - begun < 10
    assert len(standin.writes) == 1
    assert kubectl_tapp(standin, "wait", "web").code == 0
    standin = ready_for(verb)
    said = kubectl_tapp(standin, *VERBS[verb], "-y", "--wait", "--timeout=9m")
    assert said.err == ""
    assert said.code == 0


CAUSED = ("use", "set image", "set value", "restart", "rollback", "promote", "abort")


@pytest.mark.parametrize("verb", CAUSED)
def test_cause_is_in_the_history(verb: str) -> None:
    """`--cause` sets the change cause of the new revision; without the option, it is the
    command.
    """
    for words, expected in ((["--cause", "ticket 7"], "ticket 7"), ([], f"kubectl tapp {verb}")):
        standin = ready_for(verb)
        assert kubectl_tapp(standin, *VERBS[verb], *words, "-y").code == 0
        notes = standin.world.get("tapps", "web")["metadata"]["annotations"]
        assert notes[CAUSE].startswith(expected)
        standin.world.settle()
        if verb in ("set image", "restart"):  # the template changes
            assert expected in kubectl_tapp(standin, "history", "web").out


@pytest.mark.parametrize(
    ("verb", "images"), [("promote", {"nginx:3"}), ("abort", {"nginx:1"})], ids=["promote", "abort"]
)
def test_base_of_a_canary_can_be_chosen(verb: str, images: set[str]) -> None:
    """`--base` names the template that a canary is promoted to or aborted to; it must exist."""
    standin = ready_for(verb)
    said = kubectl_tapp(standin, *VERBS[verb], "--base", "default", "-y", "--wait")
    assert said.err == ""
    assert said.code == 0
    pods = standin.world.list("pods")
    assert {pod["spec"]["containers"][0]["image"] for pod in pods} == images
    standin = ready_for(verb)
    said = kubectl_tapp(standin, *VERBS[verb], "--base", "v9", "-y")
    assert said.code != 0
    assert "v9" in said.err
    assert standin.writes == []


def test_hold_can_be_limited_to_deletion() -> None:
    """With `hold --for delete`, an update does not wait, but a kill does."""
    standin = ready_for("hold")
    said = kubectl_tapp(standin, *VERBS["hold"], "--for", "delete", "-y")
    assert said.err == ""
    assert said.code == 0
    notes = standin.world.get("pods", "web-1")["metadata"]["annotations"]
    assert notes["apps.tkestack.io/hold-for"] == "delete"
    assert kubectl_tapp(standin, *VERBS["set image"], "-y", "--wait").code == 0
    assert kubectl_tapp(standin, *VERBS["kill"], "-y").code == 0
    standin.world.settle()
    assert "Held" in kubectl_tapp(standin, "status", "web").out


# --- lists and documents -------------------------------------------------------------------------


def test_list_can_be_limited_by_a_label() -> None:
    life = Life().apply(manifest(replicas=1))
    for name, tier in (("api", "back"), ("ui", "front")):
        document = manifest(name, replicas=1)
        document["metadata"]["labels"] = {"tier": tier}
        life.begin(document).settle()
    standin = StandIn(life.world)
    for words in (["-l", "tier=back"], ["--selector=tier=back"]):
        said = kubectl_tapp(standin, "list", *words, "-o", "name")
        assert said.code == 0
        assert said.lines == ["tapp.apps.tkestack.io/api"]
    assert len(kubectl_tapp(standin, "list", "-o", "name").lines) == 3


@pytest.mark.parametrize(
    ("command", "key", "found"),
    [("history", "templateName", ["default"]), ("values", "key", ["a", "a", "a", "a"])],
    ids=["history", "values"],
)
def test_lists_are_available_as_json_and_yaml(command: str, key: str, found: list[str]) -> None:
    standin = ready_for("")
    forms: dict[str, Callable[[str], Any]] = {"json": json.loads, "yaml": yaml.safe_load}
    documents = [
        read(kubectl_tapp(standin, command, "web", "-o", form).out) for form, read in forms.items()
    ]
    assert documents[0] == documents[1]
    assert [row[key] for row in documents[0]] == found


# --- plans ---------------------------------------------------------------------------------------

EDITS: dict[str, tuple[list[str], str]] = {
    "--use": (["--use", "v2=0-2"], "3 recreated"),
    "--start": (["--start", "3"], "1 created"),
    "--kill": (["--kill", "1", "--kill", "0"], "2 deleted"),
    "several": (["--start", "3", "--use=v2=0", "--replicas", "5"], "1 recreated, 2 created"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_plan_supports_each_option_and_several_together(edit: str) -> None:
    words, summary = EDITS[edit]
    said = kubectl_tapp(ready_for("start"), "plan", "web", *words, "-o", "json")
    assert said.err == ""
    assert said.code == 0
    counts = sorted(json.loads(said.out)["summary"].partition(", in about")[0].split(", "))
    assert counts == sorted(summary.split(", "))


def test_unfold_prints_a_line_for_each_instance() -> None:
    standin = ready_for("")
    words = ["plan", "web", "--image", "app=nginx:3"]
    folded, unfolded = (kubectl_tapp(standin, *words, *more) for more in ([], ["--unfold"]))
    rows = [line for line in unfolded.lines if line.startswith("  ~  ")]
    assert [row.split()[1] for row in rows] == ["0", "1", "2", "3"]
    assert [line.split()[1] for line in folded.lines if line.startswith("  ~  ")] == ["0-3"]


CONDITIONS: dict[str, tuple[list[str], list[str]]] = {
    "an image": (
        ["--image", "app=nginx:3"],
        ["change", "in-place>3", "in-place>=4", "unavailable=2", "unavailable>40%", "duration<1h"],
    ),
    "more": (["--replicas", "6"], ["create", "create==2", "change", "duration>1s"]),
    "fewer": (["--replicas", "2"], ["delete", "delete>1", "unavailable<1", "change"]),
    "a restart": (["--restart"], ["recreate", "recreate<=4", "duration<=1m", "change>=8"]),
    "an image that is nowhere": (
        ["--image", "app=gone:1", "--assume-broken", "gone:1"],
        ["stuck", "in-place", "change"],
    ),
    "nothing": (["--replicas", "4"], ["change=0", "in-place<1"]),
}
EVERY = ("recreate", "in-place", "create", "delete", "delete-claim", "stuck", "paused", "change")


@pytest.mark.parametrize("edit", CONDITIONS)
def test_fail_if_supports_each_condition(edit: str) -> None:
    """`plan --fail-if` exits with code 3 if a condition is met, and with 0 if none is."""
    words, holding = CONDITIONS[edit]
    standin = ready_for("")
    for condition in holding:
        said = kubectl_tapp(standin, "plan", "web", *words, "--fail-if", condition)
        assert said.err == f"--fail-if {condition}: it holds\n"
        assert said.code == 3
    told = {each.rstrip("<>=0123456789%smh") for each in holding if not each.endswith(("=0", "<1"))}
    rest = [word for each in EVERY if each not in told for word in ("--fail-if", each)]
    assert kubectl_tapp(standin, "plan", "web", *words, *rest).code == 0


# --- migrate -------------------------------------------------------------------------------------


def test_keep_claims_and_force_have_their_effect(capsys: pytest.CaptureFixture[str]) -> None:
    """`migrate --keep-claims` plans other writes than `migrate`, and `--force` continues after a
    failed check.
    """
    old = Old()
    assert run(["migrate", "-A", "--keep-claims", "--dry-run"], old) == 0
    kept = capsys.readouterr().out
    assert run(["migrate", "-A", "--dry-run"], old) == 0
    assert kept != capsys.readouterr().out
    assert run(["migrate", "-A", "--force", "--keep-claims", "-y"], old) == 0
    assert old.fake.patched
