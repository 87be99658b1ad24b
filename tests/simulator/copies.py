"""Notes of Metacontroller about a pod, for the policy that cuts the spec out of them.

The simulator's policy and the shipped one (tests/e2e/test_lean_pods.py) are shown the same texts.
"""

from __future__ import annotations

from typing import Any

from simulator.api.apply import canonical_json
from simulator.objects.objects import Object

LOOKS_LIKE_IT = '},"spec":{"a":{}}}'
_SPEC: Object = {"containers": [{"name": "main", "image": "web:1"}]}
_CLAIM = {"metadata": {"labels": {"a": "b"}}, "spec": {"resources": {}}}
_EPHEMERAL = {"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": _CLAIM}}], **_SPEC}


def noted(spec: Object | None = None, **metadata: Any) -> Object:
    """Metacontroller's note of a pod; without a spec, the part that shall be left of it."""
    made = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", **metadata}}
    return made if spec is None else {**made, "spec": spec}


_METADATA: list[dict[str, Any]] = [
    {},
    {"annotations": {"a": LOOKS_LIKE_IT, "spec": '"', "z": "\\"}, "labels": {"spec": "x"}},
    {"annotations": {LOOKS_LIKE_IT: LOOKS_LIKE_IT}, "finalizers": ["a/b", LOOKS_LIKE_IT]},
    {"annotations": {}, "labels": {}, "namespace": "n"},
    {"annotations": {"a": '\\"},"spec":{', "b": "<&>\u2028\n\t\x00 ü"}},
]
CUT = [
    (canonical_json(noted(spec, **metadata)), canonical_json(noted(**metadata)))
    for metadata in _METADATA
    for spec in ({}, _SPEC, _EPHEMERAL)
]
"""Texts, and what is left of them: whatever labels and annotations say and the spec holds."""
LEFT_ALONE = [
    "",
    "{}",
    ',"spec":{',
    canonical_json(noted(annotations={"a": LOOKS_LIKE_IT})),
    canonical_json({**noted(_SPEC), "status": "x"}),
    canonical_json({**noted(_SPEC), "kind": "PodTemplate"}),
    canonical_json({**noted(_SPEC), "metadata": {"a": {"b": {}}, "spec": {}}}),
    canonical_json({**noted(), "metadata": {"a": {"b": {"c": "d"}, "spec": {}}}}),
    canonical_json(noted(_SPEC)).replace(":", ": "),
    canonical_json(noted(_SPEC))[:-1],
]
"""Texts of another shape."""
