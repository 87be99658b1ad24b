"""Tests the end of a canary: `promote` gives all instances its template, `abort` takes its
instances back.
"""

import json
from typing import Any

import pytest

from kubectl_tapp.base.errors import CommandError
from kubectl_tapp.edit import canaries
from tests.builders import tapp, template
from tests.plugin.clusters import CAUSE, changed, ids_of, images, running, spec_of, uids
from tests.plugin.fake_kubectl import Document, StandIn, kubectl_tapp

NOTE = "apps.tkestack.io/canaries"


@pytest.fixture
def web() -> StandIn:
    """Returns a TApp with six instances, two of which are canaries with another image.

    Their template `canary` is a copy of the default template.
    """
    standin = running()
    said = kubectl_tapp(
        standin, "set", "image", "web", "app=nginx:9", "--canary", "2", "-y", "--wait"
    )
    assert said.err == ""
    assert said.code == 0
    standin.world.settle()
    return standin


def notes_of(standin: StandIn) -> Document:
    """Returns the annotations of the TApp `web`."""
    found: Document = standin.world.get("tapps", "web")["metadata"]["annotations"]
    return found


def versions(standin: StandIn, ids: list[int]) -> dict[int, str]:
    """Returns instance number -> resourceVersion of its pod, which every write changes."""
    return {id: standin.world.get("pods", f"web-{id}")["metadata"]["resourceVersion"] for id in ids}


# --- unused copies --------------------------------------------------------------------------------


def test_status_names_an_unused_template_copy_and_how_to_remove_it(web: StandIn) -> None:
    """After the canaries go back to the default template, `status` and `why` name the unused copy.

    All instances run well, so nothing else would remind the user of the template.
    """
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


def test_promotion_updates_only_the_other_instances(web: StandIn) -> None:
    """After `promote`, the pods of the canaries are not written, and all others are updated in
    place.

    The revision depends on the template's content and not on its name.
    """
    tried = ids_of(web)
    before, untouched = uids(web), versions(web, tried)
    said = kubectl_tapp(web, "promote", "web", "-y", "--wait")
    assert said.err == ""
    assert said.code == 0
    assert len(web.writes) == 2, "one write for the canary, one for its promotion"
    web.world.settle()
    spec = spec_of(web)
    assert spec["template"]["spec"]["containers"][0]["image"] == "nginx:9"
    assert spec["templates"] == {}
    assert sorted(spec["templatePool"]) == ["v2"]
    assert set(images(web).values()) == {"nginx:9"}
    assert versions(web, tried) == untouched
    assert changed(web, before) == [], "the others are updated in place"
    assert NOTE not in notes_of(web)
    assert notes_of(web)[CAUSE] == "kubectl tapp promote web --template canary"
    assert (
        "Canary: template 'default' gets the content of 'canary', which instances 4, 5 run."
        in said.out
    )


def test_promotion_respects_the_update_budget(web: StandIn) -> None:
    said = kubectl_tapp(web, "promote", "web", "--dry-run=server")
    assert said.code == 0
    assert "0-3 (4)" in said.out
    assert "maxUnavailable 1 of 6 instances: 5 must stay available" in said.out
    assert "Dry run: nothing was written." in said.out
    assert ids_of(web) == [4, 5]


# --- abort --------------------------------------------------------------------------------------


def test_abort_restores_the_state_before_the_canary(web: StandIn) -> None:
    said = kubectl_tapp(web, "abort", "web", "-y", "--wait")
    assert said.err == ""
    assert said.code == 0
    web.world.settle()
    spec = spec_of(web)
    assert spec["template"] == template()
    assert spec["templates"] == {}
    assert sorted(spec["templatePool"]) == ["v2"]
    assert set(images(web).values()) == {"nginx:1.25"}
    assert NOTE not in notes_of(web)
    assert "Canary: instances 4, 5 go back from 'canary' to 'default'." in said.out
    again = kubectl_tapp(web, "abort", "web", "-y")
    assert again.code == 2
    assert "web has no canary: no instance runs another template than 'default'" in again.err


