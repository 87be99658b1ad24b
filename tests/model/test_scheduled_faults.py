"""Plays the faults that `kubectl tapp rehearse` draws, with the judge of the model.

Both use one scheduler, `simulator/schedule.py`; only the judges are the tests' own.
"""

import pytest

from simulator.schedule import KINDS
from tests.model import specs
from tests.model.available_cluster import at_rest
from tests.sizes import size

FAULTS = sorted(KINDS.keys() - {"second-edit", "crash"})
"""Kinds of faults, without second edits, which the model makes itself, and without crashes.

A container that crashes in the second before its kubelet reports that counts as serving for the
service, and not for the judge (docs/guarantees.md).
"""


@pytest.mark.parametrize("kind", FAULTS)
def test_rollout_keeps_all_promises_under_each_kind_of_fault(kind: str) -> None:
    for seed in range(size(1, 20)):
        cluster = at_rest(minReadySeconds=2)
        cluster.edit(lambda spec: specs.set_env(spec, "default", "a"))
        cluster.play_faults(seed, [kind], 1, 20.0)
        cluster.comes_to_rest()


def test_rollout_keeps_all_promises_under_three_faults_at_once() -> None:
    for seed in range(size(4, 100)):
        cluster = at_rest()
        cluster.edit(lambda spec: specs.set_images(spec, "app:2"))
        cluster.play_faults(seed, FAULTS, 3, 20.0)
        cluster.comes_to_rest()
