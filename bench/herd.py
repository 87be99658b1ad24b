"""A TApp in a cluster that moves on between two syncs: what Metacontroller would send next.

A `Herd` is the parent, its pods and claims, and the time. `sync` is one call of the hook, with what
Metacontroller does with its status; what happens to pods in between is the caller's (`change`).
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from msgspec import Raw

from bench.changes import sign
from bench.inprocess import call, quiet
from bench.parent import NAME, NAMESPACE, OLD, Document, tapp
from bench.pods import go, running
from bench.requests import body_of, claim_of

START = datetime(2026, 3, 2, 8, tzinfo=UTC)
"""An hour and a day after the pods were made."""
BETWEEN = timedelta(seconds=5)
_PODS = b'"Pod.v1":{'
Change = Callable[[Document], None]


@dataclass(frozen=True, slots=True)
class Call:
    """One request of the sync hook: when it was sent, and its body.

    Bodies of a stream have most pods in common, so they are kept in parts, which are shared.
    """

    now: float
    parts: list[bytes]

    @property
    def body(self) -> bytes:
        """The request, in a new object."""
        return b"".join(self.parts)


class Herd:
    """One TApp whose instances all run, and the hook that is asked about it."""

    def __init__(self, n: int, templates: int = 1, seed: int = 1, *, values: bool = False) -> None:
        """`n` instances that take the templates in turn; the seed decides on their nodes, ids..."""
        self.now = START
        self.rng = random.Random(seed)  # noqa: S311 - sample data
        self.parent = tapp(n, OLD, templates, values=values)
        self._app = quiet(self._seconds)
        self._version = 1_000_000
        self._claims: list[Raw] = []
        self.pods: dict[int, bytes] = {}
        self._keys = {f"{NAMESPACE}/{NAME}-{index}": index for index in range(n)}
        self.first, answer = self.sync()
        """The request to create all."""
        wanted = answer["children"]
        for index, child in enumerate(item for item in wanted if item["kind"] == "Pod"):
            image = child["spec"]["containers"][0]["image"]
            self.pods[index] = go(running(child, self.rng, image))
        self._claims = [Raw(go(claim_of(index))) for index in range(max(1, n // 10))]
        del self.parent["status"]
        self.settle()

    @property
    def time(self) -> str:
        """Now, as Kubernetes writes it."""
        return self.now.strftime("%Y-%m-%dT%H:%M:%SZ")

    def sync(self) -> tuple[Call, Any]:
        """The next request and its answer; the parent has the answer's status from then on."""
        self.now += BETWEEN
        sent = Call(self.now.timestamp(), self._parts())
        answer = msgspec.json.decode(call(self._app, "/sync", sent.body))
        # Metacontroller's addition, and it writes only what is not there yet:
        generation = self.parent["metadata"]["generation"]
        status = {**answer["status"], "observedGeneration": generation}
        if status != self.parent.get("status"):
            self._write_status(status)
        return sent, answer

    def settle(self) -> None:
        """Asks until the status says nothing new."""
        before = None
        while before != self.parent.get("status"):
            before = self.parent.get("status")
            self.sync()

    def change(self, index: int, what: Change) -> None:
        """Something happens to a pod, and its kubelet reports it."""
        pod = msgspec.json.decode(self.pods[index])
        what(pod)
        sign(pod, self.time, self._next_version())
        self.pods[index] = go(pod)

    def ask(self, image: str) -> None:
        """The author writes another image."""
        spec = tapp(len(self.pods), image)["spec"]
        metadata = self.parent["metadata"]
        metadata = {**metadata, "generation": metadata["generation"] + 1}
        self.parent = {**self.parent, "metadata": metadata, "spec": spec}

    def _seconds(self) -> float:
        return self.now.timestamp()

    def _write_status(self, status: Document) -> None:
        metadata = self.parent["metadata"]
        mine = {"manager": "metacontroller", "subresource": "status", "time": self.time}
        others = [item for item in metadata["managedFields"] if "subresource" not in item]
        metadata = {
            **metadata,
            "managedFields": [*others, mine],
            "resourceVersion": str(self._next_version()),
        }
        self.parent = {**self.parent, "metadata": metadata, "status": status}

    def _next_version(self) -> int:
        self._version += 1
        return self._version

    def _parts(self) -> list[bytes]:
        """The request's body, with every pod a part of its own."""
        head, pods, tail = body_of(self.parent, self._claims).partition(_PODS)
        parts, comma = [head + pods], b""
        if self.pods:
            for key in sorted(self._keys):  # as Go's encoding/json writes a map
                parts += (comma + b'"%s":' % key.encode(), self.pods[self._keys[key]])
                comma = b","
        return [*parts, tail]
