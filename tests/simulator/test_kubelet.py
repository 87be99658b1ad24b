"""Tests the life of pods on simulated nodes."""

from __future__ import annotations

from typing import Any

import pytest

from simulator.objects.objects import Object, is_terminating
from simulator.world import World
from tests.simulator.fake_hook import is_ready, make_world, pod

REASONS = {"ErrImagePull", "ImagePullBackOff", "CrashLoopBackOff"}


def _started(manifest: Object | None = None) -> World:
    world = make_world()
    world.apply(manifest or pod("p"))
    world.settle()
    return world


def _container(world: World, name: str = "p", kind: str = "containerStatuses") -> Any:
    return world.get("Pod", name)["status"][kind][0]


def _set_image(world: World, image: str, name: str = "p", field: str = "containers") -> None:
    spec = world.get("Pod", name)["spec"]
    changed = [{**spec[field][0], "image": image}, *spec[field][1:]]
    world.patch("Pod", name, {"spec": {field: changed}})


def _phases(world: World) -> list[str]:
    seen: list[str] = []

    def note(event: Any) -> None:
        phase = event.object["status"]["phase"] if event.kind.name == "Pod" else ""
        if phase and phase not in seen[-1:]:
            seen.append(phase)

    world.watch(note)
    return seen


def test_pod_is_scheduled_and_becomes_ready() -> None:
    """A new pod gets a node, runs and becomes Ready, and its status has the observed generation."""
    world = make_world()
    phases = _phases(world)
    world.apply(pod("p"))
    world.settle()
    assert phases == ["Pending", "Running"]
    running = world.get("Pod", "p")
    assert is_ready(running)
    assert running["spec"]["nodeName"] == "node-0"
    assert running["status"]["observedGeneration"] == 1
    assert _container(world)["containerID"].startswith("containerd://")


def test_running_pod_may_become_ready_later() -> None:
    world = make_world()
    world.kubelet.levers.ready_seconds = 5.0
    world.apply(pod("p"))
    world.run(4)
    assert world.get("Pod", "p")["status"]["phase"] == "Running"
    assert not is_ready(world.get("Pod", "p"))
    world.settle()
    assert is_ready(world.get("Pod", "p"))


def test_changed_image_restarts_the_container_without_a_change_of_ready() -> None:
    """Changes the image of a container without a probe: the container restarts, and Ready stays
    True.
    """
    world = _started()
    before, old = _container(world), world.get("Pod", "p")
    _set_image(world, "web:2")
    unready: list[bool] = []
    world.watch(
        lambda event: unready.append(event.kind.name == "Pod" and not is_ready(event.object))
    )
    world.settle()
    after, new = _container(world), world.get("Pod", "p")
    assert new["metadata"]["uid"] == old["metadata"]["uid"]
    assert after["containerID"] != before["containerID"]
    assert after["image"] == "docker.io/library/web:2"
    assert after["restartCount"] == 1
    assert after["lastState"]["terminated"]["containerID"] == before["containerID"]
    assert new["status"]["observedGeneration"] == 2
    assert not any(unready)
    assert _since(new) == _since(old)


def _since(found: Object) -> str:
    conditions = found["status"]["conditions"]
    return str(next(one["lastTransitionTime"] for one in conditions if one["type"] == "Ready"))


def test_container_with_a_missing_image_starts_when_the_image_exists() -> None:
    """Changes the image to one that does not exist: the container waits, and starts when the image
    exists.

    Until then the status has the containerID of the stopped container.
    """
    world = _started()
    before = _container(world)["containerID"]
    world.kubelet.levers.bad_images.add("web:2")
    _set_image(world, "web:2")
    world.settle()
    stuck = _container(world)
    assert stuck["state"]["waiting"]["reason"] in REASONS
    assert stuck["containerID"] == before
    assert stuck["image"] == "docker.io/library/web:1"
    assert stuck["lastState"]["terminated"]["containerID"] == before
    assert world.get("Pod", "p")["status"]["phase"] == "Running"
    world.kubelet.levers.bad_images.clear()
    world.run(20)
    assert is_ready(world.get("Pod", "p"))


def test_pod_that_never_started_accepts_another_image() -> None:
    world = make_world()
    world.kubelet.levers.bad_images.add("web:1")
    world.apply(pod("p"))
    world.settle()
    assert world.get("Pod", "p")["status"]["phase"] == "Pending"
    _set_image(world, "web:2")
    world.settle()
    assert is_ready(world.get("Pod", "p"))
    assert _container(world)["restartCount"] == 0


def test_crashing_container_restarts_with_growing_pauses() -> None:
    world = make_world()
    world.kubelet.levers.crashing_images.add("web:1")
    world.apply(pod("p"))
    world.run(120)
    crashed = _container(world)
    assert 2 <= crashed["restartCount"] <= 5
    _set_image(world, "web:2")
    world.settle()
    assert is_ready(world.get("Pod", "p"))


