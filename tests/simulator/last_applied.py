"""Texts of pods' last-applied annotations, for the policy that removes the pod spec from them.

The tests of the simulator's policy and of the shipped one (tests/e2e/test_lean_pods.py) use the
same texts.
"""

from __future__ import annotations

from typing import Any

from simulator.api.apply import canonical_json
from simulator.objects.objects import Object

LOOKS_LIKE_IT = '},"spec":{"a":{}}}'
"""A text that looks like the end of an annotation's metadata and the beginning of its spec."""
_SPEC: Object = {"containers": [{"name": "main", "image": "web:1"}]}
_CLAIM = {"metadata": {"labels": {"a": "b"}}, "spec": {"resources": {}}}
_EPHEMERAL = {"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": _CLAIM}}], **_SPEC}


def noted(spec: Object | None = None, **metadata: Any) -> Object:
    """Returns the content of a pod's last-applied annotation; `metadata` has further fields of its
    metadata.

    If `spec` is None, the content has no spec: the policy must leave this part.
    """
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
"""Pairs: an annotation, and the rest that the policy must leave."""
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
"""Annotations in another form, which the policy must not change."""
