"""Tests `forceDeletePod`: an instance leaves its node only if the node is lost.

A node is lost if it has not reported for some time. Then the service marks the pod with an
annotation, the pod-status hook sets the pod to Failed, and the service deletes it.
"""

import pytest

from tests.builders import Document, completed, template, terminating
from tests.hook_calls import desired
from tests.unit.nodes import LOST, WorldOfNodes, not_ready, on_node, timestamp
from tests.unit.world import condition

LABEL = "apps.tkestack.io/pod-status"
SECONDS = "apps.tkestack.io/lost-node-seconds"
SILENT = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def test_new_pods_tolerate_unreachable_nodes_without_a_time_limit() -> None:
    tolerations = WorldOfNodes(1).pod(0)["spec"]["tolerations"]
    assert {item["key"] for item in tolerations} == set(SILENT)
    assert not any("tolerationSeconds" in item for item in tolerations)


def test_toleration_is_added_although_another_one_has_the_same_key_and_a_value() -> None:
    """A template tolerates one value of the taint of unreachable nodes: pods get a toleration
    without a value, too.

    Because of the template's toleration, admission does not add the default one. Without a
    toleration from the service, the pod would be evicted.
    """
    other = {"key": SILENT[1], "operator": "Equal", "value": "x", "effect": "NoExecute"}
    world = WorldOfNodes(1, forceDeletePod=False, template=template(tolerations=[other]))
    kept = {"key": SILENT[1], "operator": "Exists", "effect": "NoExecute"}
    assert (
        kept
        in WorldOfNodes(1, template=template(tolerations=[other])).pod(0)["spec"]["tolerations"]
    )
    world.change(forceDeletePod=True).settle()
    assert kept in world.pod(0)["spec"]["tolerations"]


def test_existing_pods_get_the_tolerations_after_force_delete_pod_was_set() -> None:
    world = WorldOfNodes(2, forceDeletePod=False, template=template(tolerations=[
        {"key": SILENT[0], "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 9},
        {"key": "gpu", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 7},
    ]))  # fmt: skip
    uids = world.uids()
    world.change(forceDeletePod=True)
    assert set(world.decisions().values()) == {"Mark/MarksChanged"}
    world.sync()
    for pod in world.pods.values():
        limits = {t["key"]: t.get("tolerationSeconds") for t in pod["spec"]["tolerations"]}
        assert limits == {SILENT[0]: None, "gpu": 7, SILENT[1]: None}
    assert world.uids() == uids
    world.sync()
    assert world.writes == []


def test_tolerations_are_put_before_a_toleration_of_all_taints_with_a_time_limit() -> None:
    """A template tolerates all taints for 60 seconds: the service puts its tolerations before this
    one.

    The first matching toleration decides. The template's toleration also serves other taints, so it
    stays.
    """
    wildcard = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}
    made = WorldOfNodes(1, template=template(tolerations=[wildcard])).pod(0)["spec"]["tolerations"]
    assert [(item.get("key"), item.get("tolerationSeconds")) for item in made] == [
        (SILENT[0], None),
        (SILENT[1], None),
        (None, 60),
    ]
    world = WorldOfNodes(1, forceDeletePod=False, template=template(tolerations=[wildcard]))
    world.change(forceDeletePod=True).sync()
    assert world.pod(0)["spec"]["tolerations"] == made
    world.sync()
    assert world.writes == []


def test_instances_stay_available_while_tolerations_are_added() -> None:
    """Sets `forceDeletePod` after an update: while pods get their tolerations, they count as
    available.

    The kubelet has not observed the new generation yet, but this is no update in place.
    """
    gate = "apps.tkestack.io/InPlaceUpdateReady"
    limited = {
        "key": SILENT[0],
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 9,
    }
    for gates in ([], [{"conditionType": gate}]):
        body = {"tolerations": [limited], **({"readinessGates": gates} if gates else {})}
        world = WorldOfNodes(2, forceDeletePod=False, template=template("nginx:1", **body))
        world.change(template=template("nginx:2", **body)).settle()
        world.change(forceDeletePod=True).sync()
        assert world.pod_status() == []
        answer = world.sync()
        assert answer["status"]["availableReplicas"] == 2
        assert world.writes == []


