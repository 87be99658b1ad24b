"""Repeats violations that the model has found, each with the shortest sequence of events that shows
it.
"""

import pytest

from tests.builders import claim_template, template
from tests.model import specs
from tests.model.available_cluster import at_rest, restart_all, taken
from tests.model.cluster import Cluster


def test_pod_whose_deletion_failed_waits_for_the_budget_again() -> None:
    """Instance 3 is not Ready, so a sync replaces it without the budget, but the deletion fails.

    Then instance 3 becomes Ready, and instance 0 breaks. Instance 3 must now wait for the budget,
    although earlier syncs have decided to replace it.
    """
    cluster = at_rest()
    kubelet, hook = cluster.world.kubelet, cluster.world.hook
    kubelet.levers.unready_images.add("app:1")
    kubelet.finish(cluster.pod(3) or {}, 1)
    cluster.run(4.0)
    cluster.world.store.fail(1, verb="delete", kind="Pod")
    restart_all(cluster)
    cluster.run(0.1005)
    assert cluster.tapp["status"]["replacing"].keys() == {"3"}
    hook.fail(1000)
    cluster.heal_images()
    kubelet.finish(cluster.pod(3) or {}, 1)
    cluster.run(15.0)
    kubelet.levers.unready_images.add("app:1")
    kubelet.finish(cluster.pod(0) or {}, 1)
    cluster.run(3.0)
    hook.heal()
    cluster.world.metacontroller.restart()
    cluster.run(0.2)
    assert taken(cluster) == [0]
    cluster.comes_to_rest()


def test_pod_with_an_ended_and_a_running_container_uses_the_budget_until_it_is_deleted() -> None:
    """Ends one of two containers of a pod with the restart policy OnFailure, and then changes the
    spec.

    Such a pod never becomes Ready again, and has not finished, so the rollout waits for it.
    """
    cluster = at_rest(3)
    body = cluster.spec["template"]
    body["spec"]["restartPolicy"] = "OnFailure"
    body["spec"]["containers"].append({"name": "log", "image": "log:1"})
    cluster.edit(lambda spec: spec.update(template=body))
    cluster.run(60.0)
    cluster.edit(lambda spec: spec["templates"].update({"2": "blue"}))
    cluster.run(30.0)
    cluster.finish(0, 0, "app")
    cluster.run(5.0)
    cluster.edit(lambda spec: spec["template"]["metadata"]["labels"].update(tier="x"))
    cluster.run(60.0)
    conditions = {item["type"]: item for item in cluster.tapp["status"]["conditions"]}
    assert "instance 0 is not yet available" in conditions["Progressing"]["message"]
    cluster.delete_pod(0)
    cluster.run(60.0)
    cluster.is_as_specified()


def test_container_that_would_crash_while_it_is_being_stopped_stops_once() -> None:
    """Stops a container of the simulator that is due to crash during its stop.

    The simulated kubelet once handled this container again and again, and time did not pass.
    """
    cluster = at_rest(1)
    cluster.world.kubelet.levers.crash_seconds = 5.0
    cluster.edit(lambda spec: specs.set_image(spec, "default", specs.CRASHING))
    cluster.run(4.0)
    cluster.world.kubelet.levers.stop_seconds = 10.0
    cluster.edit(lambda spec: specs.set_image(spec, "default", "app:2"))
    cluster.run(60.0)
    cluster.is_as_specified()


@pytest.mark.parametrize("seconds", [7.0, 9.0, 12.0, 14.0])
def test_rollback_waits_for_the_container_that_is_being_stopped(seconds: float) -> None:
    """Rolls back while a kubelet still stops a container whose image is wanted again.

    The container is Ready, but stops soon, because the kubelet has not seen the rollback yet.
    Meanwhile the judge checks the budget.
    """
    cluster = at_rest()
    cluster.set_stop(3.0, 137)
    cluster.edit(lambda spec: specs.set_image(spec, "default", "app:2"))
    cluster.run(seconds)
    cluster.roll_back(1)
    cluster.run(2.0)
    pods = [cluster.pod(id) or {} for id in range(4)]
    behind = [
        pod for pod in pods if pod["status"]["observedGeneration"] < pod["metadata"]["generation"]
    ]
    assert behind
    cluster.run(60.0)
    cluster.comes_to_rest()


