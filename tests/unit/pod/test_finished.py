"""Tests pods that have ended: which are replaced, which finish their instance, and what remains."""

from collections.abc import Callable

import pytest

from tests.builders import Document, completed, refused, tapp, template, terminating
from tests.unit.world import Hook, World, settled

EARLY = {"delete_pod_after_app_finish": False}


def batch_tapp(policy: str | None, replicas: int = 1, **spec: object) -> World:
    """Returns a TApp whose pods have this restart policy, after it has settled; None leaves the
    field out.
    """
    pod: Document = {} if policy is None else {"restartPolicy": policy}
    return settled(replicas=replicas, template=template(**pod), **spec)


def ended(phase: str) -> Callable[[Document], Document]:
    """Returns a function that ends a pod in this phase."""
    return lambda pod: completed(pod, phase)


REPLACED = {
    (None, "Succeeded"): True,
    (None, "Failed"): True,
    ("Always", "Succeeded"): True,
    ("Always", "Failed"): True,
    ("OnFailure", "Succeeded"): False,
    ("OnFailure", "Failed"): True,
    ("Never", "Succeeded"): False,
    ("Never", "Failed"): False,
}


@pytest.mark.parametrize("never_migrate", [False, True], ids=["default", "neverMigrate"])
@pytest.mark.parametrize(("policy", "phase"), REPLACED)
def test_ended_pod_is_replaced_or_finishes_its_instance_depending_on_its_restart_policy(
    policy: str | None, phase: str, never_migrate: bool
) -> None:
    world = batch_tapp(policy, neverMigrate=never_migrate).modify(0, ended(phase))
    status = world.hook.sync(world.request())["status"]
    failed = phase == "Failed"
    if REPLACED[policy, phase] and not never_migrate:
        assert world.decisions() == {0: "Delete/Completed"}
        assert status["statuses"] == {"0": "PodFailed" if failed else "PodSucc"}
        assert status["appStatus"] == "Running"
    else:
        assert world.decisions() == {0: "Keep/Finished"}
        assert status["statuses"] == {"0": "Failed" if failed else "Succ"}
        assert status["appStatus"] == ("Failed" if failed else "Succ")


@pytest.mark.parametrize("policy", [None, "Always", "OnFailure", "Never"])
def test_pod_that_the_kubelet_rejected_is_replaced_with_every_restart_policy(
    policy: str | None,
) -> None:
    world = batch_tapp(policy).modify(0, refused)
    assert world.decisions() == {0: "Delete/Completed"}
    world.settle()
    assert world.parent["status"]["statuses"] == {"0": "Running"}


def test_pod_that_the_kubelet_rejected_stays_with_never_migrate() -> None:
    assert batch_tapp("Never", neverMigrate=True).modify(0, refused).decisions() == {
        0: "Keep/Finished"
    }


def test_failed_pod_that_was_never_scheduled_is_finished() -> None:
    def failed_unbound(pod: Document) -> Document:
        spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
        return refused({**pod, "spec": spec}, bound=False)

    assert batch_tapp("Never").modify(0, failed_unbound).decisions() == {0: "Keep/Finished"}


def test_running_pod_is_updated_with_never_migrate() -> None:
    """With `neverMigrate`, the pod that has ended is kept, and the running one is updated."""
    world = settled(replicas=2, neverMigrate=True).modify(0, ended("Failed"))
    world.change(template=template("nginx:2", container={"command": ["run"]}))
    assert [text.split("/")[0] for text in world.decisions().values()] == ["Keep", "Recreate"]


def test_replaced_pod_is_deleted_before_the_new_one_is_created() -> None:
    world = batch_tapp("Always").modify(0, ended("Failed"))
    before = world.uids()
    world.settle()
    assert world.uids() != before
    assert world.parent["status"]["statuses"] == {"0": "Running"}


# --- what remains of a finished instance ----------------------------------------------------------


def test_finished_pods_stay_until_all_instances_have_finished() -> None:
    world = batch_tapp("Never", replicas=2).modify(0, ended("Succeeded")).settle()
    assert sorted(world.pods) == ["web-0", "web-1"]
    assert world.parent["status"]["statuses"] == {"0": "Succ", "1": "Running"}
    world.modify(1, ended("Failed")).settle()
    assert world.pods == {}
    assert world.parent["status"]["statuses"] == {"0": "Succ", "1": "Failed"}
    assert world.parent["status"]["appStatus"] == "Failed"


