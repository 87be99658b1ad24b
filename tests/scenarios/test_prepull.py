"""Tests `prePull`: new images are on the node of an instance before its containers stop.

A *puller* is a short-lived pod that belongs to no instance and makes the kubelet of a node pull
images.
"""

from typing import Any

import pytest

from tests.prepull import is_puller
from tests.scenarios.apps import template
from tests.scenarios.life import Document
from tests.scenarios.pullers import (
    FIRST,
    SECONDS,
    Refusal,
    pullers,
    seconds_unavailable,
    tapp_with_slow_registry,
)


def test_instance_is_not_unavailable_during_a_pull() -> None:
    lost = {}
    for pre_pull in (True, False):
        life = tapp_with_slow_registry()
        strategy = {"inPlaceUpdateStrategy": {"prePull": pre_pull}}
        life.begin_patch(template=template("web:2"), updateStrategy=strategy)
        life.world.run(0.1)
        lost[pre_pull] = seconds_unavailable(life)
        assert life.images() == " ".join(["web:2"] * 5)
    assert lost[True] < 5 < SECONDS < lost[False]


def test_image_that_does_not_exist_stops_no_container() -> None:
    life = tapp_with_slow_registry()
    life.world.kubelet.levers.bad_images.add("web:tpyo")
    born = life.uids()
    life.watch_readiness()
    life.begin_patch(template=template("web:tpyo")).idle()
    assert life.fewest_ready == 5
    assert life.uids() == born
    assert life.images() == " ".join(["web:1"] * 5)
    message = life.condition("ImagesNotPulled")
    assert message.startswith("True PullFailed: node node-")
    assert 'image "docker.io/library/web:tpyo"' in message
    assert "not found" in message
    assert message.endswith("instances keep running as they are until the new images can be pulled")
    assert life.condition("Degraded").startswith("True ImagesNotPulled")
    assert life.condition("Progressing").startswith("False Stuck")
    life.world.run(3600)  # waiting does not help
    assert life.fewest_ready == 5
    life.patch(template=template("web:1"))
    assert life.complete
    assert pullers(life) == {}
    assert life.condition("ImagesNotPulled") == ""


def test_puller_does_not_count_as_an_instance() -> None:
    life = tapp_with_slow_registry()
    before = {**life.status, "conditions": ()}
    life.begin_patch(template=template("web:2")).world.run(5)
    assert len(pullers(life)) == 3
    now = {**life.status, "conditions": ()}
    changes = {key for key in now | before if now.get(key) != before.get(key)}
    assert changes == {
        *("outdated", "pulling", "progressed"),
        *("updatedReplicas", "updateRevision", "templates", "observedGeneration"),
    }
    assert now["scaleLabelSelector"].endswith(",!apps.tkestack.io/puller")
    assert life.condition("ForeignPods") == ""
    assert life.condition("Progressing") == (
        "True PullingImages: pulling images before the update of instances 0-4 (web:2 on "
        "nodes node-0, node-1, "
        "node-2)"
    )
    for pod in pullers(life).values():
        assert set(pod["metadata"]["labels"]) == {"apps.tkestack.io/puller", "controller-uid"}
        assert pod["spec"]["tolerations"] == [{"operator": "Exists"}]
        assert not pod["spec"]["automountServiceAccountToken"]
    life.settle()
    assert pullers(life) == {}


def test_pullers_have_the_credentials_of_their_template() -> None:
    life = tapp_with_slow_registry()
    secrets = [{"name": "registry"}]
    more = {"imagePullSecrets": secrets, "serviceAccountName": "puller"}
    life.patch(template=template("web:1", **more))
    life.begin_patch(template=template("web:2", **more)).world.run(3)
    for pod in pullers(life).values():
        assert {key: pod["spec"][key] for key in more} == more
        assert pod["spec"]["volumes"][0]["image"] == {
            "reference": "web:2",
            "pullPolicy": "IfNotPresent",
        }