def test_pod_on_a_lost_node_is_marked_failed_and_replaced() -> None:
    """Plays all steps for a pod on a lost node: the mark, the phase Failed, the deletion, and the
    new pod.
    """
    world = WorldOfNodes().stop_reporting(2)
    assert world.later(290).decisions()[2] == "Keep/UpToDate"
    assert world.sync()["resyncAfterSeconds"] <= 11
    assert world.writes == []
    world.later(11)
    assert world.decisions()[2] == "Mark/NodeLost"
    world.sync()
    assert world.writes == ["update Pod/web-2"]
    assert world.pod(2)["metadata"]["labels"][LABEL] == "true"
    assert world.decisions()[2] == "Keep/NodeLost"
    assert world.pod_status() == ["web-2"]
    assert world.pod(2)["status"]["phase"] == "Failed"
    assert world.pod(2)["status"]["reason"] == "NodeLost"
    assert world.decisions()[2] == "Delete/NodeLost"
    del world.pods["web-2"]
    assert world.decisions()[2] == "Create/NoPod"


@pytest.mark.parametrize("policy", ["Never", "OnFailure", "Always"])
def test_pod_on_a_lost_node_is_replaced_with_every_restart_policy_and_without_back_off(
    policy: str,
) -> None:
    world = WorldOfNodes(template=template(restartPolicy=policy)).stop_reporting(2, ago=301)
    world.sync()
    world.pod_status()
    answer = world.sync()
    assert answer["status"]["statuses"]["2"] == "PodFailed"
    assert "failures" not in answer["status"]
    assert world.writes == ["delete Pod/web-2"]


def test_annotation_of_the_tapp_sets_the_seconds_until_a_node_is_lost() -> None:
    world = WorldOfNodes()
    world.parent["metadata"]["annotations"] = {SECONDS: "5"}
    assert world.stop_reporting(2, ago=6).decisions()[2] == "Mark/NodeLost"


@pytest.mark.parametrize("seconds", ["0", "1", "4"])
def test_node_is_not_lost_before_five_seconds_have_passed(seconds: str) -> None:
    """A limit of less than five seconds counts as five seconds.

    For a moment, a pod looks like one on a lost node after its readiness gate opened.
    """
    world = WorldOfNodes()
    world.parent["metadata"]["annotations"] = {SECONDS: seconds}
    assert world.stop_reporting(2, ago=4).decisions()[2] == "Keep/UpToDate"
    assert world.later(2).decisions()[2] == "Mark/NodeLost"


@pytest.mark.parametrize("text", ["soon", "-1", "1.5", "", "9" * 30])
def test_invalid_lost_node_seconds_are_ignored_and_set_a_condition(text: str) -> None:
    world = WorldOfNodes()
    world.parent["metadata"]["annotations"] = {SECONDS: text}
    assert world.stop_reporting(2, ago=6).decisions()[2] == "Keep/UpToDate"
    found = condition(world.sync(), "InvalidLostNodeSeconds")
    assert found is not None
    assert "the default of 300 seconds applies" in found["message"]


def test_node_is_lost_although_the_node_controller_has_a_clock_that_runs_ahead() -> None:
    """The time of a silent node is in the future: the service asks for a resync and counts from
    that time.

    A dead node causes no more events.
    """
    world = WorldOfNodes().stop_reporting(2, ago=-2)
    assert world.sync()["resyncAfterSeconds"] == 32  # the status reports it then
    assert world.later(33).sync()["resyncAfterSeconds"] > 260
    world.change(statuses={"2": "Killed"})
    assert world.decisions()[2] == "Keep/NodeSilent"


def test_pod_stays_on_a_lost_node_with_never_migrate() -> None:
    world = WorldOfNodes(neverMigrate=True).stop_reporting(2, ago=9_000)
    assert world.decisions()[2] == "Keep/UpToDate"


def test_pod_stays_on_a_lost_node_without_force_delete_pod() -> None:
    world = WorldOfNodes(forceDeletePod=False).stop_reporting(2, ago=9_000)
    assert world.decisions()[2] == "Keep/UpToDate"


def test_lost_node_annotation_is_removed_when_the_node_reports_again() -> None:
    world = WorldOfNodes().stop_reporting(2, ago=301)
    world.sync()
    assert world.lost_node_annotation(2)
    world.kubelet()
    assert world.pod_status() == []  # its node reports again
    world.sync()
    assert not world.lost_node_annotation(2)
    world.sync()
    assert world.writes == []


def test_pod_whose_gate_has_just_been_opened_is_not_on_a_lost_node() -> None:
    """A readiness gate opens while Ready has long been False: the pod is not marked as lost.

    The kubelet reacts to the open gate a moment later.
    """
    gate = "example.com/open"
    body = template(readinessGates=[{"conditionType": gate}])
    world = WorldOfNodes(template=body)
    opened = {"type": gate, "status": "True", "lastTransitionTime": timestamp(world.hook.now)}

    def just_opened(pod: Document) -> Document:
        pod = not_ready(pod, world.hook.now - 9_000)
        others = [c for c in pod["status"]["conditions"] if c["type"] != gate]
        return {**pod, "status": {**pod["status"], "conditions": [*others, opened]}}

    world.kubelet()
    world.modify(2, just_opened)
    assert world.decisions()[2] == "Keep/UpToDate"


