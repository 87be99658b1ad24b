"""Tests `--canary` with numbers of instances instead of an amount, and the budget of canaries."""

import pytest

from kubectl_tapp.base.arguments import read_canary_ids
from kubectl_tapp.base.errors import UsageError
from tests.plugin.clusters import ids_of, images, spec_of
from tests.plugin.fake_kubectl import StandIn, kubectl_tapp
from tests.plugin.states import web as manifest
from tests.scenarios.life import Life

IMAGE = ("set", "image", "web", "web=nginx:9")
READ = {
    "1": None, "10%": None, "12": None, "x": None, "": None, "1,4": [1, 4], "4,": [4],
    "1,4-6": [1, 4, 5, 6], "2-3": [2, 3], "3-3": [3], " 5, 2": [2, 5],
}  # fmt: skip
REFUSED = {
    "1,1": "names instance 1 twice", "1,0-2": "names instance 1 twice",
    "1,10%": "mixes a share with instances",
    "1,12": "there is no instance 12: the instances are 0 to 11", "3-1": "is not a list",
    "1,,2": "is not a list", ",": "is not a list", "1,x": "is not a list",
}  # fmt: skip


@pytest.mark.parametrize("text", READ)
def test_list_or_range_selects_instances(text: str) -> None:
    """Texts with a comma or a hyphen select instances; a single number or percentage is an amount.

    A number with a comma behind it is an instance.
    """
    assert read_canary_ids(text, 12) == READ[text]


@pytest.mark.parametrize("text", REFUSED)
def test_invalid_list_of_instances_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as raised:
        read_canary_ids(text, 12)
    assert REFUSED[text] in str(raised.value)


def cluster(replicas: int, **spec: object) -> StandIn:
    """Returns a fake kubectl for a cluster with a running TApp of `replicas` instances."""
    return StandIn(Life().apply(manifest(replicas=replicas, **spec)).world)


@pytest.mark.parametrize(
    ("replicas", "text", "ids"),
    [(1, "0,", [0]), (2, "1,", [1]), (2, "0-1", [0, 1]), (3, "0,2", [0, 2]),
     (12, "1,4-6", [1, 4, 5, 6]), (12, "3", [8, 10, 11])],
    ids=[
        "number with a comma", "number with a comma, two instances", "range", "list",
        "list with a range", "amount",
    ],
)  # fmt: skip
def test_selected_instances_are_the_canaries(replicas: int, text: str, ids: list[int]) -> None:
    standin = cluster(replicas)
    said = kubectl_tapp(standin, *IMAGE, "--canary", text, "-y", "--wait")
    assert said.err == ""
    assert said.code == 0
    assert ids_of(standin) == ids
    assert {id for id, image in images(standin).items() if image == "nginx:9"} == {*ids}


def test_first_line_says_that_all_canaries_are_unavailable_together() -> None:
    standin = cluster(3)
    said = kubectl_tapp(standin, *IMAGE, "--canary", "0,2", "--dry-run=server")
    assert said.lines[0].endswith(", instances 0, 2 at once (1 stays available)")
    assert "--max-unavailable 1 updates one by one" in said.out
    said = kubectl_tapp(standin, *IMAGE, "--canary", "0-2", "--dry-run=server")
    assert said.lines[0].endswith("(none stay available)")
    said = kubectl_tapp(standin, *IMAGE, "--canary", "2,", "--dry-run=server")
    assert "at once" not in said.out


def test_budget_updates_canaries_one_by_one() -> None:
    standin = cluster(3)
    line = (*IMAGE, "--canary", "0,2", "--max-unavailable", "1")
    said = kubectl_tapp(standin, *line, "--dry-run=server")
    assert "at once" not in said.lines[0]
    said = kubectl_tapp(standin, *line, "-y", "--wait")
    assert said.err == ""
    assert said.code == 0
    strategy = spec_of(standin)["updateStrategy"]
    assert strategy["forceUpdate"] == {"maxUnavailable": 1}
    assert "is 1 from now on, for later changes too" in said.out


