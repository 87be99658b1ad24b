"""Tests dynamic apply, Metacontroller's merge: which fields change, stay, and disappear."""

from __future__ import annotations

import json
from typing import Any

import pytest

from simulator.api.apply import (
    LAST_APPLIED,
    ApplyError,
    apply_update,
    canonical_json,
    last_applied,
    merge,
    with_last_applied,
)
from simulator.objects.objects import changed_paths, deep_equal


def _list(*items: Any) -> Any:
    return {"l": list(items)}


def _named(*names: str) -> Any:
    return _list(*({"name": name} for name in names))


_TCP, _UDP = ({"containerPort": 53, "protocol": protocol} for protocol in ("TCP", "UDP"))
_TOLERATIONS = [{"key": key, "operator": "Exists"} for key in "ab"]

CASES: dict[str, tuple[Any, Any, Any, Any]] = {
    # case: observed, last applied, desired, result
    "nothing-at-all": ({}, {}, {}, {}),
    "foreign-field-stays": ({"a": 1}, {}, {}, {"a": 1}),
    "own-field-no-longer-desired-goes": ({"a": 1, "b": 2}, {"b": 1}, {}, {"a": 1}),
    "desired-replaces-and-adds": ({"a": 1}, {"a": 0}, {"a": 5, "b": 6}, {"a": 5, "b": 6}),
    "nested-maps-merge": (
        {"m": {"keep": 1, "drop": 2, "set": 3}}, {"m": {"drop": 0, "set": 0}},
        {"m": {"set": 9, "new": 8}}, {"m": {"keep": 1, "set": 9, "new": 8}},
    ),
    "dropped-map-takes-server-defaults-along": (
        {"m": {"x": 1, "default": 2}}, {"m": {"x": 1}}, {}, {}
    ),
    "list-of-scalars-is-replaced": (
        _list(1, 2), _list(3), _list(4, {"x": 1}), _list(4, {"x": 1})
    ),
    "named-list-merges-by-name": (
        _list({"name": "keep"}, {"name": "drop"}, {"name": "both", "x": {"o": 1}}),
        _named("drop"),
        _list({"name": "new"}, {"name": "both", "x": {"d": 2}}),
        _list({"name": "keep"}, {"name": "both", "x": {"o": 1, "d": 2}}, {"name": "new"}),
    ),
    "containerPort-goes-before-name": (
        _list({"containerPort": 80, "name": "a", "protocol": "TCP"}),
        None,
        _list({"containerPort": 80, "name": "b"}, {"containerPort": 90, "name": "c"}),
        _list(
            {"containerPort": 80, "name": "b", "protocol": "TCP"},
            {"containerPort": 90, "name": "c"},
        ),
    ),
    "mountPath-goes-before-name": (
        _list({"mountPath": "/a", "name": "v", "readOnly": True}),
        _list({"mountPath": "/a", "name": "v"}),
        _list({"mountPath": "/a", "name": "w"}),
        _list({"mountPath": "/a", "name": "w", "readOnly": True}),
    ),
    "a-key-missing-in-one-list-makes-it-atomic": (
        _list({"name": "a"}, {"other": "b"}), _named("a"), _named("c"), _named("c")
    ),
    "tolerations-have-no-key-of-their-own": (
        _list(*_TOLERATIONS), _list({"key": "a"}), _list({"key": "a"}), _list({"key": "a"})
    ),
    "duplicate-keys-collapse-to-the-last": (
        _list(_TCP, _UDP), _list(_TCP, _UDP), _list(_TCP, _UDP), _list(_UDP, _UDP)
    ),
    "duplicates-survive-where-nothing-was": ({}, {}, _named("a", "a"), _named("a", "a")),
    "null-over-a-scalar-is-written": ({"a": 1}, {}, {"a": None}, {"a": None}),
    "null-for-an-absent-field-is-written": ({}, {}, {"a": None}, {"a": None}),
    "null-over-a-map-drops-what-was-applied": (
        {"m": {"o": 1, "l": 2}}, {"m": {"l": 2}}, {"m": None}, {"m": {"o": 1}}
    ),
    "null-over-a-keyed-list-drops-what-was-applied": (
        _named("o", "l"), _named("l"), {"l": None}, _named("o")
    ),
    "null-over-an-atomic-list-is-null": ({"l": [1]}, {"l": [1]}, {"l": None}, {"l": None}),
    "scalar-desired-over-a-map-counts-as-empty": (
        {"m": {"o": 1, "l": 2}}, {"m": {"l": 2}}, {"m": "x"}, {"m": {"o": 1}}
    ),
    "map-desired-over-a-scalar-wins": ({"m": 1}, {"m": 1}, {"m": {"x": 1}}, {"m": {"x": 1}}),
    "wrong-type-in-last-applied-counts-as-empty": (
        {"m": {"o": 1}}, {"m": 3}, {"m": {"d": 1}}, {"m": {"o": 1, "d": 1}}
    ),
    "empty-list-over-a-keyed-list": (_named("o", "l"), _named("l"), {"l": []}, _named("o")),
}  # fmt: skip


