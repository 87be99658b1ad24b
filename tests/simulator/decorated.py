"""A world with a DecoratorController and a pod for it, for the tests of decorators."""

from __future__ import annotations

from typing import Any

from simulator.metacontroller.hook_calls import HookCall
from simulator.node.pod_status import conditions
from simulator.objects.objects import Object, with_meta
from simulator.world import World
from tests.simulator.fake_hook import FakeHook, decorator, make_world, pod

GATE = "x/gate"
STATUS = [("status", "p", ("status.conditions",), "ok"), ("update", "p", (), "no-op")]
"""The writes of a changed status: the PUT of the status, and a PUT of the pod without effect."""


def marked(name: str = "p", **spec: Any) -> Object:
    """Returns a pod that the decorator selects."""
    return with_meta(pod(name, **spec), labels={"decorated": "true"})


def with_gate(request: Object, status: bool = True) -> Object:
    """Returns a response that sets the condition of the readiness gate."""
    observed = request["object"]["status"]
    truths = {GATE: (status, "", "")}
    set_now = conditions(observed.get("conditions") or [], truths, "2026-01-01T00:00:00Z", None)
    return {"status": {**observed, "conditions": set_now}}


def stage(answer: Any = None, **options: Any) -> tuple[World, FakeHook]:
    """Returns a world with a decorator, and its hook."""
    hook = FakeHook()
    answering(hook, answer or {})
    return make_world(hook, **{"decorators": [decorator()], **options}), hook


def running(answer: Any = None, **options: Any) -> tuple[World, FakeHook]:
    """Returns a world with a DecoratorController and a running pod, and the hook.

    The records of writes and calls are empty.
    """
    world, hook = stage(answer, **options)
    world.apply(marked())
    world.settle()
    world.writes.clear()
    world.hook_calls.clear()
    return world, hook


def answering(hook: FakeHook, answer: Any) -> None:
    """Sets the hook's response, or the function that returns the response to a request."""
    hook.decorate = answer if callable(answer) else lambda _request: answer


def decorator_calls(world: World) -> list[HookCall]:
    """Returns the calls of the DecoratorController's hook."""
    return [call for call in world.hook_calls if call.hook == "decorate"]


def written(world: World) -> list[tuple[str, str, tuple[str, ...], str]]:
    """Returns verb, name, changed paths and outcome of each write."""
    return [(one.verb, one.name, one.paths, one.outcome) for one in world.writes]


def touch(world: World, name: str = "p", value: str = "1") -> None:
    """Changes an annotation of a pod that no controller reads."""
    world.patch("Pod", name, {"metadata": {"annotations": {"touched": value}}})
