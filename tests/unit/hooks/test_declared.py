"""Tests which optional child resources a CompositeController declares; invalid bytes declare
none.
"""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hooks.wire.declared import declared
from tapp.world import NOTHING_MORE, Declared

JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["childResources", "apiVersion", "resource", "updateStrategy", "method"]
            ),
            inner,
        )
    ),
)
PODS = {"apiVersion": "v1", "resource": "pods", "updateStrategy": {"method": "InPlace"}}


def _child(version: str, resource: str, method: str | None = None) -> dict[str, Any]:
    child: dict[str, Any] = {"apiVersion": version, "resource": resource}
    return child if method is None else {**child, "updateStrategy": {"method": method}}


def _read(*children: Any) -> Declared:
    document = {"spec": {"childResources": list(children), "generateSelector": True}}
    return declared(msgspec.Raw(msgspec.json.encode(document)))


@pytest.mark.parametrize(
    ("child", "expected"),
    [
        (_child("apps/v1", "controllerrevisions", "OnDelete"), Declared(revisions=True)),
        (_child("apps/v1", "controllerrevisions"), Declared(revisions=True)),
        (_child("apps/v1", "controllerrevisions", "InPlace"), NOTHING_MORE),
        (_child("apps/v1", "controllerrevisions", "Recreate"), NOTHING_MORE),
        (_child("apps/v1beta2", "controllerrevisions", "OnDelete"), NOTHING_MORE),
        (_child("v1", "persistentvolumeclaims", "InPlace"), Declared(growing_claims=True)),
        (_child("v1", "persistentvolumeclaims", "OnDelete"), NOTHING_MORE),
        (_child("v1", "persistentvolumeclaims"), NOTHING_MORE),
        (_child("v1", "persistentvolumeclaims", "Recreate"), NOTHING_MORE),
    ],
    ids=[
        "revisions OnDelete",
        "revisions without a strategy",
        "revisions InPlace",
        "revisions Recreate",
        "revisions of another version",
        "claims InPlace",
        "claims OnDelete",
        "claims without a strategy",
        "claims Recreate",
    ],
)
def test_kind_and_update_strategy_declare_a_feature(
    child: dict[str, Any], expected: Declared
) -> None:
    assert _read(PODS, child) == expected


def test_revisions_and_growing_claims_can_be_declared_together() -> None:
    both = (
        _child("apps/v1", "controllerrevisions", "OnDelete"),
        _child("v1", "persistentvolumeclaims", "InPlace"),
    )
    assert _read(PODS, *both) == Declared(revisions=True, growing_claims=True)


@pytest.mark.parametrize(
    "text",
    [
        b"null",
        b"{}",
        b"[]",
        b'{"spec":null}',
        b'{"spec":{"childResources":null}}',
        b'{"spec":{"childResources":{}}}',
        b'{"spec":{"childResources":[null]}}',
        b'{"spec":{"childResources":[{"resource":1}]}}',
        b'"\xff"',
        b'{"a":' * 100_000,
    ],
    ids=[
        "null",
        "empty object",
        "list",
        "null spec",
        "null resources",
        "resources are an object",
        "null resource",
        "resource is a number",
        "invalid UTF-8",
        "deeply nested",
    ],
)
def test_invalid_registration_declares_nothing(text: bytes) -> None:
    assert declared(msgspec.Raw(text)) == NOTHING_MORE


@given(st.fixed_dictionaries({"spec": JSON}) | JSON)
def test_random_registration_declares_nothing(document: Any) -> None:
    assert declared(msgspec.Raw(msgspec.json.encode(document))) == NOTHING_MORE
