"""The end of an update in place: what a real kubelet shows on the way, row by row.

The rows come from a kubelet that was watched: it publishes the newest generation with the container
of the spec before, starts images in between, and goes on showing a container that it has stopped.
"""

from typing import Any

import pytest

from tests.builders import NOW, Document, crashing, running, template
from tests.unit.pod.test_availability import observed_generation
from tests.unit.pod.test_in_place import kubelet_wrote, recorded
from tests.unit.world import World, settled

OLD, WANTED, BETWEEN = "nginx:1.25", "nginx:2", "nginx:1.9"
HUB = "docker.io/library/"
GRACE = 30
STOPPED = {
    "exitCode": 137,
    "finishedAt": "2026-01-05T10:59:00Z",
    "startedAt": "2026-01-05T10:00:00Z",
}


def updated(**spec: Any) -> World:
    """A world in which the update from OLD to WANTED was just written."""
    body = {"terminationGracePeriodSeconds": GRACE, **spec}
    world = settled(template=template(OLD, **body)).change(template=template(WANTED, **body))
    world.sync()
    assert world.pod(0)["metadata"]["generation"] == 2
    return world


def first(world: World) -> str:
    """The containerID that the record holds."""
    return str(recorded(world)["containers"]["app"]["id"])


def shows(world: World, *, seen: int | None, phase: str = "Running", **container: Any) -> None:
    """The kubelet's publication of the pod's container."""

    def publish(pod: Document) -> Document:
        status = running(pod)["status"]
        item = {**status["containerStatuses"][0], **container}
        status = {**status, "phase": phase, "containerStatuses": [item]}
        status["observedGeneration"] = seen
        if seen is None:
            del status["observedGeneration"]
        return {**pod, "status": status}

    world.modify(0, publish)


def word(world: World) -> str:
    """The instance's status."""
    return str(world.hook.sync(world.request())["status"]["statuses"]["0"])


def available(world: World) -> int:
    return int(world.hook.sync(world.request())["status"]["availableReplicas"])


RUNS = {"running": {"startedAt": "2026-01-05T10:59:58Z"}}
ROWS = {
    # what it is: (generation seen, the recorded container, the image shown, what follows)
    "nothing seen, the old container": (1, True, OLD, "Updating"),
    "seen, published before the kill": (2, True, OLD, "Updating"),
    "seen, an image in between runs": (2, False, BETWEEN, "Updating"),
    "seen, the old image was started anew by a liveness probe": (2, False, OLD, "Updating"),
    "not seen, the wanted image runs": (1, False, WANTED, "Updating"),
    "seen, the wanted image runs": (2, False, WANTED, "Running"),
    "seen, the wanted image under its whole name": (2, False, f"{HUB}{WANTED}", "Running"),
    "seen, another registry's image of that name": (
        2,
        False,
        f"quay.io/library/{WANTED}",
        "Updating",
    ),
    "an old server, the wanted image runs": (None, False, WANTED, "Running"),
    "an old server, the old container": (None, True, OLD, "Updating"),
    "an old server, an image in between": (None, False, BETWEEN, "Updating"),
    "seen, the recorded container under the wanted name": (2, True, WANTED, "Updating"),
}


@pytest.mark.parametrize(("seen", "same", "image", "expected"), ROWS.values(), ids=ROWS)
def test_the_wanted_image_and_the_newest_generation_together_tell(
    seen: int | None, same: bool, image: str, expected: str
) -> None:
    world = updated()
    id = first(world) if same else "containerd://another"
    shows(world, seen=seen, containerID=id, image=image, imageID="sha256:0", state=RUNS)
    world.modify(0, lambda pod: kubelet_wrote(pod, "2026-01-05T10:59:59Z"))
    assert word(world) == expected
    assert available(world) == (expected == "Running")


@pytest.mark.parametrize("wanted", [f"nginx@sha256:{'a' * 64}", f"nginx:2@sha256:{'a' * 64}"])
def test_a_digest_is_told_by_the_image_id(wanted: str) -> None:
    world = settled(template=template(OLD)).change(template=template(wanted))
    world.sync()
    for digest, expected in (("b", "Updating"), ("a", "Running")):
        shows(
            world,
            seen=2,
            containerID="containerd://new",
            image=f"{HUB}{OLD}",
            imageID=f"{HUB}nginx@sha256:{digest * 64}",
            state=RUNS,
        )
        world.modify(0, lambda pod: kubelet_wrote(pod, "2026-01-05T10:59:59Z"))
        assert word(world) == expected


def test_the_old_container_is_never_accepted_under_its_old_name_however_long_it_runs() -> None:
    """A kubelet that was away for an hour has only just seen the update, and begins to stop it."""
    world = updated()
    shows(world, seen=2, containerID=first(world), image=OLD)
    world.hook.now = NOW + 36_000
    assert word(world) == "Updating"


