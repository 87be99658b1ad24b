"""Judges partitions over all syncs for one spec: which instances are kept at an older revision.

`tests/kept_instances.py` judges each response alone: the right number of instances is kept at the
right revision. This judge compares the responses for one spec: an instance that one response keeps
must not be updated by another. So the partition's limit holds with stale caches, too.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tests.invariants import ViolationError
from tests.model.snapshots import Snapshot


@dataclass
class PartitionJudge:
    """Judges whether an instance is updated although an earlier response for the same spec has kept
    it.
    """

    name: str
    counts: Counter[str]
    _generation: int = 0
    _kept: set[int] = field(default_factory=set)

    def note(self, snapshot: Snapshot) -> None:
        """Records which instances the response of a sync keeps."""
        if snapshot.generation != self._generation:
            self._generation, self._kept = snapshot.generation, set()
        self._kept |= snapshot.kept
        self.counts["answers that keep instances"] += bool(snapshot.kept)

    def check(self, id: int, snapshot: Snapshot) -> None:
        """Raises ViolationError if an instance is updated that an earlier response for the same
        spec has kept.

        `snapshot` is the sync that has decided on the update.
        """
        self.counts["updates while others are kept"] += bool(snapshot.kept - {id})
        if snapshot.generation == self._generation and id in self._kept and id not in snapshot.kept:
            raise ViolationError(f"{self.name}-{id} was kept for this spec, and is updated")
