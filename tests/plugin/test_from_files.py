"""Tests that a plan from two files has the same forecast as a plan of the TApp in a cluster.

A plan from files assumes a cluster that has all components; the cluster of these tests has them.
"""

import json
import re
from collections.abc import Callable
from functools import cache
from itertools import pairwise, permutations, product
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_tapp.forecast import assumed, foresee
from kubectl_tapp.forecast.timing import Timing
from simulator.metacontroller.hook_client import WsgiHook
from simulator.objects.objects import with_meta
from simulator.world import World
from tests.builders import claim_template, manifest, template
from tests.plugin.fake_kubectl import Said, StandIn, kubectl_tapp
from tests.scenarios.life import EXAMPLES, Life, registration
from tests.sizes import cases

Document = dict[str, Any]
Edit = Callable[[int], tuple[Document, Document]]
SIZES = (1, 2, 3, 6, 12)
REVISION = re.compile(r"(?<=web)-(?:pull-x)?[0-9a-f]{10}(?=\")")
AT = "2026-01-05T12:00:00Z"


def pod(image: str = "web:1", **more: Any) -> Document:
    """Returns a pod template with the container image `image`; all edits of this file are based on
    it.

    `more` are further arguments of `template`.
    """
    return template(image, terminationGracePeriodSeconds=5, **more)


def rolling(**strategy: Any) -> Document:
    """Returns a spec with a budget of 40%, and further fields of the update strategy."""
    return {"updateStrategy": {"maxUnavailable": "40%", **strategy}}


def in_place(**strategy: Any) -> Document:
    """Returns a spec with these fields of `inPlaceUpdateStrategy`."""
    return rolling(inPlaceUpdateStrategy=strategy)


def asking(cpu: str) -> Document:
    """Returns the part of a container that requests this amount of cpu."""
    return {"resources": {"requests": {"cpu": cpu}, "limits": {"cpu": cpu}}}


def annotated(key: str) -> Document:
    """Returns a pod template with the annotation `key`, which requests a restart."""
    return pod(annotations={key: AT})


def mounting(*names: str) -> Document:
    """Returns a pod template whose container mounts the claims with these names."""
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in names]
    return pod(container={"volumeMounts": mounts})


def storing(**sizes: str) -> Document:
    """Returns a spec with claim templates and a pod template that mounts them; `sizes` maps names
    to sizes.
    """
    claims = [claim_template(name, size) for name, size in sizes.items()]
    return {"template": mounting(*sizes), "volumeClaimTemplates": claims}


def of_class(name: str) -> Document:
    """Returns a spec with a claim template of this VolumeAttributesClass, which a pod mounts."""
    spec = storing(data="1Gi")
    spec["volumeClaimTemplates"][0]["spec"]["volumeAttributesClassName"] = name
    return spec


def valued(text: str, count: int) -> Document:
    """Returns a spec with a value for each of `count` instances, and a pod template that reads the
    value.
    """
    env = [{"name": "KEY", "value": "$(tapp.values.key)"}]
    values = {str(id): {"key": f"{text}{id}"} for id in range(count)}
    return {"template": pod(container={"env": env}), "values": values}


NEW = {"template": pod("web:2")}
POOL = {"templatePool": {"blue": pod("web:3")}}
SERVICES = {"serviceTemplate": {"spec": {"ports": [{"name": "web", "port": 80}]}}}
GUARDED = {"disruptionBudget": {"maxUnavailable": 1}}
ENDED = {"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"}}
PROBED = {"readinessProbe": {"tcpSocket": {"port": 80}}}
GATES = [{"conditionType": "apps.tkestack.io/InPlaceUpdateReady"}]

