"""The output of `status`, `why` and `list`, for each state that the field knows."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from simulator.api.store import ForbiddenError
from simulator.objects.kinds import POD
from simulator.objects.objects import with_meta
from tests.plugin.standin import Document, StandIn, kubectl_tapp
from tests.plugin.sync_errors import tell_failures
from tests.scenarios.life import Life, example

GOLDENS = Path(__file__).parent / "golden"


def web(**spec: object) -> Document:
    """A TApp of four instances, some changed."""
    (document,) = example("same-template")
    return {
        **document,
        "metadata": {"name": "web"},
        "spec": {**document["spec"], "replicas": 4, **spec},
    }


def template(image: str = "nginx:1.28", **spec: object) -> Document:
    """A pod template."""
    return {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": image}], **spec},
    }


def calm(life: Life) -> None:
    """Everything runs."""


def stuck_image(life: Life) -> None:
    """A roll-out to an image that does not exist."""
    life.world.kubelet.levers.bad_images.add("nginx:typo")
    life.begin_patch(template=template("nginx:typo")).world.run(90)


def crashing(life: Life) -> None:
    """A new image whose container ends again and again."""
    life.world.kubelet.levers.crashing_images.add("nginx:bad")
    life.begin_patch(template=template("nginx:bad")).world.run(120)


def killed(life: Life) -> None:
    """One is stopped."""
    life.patch(statuses={"2": "Killed"})


def paused(life: Life) -> None:
    """Updates are paused in the middle of a change."""
    life.patch(template=template("nginx:1.29"), updateStrategy={"paused": True})


def typo(life: Life) -> None:
    """A template's name that leads nowhere, for one that runs and one that is new."""
    life.patch(templates={"1": "v2", "4": "v2"}, replicas=5)


def budget(life: Life) -> None:
    """A budget that is no number."""
    life.patch(template=template("nginx:1.29"), updateStrategy={"maxUnavailable": "many"})


def scaled_down(life: Life) -> None:
    """Pods of instances that are not wanted any more, on their way out."""
    life.begin_patch(replicas=2).world.run(0.5)


def recreated(life: Life) -> None:
    """A change that takes new pods, under way."""
    life.begin_patch(template=template(terminationGracePeriodSeconds=60)).world.run(1)


def silent(life: Life) -> None:
    """A node that is not heard of."""
    life.world.nodes.lose("node-1")
    life.world.run(60)


def unscheduled(life: Life) -> None:
    """No node takes the new pods."""
    life.world.kubelet.levers.unschedulable = lambda _pod: True
    life.begin_patch(replicas=6).world.run(90)


def evicted(life: Life) -> None:
    """Two were evicted; the second one by a kubelet that refuses each new pod, too."""
    life.world.kubelet.evict(life.world.get("Pod", "web-1"))
    life.world.kubelet.levers.refuses = lambda pod: pod["metadata"]["name"] == "web-2"
    life.world.delete("Pod", "web-2")
    life.world.run(6)


def stuck_terminating(life: Life) -> None:
    """A pod that is killed and does not go."""
    life.world.kubelet.levers.hangs_on_delete = lambda _pod: True
    life.begin_patch(statuses={"0": "Killed"}).world.run(300)


def ready_too_short(life: Life) -> None:
    """A new image that is Ready, and not for long enough."""
    life.begin_patch(template=template("nginx:1.29"), minReadySeconds=60).world.run(30)


def two_groups(life: Life) -> None:
    """A roll-out of two templates at once, each with its own budget."""
    life.patch(templatePool={"v2": template("nginx:1.28")}, templates={"2": "v2", "3": "v2"})
    force = {"forceUpdate": {"maxUnavailable": "25%"}}
    life.begin_patch(
        template=template("nginx:1.29"),
        templatePool={"v2": template("nginx:2.0")},
        updateStrategy={"maxUnavailable": 2, **force},
    ).world.run(0.5)


def unprobed(life: Life) -> None:
    """A new image whose readiness probe does not pass, and one whose startup probe does not."""
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
    """Pods whose readiness gates nobody opens, one with a reason."""
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
    tell_failures(life.world)

    def quota(operation: str, obj: Document) -> Document:
        if operation == "CREATE" and obj["kind"] == "Pod":
            words = "exceeded quota: few, requested: pods=1, used: pods=4, limited: pods=4"
            raise ForbiddenError(f'pods "{obj["metadata"]["name"]}" is forbidden: {words}')
        return obj

    life.world.cluster.admission.policies.append(quota)
    life.begin_patch(replicas=6).world.run(90)


def taken(life: Life) -> None:
    """New pods whose names others have."""
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
    """Some have run to their end, one of them badly."""
    life.settle()
    life.world.kubelet.finish(life.world.get("Pod", "work-0"))
    life.world.kubelet.finish(life.world.get("Pod", "work-3"), 1)
    life.world.run(2)


def draining(life: Life) -> None:
    """An instance on its way out of its Services, before it is updated in place."""
    life.settle()
    container = {**life.tapp["spec"]["template"]["spec"]["containers"][0], "image": "nginx:1.29"}
    spec = {**life.tapp["spec"]["template"]["spec"], "containers": [container]}
    life.begin_patch(template={**life.tapp["spec"]["template"], "spec": spec}).world.run(3)


def lost_node(life: Life) -> None:
    """A node is lost, and its instances are to start elsewhere."""
    life.settle()
    life.world.nodes.lose("node-1")
    life.world.run(60.3)


def volumes(life: Life) -> None:
    """A claim is still being deleted, and its pod waits for that."""
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
def test_what_is_shown_of_examples(
    path: str, state: Callable[[Life], None], update_golden: bool
) -> None:
    life = Life().begin(*example(path))
    state(life)
    compare(life, state, update_golden)


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_what_is_shown(state: Callable[[Life], None], update_golden: bool) -> None:
    life = Life().apply(web())
    state(life)
    compare(life, state, update_golden)


def compare(life: Life, state: Callable[[Life], None], update_golden: bool) -> None:
    """The goldens are the output, to be read by a person: `--update-golden` writes them anew."""
    standin = StandIn(life.world)
    shown = [f"# {state.__doc__}"]
    for verb in ("status", "why"):
        said = kubectl_tapp(standin, verb, life.name)
        assert (said.code, said.err) == (0, "")
        shown += ["", f"$ kubectl tapp {verb} {life.name}", *said.lines]
    assert standin.writes == []
    golden = GOLDENS / f"{state.__name__.replace('_', '-')}.txt"
    text = "\n".join(shown) + "\n"
    if update_golden:
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text, encoding="utf-8")
    assert golden.read_text(encoding="utf-8") == text


WORDS = "no node for its pod: Unschedulable (0/3 nodes are available: 3 Insufficient cpu.)"


@pytest.mark.parametrize("seconds", [5, 90])
def test_who_never_had_a_node_is_not_foretold_to_start(seconds: float) -> None:
    """Not by a new pod that asks for the same either, however short it has waited."""
    life = Life().apply(web())
    life.world.kubelet.levers.unschedulable = lambda _pod: True
    life.begin_patch(replicas=6).world.run(seconds)
    said = kubectl_tapp(StandIn(life.world), "plan", "web", "--restart")
    assert said.lines[0].endswith("and it gets stuck")
    assert f"  instances 4, 5: not available: {WORDS}" in said.lines


def test_a_new_pod_that_asks_for_less_may_find_a_node() -> None:
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
