"""`forceDeletePod`: an instance leaves a node that is lost, and only then."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.builders import Document, completed, tapp, template, terminating
from tests.reading import desired
from tests.unit.world import Hook, World, condition

LOST = "apps.tkestack.io/lost-node"
LABEL = "apps.tkestack.io/pod-status"
SECONDS = "apps.tkestack.io/lost-node-seconds"
SILENT = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def stamp(at: float) -> str:
    return datetime.fromtimestamp(int(at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def silent(pod: Document, since: float) -> Document:
    """A pod after the node lifecycle controller: not Ready, and all else as it was."""
    conditions = [
        {**item, "status": "False", "lastTransitionTime": stamp(since)}
        if item["type"] == "Ready"
        else item
        for item in pod["status"]["conditions"]
    ]
    return {**pod, "status": {**pod["status"], "conditions": conditions}}


def on(pod: Document, node: str) -> Document:
    return {**pod, "spec": {**pod["spec"], "nodeName": node}}


class Nodes(World):
    """A settled TApp, one instance on each of so many nodes."""

    def __init__(self, replicas: int = 5, **spec: Any) -> None:
        spec = {"forceDeletePod": True, **spec}
        super().__init__(tapp(replicas=replicas, **spec), hook=Hook())
        self.settle()
        for id in range(replicas):
            self.modify(id, lambda pod, id=id: on(pod, f"node-{id}"))

    def fall_silent(self, *ids: int, ago: float = 0) -> "Nodes":
        for id in ids:
            self.modify(id, lambda pod: silent(pod, self.hook.now - ago))
        return self

    def later(self, seconds: float) -> "Nodes":
        self.hook.now += seconds
        return self

    def lost(self, id: int) -> str:
        return self.pod(id)["metadata"]["annotations"].get(LOST) or ""


def test_pods_tolerate_a_silent_node_without_limit() -> None:
    tolerations = Nodes(1).pod(0)["spec"]["tolerations"]
    assert {item["key"] for item in tolerations} == set(SILENT)
    assert not any("tolerationSeconds" in item for item in tolerations)


def test_what_is_about_another_value_of_the_taint_does_not_keep_a_pod() -> None:
    """It tolerates nothing, and keeps admission from adding what does: the pod would be evicted."""
    other = {"key": SILENT[1], "operator": "Equal", "value": "x", "effect": "NoExecute"}
    world = Nodes(1, forceDeletePod=False, template=template(tolerations=[other]))
    kept = {"key": SILENT[1], "operator": "Exists", "effect": "NoExecute"}
    assert kept in Nodes(1, template=template(tolerations=[other])).pod(0)["spec"]["tolerations"]
    world.change(forceDeletePod=True).settle()
    assert kept in world.pod(0)["spec"]["tolerations"]


def test_pods_that_are_there_already_tolerate_it_after_the_edit() -> None:
    world = Nodes(2, forceDeletePod=False, template=template(tolerations=[
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


def test_a_limit_for_all_taints_stays_behind_what_says_more() -> None:
    """The first toleration that fits decides; the author's is meant for other taints, too."""
    wildcard = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}
    made = Nodes(1, template=template(tolerations=[wildcard])).pod(0)["spec"]["tolerations"]
    assert [(item.get("key"), item.get("tolerationSeconds")) for item in made] == [
        (SILENT[0], None),
        (SILENT[1], None),
        (None, 60),
    ]
    world = Nodes(1, forceDeletePod=False, template=template(tolerations=[wildcard]))
    world.change(forceDeletePod=True).sync()
    assert world.pod(0)["spec"]["tolerations"] == made
    world.sync()
    assert world.writes == []


def test_lifting_a_limit_makes_no_update_look_unfinished() -> None:
    """No kubelet has seen the newest generation for a moment: nobody is unavailable for that."""
    gate = "apps.tkestack.io/InPlaceUpdateReady"
    limited = {
        "key": SILENT[0],
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 9,
    }
    for gates in ([], [{"conditionType": gate}]):
        body = {"tolerations": [limited], **({"readinessGates": gates} if gates else {})}
        world = Nodes(2, forceDeletePod=False, template=template("nginx:1", **body))
        world.change(template=template("nginx:2", **body)).settle()
        world.change(forceDeletePod=True).sync()
        assert world.pod_status() == []
        answer = world.sync()
        assert answer["status"]["availableReplicas"] == 2
        assert world.writes == []


def test_an_instance_leaves_a_lost_node() -> None:
    """Marked by the composite, made Failed by the decorator, replaced."""
    world = Nodes().fall_silent(2)
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
def test_lost_is_not_finished_and_has_no_pace(policy: str) -> None:
    """Whatever the restartPolicy, and however young the pod."""
    world = Nodes(template=template(restartPolicy=policy)).fall_silent(2, ago=301)
    world.sync()
    world.pod_status()
    answer = world.sync()
    assert answer["status"]["statuses"]["2"] == "PodFailed"
    assert "failures" not in answer["status"]
    assert world.writes == ["delete Pod/web-2"]


