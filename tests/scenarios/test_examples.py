"""Tests that each example does what its comment promises, with exactly the expected writes."""

import json
import math
import sys
from datetime import datetime

from simulator.api.store import Event
from simulator.node.nodes import ZONE
from simulator.objects.clock import EPOCH
from tests.builders import storage_class
from tests.scenarios.example_steps import EVERY_STEP, STEPS, step_name
from tests.scenarios.life import Document, Life, each, example

HOLD, WANTED = "apps.tkestack.io/hold", "apps.tkestack.io/wanted"
EXPOSED = ("disruption-budget", "every-field", "service-each")
"""Examples that need the component services or disruption-budgets."""


def test_every_example_has_a_test_of_its_outcome() -> None:
    names = {step_name(path).partition("/")[0].replace("-", "_") for path in STEPS}
    module = vars(sys.modules[__name__])
    assert {name for name in names if f"test_{name}" not in module} == set()


@EVERY_STEP
def test_every_step_settles_and_causes_no_further_write(step: str) -> None:
    """Applies each step of an example in a new cluster; hours of resyncs afterwards write
    nothing.
    """
    life = Life(exposing=step in EXPOSED).apply(*tapp_of(step))
    assert life.complete
    life.writes()
    life.idle()
    assert life.news() == []


def tapp_of(step: str) -> list[Document]:
    """Returns the documents of a step whose kinds the simulator knows."""
    return [item for item in example(step) if item["kind"] in ("TApp", "Service")]


def test_disruption_budget() -> None:
    """The PodDisruptionBudget allows the eviction of one instance, whether or not instance 2 is
    killed, and none while an update has taken an instance down.
    """
    life = Life(exposing=True).apply(*example("disruption-budget"))
    assert life.statuses == "Running Running Killed Running Running"

    def least() -> int:
        (budget,) = life.world.list("PodDisruptionBudget")
        selected = budget["spec"]["selector"]["matchLabels"].items()
        assert all(selected <= pod["metadata"]["labels"].items() for pod in life.pods.values())
        number: int = budget["spec"]["minAvailable"]
        return number

    assert least() == 3
    assert life.status["readyReplicas"] == 4
    life.patch(statuses=None)
    assert least() == 4
    assert life.status["readyReplicas"] == 5
    life.delete()
    assert life.world.list("PodDisruptionBudget") == []


def test_failure_domains() -> None:
    """The pods of one zone are replaced at once, and a zone waits until the one before is
    available.
    """
    life = Life(zones=["a", "b", "c"])
    life.world.nodes.keeps_zones = True
    life.apply(*example("failure-domains"))
    before = {id: pod["metadata"]["labels"][ZONE] for id, pod in life.pods.items()}
    assert sorted(before.values()) == list("aabbcc")
    life.writes()
    deleted: list[str] = []

    def note(event: Event) -> None:
        if event.kind.name == "Pod" and event.new is None and event.old is not None:
            deleted.append(event.old["metadata"]["labels"][ZONE])
            ready = {
                pod["metadata"]["labels"].get(ZONE) for pod in life.pods.values() if serves(pod)
            }
            assert {"a", "b", "c"} - {deleted[-1]} <= ready

    life.world.watch(note)
    (container,) = life.tapp["spec"]["template"]["spec"]["containers"]
    spec = {
        **life.tapp["spec"]["template"]["spec"],
        "containers": [{**container, "command": ["x"]}],
    }
    life.patch(template={**life.tapp["spec"]["template"], "spec": spec})
    assert life.complete
    assert deleted == list("aabbcc")
    assert {id: pod["metadata"]["labels"][ZONE] for id, pod in life.pods.items()} == before


def serves(pod: Document) -> bool:
    """Returns True if a pod is Ready and is not being deleted."""
    found = {item["type"]: item["status"] for item in pod["status"].get("conditions", [])}
    return found.get("Ready") == "True" and "deletionTimestamp" not in pod["metadata"]


