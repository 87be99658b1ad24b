"""Every example on the real API server: what its comments promise, with exactly these writes."""

from __future__ import annotations

import copy
import json
import sys

import pytest

from .app import EXAMPLES, App, each, example
from .kube import Json
from .kubelet import FakeKubelet
from .kubelet_levers import Levers

pytestmark = pytest.mark.e2e


def quick(documents: list[Json]) -> list[Json]:
    """The example with two seconds where it says ten: what is waited for, not how long."""
    hurried = copy.deepcopy(documents)
    for document in hurried:
        document["spec"]["minReadySeconds"] = 2
    return hurried


def test_every_example_is_played() -> None:
    files = sorted(EXAMPLES.rglob("*.yaml"))
    names = {file.relative_to(EXAMPLES).parts[0].removesuffix(".yaml") for file in files}
    module = vars(sys.modules[__name__])
    assert {name for name in names if f"test_{name.replace('-', '_')}" not in module} == set()


def test_same_template(app: App) -> None:
    app.apply(*example("same-template")).settle()
    assert app.wrote(*each("create Pod", "same", 0, 1, 2))
    assert app.statuses == "Running Running Running"
    assert app.images() == "nginx:1.28 nginx:1.28 nginx:1.28"
    counts = {"replicas": 3, "readyReplicas": 3, "updatedReplicas": 3}
    assert app.status["templates"] == {"default": counts}
    assert app.idle()


def test_different_templates(app: App) -> None:
    app.apply(*example("different-templates")).settle()
    roles = [pod["metadata"]["labels"]["role"] for pod in app.pods.values()]
    assert roles == ["leader", "writer", "reader", "reader"]
    assert app.wrote(*each("create Pod", "mixed", 0, 1, 2, 3))
    born = app.uids()
    app.patch(templates={"3": "writer"}).settle()
    assert app.wrote_in_order("delete Pod mixed-3", "create Pod mixed-3")
    assert app.pod(3)["metadata"]["labels"]["role"] == "writer"
    assert {**app.uids(), 3: ""} == {**born, 3: ""}
    assert app.idle()


def test_shards(app: App) -> None:
    app.apply(*example("shards")).settle()
    assert app.wrote(*each("create Pod", "shards", 0, 1, 2, 3))
    containers = [pod["spec"]["containers"][0] for pod in app.pods.values()]
    assert [each["env"][1]["value"] for each in containers] == ["a-g", "h-m", "n-s", "t-z"]
    memory = [each["resources"]["requests"]["memory"] for each in containers]
    assert memory == ["64Mi", "64Mi", "64Mi", "128Mi"]
    app.patch(values={"1": {"range": "h-n"}}).settle()
    assert app.wrote_in_order("delete Pod shards-1", "create Pod shards-1")
    assert app.pod(1)["spec"]["containers"][0]["env"][1]["value"] == "h-n"
    assert app.idle()


def test_service_each(app: App, exposing: None) -> None:  # noqa: ARG001 - it is there
    app.apply(*example("service-each")).settle()
    names = [f"room-{id}" for id in range(3)]
    app.until(lambda: [*services(app)] == names, "each has its Service")
    ports = [found["spec"]["ports"][0]["nodePort"] for found in services(app).values()]
    assert ports == [30_080, 30_081, 30_082]
    app.patch(statuses={"1": "Killed"}).settle()
    assert [*services(app)] == names
    app.patch(replicas=1).settle()
    app.until(lambda: [*services(app)] == names[:1], "the Services go with their numbers")
    assert app.idle()


def services(app: App) -> dict[str, Json]:
    """Name -> Service."""
    listed = app.kube.list_all("v1", "services", app.namespace)
    return {found["metadata"]["name"]: found for found in listed}


def test_game_servers(app: App) -> None:
    app.apply(*example("game-servers")).settle()
    assert app.wrote(*each("create Pod", "game", 0, 1, 2))
    ports = [pod["spec"]["containers"][0]["ports"][0]["hostPort"] for pod in app.pods.values()]
    assert ports == [7000, 7001, 7002]
    app.patch(values={"2": {"port": "7012"}}).settle()
    assert app.wrote_in_order("delete Pod game-2", "create Pod game-2")
    assert app.pod(2)["spec"]["containers"][0]["ports"][0]["hostPort"] == 7012
    assert app.idle()


