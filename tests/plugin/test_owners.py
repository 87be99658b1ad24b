"""Tests which owner the plugin recognizes for an object that has the name of a pod.

The owner follows from owner references and the label with the TApp's UID.
"""

from typing import Any

import pytest

from kubectl_tapp.cluster.belonging import ownership_advice, ownership_of

TAPP = {"metadata": {"name": "web", "namespace": "default", "uid": "now"}}
GROUP = "apps.tkestack.io/v1"


def owner(kind: str, name: str, uid: str, api: str = GROUP, **more: Any) -> dict[str, Any]:
    return {"apiVersion": api, "kind": kind, "name": name, "uid": uid, "controller": True, **more}


@pytest.mark.parametrize(
    ("label", "owners", "adoptable", "text"),
    [
        ("now", [owner("TApp", "web", "now")], False, ""),
        ("now", [], False, ""),
        (None, [owner("TApp", "web", "now")], True,
         "belongs to this TApp and lacks its label controller-uid"),
        ("x", [owner("TApp", "web", "now")], True,
         "belongs to this TApp and lacks its label controller-uid"),
        (None, [], True, "has no owner"),
        (None, [owner("Namespace", "default", "space", "v1", controller=None)], True,
         "has no owner"),
        ("old", [], True, "was left behind by a deleted TApp web (uid old)"),
        ("old", [owner("TApp", "web", "old")], True,
         "was left behind by a deleted TApp web (uid old)"),
        (None, [owner("TApp", "other", "its")], False,
         "belongs to TApp other, so the name is taken"),
        (None, [owner("ReplicaSet", "web", "its", "apps/v1")], False,
         "belongs to ReplicaSet web, so the name is taken"),
        ("now", [owner("ReplicaSet", "shop", "its", "apps/v1")], False,
         "belongs to ReplicaSet shop, so the name is taken"),
    ],
    ids=[
        "this TApp", "label of this TApp without an owner", "no label",
        "label of another uid", "no owner", "owner that is no controller",
        "label of a deleted TApp", "deleted TApp", "another TApp",
        "ReplicaSet with the same name", "ReplicaSet, label of this TApp",
    ],
)  # fmt: skip
def test_owner_of_an_object_is_recognized(
    label: str | None, owners: list[dict[str, Any]], adoptable: bool, text: str
) -> None:
    labels = {} if label is None else {"controller-uid": label}
    pod = {"metadata": {"name": "web-0", "labels": labels, "ownerReferences": owners}}
    found = ownership_of(pod, TAPP)
    assert found.text == text
    assert found.can_be_adopted == adoptable
    hint = "; `kubectl tapp adopt web -n default` adopts it" if found.can_be_adopted else ""
    assert ownership_advice(pod, TAPP) == text + hint
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert ownership_advice(pod, TAPP) == (text and f"{text}, and is being deleted")