def test_automatic_rollback() -> None:
    """A rollout to a missing tag goes back, and a retry succeeds when the tag exists."""
    life = Life().apply(*example("automatic-rollback"))
    image, bad = "nginx:1.28", "nginx:no-such-tag"
    before = {id: pod["metadata"]["uid"] for id, pod in life.pods.items()}
    life.world.kubelet.levers.bad_images.add(bad)
    (container,) = life.tapp["spec"]["template"]["spec"]["containers"]
    template = life.tapp["spec"]["template"]
    edited = {**template, "spec": {"containers": [{**container, "image": bad}]}}
    life.patch(template=edited)
    life.world.run(300)
    assert {id: pod["metadata"]["uid"] for id, pod in life.pods.items()} == before
    images = {pod["spec"]["containers"][0]["image"] for pod in life.pods.values()}
    assert images == {image}
    assert life.condition("Stalled").startswith("True RolledBack")
    ((revision, note),) = life.status["rolledBack"].items()
    assert life.status["updateRevision"] == revision
    assert f"image {bad} cannot be pulled" in note
    assert life.tapp["spec"]["template"] == edited
    life.world.kubelet.levers.bad_images.clear()
    retry = {"apps.tkestack.io/retry": f"{revision}/{note.partition(': ')[0]}"}
    life.world.patch("TApp", "api", {"metadata": {"annotations": retry}})
    life.world.settle()
    assert life.complete
    images = {pod["spec"]["containers"][0]["image"] for pod in life.pods.values()}
    assert images == {bad}


def test_same_template() -> None:
    life = Life().apply(*example("same-template"))
    assert life.writes() == each("create Pod", "same-0", "same-1", "same-2")
    assert life.statuses == "Running Running Running"
    assert life.images() == "nginx:1.28 nginx:1.28 nginx:1.28"
    counts = {"replicas": 3, "readyReplicas": 3, "updatedReplicas": 3}
    assert life.status["templates"] == {"default": counts}
    assert life.status["availableReplicas"] == 3
    assert life.complete


def test_every_field() -> None:
    life = Life(exposing=True).apply(*example("every-field"))
    assert life.statuses == "Running Running Killed Running"
    assert life.images() == "nginx:1.28 nginx:1.28 nginx:1.29"
    ranges = [
        pod["spec"]["containers"][0].get("env", [{}])[-1].get("value") for pod in life.pods.values()
    ]
    assert ranges == ["a-m", "n-z", None]
    assert life.complete


def test_different_templates() -> None:
    life = Life().apply(*example("different-templates"))
    roles = [pod["metadata"]["labels"]["role"] for _, pod in sorted(life.pods.items())]
    assert roles == ["leader", "writer", "reader", "reader"]
    assert {name: item["replicas"] for name, item in life.status["templates"].items()} == {
        "default": 2,
        "leader": 1,
        "writer": 1,
    }
    life.writes()
    life.patch(templates={"3": "writer"})
    assert life.writes() == ["delete Pod mixed-3", "create Pod mixed-3"]
    assert life.pods[3]["metadata"]["labels"]["role"] == "writer"
    assert life.complete


def test_shards() -> None:
    life = Life().apply(*example("shards"))
    assert life.writes() == each("create Pod", *(f"shards-{id}" for id in range(4)))
    containers = [pod["spec"]["containers"][0] for _, pod in sorted(life.pods.items())]
    assert [each["env"][0]["value"] + each["env"][1]["value"] for each in containers] == [
        "0a-g", "1h-m", "2n-s", "3t-z",
    ]  # fmt: skip
    memory = [each["resources"]["requests"]["memory"] for each in containers]
    assert memory == ["64Mi", "64Mi", "64Mi", "128Mi"]
    assert all("$(SHARD) has $(RANGE)" in each["command"][2] for each in containers)
    life.patch(values={"1": {"range": "h-n"}})
    assert life.writes() == ["delete Pod shards-1", "create Pod shards-1"]
    assert life.complete


