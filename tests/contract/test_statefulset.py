"""docs/statefulset.md beside the comparison that it tells of, and beside a StatefulSet's fields."""

from pathlib import Path

from tests.contract.test_docs import quoted, rows, section
from tests.e2e.test_beside_statefulset import LIVES

PAGE = Path(__file__).parents[2] / "docs" / "statefulset.md"
SPEC = {
    "replicas",
    "selector",
    "template",
    "volumeClaimTemplates",
    "serviceName",
    "podManagementPolicy",
    "updateStrategy.type: RollingUpdate",
    "updateStrategy.type: OnDelete",
    "updateStrategy.rollingUpdate.maxUnavailable",
    "updateStrategy.rollingUpdate.partition",
    "revisionHistoryLimit",
    "minReadySeconds",
    "persistentVolumeClaimRetentionPolicy",
    "ordinals.start",
}
"""All that a StatefulSet's spec has (Kubernetes 1.36)."""


def test_the_page_lists_the_differences_that_were_seen_and_no_others() -> None:
    seen = {step.differs for steps in LIVES.values() for step in steps} - {""}
    assert seen == {cells[0] for cells in rows(section(PAGE, "What the same steps do"))}


def test_every_field_of_a_statefulset_is_in_the_table() -> None:
    listed = set[str]()
    for first, *_ in rows(section(PAGE, "Field by field")):
        listed |= quoted(first)
    assert listed >= SPEC
