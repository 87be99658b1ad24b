"""The invariants find what they are for: each one fails on an answer that breaks it."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from tests.builders import Document, claim_template, crashing, template, terminating
from tests.invariants import ViolationError, check, writes
from tests.merged import illegal_changes
from tests.unit.world import World, settled


def world() -> World:
    """Three settled instances with a claim each."""
    return settled(replicas=3, volumeClaimTemplates=[claim_template()])


def child(answer: Document, name: str) -> Document:
    """A child of the answer."""
    return next(item for item in answer["children"] if item["metadata"]["name"] == name)


def drop(*names: str) -> Callable[[Document], None]:
    """Leaves children out of an answer."""

    def change(answer: Document) -> None:
        answer["children"] = [c for c in answer["children"] if c["metadata"]["name"] not in names]

    return change


def edit(name: str, *path: str | int, value: Any) -> Callable[[Document], None]:
    """Changes a child of an answer."""

    def change(answer: Document) -> None:
        inner: Any = child(answer, name)
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = value

    return change


def image(*names: str) -> Callable[[Document], None]:
    """Gives pods another image."""

    def change(answer: Document) -> None:
        for name in names:
            edit(name, "spec", "containers", 0, "image", value="evil:1")(answer)

    return change


BROKEN: dict[str, Callable[[Document], None]] = {
    "a pod is omitted": drop("web-1"),
    "a claim is omitted": drop("data-web-1"),
    "two pods restart on a budget of one": image("web-0", "web-1"),
    "a pod that is to be kept restarts": image("web-0"),
    "a label changes without a reason": edit("web-0", "metadata", "labels", "app", value="x"),
    "a command changes": edit("web-0", "spec", "containers", 0, "command", value=["x"]),
    "a container goes": edit("web-0", "spec", "containers", value=[]),
    "an environment is added": edit("web-0", "spec", "containers", 0, "env", value=[{"name": "A"}]),
    "a child has no kind": lambda answer: answer["children"][0].pop("kind"),
    "a child is in another namespace": edit("web-0", "metadata", "namespace", value="other"),
    "a child stands twice": lambda answer: answer["children"].append(answer["children"][-1]),
    "a status is null": lambda answer: answer["status"].update(replicas=None),
    "a status is a float": lambda answer: answer["status"].update(replicas=3.0),
    "a sync finalizes": lambda answer: answer.update(finalized=True),
    "an unknown key": lambda answer: answer.update(extra=1),
    "a resync at once": lambda answer: answer.update(resyncAfterSeconds=0),
}


@pytest.mark.parametrize("damage", BROKEN.values(), ids=BROKEN.keys())
def test_a_damaged_answer_is_found(damage: Callable[[Document], None]) -> None:
    hook, request = world().hook, world().request()
    answer, plan = hook.sync(request), hook.answer("/plan", request)
    check(request, answer, plan)
    damaged = deepcopy(answer)
    damage(damaged)
    with pytest.raises((ViolationError, KeyError)):
        check(request, damaged, plan)


def lost(world: World, id: int) -> World:
    """Its pod is gone."""
    del world.pods[f"web-{id}"]
    return world


PARALLEL: dict[str, Callable[[], World]] = {
    "two are made at once": lambda: settled(replicas=1).change(replicas=3),
    "two go at once": lambda: settled(replicas=3).change(replicas=1),
    "one is made above a broken one": lambda: lost(settled(replicas=3).modify(0, crashing), 2),
    "one goes while one that stays is broken": (
        lambda: settled(replicas=3).modify(0, crashing).change(replicas=2)
    ),
    "one goes before a higher one": (
        lambda: settled(replicas=3).modify(2, terminating).change(replicas=1)
    ),
}


@pytest.mark.parametrize("make", PARALLEL.values(), ids=PARALLEL.keys())
def test_what_parallel_does_is_found_where_an_order_is_asked_for(make: Callable[[], World]) -> None:
    found = make()
    request = found.request()
    answer = found.hook.sync(request)
    request["parent"]["spec"]["podManagementPolicy"] = "OrderedReady"
    with pytest.raises(ViolationError, match=r"at once|is made|goes before"):
        check(request, answer)


def test_a_good_update_is_no_violation_and_a_write() -> None:
    changed = world().change(template=template("nginx:2"))
    request = changed.request()
    assert writes(request, changed.hook.sync(request)) == ["update Pod/web-0"]


@pytest.mark.parametrize(
    ("path", "old", "new", "legal"),
    [
        (("containers", 0, "image"), "a:1", "a:2", True),
        (("containers", 0, "image"), "a:1", "", False),
        (("containers", 0, "image"), "a:1", " a:2", False),
        (("containers", 0, "name"), "a", "b", False),
        (("containers", 0, "imagePullPolicy"), "Always", "Never", False),
        (("activeDeadlineSeconds",), None, 5, True),
        (("activeDeadlineSeconds",), 5, 4, True),
        (("activeDeadlineSeconds",), 5, 6, False),
        (("activeDeadlineSeconds",), 5, None, False),
        (("tolerations",), [{"key": "a"}], [{"key": "a"}, {"key": "b"}], True),
        (("tolerations",), [{"key": "a"}], [{"key": "a", "tolerationSeconds": 5}], True),
        (("tolerations",), [{"key": "a"}], [{"key": "b"}], False),
        (("tolerations",), [{"key": "a"}], None, False),
        (("schedulingGates",), [{"name": "a"}], None, True),
        (("schedulingGates",), None, [{"name": "a"}], False),
        (("nodeName",), "node-1", "node-2", False),
        (("hostname",), None, "x", False),
        (("terminationGracePeriodSeconds",), 30, 5, False),
    ],
)
def test_the_checker_of_pod_updates_knows_the_rules(
    path: tuple[Any, ...], old: Any, new: Any, legal: bool
) -> None:
    def pod(value: Any) -> Document:
        spec: Any = {"containers": [{"name": "a", "image": "a:1", "imagePullPolicy": "Always"}]}
        inner = spec
        for key in path[:-1]:
            inner = inner[key]
        if value is not None:
            inner[path[-1]] = value
        return {"metadata": {"name": "web-0"}, "spec": spec}

    assert (not illegal_changes(pod(old), pod(new))) is legal