def test_service_each() -> None:
    life = Life(exposing=True).apply(*example("service-each"))
    names = ["room-0", "room-1", "room-2"]
    assert life.writes() == [*each("create Pod", *names), *each("create Service", *names)]
    ports = [item["spec"]["ports"][0]["nodePort"] for item in life.world.list("Service")]
    assert ports == [30_080, 30_081, 30_082]
    life.patch(statuses={"1": "Killed"})
    assert life.writes() == ["delete Pod room-1"]
    life.patch(replicas=1)
    assert life.writes() == [
        "delete Pod room-2", "delete Service room-1", "delete Service room-2",
    ]  # fmt: skip


def test_game_servers() -> None:
    life = Life().apply(*example("game-servers"))
    assert host_ports(life) == [7000, 7001, 7002]
    joined = [pod["metadata"]["annotations"]["example.com/join"] for pod in life.pods.values()]
    assert sorted(joined) == ["game-0:7000", "game-1:7001", "game-2:7002"]
    life.writes()
    life.patch(values={"2": {"port": "7012"}})
    assert life.writes() == ["delete Pod game-2", "create Pod game-2"]
    assert host_ports(life) == [7000, 7001, 7012]
    assert life.complete


def host_ports(life: Life) -> list[int]:
    pods = [pod for _, pod in sorted(life.pods.items())]
    return [pod["spec"]["containers"][0]["ports"][0]["hostPort"] for pod in pods]


def test_zones() -> None:
    life = Life().apply(*example("zones"))
    assert zones_of(life) == ["a", "a", "b"]
    life.writes()
    life.patch(values={"2": {"zone": "c"}})
    assert life.writes() == ["delete Pod zones-2", "create Pod zones-2"]
    assert zones_of(life) == ["a", "a", "c"]
    assert life.complete


def zones_of(life: Life) -> list[str]:
    rules = [pod["spec"]["affinity"]["nodeAffinity"] for _, pod in sorted(life.pods.items())]
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    return [rule[preferred][0]["preference"]["matchExpressions"][0]["values"][0] for rule in rules]


def test_update_chosen_instances() -> None:
    life = Life().apply(*example("update-chosen-instances/1-create"))
    born = life.uids()
    life.writes()
    life.apply(*example("update-chosen-instances/2-canary"))
    assert life.writes() == ["update Pod chosen-4"]
    assert life.images() == "nginx:1.28 nginx:1.28 nginx:1.28 nginx:1.28 nginx:1.29"
    life.apply(*example("update-chosen-instances/3-promote"))
    assert life.writes() == ["update Pod chosen-3"]
    assert life.images() == "nginx:1.28 nginx:1.28 nginx:1.28 nginx:1.29 nginx:1.29"
    life.apply(*example("update-chosen-instances/1-create"))
    assert life.writes() == each("update Pod", "chosen-3", "chosen-4")
    assert life.uids() == born
    assert life.restarts() == {0: 0, 1: 0, 2: 0, 3: 2, 4: 2}


def test_rolling_update() -> None:
    life = Life().apply(*example("rolling-update/1-create"))
    born = life.uids()
    life.writes()
    life.watch_readiness()
    life.apply(*example("rolling-update/2-update"))
    assert life.writes() == [f"update Pod rolling-{number}" for number in range(6)]
    assert life.images() == " ".join(["nginx:1.29"] * 6)
    assert life.uids() == born
    assert life.fewest_ready == 4
    assert life.complete


def test_rolling_update_percent() -> None:
    life = Life().apply(*example("rolling-update-percent/1-create"))
    born = life.uids()
    life.writes()
    life.watch_readiness()
    life.apply(*example("rolling-update-percent/2-update"))
    writes = life.writes()
    assert sorted(writes) == sorted(
        f"{verb} Pod percent-{number}" for number in range(5) for verb in ("delete", "create")
    )
    deleted = [write for write in writes if write.startswith("delete")]
    assert deleted == [f"delete Pod percent-{number}" for number in range(5)]
    assert life.fewest_ready == 3
    assert not set(life.uids().values()) & set(born.values())
    env = [pod["spec"]["containers"][0]["env"][0]["value"] for pod in life.pods.values()]
    assert env == ["hello"] * 5


