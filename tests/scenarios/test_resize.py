"""Tests `resources: InPlace`: running pods get other CPU and memory through the resize
subresource.
"""

import pytest

from simulator.api.store import Event
from tests.hook_calls import is_open, ready
from tests.scenarios.life import Document, Life
from tests.scenarios.resizes import RESTART, asking, begun, strategy


def limits(life: Life) -> list[str]:
    """Returns two CPU limits for each main container: that of the spec, and the one that the
    kubelet reports.
    """
    return [
        f"{pod['spec']['containers'][0]['resources']['limits']['cpu']} "
        f"{pod['status']['containerStatuses'][0]['resources']['limits']['cpu']}"
        for _, pod in sorted(life.pods.items())
    ]


def restarted(life: Life) -> int:
    return sum(life.restarts().values())


def make_pending(life: Life, reason: str, *names: str) -> None:
    """Makes the kubelet report for the pods with these names that their resize is pending for
    `reason`.
    """
    life.world.kubelet.levers.resize_pends = lambda pod: (
        (reason, "Node didn't have enough resource: cpu")
        if pod["metadata"]["name"] in names
        else None
    )


@pytest.mark.parametrize("lean", [False, True], ids=["normal pods", "lean pods"])
@pytest.mark.parametrize("generation", [False, True], ids=["no generation", "observed generation"])
def test_two_consecutive_resizes_restart_nothing(lean: bool, generation: bool) -> None:
    life = begun(lean=lean)
    life.world.kubelet.levers.reports_generation = generation
    born = life.uids()
    for cpu in ("200m", "300m"):
        life.patch(template=asking(cpu))
        assert limits(life) == [f"{cpu} {cpu}"] * 3
        assert life.uids() == born
        assert restarted(life) == 0
        assert life.complete
        assert life.fewest_ready == 3
    assert {error for _, error in life.patches} == {""}
    assert len(life.patches) == 6
    assert "resizing" not in life.status
    life.writes()
    life.idle()
    assert life.writes() == []


def test_budget_limits_the_number_of_concurrent_resizes() -> None:
    life = begun()
    most = 0

    def watch() -> bool:
        nonlocal most
        under_way = sum(1 for text in limits(life) if len(set(text.split())) > 1)
        most = max(most, under_way)
        return limits(life) == ["200m 200m"] * 3

    life.begin_patch(template=asking("200m"))
    life.until(watch)
    assert most == 1
    assert life.fewest_ready == 3


def test_restart_by_a_resize_policy_uses_the_budget() -> None:
    life = begun(asking(resizePolicy=RESTART))
    born = life.uids()
    fewest = 3

    def serving() -> int:
        workers = [life.world.kubelet.worker(pod) for pod in life.pods.values()]
        now = life.world.clock.now
        return sum(1 for worker in workers if worker and worker.local.can_serve(now))

    def watch() -> bool:
        nonlocal fewest
        fewest = min(fewest, serving())
        return limits(life) == ["200m 200m"] * 3

    life.begin_patch(template=asking("200m", resizePolicy=RESTART))
    life.until(watch)
    life.settle()
    assert limits(life) == ["200m 200m"] * 3
    assert life.uids() == born
    assert life.restarts() == {0: 1, 1: 1, 2: 1}
    assert life.complete
    assert fewest == 2


@pytest.mark.parametrize("seconds", [0.5, 20.0], ids="resize takes {} s".format)
def test_container_restarts_for_a_resize_outside_its_services(seconds: float) -> None:
    gate = [{"conditionType": "apps.tkestack.io/InPlaceUpdateReady"}]

    def body(cpu: str) -> Document:
        made = asking(cpu, resizePolicy=RESTART)
        return {**made, "spec": {**made["spec"], "readinessGates": gate}}

    in_place = {"resources": "InPlace", "gracePeriodSeconds": 5}
    life = begun(body("100m"), updateStrategy=strategy(inPlaceUpdateStrategy=in_place))
    life.world.kubelet.levers.resize_seconds = seconds
    born, wrong = life.uids(), list[str]()

    def watch(event: Event) -> None:
        if event.kind.name != "Pod" or event.old is None or event.new is None:
            return
        old, new = event.old, event.new
        resized, restarted = (
            part(old)[0][key] != part(new)[0][key]
            for part, key in (
                (lambda pod: pod["spec"]["containers"], "resources"),
                (lambda pod: pod["status"]["containerStatuses"], "restartCount"),
            )
        )
        if (resized and ready(old)) or (restarted and is_open(new)):
            wrong.append(f"{new['metadata']['name']} at {life.world.clock.now:.1f}")

    life.world.watch(watch)
    life.patch(template=body("200m"))
    assert wrong == []
    assert limits(life) == ["200m 200m"] * 3
    assert life.uids() == born
    assert life.restarts() == {0: 1, 1: 1, 2: 1}
    assert life.complete
    assert all(is_open(pod) and ready(pod) for pod in life.pods.values())
    life.writes()
    life.idle()
    assert life.writes() == []


