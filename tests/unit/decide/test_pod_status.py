"""`POST /pod-status`: one pod, and its status with one thing changed, or exactly as it was."""

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import NOW, Document, completed, crashing, tapp, template, terminating
from tests.unit.decide.test_lost_node import silent, stamp
from tests.unit.world import Hook, World

GATE = "apps.tkestack.io/InPlaceUpdateReady"
OLD_GATE = "tkestack.io/InPlaceUpdate"
DRAIN = "apps.tkestack.io/drain"
LOST = "apps.tkestack.io/lost-node"
RECORD = "apps.tkestack.io/in-place-update"


def served(gate: str = GATE) -> Document:
    """A pod of a TApp that runs, with an open gate."""
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


def asked(pod: Any) -> Document:
    return {"controller": {}, "object": pod, "attachments": {}, "related": {}, "finalizing": False}


def answer(pod: Any, now: float = NOW) -> Document:
    return Hook(now=now).answer("/pod-status", asked(pod))


def gate_of(status: Document, gate: str = GATE) -> Document:
    return next(item for item in status["conditions"] if item["type"] == gate)


@pytest.mark.parametrize("gate", [GATE, OLD_GATE])
def test_a_gate_without_a_condition_is_opened(gate: str) -> None:
    pod = without_gate(served(gate))
    status = answer(pod)["status"]
    opened = gate_of(status, gate)
    assert opened == {
        "type": gate,
        "status": "True",
        "reason": "NoUpdateInPlace",
        "message": f"runs revision {pod['metadata']['labels']['tapp_template_hash_key']}",
        "lastTransitionTime": stamp(NOW),
    }
    assert [c for c in status["conditions"] if c != opened] == pod["status"]["conditions"]
    assert {**status, "conditions": None} == {**pod["status"], "conditions": None}


@pytest.mark.parametrize("annotations", [{}, {"drain": "v1-next"}], ids=["open", "drained"])
def test_a_gate_is_not_written_before_the_kubelets_first_report(
    annotations: dict[str, str],
) -> None:
    """Scheduler and kubelet write the status just then, so the write would be a conflict."""
    pod = annotated(without_gate(served()), **annotations)
    pod["status"] = {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}]}
    assert answer(pod) == {"status": pod["status"]}
    del pod["status"]
    assert answer(pod) == {"status": None}


def test_a_drain_closes_the_gate_in_its_place() -> None:
    pod = annotated(served(), drain="v1-next")
    status = answer(pod)["status"]
    closed = gate_of(status)
    assert (closed["status"], closed["lastTransitionTime"]) == ("False", stamp(NOW))
    types = [item["type"] for item in pod["status"]["conditions"]]
    assert [item["type"] for item in status["conditions"]] == types


UNCHANGED: dict[str, Callable[[], Any]] = {
    "an open gate": served,
    "no gate": lambda: World(tapp(replicas=1)).settle().pod(0),
    "an unknown gate": lambda: without_gate(served("example.com/gate")),
    "no annotations": lambda: {
        **served(),
        "metadata": {k: v for k, v in served()["metadata"].items() if k != "annotations"},
    },
    "another owner": lambda: owned(
        annotated(served(), drain="v1-next"), kind="ReplicaSet", apiVersion="apps/v1"
    ),
    "a TApp of somebody else": lambda: owned(
        annotated(served(), drain="v1-next"), kind="TApp", apiVersion="example.com/v1"
    ),
    "never an instance": lambda: {
        **owned(without_gate(served())),
        "metadata": {"name": "a", "namespace": "shop"},
    },
    "terminating": lambda: terminating(annotated(served(), drain="v1-next")),
    "completed": lambda: completed(annotated(served(), drain="v1-next"), "Failed"),
    "a drain by hand": lambda: annotated(served(), drain="yes"),
    "a drain for what it is": lambda: annotated(
        served(), drain=served()["metadata"]["labels"]["tapp_template_hash_key"]
    ),
    "a record that is none": lambda: annotated(served(), record="{"),
    "a record of no container of its": lambda: annotated(
        served(), record='{"containers":{"gone":{"id":"x","image":"y"}}}'
    ),
    "lost by hand, and it serves": lambda: annotated(served(), lost=stamp(NOW - 900)),
    "lost by hand, no time": lambda: annotated(silent(served(), NOW - 900), lost="true"),
    "lost, but since another time": lambda: annotated(
        silent(served(), NOW - 800), lost=stamp(NOW - 900)
    ),
    "lost in the future": lambda: annotated(silent(served(), NOW + 900), lost=stamp(NOW + 900)),
    "silent, and not marked": lambda: silent(served(), NOW - 900),
    "not ready by itself": lambda: annotated(crashing(served()), lost=stamp(NOW - 900)),
    "conditions that cannot be read": lambda: {
        **served(),
        "status": {"phase": "Running", "conditions": "?"},
    },
    "a label of a wrong type": lambda: {
        **served(),
        "metadata": {**served()["metadata"], "labels": {"a": 1}},
    },
    "a status of null": lambda: {**owned(served()), "metadata": {"name": "a"}, "status": None},
}


@pytest.mark.parametrize("make", UNCHANGED.values(), ids=UNCHANGED)
def test_a_status_comes_back_as_it_was(make: Callable[[], Any]) -> None:
    """Byte for byte, so that Metacontroller writes nothing."""
    pod = make()
    body = msgspec.json.encode(asked(pod))
    response = Hook().post("/pod-status", body)
    assert response.data == b'{"status":' + msgspec.json.encode(pod["status"]) + b"}"