def test_kill() -> None:
    life = Life().apply(*example("kill/1-create"))
    born, claims = life.uids(), life.claims()
    life.writes()
    life.apply(*example("kill/2-kill"))
    assert life.writes() == ["delete Pod mortal-1"]
    assert life.statuses == "Running Killed Running"
    assert life.status["appStatus"] == "Running"
    assert life.complete
    life.apply(*example("kill/3-start"))
    assert life.writes() == ["create Pod mortal-1"]
    assert life.statuses == "Running Running Running"
    assert life.claims() == claims
    assert [number for number, uid in life.uids().items() if uid != born[number]] == [1]


def test_scale() -> None:
    life = Life().apply(*example("scale/1-create"))
    assert life.writes() == each("create Pod", "flexible-0", "flexible-1")
    life.apply(*example("scale/2-up"))
    assert life.writes() == each("create Pod", "flexible-2", "flexible-3", "flexible-4")
    assert life.status["replicas"] == 5
    life.apply(*example("scale/3-down"))
    assert life.writes() == each(
        "delete Pod", "flexible-1", "flexible-2", "flexible-3", "flexible-4"
    )
    assert life.statuses == "Running"
    assert life.status["scaleLabelSelector"] == f"controller-uid={life.tapp['metadata']['uid']}"


def test_headless_service() -> None:
    life = Life().apply(*example("headless-service"))
    specs = [pod["spec"] for _, pod in sorted(life.pods.items())]
    assert [spec["hostname"] for spec in specs] == ["peers-0", "peers-1", "peers-2"]
    assert {spec["subdomain"] for spec in specs} == {
        life.world.list("Service")[0]["metadata"]["name"]
    }
    assert life.complete


def test_volumes() -> None:
    life = Life().apply(*example("volumes/1-create"))
    claims = [f"{name}-stored-{number}" for number in range(3) for name in ("cache", "data")]
    assert sorted(life.claims()) == sorted(claims)
    mounted = {volume["name"]: volume for volume in life.pods[2]["spec"]["volumes"]}
    assert mounted["data"]["persistentVolumeClaim"] == {"claimName": "data-stored-2"}
    life.writes()
    life.apply(*example("volumes/2-scale-down"))
    assert life.writes() == [
        "delete Pod stored-2",
        *each("delete Claim", "cache-stored-2", "data-stored-2"),
    ]
    kept = life.claims()
    life.delete()
    assert not life.exists
    assert life.claims() == kept
    assert sorted(kept) == ["cache-stored-0", "cache-stored-1", "data-stored-0", "data-stored-1"]


def test_growing_volumes() -> None:
    life = Life().apply(storage_class(default=True), *example("growing-volumes/1-create"))
    life.writes()
    life.apply(*example("growing-volumes/2-more"))
    assert sorted(life.writes()) == each("update Claim", "data-growing-0", "data-growing-1")
    assert life.restarts() == {0: 0, 1: 0}
    assert life.complete


def test_volume_attributes() -> None:
    life = Life().apply(storage_class(default=True), *tapp_of("volume-attributes/1-create"))
    life.writes()
    life.apply(*tapp_of("volume-attributes/2-faster"))
    names = "data-attributes-0", "data-attributes-1"
    assert sorted(life.writes()) == each("update Claim", *names)
    claims = life.world.list("PersistentVolumeClaim")
    assert [claim["status"]["currentVolumeAttributesClassName"] for claim in claims] == ["gold"] * 2
    assert life.restarts() == {0: 0, 1: 0}
    assert life.condition("ClaimsBeingModified") == ""
    assert life.complete


def test_configuration() -> None:
    life = Life().apply(*tapp_of("configuration/1-create"))
    born = life.uids()
    life.writes()
    life.watch_readiness()
    life.apply(*tapp_of("configuration/2-changed"))
    assert life.writes() == [f"update Pod configured-{number}" for number in range(3)]
    assert life.uids() == born
    assert life.restarts() == {0: 1, 1: 1, 2: 1}
    assert life.fewest_ready == 2
    assert life.complete


