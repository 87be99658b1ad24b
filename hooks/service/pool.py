"""Work that takes the processor, in gevent's thread pool: the worker's loop goes on meanwhile."""

from collections.abc import Callable
from typing import Any, TypeVar

from gevent import get_hub
from gevent.monkey import is_module_patched

T = TypeVar("T")


def in_pool(work: Callable[..., T], *arguments: Any) -> T:
    """Returns the result of `work`, which runs in the thread pool if a gevent worker serves.

    Raises whatever `work` raises.
    """
    if not is_module_patched("threading"):
        return work(*arguments)
    result, error = get_hub().threadpool.apply(_outcome, (work, arguments))
    if error is not None:
        raise error
    return result  # type: ignore[no-any-return]


def _outcome(work: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Any, Exception | None]:
    # The error is returned, because the pool prints a traceback of every error that leaves `work`.
    try:
        return work(*arguments), None
    except Exception as error:  # noqa: BLE001 - raised again by `in_pool`
        return None, error
