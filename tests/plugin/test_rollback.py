"""Tests `rollback` in the simulated cluster, with the history that the service keeps."""

import json
import re
from typing import Any

import pytest

from tapp.words.vocabulary import TEMPLATE_HASH
from tests.builders import template
from tests.plugin.clusters import running, spec_of
from tests.plugin.fake_kubectl import StandIn, kubectl_tapp


def rolled() -> StandIn:
    """Returns a TApp after two rollouts, to `nginx:2` and by mistake to `nginx:3`."""
    standin = running(template=template("nginx:1"))
    for image in ("nginx:2", "nginx:3"):
        assert kubectl_tapp(standin, "set", "image", "web", f"app={image}", "-y").code == 0
        standin.world.settle()
    return standin


@pytest.fixture
def web() -> StandIn:
    return rolled()


@pytest.fixture(scope="module")
def renamed() -> StandIn:
    """Returns a TApp after two rollouts whose revisions have known hashes, for calls that are
    refused.
    """
    return with_other_hashes(rolled())


def with_other_hashes(standin: StandIn) -> StandIn:
    """Gives the three revisions hashes of which two begin alike; returns the fake kubectl."""
    for number, digest in ((1, "40203104a"), (2, "55555551a"), (3, "55555552b")):
        rename(standin, number, f"v1-{digest}")
    return standin


def image(standin: StandIn) -> str:
    text: str = spec_of(standin)["template"]["spec"]["containers"][0]["image"]
    return text


def rename(standin: StandIn, number: int, digest: str) -> None:
    """Gives the ControllerRevision with this number another hash."""
    world = standin.world
    for each in world.list("controllerrevisions"):
        if each["revision"] == number:
            change: dict[str, Any] = {"metadata": {"labels": {TEMPLATE_HASH: digest}}}
            world.patch("controllerrevisions", each["metadata"]["name"], change)


def test_rollback_restores_the_previous_revision_as_the_newest(web: StandIn) -> None:
    before = {pod["metadata"]["uid"] for pod in web.world.list("pods")}
    said = kubectl_tapp(web, "rollback", "web", "-y", "--wait")
    assert said.err == ""
    assert said.code == 0
    assert any(
        line.startswith("Template default goes back to revision 2 (v1-") for line in said.lines
    )
    assert image(web) == "nginx:2"
    assert {pod["metadata"]["uid"] for pod in web.world.list("pods")} == before, "in place"
    web.world.settle()
    found = json.loads(kubectl_tapp(web, "history", "web", "-o", "json").out)
    numbers = {
        each["revision"]: each["template"]["spec"]["containers"][0]["image"] for each in found
    }
    assert numbers == {1: "nginx:1", 3: "nginx:3", 4: "nginx:2"}
    assert [each["revision"] for each in found if each["current"]] == [4]
    short = found[-1]["hash"][:11]
    assert found[-1]["changeCause"] == f"kubectl tapp rollback web --to {short}"


def test_history_claims_no_previous_image_from_an_edit_with_a_stale_rollback_cause(
    web: StandIn,
) -> None:
    """An edit without the plugin leaves the cause of the rollback before it on the TApp.

    The record of this edit must not count as one that a rollback has moved. Otherwise the history
    would say that revision 2 has changed nginx:5, which came later, to nginx:2.
    """
    kubectl_tapp(web, "rollback", "web", "--to", "1", "-y", "--wait")
    web.world.patch("tapps", "web", {"spec": {"template": template("nginx:5")}})
    web.world.settle()
    kubectl_tapp(web, "rollback", "web", "--to", "4", "-y", "--wait")
    web.world.settle()
    found = json.loads(kubectl_tapp(web, "history", "web", "-o", "json").out)
    assert {each["revision"]: images_changed(each) for each in found} == {
        2: [],  # Revision 1 was moved twice, and a record stands for one missing number only.
        3: [("nginx:2", "nginx:3")],
        5: [("nginx:1", "nginx:5")],
        6: [("nginx:5", "nginx:1")],
    }


def images_changed(entry: dict[str, Any]) -> list[tuple[str, str]]:
    """Returns the images before and after each change of a revision in the history as JSON."""
    return [(each["before"], each["after"]) for each in entry["changes"]]


def test_rollback_can_be_rolled_back(web: StandIn) -> None:
    for expected in ("nginx:2", "nginx:3", "nginx:2"):
        assert kubectl_tapp(web, "rollback", "web", "-y", "--wait").code == 0
        web.world.settle()
        assert image(web) == expected


def test_every_kept_revision_can_be_restored(web: StandIn) -> None:
    assert kubectl_tapp(web, "rollback", "web", "--to", "1", "-y", "--wait").code == 0
    assert image(web) == "nginx:1"


def test_rollback_to_the_current_revision_writes_nothing(web: StandIn) -> None:
    before = len(web.writes)
    said = kubectl_tapp(web, "rollback", "web", "--to", "3")
    assert said.code == 0
    assert said.lines[-1] == "web: no change needed"
    assert len(web.writes) == before


def test_rollback_before_the_first_revision_is_an_error(web: StandIn) -> None:
    said = kubectl_tapp(web, "rollback", "web", "--to", "9", "-y")
    assert said.code == 1
    assert re.search(r"there is no revision 9: the history has 1 \(v1-\w{8}\), 2 \(v1-", said.err)