EDITS: dict[str, Edit] = {
    "nothing": lambda _: ({}, {}),
    "more instances": lambda n: ({}, {"replicas": n + 2}),
    "many more": lambda n: ({}, {"replicas": 2 * n + 1}),
    "none at all": lambda _: ({}, {"replicas": 0}),
    "fewer instances": lambda n: ({}, {"replicas": n - 1}),
    "fewer, and their claims": lambda n: (
        storing(data="1Gi") | ENDED, storing(data="1Gi") | ENDED | {"replicas": n - 1}
    ),
    "more, with claims": lambda n: (storing(data="1Gi"), storing(data="1Gi") | {"replicas": n + 1}),
    "kill": lambda n: ({}, {"statuses": {str(n - 1): "Killed"}}),
    "start": lambda n: ({"statuses": {str(n - 1): "Killed"}}, {}),
    "an image": lambda _: (rolling(), rolling() | NEW),
    "an image, one at a time": lambda _: ({}, NEW),
    "an image, all at once": lambda _: (
        rolling(maxUnavailable="100%"), rolling(maxUnavailable="100%") | NEW
    ),
    "an image, the last first": lambda _: (
        rolling(order="Descending"), rolling(order="Descending") | NEW
    ),
    "an image and more instances": lambda n: ({}, NEW | {"replicas": n + 1}),
    "an image and fewer instances": lambda n: ({}, NEW | {"replicas": n - 1}),
    "one of two images": lambda _: (
        {"template": pod(sidecars=[{"name": "log", "image": "log:1"}])},
        {"template": pod(sidecars=[{"name": "log", "image": "log:2"}])},
    ),
    "an image with a probe": lambda _: (
        {"template": pod(container=PROBED)}, {"template": pod("web:2", container=PROBED)}
    ),
    "an image and minReadySeconds": lambda _: (
        rolling() | {"minReadySeconds": 7}, rolling() | {"minReadySeconds": 7} | NEW
    ),
    "a drain before it": lambda _: (
        in_place(gracePeriodSeconds=4) | {"template": pod(readinessGates=GATES)},
        in_place(gracePeriodSeconds=4) | {"template": pod("web:2", readinessGates=GATES)},
    ),
    "an image that is pulled first": lambda _: (
        in_place(prePull=True), in_place(prePull=True) | NEW
    ),
    "images pulled from now on": lambda _: (rolling(), in_place(prePull=True) | NEW),
    "a restart": lambda _: (
        rolling(), rolling() | {"template": annotated("kubectl.kubernetes.io/restartedAt")}
    ),
    "a restart in place": lambda _: (
        rolling(), rolling() | {"template": annotated("apps.tkestack.io/restart-in-place")}
    ),
    "a variable": lambda _: (
        rolling(),
        rolling() | {"template": pod(container={"env": [{"name": "LEVEL", "value": "debug"}]})},
    ),
    "a label": lambda _: (
        rolling(), rolling() | {"template": pod(labels={"app": "web", "tier": "front"})}
    ),
    "a grace period": lambda _: (
        rolling(), rolling() | {"template": template("web:1", terminationGracePeriodSeconds=9)}
    ),
    "a claim is added": lambda _: (
        rolling() | storing(data="1Gi"), rolling() | storing(data="1Gi", logs="1Gi")
    ),
    "the first claim": lambda _: (rolling(), rolling() | storing(data="1Gi")),
    "a claim grows": lambda _: (storing(data="1Gi", logs="1Gi"), storing(data="2Gi", logs="1Gi")),
    "a claim gets another class": lambda _: (storing(data="1Gi"), of_class("gold")),
    "a claim shrinks": lambda _: (storing(data="2Gi"), storing(data="1Gi")),
    "a claim template goes": lambda _: (
        storing(data="1Gi", logs="1Gi"), storing(data="1Gi")
    ),
    "another template for one": lambda n: (POOL, POOL | {"templates": {str(n - 1): "blue"}}),
    "a template that is new": lambda _: ({}, POOL | {"templates": {"0": "blue"}}),
    "a template that is not there": lambda _: ({}, {"templates": {"0": "bleu"}}),
    "a canary ends": lambda _: (POOL | {"templates": {"0": "blue"}}, POOL),
    "a canary is promoted": lambda _: (
        POOL | {"templates": {"0": "blue"}}, POOL | {"template": pod("web:3")}
    ),
    "a forced update": lambda n: (
        POOL | {"templates": {str(id): "blue" for id in range(n)}},
        {"templatePool": {"blue": pod("web:4")}, "templates": {str(id): "blue" for id in range(n)}}
        | rolling(forceUpdate={"maxUnavailable": "100%"}),
    ),
    "an unused template": lambda _: ({}, POOL),
    "a partition": lambda n: (rolling(), rolling(partition=n - 1) | NEW),
    "a partition in percent": lambda _: (rolling(), rolling(partition="50%") | NEW),
    "a partition ends": lambda n: (rolling(partition=n - 1), rolling() | NEW),
    "a pause": lambda _: (rolling(), rolling(paused=True) | NEW),
    "no pause any more": lambda _: (rolling(paused=True), rolling() | NEW),
    "values": lambda n: (valued("a", n), valued("b", n)),
    "a value of one": lambda n: (
        valued("a", n), valued("a", n) | {"values": valued("a", n)["values"] | {"0": {"key": "z"}}}
    ),
    "a value that is missing": lambda n: (valued("a", n), valued("a", n) | {"replicas": n + 1}),
    "a Service's name": lambda _: ({"serviceName": "one"}, {"serviceName": "two"}),
    "the first Service's name": lambda _: (rolling(), rolling() | {"serviceName": "one"}),
    "ordered": lambda n: (
        {"podManagementPolicy": "OrderedReady"},
        {"podManagementPolicy": "OrderedReady", "replicas": n + 2},
    ),
    "ordered, fewer": lambda _: (
        {"podManagementPolicy": "OrderedReady"},
        {"podManagementPolicy": "OrderedReady", "replicas": 0},
    ),
    "ordered, an image": lambda _: (
        {"podManagementPolicy": "OrderedReady"}, {"podManagementPolicy": "OrderedReady"} | NEW
    ),
    "Services": lambda _: (rolling(), rolling() | SERVICES),
    "Services for more": lambda n: (SERVICES, SERVICES | {"replicas": n + 1}),
    "no Services any more": lambda _: (SERVICES, {}),
    "a budget of evictions": lambda _: (rolling(), rolling() | GUARDED),
    "evictions beside fewer": lambda n: (GUARDED, GUARDED | {"replicas": n - 1}),
    "no budget of evictions": lambda _: (GUARDED, {}),
    "resources": lambda _: (
        rolling() | {"template": pod(container=asking("1"))},
        rolling() | {"template": pod(container=asking("2"))},
    ),
    "resources in place": lambda _: (
        in_place(resources="InPlace") | {"template": pod(container=asking("1"))},
        in_place(resources="InPlace") | {"template": pod(container=asking("2"))},
    ),
    "resources that are left to others": lambda _: (
        in_place(resources="Ignore") | {"template": pod(container=asking("1"))},
        in_place(resources="Ignore") | {"template": pod(container=asking("2"))},
    ),
    "an init container": lambda _: (
        rolling(),
        rolling() | {"template": pod(initContainers=[{"name": "first", "image": "first:1"}])},
    ),
    "a budget that is none": lambda _: ({}, NEW | rolling(maxUnavailable="many")),
    "a claim that is mounted and gone": lambda _: (
        storing(data="1Gi"), {"template": mounting("data")}
    ),
    "a mount of nothing": lambda _: (rolling(), rolling() | {"template": mounting("data")}),
}  # fmt: skip


