"""Stopping, starting, shrinking, finishing and deleting: what goes and what stays."""

from typing import Any

import pytest

from simulator.api.store import Propagation
from tests.scenarios.apps import stored, tapp, template
from tests.scenarios.life import Life, each


def test_scaled_up_while_pods_of_these_numbers_still_go() -> None:
    """A name is free only when its pod is gone."""
    life = Life().apply(stored(replicas=3))
    life.writes()
    life.begin_patch(replicas=1).until(lambda: bool(terminating(life)))
    life.patch(replicas=3)
    assert sorted(life.writes()) == sorted(
        [*each("delete Pod", "web-1", "web-2"), *each("create Pod", "web-1", "web-2")]
    )
    assert life.complete


def terminating(life: Life) -> list[int]:
    """Instances whose pod is on its way out."""
    return [number for number, pod in life.pods.items() if pod["metadata"].get("deletionTimestamp")]


def batch(policy: str = "Never", replicas: int = 3, **settings: Any) -> Life:
    """Instances that run for ten seconds; number 1 exits with 1."""
    life = Life(**settings)
    life.world.kubelet.behaviour.completes = lambda pod, _container: (
        10.0,
        int(pod["metadata"]["name"] == "web-1"),
    )
    return life.begin(tapp(replicas=replicas, template=template(restartPolicy=policy)))


def test_a_finished_instance_runs_again_when_killed_and_started() -> None:
    life = batch().settle()
    assert (life.statuses, life.status["appStatus"]) == ("Succ Failed Succ", "Failed")
    life.writes()
    life.world.kubelet.behaviour.completes = lambda _pod, _container: (10.0, 0)
    life.patch(statuses={"1": "Killed"})
    assert life.statuses == "Succ Killed Succ"
    assert life.writes() == []
    life.patch(statuses=None)
    assert life.writes() == ["create Pod web-1", "delete Pod web-1"]
    assert (life.statuses, life.status["appStatus"]) == ("Succ Succ Succ", "Succ")


def test_on_failure_is_left_to_the_kubelet() -> None:
    """It restarts containers itself; the pod never fails."""
    life = batch(policy="OnFailure").settle()
    assert life.status["statuses"]["0"] == life.status["statuses"]["2"] == "Succ"
    assert life.status["statuses"]["1"] != "Failed"
    life.world.kubelet.behaviour.completes = lambda _pod, _container: (10.0, 0)
    life.world.kubelet.retry()
    life.settle()
    assert life.status["appStatus"] == "Succ"


def test_a_pod_that_the_kubelet_refuses_is_tried_elsewhere() -> None:
    """Also with restartPolicy Never: none of its containers ever ran."""
    life = Life()
    full = iter([True])
    life.world.kubelet.behaviour.refuses = lambda _pod: next(full, False)
    life.apply(tapp(replicas=1, template=template(restartPolicy="Never")))
    assert life.writes() == ["create Pod web-0", "delete Pod web-0", "create Pod web-0"]
    assert life.statuses == "Running"


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
def test_a_deleted_tapp_takes_its_pods_and_leaves_its_claims(propagation: Propagation) -> None:
    life = Life().apply(stored())
    claims = life.claims()
    life.writes()
    life.delete(propagation)
    assert (life.exists, life.pods, life.claims()) == (False, {}, claims)
    # In the foreground it is the garbage collector that deletes.
    ours = each("delete Pod", "web-0", "web-1", "web-2") if propagation == "Background" else []
    assert life.writes() == ours
    owners = [
        owner["kind"]
        for claim in life.world.list("PersistentVolumeClaim")
        for owner in claim["metadata"]["ownerReferences"]
    ]
    assert owners == ["Namespace"] * 3


def test_an_orphaning_delete_leaves_all_of_it_running() -> None:
    life = Life().apply(stored())
    born, claims = life.uids(), life.claims()
    life.writes()
    life.delete("Orphan")
    assert (life.exists, life.uids(), life.claims()) == (False, born, claims)
    assert life.writes() == []
    assert set(life.restarts().values()) == {0}


def test_a_new_tapp_of_the_same_name_finds_the_data() -> None:
    life = Life().apply(stored())
    claims = life.claims()
    life.delete()
    life.apply(stored())
    assert life.claims() == claims
    mounted = [pod["spec"]["volumes"][0]["persistentVolumeClaim"] for pod in life.pods.values()]
    assert {item["claimName"] for item in mounted} == set(claims)
    assert life.condition("Ready").startswith(
        "False ClaimsNotOwned: "
    )  # another uid, another label
    for name in claims:
        mine = {"metadata": {"labels": {"controller-uid": life.tapp["metadata"]["uid"]}}}
        life.world.patch("PersistentVolumeClaim", name, mine)
    life.settle()
    assert life.claims() == claims
    assert life.complete


def test_a_deleted_namespace_takes_everything() -> None:
    life = Life().apply(stored())
    life.world.delete("Namespace", "default")
    life.settle(allow_errors=True)
    assert (life.exists, life.pods, life.claims()) == (False, {}, {})
    assert [item["metadata"]["name"] for item in life.world.list("Namespace")] == []


def test_a_tapp_without_sense_can_be_deleted() -> None:
    life = Life().apply(stored())
    life.world.patch("TApp", "web", {"spec": {"replicas": "many"}})
    life.settle(allow_errors=True)
    assert sorted(life.pods) == [0, 1, 2]
    life.delete()
    assert (life.exists, life.pods) == (False, {})


OWN: dict[str, Any] = {
    "a policy of the container": {"container": {"restartPolicy": "Never"}},
    "rules": {
        "container": {
            "restartPolicy": "Never",
            "restartPolicyRules": [
                {"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}
            ],
        }
    },
    "a native sidecar beside it": {
        "container": {"restartPolicy": "Never"},
        "initContainers": [{"name": "log", "image": "log:1", "restartPolicy": "Always"}],
    },
}


@pytest.mark.parametrize("parts", OWN.values(), ids=OWN)
def test_work_whose_containers_never_run_again_is_run_once(parts: dict[str, Any]) -> None:
    """Although the pod's own policy is Always: no pod is made anew, however long one looks."""
    life = Life()
    life.world.kubelet.behaviour.completes = lambda pod, container: (
        (10.0, int(pod["metadata"]["name"] == "web-1")) if container == "web" else None
    )
    life.begin(tapp(replicas=3, template=template(**parts))).world.run(3600)
    assert (life.statuses, life.status["appStatus"]) == ("Succ Failed Succ", "Failed")
    names = ("web-0", "web-1", "web-2")
    assert sorted(life.writes()) == sorted(
        [*each("create Pod", *names), *each("delete Pod", *names)]
    )


def test_work_whose_rule_starts_it_again_stays_in_its_pod() -> None:
    """The kubelet does it, and the pod ends when no rule is about its exit code."""
    life = Life()
    codes = iter([42, 42, 0])
    life.world.kubelet.behaviour.completes = lambda _pod, _container: (10.0, next(codes))
    rules = OWN["rules"]
    life.begin(tapp(replicas=1, template=template(**rules))).world.run(600)
    assert life.status["appStatus"] == "Succ"
    assert life.writes() == ["create Pod web-0", "delete Pod web-0"]
