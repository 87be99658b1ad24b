"""Sends random bytes to every endpoint: a small run of the tests that `make fuzz` runs at length.

With FUZZ_INPUTS, this number of requests is sent in all; `--hypothesis-seed` chooses them.
"""

import os
from copy import deepcopy
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import Document
from tests.fuzz.corpus import documents
from tests.fuzz.oracle import HOOKS, Service, no_hang
from tests.fuzz.strategies import nearly_right, noise, odd_http
from tests.sizes import size

SERVICE = Service()
CORPUS = documents(SERVICE.post)
PATHS = (*HOOKS, "/healthz", "/readyz", "/version", "/metrics", "/", "/x")
INPUTS = int(os.environ.get("FUZZ_INPUTS", "0"))


def inputs(small: int) -> settings:
    """Returns the settings of Hypothesis with the number of inputs for one test.

    That is `small`, or in a long run an equal share of FUZZ_INPUTS for each document of the corpus.
    """
    many = INPUTS // len(CORPUS) or small
    return settings(max_examples=many, derandomize=not INPUTS, print_blob=bool(INPUTS))


@pytest.mark.parametrize("path", HOOKS)
@inputs(size(50, 200))
@given(noise)
def test_random_body_gets_a_valid_response(path: str, body: bytes) -> None:
    with no_hang():
        SERVICE.check(path, body)


@inputs(size(50, 200))
@given(st.sampled_from(PATHS), noise, odd_http)
def test_random_call_gets_a_valid_response(path: str, body: bytes, odd: Document) -> None:
    with no_hang():
        SERVICE.check(path, body, **odd)


@pytest.mark.parametrize("start", range(len(CORPUS)))
@inputs(size(5, 40))
@given(st.data())
def test_almost_valid_request_gets_a_valid_response(start: int, data: st.DataObject) -> None:
    path, document = CORPUS[start]
    other = st.sampled_from(HOOKS)
    where = data.draw(st.integers(0, 3).flatmap(lambda odd: st.just(path) if odd else other))
    body = data.draw(nearly_right(document))
    with no_hang():
        SERVICE.check(where, body)


@pytest.mark.parametrize("which", range(len(CORPUS)))
@pytest.mark.parametrize("path", HOOKS)
def test_unchanged_request_of_the_corpus_gets_a_valid_response(which: int, path: str) -> None:
    meant, document = CORPUS[which]
    if path == meant or (path == "/customize" and meant != "/pod-status"):
        with no_hang():
            assert SERVICE.check(path, msgspec.json.encode(document)) == 200


@pytest.mark.parametrize("place", ["parent.metadata.annotations", "status.reason", "spec.x"])
def test_string_of_ten_megabytes_gets_a_valid_response(place: str) -> None:
    path, document = CORPUS[1]
    long = 'x%\\"' * 2_500_000
    (where, *rest) = place.split(".")
    copy: Any = deepcopy(document)
    inner = copy[where] if where == "parent" else next(iter(copy["children"]["Pod.v1"].values()))
    keys = rest if where == "parent" else [where, *rest]
    for key in keys[:-1]:
        inner = inner.setdefault(key, {})
    inner[keys[-1]] = long if keys[-1] != "annotations" else {"long": long}
    with no_hang():
        assert SERVICE.check(path, msgspec.json.encode(copy)) == 200