def test_abort_of_a_broken_canary_does_not_wait_for_the_budget() -> None:
    web = running()
    web.world.kubelet.levers.bad_images.add("nginx:gone")
    kubectl_tapp(web, "set", "image", "web", "app=nginx:gone", "--canary", "1", "-y")
    web.world.run(60)
    assert kubectl_tapp(web, "abort", "web", "-y", "--wait").code == 0
    assert set(images(web).values()) == {"nginx:1.25"}


@pytest.mark.parametrize("verb", ["promote", "abort"])
def test_template_that_is_no_copy_stays_in_the_pool(verb: str) -> None:
    web = running()
    kubectl_tapp(web, "use", "web", "v2", "--canary", "2", "-y", "--wait")
    said = kubectl_tapp(web, verb, "web", "-y", "--wait")
    assert said.err == ""
    assert said.code == 0
    assert "Template 'v2' stays in spec.templatePool, and no instance runs it then." in said.out
    assert sorted(spec_of(web)["templatePool"]) == ["v2"]
    expected = "nginx:2" if verb == "promote" else "nginx:1.25"
    assert set(images(web).values()) == {expected}


def test_abort_of_a_copy_returns_to_its_original() -> None:
    """After `abort`, the canary returns to the template `v2`, of which the canary's template is a
    copy.

    The instances never had the default template.
    """
    web = running(templates={"0": "v2", "1": "v2", "2": "v2"})
    kubectl_tapp(
        web, "set", "image", "web", "app=nginx:9", "-t", "v2", "--canary", "1", "-y", "--wait"
    )
    (tried,) = ids_of(web)
    assert json.loads(notes_of(web)[NOTE]) == {"canary": "v2"}
    assert kubectl_tapp(web, "abort", "web", "-y", "--wait").code == 0
    assert spec_of(web)["templates"] == {"0": "v2", "1": "v2", "2": "v2"}
    assert images(web)[tried] == "nginx:2"


def test_labels_and_annotations_of_other_clients_are_kept(web: StandIn) -> None:
    """An annotation that another client writes while the user reads the plan survives `abort`."""
    notes = {"metadata": {"annotations": {"checked-by": "jane"}}}
    web.before.append(lambda: web.world.patch("tapps", "web", notes))
    assert kubectl_tapp(web, "abort", "web", "-y").code == 0
    assert notes_of(web)["checked-by"] == "jane"


# --- the choice of the canary ---------------------------------------------------------------------

POOL = {"a": template("nginx:2"), "b": template("nginx:3")}
COPY = {NOTE: '{"a": "b", "gone": "default"}'}


def given(annotations: dict[str, str] | None = None, **spec: Any) -> Document:
    """Returns a TApp with four instances and the templates `a` and `b`, which is not in a cluster.

    `annotations` are those of the TApp; None for no annotations. `spec` has further fields of its
    spec.
    """
    document = tapp(**{"replicas": 4, "templatePool": POOL, **spec})
    document["metadata"]["annotations"] = annotations or {}
    return document