def _rule(action: str, operator: str, *codes: int) -> dict[str, Any]:
    return {"action": action, "exitCodes": {"operator": operator, "values": list(codes)}}


RULES = [_rule("Restart", "In", 42), _rule("Restart", "NotIn", 0, 1, 42)]
RULED = {"restartPolicy": "Never", "restartPolicyRules": RULES}
AGAIN, DONE, FAILED = ("Running", 1), ("Succeeded", 0), ("Failed", 0)
EXITS = [
    ("Always", {0: AGAIN, 1: AGAIN}),
    ("OnFailure", {0: DONE, 1: AGAIN}),
    ("Never", {0: DONE, 1: FAILED}),
]
"""Restart policy -> the result for each exit code."""
CASES = [
    *((policy, {}, exits) for policy, exits in EXITS),
    *(
        (policy, {"restartPolicy": own}, exits)
        for policy in ("Always", "Never")
        for own, exits in EXITS
    ),
    *((policy, RULED, {42: AGAIN, 2: AGAIN, 1: FAILED, 0: DONE}) for policy in ("Always", "Never")),
]


@pytest.mark.parametrize(
    ("policy", "own", "code", "outcome"),
    [(policy, own, *case) for policy, own, exits in CASES for case in exits.items()],
)
def test_exited_container_follows_its_restart_policy(
    policy: str, own: Object, code: int, outcome: tuple[str, int]
) -> None:
    """A container exits: the first matching rule decides, else its policy, else the pod's
    policy.
    """
    manifest = pod("p", restartPolicy=policy)
    manifest["spec"]["containers"][0].update(own)
    world = _started(manifest)
    world.kubelet.finish(world.get("Pod", "p"), code)
    world.settle()
    phase, restarts = outcome
    assert world.get("Pod", "p")["status"]["phase"] == phase
    assert _container(world)["restartCount"] == restarts


def test_pod_runs_as_long_as_one_container_restarts() -> None:
    manifest = pod("p")
    manifest["spec"]["containers"][0]["restartPolicy"] = "Never"
    manifest["spec"]["containers"].append({"name": "other", "image": "other:1"})
    world = _started(manifest)
    world.kubelet.finish(world.get("Pod", "p"), 0, "main")
    world.settle()
    world.kubelet.finish(world.get("Pod", "p"), 0, "other")
    world.settle()
    both = world.get("Pod", "p")["status"]
    assert both["phase"] == "Running"
    assert [one["restartCount"] for one in both["containerStatuses"]] == [0, 1]


def test_native_sidecar_ends_with_the_other_containers() -> None:
    """A native sidecar restarts while other containers run, and does not keep the pod running
    alone.
    """
    sidecar = {"name": "log", "image": "log:1", "restartPolicy": "Always"}
    manifest = pod("p", initContainers=[sidecar])
    manifest["spec"]["containers"][0]["restartPolicy"] = "Never"
    world = _started(manifest)
    world.kubelet.finish(world.get("Pod", "p"), 1, "log")
    world.settle()
    assert _container(world, kind="initContainerStatuses")["restartCount"] == 1
    world.kubelet.finish(world.get("Pod", "p"), 0, "main")
    world.settle()
    assert world.get("Pod", "p")["status"]["phase"] == "Succeeded"


@pytest.mark.parametrize(
    ("own", "phase"), [("Never", "Failed"), ("OnFailure", "Pending"), (None, "Pending")]
)
def test_failed_init_container_without_restarts_fails_its_pod(own: str | None, phase: str) -> None:
    """An init container with its own policy Never fails the pod, although the pod's policy is
    Always.
    """
    world = make_world()
    world.kubelet.levers.crashing_images.add("init:1")
    init = {"name": "init", "image": "init:1", **({"restartPolicy": own} if own else {})}
    world.apply(pod("p", initContainers=[init]))
    world.run(5)
    status = world.get("Pod", "p")["status"]
    assert status["phase"] == phase
    assert "containerID" not in status["containerStatuses"][0]


def test_rule_can_restart_all_containers() -> None:
    """A rule with the action RestartAllContainers restarts all containers in the pod, init
    containers first.

    Running containers are killed for it.
    """
    manifest = pod("p", initContainers=[{"name": "init", "image": "init:1"}])
    rules = [_rule("RestartAllContainers", "In", 7)]
    manifest["spec"]["containers"][0].update(restartPolicy="Never", restartPolicyRules=rules)
    manifest["spec"]["containers"].append({"name": "other", "image": "other:1"})
    world = _started(manifest)
    before = world.get("Pod", "p")
    world.kubelet.finish(before, 7, "main")
    world.settle()
    after = world.get("Pod", "p")
    statuses = [*after["status"]["initContainerStatuses"], *after["status"]["containerStatuses"]]
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert is_ready(after)
    assert [one["restartCount"] for one in statuses] == [1, 1, 1]
    world.kubelet.finish(after, 0)
    world.settle()
    assert "terminated" in _container(world)["state"]


