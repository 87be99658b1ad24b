"""Tests the output of `status`, `why` and `list` for TApps in many states, against golden files.

Each function of `STATES` brings a TApp into a state; its golden file quotes its docstring.
"""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from simulator.api.store import ForbiddenError
from simulator.objects.kinds import POD
from simulator.objects.objects import with_meta
from tests.plugin.fake_kubectl import Document, StandIn, kubectl_tapp
from tests.plugin.states import calm, crashing, stuck_image, template, web
from tests.plugin.sync_errors import record_failures
from tests.scenarios.life import Life, example

GOLDENS = Path(__file__).parent / "golden"


def killed(life: Life) -> None:
    """A killed instance."""
    life.patch(statuses={"2": "Killed"})


def paused(life: Life) -> None:
    """Updates that were paused during a rollout."""
    life.patch(template=template("nginx:1.29"), updateStrategy={"paused": True})


def typo(life: Life) -> None:
    """An unknown template name, for a running and a new instance."""
    life.patch(templates={"1": "v2", "4": "v2"}, replicas=5)


def budget(life: Life) -> None:
    """A budget that is not a number."""
    life.patch(template=template("nginx:1.29"), updateStrategy={"maxUnavailable": "many"})


def scaled_down(life: Life) -> None:
    """Pods that terminate after a scale-down."""
    life.begin_patch(replicas=2).world.run(0.5)


def recreated(life: Life) -> None:
    """A change that recreates pods, in progress."""
    life.begin_patch(template=template(terminationGracePeriodSeconds=60)).world.run(1)


def silent(life: Life) -> None:
    """A node without heartbeats."""
    life.world.nodes.lose("node-1")
    life.world.run(60)


def unscheduled(life: Life) -> None:
    """Pods without a suitable node."""
    life.world.kubelet.levers.unschedulable = lambda _pod: True
    life.begin_patch(replicas=6).world.run(90)


def evicted(life: Life) -> None:
    """Two evicted instances; the kubelet of the second one refuses new pods, too."""
    life.world.kubelet.evict(life.world.get("Pod", "web-1"))
    life.world.kubelet.levers.refuses = lambda pod: pod["metadata"]["name"] == "web-2"
    life.world.delete("Pod", "web-2")
    life.world.run(6)


def stuck_terminating(life: Life) -> None:
    """A killed pod that does not terminate."""
    life.world.kubelet.levers.hangs_on_delete = lambda _pod: True
    life.begin_patch(statuses={"0": "Killed"}).world.run(300)


def ready_too_short(life: Life) -> None:
    """A new image that is Ready, but for less than minReadySeconds."""
    life.begin_patch(template=template("nginx:1.29"), minReadySeconds=60).world.run(30)


def two_groups(life: Life) -> None:
    """Concurrent rollouts of two templates, each with its own budget."""
    life.patch(templatePool={"v2": template("nginx:1.28")}, templates={"2": "v2", "3": "v2"})
    force = {"forceUpdate": {"maxUnavailable": "25%"}}
    life.begin_patch(
        template=template("nginx:1.29"),
        templatePool={"v2": template("nginx:2.0")},
        updateStrategy={"maxUnavailable": 2, **force},
    ).world.run(0.5)


def unprobed(life: Life) -> None:
    """A new image with failing readiness probes, and one with failing startup probes."""
    life.world.kubelet.levers.unready_images |= {"nginx:slow", "nginx:deaf"}
    probe = {"httpGet": {"path": "/", "port": 80}}
    bodies = {
        "slow": {"name": "web", "image": "nginx:slow", "readinessProbe": probe},
        "deaf": {"name": "web", "image": "nginx:deaf", "startupProbe": probe},
    }
    life.begin_patch(
        templatePool={name: template(containers=[body]) for name, body in bodies.items()},
        templates={"1": "slow", "3": "deaf"},
        updateStrategy={"forceUpdate": {"maxUnavailable": 2}},
    ).world.run(60)


def gated(life: Life) -> None:
    """Pods with readiness gates that are not set; one has a reason."""
    gates = [{"conditionType": "example.com/balanced"}]
    life.begin_patch(
        templatePool={"gated": template(readinessGates=gates)},
        templates={"0": "gated", "2": "gated"},
        updateStrategy={"forceUpdate": {"maxUnavailable": 2}},
    ).world.run(60)
    shut = {"type": gates[0]["conditionType"], "status": "False"}
    words = {"reason": "NotRegistered", "message": "target is not in the load balancer"}
    pod = life.world.get("Pod", "web-2")
    conditions = [*pod["status"]["conditions"], {**shut, **words}]
    life.world.cluster.update_status(
        POD, {**pod, "status": {**pod["status"], "conditions": conditions}}
    )
    life.world.run(5)


def over_quota(life: Life) -> None:
    """New pods that the API server refuses."""
    record_failures(life.world)

    def quota(operation: str, obj: Document) -> Document:
        if operation == "CREATE" and obj["kind"] == "Pod":
            words = "exceeded quota: few, requested: pods=1, used: pods=4, limited: pods=4"
            raise ForbiddenError(f'pods "{obj["metadata"]["name"]}" is forbidden: {words}')
        return obj

    life.world.cluster.admission.policies.append(quota)
    life.begin_patch(replicas=6).world.run(90)


