"""Lost nodes: instances start on other nodes, unless most nodes seem to be lost.

Two instances are on the real node, two on fake ones. The real kubelet is stopped while its
containers continue to run.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from .app import App, tapp, template
from .cluster import Cluster
from .kube import Json
from .kubelet import FakeKubelet
from .metacontroller import USER
from .nodes import LABEL as FAKE
from .nodes import LIMIT, mobile
from .pods import is_ready
from .realnode.kubelet import LABEL as REAL
from .realnode.trial import Trial
from .realnode.workloads import Published, container, real_template

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
LOST = "apps.tkestack.io/lost-node"
SOON = 10.0
NODES = ("lost-0", "lost-1", "lost-2", "lost-3")
ON_REAL = (2, 3)
"""The instances on the real node. They have the highest numbers, so scaling down deletes them."""


def anti_affinity() -> Json:
    """Returns an anti-affinity that gives each pod its own node if there are enough nodes."""
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    return {"preferredDuringSchedulingIgnoredDuringExecution": preferred}


def expression(key: str, *values: str) -> Json:
    """Returns a term of a node selector for these values of a label, or for any value."""
    wanted = {"operator": "In", "values": list(values)} if values else {"operator": "Exists"}
    return {"matchExpressions": [{"key": key, **wanted}]}


def spread_tapp() -> Json:
    """Returns a TApp of four: 0 and 1 on fake nodes, 2 and 3 on the real node while it is
    available.
    """
    prefers = [{"weight": 100, "preference": expression(REAL)}]
    there = real_template(
        container(),
        nodeSelector={},
        tolerations=[{"key": REAL, "operator": "Exists"}],
        affinity={"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": prefers}},
    )
    elsewhere = real_template(
        container(),
        nodeSelector={FAKE: "true"},
        tolerations=[],
        affinity={"podAntiAffinity": anti_affinity()},
    )
    names = {str(number): "there" for number in ON_REAL}
    made = tapp(replicas=4, template=elsewhere, templatePool={"there": there}, templates=names)
    return mobile(made)


def nodes(app: App) -> dict[int, str]:
    """Returns the node of each pod by instance number; empty before the pod has a node."""
    return {number: pod["spec"].get("nodeName", "") for number, pod in app.pods.items()}


def is_terminating(pod: Json) -> bool:
    """Returns True if the pod is Terminating."""
    return "deletionTimestamp" in pod["metadata"]


@pytest.fixture
def moving(real: Trial) -> Trial:
    """The TApp of `spread_tapp`, complete and on its expected nodes."""
    app = real.app.apply(spread_tapp()).settle()
    placed = nodes(app)
    assert {placed[number] for number in ON_REAL} == {real.node.name}, placed
    assert len(set(placed.values())) == 3, placed
    real.witness.begin(app.namespace)
    return real


def silence(real: Trial) -> float:
    """Stops the kubelet, waits until none of its pods is Ready, and returns the time of the
    stop.
    """
    real.node.silence()
    stopped = time.monotonic()
    real.app.until(
        lambda: not any(map(real.ready, ON_REAL)), "no pod on the real node is Ready", 60
    )
    return stopped


def steps_on_lost_node(real: Trial, number: int, stopped: float) -> dict[str, float]:
    """Returns the steps of an instance on a lost node, in seconds since the kubelet was stopped."""
    published = real.history.of(f"web-{number}")
    old = published[0].pod["metadata"]["uid"]
    mine = [each for each in published if each.pod["metadata"]["uid"] == old]
    later = [each for each in published if each.pod["metadata"]["uid"] != old]
    after = stopped - real.history.begun
    steps: dict[str, list[Published]] = {
        "silent": [each for each in mine if each.seconds > after and not is_ready(each.pod)],
        "marked": [
            each for each in mine if LOST in (each.pod["metadata"].get("annotations") or {})
        ],
        "Failed": [each for each in mine if each.pod["status"]["phase"] == "Failed"],
        "gone": [each for each in mine if each.change == "DELETED"],
        "created": later,
        "Ready": [each for each in later if is_ready(each.pod)],
    }
    assert all(steps.values()), (steps.keys(), str(real.history))
    first = {step: versions[0].seconds - after for step, versions in steps.items()}
    early = [
        each
        for each in mine
        if is_terminating(each.pod) and each.pod["status"]["phase"] != "Failed"
    ]
    assert early == [], "it was deleted before it was marked Failed"
    return first


def test_instances_move_from_a_lost_node(moving: Trial, cluster: Cluster, note: list[str]) -> None:
    """The instances leave within seconds of the limit.

    When the node returns, its kubelet ends the old containers.
    """
    app = moving.app
    born = app.uids()
    stopped = silence(moving)
    app.until(
        lambda: moving.node.name not in nodes(app).values(),
        "no pod is on the lost node",
        LIMIT + 30,
    )
    app.settle()
    for number in ON_REAL:
        when = steps_on_lost_node(moving, number, stopped)
        note.append(
            f"web-{number} on a lost node: "
            + ", ".join(f"{step} {seconds:.1f} s" for step, seconds in when.items())
        )
        assert when["marked"] - when["silent"] >= LIMIT - 1, when
        assert when["created"] - when["silent"] <= LIMIT + SOON, when
        assert list(when.values()) == sorted(when.values()), when
    now = app.uids()
    assert [number for number in now if now[number] != born[number]] == list(ON_REAL)
    left = {each.pod for each in moving.witness.now(app.namespace)}
    assert left == {f"web-{number}" for number in ON_REAL}, "nobody could stop them"
    mark = cluster.audit.mark() if cluster.audit else 0
    moving.node.rest()
    app.until(lambda: not moving.witness.now(app.namespace), "the old containers end", 60)
    moving.wait(5)
    assert app.uids() == now
    assert set(app.restarts().values()) == {0}
    if cluster.audit:
        assert cluster.audit.writes(mark, namespace=app.namespace, user=USER) == []


@pytest.mark.parametrize("how", ["kill", "scale down", "delete"])
def test_deletion_of_instances_on_a_lost_node_completes(moving: Trial, how: str) -> None:
    """No kubelet confirms the deletion, so the service sets the pod to Failed first."""
    app = moving.app
    silence(moving)
    if how == "kill":
        app.patch(statuses={"3": "Killed"})
        app.until(lambda: app.statuses.endswith(" Killed"), "instance 3 is killed", LIMIT + 30)
    elif how == "scale down":
        app.patch(replicas=2)
    else:
        app.delete()
    app.until(
        lambda: moving.node.name not in nodes(app).values(),
        "no pod is on the lost node",
        LIMIT + 30,
    )
    if how != "delete":
        app.settle()
    assert sorted(app.pods) == {"kill": [0, 1, 2], "scale down": [0, 1], "delete": []}[how]
    assert not any(map(is_terminating, app.pods.values()))
    moving.node.rest()
    app.until(lambda: not moving.witness.now(app.namespace), "the old containers end", 60)


def has_other_taints(app: App, node: str) -> bool:
    """Returns True if the node has a taint in addition to that of all fake nodes, as a new node has
    for a while.
    """
    taints = app.kube.get("v1", "nodes", None, node)["spec"].get("taints") or []
    return [each["key"] for each in taints] != [FAKE]


@pytest.fixture
def kubelets(cluster: Cluster, app: App) -> Iterator[FakeKubelet]:
    """Four additional fake nodes for one TApp, which is deleted before them."""
    with FakeKubelet(cluster.kubeconfig, NODES, context=cluster.context, tainted=True) as made:
        app.until(
            lambda: not any(has_other_taints(app, node) for node in NODES),
            "the nodes have no further taints",
        )
        yield made
        for node in sorted(made.nodes.lost):
            made.recover(node)
        app.delete()
        app.until(lambda: not app.pods, "its pods are gone")
        assert not made.failures, made.failures


def test_instances_stay_while_most_nodes_are_silent(app: App, kubelets: FakeKubelet) -> None:
    """A broken network is more likely.

    The service acts as soon as half of the nodes report again.
    """
    required = {"nodeSelectorTerms": [expression("kubernetes.io/hostname", *NODES)]}
    affinity = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required},
        "podAntiAffinity": anti_affinity(),
    }
    spec = template(tolerations=[{"key": FAKE, "operator": "Exists"}], affinity=affinity)
    app.apply(mobile(tapp(replicas=4, template=spec))).settle()
    placed, born = nodes(app), app.uids()
    assert sorted(placed.values()) == sorted(NODES)
    for number in (1, 2, 3):
        kubelets.lose(placed[number])
    app.until(lambda: sum(map(is_ready, app.pods.values())) == 1, "three are silent", 60)
    app.until(
        lambda: "3 of 4" in app.condition("Degraded"), "the condition reports the silent nodes", 120
    )
    time.sleep(LIMIT + SOON)
    assert app.uids() == born
    assert app.condition("Degraded").startswith("True ")
    assert not any(map(is_terminating, app.pods.values()))
    kubelets.recover(placed[1])
    app.until(
        lambda: len(set(app.uids().values()) - set(born.values())) == 2, "two instances move", 60
    )
    app.settle()
    now = app.uids()
    assert [number for number in now if now[number] == born[number]] == [0, 1]
    assert set(nodes(app).values()) <= {placed[0], placed[1]}
    for number in (2, 3):
        kubelets.recover(placed[number])
    app.quiet()
    time.sleep(3)
    assert app.uids() == now
    assert "3 of 4" not in app.condition("Degraded")
