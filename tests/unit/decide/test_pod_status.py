"""Tests the hook `POST /pod-status`, which returns the status of one pod with at most one
change.
"""

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import NOW, Document, completed, crashing, tapp, template, terminating
from tests.unit.nodes import not_ready, timestamp
from tests.unit.world import Hook, World

GATE = "apps.tkestack.io/InPlaceUpdateReady"
OLD_GATE = "tkestack.io/InPlaceUpdate"
DRAIN = "apps.tkestack.io/drain"
LOST = "apps.tkestack.io/lost-node"
RECORD = "apps.tkestack.io/in-place-update"


def pod_with_gate(gate: str = GATE) -> Document:
    """Returns a running pod of a TApp whose readiness gate of this type is open."""
    body = template(readinessGates=[{"conditionType": gate}])
    return World(tapp(replicas=1, template=body)).settle().pod(0)


def annotated(pod: Document, **annotations: str) -> Document:
    keys = {"drain": DRAIN, "lost": LOST, "record": RECORD}
    meta = pod["metadata"]
    marks = {keys[name]: value for name, value in annotations.items()}
    return {**pod, "metadata": {**meta, "annotations": {**meta["annotations"], **marks}}}


def without_gate(pod: Document) -> Document:
    others = [c for c in pod["status"]["conditions"] if c["type"] not in (GATE, OLD_GATE)]
    return {**pod, "status": {**pod["status"], "conditions": others}}


def owned(pod: Document, **owner: Any) -> Document:
    references = [{"uid": "u", "name": "n", "controller": True, **owner}] if owner else []
    return {**pod, "metadata": {**pod["metadata"], "ownerReferences": references}}


def request_for(pod: Any) -> Document:
    return {"controller": {}, "object": pod, "attachments": {}, "related": {}, "finalizing": False}


def response_to(pod: Any, now: float = NOW) -> Document:
    return Hook(now=now).answer("/pod-status", request_for(pod))


def gate_of(status: Document, gate: str = GATE) -> Document:
    return next(item for item in status["conditions"] if item["type"] == gate)


@pytest.mark.parametrize("gate", [GATE, OLD_GATE], ids=["gate", "old gate"])
def test_gate_without_a_condition_is_opened(gate: str) -> None:
    pod = without_gate(pod_with_gate(gate))
    status = response_to(pod)["status"]
    opened = gate_of(status, gate)
    assert opened == {
        "type": gate,
        "status": "True",
        "reason": "NoUpdateInPlace",
        "message": f"runs revision {pod['metadata']['labels']['tapp_template_hash_key']}",
        "lastTransitionTime": timestamp(NOW),
    }
    assert [c for c in status["conditions"] if c != opened] == pod["status"]["conditions"]
    assert {**status, "conditions": None} == {**pod["status"], "conditions": None}


@pytest.mark.parametrize(
    "annotations", [{}, {"drain": "v1-next"}], ids=["no annotation", "drain annotation"]
)
def test_gate_is_not_written_before_the_first_report_of_the_kubelet(
    annotations: dict[str, str],
) -> None:
    """Before the kubelet has reported a pod, its status is returned unchanged.

    Scheduler and kubelet write the status at that moment, so a write would conflict.
    """
    pod = annotated(without_gate(pod_with_gate()), **annotations)
    pod["status"] = {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}]}
    assert response_to(pod) == {"status": pod["status"]}
    del pod["status"]
    assert response_to(pod) == {"status": None}


def test_drain_annotation_closes_the_gate_and_keeps_the_order_of_conditions() -> None:
    pod = annotated(pod_with_gate(), drain="v1-next")
    status = response_to(pod)["status"]
    closed = gate_of(status)
    assert closed["status"] == "False"
    assert closed["lastTransitionTime"] == timestamp(NOW)
    types = [item["type"] for item in pod["status"]["conditions"]]
    assert [item["type"] for item in status["conditions"]] == types