def taken(life: Life) -> None:
    """New pods whose names are taken."""
    for id, labels in ((4, {}), (5, {"controller-uid": "of-an-earlier-web"})):
        metadata = {"name": f"web-{id}", "namespace": "default", "labels": labels}
        document = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
        life.world.cluster.create(POD, {**document, "spec": template()["spec"]})
    life.begin_patch(replicas=6).world.run(90)


STATES: list[Callable[[Life], None]] = [
    calm, stuck_image, crashing, killed, paused, typo, budget, scaled_down, recreated, silent,
    unscheduled, evicted, stuck_terminating, ready_too_short, two_groups,
    unprobed, gated, over_quota, taken,
]  # fmt: skip


def batch(life: Life) -> None:
    """Instances that have finished; one failed."""
    life.settle()
    life.world.kubelet.finish(life.world.get("Pod", "work-0"))
    life.world.kubelet.finish(life.world.get("Pod", "work-3"), 1)
    life.world.run(2)


def draining(life: Life) -> None:
    """An instance that leaves its Services before an in-place update."""
    life.settle()
    container = {**life.tapp["spec"]["template"]["spec"]["containers"][0], "image": "nginx:1.29"}
    spec = {**life.tapp["spec"]["template"]["spec"], "containers": [container]}
    life.begin_patch(template={**life.tapp["spec"]["template"], "spec": spec}).world.run(3)


def lost_node(life: Life) -> None:
    """A lost node, whose instances may start on other nodes."""
    life.settle()
    life.world.nodes.lose("node-1")
    life.world.run(60.3)


def volumes(life: Life) -> None:
    """A claim in deletion, for which a pod has to wait."""
    life.settle()
    (claim, *_) = life.world.list("PersistentVolumeClaim")
    kind = life.world.kinds.find("PersistentVolumeClaim")
    keep = with_meta(claim, finalizers=["example.com/backup"])
    life.world.cluster.edit(kind, claim, lambda _: keep)
    life.world.delete("PersistentVolumeClaim", claim["metadata"]["name"])
    life.world.delete("Pod", f"{life.name}-0")
    life.world.run(60)


EXAMPLES = [
    ("batch", batch), ("drain", draining), ("lost-node", lost_node), ("volumes/1-create", volumes),
]  # fmt: skip


@pytest.mark.parametrize(("path", "state"), EXAMPLES, ids=[path for path, _ in EXAMPLES])
def test_output_for_the_example_is_the_golden_file(
    path: str, state: Callable[[Life], None], update_golden: bool
) -> None:
    life = Life().begin(*example(path))
    state(life)
    compare(life, state, update_golden)


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_output_for_the_state_is_the_golden_file(
    state: Callable[[Life], None], update_golden: bool
) -> None:
    life = Life().apply(web())
    state(life)
    compare(life, state, update_golden)


def compare(life: Life, state: Callable[[Life], None], update_golden: bool) -> None:
    """Compares the output for a TApp in a state with its golden file, or writes the file.

    With `--update-golden` the file is written. `state` is the function whose name and docstring the
    file has.
    """
    standin = StandIn(life.world)
    shown = [f"# {state.__doc__}"]
    for verb in ("status", "why"):
        said = kubectl_tapp(standin, verb, life.name)
        assert said.err == ""
        assert said.code == 0
        shown += ["", f"$ kubectl tapp {verb} {life.name}", *said.lines]
    assert standin.writes == []
    golden = GOLDENS / f"{state.__name__.replace('_', '-')}.txt"
    text = "\n".join(shown) + "\n"
    if update_golden:
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text, encoding="utf-8")
    assert golden.read_text(encoding="utf-8") == text


WORDS = "its pod has no node yet: Unschedulable (0/3 nodes are available: 3 Insufficient cpu.)"


@pytest.mark.parametrize("seconds", [5, 90])
def test_plan_expects_new_pods_of_unschedulable_instances_to_be_unschedulable(
    seconds: float,
) -> None:
    """Plans a restart while two instances have no node: the forecast expects that their new pods
    have no node, too.

    This holds even if the instances have waited only for a moment.
    """
    life = Life().apply(web())
    life.world.kubelet.levers.unschedulable = lambda _pod: True
    life.begin_patch(replicas=6).world.run(seconds)
    said = kubectl_tapp(StandIn(life.world), "plan", "web", "--restart")
    assert said.lines[0].endswith("and the rollout gets stuck")
    assert f"  each of instances 4, 5: not available: {WORDS}" in said.lines


def test_plan_expects_that_a_pod_with_smaller_requests_may_find_a_node() -> None:
    asked = {"resources": {"requests": {"cpu": "1000m"}}}
    life = Life().apply(web(template=template(containers=[{"name": "web", "image": "a", **asked}])))
    life.world.kubelet.levers.unschedulable = lambda _pod: True
    life.begin_patch(replicas=6).world.run(90)
    standin = StandIn(life.world)
    assert WORDS in kubectl_tapp(standin, "plan", "web", "--restart").out
    asked["resources"]["requests"]["cpu"] = "500m"
    less = template(containers=[{"name": "web", "image": "a", **asked}])
    edited = {**life.tapp, "spec": {**life.tapp["spec"], "template": less}}
    said = kubectl_tapp(standin, "plan", "-f", "-", stdin=json.dumps(edited))
    assert said.lines[0].startswith("TApp default/web: 6 recreated, in about ")
