"""Tests that the simulated pod worker behaves like that of the real kubelet.

The pod worker is the part of the kubelet that handles a single pod.
"""

from __future__ import annotations

from typing import Any

import pytest

from simulator.node.levers import NEVER
from tests.simulator.node import OnePod

PROBE = {"exec": {"command": ["true"]}, "periodSeconds": 10}


def bad(**spec: Any) -> OnePod:
    """Returns a running pod; its next image, `app:typo`, cannot be pulled."""
    pod = OnePod(**spec)
    pod.levers.bad_images.add("app:typo")
    return pod.up()


def test_edit_is_observed_before_the_kill_and_ready_does_not_change() -> None:
    pod = OnePod().up()
    since = pod.condition("Ready")["lastTransitionTime"]
    pod.edit("app:2").run(10)
    assert pod.seen() == ["2 app:1 running Ready", "2 app:2 running Ready"]
    assert pod.condition("Ready")["lastTransitionTime"] == since


def test_image_between_two_edits_runs_and_is_killed() -> None:
    """Changes the image twice in a row: the kubelet starts the image between them, and kills it.

    The expected states were recorded on a real node, where the container ignored SIGTERM for 12 s.
    """
    pod = OnePod(terminationGracePeriodSeconds=12)
    pod.levers.stop_seconds = 30.0
    pod.up().edit("app:2").run(4)
    pod.edit("app:3").run(40)
    assert pod.seen() == ["2 app:1 running Ready", "3 app:2 running Ready", "3 app:3 running Ready"]
    assert pod.status["restartCount"] == 2
    pod.diary.clear()
    pod.edit("app:2").run(3)
    pod.edit("app:3").run(50)
    assert pod.seen() == ["4 app:3 running Ready", "5 app:2 running Ready", "5 app:3 running Ready"]


def test_container_stops_within_its_grace_period() -> None:
    pod = OnePod(terminationGracePeriodSeconds=4)
    pod.levers.stop_seconds = 30.0
    pod.up().edit("app:2").run(3.5)
    assert not pod.can_serve
    pod.run(5)
    assert pod.can_serve
    assert pod.status["lastState"]["terminated"]["exitCode"] == 137


def test_changed_containers_are_killed_one_by_one() -> None:
    side = {"name": "side", "image": "side:1"}
    pod = OnePod(containers=[{"name": "app", "image": "app:1"}, side]).up()
    pod.edit("app:2").edit("side:2", 1).run(3)
    alive = [one.runs[0].stopping for one in pod.worker.local.mains]
    assert alive == [True, True]
    ended = [one.runs[0].alive for one in pod.worker.local.mains]
    assert ended == [False, True]
    pod.run(10)
    assert [one["image"] for one in pod.pod["status"]["containerStatuses"]] == [
        "docker.io/library/app:2",
        "docker.io/library/side:2",
    ]


@pytest.mark.parametrize(
    ("first", "second", "shown"),
    [
        ("app", "app:other", "docker.io/library/app:latest"),
        ("r.test:5000/x/app:1", "app:1", "r.test:5000/x/app:1"),
        ("app:1", f"app@sha256:{'aa' * 32}", "docker.io/library/app:1"),
        ("docker.io/app:1", "app:2", "docker.io/library/app:1"),
        (f"app:1@sha256:{'aa' * 32}", "app:2", f"docker.io/library/app@sha256:{'aa' * 32}"),
    ],
)
def test_node_reports_the_first_name_of_an_image(first: str, second: str, shown: str) -> None:
    pod = OnePod(image=first)
    pod.levers.digests |= {first: "aa" * 32, second: "aa" * 32}
    pod.up()
    before = pod.status
    pod.edit(second).run(10)
    assert before["image"] == shown
    assert pod.status["image"] == shown
    assert before["containerID"] != pod.status["containerID"]
    assert before["imageID"].rpartition("@")[2] == pod.status["imageID"].rpartition("@")[2]


