"""Calls that run at the same time, on threads that stay: who waits looks hundreds of times."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

Begin = Callable[..., Future[Any]]
"""Begins a call with these arguments."""


class AtOnce:
    """Runs a few calls at the same time."""

    def __init__(self, most: int = 4) -> None:
        """`most` is how many; their threads begin with the first calls."""
        self._pool = ThreadPoolExecutor(most)

    @contextmanager
    def calls(self) -> Iterator[Begin]:
        """What begins one; all have ended when it is left, by an error, too."""
        begun: list[Future[Any]] = []

        def begin(call: Callable[..., Any], *arguments: Any) -> Future[Any]:
            begun.append(self._pool.submit(call, *arguments))
            return begun[-1]

        try:
            yield begin
        finally:
            wait(begun)
