"""Trouble around the service, and what it must not do about it."""

import json
from typing import Any

import pytest

from simulator.api.admission import lean_pods
from simulator.api.apply import LAST_APPLIED
from simulator.objects.objects import with_meta
from tests.policies import inject_sidecar, rewrite_images, strip_last_applied
from tests.scenarios.apps import stored, storing, tapp, template
from tests.scenarios.life import Life, brief, each
from tests.sizes import size

REMEMBERED = (f"metadata.annotations.{LAST_APPLIED}",)
TWO = {"maxUnavailable": 2}
RECREATING = {"env": [{"name": "A", "value": "1"}]}
SIDECAR = {"name": "proxy", "image": "mesh:1", "ports": [{"containerPort": 15001}]}


def mirrored(image: str) -> str:
    """An image as an admission webhook rewrites it."""
    return image if image.startswith("mirror/") else f"mirror/{image}"


REWRITE = rewrite_images(mirrored)
ADMISSIONS = {
    "plain": (),
    "sidecar injected first": (inject_sidecar(SIDECAR),),
    "sidecar injected last": (inject_sidecar(SIDECAR, first=False),),
    "images rewritten": (REWRITE,),
    "last-applied removed": (strip_last_applied,),
    "last-applied cut": (lean_pods,),
    "all of it": (inject_sidecar(SIDECAR), REWRITE, strip_last_applied),
    "all of it, and cut": (inject_sidecar(SIDECAR), REWRITE, lean_pods),
}
EVERY_ADMISSION = pytest.mark.parametrize("admission", ADMISSIONS)