def test_ready_is_stale_until_the_startup_probe_has_run() -> None:
    pod = OnePod(container={"startupProbe": PROBE})
    pod.levers.ready_seconds_by_image["app:2"] = 13.0
    pod.run(21)
    pod.diary.clear()
    assert pod.ready
    pod.edit("app:2").run(6)
    assert pod.seen() == ["2 app:1 running Ready", "2 app:2 running Ready"]
    assert pod.status["started"]
    assert not pod.can_serve
    pod.run(10)
    assert not pod.status["started"]
    assert not pod.ready
    pod.run(25)
    assert pod.seen()[2:] == ["2 app:2 running", "2 app:2 running Ready"]
    assert pod.status["started"]
    assert pod.ready
    assert pod.can_serve


def test_with_both_probes_ready_becomes_true_before_the_startup_probe() -> None:
    """Updates a container with both probes: Ready turns True, then False, and then True again.

    `started` is still that of the old container at first, so the readiness probe runs once too
    early.
    """
    probes = {"startupProbe": PROBE, "readinessProbe": {**PROBE, "periodSeconds": 1}}
    pod = OnePod(container=probes)
    pod.levers.started_seconds_by_image["app:2"] = 12.0
    pod.run(21)
    pod.diary.clear()
    pod.edit("app:2").run(6)
    assert pod.seen()[1:] == ["2 app:2 running", "2 app:2 running Ready"]
    assert pod.status["started"]
    assert pod.ready
    assert not pod.can_serve
    pod.run(9)
    assert pod.seen()[3:] == ["2 app:2 running"]
    assert not pod.status["started"]
    assert not pod.ready
    pod.run(15)
    assert pod.seen()[4:] == ["2 app:2 running Ready"]
    assert pod.status["started"]
    assert pod.ready
    assert pod.can_serve


def test_new_pod_is_not_ready_before_its_startup_probe_succeeds() -> None:
    probes = {"startupProbe": PROBE, "readinessProbe": {**PROBE, "periodSeconds": 1}}
    pod = OnePod(container=probes)
    pod.levers.started_seconds_by_image["app:1"] = 12.0
    pod.run(30)
    ready = [line.endswith("Ready") for line in pod.seen()]
    assert ready[-1]
    assert ready.count(True) == 1
    assert pod.can_serve


def test_restarted_container_is_unready_until_its_readiness_probe_succeeds() -> None:
    pod = OnePod(container={"readinessProbe": {**PROBE, "periodSeconds": 2}})
    pod.levers.ready_seconds_by_image["app:2"] = 5.0
    pod.up().edit("app:2").run(6)
    assert not pod.ready
    assert pod.status["started"]
    pod.run(8)
    assert pod.ready
    assert pod.can_serve
    assert pod.seen() == ["2 app:1 running Ready", "2 app:2 running", "2 app:2 running Ready"]


def test_initial_delay_comes_before_the_first_probe() -> None:
    pod = OnePod(container={"readinessProbe": {"periodSeconds": 1, "initialDelaySeconds": 8}})
    pod.run(7)
    assert not pod.ready
    pod.run(6)
    assert pod.ready


def test_failed_startup_probe_restarts_the_container() -> None:
    pod = OnePod(container={"startupProbe": {"periodSeconds": 2, "failureThreshold": 2}})
    pod.levers.ready_seconds_by_image["app:1"] = NEVER
    pod.run(30)
    assert pod.status["restartCount"] >= 1
    assert not pod.ready


def test_crashed_container_is_mostly_terminated_during_its_back_off() -> None:
    pod = OnePod()
    pod.levers.exit_code_by_image["app:1"] = 3
    pod.run(600)
    shown: dict[str, float] = {}
    for (begin, status), (end, _) in zip(pod.diary, pod.diary[1:], strict=False):
        one = status["containerStatuses"][0]["state"]
        state, detail = next(iter(one.items()))
        key = str(detail.get("reason", state))
        shown[key] = shown.get(key, 0.0) + end - begin
    assert shown["Error"] > 2 * shown["CrashLoopBackOff"] > 0
    assert not any(status["phase"] not in ("Pending", "Running") for _, status in pod.diary)


def starts(pod: OnePod) -> list[float]:
    """Returns the time at which each run of the container first appears in the diary."""
    times: dict[int, float] = {}
    for time, status in pod.diary:
        times.setdefault(status["containerStatuses"][0]["restartCount"], time)
    return list(times.values())


