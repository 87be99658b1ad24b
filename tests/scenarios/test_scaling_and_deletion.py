"""Tests stopping, starting, scaling, finishing and deleting: which objects are deleted and which
stay.
"""

from typing import Any

import pytest

from simulator.api.store import Propagation
from tests.scenarios.apps import stored, tapp, template
from tests.scenarios.life import Life, each

DELETE = {"whenDeleted": "Delete", "whenScaled": "Delete"}


def test_instance_gets_its_claim_again_after_scaling_down_and_up() -> None:
    life = Life().apply(stored(replicas=4))
    claims, born = life.claims(), life.uids()
    life.writes()
    life.patch(replicas=2)
    assert life.writes() == each("delete Pod", "web-2", "web-3")
    assert life.claims() == claims
    assert life.statuses == "Running Running"
    life.patch(replicas=4)
    assert life.writes() == each("create Pod", "web-2", "web-3")
    assert life.claims() == claims
    assert {number for number, uid in life.uids().items() if born[number] == uid} == {0, 1}


def test_tapp_can_be_scaled_to_zero_and_back() -> None:
    life = Life().apply(tapp(replicas=2))
    life.patch(replicas=0)
    assert life.pods == {}
    assert life.status["appStatus"] == "Pending"
    assert life.complete
    life.patch(replicas=2)
    assert life.statuses == "Running Running"


def test_scale_up_waits_for_terminating_pods_of_the_same_numbers() -> None:
    """Scales down and up again while the pods still terminate; new pods are created after the old
    ones are gone.

    Until then the names of the pods are taken.
    """
    life = Life().apply(stored(replicas=3))
    life.writes()
    life.begin_patch(replicas=1).until(lambda: bool(terminating(life)))
    life.patch(replicas=3)
    assert sorted(life.writes()) == sorted(
        [*each("delete Pod", "web-1", "web-2"), *each("create Pod", "web-1", "web-2")]
    )
    assert life.complete


def terminating(life: Life) -> list[int]:
    """Returns the numbers of the instances whose pod is being deleted."""
    return [number for number, pod in life.pods.items() if pod["metadata"].get("deletionTimestamp")]


def test_killed_instances_stay_killed_after_a_scale_up() -> None:
    life = Life().apply(tapp(replicas=2, statuses={"0": "Killed", "1": "Killed", "2": "Killed"}))
    assert life.writes() == []
    assert life.statuses == "Killed Killed"
    assert life.status["appStatus"] == "Killed"
    life.patch(replicas=4)
    assert life.writes() == ["create Pod web-3"]
    assert life.statuses == "Killed Killed Killed Running"


def test_killed_instance_does_not_count_for_the_budget() -> None:
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
    """Returns a TApp whose containers run for ten seconds; that of instance 1 exits with code 1,
    the others with 0.

    `policy` is the restart policy, and `settings` are settings of the service.
    """
    life = Life(**settings)
    life.world.kubelet.levers.completes = lambda pod, _container: (
        10.0,
        int(pod["metadata"]["name"] == "web-1"),
    )
    return life.begin(tapp(replicas=replicas, template=template(restartPolicy=policy)))


def test_finished_instance_runs_again_after_kill_and_start() -> None:
    life = batch().settle()
    assert life.statuses == "Succ Failed Succ"
    assert life.status["appStatus"] == "Failed"
    life.writes()
    life.world.kubelet.levers.completes = lambda _pod, _container: (10.0, 0)
    life.patch(statuses={"1": "Killed"})
    assert life.statuses == "Succ Killed Succ"
    assert life.writes() == []
    life.patch(statuses=None)
    assert life.writes() == ["create Pod web-1", "delete Pod web-1"]
    assert life.statuses == "Succ Succ Succ"
    assert life.status["appStatus"] == "Succ"


def test_new_template_does_not_run_finished_instances_again() -> None:
    life = batch().settle()
    life.writes()
    life.patch(template=template("web:2", restartPolicy="Never"))
    assert life.writes() == []
    assert life.statuses == "Succ Failed Succ"


def test_scale_up_of_a_finished_tapp_runs_only_the_new_instance() -> None:
    life = batch().settle()
    life.writes()
    life.patch(replicas=4)
    assert life.writes() == ["create Pod web-3", "delete Pod web-3"]
    assert life.statuses == "Succ Failed Succ Succ"


def test_finished_pods_are_deleted_at_once_if_the_setting_says_so() -> None:
    life = batch(delete_pod_after_app_finish=False)
    life.world.kubelet.levers.completes = lambda pod, _container: (
        (10.0, 0) if pod["metadata"]["name"] == "web-0" else None
    )
    life.settle()
    assert life.statuses == "Succ Running Running"
    assert sorted(life.pods) == [1, 2]


def test_kubelet_restarts_containers_with_restart_policy_on_failure() -> None:
    """A container that exits with code 1 and restart policy OnFailure is restarted in its pod.

    The pod itself does not fail, so it is not replaced.
    """
    life = batch(policy="OnFailure").settle()
    assert life.status["statuses"]["0"] == life.status["statuses"]["2"] == "Succ"
    assert life.status["statuses"]["1"] != "Failed"
    life.world.kubelet.levers.completes = lambda _pod, _container: (10.0, 0)
    life.world.kubelet.retry()
    life.settle()
    assert life.status["appStatus"] == "Succ"


def test_evicted_pod_is_replaced_and_keeps_its_claim() -> None:
    life = Life().apply(stored())
    claims = life.claims()
    life.writes()
    life.world.kubelet.evict(life.pods[1])
    life.settle()
    assert life.writes() == ["delete Pod web-1", "create Pod web-1"]
    assert life.statuses == "Running Running Running"
    assert life.claims() == claims