# --- no pod is moved while most nodes do not report -----------------------------------------------


@pytest.mark.parametrize(
    ("nodes", "not_reporting", "moved"),
    [(4, 2, True), (4, 3, False), (3, 1, True), (3, 2, False), (5, 3, False), (2, 2, True),
     (1, 1, True)],
)  # fmt: skip
def test_no_pod_is_moved_while_most_nodes_do_not_report(
    nodes: int, not_reporting: int, moved: bool
) -> None:
    world = WorldOfNodes(nodes).stop_reporting(*range(not_reporting), ago=400)
    decided = world.decisions()
    assert decided[0] == ("Mark/NodeLost" if moved else "Keep/UpToDate")
    found = condition(world.sync(), "MostNodesSilent")
    assert (found is None) == moved
    if found is not None:
        assert found["message"].startswith(
            f"{not_reporting} of {nodes} nodes have stopped reporting"
        )


def test_node_of_a_terminating_pod_counts_as_not_reporting() -> None:
    """Three of four nodes are silent, two of them with terminating pods: no pod is moved.

    Otherwise evictions in a network partition would let all pods move.
    """
    world = WorldOfNodes(4).stop_reporting(0, 1, 2, ago=400)
    for id in (0, 1):
        world.modify(id, terminating)
    assert world.decisions()[2] == "Keep/UpToDate"


def test_lost_node_annotation_is_removed_when_most_nodes_stop_reporting() -> None:
    world = WorldOfNodes(4).stop_reporting(0, ago=400)
    world.sync()
    assert world.lost_node_annotation(0)
    world.stop_reporting(1, 2, ago=1)
    world.sync()
    assert not world.lost_node_annotation(0)


def test_node_with_a_ready_pod_counts_as_reporting() -> None:
    world = WorldOfNodes(4).stop_reporting(0, 1, 2, ago=400)
    for node, numbers in (("node-2", "2 of 3"), ("node-3", "3 of 4")):
        world.modify(3, lambda pod, node=node: on_node(pod, node))
        found = condition(world.sync(), "MostNodesSilent")
        assert found is not None
        assert found["message"].startswith(numbers)


# --- deletions ------------------------------------------------------------------------------------

