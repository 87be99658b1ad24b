"""Many instances from birth to end, with exactly the writes that it takes."""

from collections import Counter

import pytest

from tests.scenarios.apps import stored, storing
from tests.scenarios.life import Life
from tests.sizes import size

REPLICAS = size(60, 1000)
"""They are rolled in ten turns; what a thousand show in addition is how long that takes."""


@pytest.mark.slow
def test_many_instances_are_created_rolled_and_deleted_without_a_surplus_write() -> None:
    """The invariants are held against a sample of the syncs: each looks at all pods."""
    life = Life(check_every=25)
    life.apply(stored(replicas=REPLICAS, updateStrategy={"maxUnavailable": "10%"}))
    assert life.complete
    assert counts(life) == {"create Pod": REPLICAS, "create Claim": REPLICAS}
    born = life.uids()

    life.watch_readiness()
    life.patch(template=storing("web:2"))
    assert life.complete
    assert counts(life) == {"update Pod": REPLICAS}
    assert set(life.images().split()) == {"web:2"}
    assert life.uids() == born
    assert life.fewest_ready == REPLICAS * 9 // 10

    life.idle()
    assert life.news() == []

    life.delete()
    assert counts(life) == {"delete Pod": REPLICAS}
    assert (life.exists, life.pods, len(life.claims())) == (False, {}, REPLICAS)


def counts(life: Life) -> Counter[str]:
    """The number of writes of each kind."""
    return Counter(write.rpartition(" ")[0] for write in life.writes())
