"""`resources: InPlace`: other cpu and memory for pods that run, by their subresource."""

from typing import Any

import pytest

from simulator.api.admission import lean_pods
from simulator.api.store import Event
from tests.reading import is_open, ready
from tests.scenarios.apps import tapp, template
from tests.scenarios.life import Document, Life

NATIVE = {"name": "native", "image": "native:1", "restartPolicy": "Always"}
RESTART = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]


def strategy(unavailable: int = 1, **more: Any) -> Document:
    in_place = {"resources": "InPlace"}
    return {"maxUnavailable": unavailable, "inPlaceUpdateStrategy": in_place, **more}


def asking(cpu: str = "100m", image: str = "web:1", **more: Any) -> Document:
    """A template whose containers ask for so much."""
    resources = {"limits": {"cpu": cpu, "memory": "64Mi"}, "requests": {"cpu": "50m"}}
    init = {**NATIVE, "resources": {"requests": {"cpu": cpu}}}
    container = {"resources": resources, **more}
    return template(image, container=container, initContainers=[init])


def begun(
    body: Document | None = None,
    *,
    lean: bool = False,
    reports: bool = True,
    resize: bool = True,
    **spec: Any,
) -> Life:
    """Three instances, at rest."""
    life = Life(policies=[lean_pods] if lean else [], resize=resize)
    life.world.kubelet.levers.resizes = reports
    spec = {"updateStrategy": strategy(), **spec}
    life.apply(tapp(replicas=3, template=body or asking(), **spec))
    life.writes()
    life.watch_readiness()
    return life


def limits(life: Life) -> list[str]:
    """The cpu limit of each pod's main container, as its spec has it and as its kubelet says."""
    return [
        f"{pod['spec']['containers'][0]['resources']['limits']['cpu']} "
        f"{pod['status']['containerStatuses'][0]['resources']['limits']['cpu']}"
        for _, pod in sorted(life.pods.items())
    ]


def restarted(life: Life) -> int:
    return sum(life.restarts().values())


def pends(life: Life, reason: str, *names: str) -> None:
    """From now on these pods cannot be resized."""
    life.world.kubelet.levers.resize_pends = lambda pod: (
        (reason, "Node didn't have enough resource: cpu")
        if pod["metadata"]["name"] in names
        else None
    )


@pytest.mark.parametrize("lean", [False, True])
@pytest.mark.parametrize("generation", [False, True])
def test_two_resizes_in_a_row_restart_nothing(lean: bool, generation: bool) -> None:
    life = begun(lean=lean)
    life.world.kubelet.levers.reports_generation = generation
    born = life.uids()
    for cpu in ("200m", "300m"):
        life.patch(template=asking(cpu))
        assert (limits(life), life.uids()) == ([f"{cpu} {cpu}"] * 3, born)
        assert (restarted(life), life.complete, life.fewest_ready) == (0, True, 3)
    assert {said for _, said in life.patches} == {""}
    assert len(life.patches) == 6
    assert "resizing" not in life.status
    life.writes()
    life.idle()
    assert life.writes() == []


def test_resizes_go_by_the_number_of_the_budget() -> None:
    life = begun()
    most = 0

    def watch() -> bool:
        nonlocal most
        under_way = sum(1 for text in limits(life) if len(set(text.split())) > 1)
        most = max(most, under_way)
        return limits(life) == ["200m 200m"] * 3

    life.begin_patch(template=asking("200m"))
    life.until(watch)
    assert (most, life.fewest_ready) == (1, 3)


def test_a_container_whose_policy_restarts_it_counts_in_the_budget() -> None:
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
    assert (limits(life), life.uids(), life.restarts()) == (
        ["200m 200m"] * 3,
        born,
        {0: 1, 1: 1, 2: 1},
    )
    assert (life.complete, fewest) == (True, 2)


@pytest.mark.parametrize("seconds", [0.5, 20.0])
def test_a_container_restarts_for_it_out_of_its_services(seconds: float) -> None:
    """For as long as the kubelet needs; and no instance more than the budget allows."""
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
    assert (limits(life), life.uids()) == (["200m 200m"] * 3, born)
    assert (life.restarts(), life.complete) == ({0: 1, 1: 1, 2: 1}, True)
    assert all(is_open(pod) and ready(pod) for pod in life.pods.values())
    life.writes()
    life.idle()
    assert life.writes() == []


