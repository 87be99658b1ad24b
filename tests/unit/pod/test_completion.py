"""Tests when an update in place is complete, for each state that a kubelet publishes.

The rows come from observations of a real kubelet. The kubelet publishes the newest generation
together with the container of the previous spec. The kubelet starts images of specs in between, and
still publishes a container after stopping the container.
"""

import pytest

from tests.builders import NOW, Document, crashing, running, template
from tests.unit.pod.updates import (
    BETWEEN,
    GRACE,
    OLD,
    STOPPED,
    WANTED,
    just_updated,
    kubelet_publishes,
    recorded_container_id,
    update_record,
    with_kubelet_write,
    with_observed_generation,
)
from tests.unit.world import World, settled

HUB = "docker.io/library/"


def status_of_instance(world: World) -> str:
    """Returns the status word of instance 0 in the response to the next sync."""
    return str(world.hook.sync(world.request())["status"]["statuses"]["0"])


def available_replicas(world: World) -> int:
    return int(world.hook.sync(world.request())["status"]["availableReplicas"])


RUNNING = {"running": {"startedAt": "2026-01-05T10:59:58Z"}}
ROWS = {
    # case: (observed generation, same container as recorded, published image, expected status)
    "not observed, old container": (1, True, OLD, "Updating"),
    "observed, before the old container was stopped": (2, True, OLD, "Updating"),
    "observed, image of a spec in between": (2, False, BETWEEN, "Updating"),
    "observed, old image restarted by a liveness probe": (2, False, OLD, "Updating"),
    "not observed, new image": (1, False, WANTED, "Updating"),
    "observed, new image": (2, False, WANTED, "Running"),
    "observed, new image with its full name": (2, False, f"{HUB}{WANTED}", "Running"),
    "observed, image of another registry": (2, False, f"quay.io/library/{WANTED}", "Updating"),
    "old API server, new image": (None, False, WANTED, "Running"),
    "old API server, old container": (None, True, OLD, "Updating"),
    "old API server, image of a spec in between": (None, False, BETWEEN, "Updating"),
    "observed, old container with the new name": (2, True, WANTED, "Updating"),
}


@pytest.mark.parametrize(("seen", "same", "image", "expected"), ROWS.values(), ids=ROWS)
def test_update_is_complete_when_a_new_container_runs_the_image_at_the_newest_generation(
    seen: int | None, same: bool, image: str, expected: str
) -> None:
    world = just_updated()
    id = recorded_container_id(world) if same else "containerd://another"
    kubelet_publishes(
        world, seen=seen, containerID=id, image=image, imageID="sha256:0", state=RUNNING
    )
    world.modify(0, lambda pod: with_kubelet_write(pod, "2026-01-05T10:59:59Z"))
    assert status_of_instance(world) == expected
    assert available_replicas(world) == (expected == "Running")


@pytest.mark.parametrize(
    "wanted",
    [f"nginx@sha256:{'a' * 64}", f"nginx:2@sha256:{'a' * 64}"],
    ids=["digest", "tag and digest"],
)
def test_image_with_a_digest_is_compared_with_the_published_image_id(wanted: str) -> None:
    world = settled(template=template(OLD)).change(template=template(wanted))
    world.sync()
    for digest, expected in (("b", "Updating"), ("a", "Running")):
        kubelet_publishes(
            world,
            seen=2,
            containerID="containerd://new",
            image=f"{HUB}{OLD}",
            imageID=f"{HUB}nginx@sha256:{digest * 64}",
            state=RUNNING,
        )
        world.modify(0, lambda pod: with_kubelet_write(pod, "2026-01-05T10:59:59Z"))
        assert status_of_instance(world) == expected


def test_update_is_not_complete_while_the_old_container_runs() -> None:
    """Ten hours after an update, the kubelet still reports the old container: the update is not
    complete.

    A kubelet that was away for an hour may begin to stop the container only now.
    """
    world = just_updated()
    kubelet_publishes(world, seen=2, containerID=recorded_container_id(world), image=OLD)
    world.hook.now = NOW + 36_000
    assert status_of_instance(world) == "Updating"


@pytest.mark.parametrize("seen", [None, 2], ids=["old API server", "observed"])
def test_update_with_an_unknown_image_name_is_complete_after_some_time(seen: int | None) -> None:
    """A new container reports an image name that proves nothing: the update is complete after some
    time.

    The image may have another tag, and the kubelet may not report the observed generation.
    """
    world = just_updated()
    kubelet_publishes(
        world,
        seen=seen,
        containerID="containerd://new",
        image=OLD,
        imageID="sha256:0",
        state=RUNNING,
    )
    world.hook.now = NOW + GRACE + 14
    answer = world.hook.sync(world.request())
    if answer["status"]["statuses"]["0"] == "Updating":
        world.hook.now += answer["resyncAfterSeconds"]
    assert status_of_instance(world) == "Running"


