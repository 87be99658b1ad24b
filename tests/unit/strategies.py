"""Draws random TApps for the property tests: specs that users might write, and pods in any state.

`worlds` is the entry point.
"""

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from simulator.api.admission import Policy
from tests import builders
from tests.builders import Document, tapp, template
from tests.holds import HOLD
from tests.policies import inject_sidecar
from tests.unit.world import World, with_spec

IMAGES = st.sampled_from(["nginx", "nginx:1", "nginx:2", "docker.io/library/nginx:1", "reg:5000/a"])
POLICIES = st.sampled_from([None, "Always", "OnFailure", "Never"])
BUDGETS: Any = st.sampled_from([None, 1, 2, 9, "1%", "34%", "100%", 0, "0%", "101%", "abc", -3])
MESH: Policy = inject_sidecar({"name": "mesh", "image": "mesh:9"})


@st.composite
def templates(draw: st.DrawFn, policy: str | None = None) -> Document:
    """Draws a pod template; most templates differ only in images and metadata.

    `policy` is the restart policy of its pods; None leaves the field out.
    """
    labels = draw(st.dictionaries(st.sampled_from(["app", "tier", "x.io/y"]), st.just("v")))
    notes = draw(st.none() | st.dictionaries(st.sampled_from(["a", "b"]), st.text(max_size=3)))
    side = st.fixed_dictionaries({"name": st.just("side"), "image": IMAGES})
    container = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "command": st.sampled_from([["a"], [], None]),
                "ports": st.sampled_from([[{"containerPort": 80}], []]),
                "env": st.sampled_from(
                    [[{"name": "A", "value": ""}], [{"name": "A", "value": "1"}] * 2]
                ),
                "resources": st.sampled_from(
                    [{}, {"limits": {"cpu": "1000m"}}, {"limits": {"cpu": 1}}]
                ),
            },
        )
    )
    spec: Document = {} if policy is None else {"restartPolicy": policy}
    if draw(st.booleans()):
        init = {"name": "init", "image": draw(IMAGES)}
        sidecar = {"name": "native", "image": draw(IMAGES), "restartPolicy": "Always"}
        spec["initContainers"] = draw(st.sampled_from([[init], [sidecar], [init, sidecar]]))
    if draw(st.booleans()):
        spec["tolerations"] = [{"key": "gpu", "operator": "Exists"}]
    sidecars = draw(st.lists(side, max_size=1))
    return template(
        draw(IMAGES),
        labels=labels,
        annotations=notes,
        container=container,
        sidecars=sidecars,
        **spec,
    )


@st.composite
def specs(draw: st.DrawFn, policy: str | None) -> Document:
    """Draws the spec of a TApp; some specs have an unknown template name or an invalid budget.

    `policy` is the restart policy of all templates; None leaves the field out.
    """
    names = st.sampled_from(["default", "v1", "v2", "typo"])
    ids = st.sampled_from(["0", "1", "2", "5", "x"])
    strategy: Document = {"paused": draw(st.sampled_from([False, False, False, True]))}
    budget, force, rolling = draw(BUDGETS), draw(BUDGETS), draw(st.none() | names)
    strategy |= {"template": rolling} if rolling else {}
    strategy |= {} if budget is None else {"maxUnavailable": budget}
    partition = draw(st.sampled_from([None, None, 0, 1, 3, "50%", "100%", "x", -1]))
    strategy |= {} if partition is None else {"partition": partition}
    strategy |= {} if force is None else {"forceUpdate": {"maxUnavailable": force}}
    return {
        "replicas": draw(st.integers(0, 5)),
        "template": draw(templates(policy)),
        "templatePool": {"v1": draw(templates(policy)), "v2": draw(templates(policy))},
        "templates": draw(st.dictionaries(ids, names, max_size=3)),
        "defaultTemplateName": draw(st.sampled_from(["default", "default", "v1", "", "typo"])),
        "statuses": draw(st.dictionaries(ids, st.sampled_from(["Killed", "Run"]), max_size=2)),
        "updateStrategy": strategy,
        "neverMigrate": draw(st.booleans()),
        "serviceName": draw(st.sampled_from(["", "svc"])),
        "podManagementPolicy": draw(st.sampled_from(["Parallel", "OrderedReady"])),
        "persistentVolumeClaimRetentionPolicy": {
            "whenScaled": draw(st.sampled_from(["Retain", "Delete"])),
            "whenDeleted": draw(st.sampled_from(["Retain", "Delete"])),
        },
        "volumeClaimTemplates": draw(st.sampled_from([[], [builders.claim_template()]])),
    }


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Draws a TApp that ran for a while, was edited, and has pods in any state."""
    policy = draw(POLICIES)
    spec = draw(specs(policy))
    policies = (MESH,) if draw(st.booleans()) else ()
    world = World(tapp(**spec), policies=policies, strip=draw(st.booleans()))
    for _ in range(draw(st.integers(0, 2))):
        world.sync()
        world.kubelet()
    world.parent = with_spec(world.parent, **draw(specs(policy)))
    for _ in range(draw(st.integers(0, 2))):
        world.sync()
    for name in list(world.pods):
        what = draw(st.sampled_from([*["same"] * 6, "gone", *HAPPENINGS]))
        if what == "gone":
            del world.pods[name]
        else:
            world.pods[name] = HAPPENINGS[what](world.pods[name])
    return world


def _drifted(pod: Document) -> Document:
    first, *others = pod["spec"]["containers"]
    return {**pod, "spec": {**pod["spec"], "containers": [{**first, "image": "debug:1"}, *others]}}


def _on_hold(pod: Document) -> Document:
    notes = {**(pod["metadata"].get("annotations") or {}), HOLD: "x"}
    return {**pod, "metadata": {**pod["metadata"], "annotations": notes}}


HAPPENINGS: dict[str, Callable[[Document], Document]] = {
    "same": lambda pod: pod,
    "pending": lambda pod: builders.in_phase(pod, "Pending"),
    "unknown": lambda pod: builders.in_phase(pod, "Unknown"),
    "not ready": lambda pod: builders.running(pod, ready=False),
    "crashing": builders.crashing,
    "succeeded": lambda pod: builders.completed(pod, "Succeeded"),
    "failed": lambda pod: builders.completed(pod, "Failed"),
    "refused": builders.refused,
    "terminating": builders.terminating,
    "terminating and failed": lambda pod: builders.terminating(builders.completed(pod, "Failed")),
    "no last-applied": builders.without_last_applied,
    "foreign drift": _drifted,
    "on hold": _on_hold,
}
"""Name -> a function that returns the pod after an event, for example after its containers have
crashed.
"""
