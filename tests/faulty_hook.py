"""A hook in front of a hook, which makes calls fail."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from simulator.metacontroller.hook_client import (
    TOO_MANY_REQUESTS,
    HookClient,
    HookError,
    HttpResponse,
)


@dataclass(slots=True)
class _Fault:
    path: str
    status: int
    times: int
    after_deciding: bool


class FaultyHook:
    """Lets the next calls fail, each rule so many times."""

    def __init__(self, inner: HookClient) -> None:
        self._inner = inner
        self._faults: list[_Fault] = []

    def fail(
        self, times: int = 1, *, status: int = 500, path: str = "", after_deciding: bool = False
    ) -> None:
        """Answer the next calls (whose path ends so) with a status; 0 means a timeout.

        With `after_deciding` the hook is asked first and its answer is lost.
        """
        self._faults.append(_Fault(path, status, times, after_deciding))

    def heal(self) -> None:
        """Forget all faults."""
        self._faults.clear()

    def post(self, url: str, body: bytes, seconds: float) -> HttpResponse:
        """Fail if a rule says so, else pass the call on."""
        for fault in self._faults:
            if fault.times and urlsplit(url).path.endswith(fault.path):
                fault.times -= 1
                if fault.after_deciding:
                    self._inner.post(url, body, seconds)
                if not fault.status:
                    message = "http error: context deadline exceeded"
                    raise HookError(message)
                headers = {"retry-after": "1"} if fault.status == TOO_MANY_REQUESTS else {}
                return HttpResponse(fault.status, b'{"error":"injected"}', headers)
        return self._inner.post(url, body, seconds)