def test_unused_templates() -> None:
    """Plays the example without its admission policy, which only a real API server can run.

    The condition UnusedTemplates names the template until a user removes it.
    """
    life = Life().apply(*example("unused-templates/1-create"))
    assert life.images() == "nginx:1.27 nginx:1.29 nginx:1.28"
    assert life.condition("UnusedTemplates") == ""
    life.writes()
    life.apply(*example("unused-templates/2-unused"))
    assert life.writes() == ["update Pod tidy-0"]
    assert "no instance uses 'blue'" in life.condition("UnusedTemplates")
    assert life.condition("Degraded").startswith("False ")
    life.patch(templatePool={"blue": None})
    assert life.condition("UnusedTemplates") == ""
    assert life.writes() == []


def test_batch() -> None:
    life = Life()
    life.world.kubelet.levers.completes = lambda pod, _container: (
        5.0,
        int("exit 1" in pod["spec"]["containers"][0]["command"][-1]),
    )
    life.apply(*example("batch"))
    names = [f"work-{number}" for number in range(4)]
    writes = life.writes()
    assert writes[:4] == each("create Pod", *names)
    assert sorted(writes[4:]) == each("delete Pod", *names)
    assert life.statuses == "Succ Succ Succ Failed"
    assert life.status["appStatus"] == "Failed"
    assert life.condition("Degraded").startswith("True InstancesBroken")
    assert life.pods == {}
    life.idle()
    assert life.news() == []


def test_force_update() -> None:
    life = Life().apply(*example("force-update/1-create"))
    life.writes()
    life.watch_readiness()
    life.apply(*example("force-update/2-hotfix"))
    assert life.writes() == [f"update Pod forced-{number}" for number in range(6)]
    assert life.fewest_ready == 3
    assert list(life.status["templates"]) == ["hotfix"]


def test_hpa_for_tapp() -> None:
    """Plays the autoscaler, which writes `spec.replicas`; a later apply of the manifest keeps the
    number.
    """
    tapp, autoscaler = example("hpa-for-tapp")
    life = Life().apply(tapp)
    assert life.writes() == ["create Pod scaled-0"]
    target = {key: autoscaler["spec"]["scaleTargetRef"][key] for key in ("apiVersion", "kind")}
    assert target == {"apiVersion": life.tapp["apiVersion"], "kind": life.tapp["kind"]}
    life.patch(replicas=3)
    assert life.writes() == each("create Pod", "scaled-1", "scaled-2")
    life.apply(tapp)
    assert life.writes() == []


def test_hpa_to_zero() -> None:
    """Scales a TApp to zero and back; with zero replicas the TApp is Ready, because the spec asks
    for that.
    """
    tapp, autoscaler = example("hpa-to-zero")
    assert autoscaler["spec"]["minReplicas"] == 0
    assert "replicas" not in tapp["spec"]
    life = Life().apply(tapp)
    life.patch(replicas=0)
    assert life.writes() == ["create Pod worker-0", "delete Pod worker-0"]
    assert life.condition("Ready").startswith("True")
    life.patch(replicas=2)
    assert life.writes() == each("create Pod", "worker-0", "worker-1")


def test_gang() -> None:
    """All pods of the group are created together, and the template names the group.

    The simulator's API server drops the field, as a real one does if the feature gate is off. The
    field must not cause an update then.
    """
    group, tapp = example("gang")
    life = Life().apply(tapp)
    assert life.writes()[:4] == each("create Pod", *(f"trainer-{number}" for number in range(4)))
    named = tapp["spec"]["template"]["spec"]["schedulingGroup"]["podGroupName"]
    assert named == group["metadata"]["name"]
    least = group["spec"]["schedulingPolicy"]["gang"]["minCount"]
    assert least == tapp["spec"]["replicas"]
    assert life.condition("Ready").startswith("True")
    assert all("schedulingGroup" not in pod["spec"] for pod in life.pods.values())


def test_paused() -> None:
    life = Life().apply(*example("paused/1-create"))
    life.writes()
    life.apply(*example("paused/2-update-paused"))
    assert life.writes() == []
    assert life.condition("Progressing").startswith("False Paused")
    life.watch_readiness()
    before = life.world.clock.now
    life.apply(*example("paused/3-resume"))
    assert life.writes() == [f"update Pod careful-{number}" for number in range(4)]
    assert life.fewest_ready == 3
    assert life.world.clock.now - before > 4 * 10
    assert life.complete