def test_a_tapp_may_have_a_limit_of_its_own() -> None:
    world = Nodes()
    world.parent["metadata"]["annotations"] = {SECONDS: "5"}
    assert world.fall_silent(2, ago=6).decisions()[2] == "Mark/NodeLost"


@pytest.mark.parametrize("seconds", ["0", "1", "4"])
def test_a_limit_leaves_a_kubelet_time_to_look(seconds: str) -> None:
    """A gate that has just been opened looks like a silent node for a moment: that is no limit."""
    world = Nodes()
    world.parent["metadata"]["annotations"] = {SECONDS: seconds}
    assert world.fall_silent(2, ago=4).decisions()[2] == "Keep/UpToDate"
    assert world.later(2).decisions()[2] == "Mark/NodeLost"


@pytest.mark.parametrize("text", ["soon", "-1", "1.5", "", "9" * 30])
def test_a_limit_that_makes_no_sense_is_named(text: str) -> None:
    world = Nodes()
    world.parent["metadata"]["annotations"] = {SECONDS: text}
    assert world.fall_silent(2, ago=6).decisions()[2] == "Keep/UpToDate"
    found = condition(world.sync(), "InvalidLostNodeSeconds")
    assert found is not None
    assert "300 holds" in found["message"]


def test_a_clock_that_is_ahead_hides_no_lost_node() -> None:
    """The node controller's: a dead node sends no more events, so we have to come back."""
    world = Nodes().fall_silent(2, ago=-2)
    assert world.sync()["resyncAfterSeconds"] == 32  # the silence is told of then
    assert world.later(33).sync()["resyncAfterSeconds"] > 260
    world.change(statuses={"2": "Killed"})
    assert world.decisions()[2] == "Keep/NodeSilent"


def test_never_migrate_wins() -> None:
    world = Nodes(neverMigrate=True).fall_silent(2, ago=9_000)
    assert world.decisions()[2] == "Keep/UpToDate"


def test_without_force_delete_nothing_is_moved() -> None:
    world = Nodes(forceDeletePod=False).fall_silent(2, ago=9_000)
    assert world.decisions()[2] == "Keep/UpToDate"


def test_a_node_that_comes_back_takes_the_mark_away() -> None:
    world = Nodes().fall_silent(2, ago=301)
    world.sync()
    assert world.lost(2)
    world.kubelet()
    assert world.pod_status() == []  # its node is heard of again
    world.sync()
    assert not world.lost(2)
    world.sync()
    assert world.writes == []


def test_a_gate_that_has_just_been_opened_is_no_lost_node() -> None:
    """Ready has been False for long when the gate opens; the kubelet looks a moment later."""
    gate = "example.com/open"
    body = template(readinessGates=[{"conditionType": gate}])
    world = Nodes(template=body)
    opened = {"type": gate, "status": "True", "lastTransitionTime": stamp(world.hook.now)}

    def just_opened(pod: Document) -> Document:
        pod = silent(pod, world.hook.now - 9_000)
        others = [c for c in pod["status"]["conditions"] if c["type"] != gate]
        return {**pod, "status": {**pod["status"], "conditions": [*others, opened]}}

    world.kubelet()
    world.modify(2, just_opened)
    assert world.decisions()[2] == "Keep/UpToDate"


# --- the guard ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nodes", "silent_ones", "moved"),
    [(4, 2, True), (4, 3, False), (3, 1, True), (3, 2, False), (5, 3, False), (2, 2, True),
     (1, 1, True)],
)  # fmt: skip
def test_where_most_nodes_are_silent_nothing_is_moved(
    nodes: int, silent_ones: int, moved: bool
) -> None:
    world = Nodes(nodes).fall_silent(*range(silent_ones), ago=400)
    decided = world.decisions()
    assert decided[0] == ("Mark/NodeLost" if moved else "Keep/UpToDate")
    found = condition(world.sync(), "MostNodesSilent")
    assert (found is None) == moved
    if found is not None:
        assert found["message"].startswith(f"{silent_ones} of {nodes} nodes are not heard of")


def test_a_pod_that_is_going_still_tells_of_its_node() -> None:
    """Evictions in a network that is split must not disarm the guard."""
    world = Nodes(4).fall_silent(0, 1, 2, ago=400)
    for id in (0, 1):
        world.modify(id, terminating)
    assert world.decisions()[2] == "Keep/UpToDate"


def test_a_mark_is_taken_back_when_the_guard_begins_to_hold() -> None:
    world = Nodes(4).fall_silent(0, ago=400)
    world.sync()
    assert world.lost(0)
    world.fall_silent(1, 2, ago=1)
    world.sync()
    assert not world.lost(0)