def test_pullers_do_not_use_the_budget_but_are_limited_by_max_pullers() -> None:
    life = tapp_with_slow_registry(nodes=5, max_pullers=2)
    most = 0
    life.begin_patch(template=template("web:2")).world.run(1)
    while not life.complete:
        life.world.run(0.5)
        here = pullers(life).values()
        most = max(most, sum("deletionTimestamp" not in pod["metadata"] for pod in here))
    assert most == 2
    assert life.images() == " ".join(["web:2"] * 5)


def test_instances_are_updated_in_order_although_other_nodes_pull_faster() -> None:
    life = tapp_with_slow_registry(nodes=5)
    slow = life.pods[0]["spec"]["nodeName"]

    def seconds(pod: Document, *_: Any, **__: Any) -> float:
        return 60.0 if pod["spec"]["nodeName"] == slow else 1.0

    life.world.kubelet.levers.seconds_to_pull = seconds  # type: ignore[method-assign]
    life.begin_patch(template=template("web:2")).world.run(30)
    assert life.images() == " ".join(["web:1"] * 5)
    life.settle()
    assert life.images() == " ".join(["web:2"] * 5)


def test_images_of_the_next_updates_are_pulled_first() -> None:
    """With at most two pullers at a time, a second edit of other instances is completed as well.

    Otherwise the pullers of later updates would block those of the next updates forever.
    """
    life = tapp_with_slow_registry(nodes=5, max_pullers=2)
    life.begin_patch(template=template("web:2"))
    life.world.run(2)
    life.patch(templatePool={"blue": template("blue:1")}, templates={"3": "blue", "4": "blue"})
    assert life.images() == "web:2 web:2 web:2 blue:1 blue:1"


@pytest.mark.parametrize("edit", ["paused", "changed", "reverted", "deleted", "scaled down"])
def test_pullers_are_deleted_when_no_update_needs_them(edit: str) -> None:
    life = tapp_with_slow_registry()
    life.begin_patch(template=template("web:2")).world.run(3)
    first = {pod["metadata"]["name"] for pod in pullers(life).values()}
    assert len(first) == 3
    match edit:
        case "paused":
            life.patch(updateStrategy={"paused": True})
        case "changed":
            # A running pull is not canceled, so the old pullers take some time.
            life.begin_patch(template=template("web:3")).world.run(40)
        case "reverted":
            life.patch(template=template("web:1"))
        case "deleted":
            life.delete()
        case _:
            life.patch(replicas=0)
    assert first.isdisjoint({pod["metadata"]["name"] for pod in pullers(life).values()})
    if edit == "paused":
        assert life.patch(updateStrategy={"paused": False}).complete
    if edit == "changed":
        assert life.settle().complete


def test_progressing_does_not_claim_that_missing_pullers_pull() -> None:
    life = tapp_with_slow_registry(policies=[Refusal()])
    life.begin_patch(template=template("web:2")).world.run(10)
    assert life.condition("Progressing") == (
        "True PullingImages: pulling images before the update of instances 0-4 (the pods that "
        "pull them are requested)"
    )


def test_pullers_request_few_resources() -> None:
    """Pullers have small requests and limits for each resource that a quota or a policy may
    require.
    """
    life = tapp_with_slow_registry()
    asked = {"limits": {"cpu": "4", "ephemeral-storage": "2Gi", "nvidia.com/gpu": "1"}}
    more = {"container": {"resources": asked}, "securityContext": {"runAsUser": 1001}}
    life.begin_patch(template=template("web:2")).world.run(3)
    plain = pullers(life)["node-0"]["spec"]
    life.settle()
    life.patch(template=template("web:2", **more))
    life.begin_patch(template=template("web:3", **more)).world.run(3)
    rich = pullers(life)["node-0"]["spec"]
    assert plain["containers"][0]["resources"] == {
        "requests": {"cpu": "10m", "memory": "16Mi"},
        "limits": {"cpu": "100m", "memory": "32Mi"},
    }
    assert {*rich["containers"][0]["resources"]["limits"]} == {"cpu", "memory", "ephemeral-storage"}
    assert "runAsUser" not in plain["securityContext"]
    assert plain["nodeSelector"] == {"kubernetes.io/os": "linux"}
    assert rich["securityContext"]["runAsUser"] == 1001
    assert plain["securityContext"]["runAsNonRoot"]


