"""Tests disturbances around the service, such as admission, stale caches, errors and restarts."""

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
REPLACING = {"env": [{"name": "A", "value": "1"}]}
SIDECAR = {"name": "proxy", "image": "mesh:1", "ports": [{"containerPort": 15001}]}


def mirrored(image: str) -> str:
    """Returns the name of an image after an admission webhook has put `mirror/` before it."""
    return image if image.startswith("mirror/") else f"mirror/{image}"


REWRITE = rewrite_images(mirrored)
ADMISSIONS = {
    "plain": (),
    "sidecar injected first": (inject_sidecar(SIDECAR),),
    "sidecar injected last": (inject_sidecar(SIDECAR, first=False),),
    "images rewritten": (REWRITE,),
    "last-applied stripped": (strip_last_applied,),
    "lean pods": (lean_pods,),
    "all, last-applied stripped": (inject_sidecar(SIDECAR), REWRITE, strip_last_applied),
    "all, lean pods": (inject_sidecar(SIDECAR), REWRITE, lean_pods),
}
EVERY_ADMISSION = pytest.mark.parametrize("admission", ADMISSIONS)


def rich_template(image: str = "web:1") -> dict[str, Any]:
    """Returns a pod template with many fields that admission and defaults change."""
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
def test_settled_tapp_causes_no_write_for_hours(admission: str) -> None:
    """After a TApp has settled, hours of resyncs write nothing, with each kind of admission
    (promise P3).
    """
    hours = size(2, 24)
    life = Life(policies=ADMISSIONS[admission]).apply(stored(template=rich_template()))
    assert life.complete
    life.news()
    calls = len(life.world.hook_calls)
    life.idle(hours=hours)
    assert len(life.world.hook_calls) - calls > 10 * hours
    assert life.news() == []


@EVERY_ADMISSION
def test_pods_that_admission_changes_are_updated_in_place(admission: str) -> None:
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
    # If admission has rewritten the images, one more write records the stored ones in the
    # last-applied annotation. Lean pods have no such annotation.
    images = REWRITE in ADMISSIONS[admission]
    recorded = images and lean_pods not in ADMISSIONS[admission]
    assert len(updates) == (6 if recorded else 3)
    assert life.uids() == born
    assert life.fewest_ready == 2
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


@pytest.mark.parametrize("lag", [0.3, 1.0, 4.0], ids="{} s".format)
@pytest.mark.parametrize("container", [{}, REPLACING], ids=["in place", "replacement"])
def test_stale_cache_never_makes_more_instances_unavailable_than_the_budget_allows(
    lag: float, container: dict[str, Any]
) -> None:
    """Updates five instances while Metacontroller sees pods and claims late (promises P2 and P8).

    Three instances can always serve. Some writes are refused, because they are based on old
    objects.
    """
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
@pytest.mark.parametrize("after_deciding", [False, True], ids=["before the sync", "after the sync"])
def test_failing_hook_only_delays_a_rollout(status: int, after_deciding: bool) -> None:
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
def test_api_server_that_refuses_some_writes_only_delays_a_rollout(verb: str, code: int) -> None:
    life = Life().apply(tapp(updateStrategy=TWO))
    life.watch_readiness()
    life.world.store.fail(times=4, verb=verb, code=code)
    life.begin_patch(template=template("web:2"), templates={"4": "other"})
    life.patch(templatePool={"other": template("web:3", container=REPLACING)})
    life.world.store.heal()
    life.settle()
    assert life.images() == "web:2 web:2 web:2 web:2 web:3"
    assert life.complete


def test_failing_customize_hook_only_delays_the_creation() -> None:
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


@pytest.mark.parametrize("seconds", [0.05, 0.3, 1.0, 2.2], ids="after {} s".format)
def test_restart_of_metacontroller_during_a_rollout_causes_no_further_write(seconds: float) -> None:
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


def test_slow_hook_does_not_exceed_the_budget_when_the_template_changes() -> None:
    """Changes the template twice while each call of the hook takes 1.5 seconds.

    The cluster changes between the request of a sync and the writes of its response.
    """
    life = Life().apply(tapp(updateStrategy=TWO))
    life.world.metacontroller.hook_seconds = 1.5
    life.watch_readiness()
    life.begin_patch(template=template("web:2"))
    life.world.run(1.0)
    life.patch(template=template("web:3"))
    assert life.images() == "web:3 web:3 web:3 web:3 web:3"
    assert life.fewest_ready == 3


def test_deleted_pod_is_created_again_with_its_claim() -> None:
    life = Life().apply(stored())
    claims = life.claims()
    life.writes()
    life.world.delete("Pod", "web-1")
    life.settle()
    assert life.writes() == ["create Pod web-1"]
    assert life.statuses == "Running Running Running"
    assert life.claims() == claims


def test_pod_of_a_lost_node_is_recreated_when_the_node_is_back() -> None:
    """While a node is unreachable, its pod is not replaced, because the pod may still run.

    When the node is back, the evicted pod goes, and a new one is created.
    """
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
    """Adopts pods that have the hashes of the old controller and the TApp's UID as a label.

    The pods get new labels and an owner, and the next image is an update in place.
    """
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
    assert life.uids() == born
    assert life.claims() == claims
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
    """Returns the claim of an instance as the old controller created it."""
    spec = stored()["spec"]["volumeClaimTemplates"][0]["spec"]
    metadata = {"name": f"data-web-{number}", "labels": {"tapp_instance_key": str(number)}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def old_pod(number: int) -> dict[str, Any]:
    """Returns the pod of an instance as the old controller created it, with decimal hashes and a
    volume for its claim.
    """
    made = json.loads(json.dumps(rich_template()))
    hashes = {"tapp_template_hash_key": "1234567890", "tapp_uniq_hash_key": "987654321"}
    labels = {**made["metadata"]["labels"], **hashes, "tapp_instance_key": str(number)}
    claim = {"persistentVolumeClaim": {"claimName": f"data-web-{number}"}}
    spec = {**made["spec"], "volumes": [{"name": "data", **claim}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": labels}, "spec": spec}
    return with_meta(pod, name=f"web-{number}")


def test_refused_claim_is_created_by_a_later_sync() -> None:
    """The API server refuses three claims, for example because of a quota; later syncs create them.

    The pods wait without a node until their claims exist.
    """
    life = Life()
    life.world.store.fail(3, verb="create", kind="PersistentVolumeClaim", code=403)
    life.begin(stored()).settle(allow_errors=True)
    assert [pod["status"]["phase"] for pod in life.pods.values()] == ["Running"] * 3
    assert sorted(life.claims()) == [f"data-web-{id}" for id in range(3)]