def test_lost_resize_request_is_repeated() -> None:
    life = begun()
    life.lost_patches = 2
    life.patch(template=asking("200m"))
    assert limits(life) == ["200m 200m"] * 3
    assert life.complete
    assert [outcome for _, outcome in life.patches].count("lost") == 2


def test_infeasible_resize_replaces_the_pod_within_the_budget() -> None:
    life = begun()
    born = life.uids()
    make_pending(life, "Infeasible", "web-0", "web-1", "web-2")
    life.patch(template=asking("200m"))
    assert not set(born.values()) & set(life.uids().values())
    assert limits(life) == ["200m 200m"] * 3
    assert life.complete
    assert life.fewest_ready == 2


def test_deferred_resize_waits_and_sets_a_condition() -> None:
    life = begun()
    born = life.uids()
    make_pending(life, "Deferred", "web-0")
    life.begin_patch(template=asking("200m"))
    life.world.run(120)
    assert limits(life) == ["200m 100m", "100m 100m", "100m 100m"]
    assert life.uids() == born
    assert life.condition("Progressing").startswith("True Updating")
    found = life.condition("PodsNotResized")
    assert found.startswith(
        "True ResizeDeferred: instance 0: its node has had no room for the resources of"
    )
    assert "Node didn't have enough resource: cpu" in found
    make_pending(life, "Deferred")
    life.world.run(60)
    assert limits(life) == ["200m 200m"] * 3
    assert life.complete
    assert restarted(life) == 0
    assert life.condition("PodsNotResized") == ""


def test_next_template_ends_a_deferred_resize() -> None:
    life = begun()
    make_pending(life, "Deferred", "web-0")
    life.begin_patch(template=asking("200m"))
    life.world.run(120)
    life.patch(template=asking("100m"))
    assert limits(life) == ["100m 100m"] * 3
    assert life.complete
    assert restarted(life) == 0


def test_resize_that_the_kubelet_never_starts_sets_a_condition() -> None:
    life = begun()
    life.world.kubelet.levers.resize_seconds = 10**6
    life.begin_patch(template=asking("200m"))
    life.world.run(200)
    assert "True NotResized: instance 0: the kubelet has not" in life.condition("PodsNotResized")
    assert limits(life)[1:] == ["100m 100m", "100m 100m"]


def test_rollback_of_resources_is_a_resize() -> None:
    life = begun()
    life.begin_patch(template=asking("200m"))
    life.until(lambda: bool(life.patches))
    life.patch(template=asking("100m"))
    assert limits(life) == ["100m 100m"] * 3
    assert life.complete
    assert restarted(life) == 0


@pytest.mark.parametrize(
    "options",
    [{"resize": False}, {"reports": False}, {"revisionHistoryLimit": 0}],
    ids=["no component", "old kubelet", "no history"],
)
def test_pod_is_replaced_if_resizes_are_not_supported(options: Document) -> None:
    life = begun(**options)
    born = life.uids()
    life.patch(template=asking("200m"))
    assert not set(born.values()) & set(life.uids().values())
    assert life.patches == []
    assert life.complete
    assert life.fewest_ready == 2


def test_change_of_image_and_resources_replaces_the_pod() -> None:
    life = begun()
    born = life.uids()
    life.patch(template=asking("200m", "web:2"))
    assert not set(born.values()) & set(life.uids().values())
    assert life.images() == "web:2 web:2 web:2"
    assert life.complete
    assert life.patches == []


def test_resize_by_somebody_else_is_reverted() -> None:
    life = begun()
    life.world.resize("web-1", {"limits": {"cpu": "900m"}}, "web")
    life.settle()
    assert limits(life) == ["100m 100m"] * 3
    assert life.complete
    assert restarted(life) == 0


def test_no_resize_is_requested_while_updates_are_paused() -> None:
    life = begun()
    life.patch(template=asking("200m"), updateStrategy=strategy(paused=True))
    assert life.patches == []
    assert limits(life) == ["100m 100m"] * 3
    life.patch(updateStrategy=strategy(paused=False))
    assert limits(life) == ["200m 200m"] * 3
