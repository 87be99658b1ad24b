"""The two ends of a canary: its template becomes that of all, or its instances go back."""

import json
from typing import Any

import pytest

from kubectl_tapp.base.errors import CommandError
from kubectl_tapp.edit import canaries
from tests.builders import tapp, template
from tests.plugin.standin import Document, StandIn, kubectl_tapp
from tests.plugin.test_restart_and_wait import changed, uids
from tests.plugin.test_verbs import CAUSE, running, spec_of

NOTE = "apps.tkestack.io/canaries"


@pytest.fixture
def web() -> StandIn:
    """Two of six instances try another image, as a copy of the default template."""
    standin = running()
    said = kubectl_tapp(
        standin, "set", "image", "web", "app=nginx:9", "--canary", "2", "-y", "--wait"
    )
    assert (said.code, said.err) == (0, "")
    standin.world.settle()
    return standin


def ids_of(standin: StandIn, name: str = "canary") -> list[int]:
    """The instances that a template is given to."""
    found = spec_of(standin).get("templates") or {}
    return sorted(int(id) for id, each in found.items() if each == name)


def images(standin: StandIn) -> dict[int, str]:
    """Instance -> the image that it runs."""
    return {
        int(pod["metadata"]["name"].rpartition("-")[2]): pod["spec"]["containers"][0]["image"]
        for pod in standin.world.list("pods")
    }


def notes_of(standin: StandIn) -> Document:
    """The TApp's annotations."""
    found: Document = standin.world.get("tapps", "web")["metadata"]["annotations"]
    return found


def versions(standin: StandIn, ids: list[int]) -> dict[int, str]:
    """Instance -> its pod's resourceVersion: any write at all changes it."""
    return {id: standin.world.get("pods", f"web-{id}")["metadata"]["resourceVersion"] for id in ids}


# --- left over ----------------------------------------------------------------------------------


def test_a_copy_that_no_instance_uses_is_named_with_the_command_that_removes_it(
    web: StandIn,
) -> None:
    """Everything runs well, so nothing else reminds of the template."""
    told = "canary: no instance uses template 'canary', a copy of 'default' for a canary; `kubectl"
    for command in ("status", "why"):
        assert told not in kubectl_tapp(web, command, "web").out
    kubectl_tapp(web, "use", "web", "default", "4,5", "-y", "--wait")
    for command in ("status", "why"):
        assert told in kubectl_tapp(web, command, "web").out
    command = kubectl_tapp(web, "status", "web").out.rpartition(told)[2].partition("`")[0]
    assert command == " tapp abort web --template canary -n default"
    kubectl_tapp(web, *command.split()[1:], "-y")
    assert "canary" not in kubectl_tapp(web, "status", "web").out


# --- promote ------------------------------------------------------------------------------------


def test_a_promoted_canary_runs_on_and_the_others_follow(web: StandIn) -> None:
    """The revision is that of the content, so nothing is even written to the canary's pods."""
    tried = ids_of(web)
    before, untouched = uids(web), versions(web, tried)
    said = kubectl_tapp(web, "promote", "web", "-y", "--wait")
    assert (said.code, said.err) == (0, "")
    assert len(web.writes) == 2, "one write for the canary, one for its promotion"
    web.world.settle()
    spec = spec_of(web)
    assert spec["template"]["spec"]["containers"][0]["image"] == "nginx:9"
    assert (spec["templates"], sorted(spec["templatePool"])) == ({}, ["v2"])
    assert set(images(web).values()) == {"nginx:9"}
    assert versions(web, tried) == untouched
    assert changed(web, before) == [], "the others are updated in place"
    assert NOTE not in notes_of(web)
    assert notes_of(web)[CAUSE] == "kubectl tapp promote web --template canary"
    assert "Canary: template 'default' gets the content of 'canary', which 4,5 run." in said.out


def test_a_promotion_keeps_the_rolling_budget(web: StandIn) -> None:
    said = kubectl_tapp(web, "promote", "web", "--dry-run=server")
    assert said.code == 0
    assert "0-3 (4)" in said.out
    assert "maxUnavailable 1 of 6: 5 must stay available" in said.out
    assert "Dry run: nothing was written." in said.out
    assert ids_of(web) == [4, 5]


# --- abort --------------------------------------------------------------------------------------


def test_an_aborted_canary_is_as_if_it_had_not_been(web: StandIn) -> None:
    said = kubectl_tapp(web, "abort", "web", "-y", "--wait")
    assert (said.code, said.err) == (0, "")
    web.world.settle()
    spec = spec_of(web)
    assert (spec["template"], spec["templates"]) == (template(), {})
    assert sorted(spec["templatePool"]) == ["v2"]
    assert set(images(web).values()) == {"nginx:1.25"}
    assert NOTE not in notes_of(web)
    assert "Canary: 4,5 go back from 'canary' to 'default'." in said.out
    again = kubectl_tapp(web, "abort", "web", "-y")
    assert again.code == 2
    assert "web has no canary: nobody runs another template than 'default'" in again.err


def test_a_broken_canary_goes_back_at_once() -> None:
    web = running()
    web.world.kubelet.levers.bad_images.add("nginx:gone")
    kubectl_tapp(web, "set", "image", "web", "app=nginx:gone", "--canary", "1", "-y")
    web.world.run(60)
    assert kubectl_tapp(web, "abort", "web", "-y", "--wait").code == 0
    assert set(images(web).values()) == {"nginx:1.25"}