EDITS = {
    "kill": {"statuses": {"2": "Killed"}},
    "scale down": {"replicas": 2},
    "new template": {"template": template("nginx:2", priority=5)},
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_tapp_that_waits_for_a_pod_on_an_unreachable_node_is_progressing(edit: Document) -> None:
    world = WorldOfNodes(3).stop_reporting(2, ago=10)
    answer = world.change(**edit).sync()
    progressing = condition(answer, "Progressing")
    assert progressing is not None
    assert progressing["status"] == "True"


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_deletion_waits_until_the_unreachable_node_is_lost_or_reports_again(edit: Document) -> None:
    """Kills, scales down or updates an instance on a silent node: its pod is deleted after it was
    marked as lost.

    A pod that is deleted on an unreachable node stays Terminating.
    """
    world = WorldOfNodes(3).stop_reporting(2, ago=10)
    world.change(**edit)
    assert world.decisions()[2].startswith("Keep/NodeSilent")
    world.later(300)
    world.sync()
    assert world.lost_node_annotation(2)
    assert world.pod_status() == ["web-2"]
    world.sync()
    assert "delete Pod/web-2" in world.writes


def test_deletion_does_not_wait_for_a_node_without_a_valid_time() -> None:
    """Kills an instance on a node whose silent time is missing or in the future: its pod is deleted
    at once.

    By such a time, the node would never count as lost.
    """
    for since in (0.0, 9_000.0):
        world = WorldOfNodes(3).stop_reporting(2, ago=-since)
        if not since:
            conditions = world.pod(2)["status"]["conditions"]
            for item in conditions:
                item.pop("lastTransitionTime")
        world.change(statuses={"2": "Killed"})
        assert world.decisions()[2] == "Delete/Killed"


def test_deletion_of_a_tapp_waits_until_the_unreachable_node_is_lost() -> None:
    world = WorldOfNodes(3).stop_reporting(2, ago=10)
    request = world.request(finalizing=True)
    answer = world.hook.finalize(request)
    assert [pod["metadata"]["name"] for pod in answer["children"]] == ["web-2"]
    assert not answer["finalized"]
    world.later(300)
    answer = world.hook.finalize(world.request(finalizing=True))
    marked = desired(answer, "Pod")["web-2"]
    assert marked["metadata"]["annotations"][LOST]
    world.apply(answer)
    del world.pods["web-0"], world.pods["web-1"]
    assert world.pod_status() == ["web-2"]
    answer = world.hook.finalize(world.request(finalizing=True))
    assert answer["children"] == []


@pytest.mark.parametrize(
    "moved", [False, True], ids=["without forceDeletePod", "with forceDeletePod"]
)
def test_status_names_the_unreachable_node_after_half_a_minute(moved: bool) -> None:
    """A node is silent for 30 seconds: Progressing names it, and without forceDeletePod also
    Degraded.
    """
    world = WorldOfNodes(3, forceDeletePod=moved).stop_reporting(2)
    status = world.sync()["status"]
    assert status["statuses"]["2"] == "Pending"  # as after a gate was opened
    assert condition(status, "Degraded")["status"] == "False"  # type: ignore[index]
    answer = world.later(29).sync()
    assert 0 < answer["resyncAfterSeconds"] <= 2
    status = world.later(2).sync()["status"]
    assert status["statuses"]["2"] == "Unknown"
    progressing, degraded = condition(status, "Progressing"), condition(status, "Degraded")
    assert "(the node of instance 2 has stopped reporting)" in progressing["message"]  # type: ignore[index]
    assert degraded is not None
    assert degraded["status"] == ("False" if moved else "True")
    if not moved:
        assert degraded["reason"] == "InstancesBroken"
        assert "node node-2 has not reported since" in degraded["message"]


@pytest.mark.parametrize(
    "moved", [False, True], ids=["without forceDeletePod", "with forceDeletePod"]
)
def test_deletion_of_a_tapp_names_the_pods_on_unreachable_nodes(moved: bool) -> None:
    """Deletes a TApp with a pod on a silent node: after 30 seconds Degraded names the pod.

    With forceDeletePod the pod is kept for now, without it the pod stays Terminating.
    """
    world = WorldOfNodes(3, forceDeletePod=moved).stop_reporting(2, ago=20)
    world.sync()
    before = world.hook.finalize(world.request(finalizing=True))["status"]
    assert condition(before, "Degraded")["status"] == "False"  # type: ignore[index]
    assert "pods web-0, web-1, web-2 to end" in condition(before, "Ready")["message"]  # type: ignore[index]
    if not moved:
        world.modify(2, terminating)
    world.later(20)
    told = world.hook.finalize(world.request(finalizing=True))["status"]
    assert told != before
    found = {item["type"]: item for item in told["conditions"]}
    assert found["Degraded"]["status"] == "True"
    assert found["Degraded"]["reason"] == "NodesSilent"
    assert (
        "waits for pod web-2 on nodes that have stopped reporting" in found["Degraded"]["message"]
    )
    assert found["Progressing"]["reason"] == "Deleting"
    world.parent = {**world.parent, "status": told}
    again = world.later(5).hook.finalize(world.request(finalizing=True))
    assert again["status"] == told  # the same in every call
    del world.pods["web-2"]
    after = world.hook.finalize(world.request(finalizing=True))["status"]
    found = {item["type"]: item for item in after["conditions"]}
    assert found["Degraded"]["status"] == "False"


def test_deletion_of_a_tapp_moves_pods_although_most_nodes_do_not_report() -> None:
    """Deletes a TApp while three of four nodes are silent: their pods are marked as lost.

    Without a deletion no pod is moved then, so that no instance runs twice. A deletion starts no
    pod.
    """
    world = WorldOfNodes(4).stop_reporting(0, 1, 2, ago=400)
    marked = desired(world.hook.finalize(world.request(finalizing=True)), "Pod")
    assert sorted(marked) == ["web-0", "web-1", "web-2"]
    assert all(LOST in pod["metadata"]["annotations"] for pod in marked.values())


def test_condition_is_set_if_the_lost_node_annotation_has_no_effect() -> None:
    world = WorldOfNodes().stop_reporting(2, ago=301)
    world.sync()
    assert condition(world.sync(), "PodStatusNotWritten") is None
    for _ in range(2):
        world.later(40)
        answer = world.sync()
    assert condition(answer, "PodStatusNotWritten") is not None


def test_pod_that_fails_after_the_lost_node_annotation_counts_as_failed() -> None:
    """The containers of a pod exit after the pod was marked as lost: the pod-status hook does not
    change its phase.
    """
    world = WorldOfNodes(template=template(restartPolicy="Never")).stop_reporting(2, ago=301)
    world.sync()
    world.modify(2, lambda pod: completed(pod, "Failed"))
    assert world.pod_status() == []
    assert world.sync()["status"]["statuses"]["2"] == "Failed"