def test_a_lost_patch_is_repeated() -> None:
    life = begun()
    life.lost_patches = 2
    life.patch(template=asking("200m"))
    assert (limits(life), life.complete) == (["200m 200m"] * 3, True)
    assert [said for _, said in life.patches].count("lost") == 2


def test_what_can_never_be_done_means_a_new_pod_within_the_budget() -> None:
    life = begun()
    born = life.uids()
    pends(life, "Infeasible", "web-0", "web-1", "web-2")
    life.patch(template=asking("200m"))
    assert not set(born.values()) & set(life.uids().values())
    assert (limits(life), life.complete, life.fewest_ready) == (["200m 200m"] * 3, True, 2)


def test_what_has_no_room_now_waits_and_says_so() -> None:
    life = begun()
    born = life.uids()
    pends(life, "Deferred", "web-0")
    life.begin_patch(template=asking("200m"))
    life.world.run(120)
    assert (limits(life), life.uids()) == (["200m 100m", "100m 100m", "100m 100m"], born)
    assert life.condition("Progressing").startswith("True Updating")
    found = life.condition("PodsNotResized")
    assert found.startswith("True ResizeDeferred: instance 0: its node has had no room since ")
    assert "Node didn't have enough resource: cpu" in found
    pends(life, "Deferred")
    life.world.run(60)
    assert (limits(life), life.complete, restarted(life)) == (["200m 200m"] * 3, True, 0)
    assert life.condition("PodsNotResized") == ""


def test_the_next_template_repairs_what_waits() -> None:
    life = begun()
    pends(life, "Deferred", "web-0")
    life.begin_patch(template=asking("200m"))
    life.world.run(120)
    life.patch(template=asking("100m"))
    assert (limits(life), life.complete, restarted(life)) == (["100m 100m"] * 3, True, 0)


def test_a_kubelet_that_never_acts_is_told_of_and_another_template_repairs_it() -> None:
    life = begun()
    life.world.kubelet.levers.resize_seconds = 10**6
    life.begin_patch(template=asking("200m"))
    life.world.run(200)
    assert "True NotResized: instance 0: its kubelet has not" in life.condition("PodsNotResized")
    assert limits(life)[1:] == ["100m 100m", "100m 100m"]


def test_a_rollback_is_a_resize() -> None:
    life = begun()
    life.begin_patch(template=asking("200m"))
    life.until(lambda: bool(life.patches))
    life.patch(template=asking("100m"))
    assert (limits(life), life.complete, restarted(life)) == (["100m 100m"] * 3, True, 0)


@pytest.mark.parametrize(
    "options", [{"resize": False}, {"reports": False}, {"revisionHistoryLimit": 0}]
)
def test_without_component_kubelet_or_history_a_new_pod_as_ever(options: Document) -> None:
    life = begun(**options)
    born = life.uids()
    life.patch(template=asking("200m"))
    assert not set(born.values()) & set(life.uids().values())
    assert (life.patches, life.complete, life.fewest_ready) == ([], True, 2)


def test_an_image_that_changes_too_means_a_new_pod() -> None:
    life = begun()
    born = life.uids()
    life.patch(template=asking("200m", "web:2"))
    assert not set(born.values()) & set(life.uids().values())
    assert (life.images(), life.complete, life.patches) == ("web:2 web:2 web:2", True, [])


def test_what_somebody_else_resizes_is_taken_back() -> None:
    life = begun()
    life.world.resize("web-1", {"limits": {"cpu": "900m"}}, "web")
    life.settle()
    assert (limits(life), life.complete, restarted(life)) == (["100m 100m"] * 3, True, 0)


def test_paused_means_no_patch() -> None:
    life = begun()
    life.patch(template=asking("200m"), updateStrategy=strategy(paused=True))
    assert (life.patches, limits(life)) == ([], ["100m 100m"] * 3)
    life.patch(updateStrategy=strategy(paused=False))
    assert limits(life) == ["200m 200m"] * 3