def rich_template(image: str = "web:1") -> dict[str, Any]:
    """A template with much of what admission and defaults like to change."""
    made = storing(
        image,
        ports=[{"containerPort": 80}],
        resources={"requests": {"cpu": "0.5", "memory": "1024Mi"}},
        livenessProbe={"httpGet": {"path": "/", "port": 80}},
    )
    made["spec"]["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
    made["spec"]["topologySpreadConstraints"] = [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
    ]
    return made


@EVERY_ADMISSION
def test_idle_means_no_write_at_all(admission: str) -> None:
    """P3: hours of resyncs, whatever admission did to the pods."""
    hours = size(2, 24)
    life = Life(policies=ADMISSIONS[admission]).apply(stored(template=rich_template()))
    assert life.complete
    life.news()
    calls = len(life.world.hook_calls)
    life.idle(hours=hours)
    assert len(life.world.hook_calls) - calls > 10 * hours
    assert life.news() == []


@EVERY_ADMISSION
def test_admission_changes_pods_and_updates_go_on_in_place(admission: str) -> None:
    life = Life(policies=ADMISSIONS[admission]).apply(stored(template=rich_template()))
    born = life.uids()
    life.news()
    life.watch_readiness()
    life.patch(template=rich_template("web:2"))
    news = life.news()
    assert {write.outcome for write in news} == {"ok"}
    updates = [write for write in news if write.kind == "Pod"]
    assert [brief(write) for write in updates if write.paths != REMEMBERED] == each(
        "update Pod", "web-0", "web-1", "web-2"
    )
    # Where admission rewrote what was applied, what is there is remembered once more; where that
    # is cut, there is nothing to remember.
    images = REWRITE in ADMISSIONS[admission]
    noted = images and lean_pods not in ADMISSIONS[admission]
    assert len(updates) == (6 if noted else 3)
    assert (life.uids(), life.fewest_ready) == (born, 2)
    assert life.complete
    containers = [
        {item["name"]: item["image"] for item in pod["spec"]["containers"]}
        for pod in life.pods.values()
    ]
    assert {item["web"] for item in containers} == {"mirror/web:2" if images else "web:2"}
    assert {item.get("proxy", "mesh:1").removeprefix("mirror/") for item in containers} == {
        "mesh:1"
    }
    life.idle()
    assert life.news() == []


@pytest.mark.parametrize("lag", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("container", [{}, RECREATING], ids=["in place", "recreated"])
def test_a_stale_cache_never_costs_more_than_the_budget(
    lag: float, container: dict[str, Any]
) -> None:
    """P2, P8: Metacontroller sees pods and claims late; some of its writes are refused."""
    life = Life().apply(tapp(updateStrategy=TWO))
    life.world.cache.lag.update({"Pod": lag, "PersistentVolumeClaim": lag / 2})
    life.watch_readiness()
    life.patch(template=template("web:2", container=container))
    assert life.images() == "web:2 web:2 web:2 web:2 web:2"
    assert life.fewest_ready == 3
    assert life.complete
    refusals = {write.outcome for write in life.news()} - {"ok"}
    assert refusals <= {"Conflict", "AlreadyExists", "NotFound"}


@pytest.mark.parametrize("status", [500, 503, 429, 0])
@pytest.mark.parametrize("after_deciding", [False, True])
def test_a_hook_that_fails_in_the_middle_costs_time_only(status: int, after_deciding: bool) -> None:
    life = Life().apply(stored(replicas=5, updateStrategy=TWO))
    life.writes()
    life.watch_readiness()
    life.begin_patch(template=storing("web:2"))
    life.until(lambda: life.images().count("web:2") == 3)
    life.world.hook.fail(times=4, status=status, after_deciding=after_deciding)
    life.settle()
    assert life.writes() == [f"update Pod web-{number}" for number in range(5)]
    assert life.fewest_ready == 3
    assert life.complete


@pytest.mark.parametrize("code", [409, 500])
@pytest.mark.parametrize("verb", ["create", "update", "delete", "status"])
def test_an_api_server_that_refuses_now_and_then_costs_time_only(verb: str, code: int) -> None:
    life = Life().apply(tapp(updateStrategy=TWO))
    life.watch_readiness()
    life.world.store.fail(times=4, verb=verb, code=code)
    life.begin_patch(template=template("web:2"), templates={"4": "other"})
    life.patch(templatePool={"other": template("web:3", container=RECREATING)})
    life.world.store.heal()
    life.settle()
    assert life.images() == "web:2 web:2 web:2 web:2 web:3"
    assert life.complete


def test_a_customize_hook_that_fails_delays_and_loses_nothing() -> None:
    life = Life()
    life.world.hook.fail(times=3, path="/customize")
    life.apply(stored())
    assert life.statuses == "Running Running Running"
    owners = {
        owner["kind"]
        for claim in life.world.list("PersistentVolumeClaim")
        for owner in claim["metadata"]["ownerReferences"]
    }
    assert owners == {"Namespace", "TApp"}


@pytest.mark.parametrize("seconds", [0.05, 0.3, 1.0, 2.2])
def test_metacontroller_restarts_in_the_middle(seconds: float) -> None:
    life = Life().apply(tapp(updateStrategy=TWO))
    life.writes()
    life.watch_readiness()
    life.begin_patch(template=template("web:2"))
    life.world.run(seconds)
    life.world.metacontroller.restart()
    life.settle()
    assert life.writes() == [f"update Pod web-{number}" for number in range(5)]
    assert life.fewest_ready == 3
    life.world.metacontroller.restart()
    life.settle()
    assert life.news() == []


def test_a_slow_hook_writes_nothing_that_is_outdated() -> None:
    """Between what a sync sees and what it writes the cluster moves on."""
    life = Life().apply(tapp(updateStrategy=TWO))
    life.world.metacontroller.hook_seconds = 1.5
    life.watch_readiness()
    life.begin_patch(template=template("web:2"))
    life.world.run(1.0)
    life.patch(template=template("web:3"))
    assert life.images() == "web:3 web:3 web:3 web:3 web:3"
    assert life.fewest_ready == 3


def test_somebody_deletes_a_pod() -> None:
    life = Life().apply(stored())
    claims = life.claims()
    life.writes()
    life.world.delete("Pod", "web-1")
    life.settle()
    assert life.writes() == ["create Pod web-1"]
    assert (life.statuses, life.claims()) == ("Running Running Running", claims)


def test_a_lost_node_takes_its_instances_away_and_brings_them_back() -> None:
    """A pod that may still run is never doubled: its number waits for the node."""
    life = Life().apply(tapp(replicas=3, updateStrategy=TWO))
    node = life.pods[1]["spec"]["nodeName"]
    life.writes()
    life.world.nodes.lose(node)
    life.world.run(1000)
    assert life.writes() == []
    assert life.statuses == "Running Killing Running"
    assert life.condition("Available").startswith("True ")
    life.world.nodes.recover(node)
    life.settle()
    assert life.writes() == ["create Pod web-1"]
    assert life.statuses == "Running Running Running"


def test_pods_of_the_old_controller_are_adopted_without_a_restart() -> None:
    """Moving over: they carry the old controller's hashes, and get the TApp's uid as a label."""
    life = Life()
    life.world.hook.fail(times=10_000)
    life.begin(stored(template=rich_template(), replicas=2)).world.run(1)
    uid = life.tapp["metadata"]["uid"]
    for number in range(2):
        life.world.apply(old_claim(number))
        life.world.apply(old_pod(number))
    life.world.run(10)
    born, claims = life.uids(), life.claims()
    for kind in ("Pod", "PersistentVolumeClaim"):
        for item in life.world.list(kind):
            labels = {**item["metadata"].get("labels", {}), "controller-uid": uid}
            life.world.patch(kind, item["metadata"]["name"], {"metadata": {"labels": labels}})
    life.world.hook.heal()
    life.settle()
    assert (life.uids(), life.claims()) == (born, claims)
    assert set(life.restarts().values()) == {0}
    assert life.complete
    for pod in life.pods.values():
        assert pod["metadata"]["labels"]["tapp_template_hash_key"].startswith("v1-")
        assert [owner["uid"] for owner in pod["metadata"]["ownerReferences"]] == [uid]
    life.news()
    life.idle()
    assert life.news() == []
    life.patch(template=rich_template("web:2"))
    assert life.writes() == each("update Pod", "web-0", "web-1")
    assert life.uids() == born


def old_claim(number: int) -> dict[str, Any]:
    """A claim as the old controller made it."""
    spec = stored()["spec"]["volumeClaimTemplates"][0]["spec"]
    metadata = {"name": f"data-web-{number}", "labels": {"tapp_instance_key": str(number)}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def old_pod(number: int) -> dict[str, Any]:
    """A pod as the old controller made it: decimal hashes, its own volume for the claim."""
    made = json.loads(json.dumps(rich_template()))
    hashes = {"tapp_template_hash_key": "1234567890", "tapp_uniq_hash_key": "987654321"}
    labels = {**made["metadata"]["labels"], **hashes, "tapp_instance_key": str(number)}
    claim = {"persistentVolumeClaim": {"claimName": f"data-web-{number}"}}
    spec = {**made["spec"], "volumes": [{"name": "data", **claim}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": labels}, "spec": spec}
    return with_meta(pod, name=f"web-{number}")


def test_a_claim_that_was_refused_once_is_made_again() -> None:
    """A quota, say: its pod waits without a node, and runs as soon as there is room."""
    life = Life()
    life.world.store.fail(3, verb="create", kind="PersistentVolumeClaim", code=403)
    life.begin(stored()).settle(allow_errors=True)
    assert [pod["status"]["phase"] for pod in life.pods.values()] == ["Running"] * 3
    assert sorted(life.claims()) == [f"data-web-{id}" for id in range(3)]