def edited(edit: str, count: int) -> tuple[Document, Document]:
    """Returns the TApp before and after the edit with this name in `EDITS`, for `count`
    instances.
    """
    basis = {"replicas": count, "template": pod()}
    before, after = EDITS[edit](count)
    return manifest(**{**basis, **before}), manifest(**{**basis, **after})


NOW = 7200.0
"""The time of both plans, in simulated seconds: a whole one, as times in objects are."""


@cache
def running(written: str) -> StandIn:
    """Returns a fake kubectl for a cluster with all components, in which this TApp has run for two
    hours.

    `written` is the TApp as YAML.
    """
    life = Life(nodes=1, exposing=True, resize=True)
    world, behaviour = life.world, life.world.kubelet.levers
    behaviour.jitter, behaviour.by_chance, behaviour.resizes = 0.0, False, True
    world.namespace("tapp-system")
    hooks = {"name": "hooks", "image": "hooks", "env": [{"name": "TAPP_RESIZE", "value": "true"}]}
    world.apply(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "tapp-hooks", "namespace": "tapp-system"},
            "spec": {"template": {"spec": {"containers": [hooks]}}},
        }
    )
    for each in (registration(exposing=True), *assumed.storage_classes()):
        world.apply(each)
    life.begin(yaml.safe_load(written)).settle(allow_errors=True)
    world.run(NOW - world.clock.now)
    return StandIn(world)


