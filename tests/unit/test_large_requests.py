"""Tests requests that could cause large responses or long computations: both stay within their
limits.

The limits are TAPP_MAX_NEW_PODS_BYTES, here 200 KiB, and a number of steps that grows linearly with
the request. `tests/cost/steps.py` defines a step.
"""

import json
from typing import Any

import pytest

from hooks.wire.memo import Memo
from hooks.wire.request import Request
from tapp.declared.model import TApp
from tests.builders import Document, as_sent, claim_template, request, tapp, template
from tests.cost.measure import counted
from tests.cost.promise import STEPS_A_MS
from tests.counting import calls
from tests.holds import HOLD, HOLD_FOR, WANTED, WANTED_SINCE
from tests.hook_calls import desired
from tests.sizes import size
from tests.unit.world import Hook, World, condition

KB = 1024
HOOK = Hook(max_new_pods_bytes=200 * KB)


def millions_of_steps(path: str, body: bytes) -> float:
    """Returns the number of steps, in millions, that a service with the settings of `HOOK` takes
    for a request.
    """
    return counted(path, body, max_new_pods_bytes=200 * KB).steps / 1e6


def large_template(size: int = 60_000) -> Document:
    return template(annotations={"large": "x" * size})


def new_pods(answer: Document, asked: Document) -> list[str]:
    have = {pod["metadata"]["name"] for pod in asked["children"]["Pod.v1"].values()}
    return [name for name in desired(answer, "Pod") if name not in have]


def test_response_has_no_more_new_pods_than_its_size_limit_allows() -> None:
    """With ten pods of 60 KB, the first response creates three, and the other instances wait for
    later syncs.

    A template of 100 KB and 2,000 replicas once caused a response of 201 MB.
    """
    world = World(tapp(replicas=10, template=large_template()), hook=HOOK)
    asked = world.request()
    answer = HOOK.sync(asked)
    assert new_pods(answer, asked) == ["web-0", "web-1", "web-2"]
    assert len(json.dumps(answer)) < 200 * KB
    assert answer["resyncAfterSeconds"] <= 1
    assert world.decisions()[3] == "Absent/WaitingForTurn"
    progress = condition(answer, "Progressing")
    assert progress is not None
    assert progress["message"] == "creating instances 0-9"


def test_at_least_one_pod_is_created_although_it_exceeds_the_size_limit() -> None:
    asked = World(tapp(replicas=3, template=large_template(300_000)), hook=HOOK).request()
    assert new_pods(HOOK.sync(asked), asked) == ["web-0"]


def test_next_syncs_create_the_remaining_pods_and_claims() -> None:
    world = World(
        tapp(replicas=10, template=large_template(), volumeClaimTemplates=[claim_template()]),
        hook=HOOK,
    )
    sizes = []
    for _ in range(6):
        world.sync()
        world.kubelet()
        sizes.append(len(world.pods))
        assert len(world.claims) == len(world.pods)
    assert sizes == [3, 6, 9, 10, 10, 10]
    assert condition(world.sync(), "Ready") is not None
    assert "resyncAfterSeconds" not in world.sync()


def test_new_claims_count_for_the_size_limit() -> None:
    claim = claim_template()
    claim["metadata"]["annotations"] = {"large": "x" * 50_000}
    asked = World(tapp(replicas=10, volumeClaimTemplates=[claim]), hook=HOOK).request()
    answer = HOOK.sync(asked)
    assert new_pods(answer, asked) == ["web-0", "web-1", "web-2"]
    assert list(desired(answer, "PersistentVolumeClaim")) == [f"data-web-{n}" for n in range(3)]


def test_new_and_changed_services_count_for_the_size_limit() -> None:
    template = {"metadata": {"annotations": {"large": "x" * 60_000}}, "spec": {"ports": []}}
    world = World(tapp(replicas=10, serviceTemplate=template), hook=HOOK, exposing=True)
    sizes, longest = [], 0
    for _ in range(4):
        answer = world.sync()
        world.kubelet()
        sizes.append(len(world.services))
        longest = max(longest, len(json.dumps(answer)))
    assert sizes == [4, 8, 10, 10]
    template["metadata"]["annotations"]["large"] = "y" * 60_000
    world.change(serviceTemplate=template)
    written = []
    for _ in range(4):
        world.sync()
        written.append(len(world.writes))
    assert written == [4, 4, 2, 0]
    assert len(world.services) == 10


def test_pod_that_waits_for_the_next_sync_is_not_reported_as_not_created() -> None:
    world = World(
        tapp(replicas=10, template=large_template()), hook=Hook(max_new_pods_bytes=200 * KB)
    )
    status: Document = {}
    for _ in range(4):  # no pod is created yet
        asked = world.request()
        asked["parent"]["status"] = status
        answer = world.hook.sync(asked)
        status = answer["status"]
        world.hook.now += 1
    assert list(status["notCreated"].values()) == ["0-2"]
    assert list(status["statuses"]) == ["0", "1", "2"]