GATE = "apps.tkestack.io/InPlaceUpdateReady"


def since(pod: Document, type: str, status: str) -> float:
    """Returns the time since when a pod's condition has this status, on the simulated clock.

    Returns infinity if the condition has another status or does not exist.
    """
    for found in pod["status"]["conditions"]:
        if (found["type"], found["status"]) == (type, status):
            return (
                datetime.fromisoformat(found["lastTransitionTime"]).timestamp() - EPOCH.timestamp()
            )
    return math.inf


def test_drain() -> None:
    """Updates the example's image: each pod is outside the Service for the grace period before its
    container restarts.
    """
    life = Life().apply(*example("drain"))
    born, names = life.uids(), ["served-0", "served-1", "served-2"]
    begun = life.writes()
    assert begun[:3] == each("create Pod", *names)
    assert sorted(begun[3:]) == each("status Pod", *names)  # as their kubelets have reported
    away: dict[str, float] = {}

    def note(event: Event) -> None:
        pod = event.object
        if event.kind.name == "Pod" and pod["spec"]["containers"][0]["image"] == "nginx:1.29":
            left = max(since(pod, GATE, "False"), since(pod, "Ready", "False"))
            away.setdefault(pod["metadata"]["name"], life.world.clock.now - left)

    life.world.watch(note)
    life.watch_readiness()
    spec = json.dumps(life.tapp["spec"]).replace("nginx:1.28", "nginx:1.29")
    life.patch(**json.loads(spec))
    assert list(away) == names
    assert all(5 <= seconds < 8 for seconds in away.values())
    steps = ("update", "status", "update", "status")
    assert life.writes() == [f"{verb} Pod {name}" for name in names for verb in steps]
    assert life.images() == " ".join(["nginx:1.29"] * 3)
    assert life.uids() == born
    assert life.fewest_ready == 2
    assert life.complete


def test_hold() -> None:
    """Updates pods on hold: each instance is updated when its program removes the hold, in that
    order.
    """
    life = Life().apply(*tapp_of("hold"))
    names, born = [f"arena-{id}" for id in range(4)], life.uids()

    def hold(id: int, text: str | None) -> None:
        life.world.patch("Pod", names[id], {"metadata": {"annotations": {HOLD: text}}})
        life.settle()

    for id in range(4):
        hold(id, "match 1")
    life.writes()
    container = {**life.tapp["spec"]["template"]["spec"]["containers"][0]}
    spec = {**life.tapp["spec"]["template"]["spec"], "containers": [container]}
    container["image"] = "python:3.14-alpine"
    life.patch(template={**life.tapp["spec"]["template"], "spec": spec})
    assert life.writes() == each("update Pod", *names)
    assert {pod["metadata"]["annotations"][WANTED] for pod in life.pods.values()} == {"Update"}
    assert life.tapp["status"]["held"] == "0-3"
    for id in (2, 0, 3, 1):
        hold(id, None)
        assert life.pods[id]["spec"]["containers"][0]["image"] == "python:3.14-alpine"
        assert WANTED not in life.pods[id]["metadata"]["annotations"]
    assert life.uids() == born
    assert life.complete


def test_lost_node() -> None:
    """Loses a node: after a minute its instance runs on another node, and the other instances
    stay.
    """
    life = Life().apply(*example("lost-node"))
    born = life.uids()
    nodes = {number: pod["spec"]["nodeName"] for number, pod in life.pods.items()}
    assert len(set(nodes.values())) == 3
    life.writes()
    began = life.world.clock.now
    life.world.nodes.lose(nodes[1])
    life.until(lambda: life.uids().get(1) not in (None, born[1]))
    verbs = ("update", "status", "delete", "create")
    assert life.writes() == [f"{verb} Pod mobile-1" for verb in verbs]
    assert 60 <= life.world.clock.now - began < 70
    life.settle()
    assert life.pods[1]["spec"]["nodeName"] != nodes[1]
    assert [number for number, uid in life.uids().items() if uid != born[number]] == [1]
    assert life.complete