def test_ten_edits_during_the_pulls_cause_one_restart() -> None:
    life = tapp_with_slow_registry()
    for number in range(2, 12):
        life.begin_patch(template=template(f"web:{number}")).world.run(1.5)
        assert len(pullers(life)) <= 3 + 3  # pullers of the previous edit may still be terminating
    life.settle()
    assert life.images() == " ".join(["web:11"] * 5)
    assert [*life.restarts().values()] == [1] * 5


def test_image_that_runs_on_the_node_is_not_pulled() -> None:
    life = tapp_with_slow_registry(nodes=1)
    life.patch(templatePool={"blue": template("web:2")}, templates={"3": "blue"})
    life.writes()
    life.begin_patch(template=template("web:2"))
    life.world.run(2)
    assert pullers(life) == {}
    assert life.settle().complete


def test_rollback_to_the_old_image_repairs_a_broken_instance_without_a_pull() -> None:
    life = tapp_with_slow_registry()
    life.world.kubelet.levers.bad_images.add("web:bad")
    off = {"inPlaceUpdateStrategy": {"prePull": False}}
    life.begin_patch(template=template("web:bad"), updateStrategy=off).world.run(60)
    life.begin_patch(template=template("web:1"), updateStrategy=FIRST).settle()
    assert life.complete
    assert not life.status.get("pulling")


def test_broken_instance_is_updated_without_waiting_for_a_pull() -> None:
    life = tapp_with_slow_registry()
    life.world.kubelet.levers.bad_images.add("web:bad")
    off = {"inPlaceUpdateStrategy": {"prePull": False}}
    life.begin_patch(template=template("web:bad"), updateStrategy=off).world.run(60)
    assert life.images() == "web:bad web:1 web:1 web:1 web:1"
    life.begin_patch(template=template("web:3"), updateStrategy=FIRST).world.run(SECONDS / 4)
    assert life.images() == "web:3 web:1 web:1 web:1 web:1"


def test_image_with_pull_policy_never_is_not_pulled() -> None:
    life = tapp_with_slow_registry()
    never = {"container": {"imagePullPolicy": "Never"}}
    life.patch(template=template("web:1", **never))
    life.begin_patch(template=template("web:2", **never))
    while not life.complete:
        life.world.run(1)
        assert pullers(life) == {}


def test_restart_in_place_creates_no_pullers() -> None:
    life = tapp_with_slow_registry()
    asked = template("web:1", annotations={"apps.tkestack.io/restart-in-place": "now"})
    life.begin_patch(template=asked)
    while not life.complete:
        life.world.run(1)
        assert pullers(life) == {}


def test_pullers_on_lost_nodes_do_not_block_other_instances() -> None:
    life = tapp_with_slow_registry(nodes=5, max_pullers=2)
    node = {number: life.pods[number]["spec"]["nodeName"] for number in range(5)}
    life.begin_patch(template=template("web:2"), updateStrategy={"maxUnavailable": 5})
    life.world.run(3)
    for lost in pullers(life):
        life.world.nodes.lose(lost)
    gone = [number for number in range(5) if node[number] in pullers(life)]
    life.world.run(600)
    images = life.images().split()
    assert [images[number] for number in range(5) if number not in gone] == ["web:2"] * 3


def test_puller_label_of_a_template_is_not_copied_to_pods() -> None:
    life = tapp_with_slow_registry()
    pasted = {"app": "web", "apps.tkestack.io/puller": "true"}
    life.patch(template=template("web:1", labels=pasted))
    assert not any(is_puller(pod) for pod in life.world.list("Pod"))


def test_no_puller_is_created_for_an_unreachable_node() -> None:
    life = tapp_with_slow_registry(nodes=1)
    life.world.nodes.lose(life.pods[0]["spec"]["nodeName"])
    life.world.run(120)
    life.begin_patch(template=template("web:2")).world.run(5)
    assert pullers(life) == {}
    assert not life.status.get("pulling")
