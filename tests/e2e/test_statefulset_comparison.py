"""Does the same steps to a StatefulSet and a TApp on one control plane, and compares their pods.

The events of both sets of pods are compared line by line (`pod_history.py`), then their versions,
and the counts in the status. If they differ on purpose, `differs` of the step names the row in
docs/statefulset.md, "What the same steps do".
"""

from __future__ import annotations

import time

import pytest

from .app import App
from .kubelet_controls import Levers
from .side_by_side import ALIKE_IN_THE_END, BROKEN, LIVES, Ours, Step, Theirs, Workload

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


@pytest.mark.parametrize("life", LIVES)
def test_tapp_creates_the_same_pods_as_a_statefulset_for_the_same_steps(
    app: App, levers: Levers, life: str
) -> None:
    """Users who know StatefulSets expect equal pods, versions, order and counts."""
    levers.unready_images.add(BROKEN)
    theirs, ours = Theirs(app.kube, app.namespace), Ours(app.kube, app.namespace)
    with theirs.diary, ours.diary:
        for step in LIVES[life]:
            wanted = {theirs: step.pods, ours: step.pods if step.ours is None else step.ours}
            if step.catches_up:
                wanted[ours] = []
            for each in (theirs,) if step.catches_up else wanted:
                step.do(each)
            found = {each: each.diary.news(len(lines)) for each, lines in wanted.items()}
            if not step.ordered:
                found = {each: sorted(lines) for each, lines in found.items()}
                wanted = {each: sorted(lines) for each, lines in wanted.items()}
            assert found == wanted, step.what
            if not step.differs or step.differs in ALIKE_IN_THE_END:
                assert_equal(theirs, ours, step)


def assert_equal(theirs: Workload, ours: Workload, step: Step) -> None:
    """Asserts that both have equal pods and equal counts."""
    assert theirs.versions == ours.versions, step.what
    until = time.monotonic() + 5
    while theirs.status != ours.status and time.monotonic() < until:
        time.sleep(0.1)
    assert theirs.status == ours.status, step.what
