"""What one sync was told, and what an update took away: the judge's notes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.reading import resolved, rolling_name, template_name

Document = dict[str, Any]


@dataclass
class Snapshot:
    """What one sync was told."""

    request: Document
    time: float
    spec: Document
    running: set[int]
    available: set[int]
    """Those that it shows as available."""
    taken: set[int]
    """Those that serve, and that it shows as available or as lost: an update takes them."""
    pods_are_older: bool
    pods: dict[str, Document]

    @property
    def generation(self) -> int:
        return int(self.request["parent"]["metadata"]["generation"])

    @property
    def parent_version(self) -> int:
        return int(self.request["parent"]["metadata"]["resourceVersion"])

    def group(self, id: int) -> bool:
        """Whether the instance is in the rolling group."""
        return template_name(self.spec, id) == rolling_name(self.spec)

    def budget(self, *, rolling: bool) -> int:
        strategy = self.spec.get("updateStrategy") or {}
        force = (strategy.get("forceUpdate") or {}).get("maxUnavailable", "100%")
        value = strategy.get("maxUnavailable", 1) if rolling else force
        return resolved(value, len(self.running)) or 0


@dataclass
class Outage:
    """An instance that an update has made unavailable."""

    snapshot: Snapshot
    uid: str
    revision: int
    was_available: bool
    recorded: int = 0
    """Revision of the status that was written after it."""

    def is_seen_by(self, snapshot: Snapshot, name: str) -> bool:
        pod = snapshot.pods.get(name)
        if pod is None or pod["metadata"]["uid"] != self.uid:
            return True
        return int(pod["metadata"]["resourceVersion"]) >= self.revision