def test_finished_pod_is_deleted_at_once_if_the_setting_says_so() -> None:
    world = World(
        tapp(replicas=2, template=template(restartPolicy="Never")), hook=Hook(**EARLY)
    ).settle()
    world.modify(0, ended("Succeeded")).settle()
    assert sorted(world.pods) == ["web-1"]
    assert world.parent["status"]["statuses"] == {"0": "Succ", "1": "Running"}
    assert world.parent["status"]["appStatus"] == "Running"


@pytest.mark.parametrize("settings", [{}, EARLY], ids=["default", "early deletion"])
def test_finished_pod_is_deleted_only_after_its_result_is_in_the_status(settings: Document) -> None:
    """The first sync after the end writes the result to the status, and the second one deletes the
    pod.

    A result that is not written yet would be lost together with the pod.
    """
    world = World(tapp(template=template(restartPolicy="Never")), hook=Hook(**settings)).settle()
    world.modify(0, ended("Succeeded"))
    forgetful = world.parent
    answer = world.sync()
    assert world.writes == []
    assert answer["resyncAfterSeconds"] > 0
    remembering, world.parent = world.parent, forgetful
    assert world.decisions() == {0: "Keep/Finished"}
    world.parent = remembering
    assert world.decisions() == {0: "Delete/Finished"}


def test_finished_instance_gets_no_new_pod() -> None:
    world = batch_tapp("Never").modify(0, ended("Succeeded")).settle()
    assert world.pods == {}
    for _ in range(3):
        world.sync()
        assert world.writes == []
    assert world.decisions() == {0: "Absent/Finished"}


def test_finished_instance_is_not_updated() -> None:
    world = batch_tapp("Never", replicas=2).modify(0, ended("Succeeded")).settle()
    world.change(template=template("nginx:2", restartPolicy="Never"))
    assert world.decisions()[0] == "Keep/Finished"


def test_finished_instance_runs_again_after_kill_and_start() -> None:
    world = batch_tapp("Never").modify(0, ended("Failed")).settle()
    world.change(statuses={"0": "Killed"}).settle()
    assert world.parent["status"]["statuses"] == {"0": "Killed"}
    world.change(statuses=None).settle()
    assert world.parent["status"]["statuses"] == {"0": "Running"}
    assert sorted(world.pods) == ["web-0"]


def test_finished_instance_whose_pod_still_exists_runs_again_after_kill_and_start() -> None:
    world = batch_tapp("Never", replicas=2).modify(0, ended("Failed")).settle()
    world.change(statuses={"0": "Killed"}).settle()
    assert world.parent["status"]["statuses"] == {"0": "Killed", "1": "Running"}
    world.change(statuses=None).settle()
    assert world.parent["status"]["statuses"] == {"0": "Running", "1": "Running"}


def test_deleting_a_finished_pod_by_hand_creates_no_new_pod() -> None:
    world = batch_tapp("Never", replicas=2).modify(0, ended("Succeeded")).settle()
    world.modify(0, terminating).sync()
    world.kubelet()
    world.settle()
    assert sorted(world.pods) == ["web-1"]
    assert world.parent["status"]["statuses"]["0"] == "Succ"


def test_deleting_a_running_pod_by_hand_creates_a_new_pod() -> None:
    """Deletes a pod with restart policy Never: the instance gets a new pod.

    The containers end while the pod terminates, but that does not finish the instance.
    """
    world = batch_tapp("Never").modify(0, lambda pod: terminating(completed(pod, "Failed")))
    world.sync()
    assert world.parent["status"]["statuses"] == {"0": "Killing"}
    world.kubelet()
    world.settle()
    assert world.parent["status"]["statuses"] == {"0": "Running"}


def test_finished_instances_do_not_count_for_budgets() -> None:
    world = batch_tapp("Never", replicas=4).modify(0, ended("Succeeded")).modify(1, ended("Failed"))
    world.settle().change(
        template=template(container={"command": ["x"]}, restartPolicy="Never"),
        updateStrategy={"maxUnavailable": "50%"},
    )
    assert [text.split("/")[0] for text in world.decisions().values()] == [
        "Keep",
        "Keep",
        "Recreate",
        "Keep",
    ]


def test_finished_instance_runs_again_after_scaling_down_and_up() -> None:
    world = batch_tapp("Never", replicas=2).modify(1, ended("Succeeded")).settle()
    world.change(replicas=1).settle()
    assert world.parent["status"]["statuses"] == {"0": "Running"}
    world.change(replicas=2).settle()
    assert world.parent["status"]["statuses"] == {"0": "Running", "1": "Running"}
