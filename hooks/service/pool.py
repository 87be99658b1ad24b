"""Runs decisions in gevent's thread pool, so that the event loop of the worker stays responsive."""

from collections.abc import Callable
from typing import Any, TypeVar

from gevent import get_hub
from gevent.monkey import is_module_patched

T = TypeVar("T")


def in_pool(work: Callable[..., T], *arguments: Any) -> T:
    """Calls `work` with the arguments and returns its result.

    Runs `work` in the thread pool in a gevent worker, and directly elsewhere. Raises the exception
    that `work` raises.
    """
    if not is_module_patched("threading"):
        return work(*arguments)
    result, error = get_hub().threadpool.apply(_outcome, (work, arguments))
    if error is not None:
        raise error
    return result  # type: ignore[no-any-return]


def _outcome(work: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Any, Exception | None]:
    """Calls `work` with the arguments; returns its result and None, or None and its exception."""
    # The pool prints a traceback of every exception that it sees, so the exception is returned.
    try:
        return work(*arguments), None
    except Exception as error:  # noqa: BLE001 - raised again by `in_pool`
        return None, error
