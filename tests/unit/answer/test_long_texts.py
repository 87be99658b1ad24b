"""Tests that long texts of users are shortened in messages, and kept in memory only once."""

import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from crds.schema import tapp_schema as schema
from tapp.words.vocabulary import RESTARTED_AT
from tests.builders import Document, as_sent, request, tapp, template
from tests.unit.world import Hook, settled

LONG = "k" * 20_000
MANY = 200


def _edited(replicas: int, before: Document, after: Document, **strategy: Any) -> Document:
    """Returns a sync request after the template of running pods has changed from `before` to
    `after`.

    `strategy` has fields of the update strategy.
    """
    world = settled(replicas=replicas, template=before)
    return world.change(template=after, updateStrategy=strategy).request()


def _missing_value(replicas: int) -> Document:
    made = template(annotations={LONG: "$(tapp.values.v)"})
    return request(tapp(template=made, replicas=replicas))


def _restart_requested(replicas: int) -> Document:
    after = template(annotations={RESTARTED_AT: LONG})
    return _edited(replicas, template(), after, maxUnavailable="100%")


def _percentage(replicas: int) -> Document:
    return _edited(replicas, template(), template("nginx:2"), maxUnavailable="0" * 20_000 + "1%")


def _invalid_budget(replicas: int) -> Document:
    return _edited(replicas, template(), template("nginx:2"), maxUnavailable=LONG)


def _containers(replicas: int) -> Document:
    before, after = (
        template(
            sidecars=[{"name": "k" * 200 + str(number), "image": image} for number in range(90)]
        )
        for image in ("b:1", "b:2")
    )
    return _edited(replicas, before, after, maxUnavailable="100%")


TEXTS = {
    "annotation key": _missing_value,
    "restart time": _restart_requested,
    "budget percentage": _percentage,
    "invalid budget": _invalid_budget,
    "container names": _containers,
}


@pytest.mark.parametrize("request_of", TEXTS.values(), ids=TEXTS)
def test_messages_of_a_plan_are_short_although_they_quote_a_long_text(
    request_of: Callable[[int], Document],
) -> None:
    found = Hook().answer("/plan", request_of(3))
    for item in found["instances"]:
        assert len(item["message"]) < 999, item["message"]  # the endpoint shortens at 1,000
    for refused in found["refused"]:
        assert len(refused["message"]) < 3_000, refused["type"]


@pytest.mark.parametrize("request_of", [*TEXTS.values()][:-1], ids=[*TEXTS][:-1])
def test_long_text_is_not_held_in_memory_once_for_each_instance(
    request_of: Callable[[int], Document],
) -> None:
    assert _peak(request_of(MANY)) - _peak(request_of(1)) < MANY * len(LONG) / 2


def _peak(document: Document) -> int:
    """Returns the largest number of bytes in use during a sync, without two copies of its
    request.
    """
    hook, body = Hook(), as_sent(document)
    hook.answer("/sync", request(tapp()))  # imports and caches
    tracemalloc.start()
    try:
        hook.answer("/sync", body)
        return tracemalloc.get_traced_memory()[1] - 2 * len(body)
    finally:
        tracemalloc.stop()


def test_all_instances_that_wait_to_pull_have_the_same_short_message() -> None:
    """Four nodes have to pull thirty images one after the other: three instances have the same
    short message.

    Only the message about the node that pulls now lists images, and at most eight of them.
    """
    sidecars = [{"name": f"s{number}", "image": f"web:{number}"} for number in range(30)]
    found = settled(replicas=4, template=template(sidecars=sidecars))
    for id in range(4):
        found.modify(
            id, lambda pod, id=id: {**pod, "spec": {**pod["spec"], "nodeName": f"node-{id}"}}
        )
    found.hook = Hook(max_pullers=1)
    changed = [{**item, "image": f"registry.example/{item['image']}"} for item in sidecars]
    strategy = {"maxUnavailable": "100%", "inPlaceUpdateStrategy": {"prePull": True}}
    found.change(template=template(sidecars=changed), updateStrategy=strategy)
    plan = found.hook.answer("/plan", found.request())
    first, *others = [item["message"] for item in plan["instances"]]
    assert "node-0 pulls registry.example/web:0" in first
    assert "and 22 more" in first
    assert set(others) == {
        "its new images are pulled on its node before the update, when other nodes are done: "
        "at most 1 pull at once (TAPP_MAX_PULLERS)"
    }


LONGEST_REFERENCE = (
    f"{'h' * 63}.{'h' * 63}.{'h' * 63}.{'h' * 61}:65535/{'p' * 255}:{'t' * 128}@sha512:{'0' * 128}"
)


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        (LONGEST_REFERENCE, "UpdateInPlace/TemplateChanged"),
        ("i" * 1_024, "Keep/Blocked"),  # accepted by the CRD, but no valid reference
        ("i" * 1_025, "Keep/TemplateNotFound"),
        (LONG, "Keep/TemplateNotFound"),
    ],
    ids=["longest reference", "invalid reference", "too long", "far too long"],
)
def test_image_longer_than_the_crd_allows_is_refused(image: str, expected: str) -> None:
    """The service refuses images above the limit of the CRD; the instance keeps its pod."""
    found = settled().change(template=template(image))
    (decision,) = found.decisions().values()
    assert decision == expected
    container = schema()["properties"]["spec"]["properties"]["template"]["properties"]["spec"]
    limit = container["properties"]["containers"]["items"]["properties"]["image"]["maxLength"]
    assert (len(image) <= limit) is (expected != "Keep/TemplateNotFound")
