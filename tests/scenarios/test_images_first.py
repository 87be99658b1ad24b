"""`prePull`: the new images are on an instance's node before anything of it stops."""

from typing import Any

import pytest

from simulator.api.store import ForbiddenError
from tests.pulled import is_puller
from tests.scenarios.apps import tapp, template
from tests.scenarios.life import Document, Life

FIRST = {"inPlaceUpdateStrategy": {"prePull": True}, "maxUnavailable": 1}
SECONDS = 20.0
"""Seconds of a pull."""


def begun(nodes: int = 3, **settings: Any) -> Life:
    """Five instances on some nodes, whose registry is slow."""
    life = Life(nodes=nodes, **settings)
    life.apply(tapp(template=template("web:1"), updateStrategy=FIRST))
    life.world.kubelet.levers.pull_seconds = SECONDS
    life.writes()
    return life


def pullers(life: Life) -> dict[str, Document]:
    """The pods that pull, by their nodes."""
    return {pod["spec"]["nodeName"]: pod for pod in life.world.list("Pod") if is_puller(pod)}


def away(life: Life) -> float:
    """The seconds in which instance 0 did not serve while the TApp became complete."""
    lost, step = 0.0, 0.25
    while not life.complete:
        life.world.run(step)
        worker = life.world.kubelet.worker(life.pods[0])
        assert worker is not None
        lost += 0.0 if worker.local.can_serve(life.world.clock.now) else step
    return lost


def test_nothing_stops_for_as_long_as_a_pull_takes() -> None:
    lost = {}
    for pre_pull in (True, False):
        life = begun()
        strategy = {"inPlaceUpdateStrategy": {"prePull": pre_pull}}
        life.begin_patch(template=template("web:2"), updateStrategy=strategy)
        life.world.run(0.1)
        lost[pre_pull] = away(life)
        assert life.images() == " ".join(["web:2"] * 5)
    assert lost[True] < 5 < SECONDS < lost[False]


def test_a_tag_that_does_not_exist_takes_nothing_down() -> None:
    life = begun()
    life.world.kubelet.levers.bad_images.add("web:tpyo")
    born = life.uids()
    life.watch_readiness()
    life.begin_patch(template=template("web:tpyo")).idle()
    assert (life.fewest_ready, life.uids()) == (5, born)
    assert life.images() == " ".join(["web:1"] * 5)
    message = life.condition("ImagesNotPulled")
    assert message.startswith("True PullFailed: node node-")
    assert 'image "docker.io/library/web:tpyo"' in message
    assert "not found" in message
    assert message.endswith("no instance is stopped for these images")
    assert life.condition("Degraded").startswith("True ImagesNotPulled")
    assert life.condition("Progressing").startswith("False Stuck")
    life.world.run(3600)  # no patience helps
    assert life.fewest_ready == 5
    life.patch(template=template("web:1"))
    assert life.complete
    assert pullers(life) == {}
    assert life.condition("ImagesNotPulled") == ""


def test_a_puller_is_no_instance() -> None:
    life = begun()
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
        "True PullingImages: their images are pulled first: 0-4 (web:2 on nodes node-0, node-1, "
        "node-2)"
    )
    for pod in pullers(life).values():
        assert set(pod["metadata"]["labels"]) == {"apps.tkestack.io/puller", "controller-uid"}
        assert pod["spec"]["tolerations"] == [{"operator": "Exists"}]
        assert not pod["spec"]["automountServiceAccountToken"]
    life.settle()
    assert pullers(life) == {}


def test_pullers_have_the_credentials_of_their_template() -> None:
    life = begun()
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


def test_they_run_ahead_of_the_budget_but_not_without_limit() -> None:
    life = begun(nodes=5, max_pullers=2)
    most = 0
    life.begin_patch(template=template("web:2")).world.run(1)
    while not life.complete:
        life.world.run(0.5)
        here = pullers(life).values()
        most = max(most, sum("deletionTimestamp" not in pod["metadata"] for pod in here))
    assert most == 2
    assert life.images() == " ".join(["web:2"] * 5)


def test_updates_keep_their_order_whoever_has_pulled_first() -> None:
    life = begun(nodes=5)
    slow = life.pods[0]["spec"]["nodeName"]

    def seconds(pod: Document, *_: Any, **__: Any) -> float:
        return 60.0 if pod["spec"]["nodeName"] == slow else 1.0

    life.world.kubelet.levers.seconds_to_pull = seconds  # type: ignore[method-assign]
    life.begin_patch(template=template("web:2")).world.run(30)
    assert life.images() == " ".join(["web:1"] * 5)
    life.settle()
    assert life.images() == " ".join(["web:2"] * 5)


def test_those_that_are_updated_first_pull_first() -> None:
    """Else the pullers of those that come later would stand in their way for ever."""
    life = begun(nodes=5, max_pullers=2)
    life.begin_patch(template=template("web:2"))
    life.world.run(2)
    life.patch(templatePool={"blue": template("blue:1")}, templates={"3": "blue", "4": "blue"})
    assert life.images() == "web:2 web:2 web:2 blue:1 blue:1"


