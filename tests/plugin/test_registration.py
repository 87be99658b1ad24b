"""Where several CompositeControllers serve TApps, the plugin decides as the one in charge does."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from kubectl_tapp.cluster.cluster import Cluster
from kubectl_tapp.cluster.kubectl import Finished
from tapp.words.vocabulary import SHARD

OWN = "metacontroller.io/compositecontroller-tapp-controller"


def registered(*shards: str, resource: str = "tapps") -> list[dict[str, Any]]:
    """CompositeControllers as kubectl lists them, the one of no shard first."""
    return [
        {
            "metadata": {
                "name": f"tapp-controller-{shard}" if shard else "tapp-controller",
                "labels": {SHARD: shard} if shard else {},
            },
            "spec": {"parentResource": {"resource": resource}},
        }
        for shard in shards
    ]


class Kubectl:
    """Answers every call with these objects."""

    def __init__(self, objects: list[dict[str, Any]]) -> None:
        self._objects = objects

    def run(self, arguments: Sequence[str], stdin: str = "") -> Finished:  # noqa: ARG002
        return Finished(0, json.dumps({"items": self._objects}), "")


@pytest.mark.parametrize(
    ("metadata", "name"),
    [
        pytest.param(None, "tapp-controller", id="no TApp"),
        pytest.param({}, "tapp-controller", id="a new one without a label"),
        pytest.param({"labels": {SHARD: "c"}}, "tapp-controller-c", id="a new one of a shard"),
        pytest.param({"finalizers": [f"{OWN}-b"]}, "tapp-controller-b", id="one that is served"),
        pytest.param(
            {"finalizers": ["other", f"{OWN}-b"], "labels": {SHARD: "c"}},
            "tapp-controller-b", id="one whose label has changed",
        ),
        pytest.param(
            {"finalizers": [f"{OWN}-gone"], "labels": {SHARD: "c"}},
            "tapp-controller-c", id="one whose finalizer is nobody's",
        ),
        pytest.param({"labels": {SHARD: "x"}}, "tapp-controller", id="one of an unknown shard"),
    ],
)  # fmt: skip
def test_the_controller_in_charge_is_asked_for(metadata: dict[str, Any] | None, name: str) -> None:
    others = registered("other", resource="deployments")
    cluster = Cluster({}, Kubectl([*others, *registered("", "b", "c")]))
    tapp = None if metadata is None else {"metadata": metadata}
    assert cluster.controller(tapp)["metadata"]["name"] == name