@pytest.mark.parametrize(("observed", "last", "wanted", "result"), CASES.values(), ids=CASES)
def test_merge_has_the_expected_result_and_changes_no_argument(
    observed: Any, last: Any, wanted: Any, result: Any
) -> None:
    before = json.dumps([observed, last, wanted])
    assert deep_equal(merge(observed, last, wanted), result)
    assert json.dumps([observed, last, wanted]) == before


def test_merge_without_changes_returns_the_observed_object() -> None:
    observed = {"a": {"b": [1, {"name": "x"}]}, "l": [{"name": "x", "o": 1}]}
    assert merge(observed, None, {"l": [{"name": "x", "o": 1}]}) is observed


def _observed(applied: Any) -> Any:
    metadata = {"name": "p", "uid": "1", "resourceVersion": "7"}
    pod = {"kind": "Pod", "metadata": metadata, "spec": {"x": 1}, "status": {"phase": "Running"}}
    return with_last_applied(pod, applied)


def test_system_fields_and_status_are_kept() -> None:
    applied = {"spec": {"x": 1}}
    wanted = {"metadata": {"uid": "2", "generation": 9}, "spec": {"x": 1}, "status": {"phase": "x"}}
    updated = apply_update(_observed(applied), wanted)
    assert updated["metadata"]["uid"] == "1"
    assert "generation" not in updated["metadata"]
    assert updated["status"] == {"phase": "Running"}


def test_object_with_the_applied_fields_is_not_changed() -> None:
    applied = {"spec": {"x": 1}}
    observed = _observed(applied)
    assert deep_equal(apply_update(observed, applied), observed)


def test_other_spelling_of_the_same_object_changes_only_the_annotation() -> None:
    observed = _observed({"spec": {"x": 1}})
    paths = list(changed_paths(observed, apply_update(observed, {"spec": {}, "kind": "Pod"})))
    assert paths == [f"metadata.annotations.{LAST_APPLIED}", "spec.x"]


def test_last_applied_annotation_in_a_response_is_ignored() -> None:
    observed = _observed({"spec": {"x": 1}})
    echo = {"metadata": {"annotations": {LAST_APPLIED: "{}"}}, "spec": {"x": 1}}
    recorded = last_applied(apply_update(observed, echo))
    assert recorded == {"metadata": {"annotations": {}}, "spec": {"x": 1}}


def test_unreadable_annotation_is_an_error() -> None:
    with pytest.raises(ApplyError):
        last_applied({"metadata": {"annotations": {LAST_APPLIED: "{"}}})


def test_json_has_the_format_of_go() -> None:
    """Encodes an object as Go does: keys are sorted, and HTML characters are escaped."""
    assert canonical_json({"b": "<&>", "a": "ü"}) == '{"a":"ü","b":"\\u003c\\u0026\\u003e"}'


@pytest.mark.parametrize(
    ("left", "right"),
    [(1, 1.0), (1, True), (0, False), ([], None), ("1", 1)],
    ids=[
        "integer and float",
        "1 and true",
        "0 and false",
        "empty list and null",
        "text and number",
    ],
)
def test_values_of_different_types_are_not_equal(left: Any, right: Any) -> None:
    """Compares values that Go would decode to different types: they differ, although Python finds
    some equal.
    """
    assert not deep_equal({"x": left}, {"x": right})
