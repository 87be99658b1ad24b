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
    """One call of a hook, recorded for tests and for timelines.

    Attributes:
        time: the simulated time of the call, in seconds.
        hook: `sync`, `finalize`, `customize`, or `decorate` (the sync hook of a
            DecoratorController).
        parent: namespace and name of the object about which the hook is called.
        parts: the body of the request, in parts that are joined for sending.
        http_response: the response; None if none has arrived.
        error: the reason why the call failed; empty if it succeeded.
    """

    time: float
    hook: str  # `sync`, `finalize`, `customize`, or `decorate` (sync of a decorator)
    parent: Key
    parts: list[bytes]
    http_response: HttpResponse | None = None
    error: str = ""

    @property
    def request(self) -> Object:
        """The decoded JSON body of the request."""
        decoded: Object = msgspec.json.decode(b"".join(self.parts))
        return decoded

    @property
    def response(self) -> Object:
        """The decoded JSON body of the response; empty if the hook has not responded."""
        decoded: Object = msgspec.json.decode(self.http_response.body) if self.http_response else {}
        return decoded


class HookCaller:
    """Sends requests to hooks, and first reports each request to a listener (`on_call`)."""

    def __init__(
        self, clock: Clock, client: HookClient, on_call: Callable[[HookCall], None]
    ) -> None:
        self._clock = clock
        self._client = client
        self._on_call = on_call

    def call(self, hook: Hook, name: str, parent: Key, parts: list[bytes]) -> bytes:
        """Sends a request to a hook and returns the body of the response.

        Args:
            hook: the hook, with its URL and timeout.
            name: the name of the hook for `HookCall.hook`.
            parent: namespace and name of the object about which the hook is called.
            parts: the body of the request, in parts that are joined for sending.

        Raises HookError if no response arrives, or if its status is not 200.
        """
        call = HookCall(self._clock.now, name, parent, parts)
        self._on_call(call)
        try:
            call.http_response = self._client.post(hook.url, b"".join(parts), hook.timeout_seconds)
            protocol.check_status(call.http_response)
        except HookError as error:
            call.error = str(error)
            raise
        return call.http_response.body