@pytest.mark.parametrize("seen", [None, 2])
def test_a_time_is_never_waited_for_without_end(seen: int | None) -> None:
    """Another tag of the same image, and a kubelet that says nothing of what it has seen."""
    world = updated()
    shows(
        world, seen=seen, containerID="containerd://new", image=OLD, imageID="sha256:0", state=RUNS
    )
    world.hook.now = NOW + GRACE + 14
    answer = world.hook.sync(world.request())
    if answer["status"]["statuses"]["0"] == "Updating":
        world.hook.now += answer["resyncAfterSeconds"]
    assert word(world) == "Running"


def test_the_time_counts_from_the_last_report_of_the_kubelet() -> None:
    """It may have seen the newest generation only then, while an image in between ran for long."""
    world = updated()
    long_since = {"running": {"startedAt": "2026-01-05T10:10:00Z"}}
    shows(world, seen=2, containerID="containerd://new", image=BETWEEN, state=long_since)
    world.modify(0, lambda pod: kubelet_wrote(pod, "2026-01-05T10:59:50Z"))
    for world.hook.now, expected in ((NOW + 34, "Updating"), (NOW + 35, "Running")):
        assert word(world) == expected


def test_what_may_be_updated_already_is_not_free_to_be_taken() -> None:
    """Only time can prove it, but it serves: where others fail it has to stay."""
    world = settled(replicas=3, template=template(OLD)).change(template=template(WANTED))
    world.sync()
    shows(world, seen=2, containerID="containerd://new", image=BETWEEN, state=RUNS)
    world.modify(0, lambda pod: kubelet_wrote(pod, "2026-01-05T10:59:59Z")).modify(1, crashing)
    world.change(template=template("nginx:3"))
    observed_generation(world, world.parent["metadata"]["generation"], "Updating")
    assert world.decisions() == {
        0: "Keep/WaitingForBudget",
        1: "UpdateInPlace/TemplateChanged",
        2: "Keep/WaitingForBudget",
    }


def test_containers_are_stopped_one_after_the_other() -> None:
    def version(app: str, side: str) -> Document:
        sidecars = [{"name": "side", "image": side}]
        return template(app, sidecars=sidecars, terminationGracePeriodSeconds=GRACE)

    world = settled(template=version("app:1", "side:1")).change(template=version("app:2", "side:2"))
    world.sync()

    def other_tags(pod: Document) -> Document:
        status = running(pod)["status"]
        items = [{**item, "image": "same", "state": RUNS} for item in status["containerStatuses"]]
        return kubelet_wrote(
            {**pod, "status": {**status, "containerStatuses": items}}, "2026-01-05T11:00:00Z"
        )

    world.modify(0, other_tags)
    for world.hook.now, expected in ((NOW + 74, "Updating"), (NOW + 75, "Running")):
        assert word(world) == expected


def test_a_server_that_tells_no_generation_gets_the_time_of_the_write_into_the_record() -> None:
    world = settled(template=template(OLD))
    shows(world, seen=None)
    world.change(template=template(WANTED)).sync()
    assert recorded(world)["at"] == "2026-01-05T11:00:00Z"


def test_a_server_that_tells_the_generation_needs_no_time_in_the_record() -> None:
    """P1: the same request gives the same bytes at any time."""
    assert "at" not in recorded(updated())


def test_without_a_generation_what_was_taken_back_has_to_outlast_the_kubelet() -> None:
    """It may have seen the image in between, and be stopping the container."""
    world = settled(template=template(OLD))
    shows(world, seen=None)
    world.change(template=template(WANTED)).sync()
    world.change(template=template(OLD)).sync()
    world.sync()
    assert recorded(world)["containers"]["app"] == {
        "id": world.pod(0)["status"]["containerStatuses"][0]["containerID"],
        "image": OLD,
        "overtaken": [WANTED],
    }
    assert word(world) == "Updating"
    world.hook.now = NOW + GRACE + 15
    assert word(world) == "Running"


@pytest.mark.parametrize("follows", [True, False], ids=["the recorded one", "one it has forgotten"])
def test_what_may_be_the_image_in_between_by_another_name_has_to_outlast_the_kubelet(
    follows: bool,
) -> None:
    """A kubelet that starts all of a pod anew forgets what ran before (RestartAllContainers)."""
    world = updated()
    id = first(world)
    third = template("nginx:3", terminationGracePeriodSeconds=GRACE)
    world.change(template=third).sync()
    world.sync()
    before = {**STOPPED, **({"containerID": id} if follows else {})}
    shown = {"image": "nginx:3", "state": RUNS, "lastState": {"terminated": before}}
    shows(world, seen=3, containerID="containerd://new", **shown)
    world.modify(0, lambda pod: kubelet_wrote(pod, "2026-01-05T11:00:00Z"))
    assert word(world) == "Updating"
    world.hook.now = NOW + GRACE + 15
    assert word(world) == "Running"