CANARIES: dict[str, tuple[Document, dict[str, str], canaries.Canary]] = {
    # The TApp, the names that the user gives, and the canary
    "one instance": (
        given(templates={"3": "a"}), {}, canaries.Canary("a", "default", [3], is_copy=False),
    ),
    "instance above spec.replicas": (
        given(templates={"3": "a", "9": "a"}), {},
        canaries.Canary("a", "default", [3], is_copy=False),
    ),
    "copy of another template": (
        given(COPY, templates={"2": "b", "3": "a"}), {},
        canaries.Canary("a", "b", [3], is_copy=True),
    ),
    "copy without instances": (given(COPY), {}, canaries.Canary("a", "b", [], is_copy=True)),
    "copy with a given base": (
        given(COPY, templates={"3": "a"}), {"base": "default"},
        canaries.Canary("a", "default", [3], is_copy=True),
    ),
    "all instances": (
        given(templates=dict.fromkeys("0123", "a")), {},
        canaries.Canary("a", "default", [0, 1, 2, 3], is_copy=False),
    ),
    "default template of the pool": (
        given(defaultTemplateName="b", templates={"3": "a"}), {},
        canaries.Canary("a", "b", [3], is_copy=False),
    ),
    "annotation that is not JSON": (
        given({NOTE: "[nonsense"}, templates={"3": "a"}), {},
        canaries.Canary("a", "default", [3], is_copy=False),
    ),
    "annotation of a wrong type": (
        given({NOTE: '{"a": 5}'}, templates={"3": "a"}), {},
        canaries.Canary("a", "default", [3], is_copy=False),
    ),
    "given names": (
        given(templates={"2": "b", "3": "a"}), {"template": "a", "base": "b"},
        canaries.Canary("a", "b", [3], is_copy=False),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CANARIES)
def test_canary_is_found_without_its_name(case: str) -> None:
    document, asked, canary = CANARIES[case]
    assert canaries.find_canary(document, asked.get("template"), asked.get("base")) == canary


@pytest.mark.parametrize(
    ("document", "asked", "message"),
    [
        (given(), {}, "has no canary: no instance runs another template than 'default'"),
        (given(templates={"2": "b", "3": "a"}), {},
         r"there are several canaries: 'b' \(instance 2\), 'a' \(instance 3\)"),
        (given(templates={"2": "b", "3": "a"}), {"template": "a"},
         r"the other instances run 'default' \(instances 0, 1\), 'b' \(instance 2\): "
         r"name with --base"),
        (given(templates={"3": "a"}), {"template": "c"}, "there is no template 'c'"),
        (given(templates={"3": "a"}), {"base": "c"}, "there is no template 'c'"),
        (given(templates={"3": "a"}), {"base": "a"}, "is not a canary: all other instances run it"),
        (given(templates={"3": "a"}), {"template": "default"}, "it is the default template"),
    ],
    ids=[
        "no canary", "several canaries", "several base templates", "unknown template",
        "unknown base", "base that all others run", "default template",
    ],
)  # fmt: skip
def test_error_says_why_no_canary_is_found(
    document: Document, asked: dict[str, str], message: str
) -> None:
    with pytest.raises(CommandError, match=message):
        canaries.find_canary(document, asked.get("template"), asked.get("base"))


# --- history --------------------------------------------------------------------------------------


def test_rollback_during_a_canary_says_how_to_end_the_canary(web: StandIn) -> None:
    said = kubectl_tapp(web, "rollback", "web")
    assert said.code == 1
    assert "roll back to; a canary ends by `kubectl tapp abort web -n default` or" in said.err


def test_rollback_is_possible_with_an_unused_canary(web: StandIn) -> None:
    """A template `canary` that no instance uses does not prevent a rollback of the default
    template.

    A canary that was taken back by hand leaves such a template in the pool.
    """
    kubectl_tapp(web, "use", "web", "default", "4,5", "-y", "--wait")
    kubectl_tapp(web, "set", "image", "web", "app=nginx:2", "-y", "--wait")
    web.world.patch("tapps", "web", {"spec": {"templatePool": {"canary": template("nginx:8")}}})
    web.world.settle()
    said = kubectl_tapp(web, "rollback", "web", "-y", "--wait")
    assert said.err == ""
    assert said.code == 0
    assert set(images(web).values()) == {"nginx:1.25"}


def test_promotion_can_be_rolled_back(web: StandIn) -> None:
    kubectl_tapp(web, "promote", "web", "-y", "--wait")
    web.world.settle()
    said = kubectl_tapp(web, "rollback", "web", "-y", "--wait")
    assert said.err == ""
    assert said.code == 0
    assert set(images(web).values()) == {"nginx:1.25"}
