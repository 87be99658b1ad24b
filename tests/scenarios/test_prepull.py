"""Tests `prePull`: new images are on the node of an instance before its containers stop.

A *puller* is a short-lived pod that belongs to no instance and makes the kubelet of a node pull
images.
"""

from typing import Any

import pytest

from simulator.api.store import ForbiddenError
from tests.prepull import is_puller
from tests.scenarios.apps import tapp, template
from tests.scenarios.life import Document, Life

FIRST = {"inPlaceUpdateStrategy": {"prePull": True}, "maxUnavailable": 1}
SECONDS = 20.0
"""Duration of a pull in seconds."""


def tapp_with_slow_registry(nodes: int = 3, **settings: Any) -> Life:
    """Returns a TApp with `prePull` and five available instances; from now on each pull takes 20
    seconds.

    `nodes` is the number of nodes, and `settings` are settings of the service or arguments of
    `Life`.
    """
    life = Life(nodes=nodes, **settings)
    life.apply(tapp(template=template("web:1"), updateStrategy=FIRST))
    life.world.kubelet.levers.pull_seconds = SECONDS
    life.writes()
    return life


def pullers(life: Life) -> dict[str, Document]:
    """Returns node name -> puller pod for all pullers."""
    return {pod["spec"]["nodeName"]: pod for pod in life.world.list("Pod") if is_puller(pod)}


def seconds_unavailable(life: Life) -> float:
    """Runs until the TApp is complete; returns for how many seconds instance 0 could not serve."""
    lost, step = 0.0, 0.25
    while not life.complete:
        life.world.run(step)
        worker = life.world.kubelet.worker(life.pods[0])
        assert worker is not None
        lost += 0.0 if worker.local.can_serve(life.world.clock.now) else step
    return lost


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
    assert message.endswith("instances keep running until these images can be pulled")
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


def no_image_volumes(operation: str, pod: Document) -> Document:
    """Refuses each new pod with an image volume, as an admission policy; each puller has such a
    volume.
    """
    volumes = (pod.get("spec") or {}).get("volumes") or []
    if operation == "CREATE" and any("image" in volume for volume in volumes):
        raise ForbiddenError("no image volumes here")
    return pod


def assert_update_without_pullers(life: Life, why: str, wait: float = 30) -> None:
    """Checks a rollout for which pullers cannot run: it waits, sets a condition, and then runs
    without pullers.

    The condition contains the text `why`, and the rollout begins after about `wait` seconds. The
    next rollout does not wait.
    """
    life.watch_readiness()
    life.begin_patch(template=template("web:2")).world.run(wait - 5)
    assert life.images() == " ".join(["web:1"] * 5)
    assert life.fewest_ready == 5
    life.world.run(10)
    assert why in life.condition("PullersNotRun")
    assert life.condition("Degraded").startswith("False")
    life.settle()
    assert life.images() == " ".join(["web:2"] * 5)
    assert life.fewest_ready == 4
    assert life.condition("PullersNotRun").endswith("later updates try again")
    assert pullers(life) == {}
    life.begin_patch(template=template("web:3")).world.run(3)
    assert life.images().startswith("web:3")
    while not life.complete:
        life.world.run(1)
        assert life.condition("PullersNotRun")
        assert pullers(life) == {}
    assert life.images() == " ".join(["web:3"] * 5)


def test_updates_continue_if_the_api_server_refuses_pullers() -> None:
    life = tapp_with_slow_registry(policies=[no_image_volumes])
    assert_update_without_pullers(
        life, "it was requested and does not exist; the Events of the TApp say why"
    )


def test_updates_continue_if_kubelets_reject_pullers() -> None:
    life = tapp_with_slow_registry()
    levers = life.world.kubelet.levers
    levers.refuses = is_puller
    assert_update_without_pullers(life, "the kubelet refused its pod (OutOfcpu")


def test_updates_continue_if_the_image_of_the_puller_cannot_be_pulled() -> None:
    """The image that the puller itself runs does not exist, so the rollout continues without
    pullers.

    The wait ends 30 seconds after the puller fails, and not after the time for a pull. The kubelet
    first pulls the new image and then that of the puller, both slowly.
    """
    life = tapp_with_slow_registry(puller_image="example.com/pause:1")
    life.world.kubelet.levers.bad_images.add("example.com/pause:1")
    assert_update_without_pullers(life, "example.com/pause:1", wait=2 * SECONDS + 27)


