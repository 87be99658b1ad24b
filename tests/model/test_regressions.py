"""Findings of the model, each with the shortest sequence that shows it."""

import pytest

from tests.builders import claim_template
from tests.model import specs
from tests.model.cluster import Cluster
from tests.model.test_guarantee import at_rest, restart_all, taken, template


def test_a_pod_whose_deletion_failed_waits_for_the_budget_like_any_other() -> None:
    """Instance 3 is not Ready, so it may be replaced at once; but the API server fails to do it.

    It recovers, and 0 breaks by itself: 3 must now stay, however often it was chosen before.
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


def test_an_instance_with_a_half_ended_pod_holds_the_budget_until_somebody_helps() -> None:
    """With OnFailure, the pod of an ended and a running container never becomes Ready again, and is
    not finished.
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
    assert "not yet available: 0" in conditions["Progressing"]["message"]
    cluster.delete_pod(0)
    cluster.run(60.0)
    cluster.is_as_specified()


def test_a_container_that_would_crash_while_it_is_being_stopped_stops_once() -> None:
    """The simulated kubelet came back to it for ever, and time stood still."""
    cluster = at_rest(1)
    cluster.world.kubelet.levers.crash_seconds = 5.0
    cluster.edit(lambda spec: specs.set_image(spec, "default", specs.CRASHING))
    cluster.run(4.0)
    cluster.world.kubelet.levers.stop_seconds = 10.0
    cluster.edit(lambda spec: specs.set_image(spec, "default", "app:2"))
    cluster.run(60.0)
    cluster.is_as_specified()


@pytest.mark.parametrize("seconds", [7.0, 9.0, 12.0, 14.0])
def test_a_roll_back_waits_for_the_container_that_is_being_stopped(seconds: float) -> None:
    """The container has the wanted image and is Ready, but its kubelet still stops it for the
    previous spec.
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


def test_a_claim_that_was_to_go_goes_with_its_pod_although_its_instance_came_back() -> None:
    """`replicas` was 0 for a moment, and the watch of pods did not show web-3, which lives on.

    By `whenScaled: Delete` its claim is deleted, and waits for the pod that uses it.
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


def test_a_label_that_left_before_a_lean_pod_was_seen_leaves_and_restarts_nothing() -> None:
    """Only the spec is cut out of last-applied: it still tells what came from the template."""
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


def test_a_gate_that_only_time_could_open_stays_open() -> None:
    """Two tags of one image: nothing but time proves the update. The kubelet then reports the gate.

    That began the time anew: the gate closed and opened every half minute, for ever.
    """
    spec = {**at_rest(2).spec, "template": template("app:2", readinessGates=[specs.GATE])}
    cluster = Cluster(spec)
    cluster.run(30.0)
    cluster.edit(lambda spec: specs.set_image(spec, "default", "app:two"))
    cluster.run(300.0)
    assert cluster.judge.counts["gates closed"] == 2
    cluster.comes_to_rest()


def probed(image: str, period: int) -> specs.Document:
    """A template with both probes; the readiness probe is the quicker one."""
    body = template(image)
    probe = {"exec": {"command": ["true"]}, "failureThreshold": 30}
    startup, readiness = probe | {"periodSeconds": period}, probe | {"periodSeconds": 1}
    probes = {"startupProbe": startup, "readinessProbe": readiness}
    body["spec"]["containers"][0] |= probes | {"lifecycle": specs.HOOK}
    return body


@pytest.mark.parametrize("hook", [0.0, 3.0, 8.0])
@pytest.mark.parametrize("period", [1, 4, 10])
def test_ready_behind_a_quick_probe_is_no_licence_for_the_next(period: int, hook: float) -> None:
    """The startup probe looks when the kubelet has published the container, after its hook."""
    cluster = at_rest(template=probed("app:1", period))
    cluster.world.kubelet.levers.ready_seconds_by_image[specs.SLOW] = 1.0
    cluster.run(40.0)
    cluster.set_hook(specs.SLOW, hook)
    cluster.edit(lambda spec: spec.update(template=probed(specs.SLOW, period)))
    cluster.run(150.0)
    cluster.comes_to_rest()