def test_time_counts_from_the_last_status_update_of_the_kubelet() -> None:
    """The time that proves an update counts from the kubelet's last write, not from the container's
    start.

    The kubelet may have observed the newest generation only then.
    """
    world = just_updated()
    long_since = {"running": {"startedAt": "2026-01-05T10:10:00Z"}}
    kubelet_publishes(
        world, seen=2, containerID="containerd://new", image=BETWEEN, state=long_since
    )
    world.modify(0, lambda pod: with_kubelet_write(pod, "2026-01-05T10:59:50Z"))
    for world.hook.now, expected in ((NOW + 34, "Updating"), (NOW + 35, "Running")):
        assert status_of_instance(world) == expected


def test_instance_whose_update_may_be_complete_uses_the_budget() -> None:
    """While only time can prove an update, the instance waits for the budget before another update.

    The pod may serve requests already.
    """
    world = settled(replicas=3, template=template(OLD)).change(template=template(WANTED))
    world.sync()
    kubelet_publishes(world, seen=2, containerID="containerd://new", image=BETWEEN, state=RUNNING)
    world.modify(0, lambda pod: with_kubelet_write(pod, "2026-01-05T10:59:59Z")).modify(1, crashing)
    world.change(template=template("nginx:3"))
    with_observed_generation(world, world.parent["metadata"]["generation"], "Updating")
    assert world.decisions() == {
        0: "Keep/WaitingForBudget",
        1: "UpdateInPlace/TemplateChanged",
        2: "Keep/WaitingForBudget",
    }


def test_time_allows_for_stopping_each_container_in_turn() -> None:
    def version(app: str, side: str) -> Document:
        sidecars = [{"name": "side", "image": side}]
        return template(app, sidecars=sidecars, terminationGracePeriodSeconds=GRACE)

    world = settled(template=version("app:1", "side:1")).change(template=version("app:2", "side:2"))
    world.sync()

    def other_tags(pod: Document) -> Document:
        status = running(pod)["status"]
        items = [
            {**item, "image": "same", "state": RUNNING} for item in status["containerStatuses"]
        ]
        return with_kubelet_write(
            {**pod, "status": {**status, "containerStatuses": items}}, "2026-01-05T11:00:00Z"
        )

    world.modify(0, other_tags)
    for world.hook.now, expected in ((NOW + 74, "Updating"), (NOW + 75, "Running")):
        assert status_of_instance(world) == expected


def test_record_has_the_time_if_the_kubelet_reports_no_generation() -> None:
    world = settled(template=template(OLD))
    kubelet_publishes(world, seen=None)
    world.change(template=template(WANTED)).sync()
    assert update_record(world)["at"] == "2026-01-05T11:00:00Z"


def test_record_has_no_time_if_the_kubelet_reports_the_generation() -> None:
    """The record of an update has no time, so that the same request gets the same response (promise
    P1).
    """
    assert "at" not in update_record(just_updated())


def test_rollback_is_complete_after_some_time_if_the_kubelet_reports_no_generation() -> None:
    """Rolls back before the kubelet has restarted the container: the rollback is complete after
    some time.

    The kubelet may have observed the image in between, and may be stopping the container.
    """
    world = settled(template=template(OLD))
    kubelet_publishes(world, seen=None)
    world.change(template=template(WANTED)).sync()
    world.change(template=template(OLD)).sync()
    world.sync()
    assert update_record(world)["containers"]["app"] == {
        "id": world.pod(0)["status"]["containerStatuses"][0]["containerID"],
        "image": OLD,
        "overtaken": [WANTED],
    }
    assert status_of_instance(world) == "Updating"
    world.hook.now = NOW + GRACE + 15
    assert status_of_instance(world) == "Running"


@pytest.mark.parametrize(
    "follows", [True, False], ids=["recorded container", "no previous container"]
)
def test_container_that_may_run_an_image_in_between_is_accepted_after_some_time(
    follows: bool,
) -> None:
    """Two updates follow each other, and a new container has the wanted image name: time has to
    prove the rest.

    With RestartAllContainers, the kubelet does not report the previous container.
    """
    world = just_updated()
    id = recorded_container_id(world)
    third = template("nginx:3", terminationGracePeriodSeconds=GRACE)
    world.change(template=third).sync()
    world.sync()
    before = {**STOPPED, **({"containerID": id} if follows else {})}
    shown = {"image": "nginx:3", "state": RUNNING, "lastState": {"terminated": before}}
    kubelet_publishes(world, seen=3, containerID="containerd://new", **shown)
    world.modify(0, lambda pod: with_kubelet_write(pod, "2026-01-05T11:00:00Z"))
    assert status_of_instance(world) == "Updating"
    world.hook.now = NOW + GRACE + 15
    assert status_of_instance(world) == "Running"