class Refusal:
    """Refuses to create pullers, as an admission policy: the pods that only pull an image onto a
    node.

    Attributes:
        active: False if it refuses nothing.
        asked: the number of attempts to create a puller so far.
        most: the number of pullers that may exist before it refuses another one.
        life: the life whose pullers are counted; None counts as no pullers.
    """

    def __init__(self, most: int = 0) -> None:
        self.active, self.asked, self.most = True, 0, most
        self.life: Life | None = None

    def __call__(self, operation: str, pod: Document) -> Document:
        """Returns the object unchanged, or raises ForbiddenError for a puller that is refused."""
        if operation == "CREATE" and is_puller(pod):
            self.asked += 1
            there = 0 if self.life is None else len(pullers(self.life))
            if self.active and there >= self.most:
                raise ForbiddenError("exceeded quota: pods")
        return pod


HOUR = 3600


@pytest.mark.parametrize("retry", ["after an hour", "after prePull was set again"])
def test_no_puller_is_created_for_an_hour_after_a_refusal(retry: str) -> None:
    """After a refused puller, rollouts run without pullers until an hour is over or prePull is set
    again.

    After that, the next rollout creates pullers again.
    """
    refusal = Refusal()
    life = tapp_with_slow_registry(policies=[refusal])
    life.begin_patch(template=template("web:2")).world.run(35)
    said = life.condition("PullersNotRun")
    assert said.startswith(
        "True NoPuller: images are not pulled before updates (prePull): pod web-pull-x"
    )
    life.settle()
    asked = refusal.asked
    life.patch(template=template("web:3"))
    assert refusal.asked == asked
    refusal.active = False
    if retry == "after prePull was set again":
        for pre_pull in (False, True):
            life.patch(updateStrategy={"inPlaceUpdateStrategy": {"prePull": pre_pull}})
        assert life.condition("PullersNotRun") == ""
    else:
        life.world.run(HOUR)
        assert life.condition("PullersNotRun").endswith("later updates try again")
    life.watch_readiness()
    life.begin_patch(template=template("web:4")).world.run(SECONDS / 2)
    assert life.fewest_ready == 5
    assert len(pullers(life)) == 3
    life.settle()
    assert life.condition("PullersNotRun") == ""
    assert not life.status.get("pulling")


def test_condition_stays_while_a_refused_puller_is_tried_again() -> None:
    """An hour after a refusal, one rollout waits half a minute for its puller, with the condition
    unchanged.

    The next rollout does not wait.
    """
    life = tapp_with_slow_registry(policies=[Refusal()])
    life.patch(template=template("web:2"))
    life.world.run(HOUR)
    life.begin_patch(template=template("web:3"))
    for _ in range(25):
        life.world.run(1)
        assert life.condition("PullersNotRun")
    assert life.images() == " ".join(["web:2"] * 5)
    life.settle()
    life.begin_patch(template=template("web:4")).world.run(3)
    assert life.images().startswith("web:4")


def test_pullers_run_one_by_one_if_a_quota_allows_only_one() -> None:
    """A quota allows one puller at a time: each image is still pulled before its update.

    No refusal is reported in a condition.
    """
    refusal = Refusal(most=1)
    life = tapp_with_slow_registry(policies=[refusal])
    refusal.life = life
    life.begin_patch(template=template("web:2"), updateStrategy={"maxUnavailable": 5})
    lost = seconds_unavailable(life)
    assert life.images() == " ".join(["web:2"] * 5)
    assert lost < 5
    assert life.condition("PullersNotRun") == ""


def test_deleted_puller_is_created_again() -> None:
    """Deletes a puller during a pull: it is created again, because a missing puller was not
    necessarily refused.
    """
    life = tapp_with_slow_registry(nodes=1)
    life.world.kubelet.levers.pull_seconds = 60
    life.begin_patch(template=template("web:2")).world.run(45)
    (puller,) = pullers(life).values()
    life.world.delete("Pod", puller["metadata"]["name"])
    life.settle()
    assert life.images() == " ".join(["web:2"] * 5)
    assert life.condition("PullersNotRun") == ""


def test_condition_about_pullers_stays_after_a_pause() -> None:
    life = tapp_with_slow_registry(policies=[Refusal()])
    life.patch(template=template("web:2"))
    life.patch(updateStrategy={"paused": True})
    assert life.condition("PullersNotRun").endswith("later updates try again")


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