@pytest.mark.parametrize("policy", ["Never", "OnFailure"])
def test_finished_container_does_not_restart_for_another_image(policy: str) -> None:
    manifest = pod("p", restartPolicy=policy)
    manifest["spec"]["containers"].append({"name": "other", "image": "other:1"})
    world = _started(manifest)
    world.kubelet.finish(world.get("Pod", "p"), 0, "main")
    world.settle()
    assert world.get("Pod", "p")["status"]["phase"] == "Running"
    _set_image(world, "web:2")
    world.settle()
    assert "terminated" in _container(world)["state"]
    assert _container(world)["restartCount"] == 0


def test_init_containers_run_once_and_sidecars_follow_their_image() -> None:
    """A new image restarts the native sidecar and no other container; an init container does not
    run again.

    The sidecar is listed before the init container, and starts first.
    """
    sidecar = {"name": "log", "image": "log:1", "restartPolicy": "Always"}
    manifest = pod("p", initContainers=[sidecar, {"name": "init", "image": "init:1"}])
    world = _started(manifest)
    before = _container(world, kind="initContainerStatuses")["containerID"]
    main = _container(world)["containerID"]
    inits = world.get("Pod", "p")["status"]["initContainerStatuses"]
    assert "running" in inits[0]["state"]
    assert inits[1]["state"]["terminated"]["exitCode"] == 0
    _set_image(world, "log:2", field="initContainers")
    world.settle()
    assert is_ready(world.get("Pod", "p"))
    assert _container(world, kind="initContainerStatuses")["containerID"] != before
    assert _container(world)["containerID"] == main
    init = world.get("Pod", "p")["spec"]["initContainers"]
    world.patch("Pod", "p", {"spec": {"initContainers": [init[0], {**init[1], "image": "init:2"}]}})
    world.settle()
    inits = world.get("Pod", "p")["status"]["initContainerStatuses"]
    assert inits[1]["image"] == "docker.io/library/init:1"
    assert inits[1]["restartCount"] == 0


def test_evicted_pod_has_dead_containers_and_a_refused_one_has_none() -> None:
    world = _started()
    world.kubelet.evict(world.get("Pod", "p"))
    evicted = world.get("Pod", "p")["status"]
    assert evicted["phase"] == "Failed"
    assert evicted["reason"] == "Evicted"
    world.kubelet.levers.refuses = lambda _pod: True
    world.apply(pod("q"))
    world.settle()
    refused = world.get("Pod", "q")
    assert refused["status"]["phase"] == "Failed"
    assert "containerStatuses" not in refused["status"]
    assert refused["spec"]["nodeName"]


def test_kubelet_writes_the_last_phase_of_a_deleted_pod() -> None:
    world = _started()
    phases = _phases(world)
    world.delete("Pod", "p")
    assert is_terminating(world.get("Pod", "p"))
    world.settle()
    assert world.list("Pod") == []
    assert phases == ["Running", "Failed"]


def test_pod_can_hang_in_termination() -> None:
    world = _started()
    world.kubelet.levers.hangs_on_delete = lambda _pod: True
    world.delete("Pod", "p")
    world.settle()
    assert is_terminating(world.get("Pod", "p"))
    world.kubelet.levers.hangs_on_delete = lambda _pod: False
    world.kubelet.release()
    world.settle()
    assert world.list("Pod") == []


def test_pods_of_a_lost_node_are_unready_and_evicted_after_300_seconds() -> None:
    """Loses a node: its pods are not Ready, and in deletion after 300 seconds.

    The pods are gone when the node comes back.
    """
    world = _started()
    world.nodes.lose("node-0")
    assert not is_ready(world.get("Pod", "p"))
    world.run(299)
    assert not is_terminating(world.get("Pod", "p"))
    world.run(600)
    assert is_terminating(world.get("Pod", "p"))
    world.nodes.recover("node-0")
    world.settle()
    assert world.list("Pod") == []


def test_pods_of_a_node_that_comes_back_in_time_become_ready() -> None:
    """A node returns before its pods are evicted: they become Ready with the image that the spec
    has now.
    """
    world = _started()
    world.nodes.lose("node-0")
    _set_image(world, "web:2")
    world.run(60)
    world.nodes.recover("node-0")
    world.settle()
    assert is_ready(world.get("Pod", "p"))
    assert _container(world)["image"] == "docker.io/library/web:2"


def test_worlds_with_the_same_seed_behave_the_same() -> None:
    def story(seed: int) -> list[tuple[float, str]]:
        world = make_world(seed=seed)
        seen: list[tuple[float, str]] = []
        world.watch(lambda event: seen.append((world.clock.now, event.object["metadata"]["name"])))
        for number in range(5):
            world.apply(pod(f"p-{number}"))
        world.settle()
        return seen

    assert story(1) == story(1)
    assert story(1) != story(2)
