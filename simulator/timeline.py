"""A text timeline of what happens in a world, one line per event; the same world, the same text."""

from __future__ import annotations

from collections.abc import Callable

from simulator.api.store import Event
from simulator.metacontroller.hook_calls import HookCall
from simulator.objects.objects import Object, is_terminating, name_of
from simulator.world import World


class Timeline:
    """Prints pods, claims and parents as they change, and Metacontroller's calls."""

    def __init__(self, world: World, emit: Callable[[str], None]) -> None:
        self._world = world
        self._emit = emit
        self._states: dict[tuple[str, str], str] = {}
        world.watch(self._on_event)
        world.on_call(self._on_call)

    def say(self, text: str) -> None:
        """Add a line of one's own."""
        self._emit(f"{self._world.clock.now:9.2f}  {text}")

    def _on_event(self, event: Event) -> None:
        name = f"{event.kind.name} {name_of(event.object)}"
        if event.old is None:
            state = "created"
        elif event.new is None:
            state = "gone"
        else:
            state = describe(event.new)
        key = event.kind.name, name
        if state and self._states.get(key) != state:
            self._states[key] = state
            self.say(f"{name}: {state}")

    def _on_call(self, call: HookCall) -> None:
        self.say(f"-> {call.hook} {call.parent[1]}")


def describe(obj: Object) -> str:
    """Say in a few words how an object is doing."""
    status = obj.get("status") or {}
    words = ["terminating"] if is_terminating(obj) else []
    if obj["kind"] == "Pod":
        words.append(str(status.get("phase")))
        for one in status.get("containerStatuses") or []:
            state = next(iter(one.get("state") or {"?": {}}))
            reason = (one.get("state") or {}).get(state, {}).get("reason", "")
            ready = "ready" if one.get("ready") else reason or state
            image = str(one["image"]).removeprefix("docker.io/library/")
            words.append(f"[{one['name']} {image} {ready}]")
    elif "phase" in status:
        words.append(str(status["phase"]))
    else:
        counts = {key: value for key, value in status.items() if isinstance(value, int | str)}
        words += [f"{key}={value}" for key, value in sorted(counts.items())]
    return " ".join(words)