def test_zones(app: App) -> None:
    app.apply(*example("zones")).settle()
    assert app.wrote(*each("create Pod", "zones", 0, 1, 2))
    app.patch(values={"2": {"zone": "c"}}).settle()
    assert app.wrote_in_order("delete Pod zones-2", "create Pod zones-2")
    assert '"values": ["c"]' in json.dumps(app.pod(2)["spec"]["affinity"])
    assert app.idle()


def test_update_chosen_instances(app: App) -> None:
    app.apply(*example("update-chosen-instances/1-create")).settle()
    born = app.uids()
    assert app.wrote(*each("create Pod", "chosen", *range(5)))
    app.apply(*example("update-chosen-instances/2-canary")).settle()
    assert app.wrote("update Pod chosen-4")
    assert app.images() == "nginx:1.28 nginx:1.28 nginx:1.28 nginx:1.28 nginx:1.29"
    app.apply(*example("update-chosen-instances/3-promote")).settle()
    assert app.wrote("update Pod chosen-3")
    app.apply(*example("update-chosen-instances/1-create")).settle()
    assert app.wrote(*each("update Pod", "chosen", 3, 4))
    assert app.images() == " ".join(["nginx:1.28"] * 5)
    assert app.uids() == born
    assert app.restarts() == {0: 0, 1: 0, 2: 0, 3: 2, 4: 2}
    assert app.idle()


def test_rolling_update(app: App, levers: Levers) -> None:
    levers.pull_seconds = 0.3
    app.apply(*example("rolling-update/1-create")).settle()
    born = app.uids()
    assert app.wrote(*each("create Pod", "rolling", *range(6)))
    app.watcher.begin()
    app.apply(*example("rolling-update/2-update")).settle()
    assert app.wrote(*each("update Pod", "rolling", *range(6)))
    assert app.images() == " ".join(["nginx:1.29"] * 6)
    assert (app.uids(), app.watcher.fewest) == (born, 4)
    assert set(app.restarts().values()) == {1}
    assert app.idle()


def test_rolling_update_percent(app: App) -> None:
    app.apply(*example("rolling-update-percent/1-create")).settle()
    born = app.uids()
    assert app.wrote(*each("create Pod", "percent", *range(5)))
    app.watcher.begin()
    app.apply(*example("rolling-update-percent/2-update")).settle()
    assert app.wrote(
        *each("delete Pod", "percent", *range(5)), *each("create Pod", "percent", *range(5))
    )
    assert app.watcher.fewest == 3
    assert not set(app.uids().values()) & set(born.values())
    env = [pod["spec"]["containers"][0]["env"][0]["value"] for pod in app.pods.values()]
    assert env == ["hello"] * 5


def test_kill(app: App) -> None:
    app.apply(*example("kill/1-create")).settle()
    born, claims = app.uids(), app.claims()
    assert app.wrote(
        *each("create Claim", "data-mortal", 0, 1, 2), *each("create Pod", "mortal", 0, 1, 2)
    )
    app.apply(*example("kill/2-kill")).settle()
    assert app.wrote("delete Pod mortal-1")
    assert (app.statuses, app.status["appStatus"]) == ("Running Killed Running", "Running")
    assert app.idle()
    app.apply(*example("kill/3-start")).settle()
    assert app.wrote("create Pod mortal-1")
    assert app.statuses == "Running Running Running"
    assert app.claims() == claims
    assert [number for number, uid in app.uids().items() if uid != born[number]] == [1]
    assert app.idle()


def test_scale(app: App) -> None:
    app.apply(*example("scale/1-create")).settle()
    assert app.wrote(*each("create Pod", "flexible", 0, 1))
    app.apply(*example("scale/2-up")).settle()
    assert app.wrote(*each("create Pod", "flexible", 2, 3, 4))
    assert app.status["replicas"] == 5
    app.apply(*example("scale/3-down")).settle()
    assert app.wrote(*each("delete Pod", "flexible", 1, 2, 3, 4))
    assert list(app.pods) == [0]
    assert app.idle()


