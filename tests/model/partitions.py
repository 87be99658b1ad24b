"""Judges what partitions keep back, write by write.

Each answer by itself is held to `tests/kept.py`: so many are kept, and get nothing but what they
had. Here it is about the answers of one spec together: who was kept by one of them is not updated
by another, so no more are ever updated than the partition allows, whatever the caches showed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tests.invariants import ViolationError
from tests.model.sight import Snapshot


@dataclass
class PartitionJudge:
    """Instances that the answers for the newest spec that was answered have kept."""

    name: str
    counts: Counter[str]
    _generation: int = 0
    _kept: set[int] = field(default_factory=set)

    def note(self, snapshot: Snapshot) -> None:
        """Another answer has come."""
        if snapshot.generation != self._generation:
            self._generation, self._kept = snapshot.generation, set()
        self._kept |= snapshot.kept
        self.counts["answers that keep instances"] += bool(snapshot.kept)

    def check(self, id: int, snapshot: Snapshot) -> None:
        """An instance is about to be updated, by the answer to this."""
        self.counts["updates while others are kept"] += bool(snapshot.kept - {id})
        if snapshot.generation == self._generation and id in self._kept and id not in snapshot.kept:
            raise ViolationError(f"{self.name}-{id} was kept for this spec, and is updated")