def test_a_pod_that_its_tapp_left_is_not_kept_out() -> None:
    """Nobody is there to take the drain back: `kubectl delete --cascade=orphan`."""
    pod = annotated(served(), drain="v1-next")
    closed = {**pod, "status": answer(pod)["status"]}
    assert answer(closed)["status"] == closed["status"]
    assert gate_of(answer(owned(closed))["status"])["status"] == "True"


def test_a_closed_gate_waits_for_the_containers() -> None:
    pod = annotated(served(), drain="v1-next")
    closed = {**pod, "status": answer(pod)["status"]}
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
    assert answer(broken)["status"] == broken["status"]
    assert gate_of(answer(back)["status"])["status"] == "True"


def updated(
    pod: Document, *, seen: int, replaced: bool, message: str = "runs revision v1-before"
) -> Document:
    """The pod with a record of one container, whose gate somebody opened with that message."""
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
    "the last release's": lambda: f"runs revision {revision(served())}",
    "the last release's, of another revision": lambda: "runs revision v1-before",
    "in other words": lambda: "nothing keeps it out of its Services",
    "none": lambda: "",
}


def revision(pod: Document) -> str:
    return str(pod["metadata"]["labels"]["tapp_template_hash_key"])


@pytest.mark.parametrize("message", MESSAGES.values(), ids=MESSAGES)
@pytest.mark.parametrize("seen", [2, 3])
def test_an_open_gate_stays_open_whatever_its_message(
    message: Callable[[], str], seen: int
) -> None:
    """Also while the kubelet has not seen a later change of the spec (a toleration, a resize)."""
    pod = updated(served(), seen=seen, replaced=True, message=message())
    assert answer(pod)["status"] == pod["status"]


@pytest.mark.parametrize("message", MESSAGES.values(), ids=MESSAGES)
@pytest.mark.parametrize("seen", [2, 3])
def test_an_open_gate_is_closed_for_an_update_whatever_its_message(
    message: Callable[[], str], seen: int
) -> None:
    """A pod that is to be replaced still runs."""
    pod = updated(served(), seen=seen, replaced=False, message=message())
    closed = gate_of(answer(pod)["status"])
    assert (closed["status"], closed["reason"]) == ("False", "UpdateInPlace")


STARTUP = {"tcpSocket": {"port": 80}, "periodSeconds": 10}


@pytest.mark.parametrize(
    ("restarts", "opens_after"), [(1, 12), (0, None)], ids=["restarted", "the first"]
)
def test_a_gate_waits_until_the_startup_probe_can_have_run(
    restarts: int, opens_after: int | None
) -> None:
    """ContainersReady turned True a second after the start, because of the container before."""
    probes = {"startupProbe": STARTUP, "readinessProbe": {**STARTUP, "periodSeconds": 1}}
    body = template(readinessGates=[{"conditionType": GATE}], container=probes)
    pod = World(tapp(replicas=1, template=body)).settle().pod(0)
    draining = annotated(pod, drain="v1-next")
    closed = annotated({**draining, "status": answer(draining)["status"]}, drain="")
    item = closed["status"]["containerStatuses"][0]
    item = {**item, "restartCount": restarts, "state": {"running": {"startedAt": stamp(NOW)}}}
    conditions = [
        {**each, "lastTransitionTime": stamp(NOW + 1)}
        if each["type"] == "ContainersReady"
        else each
        for each in closed["status"]["conditions"]
    ]
    status = {**closed["status"], "containerStatuses": [item], "conditions": conditions}
    closed = {**closed, "status": status}
    first = answer(closed, NOW + 1)
    assert first.get("resyncAfterSeconds") == (opens_after and opens_after - 1)
    assert gate_of(first["status"])["status"] == ("False" if opens_after else "True")
    assert gate_of(answer(closed, NOW + (opens_after or 1))["status"])["status"] == "True"


def test_a_lost_pod_is_made_failed_and_nothing_else() -> None:
    since = NOW + 100
    pod = annotated(silent(served(), since), lost=stamp(since))
    status = answer(pod, since + 400)["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "NodeLost")
    assert stamp(since) in status["message"]
    left = {key: value for key, value in status.items() if key not in ("reason", "message")}
    assert {**left, "phase": "Running"} == pod["status"]


REFUSED = {
    "nothing": b"",
    "null": b"null",
    "no object": b"{}",
    "an object that is none": b'{"object":5}',
    "no name": b'{"object":{"metadata":{}}}',
    "an empty name": b'{"object":{"metadata":{"name":""}}}',
    "no UTF-8": b'{"object":{"metadata":{"name":"\xff"}}}',
    "cut": json.dumps(asked({"metadata": {"name": "a"}})).encode()[:-3],
}


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED)
def test_what_is_no_request_is_refused(body: bytes) -> None:
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
def test_any_pod_gets_an_answer_or_a_clear_error(value: Any, where: str) -> None:
    """Whatever stands in a part of it: never an internal error, and never less than it had."""
    pod = annotated(served(), drain="v1-next")
    if where == "labels":
        pod["metadata"] = {**pod["metadata"], "labels": value}
    elif where == "conditions":
        pod["status"] = {**pod["status"], "conditions": value}
    elif where == "gates":
        pod["spec"] = {**pod["spec"], "readinessGates": value}
    else:
        pod[where] = value
    response = HOOK.post("/pod-status", asked(pod))
    assert response.status_code in (200, 400)
    if response.status_code == 200 and isinstance(pod["status"], dict):
        assert response.json is not None
        assert response.json["status"].keys() >= pod["status"].keys()