def test_back_off_doubles_and_is_separate_for_each_image() -> None:
    pod = OnePod()
    pod.levers.exit_code_by_image |= {"app:1": 1, "app:2": 1}
    pod.run(170)
    gaps = [after - before for before, after in zip(starts(pod), starts(pod)[1:], strict=False)]
    assert 10 < gaps[1] < 20 < gaps[2] < 36 < gaps[3]
    pod.edit("app:2").run(3)
    assert pod.worker.local.mains[0].runs[0].image == "app:2"
    pod.edit("app:1").run(20)
    assert pod.worker.local.mains[0].runs[0].image == "app:2"  # its old back-off continues
    assert pod.status["state"].keys() <= {"waiting", "terminated"}


def test_failed_pull_after_the_kill_is_reported_with_three_reasons() -> None:
    pod = bad()
    old = pod.status
    pod.edit("app:typo").run(300)
    reasons = {line.split()[2] for line in pod.seen()[1:]}
    assert reasons == {"ErrImagePull", "ImagePullBackOff", "CrashLoopBackOff"}
    assert pod.status["containerID"] == old["containerID"]
    assert pod.status["image"] == old["image"]
    assert pod.status["lastState"]["terminated"]["containerID"] == old["containerID"]
    assert pod.phase == "Running"
    assert not pod.ready


def test_message_has_the_error_of_the_registry() -> None:
    pod = bad().edit("app:typo").run(5)
    assert "docker.io/library/app:typo: not found" in pod.status["state"]["waiting"]["message"]


def test_container_without_a_first_start_waits_for_its_image() -> None:
    pod = OnePod(image="app:typo")
    pod.levers.bad_images.add("app:typo")
    pod.run(300)
    assert {line.split()[2] for line in pod.seen()} == {
        "ContainerCreating",
        "ErrImagePull",
        "ImagePullBackOff",
    }
    assert pod.phase == "Pending"
    assert pod.status["imageID"] == ""
    assert "containerID" not in pod.status


@pytest.mark.parametrize(
    ("image", "policy", "reason"),
    [
        ("app:Typo:1", "Always", "InvalidImageName"),
        ("team//app:1", "Always", "InvalidImageName"),
        ("app:typo", "Never", "ErrImageNeverPull"),
    ],
)
def test_other_pull_errors_have_their_reasons(image: str, policy: str, reason: str) -> None:
    pod = bad(container={"imagePullPolicy": policy}).edit(image).run(8)
    assert pod.status["state"]["waiting"]["reason"] == reason


@pytest.mark.parametrize(
    ("policy", "code", "phase"),
    [
        ("Never", 0, "Succeeded"),
        ("Never", 137, "Failed"),
        ("OnFailure", 0, "Succeeded"),
        ("OnFailure", 143, "Running"),
        ("Always", 0, "Running"),
    ],
)
def test_in_place_update_may_end_a_pod_without_restarts(policy: str, code: int, phase: str) -> None:
    pod = bad(restartPolicy=policy)
    pod.levers.stop_code = code
    pod.edit("app:typo").run(20)
    assert pod.phase == phase
    assert pod.status["image"] == "docker.io/library/app:1"
    assert ("terminated" in pod.status["state"]) == (phase != "Running")


def test_kubelet_restart_between_kill_and_start_ends_a_pod_without_restarts() -> None:
    pod = OnePod(restartPolicy="Never")
    pod.levers.pull_seconds_by_image["app:2"] = 5.0
    pod.up().edit("app:2").run(4)
    pod.worker.restart(pod.now)
    pod.run(5)
    assert pod.phase == "Failed"
    assert pod.status["image"] == "docker.io/library/app:1"


def test_kubelet_that_restarts_during_a_kill_repeats_the_kill() -> None:
    pod = OnePod(terminationGracePeriodSeconds=6)
    pod.levers.stop_seconds = 60.0
    pod.up().edit("app:2").run(3)
    pod.worker.restart(pod.now)
    pod.run(5)
    assert pod.status["image"] == "docker.io/library/app:1"
    assert pod.ready
    pod.run(5)
    assert pod.status["image"] == "docker.io/library/app:2"


PATIENT = {"readinessProbe": {"periodSeconds": 1}}