@cache
def nowhere() -> StandIn:
    """Returns a fake kubectl without any TApp, which stores the calls that a plan from files must
    not make.
    """
    world = World(registration(), WsgiHook(lambda *_: []))
    world.clock.now = NOW
    return StandIn(world)


def comparable(said: Said) -> tuple[int, Document]:
    """Returns exit code and JSON of a plan, without its assumptions, and sorted where order does
    not matter.
    """
    document: Document = json.loads(REVISION.sub("", said.out))
    del document["notes"], document["remarks"]
    for change in document["templates"]:
        change["differences"].sort(key=lambda each: str(each["path"]))
    document["fields"].sort(key=lambda each: str(each["path"]))
    for instance in document["instances"]:
        instance["fields"].sort()
    return said.code, document


def compare(old: Document, new: Document, folder: Path) -> Document:
    """Checks that the plan of an edit from files equals the plan with a cluster; returns the
    plan.
    """
    written = [yaml.safe_dump(each) for each in (old, new)]
    files = [folder / "old.yaml", folder / "new.yaml"]
    for file, text in zip(files, written, strict=True):
        file.write_text(text)
    before, after = map(str, files)
    found, there = (
        comparable(kubectl_tapp(standin, "plan", *words, "-f", after, "-o", "json"))
        for standin, words in ((nowhere(), ["--from", before]), (running(written[0]), []))
    )
    assert found == there
    assert nowhere().calls == []
    return found[1]


