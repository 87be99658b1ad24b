"""Tests which options of the service the plugin uses for a TApp.

The plugin uses the options of the CompositeController that is responsible for the TApp, and of its
service.
"""

import json
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import pytest

from hooks.service.settings import Settings
from kubectl_tapp.cluster.access import ClusterAccess
from kubectl_tapp.cluster.kubectl import CallResult
from kubectl_tapp.cluster.registration import service_options
from tapp.words.vocabulary import SHARD
from tapp.world import Options
from tests.plugin.fake_kubectl import StandIn, kubectl_tapp
from tests.scenarios.apps import tapp
from tests.scenarios.life import Life

OWN = "metacontroller.io/compositecontroller-tapp-controller"


def registered(*shards: str, resource: str = "tapps") -> list[dict[str, Any]]:
    """Returns a CompositeController for each shard, in kubectl's order; "" is the one without a
    shard.

    `resource` is the resource of their parents.
    """
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
    """Simulates a kubectl that responds to every call with these objects."""

    def __init__(self, objects: list[dict[str, Any]]) -> None:
        self._objects = objects

    def run(self, arguments: Sequence[str], stdin: str = "") -> CallResult:  # noqa: ARG002
        return CallResult(0, json.dumps({"items": self._objects}), "")


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
def test_responsible_controller_is_read(metadata: dict[str, Any] | None, name: str) -> None:
    others = registered("other", resource="deployments")
    cluster = ClusterAccess({}, Kubectl([*others, *registered("", "b", "c")]))
    tapp = None if metadata is None else {"metadata": metadata}
    assert cluster.controller(tapp)["metadata"]["name"] == name


def deployment(**variables: str) -> dict[str, Any]:
    """Returns the service's Deployment with these environment variables, and with an injected
    container.
    """
    env = [{"name": name, "value": value} for name, value in variables.items()]
    secret = {"name": "TAPP_TOLERATION_SECONDS", "valueFrom": {"configMapKeyRef": {"name": "x"}}}
    injected = {"name": "proxy", "env": [{"name": "LEVEL", "value": "1"}, secret]}
    containers = [injected, {"name": "hooks", "env": env}, {"name": "bare"}]
    return {"spec": {"template": {"spec": {"containers": containers}}}}


OTHERS = {
    option.name: [str(not option.default).lower(), "T", "no"]
    if isinstance(option.default, bool)
    else ["1234", " 4321 ", "+4321"]
    if isinstance(option.default, int)
    else ["registry.example.com/pause:4"]
    for option in fields(Options)
}
"""Option -> texts of its variable."""


@pytest.mark.parametrize(
    ("option", "text"), [(option, text) for option, texts in OTHERS.items() for text in texts]
)
@pytest.mark.parametrize("spelling", [str.upper, str.lower], ids=["upper case", "lower case"])
def test_each_option_is_parsed_like_in_the_service(
    option: str, text: str, spelling: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reads each option from the Deployment and compares with the service's own parser.

    The cases cover all options that decisions depend on, including future ones.
    """
    variable = spelling(f"tapp_{option}")
    monkeypatch.setenv(variable, text)
    options = Settings().options
    assert service_options(deployment(**{variable: text})) == options


def test_invalid_option_is_the_default() -> None:
    """An option with an invalid value has its default, and variables of other containers are
    ignored.
    """
    odd = {"TAPP_RESIZE": "perhaps", "TAPP_MAX_PULLERS": "", "TAPP_MORE": "1", "RESIZE": "true"}
    assert service_options(deployment(**odd)) == service_options(None) == Options()


def test_plan_uses_the_options_of_the_service() -> None:
    """Plans an update whose images cannot be pulled first, because the image of the puller pods is
    missing.

    The update waits as long as the service's `TAPP_PULL_SECONDS` says.
    """
    spec = {"updateStrategy": {"inPlaceUpdateStrategy": {"prePull": True}}}
    life = Life().apply(tapp(replicas=1, **spec))
    life.world.namespace("tapp-system")
    variables = {"TAPP_PULL_SECONDS": "30", "TAPP_PULLER_IMAGE": "gone:1"}
    metadata = {"name": "tapp-hooks", "namespace": "tapp-system"}
    service = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata}
    life.world.apply({**service, **deployment(**variables)})
    said = kubectl_tapp(
        StandIn(life.world), "plan", "web", "--image", "web=web:2", "--assume-broken", "gone:1",
        "-o", "json",
    )  # fmt: skip
    (instance,) = json.loads(said.out)["instances"]
    assert instance["outcome"] == "in place"
    assert 25 < instance["began"] < 40
