"""Tests many instances from their creation to their deletion, with exactly the necessary writes."""

from collections import Counter

import pytest

from tests.scenarios.apps import stored, storing
from tests.scenarios.life import Life
from tests.sizes import size

REPLICAS = size(60, 1000)
"""The rollout takes ten rounds with any number."""


@pytest.mark.slow
def test_life_of_many_instances_causes_no_unnecessary_write() -> None:
    """Creates, updates and deletes many instances with claims, and counts the writes.

    Invariants are checked for some of the syncs, because each check visits all pods.
    """
    life = Life(check_every=25)
    life.apply(stored(replicas=REPLICAS, updateStrategy={"maxUnavailable": "10%"}))
    assert life.complete
    assert writes_of_each_kind(life) == {"create Pod": REPLICAS, "create Claim": REPLICAS}
    born = life.uids()

    life.watch_readiness()
    life.patch(template=storing("web:2"))
    assert life.complete
    assert writes_of_each_kind(life) == {"update Pod": REPLICAS}
    assert set(life.images().split()) == {"web:2"}
    assert life.uids() == born
    assert life.fewest_ready == REPLICAS * 9 // 10

    life.idle()
    assert life.news() == []

    life.delete()
    assert writes_of_each_kind(life) == {"delete Pod": REPLICAS}
    assert not life.exists
    assert life.pods == {}
    assert len(life.claims()) == REPLICAS


def writes_of_each_kind(life: Life) -> Counter[str]:
    """Returns verb and kind -> number of the writes since the last call."""
    return Counter(write.rpartition(" ")[0] for write in life.writes())
