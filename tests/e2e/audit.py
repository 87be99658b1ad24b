"""Reads writes from the API server's audit log, beginning at a remembered position.

Promises such as "no write at all" and "exactly one PUT" are about the API server. Its own log is
independent of the service and of Metacontroller.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

Json = dict[str, Any]
SETTLE = 0.3
READS = ("get", "list", "watch")


@dataclass(frozen=True)
class Write:
    """A write that the API server answered. Refused writes are included (see `code`)."""

    verb: str
    resource: str
    group: str
    subresource: str
    namespace: str
    name: str
    code: int
    user: str
    time: str
    request: Json | None
    response: Json | None

    @property
    def accepted(self) -> bool:
        """True if the API server accepted the write."""
        return 200 <= self.code < 300

    @property
    def what(self) -> str:
        """The verb and the resource, such as `update pods` or `patch pods/status`."""
        tail = f"/{self.subresource}" if self.subresource else ""
        return f"{self.verb} {self.resource}{tail}"

    @property
    def resource_version(self) -> str | None:
        """The object's version after the write; None if the audit policy keeps no bodies.

        If two successive writes have the same version, the second one changed nothing.
        """
        found = ((self.response or {}).get("metadata") or {}).get("resourceVersion")
        return str(found) if found is not None else None


class AuditLog:
    """The audit log of a running API server."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def mark(self) -> int:
        """Returns the end of the log's last complete line, as a position for `writes`.

        On a busy machine, the file may end within a line that is being written.
        """
        time.sleep(SETTLE)
        if not self.file.exists() or not self.file.stat().st_size:
            return 0
        with self.file.open("rb") as log, mmap(log.fileno(), 0, access=ACCESS_READ) as text:
            return text.rfind(b"\n") + 1

    def writes(
        self, since: int = 0, until: int | None = None, *, settle: float = SETTLE, **wanted: str
    ) -> list[Write]:
        """Returns the writes between two positions, in the order of their responses.

        `wanted` filters by the fields of Write: `resource="pods", namespace="default", user=...`.
        `settle` is a pause in seconds, because the API server logs a request after its response.
        """
        time.sleep(settle)
        return [
            write
            for write in self._read(since, until)
            if write.verb not in READS
            and write.resource != "events"
            and all(getattr(write, key) == value for key, value in wanted.items())
        ]

    def asked(self, since: int, user: str) -> list[Write]:
        """Returns all requests of a user after a position, including reads and Events."""
        time.sleep(SETTLE)
        return [request for request in self._read(since) if request.user == user]

    def _read(self, since: int, until: int | None = None) -> Iterator[Write]:
        if not self.file.exists():
            return
        with self.file.open("rb") as log:
            log.seek(since)
            for line in log:
                since += len(line)
                if not line.endswith(b"\n") or (until is not None and since > until):
                    return
                write = write_of(json.loads(line))
                if write is not None:
                    yield write


def write_of(event: Json) -> Write | None:
    """Returns the write of an audit event; None for dry runs and for events without an object."""
    # A watch ends late, so its event is the one at its start.
    answered = "ResponseStarted" if event["verb"] == "watch" else "ResponseComplete"
    if event["stage"] != answered or "dryRun=" in event["requestURI"]:
        return None
    ref = event.get("objectRef")
    if ref is None:
        return None
    response = event.get("responseObject")
    name = ref.get("name") or ((response or {}).get("metadata") or {}).get("name", "")
    return Write(
        verb=event["verb"],
        resource=ref.get("resource", ""),
        group=ref.get("apiGroup", ""),
        subresource=ref.get("subresource", ""),
        namespace=ref.get("namespace", ""),
        name=name,
        code=int((event.get("responseStatus") or {}).get("code", 0)),
        user=event["user"].get("username", ""),
        time=event["stageTimestamp"],
        request=event.get("requestObject"),
        response=response,
    )


def changed_nothing(writes: list[Write]) -> list[Write]:
    """Returns the writes that left the object's resourceVersion unchanged.

    The version before a write is in its request, or in the response of an earlier write in the
    list.
    """
    found, last = list[Write](), dict[tuple[str, str], str | None]()
    for write in writes:
        key, after = (write.namespace, write.name), write.resource_version
        before = ((write.request or {}).get("metadata") or {}).get("resourceVersion")
        if after is not None and after in {before, last.get(key)}:
            found.append(write)
        last[key] = after
    return found