UNCHANGED: dict[str, Callable[[], Any]] = {
    "open gate": pod_with_gate,
    "no gate": lambda: World(tapp(replicas=1)).settle().pod(0),
    "gate of somebody else": lambda: without_gate(pod_with_gate("example.com/gate")),
    "no annotations": lambda: {
        **pod_with_gate(),
        "metadata": {k: v for k, v in pod_with_gate()["metadata"].items() if k != "annotations"},
    },
    "another owner": lambda: owned(
        annotated(pod_with_gate(), drain="v1-next"), kind="ReplicaSet", apiVersion="apps/v1"
    ),
    "TApp of another API group": lambda: owned(
        annotated(pod_with_gate(), drain="v1-next"), kind="TApp", apiVersion="example.com/v1"
    ),
    "pod without labels": lambda: {
        **owned(without_gate(pod_with_gate())),
        "metadata": {"name": "a", "namespace": "shop"},
    },
    "terminating": lambda: terminating(annotated(pod_with_gate(), drain="v1-next")),
    "completed": lambda: completed(annotated(pod_with_gate(), drain="v1-next"), "Failed"),
    "invalid drain annotation": lambda: annotated(pod_with_gate(), drain="yes"),
    "drain for the current revision": lambda: annotated(
        pod_with_gate(), drain=pod_with_gate()["metadata"]["labels"]["tapp_template_hash_key"]
    ),
    "invalid update record": lambda: annotated(pod_with_gate(), record="{"),
    "update record of another container": lambda: annotated(
        pod_with_gate(), record='{"containers":{"gone":{"id":"x","image":"y"}}}'
    ),
    "lost-node annotation on a ready pod": lambda: annotated(
        pod_with_gate(), lost=timestamp(NOW - 900)
    ),
    "lost-node annotation without a time": lambda: annotated(
        not_ready(pod_with_gate(), NOW - 900), lost="true"
    ),
    "lost-node annotation with another time": lambda: annotated(
        not_ready(pod_with_gate(), NOW - 800), lost=timestamp(NOW - 900)
    ),
    "lost-node annotation in the future": lambda: annotated(
        not_ready(pod_with_gate(), NOW + 900), lost=timestamp(NOW + 900)
    ),
    "node unreachable without annotation": lambda: not_ready(pod_with_gate(), NOW - 900),
    "lost-node annotation on a crashing pod": lambda: annotated(
        crashing(pod_with_gate()), lost=timestamp(NOW - 900)
    ),
    "invalid conditions": lambda: {
        **pod_with_gate(),
        "status": {"phase": "Running", "conditions": "?"},
    },
    "invalid label": lambda: {
        **pod_with_gate(),
        "metadata": {**pod_with_gate()["metadata"], "labels": {"a": 1}},
    },
    "null status": lambda: {**owned(pod_with_gate()), "metadata": {"name": "a"}, "status": None},
}


@pytest.mark.parametrize("make", UNCHANGED.values(), ids=UNCHANGED)
def test_status_is_returned_unchanged_if_nothing_is_to_be_done(make: Callable[[], Any]) -> None:
    """Compares the response for several pods with their status, byte by byte, so that
    Metacontroller writes nothing.
    """
    pod = make()
    body = msgspec.json.encode(request_for(pod))
    response = Hook().post("/pod-status", body)
    assert response.data == b'{"status":' + msgspec.json.encode(pod["status"]) + b"}"


def test_gate_of_an_orphaned_pod_is_opened() -> None:
    """The closed gate of a pod without an owner is opened.

    After `kubectl delete --cascade=orphan`, nothing would remove the drain annotation.
    """
    pod = annotated(pod_with_gate(), drain="v1-next")
    closed = {**pod, "status": response_to(pod)["status"]}
    assert response_to(closed)["status"] == closed["status"]
    assert gate_of(response_to(owned(closed))["status"])["status"] == "True"


def test_gate_stays_closed_until_all_containers_are_ready() -> None:
    pod = annotated(pod_with_gate(), drain="v1-next")
    closed = {**pod, "status": response_to(pod)["status"]}
    back = annotated(closed, drain="")
    broken = {
        **back,
        "status": {
            **back["status"],
            "conditions": [
                {**c, "status": "False"} if c["type"] == "ContainersReady" else c
                for c in back["status"]["conditions"]
            ],
        },
    }
    assert response_to(broken)["status"] == broken["status"]
    assert gate_of(response_to(back)["status"])["status"] == "True"


def with_update_record(
    pod: Document, *, seen: int, replaced: bool, message: str = "runs revision v1-before"
) -> Document:
    """Returns the pod with a record of an update in place, and with this message at its gate.

    `seen` is the generation that the kubelet has observed, and `replaced` is True if the container
    has restarted.
    """
    item = pod["status"]["containerStatuses"][0]
    was = {"id": "containerd://old" if replaced else item["containerID"], "image": "nginx:0"}
    item = item if replaced else {**item, "image": "nginx:0", "imageID": "sha256:0"}
    record = {"revision": "v1-now", "containers": {item["name"]: was}}
    pod = annotated(pod, record=json.dumps(record))
    conditions = [
        {**each, "message": message} if each["type"] == GATE else each
        for each in pod["status"]["conditions"]
    ]
    status = {**pod["status"], "conditions": conditions, "observedGeneration": seen}
    status["containerStatuses"] = [item]
    return {**pod, "metadata": {**pod["metadata"], "generation": 3}, "status": status}


MESSAGES = {
    "earlier release": lambda: f"runs revision {revision(pod_with_gate())}",
    "earlier release, other revision": lambda: "runs revision v1-before",
    "other text": lambda: "nothing keeps it out of its Services",
    "empty": lambda: "",
}


def revision(pod: Document) -> str:
    return str(pod["metadata"]["labels"]["tapp_template_hash_key"])


@pytest.mark.parametrize("message", MESSAGES.values(), ids=MESSAGES)
@pytest.mark.parametrize("seen", [2, 3], ids=["generation not observed", "generation observed"])
def test_open_gate_stays_open_after_an_update_with_any_message(
    message: Callable[[], str], seen: int
) -> None:
    """The containers have restarted for the update: the open gate stays open, with any earlier
    message.

    This holds although the kubelet has not observed a later change, such as a resize.
    """
    pod = with_update_record(pod_with_gate(), seen=seen, replaced=True, message=message())
    assert response_to(pod)["status"] == pod["status"]


