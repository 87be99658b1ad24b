"""Calling hooks and keeping a record of it. Source: Metacontroller's pkg/hooks."""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from simulator.metacontroller import protocol
from simulator.metacontroller.composite import Hook
from simulator.metacontroller.hook_client import Answer, HookClient, HookError
from simulator.objects.clock import Clock
from simulator.objects.objects import Key, Object


@dataclass(slots=True)
class HookCall:
    """One call of a hook, for tests and timelines."""

    time: float
    hook: str  # `sync`, `finalize` or `customize`; `decorate` is the sync of a DecoratorController
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