@pytest.mark.parametrize("edit", ["paused", "changed", "taken back", "deleted", "scaled down"])
def test_they_go_when_nothing_needs_them(edit: str) -> None:
    life = begun()
    life.begin_patch(template=template("web:2")).world.run(3)
    first = {pod["metadata"]["name"] for pod in pullers(life).values()}
    assert len(first) == 3
    match edit:
        case "paused":
            life.patch(updateStrategy={"paused": True})
        case "changed":
            life.begin_patch(template=template("web:3")).world.run(40)  # a pull is not broken off
        case "taken back":
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
    """Admission that refuses them."""
    volumes = (pod.get("spec") or {}).get("volumes") or []
    if operation == "CREATE" and any("image" in volume for volume in volumes):
        raise ForbiddenError("no image volumes here")
    return pod


def goes_on_without(life: Life, why: str, wait: float = 30) -> None:
    """The update waits for so long, says so, and then takes place; the next one does not wait."""
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
    assert life.condition("PullersNotRun").endswith("a later one tries again")
    assert pullers(life) == {}
    life.begin_patch(template=template("web:3")).world.run(3)
    assert life.images().startswith("web:3")
    while not life.complete:
        life.world.run(1)
        assert life.condition("PullersNotRun")
        assert pullers(life) == {}
    assert life.images() == " ".join(["web:3"] * 5)


def test_where_the_api_server_refuses_pullers_updates_go_on_without() -> None:
    life = begun(policies=[no_image_volumes])
    goes_on_without(life, "it was asked for and is not there; the events of the TApp say why")


def test_where_kubelets_refuse_pullers_updates_go_on_without() -> None:
    life = begun()
    levers = life.world.kubelet.levers
    levers.refuses = is_puller
    goes_on_without(life, "the kubelet refused its pod (OutOfcpu")


def test_where_what_runs_in_pullers_cannot_be_had_updates_go_on_without() -> None:
    """The wait ends 30 s after a puller has trouble of its own, not after `pull_seconds`.

    The kubelet comes to that after two slow pulls: of the wanted image, and of the puller's own.
    """
    life = begun(puller_image="example.com/pause:1")
    life.world.kubelet.levers.bad_images.add("example.com/pause:1")
    goes_on_without(life, "example.com/pause:1", wait=2 * SECONDS + 27)


class Refusal:
    """Admission that refuses pullers as long as it is asked to, and counts them."""

    def __init__(self, most: int = 0) -> None:
        self.active, self.asked, self.most = True, 0, most
        self.life: Life | None = None

    def __call__(self, operation: str, pod: Document) -> Document:
        """A policy."""
        if operation == "CREATE" and is_puller(pod):
            self.asked += 1
            there = 0 if self.life is None else len(pullers(self.life))
            if self.active and there >= self.most:
                raise ForbiddenError("exceeded quota: pods")
        return pod


HOUR = 3600


@pytest.mark.parametrize("mended", ["an hour later", "asked again"])
def test_what_was_refused_is_remembered_for_an_hour_and_tried_again(mended: str) -> None:
    """No roll asks for pullers meanwhile; then one does, and pulls if they are there."""
    refusal = Refusal()
    life = begun(policies=[refusal])
    life.begin_patch(template=template("web:2")).world.run(35)
    said = life.condition("PullersNotRun")
    assert said.startswith("True NoPuller: images are not pulled first: pod web-pull-x")
    life.settle()
    asked = refusal.asked
    life.patch(template=template("web:3"))
    assert refusal.asked == asked
    refusal.active = False
    if mended == "asked again":
        for pre_pull in (False, True):
            life.patch(updateStrategy={"inPlaceUpdateStrategy": {"prePull": pre_pull}})
        assert life.condition("PullersNotRun") == ""
    else:
        life.world.run(HOUR)
        assert life.condition("PullersNotRun").endswith("a later one tries again")
    life.watch_readiness()
    life.begin_patch(template=template("web:4")).world.run(SECONDS / 2)
    assert (life.fewest_ready, len(pullers(life))) == (5, 3)
    life.settle()
    assert life.condition("PullersNotRun") == ""
    assert not life.status.get("pulling")


def test_what_is_refused_still_is_said_without_a_break_while_it_is_tried_again() -> None:
    """An hour later: half a minute of waiting, and for another hour none."""
    life = begun(policies=[Refusal()])
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


def test_where_there_is_room_for_one_puller_they_run_one_after_the_other() -> None:
    """A quota that is nearly used up: nobody's image comes late, and nothing is remembered."""
    refusal = Refusal(most=1)
    life = begun(policies=[refusal])
    refusal.life = life
    life.begin_patch(template=template("web:2"), updateStrategy={"maxUnavailable": 5})
    lost = away(life)
    assert life.images() == " ".join(["web:2"] * 5)
    assert lost < 5
    assert life.condition("PullersNotRun") == ""