def test_what_an_overtaken_write_had_open_is_remembered() -> None:
    world = updated()
    id = first(world)
    world.change(template=template("nginx:3", terminationGracePeriodSeconds=GRACE))
    world.sync()
    world.sync()
    assert recorded(world)["containers"]["app"] == {"id": id, "image": OLD, "overtaken": [WANTED]}
    shows(world, seen=3, containerID="containerd://2", image=WANTED, state=RUNS)
    assert word(world) == "Updating"
    shows(world, seen=3, containerID="containerd://3", image="nginx:3", state=RUNS)
    assert word(world) == "Running"


def test_of_many_overtaken_writes_the_last_three_are_remembered() -> None:
    """The kubelet is one spec behind, and the record does not grow with every edit."""
    world = updated()
    for version in range(3, 8):
        world.change(template=template(f"nginx:{version}", terminationGracePeriodSeconds=GRACE))
        world.sync()
        world.sync()
    assert recorded(world)["containers"]["app"]["overtaken"] == ["nginx:4", "nginx:5", "nginx:6"]


def test_readiness_and_crashes_after_the_end_are_no_update() -> None:
    """Updating ends with completion: the wanted image has run, whatever became of it."""
    world = updated()
    crashed = {"terminated": {**STOPPED, "exitCode": 1}}
    shows(world, seen=2, containerID="containerd://2", image=WANTED, ready=False, state=crashed)
    assert word(world) == "Running"  # the pod's own Ready is still True
    waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
    shows(world, seen=2, containerID="containerd://2", image=WANTED, ready=False, state=waiting)
    assert word(world) == "Running"


# --- statuses that contradict themselves ----------------------------------------------------------

ODD: dict[str, Document] = {
    "no id": {"containerID": None},
    "no id, and the wanted image": {"containerID": None, "image": WANTED},
    "no image": {"image": None, "containerID": "containerd://2"},
    "neither": {"image": None, "imageID": None, "containerID": None},
    "started in the future": {
        "containerID": "containerd://2",
        "image": BETWEEN,
        "state": {"running": {"startedAt": "2026-01-05T11:05:00Z"}},
    },
    "started at no time": {
        "containerID": "containerd://2",
        "image": BETWEEN,
        "state": {"running": {"startedAt": "soon"}},
    },
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_a_contradiction_is_neither_available_by_mistake_nor_stuck_for_good(odd: Document) -> None:
    world = updated()
    shows(world, seen=2, **{"image": BETWEEN, "state": RUNS, **odd})
    world.modify(0, lambda pod: kubelet_wrote(pod, "2026-01-05T10:59:59Z"))
    assert available(world) == 0
    world.hook.now = NOW + 600
    assert available(world) == 1


def test_no_state_at_all_is_not_available() -> None:
    world = updated()
    shows(world, seen=2, containerID=None, state={})
    world.hook.now = NOW + 600
    assert available(world) == 0


def test_without_any_trace_of_the_kubelets_report_the_first_sight_counts() -> None:
    """Its node was away for an hour, with an image in between: it has only just seen the newest."""
    world = updated()
    world.change(template=template("nginx:3", terminationGracePeriodSeconds=GRACE))
    world.sync()
    world.sync()
    long_since = {"running": {"startedAt": "2026-01-05T10:10:00Z"}}
    shows(world, seen=3, containerID="containerd://2", image=WANTED, state=long_since)
    world.modify(0, lambda pod: {**pod, "metadata": {**pod["metadata"], "managedFields": []}})
    world.hook.now = NOW + 3_600
    status = world.sync()["status"]
    assert status["settling"] == {"0/3": "2026-01-05T12:00:00Z"}
    assert status["statuses"]["0"] == "Updating"  # the first sight itself proves nothing
    world.hook.now += 2 * (GRACE + 15) - 1  # a kubelet that is restarted begins anew to stop it
    assert world.sync()["status"]["statuses"]["0"] == "Updating"
    world.hook.now += 1
    for _ in range(2):
        world.hook.now += 3_600  # and it stays so
        status = world.sync()["status"]
        assert status["statuses"]["0"] == "Running"
        assert status["settling"] == {"0/3": "2026-01-05T12:00:00Z"}
    shows(world, seen=3, containerID="containerd://3", image="nginx:3", state=RUNS)
    assert "settling" not in world.sync()["status"]
