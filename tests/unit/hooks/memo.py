"""Compares the responses of two services: one with a memo, which caches parsed objects between
syncs, and one without.
"""

from collections.abc import Iterable
from typing import Any

from tests.builders import Document, as_sent
from tests.unit.world import Hook

WITH_MEMO, WITHOUT_MEMO = Hook(), Hook(memo_bytes=0)
PATHS = ("/sync", "/plan", "/sync", "/finalize")


def response_to(request: Document | bytes, path: str, hook: Hook) -> tuple[int, bytes]:
    """Posts a request to an endpoint of a service; returns the status code and the body of the
    response.
    """
    response: Any = hook.post(path, request)
    return response.status_code, response.data


def assert_same_responses(
    requests: Iterable[Document | bytes], paths: Iterable[str] = PATHS, hook: Hook = WITH_MEMO
) -> list[tuple[int, bytes]]:
    """Posts each request to each path with and without a memo, and checks that the responses are
    equal.

    `hook` is the service with a memo. Some paths occur twice, so that the memo is used. Returns
    status code and body of each response, in the order of the requests and paths.
    """
    result = []
    for request in requests:
        body = request if isinstance(request, bytes) else as_sent(request)
        for path in paths:
            expected = response_to(body, path, WITHOUT_MEMO)
            assert response_to(body, path, hook) == expected
            result.append(expected)
    return result
