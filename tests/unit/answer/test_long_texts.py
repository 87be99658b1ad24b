"""A long text of a tenant costs what it costs once, however many instances it is about."""

import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from crds.schema import tapp as schema
from tapp.words.vocabulary import RESTARTED_AT
from tests.builders import Document, as_sent, request, tapp, template
from tests.unit.world import Hook, settled

LONG = "k" * 20_000
MANY = 200


def _edited(replicas: int, before: Document, after: Document, **strategy: Any) -> Document:
    """The request after a template has changed that pods run."""
    world = settled(replicas=replicas, template=before)
    return world.change(template=after, updateStrategy=strategy).request()


def _missing_value(replicas: int) -> Document:
    made = template(annotations={LONG: "$(tapp.values.v)"})
    return request(tapp(template=made, replicas=replicas))


def _restart_asked(replicas: int) -> Document:
    after = template(annotations={RESTARTED_AT: LONG})
    return _edited(replicas, template(), after, maxUnavailable="100%")


def _percentage(replicas: int) -> Document:
    return _edited(replicas, template(), template("nginx:2"), maxUnavailable="0" * 20_000 + "1%")


def _no_budget(replicas: int) -> Document:
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
    "the key of an annotation that lacks a value": _missing_value,
    "a time at which a restart is asked for": _restart_asked,
    "a budget that is a percentage": _percentage,
    "a budget that is nothing": _no_budget,
    "the names of containers that restart": _containers,
}


@pytest.mark.parametrize("of", TEXTS.values(), ids=TEXTS)
def test_a_sentence_on_an_instance_is_short(of: Callable[[int], Document]) -> None:
    """A decision on an instance quotes no more of a text than a person can read."""
    found = Hook().answer("/plan", of(3))
    for item in found["instances"]:
        assert len(item["message"]) < 999, item["message"]  # the endpoint itself cuts at 1,000
    for refused in found["refused"]:
        assert len(refused["message"]) < 3_000, refused["type"]


@pytest.mark.parametrize("of", [*TEXTS.values()][:-1], ids=[*TEXTS][:-1])
def test_a_text_is_not_held_for_each_instance(of: Callable[[int], Document]) -> None:
    """Of two hundred instances a sync holds not the text two hundred times."""
    assert _peak(of(MANY)) - _peak(of(1)) < MANY * len(LONG) / 2


def _peak(document: Document) -> int:
    """Bytes that an answer takes at its peak, beyond two copies of its request."""
    hook, body = Hook(), as_sent(document)
    hook.answer("/sync", request(tapp()))  # what is imported or made once
    tracemalloc.start()
    try:
        hook.answer("/sync", body)
        return tracemalloc.get_traced_memory()[1] - 2 * len(body)
    finally:
        tracemalloc.stop()


def test_who_waits_for_others_to_pull_has_one_sentence() -> None:
    """Only those whose node pulls now have their images in it, and not all of a long list."""
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
    assert "node-0 is to have registry.example/web:0" in first
    assert "and 22 more" in first
    assert set(others) == {
        "its node is to have its new images first, as one of the next; 1 pull at once"
    }


LONGEST_REFERENCE = (
    f"{'h' * 63}.{'h' * 63}.{'h' * 63}.{'h' * 61}:65535/{'p' * 255}:{'t' * 128}@sha512:{'0' * 128}"
)


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        (LONGEST_REFERENCE, "UpdateInPlace/TemplateChanged"),
        ("i" * 1_024, "Keep/Blocked"),  # the CRD accepts the length, and no kubelet the name
        ("i" * 1_025, "Keep/TemplateNotFound"),
        (LONG, "Keep/TemplateNotFound"),
    ],
    ids=["the longest reference", "a little more", "too long", "much too long"],
)
def test_an_image_is_no_longer_than_a_reference(image: str, expected: str) -> None:
    """The service and the CRD agree; an instance keeps its pod meanwhile."""
    found = settled().change(template=template(image))
    (decision,) = found.decisions().values()
    assert decision == expected
    container = schema()["properties"]["spec"]["properties"]["template"]["properties"]["spec"]
    limit = container["properties"]["containers"]["items"]["properties"]["image"]["maxLength"]
    assert (len(image) <= limit) is (expected != "Keep/TemplateNotFound")
