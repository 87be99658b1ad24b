"""Two services, one with a memo and one without: their answers must be the same bytes."""

from collections.abc import Iterable
from typing import Any

from tests.builders import Document, as_sent
from tests.unit.world import Hook

REMEMBERING, FORGETFUL = Hook(), Hook(memo_bytes=0)
PATHS = ("/sync", "/plan", "/sync", "/finalize")


def answers(request: Document | bytes, path: str, hook: Hook) -> tuple[int, bytes]:
    """Status and bytes of one answer."""
    response: Any = hook.post(path, request)
    return response.status_code, response.data


def same(
    requests: Iterable[Document | bytes], paths: Iterable[str] = PATHS, hook: Hook = REMEMBERING
) -> list[tuple[int, bytes]]:
    """Sends each request in turn to every path, twice to some, with and without a memo.

    Returns:
        The answers, status and bytes, in the order of the requests and paths.
    """
    result = []
    for request in requests:
        body = request if isinstance(request, bytes) else as_sent(request)
        for path in paths:
            expected = answers(body, path, FORGETFUL)
            assert answers(body, path, hook) == expected
            result.append(expected)
    return result
