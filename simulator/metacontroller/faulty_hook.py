"""Simulates failing webhook calls: `FaultyHook` wraps a hook client and makes chosen calls fail."""

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
    """Passes calls on to the hook client `inner`, except for calls that have to fail."""

    def __init__(self, inner: HookClient) -> None:
        self._inner = inner
        self._faults: list[_Fault] = []
        self.is_down = False
        """True if no call reaches the service, as during its restart."""

    def fail(
        self, times: int = 1, *, status: int = 500, path: str = "", after_deciding: bool = False
    ) -> None:
        """Makes the next `times` calls fail whose URL path ends with `path`; "" fits every path.

        `status` is the HTTP status of the failed response; 0 stands for a timeout. If
        `after_deciding` is True, the hook handles the call, but its response is lost.
        """
        self._faults.append(_Fault(path, status, times, after_deciding))

    def heal(self) -> None:
        """Removes all faults, so that every call is passed on."""
        self._faults.clear()
        self.is_down = False

    def post(self, url: str, body: bytes, seconds: float) -> HttpResponse:
        if self.is_down:
            message = "http error: connection refused"
            raise HookError(message)
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
