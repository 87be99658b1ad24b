"""One input of the fuzzer: its seed makes the request, the oracle judges the answer."""

import os
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

from tests.fuzz.corpus import documents
from tests.fuzz.mutate import mutated, noise, scratched
from tests.fuzz.oracle import HOOKS, HangError, Service, no_hang

PATHS = (*HOOKS, "/healthz", "/readyz", "/version", "/metrics", "/", "/x")
METHODS = ("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE", "FOO")
TYPES = ("", "text/plain", "application/json; charset=latin-1", "a", "multipart/form-data")
STOP_AFTER = 40
"""Findings of one process after which it gives up: there is enough to repair."""


class Fuzzer:
    """Makes the request of a seed, sends it and judges the answer."""

    def __init__(self) -> None:
        """Builds the requests to start from with the service itself."""
        self.service = Service()
        self.corpus = documents(self.service.post)

    def request(self, seed: int) -> tuple[str, bytes, dict[str, Any]]:
        """Endpoint, body and odd WSGI variables of a seed."""
        rng = Random(seed)
        path, document = rng.choice(self.corpus)
        kind = rng.random()
        if kind < 0.07:
            return rng.choice(HOOKS), noise(rng), {}
        if kind < 0.09:
            return rng.choice(PATHS), noise(rng)[:200], _odd_http(rng)
        if rng.random() < 0.25:
            path = rng.choice(HOOKS)
        body = mutated(rng, document)
        return path, scratched(rng, body) if kind > 0.95 and body else body, {}

    def run(self, seed: int) -> str | None:
        """What is wrong with the answer to this seed's request, None if nothing."""
        path, body, more = self.request(seed)
        try:
            with no_hang():
                if more.get("REQUEST_METHOD") == "HEAD":
                    self.service.call(path, body, **more)
                else:
                    self.service.check(path, body, Random(seed), **more)
        except (Exception, HangError) as error:  # noqa: BLE001 - whatever it is, it is a finding
            return f"{path} {more}: {type(error).__name__}: {error}"
        return None


def _odd_http(rng: Random) -> dict[str, Any]:
    more: dict[str, Any] = {"REQUEST_METHOD": rng.choice(METHODS)}
    more["CONTENT_TYPE"] = rng.choice(TYPES)
    if rng.random() < 0.3:
        more["CONTENT_LENGTH"] = rng.choice(("", "-1", "x", "0", "1e3", "99999999999999999999"))
    if rng.random() < 0.3:
        more["HTTP_CONTENT_ENCODING"] = rng.choice(("gzip", "identity", "", "\xff"))
    if rng.random() < 0.3:
        more["HTTP_AUTHORIZATION"] = rng.choice(("Bearer x", "Basic eDp5", "\xff", "Digest a=b"))
    return more


def work(first: int, number: int, seconds: float, out: Path) -> dict[str, Any]:
    """Runs the seeds from `first` on; returns what the report says."""
    os.nice(5)
    fuzzer, findings, done = Fuzzer(), 0, 0
    started = time.monotonic()
    slowest = 0.0
    for seed in range(first, first + number):
        began = time.monotonic()
        if began - started > seconds or findings >= STOP_AFTER:
            break
        problem = fuzzer.run(seed)
        slowest = max(slowest, time.monotonic() - began)
        done += 1
        if done % 50_000 == 0:
            progress = f"{done} inputs, {findings} findings, {time.monotonic() - started:.0f} s"
            sys.stderr.write(progress + "\n")
        if problem:
            findings += 1
            (out / f"{seed}.body").write_bytes(fuzzer.request(seed)[1])
            (out / f"{seed}.txt").write_text(problem + "\n")
    return {
        "seeds": [first, first + done - 1],
        "inputs": done,
        "findings": findings,
        "codes": fuzzer.service.codes,
        "slowest": round(slowest, 2),
        "seconds": round(time.monotonic() - started),
    }