def test_headless_service(app: App) -> None:
    app.apply(*example("headless-service")).settle()
    specs = [pod["spec"] for pod in app.pods.values()]
    assert [spec["hostname"] for spec in specs] == ["peers-0", "peers-1", "peers-2"]
    assert {spec["subdomain"] for spec in specs} == {"peers"}

    def published() -> set[str]:
        slices = app.kube.list_all("discovery.k8s.io/v1", "endpointslices", app.namespace)
        return {end.get("hostname") for one in slices for end in one.get("endpoints") or []}

    app.until(lambda: published() == {"peers-0", "peers-1", "peers-2"}, "DNS names of all three")
    assert app.wrote(*each("create Pod", "peers", 0, 1, 2))
    assert app.idle()


def test_volumes(app: App) -> None:
    app.apply(*example("volumes/1-create")).settle()
    claims = [f"{name}-stored-{number}" for name in ("cache", "data") for number in range(3)]
    assert sorted(app.claims()) == claims
    mounted = {volume["name"]: volume for volume in app.pod(2)["spec"]["volumes"]}
    assert mounted["data"]["persistentVolumeClaim"] == {"claimName": "data-stored-2"}
    made = [*each("create Pod", "stored", 0, 1, 2), *(f"create Claim {name}" for name in claims)]
    assert app.wrote(*made)
    assert app.idle()
    app.apply(*example("volumes/2-scale-down")).settle()
    app.until(lambda: len(app.claims()) == 4, "the claims of instance 2 are gone").quiet()
    assert app.wrote(
        "delete Pod stored-2", "delete Claim cache-stored-2", "delete Claim data-stored-2"
    )
    kept = app.claims()
    assert app.idle()
    app.delete()
    app.until(lambda: not app.pods, "no pods")
    assert app.claims() == kept
    assert sorted(kept) == [name for name in claims if not name.endswith("2")]


def test_growing_volumes(app: App) -> None:
    app.apply(*example("growing-volumes/1-create")).settle()
    assert app.wrote(
        *each("create Claim", "data-growing", 0, 1), *each("create Pod", "growing", 0, 1)
    )
    app.apply(*example("growing-volumes/2-more")).settle()
    assert app.wrote(*each("update Claim", "data-growing", 0, 1))
    assert app.idle()


def test_configuration(app: App) -> None:
    born = app.apply(*example("configuration/1-create")).settle().uids()
    assert app.wrote(*each("create Pod", "configured", 0, 1, 2))
    app.apply(*example("configuration/2-changed")).settle()
    assert app.wrote_in_order(*each("update Pod", "configured", 0, 1, 2))
    assert (app.uids(), app.restarts()) == (born, {0: 1, 1: 1, 2: 1})
    assert app.idle()


def test_unused_templates(app: App) -> None:
    """Without the admission policy; test_policies.py has it with the policy."""
    app.apply(*example("unused-templates/1-create")).settle()
    assert app.images() == "nginx:1.27 nginx:1.29 nginx:1.28"
    assert app.condition("UnusedTemplates") == ""
    assert app.wrote(*each("create Pod", "tidy", 0, 1, 2))
    app.apply(*example("unused-templates/2-unused")).settle()
    assert app.wrote("update Pod tidy-0")
    assert "nothing refers to blue" in app.condition("UnusedTemplates")
    app.patch(templatePool={"blue": None}).settle()
    assert app.condition("UnusedTemplates") == ""
    assert app.wrote()
    assert app.idle()


def test_batch(app: App, kubelet: FakeKubelet) -> None:
    app.apply(*example("batch"))
    app.until(lambda: app.statuses == "Running Running Running Running", "all run").quiet()
    assert app.wrote(*each("create Pod", "work", *range(4)))
    for number in range(4):
        assert len(app.pods) == 4  # the finished ones stay until all have ended
        kubelet.finish(app.namespace, f"work-{number}", code=int(number == 3))
        done = "Failed" if number == 3 else "Succ"
        app.until(lambda n=number, s=done: app.statuses.split()[n] == s, f"{number} ended")  # type: ignore[misc]
    app.until(lambda: not app.pods, "the pods are gone").quiet()
    assert app.wrote(*each("delete Pod", "work", *range(4)))
    assert (app.statuses, app.status["appStatus"]) == ("Succ Succ Succ Failed", "Failed")
    assert app.condition("Degraded").startswith("True InstancesBroken")
    assert app.idle()
    app.patch(statuses={"3": "Killed"})
    app.until(lambda: app.statuses == "Succ Succ Succ Killed", "3 is killed")
    app.patch(statuses={"3": None})
    app.until(lambda: app.statuses == "Succ Succ Succ Running", "3 runs once more").quiet()
    assert app.wrote("create Pod work-3")


