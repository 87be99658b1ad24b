"""Tests calls of a hook that cannot be reached, and the cost of a thousand pods."""

from __future__ import annotations

import pytest

from simulator.metacontroller.hook_client import HookError, HttpHook
from tests.counting import calls
from tests.simulator.fake_hook import group, make_world
from tests.sizes import size


def test_unreachable_hook_is_a_hook_error() -> None:
    with pytest.raises(HookError):
        HttpHook("http://127.0.0.1:9").post("http://x/sync", b"", 1.0)


def test_function_calls_grow_linearly_with_the_pods() -> None:
    def lived(pods: int) -> None:
        world = make_world()
        world.apply(group(pods))
        world.settle()
        world.patch("Group", "g", {"spec": {"image": "web:2"}})
        world.settle()
        world.delete("Group", "g")
        world.settle()
        assert world.list("Pod") == []

    few, many = (calls(lambda: lived(size(50, 500) * times)) for times in (1, 2))  # noqa: B023
    assert many < 2.5 * few
