"""Two services, one with a memo and one without: their responses must be the same bytes."""

from collections.abc import Iterable
from typing import Any

from tests.builders import Document, as_sent
from tests.unit.world import Hook

WITH_MEMO, WITHOUT_MEMO = Hook(), Hook(memo_bytes=0)
PATHS = ("/sync", "/plan", "/sync", "/finalize")


def response_to(request: Document | bytes, path: str, hook: Hook) -> tuple[int, bytes]:
    """Returns status and body of one response."""
    response: Any = hook.post(path, request)
    return response.status_code, response.data


def assert_same_responses(
    requests: Iterable[Document | bytes], paths: Iterable[str] = PATHS, hook: Hook = WITH_MEMO
) -> list[tuple[int, bytes]]:
    """Sends each request to every path, with and without a memo, and compares the responses.

    Some paths get a request twice. Returns status and body of the responses, in the order of the
    requests and paths.
    """
    result = []
    for request in requests:
        body = request if isinstance(request, bytes) else as_sent(request)
        for path in paths:
            expected = response_to(body, path, WITHOUT_MEMO)
            assert response_to(body, path, hook) == expected
            result.append(expected)
    return result
