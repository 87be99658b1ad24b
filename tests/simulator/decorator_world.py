"""Builds a world with a DecoratorController and a pod for it, for the tests of decorators.

A DecoratorController calls its hook for each object that its labels select, and writes the status,
labels and annotations that the hook returns.
"""

from __future__ import annotations

from typing import Any

from simulator.metacontroller.hook_calls import HookCall
from simulator.node.pod_status import conditions
from simulator.objects.objects import Object, with_meta
from simulator.world import World
from tests.simulator.fake_hook import FakeHook, decorator, make_world, pod

GATE = "x/gate"
STATUS = [("status", "p", ("status.conditions",), "ok"), ("update", "p", (), "no-op")]
"""The writes after a response with a changed status: a PUT of the status, and a PUT of the pod
without effect.
"""


def marked(name: str = "p", **spec: Any) -> Object:
    """Returns a pod with the label by which the decorator selects its objects."""
    return with_meta(pod(name, **spec), labels={"decorated": "true"})


def with_gate(request: Object, status: bool = True) -> Object:
    """Returns a response of the hook that sets the condition of the readiness gate `GATE` to this
    status.
    """
    observed = request["object"]["status"]
    truths = {GATE: (status, "", "")}
    set_now = conditions(observed.get("conditions") or [], truths, "2026-01-01T00:00:00Z", None)
    return {"status": {**observed, "conditions": set_now}}


def stage(answer: Any = None, **options: Any) -> tuple[World, FakeHook]:
    """Returns a world with a DecoratorController, and the hook that the controller calls.

    `answer` is the response of the hook, or a function that returns it; None for an empty response.
    `options` are arguments of `make_world`.
    """
    hook = FakeHook()
    answering(hook, answer or {})
    return make_world(hook, **{"decorators": [decorator()], **options}), hook


def running(answer: Any = None, **options: Any) -> tuple[World, FakeHook]:
    """Returns a world with a DecoratorController and a running pod `p`, and the hook.

    The records of writes and calls are empty. The arguments are those of `stage`.
    """
    world, hook = stage(answer, **options)
    world.apply(marked())
    world.settle()
    world.writes.clear()
    world.hook_calls.clear()
    return world, hook


def answering(hook: FakeHook, answer: Any) -> None:
    """Sets the hook's response to each decorator call: a document, or a function of the request."""
    hook.decorate = answer if callable(answer) else lambda _request: answer


def decorator_calls(world: World) -> list[HookCall]:
    """Returns the recorded calls of the DecoratorController's hook."""
    return [call for call in world.hook_calls if call.hook == "decorate"]


def written(world: World) -> list[tuple[str, str, tuple[str, ...], str]]:
    """Returns verb, name, changed paths and outcome of each recorded write."""
    return [(one.verb, one.name, one.paths, one.outcome) for one in world.writes]


def touch(world: World, name: str = "p", value: str = "1") -> None:
    """Sets an annotation of a pod that no controller reads, so that the decorator's hook is
    called.
    """
    world.patch("Pod", name, {"metadata": {"annotations": {"touched": value}}})
