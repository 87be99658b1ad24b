"""Judges the instances that partitions keep, over all responses for one spec.

`tests/kept.py` judges each response alone: the right number of instances is kept at the right
revision. This judge compares the responses for one spec: an instance that one response keeps must
not be updated by another. So the partition's limit holds with stale caches, too.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tests.invariants import ViolationError
from tests.model.sight import Snapshot


@dataclass
class PartitionJudge:
    """The instances that the responses for the newest spec have kept."""

    name: str
    counts: Counter[str]
    _generation: int = 0
    _kept: set[int] = field(default_factory=set)

    def note(self, snapshot: Snapshot) -> None:
        """Records a response."""
        if snapshot.generation != self._generation:
            self._generation, self._kept = snapshot.generation, set()
        self._kept |= snapshot.kept
        self.counts["answers that keep instances"] += bool(snapshot.kept)

    def check(self, id: int, snapshot: Snapshot) -> None:
        """Checks that no earlier response for the spec has kept an instance that is updated now."""
        self.counts["updates while others are kept"] += bool(snapshot.kept - {id})
        if snapshot.generation == self._generation and id in self._kept and id not in snapshot.kept:
            raise ViolationError(f"{self.name}-{id} was kept for this spec, and is updated")
