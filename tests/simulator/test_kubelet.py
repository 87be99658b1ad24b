"""The life of pods on simulated nodes."""

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


def test_a_pod_comes_up() -> None:
    """Pending, bound, running, ready; the kubelet says which generation it saw."""
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


def test_no_probe_no_readiness_delay_unless_asked() -> None:
    """A pod can run for a while before it is ready."""
    world = make_world()
    world.kubelet.levers.ready_seconds = 5.0
    world.apply(pod("p"))
    world.run(4)
    assert world.get("Pod", "p")["status"]["phase"] == "Running"
    assert not is_ready(world.get("Pod", "p"))
    world.settle()
    assert is_ready(world.get("Pod", "p"))


def test_an_image_change_restarts_the_container_and_ready_never_says_so() -> None:
    """Same pod, new containerID, one restart more; without a probe Ready stays True throughout."""
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
    assert (after["image"], after["restartCount"]) == ("docker.io/library/web:2", 1)
    assert after["lastState"]["terminated"]["containerID"] == before["containerID"]
    assert new["status"]["observedGeneration"] == 2
    assert not any(unready)
    assert _since(new) == _since(old)


def _since(found: Object) -> str:
    conditions = found["status"]["conditions"]
    return str(next(one["lastTransitionTime"] for one in conditions if one["type"] == "Ready"))


def test_a_bad_image_waits_and_recovers() -> None:
    """A container that cannot pull keeps its old containerID, and starts once it can."""
    world = _started()
    before = _container(world)["containerID"]
    world.kubelet.levers.bad_images.add("web:2")
    _set_image(world, "web:2")
    world.settle()
    stuck = _container(world)
    assert stuck["state"]["waiting"]["reason"] in REASONS
    assert (stuck["containerID"], stuck["image"]) == (before, "docker.io/library/web:1")
    assert stuck["lastState"]["terminated"]["containerID"] == before
    assert world.get("Pod", "p")["status"]["phase"] == "Running"
    world.kubelet.levers.bad_images.clear()
    world.run(20)
    assert is_ready(world.get("Pod", "p"))


def test_a_bad_image_is_replaced_by_a_good_one() -> None:
    """A pod that never started takes the next image."""
    world = make_world()
    world.kubelet.levers.bad_images.add("web:1")
    world.apply(pod("p"))
    world.settle()
    assert world.get("Pod", "p")["status"]["phase"] == "Pending"
    _set_image(world, "web:2")
    world.settle()
    assert is_ready(world.get("Pod", "p"))
    assert _container(world)["restartCount"] == 0


def test_crash_loop() -> None:
    """A crashing container restarts at once, then ever more slowly."""
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
"""Restart policy -> what becomes of a pod that exits with a code."""
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
def test_exits_follow_the_policy(
    policy: str, own: Object, code: int, outcome: tuple[str, int]
) -> None:
    """The container's own, whatever the pod's is; before it, the first of its rules that fits."""
    manifest = pod("p", restartPolicy=policy)
    manifest["spec"]["containers"][0].update(own)
    world = _started(manifest)
    world.kubelet.finish(world.get("Pod", "p"), code)
    world.settle()
    phase = world.get("Pod", "p")["status"]["phase"]
    assert (phase, _container(world)["restartCount"]) == outcome


def test_a_pod_runs_while_one_of_its_containers_is_started_again() -> None:
    """Of policies of all kinds: it has ended with the last container that is not."""
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


def test_a_native_sidecar_ends_with_the_work_of_its_pod() -> None:
    """It is started again for as long as the others are not done, and keeps no pod running."""
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
def test_an_init_container_that_never_runs_again_fails_its_pod(own: str | None, phase: str) -> None:
    """By its own policy, although the pod's is Always."""
    world = make_world()
    world.kubelet.levers.crashing_images.add("init:1")
    init = {"name": "init", "image": "init:1", **({"restartPolicy": own} if own else {})}
    world.apply(pod("p", initContainers=[init]))
    world.run(5)
    status = world.get("Pod", "p")["status"]
    assert (status["phase"], "containerID" in status["containerStatuses"][0]) == (phase, False)


def test_a_rule_starts_all_containers_again() -> None:
    """In the same pod, init containers first; whoever runs is killed, and nothing has ended."""
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
def test_an_ended_container_never_starts_again(policy: str) -> None:
    """Its image may change, nothing happens."""
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


def test_init_containers_and_sidecars() -> None:
    """Plain init containers run once; a sidecar starts first, stays, and follows its image."""
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
    assert (inits[1]["image"], inits[1]["restartCount"]) == ("docker.io/library/init:1", 0)


def test_eviction_and_refusal() -> None:
    """An evicted pod has dead containers, a refused one never had any."""
    world = _started()
    world.kubelet.evict(world.get("Pod", "p"))
    evicted = world.get("Pod", "p")["status"]
    assert (evicted["phase"], evicted["reason"]) == ("Failed", "Evicted")
    world.kubelet.levers.refuses = lambda _pod: True
    world.apply(pod("q"))
    world.settle()
    refused = world.get("Pod", "q")
    assert refused["status"]["phase"] == "Failed"
    assert "containerStatuses" not in refused["status"]
    assert refused["spec"]["nodeName"]


def test_delete_takes_a_moment_and_reports_the_end() -> None:
    """Before it lets go of a pod the kubelet writes its last phase."""
    world = _started()
    phases = _phases(world)
    world.delete("Pod", "p")
    assert is_terminating(world.get("Pod", "p"))
    world.settle()
    assert world.list("Pod") == []
    assert phases == ["Running", "Failed"]


def test_a_delete_can_hang() -> None:
    """A pod that does not end stays Terminating until it is released."""
    world = _started()
    world.kubelet.levers.hangs_on_delete = lambda _pod: True
    world.delete("Pod", "p")
    world.settle()
    assert is_terminating(world.get("Pod", "p"))
    world.kubelet.levers.hangs_on_delete = lambda _pod: False
    world.kubelet.release()
    world.settle()
    assert world.list("Pod") == []


def test_a_lost_node() -> None:
    """Its pods are unready at once, Terminating after 300 s, and gone when it comes back."""
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


def test_a_node_that_comes_back_in_time() -> None:
    """A pod that was not evicted yet is ready again, and catches up with its image."""
    world = _started()
    world.nodes.lose("node-0")
    _set_image(world, "web:2")
    world.run(60)
    world.nodes.recover("node-0")
    world.settle()
    assert is_ready(world.get("Pod", "p"))
    assert _container(world)["image"] == "docker.io/library/web:2"


def test_same_seed_same_story() -> None:
    """Two worlds with one seed do the same at the same time; another seed differs."""

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