def test_claim_that_is_being_deleted_is_gone_with_its_pod_although_its_instance_is_back() -> None:
    """Sets `replicas` to 0 for a moment, while the watch of pods does not show web-3.

    By `whenScaled: Delete` the claim of web-3 is deleted. The pod of web-3 is not deleted, and the
    claim waits for that pod. Both go with the TApp.
    """
    policy = {"whenScaled": "Delete", "whenDeleted": "Retain"}
    claims = {"volumeClaimTemplates": [claim_template()]}
    cluster = at_rest(3, persistentVolumeClaimRetentionPolicy=policy, **claims)
    cluster.stall("Pod")
    for replicas in (4, 0, 4):
        cluster.edit(lambda spec, replicas=replicas: spec.update(replicas=replicas))  # type: ignore[misc]
        cluster.run(5.0)
    cluster.comes_to_rest()
    claim = cluster.world.get("PersistentVolumeClaim", "data-web-3")
    assert claim["metadata"]["deletionTimestamp"]
    cluster.ends()
    left = {item["metadata"]["name"] for item in cluster.world.list("PersistentVolumeClaim")}
    assert "data-web-3" not in left


def test_removed_label_is_removed_from_a_new_lean_pod_without_a_restart() -> None:
    """Removes a label from the template while pod 2 is new; the pod must lose the label and keep
    running.

    With the admission policy `lean`, Metacontroller's last-applied annotation has no spec. So the
    annotation still shows which labels came from the template.
    """
    spec = {**at_rest(2).spec, "template": template()}
    spec["template"]["metadata"]["labels"]["tier"] = "x"
    cluster = Cluster(spec, admission="lean")
    cluster.stall("Pod")
    cluster.edit(lambda spec: spec.update(replicas=3))
    cluster.run(5.0)
    born = (cluster.pod(2) or {})["metadata"]["uid"]
    cluster.edit(lambda spec: spec["template"]["metadata"]["labels"].pop("tier"))
    cluster.run(5.0)
    cluster.comes_to_rest()
    pod = cluster.pod(2) or {}
    assert pod["metadata"]["uid"] == born
    assert "tier" not in pod["metadata"]["labels"]


def test_gate_that_was_opened_after_a_proof_by_time_stays_open() -> None:
    """Updates to another tag of the same image, so that only time proves the update.

    The report of the opened readiness gate by the kubelet once restarted this time, so the gate
    closed and opened every half minute. Now each of the two pods closes its gate once.
    """
    spec = {**at_rest(2).spec, "template": template("app:2", readinessGates=[specs.GATE])}
    cluster = Cluster(spec)
    cluster.run(30.0)
    cluster.edit(lambda spec: specs.set_image(spec, "default", "app:two"))
    cluster.run(300.0)
    assert cluster.judge.counts["gates closed"] == 2
    cluster.comes_to_rest()


def probed(image: str, period: int) -> specs.Document:
    """Returns a template with a startup probe and a readiness probe.

    The startup probe runs every `period` seconds, and the readiness probe every second.
    """
    body = template(image)
    probe = {"exec": {"command": ["true"]}, "failureThreshold": 30}
    startup, readiness = probe | {"periodSeconds": period}, probe | {"periodSeconds": 1}
    probes = {"startupProbe": startup, "readinessProbe": readiness}
    body["spec"]["containers"][0] |= probes | {"lifecycle": specs.HOOK}
    return body


@pytest.mark.parametrize("hook", [0.0, 3.0, 8.0])
@pytest.mark.parametrize("period", [1, 4, 10])
def test_next_instance_waits_for_the_startup_probe_even_if_a_quick_readiness_probe_passes(
    period: int, hook: float
) -> None:
    """Updates to an image with a postStart hook of `hook` seconds while the judge checks the
    budget.

    The kubelet runs the startup probe only after the postStart hook has ended. Until then Ready
    describes the previous container, so the next instance must not be updated.
    """
    cluster = at_rest(template=probed("app:1", period))
    cluster.world.kubelet.levers.ready_seconds_by_image[specs.SLOW] = 1.0
    cluster.run(40.0)
    cluster.set_hook(specs.SLOW, hook)
    cluster.edit(lambda spec: spec.update(template=probed(specs.SLOW, period)))
    cluster.run(150.0)
    cluster.comes_to_rest()