def test_refused_pods_do_not_block_the_creation_of_the_others() -> None:
    world = World(
        tapp(replicas=10, template=large_template()), hook=Hook(max_new_pods_bytes=200 * KB)
    )
    status: Document = {}
    seen: set[str] = set()
    for _ in range(60):  # the API server refuses every pod
        asked = world.request()
        asked["parent"]["status"] = status
        answer = world.hook.sync(asked)
        seen.update(new_pods(answer, asked))
        status = answer["status"]
        world.hook.now += 2
    assert len(seen) == 10
    assert condition(answer, "PodsNotCreated") is not None


# --- size and steps of a response -----------------------------------------------------------------

DEEP = 200
MANY = size(400, 3_000)


def nested_value(depth: int) -> Any:
    value: Any = {}
    for _ in range(depth):
        value = {"a": [value]}
    return value


def template_with_env(*texts: str) -> Document:
    """Returns a template whose container has one environment variable with each of these texts."""
    variables = [{"name": f"V{index}", "value": text} for index, text in enumerate(texts)]
    return template(container={"env": variables})


LONG = "n" * 50_000
SHAPES: dict[str, Document] = {
    "long template name": {"replicas": MANY, "defaultTemplateName": LONG},
    "long name of a repeated variable": {
        "replicas": MANY,
        "template": template(
            container={
                "env": [{"name": LONG, "valueFrom": {}}, {"name": LONG, "value": f"$({LONG})"}]
            }
        ),
    },
    "many long template names": {
        "replicas": 100,
        "templates": {str(n): f"{n}{LONG[:1000]}" for n in range(100)},
    },
    "deep template": {"replicas": MANY, "template": template(x=nested_value(DEEP))},
    "quantity with a huge exponent": {
        "template": template(container={"resources": {"limits": {"cpu": "1e999999999"}}})
    },
    "quantities with long exponents": {
        "template": template(
            container={"resources": {"limits": {str(n): f"{n}e99" for n in range(2000)}}}
        )
    },
    "storage request with a huge exponent": {"volumeClaimTemplates": [claim_template("1e99999")]},
    "many labels": {
        "replicas": MANY,
        "template": template(labels={f"l{n}": "x" for n in range(999)}),
    },
    "long image": {"replicas": MANY, "template": template(LONG)},
    "long host name": {"replicas": MANY, "serviceName": LONG},
    "long texts in statuses": {"statuses": {str(n): LONG[:1000] for n in range(500)}},
    "very long numbers": {"templates": {"9" * 5000 + str(n): "a" for n in range(100)}},
    "values of instances that do not exist": {
        "replicas": 100,
        "template": template_with_env("$(tapp.values.a)"),
        "values": {str(n): {"a": f"{n}"} for n in range(50_000)},
    },
    "long value in many variables": {
        "replicas": MANY,
        "template": template_with_env(*["$(tapp.values.a)$(tapp.index)"] * 100),
        "defaultValues": {"a": LONG[:1_024]},
    },
    "large template with a placeholder": {
        "replicas": MANY,
        "template": template(annotations={"large": LONG, "own": "$(tapp.index)"}),
    },
    "too large template with a placeholder": {
        "replicas": MANY,
        "template": template(annotations={"large": LONG * 20, "own": "$(tapp.index)"}),
    },
    "many unused values": {
        "replicas": MANY,
        "defaultValues": {f"k{n}": "x" for n in range(10_000)},
    },
    "invalid partition": {"updateStrategy": {"partition": "9" * 50_000 + "%"}},
    "partition and a placeholder": {
        "replicas": MANY,
        "template": template_with_env("$(tapp.index)"),
        "updateStrategy": {"partition": "50%"},
    },
    "invalid budget": {"updateStrategy": {"maxUnavailable": "9" * 50_000 + "%"}},
}
BYTES_OF_INSTANCE = 4 * KB
"""Bytes that an instance may take in a response, in addition to the shared parts."""


@pytest.mark.parametrize("path", ["/sync", "/plan"])
@pytest.mark.parametrize("spec", SHAPES.values(), ids=SHAPES)
def test_response_and_steps_grow_at_most_linearly_with_request_and_replicas(
    spec: Document, path: str
) -> None:
    body = as_sent(request(tapp(**spec)))
    response = HOOK.post(path, body)
    assert response.status_code in (200, 400)
    pods = spec.get("replicas", 1)
    assert len(response.data) <= 200 * KB + 8 * len(body) + BYTES_OF_INSTANCE * pods
    assert millions_of_steps(path, body) < 1 + STEPS_A_MS * (len(body) / KB + pods)


