"""Calls of a server that is not there, and the cost of a thousand pods."""

from __future__ import annotations

import time

import pytest

from simulator.metacontroller.hook_client import HookError, HttpHook
from tests.simulator.fake_hook import group, make_world
from tests.sizes import size


def test_no_server() -> None:
    """A hook that cannot be reached is a HookError."""
    with pytest.raises(HookError):
        HttpHook("http://127.0.0.1:9").post("http://x/sync", b"", 1.0)


def test_many_pods_are_cheap() -> None:
    """Creating, rolling and deleting a thousand pods costs seconds of CPU."""
    world = make_world()
    began = time.process_time()
    world.apply(group(size(100, 1000)))
    world.settle()
    world.patch("Group", "g", {"spec": {"image": "web:2"}})
    world.settle()
    world.delete("Group", "g")
    world.settle()
    assert world.list("Pod") == []
    assert time.process_time() - began < size(2, 30)
