"""Tests the command `restart`: with new pods, and in place."""

import pytest

from tests.plugin.clusters import answering, changed, never_ready, running, spec_of, uids
from tests.plugin.fake_kubectl import StandIn, kubectl_tapp


@pytest.fixture
def web() -> StandIn:
    return running()


IN_PLACE = "apps.tkestack.io/restart-in-place"
RESTARTED = "kubectl.kubernetes.io/restartedAt"


# --- restart ------------------------------------------------------------------------------------


def test_restart_recreates_every_pod(web: StandIn) -> None:
    before = uids(web)
    said = kubectl_tapp(web, "restart", "web", "-y", "--wait")
    assert said.err == ""
    assert said.code == 0
    assert changed(web, before) == [0, 1, 2, 3, 4, 5]
    assert RESTARTED in spec_of(web)["template"]["metadata"]["annotations"]
    assert RESTARTED not in spec_of(web)["templatePool"]["v2"]["metadata"].get("annotations", {})


def test_restart_of_a_template_recreates_only_its_pods(web: StandIn) -> None:
    kubectl_tapp(web, "use", "web", "v2", "4,5", "-y", "--wait")
    before = uids(web)
    assert kubectl_tapp(web, "restart", "web", "--template", "v2", "-y", "--wait").code == 0
    assert changed(web, before) == [4, 5]


def test_chosen_instances_are_restarted_one_by_one(web: StandIn) -> None:
    before, spec = uids(web), spec_of(web)
    said = kubectl_tapp(web, "restart", "web", "1,4", "-y")
    assert said.err == ""
    assert said.code == 0
    assert changed(web, before) == [1, 4]
    assert spec_of(web) == spec
    assert said.lines[-1] == "web: instances 1, 4 restarted"


def test_restart_without_permission_to_evict_changes_nothing(web: StandIn) -> None:
    """Without permission to evict pods, `restart` fails before it asks the user or waits for the
    budget.
    """
    web.forbid("create pods/eviction")
    said = answering(web, "y\n", "restart", "web", "1,4")
    assert said.code == 1
    assert 'no permission: pods/eviction is forbidden: User "jane" cannot create' in said.err
    assert "Apply?" not in said.out


def test_restart_of_chosen_instances_respects_the_budget(web: StandIn) -> None:
    """While instance 0 is unavailable, an available instance is not restarted, but instance 0
    is.
    """
    never_ready(web, 0)
    before = uids(web)
    said = kubectl_tapp(web, "restart", "web", "3", "-y", "--timeout", "20s")
    assert said.code == 4
    assert (
        "instance 3 was not restarted within 20s: the update waits for instance 0 to become"
    ) in said.err
    assert changed(web, before) == []
    said = kubectl_tapp(web, "restart", "web", "0", "-y", "--timeout", "20s")
    assert changed(web, before) == [0], "what does not serve may always go"


def test_restart_waits_for_an_instance_within_minreadyseconds() -> None:
    """Instances 0 and 1 have new pods that are Ready for less than minReadySeconds, so both are
    unavailable.

    A restart of instance 0 waits until instance 1 is available, as the service would.
    """
    web = running(minReadySeconds=60)
    web.world.run(120)
    for id in (0, 1):
        web.world.delete("Pod", f"web-{id}")
    web.world.run(20)
    before = uids(web)
    said = kubectl_tapp(web, "restart", "web", "0", "-y", "--timeout", "10s")
    assert said.code == 4
    assert "maxUnavailable allows 1 of 6 instances to be unavailable" in said.err
    assert changed(web, before) == []
    assert kubectl_tapp(web, "restart", "web", "0", "-y").code == 0
    assert changed(web, before) == [0]


def test_restart_skips_an_instance_whose_node_is_not_ready_any_more(web: StandIn) -> None:
    before = uids(web)
    (pod,) = [each for each in web.world.list("Pod") if each["metadata"]["name"] == "web-4"]
    run, node = web.world.run, pod["spec"]["nodeName"]
    (first,) = [
        id for id in (0, 1, 2)
        if web.world.get("Pod", f"web-{id}")["spec"]["nodeName"] != node
    ][:1]  # fmt: skip

    def falls_silent(seconds: float) -> None:
        web.world.run = run  # type: ignore[method-assign]
        run(seconds)
        web.world.nodes.lose(node)
        run(60)

    web.world.run = falls_silent  # type: ignore[method-assign]
    said = kubectl_tapp(web, "restart", "web", f"{first},4", "-y", "--timeout", "90s")
    assert said.code == 4
    assert changed(web, before) == [first]
    assert "its node has stopped reporting" in said.err


