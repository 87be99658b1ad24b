"""Calling hooks and keeping a record of it; which hook of a CompositeController is called when.

Source: Metacontroller's pkg/controller/composite/hooks.go and pkg/hooks.
"""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from simulator.metacontroller import protocol
from simulator.metacontroller.cache import Entry
from simulator.metacontroller.composite import Composite, Hook
from simulator.metacontroller.hook_client import Answer, HookClient, HookError
from simulator.objects.clock import Clock
from simulator.objects.objects import Key, Object, is_terminating, key_of, namespace_of


@dataclass(slots=True)
class HookCall:
    """One call of a hook, for tests and timelines."""

    time: float
    hook: str
    """`sync`, `finalize` or `customize`; `decorate` is the sync of a DecoratorController."""
    parent: Key
    parts: list[bytes]
    answer: Answer | None = None
    error: str = ""

    @property
    def request(self) -> Object:
        """Return the decoded request."""
        decoded: Object = msgspec.json.decode(b"".join(self.parts))
        return decoded

    @property
    def response(self) -> Object:
        """Return the decoded answer, empty if there was none."""
        decoded: Object = msgspec.json.decode(self.answer.body) if self.answer else {}
        return decoded


class Caller:
    """Sends requests to hooks, and tells a listener of each."""

    def __init__(
        self, clock: Clock, client: HookClient, on_call: Callable[[HookCall], None]
    ) -> None:
        self._clock = clock
        self._client = client
        self._on_call = on_call

    def call(self, hook: Hook, name: str, parent: Key, parts: list[bytes]) -> bytes:
        """Return the body of the answer; raise HookError if there is none."""
        call = HookCall(self._clock.now, name, parent, parts)
        self._on_call(call)
        try:
            call.answer = self._client.post(hook.url, b"".join(parts), hook.seconds)
            protocol.check_status(call.answer)
        except HookError as error:
            call.error = str(error)
            raise
        return call.answer.body


class HookCalls:
    """Asks sync, finalize and customize."""

    def __init__(self, composite: Composite, caller: Caller) -> None:
        self._composite = composite
        self._caller = caller
        self._controller = msgspec.json.encode(composite.manifest)

    def ask_sync(
        self, parent: Entry, children: protocol.Group, related: protocol.Group
    ) -> protocol.SyncAnswer:
        """Ask what should be: finalize for a parent that goes away, else sync."""
        composite, obj = self._composite, parent.obj
        leaving = is_terminating(obj) or not composite.matches(obj)
        finalizing = composite.finalize is not None and leaving
        hook = composite.finalize if finalizing else composite.sync
        if hook is None:
            raise HookError(f"sync hook not defined for {key_of(obj)}")
        groups = children, related
        parts = protocol.sync_request(hook, self._controller, parent, groups, finalizing=finalizing)
        body = self._caller.call(hook, "finalize" if finalizing else "sync", key_of(obj), parts)
        return protocol.decode_sync(body, hook, namespace_of(obj))

    def ask_customize(self, parent: Entry) -> list[Object]:
        """Ask which related objects the parent wants to see."""
        hook = self._composite.customize
        if hook is None:
            return []
        parts = protocol.customize_request(self._controller, parent)
        body = self._caller.call(hook, "customize", key_of(parent.obj), parts)
        return protocol.decode_customize(body, hook)