@pytest.mark.parametrize("verb", ["promote", "abort"])
def test_a_template_that_its_author_wrote_stays_in_the_pool(verb: str) -> None:
    web = running()
    kubectl_tapp(web, "use", "web", "v2", "--canary", "2", "-y", "--wait")
    said = kubectl_tapp(web, verb, "web", "-y", "--wait")
    assert (said.code, said.err) == (0, "")
    assert "'v2' stays in the pool, and nobody runs it then." in said.out
    assert sorted(spec_of(web)["templatePool"]) == ["v2"]
    expected = "nginx:2" if verb == "promote" else "nginx:1.25"
    assert set(images(web).values()) == {expected}


def test_a_copy_goes_back_to_what_it_is_a_copy_of() -> None:
    """Not to the default template, which its instances never ran."""
    web = running(templates={"0": "v2", "1": "v2", "2": "v2"})
    kubectl_tapp(
        web, "set", "image", "web", "app=nginx:9", "-t", "v2", "--canary", "1", "-y", "--wait"
    )
    (tried,) = ids_of(web)
    assert json.loads(notes_of(web)[NOTE]) == {"canary": "v2"}
    assert kubectl_tapp(web, "abort", "web", "-y", "--wait").code == 0
    assert spec_of(web)["templates"] == {"0": "v2", "1": "v2", "2": "v2"}
    assert images(web)[tried] == "nginx:2"


def test_what_others_note_meanwhile_stays(web: StandIn) -> None:
    """Others write labels and annotations while a person reads the plan."""
    notes = {"metadata": {"annotations": {"checked-by": "jane"}}}
    web.before.append(lambda: web.world.patch("tapps", "web", notes))
    assert kubectl_tapp(web, "abort", "web", "-y").code == 0
    assert notes_of(web)["checked-by"] == "jane"


# --- which one is meant -------------------------------------------------------------------------

POOL = {"a": template("nginx:2"), "b": template("nginx:3")}
COPY = {NOTE: '{"a": "b", "gone": "default"}'}


def given(annotations: dict[str, str] | None = None, **spec: Any) -> Document:
    """A TApp of four instances."""
    document = tapp(**{"replicas": 4, "templatePool": POOL, **spec})
    document["metadata"]["annotations"] = annotations or {}
    return document


@pytest.mark.parametrize(
    ("document", "asked", "expected"),
    [
        (given(templates={"3": "a"}), {}, ("a", "default", [3], False)),
        (given(templates={"3": "a", "9": "a"}), {}, ("a", "default", [3], False)),
        (given(COPY, templates={"2": "b", "3": "a"}), {}, ("a", "b", [3], True)),
        (given(COPY), {}, ("a", "b", [], True)),
        (given(COPY, templates={"3": "a"}), {"base": "default"}, ("a", "default", [3], True)),
        (given(templates=dict.fromkeys("0123", "a")), {}, ("a", "default", [0, 1, 2, 3], False)),
        (given(defaultTemplateName="b", templates={"3": "a"}), {}, ("a", "b", [3], False)),
        (given({NOTE: "[nonsense"}, templates={"3": "a"}), {}, ("a", "default", [3], False)),
        (given({NOTE: '{"a": 5}'}, templates={"3": "a"}), {}, ("a", "default", [3], False)),
        (given(templates={"2": "b", "3": "a"}), {"template": "a", "base": "b"},
         ("a", "b", [3], False)),
    ],
)  # fmt: skip
def test_the_canary_that_is_meant(
    document: Document, asked: dict[str, str], expected: tuple[object, ...]
) -> None:
    found = canaries.find_canary(document, asked.get("template"), asked.get("base"))
    assert (found.name, found.base, found.ids, found.is_copy) == expected


@pytest.mark.parametrize(
    ("document", "asked", "message"),
    [
        (given(), {}, "has no canary: nobody runs another template than 'default'"),
        (given(templates={"2": "b", "3": "a"}), {}, r"there are several: 'b' \(2\), 'a' \(3\)"),
        (given(templates={"2": "b", "3": "a"}), {"template": "a"},
         r"the other instances run 'default' \(0, 1\), 'b' \(2\): say with --base"),
        (given(templates={"3": "a"}), {"template": "c"}, "there is no template 'c'"),
        (given(templates={"3": "a"}), {"base": "c"}, "there is no template 'c'"),
        (given(templates={"3": "a"}), {"base": "a"}, "is no canary: it is that of all others"),
        (given(templates={"3": "a"}), {"template": "default"}, "is no canary: it is the default"),
    ],
)  # fmt: skip
def test_what_no_canary_is(document: Document, asked: dict[str, str], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        canaries.find_canary(document, asked.get("template"), asked.get("base"))


# --- and the history ----------------------------------------------------------------------------


def test_a_rollback_while_a_canary_runs_says_how_it_ends(web: StandIn) -> None:
    said = kubectl_tapp(web, "rollback", "web")
    assert said.code == 1
    assert (
        "no earlier 'canary' is kept; a canary ends by `kubectl tapp abort web -n default` or"
        in said.err
    )


def test_an_unused_canary_blocks_no_rollback(web: StandIn) -> None:
    """One that was taken back by hand stays in the pool."""
    kubectl_tapp(web, "use", "web", "default", "4,5", "-y", "--wait")
    kubectl_tapp(web, "set", "image", "web", "app=nginx:2", "-y", "--wait")
    web.world.patch("tapps", "web", {"spec": {"templatePool": {"canary": template("nginx:8")}}})
    web.world.settle()
    said = kubectl_tapp(web, "rollback", "web", "-y", "--wait")
    assert (said.code, said.err) == (0, "")
    assert set(images(web).values()) == {"nginx:1.25"}


def test_a_promotion_is_rolled_back(web: StandIn) -> None:
    kubectl_tapp(web, "promote", "web", "-y", "--wait")
    web.world.settle()
    said = kubectl_tapp(web, "rollback", "web", "-y", "--wait")
    assert (said.code, said.err) == (0, "")
    assert set(images(web).values()) == {"nginx:1.25"}
