"""Sorts the test files by their duration, the longest first.

Several files run at the same time (`.ci/run`). A long file at the end would run alone.
"""

from __future__ import annotations

import pytest

LONG = (
    "test_real_serving",
    "test_real_drain",
    "test_real_superseded_updates",
    "test_differential",
    "test_plugin_verbs",
    "test_kubelet_differential",
    "test_statefulset_comparison",
    "test_real_lost_node",
    "test_real_resize",
    "test_real_failing_pods",
    "test_real_install",
    "test_commands",
    "test_real_status",
    "test_real_prepull",
    "test_monitoring",
    "test_ownership",
    "test_real_containers",
    "test_commands_of_installing",
    "test_real_restarts",
    "test_release",
    "test_restore",
    "test_faults",
    "test_services",
    "test_real_outage",
    "test_real_holds",
    "test_other_tools_scaling",
    "test_from_statefulset",
    "test_uninstall",
    "test_events",
)
"""The files that take longest, the longest first."""


def longest_first(items: list[pytest.Item]) -> None:
    """Sorts tests by their files.

    Tests of one file, and tests of all other files, keep their order.
    """
    places = {name: place for place, name in enumerate(LONG)}
    items.sort(key=lambda item: places.get(item.path.stem, len(LONG)))
