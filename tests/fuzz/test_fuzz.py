"""A small run of the fuzzer, hypothesis choosing and shrinking; the long one is `make fuzz`."""

from copy import deepcopy
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.mutate import mutated, noise
from tests.fuzz.oracle import HOOKS, no_hang
from tests.fuzz.run import Fuzzer

FUZZER = Fuzzer()
SERVICE = FUZZER.service
SEEDS = st.integers(0, 2**32)


@pytest.mark.parametrize("path", HOOKS)
@settings(max_examples=200)
@given(st.binary(max_size=300) | SEEDS.map(lambda seed: noise(Random(seed))))
def test_no_bytes_do_harm(path: str, body: bytes) -> None:
    with no_hang():
        SERVICE.check(path, body)


@settings(max_examples=400)
@given(st.integers(0, len(FUZZER.corpus) - 1), SEEDS)
def test_no_almost_right_request_does_harm(which: int, seed: int) -> None:
    path, document = FUZZER.corpus[which]
    with no_hang():
        SERVICE.check(path, mutated(Random(seed), document))


@settings(max_examples=300)
@given(SEEDS)
def test_no_input_of_the_long_run_does_harm(seed: int) -> None:
    assert FUZZER.run(seed) is None


@pytest.mark.parametrize("which", range(len(FUZZER.corpus)))
@pytest.mark.parametrize("path", HOOKS)
def test_what_fuzzing_starts_from_is_answered(which: int, path: str) -> None:
    meant, document = FUZZER.corpus[which]
    if path == meant or (path == "/customize" and meant != "/pod-status"):
        with no_hang():
            assert SERVICE.check(path, msgspec.json.encode(document)) == 200


@pytest.mark.parametrize("place", ["parent.metadata.annotations", "status.reason", "spec.x"])
def test_ten_megabytes_in_one_string_are_answered(place: str) -> None:
    path, document = FUZZER.corpus[1]
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