@pytest.mark.parametrize("share", ["0", "0%", "x", "101%", "-1"])
def test_budget_without_instances_is_refused(share: str) -> None:
    said = kubectl_tapp(cluster(3), *IMAGE, "--canary", "0,2", f"--max-unavailable={share}")
    assert said.code == 2
    assert "is neither a whole number of at least 1 nor a percentage" in said.err


def test_killed_instance_is_refused() -> None:
    standin = cluster(3)
    kubectl_tapp(standin, "kill", "web", "1", "-y", "--wait")
    said = kubectl_tapp(standin, *IMAGE, "--canary", "1,2")
    assert said.code == 2
    assert said.out == ""
    assert "instance 1 is stopped and would not run the canary: name other instances" in said.err


def test_instance_with_another_template_is_refused() -> None:
    standin = cluster(3)
    kubectl_tapp(standin, *IMAGE, "--canary", "1,", "-y", "--wait")
    said = kubectl_tapp(standin, *IMAGE, "--canary", "1,2", "--copy-as", "second")
    assert said.code == 2
    assert "instance 1 of --canary runs template 'canary', not 'default'" in said.err


@pytest.mark.parametrize("verb", ["promote", "abort"])
def test_selected_canaries_can_be_promoted_and_aborted(verb: str) -> None:
    standin = cluster(3)
    kubectl_tapp(standin, *IMAGE, "--canary", "0,2", "-y", "--wait")
    said = kubectl_tapp(standin, verb, "web", "-y", "--wait")
    assert said.err == ""
    assert said.code == 0
    assert set(images(standin).values()) == {"nginx:9" if verb == "promote" else "nginx:1.28"}
    assert ids_of(standin) == []


def test_use_accepts_only_an_existing_canary_template() -> None:
    """`use` refuses an unknown template, and the error has the command that creates one for the
    same instances.
    """
    standin = cluster(6)
    said = kubectl_tapp(standin, "use", "web", "canary", "1,4")
    assert said.code == 2
    made = "`kubectl tapp set image web CONTAINER=IMAGE --canary 1,4 -n default`"
    assert f"{made} makes a copy" in said.err
    said = kubectl_tapp(standin, "use", "web", "trial", "4")
    assert "--canary 4, --copy-as trial -n default`" in said.err
    kubectl_tapp(standin, *IMAGE, "--canary", "0,", "-y", "--wait")
    for words in (("1,4",), ("--canary", "1,4")):
        said = kubectl_tapp(standin, "use", "web", "canary", *words, "-y", "--wait")
        assert said.err == ""
        assert said.code == 0
        assert ids_of(standin) == [0, 1, 4]


def test_use_accepts_a_budget_for_its_instances() -> None:
    standin = cluster(6)
    kubectl_tapp(standin, *IMAGE, "--canary", "0,", "-y", "--wait")
    line = ("use", "web", "canary", "--canary", "2-3", "--max-unavailable", "1", "-y", "--wait")
    said = kubectl_tapp(standin, *line)
    assert said.err == ""
    assert said.code == 0
    assert ids_of(standin) == [0, 2, 3]
    assert spec_of(standin)["updateStrategy"]["forceUpdate"] == {"maxUnavailable": 1}


@pytest.mark.parametrize(("text", "replicas", "message"), [
    ("99", 6, "'99' is not a share of 6 instances: write a number from 1 to 6, a percentage"),
    ("all", 6, "or a list of instances such as 1,4-6"),
    ("2", 1, "'2' is not a share of 1 instance: write 1, a percentage"),
    ("1", 0, "there is no instance that could be a canary"),
])  # fmt: skip
def test_error_about_a_share_names_the_valid_ones(text: str, replicas: int, message: str) -> None:
    said = kubectl_tapp(cluster(replicas), *IMAGE, "--canary", text)
    assert said.code == 2
    assert message in said.err


def test_why_names_the_reason_if_there_are_no_instances() -> None:
    said = kubectl_tapp(cluster(0), "why", "web")
    assert said.lines[0] == "TApp web has no instance: spec.replicas is 0"


def test_plan_without_changed_instances_does_not_say_that_nothing_changes() -> None:
    said = kubectl_tapp(cluster(0), "plan", "web", "--image", "web=nginx:9")
    assert said.lines[0] == "TApp default/web: no instance changes"
