"""A roll that goes as far as a partition lets it: begun, looked at, and taken further."""

import json

import pytest

from tests.builders import template
from tests.plugin.standin import StandIn, kubectl_tapp
from tests.plugin.test_verbs import CAUSE, running, spec_of


def images(standin: StandIn) -> str:
    """The tag of each instance's image, by number."""
    pods = [standin.world.get("pods", f"web-{id}") for id in range(6)]
    return "".join(pod["spec"]["containers"][0]["image"][-1] for pod in pods)


def begun(*more: str) -> StandIn:
    """A roll to `nginx:9` that keeps two instances."""
    web = running(template=template("nginx:1"))
    said = kubectl_tapp(
        web, "set", "image", "web", "app=nginx:9", "--partition", "2", "-y", "--wait", *more
    )
    assert (said.code, said.err) == (0, "")
    assert "web: instances 0-3 done" in said.out
    return web


def test_a_roll_goes_as_far_as_its_partition_and_is_done_there() -> None:
    web = begun()
    assert images(web) == "999911"
    assert spec_of(web)["updateStrategy"] == {"partition": 2}
    cause = web.world.get("tapps", "web")["metadata"]["annotations"][CAUSE]
    assert cause == "kubectl tapp set image web app=nginx:9 in default --partition 2"


@pytest.mark.parametrize(
    ("arguments", "expected", "strategy"),
    [
        (["advance", "web"], "999999", {}),
        (["advance", "web", "--to", "1"], "999991", {"partition": 1}),
        (["advance", "web", "--to", "10%"], "999991", {"partition": "10%"}),
        (["advance", "web", "--to", "0"], "999999", {}),
        (["advance", "web", "--to", "4"], "999911", {"partition": 4}),
        (["rollback", "web"], "111111", {"partition": 2}),
    ],
)
def test_it_is_taken_further_or_back(
    arguments: list[str], expected: str, strategy: dict[str, int]
) -> None:
    web = begun()
    said = kubectl_tapp(web, *arguments, "-y", "--wait")
    assert (said.code, said.err) == (0, "")
    assert images(web) == expected
    assert spec_of(web)["updateStrategy"] == strategy


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["advance", "web"], "web has no partition: nothing is kept back"),
        (["advance", "web", "--to", "-1"], "'-1' is neither a number from 0 nor"),
        (["advance", "web", "--to", "many"], "'many' is neither a number from 0 nor"),
        (["advance", "web", "--to", "101%"], "'101%' is neither a number from 0 nor"),
        (["set", "image", "web", "app=a", "--partition", "x"], "'x' is neither a number from 0"),
        (
            ["set", "image", "web", "app=a", "--partition", "1", "--canary", "1"],
            "--canary and --partition are two ways: choose one of them",
        ),
        (
            ["set", "image", "web", "app=a", "--partition", "1", "-t", "v2"],
            "--partition is about the rolling template 'default', not about 'v2'",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: list[str], message: str) -> None:
    web = running()
    said = kubectl_tapp(web, *arguments, "-y")
    assert said.code == 2
    assert message in said.err
    assert not web.writes


def test_a_plan_says_before_who_stays_as_they_are() -> None:
    web = running(template=template("nginx:1"))
    asked = ["set", "image", "web", "app=nginx:9", "--partition", "50%", "--dry-run=client"]
    said = kubectl_tapp(web, *asked)
    assert said.code == 0
    assert "0-2 (3)  in place   template default: restarts app" in said.out
    assert "3-5 (3)  unchanged  the partition keeps it at revision v1-" in said.out
    assert images(web) == "111111"


def test_status_why_and_history_name_who_is_kept_and_at_what() -> None:
    web = begun()
    (revision,) = web.world.get("tapps", "web")["status"]["kept"]
    status = kubectl_tapp(web, "status", "web")
    assert "6/6 running, 6 available, kept: 4, 5" in status.out
    assert f"4, 5: Kept: the partition keeps it at revision {revision}" in status.out
    why = kubectl_tapp(web, "why", "web", "5")
    assert f"5: Kept: the partition keeps it at revision {revision}" in why.out
    history = kubectl_tapp(web, "history", "web")
    first, second = (line.split() for line in history.lines[1:])
    assert "KEPT" in history.lines[0]
    assert (first[0], "4,5" in first) == ("1", True)
    assert (second[0], "4,5" in second) == ("*", False)
    listed = json.loads(kubectl_tapp(web, "history", "web", "-o", "json").out)
    assert [each.get("kept") for each in listed] == ["4,5", None]