def test_a_puller_that_somebody_deletes_is_made_again() -> None:
    """However long it has been pulling; that it is gone does not mean that it was refused."""
    life = begun(nodes=1)
    life.world.kubelet.levers.pull_seconds = 60
    life.begin_patch(template=template("web:2")).world.run(45)
    (puller,) = pullers(life).values()
    life.world.delete("Pod", puller["metadata"]["name"])
    life.settle()
    assert life.images() == " ".join(["web:2"] * 5)
    assert life.condition("PullersNotRun") == ""


def test_pause_forgets_nothing() -> None:
    """Findings about pullers stay known."""
    life = begun(policies=[Refusal()])
    life.patch(template=template("web:2"))
    life.patch(updateStrategy={"paused": True})
    assert life.condition("PullersNotRun").endswith("a later one tries again")


def test_a_puller_that_is_not_there_pulls_nothing_yet() -> None:
    """Progressing does not say that nodes pull whose pods do not exist."""
    life = begun(policies=[Refusal()])
    life.begin_patch(template=template("web:2")).world.run(10)
    assert life.condition("Progressing") == (
        "True PullingImages: their images are pulled first: 0-4 (the pods that pull them are asked "
        "for)"
    )


def test_what_runs_in_a_puller_asks_for_little() -> None:
    """Each kind of resources that a quota or a policy may demand, for requests and for limits."""
    life = begun()
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


def test_ten_edits_during_the_pulls_are_one_update() -> None:
    life = begun()
    for number in range(2, 12):
        life.begin_patch(template=template(f"web:{number}")).world.run(1.5)
        assert len(pullers(life)) <= 3 + 3  # those of the edit before may still be ending
    life.settle()
    assert life.images() == " ".join(["web:11"] * 5)
    assert [*life.restarts().values()] == [1] * 5


def test_an_image_that_an_instance_of_the_node_runs_is_there() -> None:
    life = begun(nodes=1)
    life.patch(templatePool={"blue": template("web:2")}, templates={"3": "blue"})
    life.writes()
    life.begin_patch(template=template("web:2"))
    life.world.run(2)
    assert pullers(life) == {}
    assert life.settle().complete


def test_what_does_not_run_is_mended_at_once() -> None:
    life = begun()
    life.world.kubelet.levers.bad_images.add("web:bad")
    off = {"inPlaceUpdateStrategy": {"prePull": False}}
    life.begin_patch(template=template("web:bad"), updateStrategy=off).world.run(60)
    life.begin_patch(template=template("web:1"), updateStrategy=FIRST).settle()
    assert life.complete
    assert not life.status.get("pulling")


def test_what_does_not_run_does_not_wait_for_the_image_that_mends_it() -> None:
    life = begun()
    life.world.kubelet.levers.bad_images.add("web:bad")
    off = {"inPlaceUpdateStrategy": {"prePull": False}}
    life.begin_patch(template=template("web:bad"), updateStrategy=off).world.run(60)
    assert life.images() == "web:bad web:1 web:1 web:1 web:1"
    life.begin_patch(template=template("web:3"), updateStrategy=FIRST).world.run(SECONDS / 4)
    assert life.images() == "web:3 web:1 web:1 web:1 web:1"


def test_an_image_that_must_not_be_pulled_is_not_pulled() -> None:
    life = begun()
    never = {"container": {"imagePullPolicy": "Never"}}
    life.patch(template=template("web:1", **never))
    life.begin_patch(template=template("web:2", **never))
    while not life.complete:
        life.world.run(1)
        assert pullers(life) == {}


def test_a_restart_in_place_pulls_nothing() -> None:
    life = begun()
    asked = template("web:1", annotations={"apps.tkestack.io/restart-in-place": "now"})
    life.begin_patch(template=asked)
    while not life.complete:
        life.world.run(1)
        assert pullers(life) == {}


def test_pullers_that_cannot_end_on_lost_nodes_hold_up_nobody() -> None:
    life = begun(nodes=5, max_pullers=2)
    node = {number: life.pods[number]["spec"]["nodeName"] for number in range(5)}
    life.begin_patch(template=template("web:2"), updateStrategy={"maxUnavailable": 5})
    life.world.run(3)
    for lost in pullers(life):
        life.world.nodes.lose(lost)
    gone = [number for number in range(5) if node[number] in pullers(life)]
    life.world.run(600)
    images = life.images().split()
    assert [images[number] for number in range(5) if number not in gone] == ["web:2"] * 3


def test_the_label_of_pullers_reaches_no_instance() -> None:
    life = begun()
    pasted = {"app": "web", "apps.tkestack.io/puller": "true"}
    life.patch(template=template("web:1", labels=pasted))
    assert not any(is_puller(pod) for pod in life.world.list("Pod"))


def test_nothing_is_asked_of_a_node_that_is_not_heard_of() -> None:
    life = begun(nodes=1)
    life.world.nodes.lose(life.pods[0]["spec"]["nodeName"])
    life.world.run(120)
    life.begin_patch(template=template("web:2")).world.run(5)
    assert pullers(life) == {}
    assert not life.status.get("pulling")
