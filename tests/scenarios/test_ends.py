"""Stopping, starting, shrinking, finishing and deleting: what goes and what stays."""

from typing import Any

import pytest

from simulator.api.store import Propagation
from tests.scenarios.apps import stored, tapp, template
from tests.scenarios.life import Life, each

DELETE = {"whenDeleted": "Delete", "whenScaled": "Delete"}


def test_scaled_down_and_up_again_an_instance_finds_its_claim() -> None:
    life = Life().apply(stored(replicas=4))
    claims, born = life.claims(), life.uids()
    life.writes()
    life.patch(replicas=2)
    assert life.writes() == each("delete Pod", "web-2", "web-3")
    assert (life.claims(), life.statuses) == (claims, "Running Running")
    life.patch(replicas=4)
    assert life.writes() == each("create Pod", "web-2", "web-3")
    assert life.claims() == claims
    assert {number for number, uid in life.uids().items() if born[number] == uid} == {0, 1}


def test_scaled_to_nothing_and_back() -> None:
    life = Life().apply(tapp(replicas=2))
    life.patch(replicas=0)
    assert life.pods == {}
    assert life.status["appStatus"] == "Pending"
    assert life.complete
    life.patch(replicas=2)
    assert life.statuses == "Running Running"


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


def test_all_killed_is_an_app_killed_and_a_kill_survives_scaling() -> None:
    life = Life().apply(tapp(replicas=2, statuses={"0": "Killed", "1": "Killed", "2": "Killed"}))
    assert life.writes() == []
    assert (life.statuses, life.status["appStatus"]) == ("Killed Killed", "Killed")
    life.patch(replicas=4)
    assert life.writes() == ["create Pod web-3"]
    assert life.statuses == "Killed Killed Killed Running"


def test_a_killed_instance_takes_part_in_no_budget() -> None:
    life = Life().apply(tapp(replicas=3))
    life.patch(statuses={"1": "Killed"})
    life.writes()
    life.watch_readiness()
    life.patch(template=template("web:2"))
    assert life.writes() == each("update Pod", "web-0", "web-2")
    assert life.fewest_ready == 1
    life.patch(statuses=None)
    assert life.images() == "web:2 web:2 web:2"


def batch(policy: str = "Never", replicas: int = 3, **settings: Any) -> Life:
    """Instances that run for ten seconds; number 1 exits with 1."""
    life = Life(**settings)
    life.world.kubelet.levers.completes = lambda pod, _container: (
        10.0,
        int(pod["metadata"]["name"] == "web-1"),
    )
    return life.begin(tapp(replicas=replicas, template=template(restartPolicy=policy)))


def test_a_finished_instance_runs_again_when_killed_and_started() -> None:
    life = batch().settle()
    assert (life.statuses, life.status["appStatus"]) == ("Succ Failed Succ", "Failed")
    life.writes()
    life.world.kubelet.levers.completes = lambda _pod, _container: (10.0, 0)
    life.patch(statuses={"1": "Killed"})
    assert life.statuses == "Succ Killed Succ"
    assert life.writes() == []
    life.patch(statuses=None)
    assert life.writes() == ["create Pod web-1", "delete Pod web-1"]
    assert (life.statuses, life.status["appStatus"]) == ("Succ Succ Succ", "Succ")


def test_a_new_template_does_not_run_finished_instances_again() -> None:
    life = batch().settle()
    life.writes()
    life.patch(template=template("web:2", restartPolicy="Never"))
    assert life.writes() == []
    assert life.statuses == "Succ Failed Succ"


def test_scaling_a_finished_app_runs_the_new_instance_only() -> None:
    life = batch().settle()
    life.writes()
    life.patch(replicas=4)
    assert life.writes() == ["create Pod web-3", "delete Pod web-3"]
    assert life.statuses == "Succ Failed Succ Succ"


def test_finished_pods_go_at_once_where_the_operator_wants_it() -> None:
    life = batch(delete_pod_after_app_finish=False)
    life.world.kubelet.levers.completes = lambda pod, _container: (
        (10.0, 0) if pod["metadata"]["name"] == "web-0" else None
    )
    life.settle()
    assert life.statuses == "Succ Running Running"
    assert sorted(life.pods) == [1, 2]


def test_on_failure_is_left_to_the_kubelet() -> None:
    """It restarts containers itself; the pod never fails."""
    life = batch(policy="OnFailure").settle()
    assert life.status["statuses"]["0"] == life.status["statuses"]["2"] == "Succ"
    assert life.status["statuses"]["1"] != "Failed"
    life.world.kubelet.levers.completes = lambda _pod, _container: (10.0, 0)
    life.world.kubelet.retry()
    life.settle()
    assert life.status["appStatus"] == "Succ"


def test_an_evicted_pod_is_replaced_with_its_claim() -> None:
    life = Life().apply(stored())
    claims = life.claims()
    life.writes()
    life.world.kubelet.evict(life.pods[1])
    life.settle()
    assert life.writes() == ["delete Pod web-1", "create Pod web-1"]
    assert (life.statuses, life.claims()) == ("Running Running Running", claims)


def test_a_pod_that_the_kubelet_refuses_is_tried_elsewhere() -> None:
    """Also with restartPolicy Never: none of its containers ever ran."""
    life = Life()
    full = iter([True])
    life.world.kubelet.levers.refuses = lambda _pod: next(full, False)
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


def test_claims_go_with_the_tapp_where_the_policy_says_so() -> None:
    life = Life().apply(stored(persistentVolumeClaimRetentionPolicy=DELETE))
    life.writes()
    life.delete()
    assert life.writes() == [
        *each("delete Pod", "web-0", "web-1", "web-2"),
        *each("delete Claim", "data-web-0", "data-web-1", "data-web-2"),
    ]
    assert life.claims() == {}


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
    life.world.kubelet.levers.completes = lambda pod, container: (
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
    life.world.kubelet.levers.completes = lambda _pod, _container: (10.0, next(codes))
    rules = OWN["rules"]
    life.begin(tapp(replicas=1, template=template(**rules))).world.run(600)
    assert life.status["appStatus"] == "Succ"
    assert life.writes() == ["create Pod web-0", "delete Pod web-0"]