@pytest.fixture(autouse=True)
def times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes both plans assume the same durations, instead of learning them from the pods of a
    cluster.
    """
    monkeypatch.setattr(foresee, "timing", lambda *_: Timing())


ALL = list(product(EDITS, SIZES))
SOME = [(edit, SIZES[number % len(SIZES)]) for number, edit in enumerate(EDITS)]


@pytest.mark.parametrize(("edit", "count"), cases(ALL, [case for case in ALL if case not in SOME]))
def test_forecast_from_files_is_that_of_a_cluster(edit: str, count: int, tmp_path: Path) -> None:
    """Compares actions, order, refusals and times for each edit of `EDITS`."""
    old, new = edited(edit, count)
    compare(old, new, tmp_path)


def examples() -> dict[str, Document]:
    """Returns file -> TApp for all examples; all TApps have the same name."""
    found = {}
    for file in sorted(EXAMPLES.rglob("*.yaml")):
        for document in yaml.load_all(file.read_text(), yaml.CSafeLoader):
            if document["kind"] == "TApp":
                metadata = {**document["metadata"], "name": "web"}
                found[str(file.relative_to(EXAMPLES))] = {**document, "metadata": metadata}
    return found


TAPPS = examples()
PAIRS = list(permutations(TAPPS, 2))
NEIGHBOURS = list(pairwise([*TAPPS, next(iter(TAPPS))]))


@pytest.mark.parametrize(
    ("old", "new"), cases(PAIRS, [pair for pair in PAIRS if pair not in NEIGHBOURS])
)
def test_forecast_of_the_change_from_each_example_to_another_is_that_of_a_cluster(
    old: str, new: str, tmp_path: Path
) -> None:
    compare(TAPPS[old], TAPPS[new], tmp_path)


# --- forecasts ------------------------------------------------------------------------------------

FATES: dict[str, str] = {
    "more instances": "created",
    "start": "created",
    "an image": "in place",
    "an image that is pulled first": "in place",
    "a restart in place": "in place",
    "a restart": "recreated",
    "a claim is added": "recreated",
}


@pytest.mark.parametrize("count", cases(SIZES, [1, 2, 12]))
@pytest.mark.parametrize("edit", FATES)
def test_ordinary_edits_are_completed(edit: str, count: int, tmp_path: Path) -> None:
    """Plans ordinary edits from files: each instance has the expected outcome.

    Nothing is refused, and nothing gets stuck.
    """
    old, new = edited(edit, count)
    files = [tmp_path / "old.yaml", tmp_path / "new.yaml"]
    for file, document in zip(files, (old, new), strict=True):
        file.write_text(yaml.safe_dump(document))
    words = ["plan", "--from", str(files[0]), "-f", str(files[1]), "--fail-if", "stuck"]
    said = kubectl_tapp(nowhere(), *words, "-o", "json")
    assert said.err == ""
    assert said.code == 0
    found = json.loads(said.out)
    assert {each["outcome"] for each in found["instances"]} - {"unchanged"} == {FATES[edit]}
    assert found["refused"] == []


ASSUMED: dict[str, tuple[str, str]] = {
    "a claim grows": ("StorageClasses are assumed to let claims grow", "unchanged"),
    "a claim gets another class": ("the storage driver is assumed to accept", "unchanged"),
    "Services for more": ("the component services is assumed", "created"),
    "a budget of evictions": ("the component disruption-budgets is assumed", "unchanged"),
    "resources in place": ("the component resize is assumed", "in place"),
    "an image that is pulled first": ("mount image volumes", "in place"),
    "a drain before it": ("the component pod-status is assumed", "in place"),
}


@pytest.mark.parametrize("edit", ASSUMED)
def test_plan_says_what_it_assumes_about_the_cluster(edit: str, tmp_path: Path) -> None:
    """The text and the JSON of a plan from files have each assumption once, and nothing is
    refused.
    """
    old, new = edited(edit, 2)
    for name, document in (("old", old), ("new", new)):
        (tmp_path / name).write_text(yaml.safe_dump(document))
    words = ["plan", "--from", str(tmp_path / "old"), "-f", str(tmp_path / "new")]
    found = json.loads(kubectl_tapp(nowhere(), *words, "-o", "json").out)
    sentence, outcome = ASSUMED[edit]
    assert [sentence in note for note in found["notes"]] == [True]
    assert outcome in {each["outcome"] for each in found["instances"]}
    assert found["refusals"] == []
    assert found["stuck"] == []
    assert sentence in kubectl_tapp(nowhere(), *words).out


def test_options_can_edit_a_single_file(tmp_path: Path) -> None:
    (tmp_path / "old").write_text(yaml.safe_dump(manifest(replicas=3, template=pod())))
    for words, summary in {
        ("--replicas", "5"): "2 created",
        ("--image", "app=web:2"): "3 in place",
        ("--kill", "1"): "1 deleted",
        ("--restart",): "3 recreated",
        ("--restart", "--in-place"): "3 in place",
    }.items():
        said = kubectl_tapp(nowhere(), "plan", "--from", str(tmp_path / "old"), *words)
        assert said.lines[0].startswith(f"TApp default/web: {summary}")


def test_file_may_be_the_output_of_kubectl_get(tmp_path: Path) -> None:
    """Plans from a file that has a status, finalizers, and an owner that is not in the file."""
    old = dict(running(yaml.safe_dump(edited("nothing", 3)[0])).world.get("TApp", "web"))
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "game", "uid": "1234"}
    old = with_meta(old, ownerReferences=[{**owner, "controller": True}])
    (tmp_path / "old").write_text(yaml.safe_dump(old))
    for words in (["--replicas", "5"], ["-f", str(tmp_path / "new")]):
        (tmp_path / "new").write_text(
            yaml.safe_dump({**old, "spec": {**old["spec"], "replicas": 5}})
        )
        said = kubectl_tapp(nowhere(), "plan", "--from", str(tmp_path / "old"), *words)
        assert said.err == ""
        assert said.code == 0
        assert said.lines[0].startswith("TApp default/web: 2 created")
