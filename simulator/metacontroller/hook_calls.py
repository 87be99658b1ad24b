"""Calls hooks and records the calls. Source: Metacontroller 4.17.2, pkg/hooks."""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from simulator.metacontroller import protocol
from simulator.metacontroller.composite import Hook
from simulator.metacontroller.hook_client import HookClient, HookError, HttpResponse
from simulator.objects.clock import Clock
from simulator.objects.objects import Key, Object


@dataclass(slots=True)
class HookCall:
    """One call of a hook: request, response and error, for tests and timelines."""

    time: float
    hook: str  # `sync`, `finalize`, `customize`, or `decorate` (sync of a decorator)
    parent: Key
    parts: list[bytes]
    http_response: HttpResponse | None = None
    error: str = ""

    @property
    def request(self) -> Object:
        """The decoded request."""
        decoded: Object = msgspec.json.decode(b"".join(self.parts))
        return decoded

    @property
    def response(self) -> Object:
        """The decoded response; empty if the hook has not responded."""
        decoded: Object = msgspec.json.decode(self.http_response.body) if self.http_response else {}
        return decoded


class HookCaller:
    """Sends requests to hooks and reports each call to a listener."""

    def __init__(
        self, clock: Clock, client: HookClient, on_call: Callable[[HookCall], None]
    ) -> None:
        self._clock = clock
        self._client = client
        self._on_call = on_call

    def call(self, hook: Hook, name: str, parent: Key, parts: list[bytes]) -> bytes:
        """Returns the body of the hook's response; raises HookError for a failure."""
        call = HookCall(self._clock.now, name, parent, parts)
        self._on_call(call)
        try:
            call.http_response = self._client.post(hook.url, b"".join(parts), hook.timeout_seconds)
            protocol.check_status(call.http_response)
        except HookError as error:
            call.error = str(error)
            raise
        return call.http_response.body
