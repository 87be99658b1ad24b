"""Tests the command `wait`, and commands that wait for their result."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from kubectl_tapp.base.arguments import read_duration
from kubectl_tapp.base.errors import CommandError
from kubectl_tapp.base.observed import Observed
from kubectl_tapp.cluster.access import ClusterAccess
from kubectl_tapp.decide.decisions import decide
from kubectl_tapp.decide.inspection import Inspection
from kubectl_tapp.decide.obstacles import Obstacles
from kubectl_tapp.decide.progress import Progress
from simulator.objects.clock import EPOCH
from simulator.objects.kinds import CLAIM, POD, Kind
from simulator.objects.objects import key_of, with_meta
from tapp.decide.cases import Case
from tapp.decide.standing import standings_of
from tapp.decide.verdicts import Action, Verdict
from tapp.words.reasons import Reason
from tapp.world import Options
from tests.builders import claim_template
from tests.plugin.clusters import never_ready, running, spec_of
from tests.plugin.fake_kubectl import Said, StandIn, kubectl_tapp
from tests.plugin.forecasts import observe, registered


@pytest.fixture
def web() -> StandIn:
    return running()


@pytest.mark.parametrize("goal", ["complete", "ready", "available"])
def test_wait_ends_at_once_if_the_condition_is_met(web: StandIn, goal: str) -> None:
    said = kubectl_tapp(web, "wait", "web", f"--for={goal}")
    assert said.err == ""
    assert said.code == 0
    assert len(said.lines) == 1


def test_wait_for_a_broken_rollout_ends_with_the_reason(web: StandIn) -> None:
    web.world.kubelet.levers.bad_images.add("nginx:broken")
    said = kubectl_tapp(web, "set", "image", "web", "app=nginx:broken", "-y", "--wait")
    assert said.code == 4
    assert "web is stuck: instance 0: not available: container app: " in said.err
    assert "instances 1-5: WaitingForBudget: the update waits for instance 0 to become " in said.err
    assert kubectl_tapp(web, "wait", "web", "--for=stuck").code == 0
    assert kubectl_tapp(web, "wait", "web", "3-5", "--timeout=5s").code == 4
    said = kubectl_tapp(web, "set", "image", "web", "app=nginx:1.25", "-y", "--wait")
    assert said.err == "", "the next template repairs it"
    assert said.code == 0, "the next template repairs it"


@pytest.mark.parametrize(
    ("ids", "who"),
    [([], "all its instances are"), (["1", "2"], "instances 1, 2 are"), (["3"], "instance 3 is")],
    ids=["all instances", "two instances", "one instance"],
)
def test_wait_for_stuck_says_that_the_tapp_is_complete(
    web: StandIn, ids: list[str], who: str
) -> None:
    said = kubectl_tapp(web, "wait", "web", *ids, "--for=stuck")
    message = f"error: web is not stuck: {who} as the spec asks, and no update is in progress\n"
    assert said.code == 4
    assert said.out == ""
    assert said.err == message


def test_timeout_of_a_wait_for_stuck_prints_the_progress(web: StandIn) -> None:
    web.world.patch("tapps", "web", {"spec": {"replicas": 7}})
    said = kubectl_tapp(web, "wait", "web", "--for=stuck", "--timeout=1s")
    assert said.code == 4
    assert said.err.startswith("error: web is not stuck after 1s: 6 of 7 done; ")


def test_failed_pull_is_stuck_but_a_slow_one_is_not(web: StandIn) -> None:
    def edit(image: str) -> Said:
        template = {**spec_of(web)["template"]}
        template["spec"] = {**template["spec"]}
        container = {**template["spec"]["containers"][0], "image": image}
        template["spec"]["containers"] = [container]
        first = {"inPlaceUpdateStrategy": {"prePull": True}}
        web.world.patch("tapps", "web", {"spec": {"template": template, "updateStrategy": first}})
        return kubectl_tapp(web, "wait", "web", "--timeout=20m")

    web.world.kubelet.levers.pull_seconds_by_image["nginx:3"] = 100.0
    said = edit("nginx:3")
    assert said.code == 0
    assert "instances 0-5: pulling images first" in said.out
    web.world.kubelet.levers.bad_images.add("nginx:4")
    said = edit("nginx:4")
    assert said.code == 4
    assert "error: web is stuck: " in said.err
    assert "nginx:4" in said.err
    assert "keeps running as it is until the image can be pulled" in said.err


def test_wait_for_chosen_instances_ignores_broken_others() -> None:
    web = running(updateStrategy={"maxUnavailable": 3})
    never_ready(web, 0)
    assert kubectl_tapp(web, "kill", "web", "4", "-y", "--wait").code == 0


def test_wait_says_that_no_controller_has_acted(web: StandIn) -> None:
    web.world.patch("tapps", "web", {"spec": {"replicas": 7}})
    kept = web.world.run
    try:
        web.world.run = lambda seconds: setattr(  # type: ignore[method-assign]
            web.world.clock, "now", web.world.clock.now + seconds
        )
        said = kubectl_tapp(web, "wait", "web")
    finally:
        web.world.run = kept  # type: ignore[method-assign]
    assert said.code == 4
    assert (
        "no controller has acted on its generation 2. Check that Metacontroller and the" in said.err
    )


@pytest.mark.parametrize(
    ("kind", "name"), [(POD, "web-{}"), (CLAIM, "data-web-{}")], ids=["pods", "claims"]
)
def test_slow_scale_up_is_not_reported_as_a_missing_controller(kind: Kind, name: str) -> None:
    """Creates one child every twenty seconds and writes the observed generation after the last one.

    `wait` must not report in between that no controller acts, because new children appear.
    """
    web = running(replicas=8, volumeClaimTemplates=[claim_template("data")])
    run, cluster = web.world.run, web.world.cluster
    rest = [web.world.get(kind.name, name.format(id)) for id in range(4, 8)]
    for child in rest:
        del cluster._objects[kind][key_of(child)]
    tapp = web.world.get("tapps", "web")
    late = {**tapp, "status": {**tapp["status"], "observedGeneration": 1}}
    cluster._objects[web.world.kinds.find("tapps")][key_of(tapp)] = with_meta(late, generation=2)
    passed = [0.0]

    def creating(seconds: float) -> None:
        passed[0] += seconds
        web.world.clock.now += seconds
        while rest and passed[0] >= 20 * (5 - len(rest)):
            child = rest.pop(0)
            cluster._objects[kind][key_of(child)] = child
        if not rest:
            cluster._objects[web.world.kinds.find("tapps")][key_of(tapp)] = tapp

    web.world.run = creating  # type: ignore[method-assign]
    said = kubectl_tapp(web, "wait", "web")
    web.world.run = run  # type: ignore[method-assign]
    assert said.err == ""
    assert said.code == 0
    assert passed[0] >= 80


def test_edited_images_and_a_spec_without_a_generation_are_not_complete() -> None:
    web = running()
    observed = observe(SimpleNamespace(world=web.world, name="web"))
    now = EPOCH.timestamp() + web.world.clock.now
    plan = decide(observed, registered(Options()), now)
    odd = Verdict(Action.KEEP, Reason.IMAGES_EDITED, "it runs web:2")
    plan.cases[2] = Case(plan.cases[2].instance, odd)
    missing = plan.findings.missing
    plan.standings = standings_of(plan.cases, plan.serving, plan.troubles, missing, plan.now)
    cluster = ClusterAccess({}, web)

    def progress(seen: Observed) -> Progress:
        return Progress(Inspection(seen, plan, Obstacles(cluster, seen, plan)))

    found = progress(observed)
    assert found.unfinished(None) == [2]
    assert found.stuck_reason(None) == "instance 2: ImagesEdited: it runs web:2"
    unnumbered = with_meta(observed.tapp, generation=None)
    assert not progress(replace(observed, tapp=unnumbered)).answered


def test_wait_survives_a_short_outage_of_the_cluster(web: StandIn) -> None:
    refused = "The connection to the server 10.0.0.1:6443 was refused - did you specify the right"
    web.failing["get pods"] = refused
    kept = web.world.run

    def back(seconds: float) -> None:
        web.failing.clear()
        kept(seconds)

    web.world.run = back  # type: ignore[method-assign]
    said = kubectl_tapp(web, "wait", "web")
    assert said.err == ""
    assert said.code == 0
    assert "no answer from the cluster, trying again" in said.out


def test_interrupted_wait_says_that_the_change_is_written(
    web: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(web.world, "run", interrupted)
    said = kubectl_tapp(web, "set", "image", "web", "app=nginx:9", "-y", "--wait")
    assert said.code == 130
    assert said.err == (
        "interrupted; the change is written and goes on: `kubectl tapp wait web -n default` waits "
        "for it\n"
    )


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90s", 90), ("10m", 600), ("1h30m", 5400), ("1m5s", 65)]
)
def test_durations_are_parsed(text: str, seconds: float) -> None:
    assert read_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "0s", "-1s", "soon", "1d", "5 m"])
def test_invalid_durations_are_errors(text: str) -> None:
    with pytest.raises(CommandError, match="is not a duration"):
        read_duration(text)