def test_long_hold_annotations_are_shortened_in_status_plan_and_memo() -> None:
    """Sets four annotations of 40 KB on each of 20 pods; status, plan and cache must stay much
    smaller.

    A pod's annotations may have 256 KiB, and a TApp may have thousands of pods.
    """
    world = World(tapp(replicas=20)).settle()
    for name, pod in world.pods.items():
        meta = pod["metadata"]
        notes = dict.fromkeys((HOLD, HOLD_FOR, WANTED, WANTED_SINCE), f"{name} {'x' * 40 * KB}")
        notes = {**meta["annotations"], **notes}
        world.pods[name] = {**pod, "metadata": {**meta, "annotations": notes}}
    world.change(statuses={str(id): "Killed" for id in range(20)})
    answer = world.sync()
    assert world.parent["status"]["held"] == "0-19"
    assert len(json.dumps(answer["status"])) < 40 * KB
    plan = world.hook.answer("/plan", world.request())
    assert len(json.dumps(plan)) < 40 * KB
    observed = Request(as_sent(world.request()), TApp, Memo(1 << 24)).pods.values()
    assert max(len(repr(each.pod.spec.hold)) for each in observed) < KB


@pytest.mark.parametrize("own", [False, True], ids=["same template", "own template each"])
def test_partition_of_many_instances_costs_linear_steps(own: bool) -> None:
    """Sends a TApp with a partition that is costly in several ways: the steps stay linear in size
    and pods.

    Each pod has an update priority, the status has many notes about kept instances, and a third of
    the pods is missing.
    """
    body = template_with_env("$(tapp.index)") if own else template()
    strategy = {"partition": "50%"}
    world = World(tapp(replicas=MANY, template=body), hook=Hook(), history=True)
    world.apply(world.hook.answer("/sync", world.request()))
    world.kubelet()
    for id, pod in enumerate(world.pods.values()):
        pod["metadata"]["annotations"]["apps.tkestack.io/update-priority"] = str(id % 7 - 3)
    answer = world.hook.answer("/sync", world.request())
    noted = {f"v1-{n}": "0-99999," * 50 for n in range(200)}
    noted |= {answer["status"]["updateRevision"]: f"0-{MANY}"}
    status = {**answer["status"], "kept": noted, "observedGeneration": 1}
    body = {**body, "metadata": {"labels": {"app": "other"}}}
    world.parent = {**world.parent, "status": status}
    world.change(template=body, updateStrategy=strategy)
    for id in range(0, MANY, 3):
        del world.pods[f"web-{id}"]
    text = as_sent(world.request())
    response = world.hook.post("/sync", text)
    assert response.status_code == 200
    kept = json.loads(response.data)["status"]["kept"]
    assert len(kept) <= 2
    assert millions_of_steps("/sync", text) < 1 + STEPS_A_MS * (len(text) / KB + 2 * MANY)


def test_each_kept_revision_is_parsed_once_in_a_sync() -> None:
    """Keeps instances at more revisions than the memo caches between syncs; the steps must stay
    linear.
    """
    env = [{"name": f"A{n}", "value": "x" * 40} for n in range(400)]
    body = template(container={"env": env})
    strategy = {"partition": "100%"}
    parent = tapp(replicas=2, template=body, revisionHistoryLimit=30, updateStrategy=strategy)
    world = World(parent, hook=Hook(), history=True).settle()
    for tag in range(20):
        world.change(template=template(f"nginx:{tag}", container={"env": env})).sync()
    names = [
        item["metadata"]["labels"]["tapp_template_hash_key"] for item in world.revisions.values()
    ]
    assert len(names) > 20
    world.change(replicas=MANY)
    kept = {
        name: ",".join(str(id) for id in range(start, MANY, len(names)))
        for start, name in enumerate(names)
    }
    world.parent = {**world.parent, "status": {**world.parent["status"], "kept": kept}}
    world.pods.clear()
    text = as_sent(world.request())
    assert world.hook.post("/sync", text).status_code == 200
    assert millions_of_steps("/sync", text) < 1 + STEPS_A_MS * (len(text) / KB + 2 * MANY)


def test_large_claim_template_is_processed_once_for_all_claims() -> None:
    """Ten more replicas, each with a claim from a template with 1,000 entries, cost few more calls.

    If the template were processed for each claim, 50 claims with a template of 46 KB would take a
    second.
    """
    claim = claim_template()
    claim["spec"]["x"] = {f"k{n}": {"a": [n]} for n in range(1_000)}

    def asked(replicas: int) -> int:
        body = as_sent(request(tapp(replicas=replicas, volumeClaimTemplates=[claim])))
        HOOK.post("/sync", body)
        return calls(lambda: HOOK.post("/sync", body))

    assert asked(12) - asked(2) < 10 * 1_000
