"""The order of decisions: a few requests at once, and each tenant and each TApp in its turn.

A request that waits has no turn, and one whose client has gone gets none. What is decided is done
where `decide_in` says: in threads of a worker, whose loop goes on meanwhile.
"""

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeVar

import msgspec

from hooks.service import metrics
from hooks.service.errors import RefusedError
from hooks.wire.memo import NOBODYS, Whose

T = TypeVar("T")

AT_ONCE: Final = 4  # Decisions of a worker at a time: more are no faster, and hold more memory
LARGE: Final = 4 << 20
"""Bytes above which a worker decides one request at a time: decoding it holds Python's lock, and
probes and small requests get through while the next one waits."""
OF_A_NAMESPACE: Final = AT_ONCE - 1  # Of one namespace at a time: another one's never wait for it
WAIT: Final = 256  # Requests that wait for their turn in a worker; callers of more are to try again
WAIT_OF_A_NAMESPACE: Final = WAIT // 2

_LOOK: Final = 1.0  # Seconds between two looks at whether a waiting client is still there


class _Object(msgspec.Struct, frozen=True):
    metadata: Whose = NOBODYS


class _Asked(msgspec.Struct, frozen=True):
    parent: _Object = _Object()
    object: _Object = _Object()


_decode = msgspec.json.Decoder(_Asked).decode


def whose(body: bytes) -> Whose:
    """Whose request it is: the parent's, or of what else it is about."""
    with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        asked = _decode(body)
        return (asked.parent if asked.parent.metadata.name else asked.object).metadata
    return NOBODYS


class Nobody:
    """A caller without a connection, as tests are."""

    def arrived(self) -> None:
        """The request is whole."""

    def has_gone(self) -> bool:
        """True if nobody waits for the answer any longer."""
        return False


NOBODY: Final = Nobody()


def _refuse_if(has_gone: Callable[[], bool]) -> None:
    if has_gone():
        raise RefusedError(499, "the client has gone")


class _Wait:
    def __init__(self, *, large: bool) -> None:
        self.large, self.go = large, threading.Event()


class Turns:
    """The turns of one process: a TApp has one at a time, then stands behind all others."""

    def __init__(self) -> None:
        """All are free."""
        self._lock = threading.Lock()
        self._deciding: dict[Whose, _Wait] = {}
        self._queue: OrderedDict[Whose, deque[_Wait]] = OrderedDict()

    @contextmanager
    def turn(
        self, asking: Whose, size: int, has_gone: Callable[[], bool] = NOBODY.has_gone
    ) -> Iterator[None]:
        """Waits for a turn, and has it.

        `size` is the request's, in bytes. `has_gone` tells whether its client waits no longer: it
        is asked at its turn, and meanwhile, because a request holds its bytes until then. Raises
        RefusedError: the client has gone, or too many wait.
        """
        wait = _Wait(large=size > LARGE)
        with metrics.IN_FLIGHT.track_inprogress():
            self._enter(asking, wait)
            try:
                while not wait.go.wait(_LOOK):
                    _refuse_if(has_gone)
                _refuse_if(has_gone)
                yield
            finally:
                self._leave(asking, wait)

    def _enter(self, asking: Whose, wait: _Wait) -> None:
        with self._lock:
            all_of = sum(map(len, self._queue.values()))
            of_it = sum(
                len(waits)
                for one, waits in self._queue.items()
                if one.namespace == asking.namespace
            )
            if all_of >= WAIT or of_it >= WAIT_OF_A_NAMESPACE:
                raise RefusedError(503, "too many requests wait; try again")
            self._queue.setdefault(asking, deque()).append(wait)
            self._go_on()

    def _leave(self, asking: Whose, wait: _Wait) -> None:
        with self._lock:
            if self._deciding.get(asking) is wait:
                del self._deciding[asking]
                if asking in self._queue:
                    self._queue.move_to_end(asking)
            else:
                self._queue[asking].remove(wait)
                self._queue[asking] or self._queue.pop(asking)
            self._go_on()

    def _go_on(self) -> None:
        """Gives the turns that are free to those who have waited longest and may have one."""
        for asking, waits in list(self._queue.items()):
            if len(self._deciding) < AT_ONCE and self._may(asking, waits[0]):
                self._deciding[asking] = waits.popleft()
                if not waits:
                    del self._queue[asking]
                self._deciding[asking].go.set()

    def _may(self, asking: Whose, wait: _Wait) -> bool:
        others = [one for one in self._deciding if one.namespace == asking.namespace]
        return (
            asking not in self._deciding
            and len(others) < OF_A_NAMESPACE
            and not (wait.large and any(one.large for one in self._deciding.values()))
        )


Run = Callable[[Callable[..., Any], tuple[Any, ...]], Any]
_run: Run = lambda work, arguments: work(*arguments)  # noqa: E731 - see `decide_in`


def decide_in(run: Run) -> None:
    """From now on decisions of this process are made by `run`: it calls a function, and waits."""
    global _run  # noqa: PLW0603 - a process has one
    _run = run


def decided(work: Callable[..., T], *arguments: Any) -> T:
    """The result of a decision. Raises Exception: whatever it raises."""
    answer, error = _run(_outcome, (work, arguments))
    if error is not None:
        raise error
    return answer  # type: ignore[no-any-return]


def _outcome(work: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Any, Exception | None]:
    """Its answer or its error: gevent's threads would write the latter to the log."""
    try:
        return work(*arguments), None
    except Exception as error:  # noqa: BLE001 - raised again by `decided`
        return None, error