def test_force_update(app: App) -> None:
    app.apply(*example("force-update/1-create")).settle()
    assert app.wrote(*each("create Pod", "forced", *range(6)))
    app.watcher.begin()
    app.apply(*example("force-update/2-hotfix")).settle()
    assert app.wrote(*each("update Pod", "forced", *range(6)))
    assert app.watcher.fewest == 3
    assert list(app.status["templates"]) == ["hotfix"]


def test_paused(app: App) -> None:
    app.apply(*quick(example("paused/1-create"))).settle()
    assert app.wrote(*each("create Pod", "careful", *range(4)))
    app.apply(*quick(example("paused/2-update-paused")))
    app.until(lambda: app.condition("Progressing").startswith("False Paused"), "it is paused")
    app.quiet()
    assert app.wrote()
    assert app.idle()
    app.watcher.begin()
    app.apply(*quick(example("paused/3-resume"))).settle()
    assert app.wrote_in_order(*each("update Pod", "careful", *range(4)))
    assert app.watcher.fewest == 3


def test_hpa_for_tapp(app: App) -> None:
    """The real autoscaler brings it to `minReplicas`; there are no metrics for more."""
    app.apply(*example("hpa-for-tapp"))
    app.until(lambda: len(app.pods) == 2, "minReplicas", 90).settle()
    assert app.wrote(*each("create Pod", "scaled", 0, 1))
    app.apply(example("hpa-for-tapp")[0]).settle()
    assert app.status["replicas"] == 2
    assert app.wrote()


def changed(documents: list[Json], changes: dict[str, str]) -> list[Json]:
    """The example with other words in it."""
    text = json.dumps(documents)
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    found: list[Json] = json.loads(text)
    return found


def test_drain(app: App) -> None:
    """One second where it says five. What it costs in writes: test_real_drain.py."""
    served = changed(example("drain"), {'"gracePeriodSeconds": 5': '"gracePeriodSeconds": 1'})
    app.apply(*served).settle()
    born = app.uids()

    def serving() -> int:
        slices = app.kube.list_all("discovery.k8s.io/v1", "endpointslices", app.namespace)
        ends = [end for one in slices for end in one.get("endpoints") or []]
        return sum(end["conditions"].get("ready") is True for end in ends)

    app.until(lambda: serving() == 3, "all are in the Service")
    app.watcher.begin()
    app.apply(*changed(served, {"nginx:1.28": "nginx:1.29"})).settle()
    assert app.images() == " ".join(["nginx:1.29"] * 3)
    assert (app.uids(), app.watcher.fewest) == (born, 2)
    assert set(app.restarts().values()) == {1}
    app.until(lambda: serving() == 3, "all are in the Service again")


def test_hold(app: App) -> None:
    """The rest of it is in test_holds.py."""
    found = example("hold")
    for document in found:
        for subject in document.get("subjects") or []:
            subject["namespace"] = app.namespace
    app.apply(*found).settle()
    assert app.wrote(*each("create Pod", "arena", 0, 1, 2, 3))
    assert app.idle()


def test_lost_node(app: App, kubelet: FakeKubelet) -> None:
    """Two seconds where it says sixty; the others are on nodes of their own and do not notice."""
    app.apply(*changed(example("lost-node"), {'"60"': '"2"'})).settle()
    born = app.uids()
    nodes = {number: pod["spec"]["nodeName"] for number, pod in app.pods.items()}
    assert len(set(nodes.values())) == 3
    kubelet.lose(nodes[1])
    app.until(lambda: app.uids().get(1) not in (None, born[1]), "1 is made anew").settle()
    assert app.pod(1)["spec"]["nodeName"] in {nodes[0], nodes[2]}
    assert {**app.uids(), 1: ""} == {**born, 1: ""}