@pytest.mark.parametrize("message", MESSAGES.values(), ids=MESSAGES)
@pytest.mark.parametrize("seen", [2, 3], ids=["generation not observed", "generation observed"])
def test_open_gate_is_closed_for_an_update_with_any_message(
    message: Callable[[], str], seen: int
) -> None:
    """The hook closes an open gate while containers with the old image still run.

    The message that the condition of the gate has had so far makes no difference.
    """
    pod = with_update_record(pod_with_gate(), seen=seen, replaced=False, message=message())
    closed = gate_of(response_to(pod)["status"])
    assert closed["status"] == "False"
    assert closed["reason"] == "UpdateInPlace"


STARTUP = {"tcpSocket": {"port": 80}, "periodSeconds": 10}


@pytest.mark.parametrize(
    ("restarts", "opens_after"),
    [(1, 12), (0, None)],
    ids=["restarted container", "first container"],
)
def test_gate_opens_after_the_startup_probe_of_a_restarted_container_has_had_time_to_run(
    restarts: int, opens_after: int | None
) -> None:
    """After an update, the gate of a restarted container with a startup probe opens 12 seconds
    later.

    ContainersReady may still be True because of the previous container.
    """
    probes = {"startupProbe": STARTUP, "readinessProbe": {**STARTUP, "periodSeconds": 1}}
    body = template(readinessGates=[{"conditionType": GATE}], container=probes)
    pod = World(tapp(replicas=1, template=body)).settle().pod(0)
    draining = annotated(pod, drain="v1-next")
    closed = annotated({**draining, "status": response_to(draining)["status"]}, drain="")
    item = closed["status"]["containerStatuses"][0]
    item = {**item, "restartCount": restarts, "state": {"running": {"startedAt": timestamp(NOW)}}}
    conditions = [
        {**each, "lastTransitionTime": timestamp(NOW + 1)}
        if each["type"] == "ContainersReady"
        else each
        for each in closed["status"]["conditions"]
    ]
    status = {**closed["status"], "containerStatuses": [item], "conditions": conditions}
    closed = {**closed, "status": status}
    first = response_to(closed, NOW + 1)
    assert first.get("resyncAfterSeconds") == (opens_after and opens_after - 1)
    assert gate_of(first["status"])["status"] == ("False" if opens_after else "True")
    assert gate_of(response_to(closed, NOW + (opens_after or 1))["status"])["status"] == "True"


def test_pod_on_a_lost_node_gets_phase_failed_and_keeps_its_other_status() -> None:
    since = NOW + 100
    pod = annotated(not_ready(pod_with_gate(), since), lost=timestamp(since))
    status = response_to(pod, since + 400)["status"]
    assert status["phase"] == "Failed"
    assert status["reason"] == "NodeLost"
    assert timestamp(since) in status["message"]
    left = {key: value for key, value in status.items() if key not in ("reason", "message")}
    assert {**left, "phase": "Running"} == pod["status"]


REFUSED = {
    "empty body": b"",
    "null": b"null",
    "no object": b"{}",
    "object is a number": b'{"object":5}',
    "no name": b'{"object":{"metadata":{}}}',
    "empty name": b'{"object":{"metadata":{"name":""}}}',
    "invalid UTF-8": b'{"object":{"metadata":{"name":"\xff"}}}',
    "truncated": json.dumps(request_for({"metadata": {"name": "a"}})).encode()[:-3],
}


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED)
def test_invalid_request_is_refused_with_an_error(body: bytes) -> None:
    response = Hook().post("/pod-status", body)
    assert response.status_code == 400
    assert response.json is not None
    assert response.json["error"]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4) | st.just(GATE),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["conditions", "type", "status", "phase", "metadata", "a"]), inner
        )
    ),
    max_leaves=8,
)


HOOK = Hook()


@given(VALUES, st.sampled_from(["metadata", "spec", "status", "labels", "conditions", "gates"]))
def test_random_pods_get_a_complete_status_or_an_error(value: Any, where: str) -> None:
    """Puts random values into a pod: the hook never fails internally, and never returns a status
    with fewer fields.
    """
    pod = annotated(pod_with_gate(), drain="v1-next")
    if where == "labels":
        pod["metadata"] = {**pod["metadata"], "labels": value}
    elif where == "conditions":
        pod["status"] = {**pod["status"], "conditions": value}
    elif where == "gates":
        pod["spec"] = {**pod["spec"], "readinessGates": value}
    else:
        pod[where] = value
    response = HOOK.post("/pod-status", request_for(pod))
    assert response.status_code in (200, 400)
    if response.status_code == 200 and isinstance(pod["status"], dict):
        assert response.json is not None
        assert response.json["status"].keys() >= pod["status"].keys()