@pytest.mark.parametrize(
    ("probes", "keeps", "busy", "unready"),
    [
        (PATIENT, True, 12.0, 2.0),
        (PATIENT, True, 8.0, 0.0),
        (PATIENT, False, 12.0, 0.0),
        ({"startupProbe": {"periodSeconds": 1}}, True, 12.0, None),
    ],
    ids=["readiness", "it was away too shortly", "before 1.35", "a startup probe never runs"],
)
def test_restarted_kubelet_continues_with_the_published_status(
    probes: dict[str, Any], keeps: bool, busy: float, unready: float | None
) -> None:
    """Restarts the kubelet while a postStart hook delays a new container, and measures when Ready
    turns False.

    The published status is still that of the old container. `unready` is the number of seconds
    until Ready turns False; None if it stays True.
    """
    pod = OnePod(container={**probes, "lifecycle": {"postStart": {}}})
    pod.levers.keeps_ready = keeps
    pod.levers.post_start_seconds["app:2"] = 60.0
    pod.levers.ready_seconds_by_image["app:2"] = pod.levers.started_seconds_by_image["app:2"] = (
        NEVER
    )
    pod.up().edit("app:2").run(6)
    run = pod.worker.local.mains[0].run
    assert run is not None
    assert run.image == "app:2"
    assert pod.status["image"] == "docker.io/library/app:1"
    pod.run(run.started + busy - pod.now)
    pod.worker.restart(pod.now)
    pod.diary.clear()
    pod.run(20)
    shown = [
        (
            time - run.started - busy,
            [c["status"] for c in status["conditions"] if c["type"] == "Ready"],
        )
        for time, status in pod.diary
        if status["containerStatuses"][0]["image"].endswith("app:2")
    ]
    assert shown
    turned = [time for time, ready in shown if ready == ["False"]]
    assert (turned == []) == (unready is None)
    if unready is not None:
        assert unready <= turned[0] < unready + 2


def test_stopped_sidecar_with_a_missing_image_is_reported_as_completed() -> None:
    side = {"name": "side", "image": "side:1", "restartPolicy": "Always"}
    pod = OnePod(initContainers=[side])
    pod.levers.bad_images.add("side:typo")
    pod.levers.stop_code = 0
    pod.run(8).edit("side:typo", kind="initContainers").run(30)
    one = pod.pod["status"]["initContainerStatuses"][0]
    assert one["state"]["terminated"]["reason"] == "Completed"
    assert pod.phase == "Running"
    assert not pod.ready
    assert pod.status["restartCount"] == 0


def test_post_start_hook_blocks_the_pod_worker() -> None:
    pod = OnePod(container={"lifecycle": {"postStart": {}}})
    pod.levers.post_start_seconds["app:1"] = 20.0
    pod.run(4).edit("app:2").run(10)
    assert pod.pod["status"]["observedGeneration"] == 1
    assert pod.worker.local.mains[0].runs[0].image == "app:1"
    pod.run(20)
    assert pod.status["image"] == "docker.io/library/app:2"


def test_restart_by_a_liveness_probe_blocks_the_pod_worker() -> None:
    pod = OnePod()
    pod.levers.stop_seconds = 8.0
    pod.up().worker.fail_liveness("app", pod.now)
    pod.run(2).edit("app:2").run(4)
    assert pod.pod["status"]["observedGeneration"] == 1
    pod.run(6)
    assert pod.seen()[-1] == "2 app:1 running Ready"  # restarted, seen, and about to be killed
    pod.run(12)
    assert pod.status["image"] == "docker.io/library/app:2"
    assert pod.status["restartCount"] == 2


def test_kubelet_before_1_34_reports_no_generation() -> None:
    pod = OnePod()
    pod.levers.reports_generation = False
    pod.up().edit("app:2").run(10)
    assert "observedGeneration" not in str(pod.pod["status"])
    assert pod.status["image"] == "docker.io/library/app:2"


def test_phase_set_by_others_is_kept_and_the_containers_are_killed() -> None:
    """Sets a running pod to Failed, as users or the pod garbage collector may do: its containers
    are killed.
    """
    pod = OnePod().up()
    pod.pod = {**pod.pod, "status": {**pod.pod["status"], "phase": "Failed"}}
    pod.worker.notice(pod.pod, pod.now)
    pod.run(6)
    assert pod.phase == "Failed"
    assert not pod.can_serve