def test_pause_stops_a_restart_of_chosen_instances(web: StandIn) -> None:
    before = uids(web)
    kubectl_tapp(web, "pause", "web", "-y")
    said = kubectl_tapp(web, "restart", "web", "1", "-y")
    assert said.code == 4
    assert (
        "instance 1 is not restarted: the update is paused (spec.updateStrategy.paused is true)"
        in said.err
    )
    assert changed(web, before) == []


def test_restart_respects_a_poddisruptionbudget(web: StandIn) -> None:
    web.guarded.add("web-3")
    said = kubectl_tapp(web, "restart", "web", "2,3,4", "-y", "--timeout", "20s")
    assert said.code == 4
    assert "disruption budget" in said.err
    assert "restarted: instance 2; not restarted: instances 3, 4" in said.err


def test_interrupted_restart_prints_its_progress(
    web: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(web.world, "run", interrupted)
    said = kubectl_tapp(web, "restart", "web", "1,2", "-y")
    assert said.code == 130
    assert said.err == "restarted: none; not restarted: instances 1, 2\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["5"], "instance 5 is stopped, so it has no pod to restart: start it"),
        (["9"], "there is no instance 9"),
        (["1", "--template", "v2"], "either instances or --template"),
        (["--template", "v3"], "there is no template 'v3'"),
    ],
    ids=["stopped instance", "unknown instance", "instance and template", "unknown template"],
)
def test_restart_refuses_invalid_arguments(
    web: StandIn, arguments: list[str], message: str
) -> None:
    kubectl_tapp(web, "kill", "web", "5", "-y", "--wait")
    before = uids(web)
    said = kubectl_tapp(web, "restart", "web", *arguments, "-y")
    assert said.code == 2
    assert message in said.err
    assert changed(web, before) == []


# --- restart in place ---------------------------------------------------------------------------


def starts(standin: StandIn) -> dict[int, int]:
    """Returns instance number -> number of container restarts in its pod."""
    pods = standin.world.list("pods")
    return {
        int(each["metadata"]["name"].rpartition("-")[2]): sum(
            status["restartCount"] for status in each["status"]["containerStatuses"]
        )
        for each in pods
    }


def test_restart_in_place_keeps_every_pod(web: StandIn) -> None:
    before = uids(web)
    said = kubectl_tapp(web, "restart", "web", "--in-place", "-y", "--wait")
    assert said.err == ""
    assert said.code == 0
    assert changed(web, before) == []
    assert starts(web) == dict.fromkeys(range(6), 1)
    assert IN_PLACE in spec_of(web)["template"]["metadata"]["annotations"]


def test_restart_in_place_of_chosen_instances_does_not_change_the_tapp(web: StandIn) -> None:
    before, spec = uids(web), spec_of(web)
    for _ in range(2):
        said = kubectl_tapp(web, "restart", "web", "1,4", "--in-place", "-y", "--wait")
        assert said.err == ""
        assert said.code == 0
    assert starts(web) == {0: 0, 1: 2, 2: 0, 3: 0, 4: 2, 5: 0}
    assert changed(web, before) == []
    assert spec_of(web) == spec
    assert "1, 4  UpdateInPlace: annotation apps.tkestack.io/restart-instance" in said.out


def test_restart_in_place_of_a_container_restarts_no_other_container(web: StandIn) -> None:
    said = kubectl_tapp(web, "restart", "web", "--in-place", "-c", "app", "-y", "--wait")
    assert said.code == 0
    assert f"{IN_PLACE}.app" in spec_of(web)["template"]["metadata"]["annotations"]
    said = kubectl_tapp(web, "restart", "web", "2", "--in-place", "-c", "app", "-y", "--wait")
    assert starts(web) == {0: 1, 1: 1, 2: 2, 3: 1, 4: 1, 5: 1}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-c", "app"], "-c needs --in-place: a new pod starts all containers"),
        (
            ["--in-place", "-c", "ap"],
            "no template has a container 'ap' that keeps running; did you mean 'app'?",
        ),
        (
            ["1", "--in-place", "-c", "ap"],
            "instance 1 has no container 'ap' that keeps running; did you mean 'app'?",
        ),
    ],
    ids=["container without in-place", "unknown container", "unknown container of an instance"],
)
def test_restart_in_place_refuses_invalid_arguments(
    web: StandIn, arguments: list[str], message: str
) -> None:
    said = kubectl_tapp(web, "restart", "web", *arguments, "-y")
    assert said.err.strip() == f"error: {message}"
    assert said.code == 2
    assert starts(web) == dict.fromkeys(range(6), 0)


def test_restart_in_place_without_permission_for_pods_is_refused_first(web: StandIn) -> None:
    web.forbid("patch pods")
    said = answering(web, "y\n", "restart", "web", "1", "--in-place")
    assert said.code == 1
    assert "Apply?" not in said.out