def test_a_node_with_a_pod_that_is_ready_is_heard_of() -> None:
    """Another pod of the node says so."""
    world = Nodes(4).fall_silent(0, 1, 2, ago=400)
    for node, numbers in (("node-2", "2 of 3"), ("node-3", "3 of 4")):
        world.modify(3, lambda pod, node=node: on(pod, node))
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
def test_a_tapp_that_waits_for_that_is_not_complete(edit: Document) -> None:
    world = Nodes(3).fall_silent(2, ago=10)
    answer = world.change(**edit).sync()
    progressing = condition(answer, "Progressing")
    assert progressing is not None
    assert progressing["status"] == "True"


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_a_deletion_waits_until_the_node_is_lost_or_back(edit: Document) -> None:
    """A pod on a silent node that is deleted hangs there half-deleted."""
    world = Nodes(3).fall_silent(2, ago=10)
    world.change(**edit)
    assert world.decisions()[2].startswith("Keep/NodeSilent")
    world.later(300)
    world.sync()
    assert world.lost(2)
    assert world.pod_status() == ["web-2"]
    world.sync()
    assert "delete Pod/web-2" in world.writes


def test_a_deletion_does_not_wait_for_a_time_that_nobody_knows() -> None:
    """A silence without a beginning, or from the future, never comes to its limit."""
    for since in (0.0, 9_000.0):
        world = Nodes(3).fall_silent(2, ago=-since)
        if not since:
            conditions = world.pod(2)["status"]["conditions"]
            for item in conditions:
                item.pop("lastTransitionTime")
        world.change(statuses={"2": "Killed"})
        assert world.decisions()[2] == "Delete/Killed"


def test_the_end_of_a_tapp_waits_likewise() -> None:
    world = Nodes(3).fall_silent(2, ago=10)
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


@pytest.mark.parametrize("moved", [False, True], ids=["stays", "moves"])
def test_the_cause_is_named_where_a_node_is_not_heard_of(moved: bool) -> None:
    """In the state and in Progressing; in Degraded, too, where nothing is done about it."""
    world = Nodes(3, forceDeletePod=moved).fall_silent(2)
    status = world.sync()["status"]
    assert status["statuses"]["2"] == "Pending"  # a gate that just opened looks the same
    assert condition(status, "Degraded")["status"] == "False"  # type: ignore[index]
    answer = world.later(29).sync()
    assert 0 < answer["resyncAfterSeconds"] <= 2
    status = world.later(2).sync()["status"]
    assert status["statuses"]["2"] == "Unknown"
    progressing, degraded = condition(status, "Progressing"), condition(status, "Degraded")
    assert "(nothing is heard of the nodes of 2)" in progressing["message"]  # type: ignore[index]
    assert degraded is not None
    assert degraded["status"] == ("False" if moved else "True")
    if not moved:
        assert degraded["reason"] == "InstancesBroken"
        assert "nothing is heard of node node-2 since" in degraded["message"]


@pytest.mark.parametrize("moved", [False, True], ids=["hangs", "is kept"])
def test_the_end_of_a_tapp_says_what_it_waits_for(moved: bool) -> None:
    """A pod on a silent node is kept, or hangs in its deletion; either way somebody is told."""
    world = Nodes(3, forceDeletePod=moved).fall_silent(2, ago=20)
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
    assert (found["Degraded"]["status"], found["Degraded"]["reason"]) == ("True", "NodesSilent")
    assert "waits for pods web-2: nothing is heard of their nodes" in found["Degraded"]["message"]
    assert found["Progressing"]["reason"] == "Deleting"
    world.parent = {**world.parent, "status": told}
    again = world.later(5).hook.finalize(world.request(finalizing=True))
    assert again["status"] == told  # nothing that changes with every call
    del world.pods["web-2"]
    after = world.hook.finalize(world.request(finalizing=True))["status"]
    found = {item["type"]: item for item in after["conditions"]}
    assert found["Degraded"]["status"] == "False"


def test_the_end_of_a_tapp_knows_no_guard() -> None:
    """It keeps instances from running twice, and here none is started anew."""
    world = Nodes(4).fall_silent(0, 1, 2, ago=400)
    marked = desired(world.hook.finalize(world.request(finalizing=True)), "Pod")
    assert sorted(marked) == ["web-0", "web-1", "web-2"]
    assert all(LOST in pod["metadata"]["annotations"] for pod in marked.values())


def test_a_mark_that_nobody_acts_on_is_named() -> None:
    world = Nodes().fall_silent(2, ago=301)
    world.sync()
    assert condition(world.sync(), "PodStatusNotWritten") is None
    for _ in range(2):
        world.later(40)
        answer = world.sync()
    assert condition(answer, "PodStatusNotWritten") is not None


def test_a_pod_that_failed_by_itself_is_not_lost() -> None:
    """A mark that the decorator came too late for means nothing."""
    world = Nodes(template=template(restartPolicy="Never")).fall_silent(2, ago=301)
    world.sync()
    world.modify(2, lambda pod: completed(pod, "Failed"))
    assert world.pod_status() == []
    assert world.sync()["status"]["statuses"]["2"] == "Failed"