def test_record_keeps_the_image_of_an_unfinished_previous_update() -> None:
    world = just_updated()
    id = recorded_container_id(world)
    world.change(template=template("nginx:3", terminationGracePeriodSeconds=GRACE))
    world.sync()
    world.sync()
    assert update_record(world)["containers"]["app"] == {
        "id": id,
        "image": OLD,
        "overtaken": [WANTED],
    }
    kubelet_publishes(world, seen=3, containerID="containerd://2", image=WANTED, state=RUNNING)
    assert status_of_instance(world) == "Updating"
    kubelet_publishes(world, seen=3, containerID="containerd://3", image="nginx:3", state=RUNNING)
    assert status_of_instance(world) == "Running"


def test_record_keeps_the_images_of_the_last_three_unfinished_updates() -> None:
    """After five further updates, the record has the images of the last three.

    The kubelet is at most one spec behind, and the record must not grow with every edit.
    """
    world = just_updated()
    for version in range(3, 8):
        world.change(template=template(f"nginx:{version}", terminationGracePeriodSeconds=GRACE))
        world.sync()
        world.sync()
    assert update_record(world)["containers"]["app"]["overtaken"] == [
        "nginx:4",
        "nginx:5",
        "nginx:6",
    ]


def test_crash_after_the_completion_does_not_count_as_updating() -> None:
    """The new container crashes: the update stays complete, because the new image has run once."""
    world = just_updated()
    crashed = {"terminated": {**STOPPED, "exitCode": 1}}
    kubelet_publishes(
        world, seen=2, containerID="containerd://2", image=WANTED, ready=False, state=crashed
    )
    assert status_of_instance(world) == "Running"  # Ready of the pod is still True
    waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
    kubelet_publishes(
        world, seen=2, containerID="containerd://2", image=WANTED, ready=False, state=waiting
    )
    assert status_of_instance(world) == "Running"


# --- contradictory container statuses -------------------------------------------------------------

ODD: dict[str, Document] = {
    "no container ID": {"containerID": None},
    "no container ID, new image": {"containerID": None, "image": WANTED},
    "no image": {"image": None, "containerID": "containerd://2"},
    "no image and no container ID": {"image": None, "imageID": None, "containerID": None},
    "started in the future": {
        "containerID": "containerd://2",
        "image": BETWEEN,
        "state": {"running": {"startedAt": "2026-01-05T11:05:00Z"}},
    },
    "invalid start time": {
        "containerID": "containerd://2",
        "image": BETWEEN,
        "state": {"running": {"startedAt": "soon"}},
    },
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_contradictory_container_status_is_accepted_after_some_time(odd: Document) -> None:
    world = just_updated()
    kubelet_publishes(world, seen=2, **{"image": BETWEEN, "state": RUNNING, **odd})
    world.modify(0, lambda pod: with_kubelet_write(pod, "2026-01-05T10:59:59Z"))
    assert available_replicas(world) == 0
    world.hook.now = NOW + 600
    assert available_replicas(world) == 1


def test_container_without_a_state_is_never_available() -> None:
    world = just_updated()
    kubelet_publishes(world, seen=2, containerID=None, state={})
    world.hook.now = NOW + 600
    assert available_replicas(world) == 0


def test_time_counts_from_the_first_sync_if_the_time_of_the_report_is_unknown() -> None:
    """Without managed fields, the time that proves an update counts from the first sync that saw
    the container.

    The node may have been away for an hour, so its kubelet has only just observed the spec.
    """
    world = just_updated()
    world.change(template=template("nginx:3", terminationGracePeriodSeconds=GRACE))
    world.sync()
    world.sync()
    long_since = {"running": {"startedAt": "2026-01-05T10:10:00Z"}}
    kubelet_publishes(world, seen=3, containerID="containerd://2", image=WANTED, state=long_since)
    world.modify(0, lambda pod: {**pod, "metadata": {**pod["metadata"], "managedFields": []}})
    world.hook.now = NOW + 3_600
    status = world.sync()["status"]
    assert status["settling"] == {"0/3": "2026-01-05T12:00:00Z"}
    assert status["statuses"]["0"] == "Updating"  # the time has only started
    world.hook.now += 2 * (GRACE + 15) - 1  # a restarted kubelet waits again
    assert world.sync()["status"]["statuses"]["0"] == "Updating"
    world.hook.now += 1
    for _ in range(2):
        world.hook.now += 3_600  # the result stays the same
        status = world.sync()["status"]
        assert status["statuses"]["0"] == "Running"
        assert status["settling"] == {"0/3": "2026-01-05T12:00:00Z"}
    kubelet_publishes(world, seen=3, containerID="containerd://3", image="nginx:3", state=RUNNING)
    assert "settling" not in world.sync()["status"]
