"""Tests the checks of `tests.invariants`: each fails on a response that breaks its invariant."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from tests.builders import Document, claim_template, crashing, template, terminating
from tests.invariants import ViolationError, check, writes
from tests.metacontroller_merge import illegal_changes
from tests.unit.world import World, settled


def tapp_with_claims() -> World:
    """Returns a TApp with three available instances, each with a claim."""
    return settled(replicas=3, volumeClaimTemplates=[claim_template()])


def child(answer: Document, name: str) -> Document:
    """Returns the child with this name in a response."""
    return next(item for item in answer["children"] if item["metadata"]["name"] == name)


def drop(*names: str) -> Callable[[Document], None]:
    """Returns a function that removes the children with these names from a response."""

    def change(answer: Document) -> None:
        answer["children"] = [c for c in answer["children"] if c["metadata"]["name"] not in names]

    return change


def edit(name: str, *path: str | int, value: Any) -> Callable[[Document], None]:
    """Returns a function that sets a field of the child `name` in a response to `value`.

    `path` leads to the field: keys of objects, and indexes of lists.
    """

    def change(answer: Document) -> None:
        inner: Any = child(answer, name)
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = value

    return change


def set_image(*names: str) -> Callable[[Document], None]:
    """Returns a function that gives the pods with these names another image in a response."""

    def change(answer: Document) -> None:
        for name in names:
            edit(name, "spec", "containers", 0, "image", value="evil:1")(answer)

    return change


BROKEN: dict[str, Callable[[Document], None]] = {
    "pod omitted": drop("web-1"),
    "claim omitted": drop("data-web-1"),
    "two pods restart with a budget of one": set_image("web-0", "web-1"),
    "kept pod restarts": set_image("web-0"),
    "label changes": edit("web-0", "metadata", "labels", "app", value="x"),
    "command changes": edit("web-0", "spec", "containers", 0, "command", value=["x"]),
    "container removed": edit("web-0", "spec", "containers", value=[]),
    "environment added": edit("web-0", "spec", "containers", 0, "env", value=[{"name": "A"}]),
    "child without a kind": lambda answer: answer["children"][0].pop("kind"),
    "child in another namespace": edit("web-0", "metadata", "namespace", value="other"),
    "child twice": lambda answer: answer["children"].append(answer["children"][-1]),
    "null in the status": lambda answer: answer["status"].update(replicas=None),
    "float in the status": lambda answer: answer["status"].update(replicas=3.0),
    "sync with finalized": lambda answer: answer.update(finalized=True),
    "unknown key": lambda answer: answer.update(extra=1),
    "resync after 0 seconds": lambda answer: answer.update(resyncAfterSeconds=0),
}


@pytest.mark.parametrize("damage", BROKEN.values(), ids=BROKEN.keys())
def test_check_fails_on_a_damaged_response(damage: Callable[[Document], None]) -> None:
    hook, request = tapp_with_claims().hook, tapp_with_claims().request()
    answer, plan = hook.sync(request), hook.answer("/plan", request)
    check(request, answer, plan)
    damaged = deepcopy(answer)
    damage(damaged)
    with pytest.raises((ViolationError, KeyError)):
        check(request, damaged, plan)


def without_pod(world: World, id: int) -> World:
    """Removes the pod of an instance from the world, and returns the world."""
    del world.pods[f"web-{id}"]
    return world


PARALLEL: dict[str, Callable[[], World]] = {
    "two pods created together": lambda: settled(replicas=1).change(replicas=3),
    "two pods deleted together": lambda: settled(replicas=3).change(replicas=1),
    "pod created after a broken one": lambda: without_pod(
        settled(replicas=3).modify(0, crashing), 2
    ),
    "pod deleted while a lower one is broken": (
        lambda: settled(replicas=3).modify(0, crashing).change(replicas=2)
    ),
    "pod deleted before a higher one": (
        lambda: settled(replicas=3).modify(2, terminating).change(replicas=1)
    ),
}


@pytest.mark.parametrize("make", PARALLEL.values(), ids=PARALLEL.keys())
def test_check_fails_on_a_parallel_response_with_ordered_ready(make: Callable[[], World]) -> None:
    found = make()
    request = found.request()
    answer = found.hook.sync(request)
    request["parent"]["spec"]["podManagementPolicy"] = "OrderedReady"
    with pytest.raises(ViolationError, match=r"at once|is made|goes before"):
        check(request, answer)


def test_valid_update_passes_the_check_and_counts_as_a_write() -> None:
    changed = tapp_with_claims().change(template=template("nginx:2"))
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
    ids=[
        "image changed",
        "image emptied",
        "image with a blank",
        "container renamed",
        "pull policy changed",
        "deadline set",
        "deadline lowered",
        "deadline raised",
        "deadline removed",
        "toleration added",
        "toleration seconds added",
        "toleration replaced",
        "tolerations removed",
        "scheduling gate removed",
        "scheduling gate added",
        "node changed",
        "host name set",
        "grace period changed",
    ],
)
def test_only_pod_updates_that_the_api_server_accepts_are_legal(
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
