"""Tests that docs/statefulset.md matches the comparison in e2e, and the fields of a StatefulSet."""

from pathlib import Path

from tests.contract.pages import quoted, rows, section
from tests.e2e.side_by_side import LIVES

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
"""All fields in the spec of a StatefulSet (Kubernetes 1.36)."""


def test_page_has_exactly_the_differences_of_the_comparison() -> None:
    seen = {step.differs for steps in LIVES.values() for step in steps} - {""}
    assert seen == {cells[0] for cells in rows(section(PAGE, "What the same steps do"))}


def test_table_has_every_field_of_a_statefulset() -> None:
    listed = set[str]()
    for first, *_ in rows(section(PAGE, "Field by field")):
        listed |= quoted(first)
    assert listed >= SPEC