def test_pod_that_the_kubelet_rejects_is_replaced() -> None:
    """A pod that the kubelet rejects is replaced even with restart policy Never, because no
    container has run.
    """
    life = Life()
    full = iter([True])
    life.world.kubelet.levers.refuses = lambda _pod: next(full, False)
    life.apply(tapp(replicas=1, template=template(restartPolicy="Never")))
    assert life.writes() == ["create Pod web-0", "delete Pod web-0", "create Pod web-0"]
    assert life.statuses == "Running"


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
def test_deletion_of_a_tapp_deletes_its_pods_and_keeps_its_claims(propagation: Propagation) -> None:
    life = Life().apply(stored())
    claims = life.claims()
    life.writes()
    life.delete(propagation)
    assert not life.exists
    assert life.pods == {}
    assert life.claims() == claims
    # With foreground deletion, the garbage collector deletes the pods.
    ours = each("delete Pod", "web-0", "web-1", "web-2") if propagation == "Background" else []
    assert life.writes() == ours
    owners = [
        owner["kind"]
        for claim in life.world.list("PersistentVolumeClaim")
        for owner in claim["metadata"]["ownerReferences"]
    ]
    assert owners == ["Namespace"] * 3


def test_orphan_deletion_keeps_pods_and_claims() -> None:
    life = Life().apply(stored())
    born, claims = life.uids(), life.claims()
    life.writes()
    life.delete("Orphan")
    assert not life.exists
    assert life.uids() == born
    assert life.claims() == claims
    assert life.writes() == []
    assert set(life.restarts().values()) == {0}


def test_deletion_of_a_tapp_deletes_its_claims_if_the_policy_says_so() -> None:
    life = Life().apply(stored(persistentVolumeClaimRetentionPolicy=DELETE))
    life.writes()
    life.delete()
    assert life.writes() == [
        *each("delete Pod", "web-0", "web-1", "web-2"),
        *each("delete Claim", "data-web-0", "data-web-1", "data-web-2"),
    ]
    assert life.claims() == {}


def test_new_tapp_of_the_same_name_uses_the_old_claims() -> None:
    life = Life().apply(stored())
    claims = life.claims()
    life.delete()
    life.apply(stored())
    assert life.claims() == claims
    mounted = [pod["spec"]["volumes"][0]["persistentVolumeClaim"] for pod in life.pods.values()]
    assert {item["claimName"] for item in mounted} == set(claims)
    # The claims have the UID of the deleted TApp in their label.
    assert life.condition("Ready").startswith("False ClaimsNotOwned: ")
    for name in claims:
        mine = {"metadata": {"labels": {"controller-uid": life.tapp["metadata"]["uid"]}}}
        life.world.patch("PersistentVolumeClaim", name, mine)
    life.settle()
    assert life.claims() == claims
    assert life.complete


def test_deletion_of_the_namespace_deletes_everything() -> None:
    life = Life().apply(stored())
    life.world.delete("Namespace", "default")
    life.settle(allow_errors=True)
    assert not life.exists
    assert life.pods == {}
    assert life.claims() == {}
    assert [item["metadata"]["name"] for item in life.world.list("Namespace")] == []


def test_tapp_with_an_invalid_spec_can_be_deleted() -> None:
    life = Life().apply(stored())
    life.world.patch("TApp", "web", {"spec": {"replicas": "many"}})
    life.settle(allow_errors=True)
    assert sorted(life.pods) == [0, 1, 2]
    life.delete()
    assert not life.exists
    assert life.pods == {}


OWN: dict[str, Any] = {
    "policy of the container": {"container": {"restartPolicy": "Never"}},
    "rules of the container": {
        "container": {
            "restartPolicy": "Never",
            "restartPolicyRules": [
                {"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}
            ],
        }
    },
    "native sidecar": {
        "container": {"restartPolicy": "Never"},
        "initContainers": [{"name": "log", "image": "log:1", "restartPolicy": "Always"}],
    },
}


@pytest.mark.parametrize("parts", OWN.values(), ids=OWN)
def test_pod_whose_containers_do_not_restart_runs_once(parts: dict[str, Any]) -> None:
    """Each container overrides the pod's restart policy Always: it runs once, and its instance is
    finished.

    The instance whose container exits with code 1 has failed, and the others have succeeded.
    """
    life = Life()
    life.world.kubelet.levers.completes = lambda pod, container: (
        (10.0, int(pod["metadata"]["name"] == "web-1")) if container == "web" else None
    )
    life.begin(tapp(replicas=3, template=template(**parts))).world.run(3600)
    assert life.statuses == "Succ Failed Succ"
    assert life.status["appStatus"] == "Failed"
    names = ("web-0", "web-1", "web-2")
    assert sorted(life.writes()) == sorted(
        [*each("create Pod", *names), *each("delete Pod", *names)]
    )


def test_container_that_its_rule_restarts_stays_in_its_pod() -> None:
    """A restart rule restarts a container by its exit code; the pod ends when no rule matches."""
    life = Life()
    codes = iter([42, 42, 0])
    life.world.kubelet.levers.completes = lambda _pod, _container: (10.0, next(codes))
    rules = OWN["rules of the container"]
    life.begin(tapp(replicas=1, template=template(**rules))).world.run(600)
    assert life.status["appStatus"] == "Succ"
    assert life.writes() == ["create Pod web-0", "delete Pod web-0"]