@pytest.mark.parametrize("taken", ["4", "402031", "40203104"])
def test_number_of_a_deleted_revision_is_not_taken_for_a_hash(web: StandIn, taken: str) -> None:
    """`--to 4` fails if there is no revision 4, even if the hash of a revision begins with a 4."""
    rename(web, 1, "v1-4020310412345678ffff")
    said = kubectl_tapp(web, "rollback", "web", "--to", taken, "-y")
    assert said.code == 1
    assert image(web) == "nginx:3"
    assert f"there is no revision {taken}: the history has 1 (v1-40203104), 2 (v1-" in said.err


@pytest.mark.parametrize("word", ["v1-40203104", "v1-402031", "40203104a"])
def test_six_characters_of_a_unique_hash_are_enough(web: StandIn, word: str) -> None:
    said = kubectl_tapp(with_other_hashes(web), "rollback", "web", "--to", word, "-y")
    assert said.code == 0
    assert image(web) == "nginx:1"


@pytest.mark.parametrize(
    ("word", "code", "message"),
    [
        ("v1-40203", 2, "'v1-40203' is not a revision: give its number, or 6 or more characters"),
        ("abcde", 2, "'abcde' is not a revision"),
        ("", 2, "'' is not a revision"),
        ("v1-999999", 1, "there is no revision v1-999999: the history has 1 (v1-40203104)"),
        ("v1-5555555", 1, "v1-5555555 fits several revisions, 2 (default, v1-55555551"),
    ],
)
def test_short_or_ambiguous_hash_is_an_error(
    renamed: StandIn, word: str, code: int, message: str
) -> None:
    before = len(renamed.writes)
    said = kubectl_tapp(renamed, "rollback", "web", "--to", word, "-y")
    assert said.code == code
    assert image(renamed) == "nginx:3"
    assert len(renamed.writes) == before
    assert message in said.err


def test_cause_of_a_rollback_has_the_hash(web: StandIn) -> None:
    """The change cause of a rollback names the revision by its hash, which `history --revision`
    accepts.

    A rollback gives the revision a new number, so its old number would name nothing.
    """
    assert kubectl_tapp(web, "rollback", "web", "--to", "1", "-y", "--wait").code == 0
    web.world.settle()
    newest = json.loads(kubectl_tapp(web, "history", "web", "-o", "json").out)[-1]
    named = newest["changeCause"].partition("--to ")[2]
    said = kubectl_tapp(web, "history", "web", "--revision", named, "-o", "json")
    assert json.loads(said.out)["revision"] == newest["revision"]


def test_revision_of_another_template_is_refused(web: StandIn) -> None:
    kubectl_tapp(web, "use", "web", "v2", "0", "-y", "--wait")
    web.world.settle()
    said = kubectl_tapp(web, "rollback", "web", "--template", "v2", "--to", "2", "-y")
    assert said.code == 1
    assert "there is no revision 2 of template 'v2': the history has 4 (v1-" in said.err


def test_removed_template_is_restored_in_the_pool() -> None:
    web = running(templates={"0": "v2"})
    kubectl_tapp(web, "use", "web", "default", "0", "-y", "--wait")
    web.world.patch("tapps", "web", {"spec": {"templatePool": {"v2": None}}})
    web.world.settle()
    said = kubectl_tapp(web, "rollback", "web", "--template", "v2", "-y")
    assert said.err == ""
    assert said.code == 0
    assert spec_of(web)["templatePool"] == {"v2": template("nginx:2")}


def test_history_is_printed_as_a_table(web: StandIn) -> None:
    said = kubectl_tapp(web, "history", "web")
    assert said.lines[0].split()[:4] == ["REVISION", "TEMPLATE", "HASH", "WHEN"]
    assert [line.split()[0] for line in said.lines[1:]] == ["1", "2", "*"]
    assert "app: nginx:2 → nginx:3" in said.lines[3]
    said = kubectl_tapp(web, "history", "web", "--revision", "2")
    assert said.lines[0] == "Revision 2 of template default"
    assert "changed app: nginx:1 → nginx:2" in said.lines
    assert "  - image: nginx:2" in said.out or "image: nginx:2" in said.out
    one = json.loads(kubectl_tapp(web, "history", "web", "--revision", "2", "-o", "json").out)
    assert one["revision"] == 2


@pytest.mark.parametrize(
    ("spec", "message"),
    [({"revisionHistoryLimit": 0}, "web keeps no history: its spec.revisionHistoryLimit is 0")],
    ids=["limit of 0"],
)
def test_missing_history_is_reported(spec: dict[str, int], message: str) -> None:
    said = kubectl_tapp(running(**spec), "history", "web")
    assert said.code == 0
    assert said.lines == [message]


@pytest.mark.parametrize("to", [(), ("--to", "1")])
def test_rollback_without_a_history_says_why_there_is_none(to: tuple[str, ...]) -> None:
    said = kubectl_tapp(running(revisionHistoryLimit=0), "rollback", "web", *to, "-y")
    assert said.code == 1
    assert said.err == "error: web keeps no history: its spec.revisionHistoryLimit is 0\n"
