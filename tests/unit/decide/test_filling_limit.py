"""Tests that a sync fills in the templates of all instances, or refuses templates that are too
large.

The limit is on the bytes that one sync fills in for all instances together.
"""

from typing import Any

import pytest

from tapp.declared import filling
from tests.builders import Document, claim_template, tapp, template
from tests.unit.world import Hook, World, condition

COUNT = 12
FIELDS = {f"k{number}": "$(tapp.index)" for number in range(9)}


class RestartedHook(Hook):
    """A service that has just started, with an empty cache."""


def template_with_value(image: str = "web:1") -> Document:
    """Returns a template with this image and a placeholder for the value `a`."""
    return template(image, container={"env": [{"name": "A", "value": "$(tapp.values.a)"}]})


def values(**changed: str) -> Document:
    """Returns `spec.values` with a value for each instance; `_3="x"` sets the value of instance
    3.
    """
    found = {str(id): {"a": f"v{id}"} for id in range(COUNT)}
    return found | {key[1:]: {"a": value} for key, value in changed.items()}


def tapp_with_values(**spec: Any) -> World:
    """Returns a TApp with 12 instances that have their own values; `spec` has further fields of its
    spec.
    """
    strategy = {"maxUnavailable": "100%", **spec.pop("updateStrategy", {})}
    given = {
        "template": template_with_value(),
        "values": values(),
        **spec,
        "updateStrategy": strategy,
    }
    return World(tapp(replicas=COUNT, **given), history=True)


@pytest.fixture
def small_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lowers the limit to 1,000 bytes, so that none of the templates in this file fits."""
    monkeypatch.setattr(filling, "MOST_FILLED_IN", 1_000)


def test_templates_of_all_instances_are_filled_in_by_one_sync() -> None:
    found = tapp_with_values()
    assert set(found.decisions().values()) == {"Create/NoPod"}
    found.settle()
    assert [found.container(id)["env"][0]["value"] for id in range(COUNT)] == [
        f"v{id}" for id in range(COUNT)
    ]


def test_thousand_instances_of_ten_kilobytes_are_below_the_limit() -> None:
    """Syncs a TApp of the size that docs/values.md promises: ten placeholders in a template of 10
    KB.
    """
    variables = [{"name": f"V{n}", "value": "x" * 960} for n in range(10)]
    reading = [{"name": f"P{n}", "value": "$(tapp.index)"} for n in range(10)]
    found = World(tapp(replicas=1_000, template=template(container={"env": variables + reading})))
    assert condition(found.sync(), "TemplateNotFound") is None


def test_pods_that_run_stay_if_their_template_becomes_too_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Lowers the limit under a running TApp: it keeps its pods, as one that an older service
    accepted does.
    """
    monkeypatch.setattr(filling, "MOST_FILLED_IN", 50_000_000)
    found = tapp_with_values().settle()
    before = found.uids()
    monkeypatch.setattr(filling, "MOST_FILLED_IN", 1_000)
    found.hook = RestartedHook()
    assert set(found.decisions().values()) == {"Keep/TemplateNotFound"}
    found.settle()
    assert found.uids() == before


@pytest.mark.usefixtures("small_limit")
def test_condition_names_template_size_and_remedy_if_templates_are_too_large() -> None:
    said = condition(tapp_with_values().sync(), "TemplateNotFound")
    assert said is not None
    for words in ("template 'default'", "bytes", "12 instances", "1,000", "ConfigMap"):
        assert words in said["message"]


def test_killed_and_scaled_down_instances_are_deleted_if_templates_are_too_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(filling, "MOST_FILLED_IN", 50_000_000)
    found = tapp_with_values().settle()
    monkeypatch.setattr(filling, "MOST_FILLED_IN", 1_000)
    found.hook = RestartedHook()
    found.change(replicas=COUNT - 1, statuses={str(COUNT - 2): "Killed"})
    decisions = found.decisions()
    assert decisions[COUNT - 1] == "Delete/ScaledDown"
    assert decisions[COUNT - 2] == "Delete/Killed"


@pytest.mark.usefixtures("small_limit")
def test_templates_without_placeholders_are_used_however_many_instances_run_them() -> None:
    found = World(tapp(replicas=COUNT, template=template(annotations={"note": "x" * 2_000})))
    assert set(found.decisions().values()) == {"Create/NoPod"}


@pytest.mark.parametrize(
    "metadata",
    [{"labels": FIELDS}, {"annotations": {"note": "x" * 900}}],
    ids=["many placeholders", "a long text"],
)
@pytest.mark.usefixtures("small_limit")
def test_services_stay_as_they_are_if_their_template_is_too_large(metadata: Document) -> None:
    spec = {"ports": [{"port": 80}]}
    found = World(
        tapp(replicas=COUNT, serviceTemplate={"spec": spec}), hook=RestartedHook(), exposing=True
    )
    before = set(found.settle().services)
    found.change(serviceTemplate={"metadata": metadata, "spec": spec})
    said = condition(found.sync(), "ServicesNotCreated")
    assert said is not None
    assert "for 12 instances" in said["message"]
    assert set(found.services) == before


@pytest.mark.usefixtures("small_limit")
def test_pods_are_not_created_if_claim_templates_are_too_large() -> None:
    claim = claim_template()
    claim["metadata"]["labels"] = FIELDS
    found = World(tapp(replicas=COUNT, volumeClaimTemplates=[claim]))
    said = condition(found.sync(), "CreationBlocked")
    assert said is not None
    assert "claim template 'data': its placeholders make" in said["message"]


def test_kept_instance_is_recreated_with_the_values_of_its_revision() -> None:
    found = tapp_with_values().settle()
    found.change(
        template=template_with_value("web:2"),
        values=values(_11="new"),
        updateStrategy={"partition": 8, "maxUnavailable": "100%"},
    ).settle()
    images = [found.container(id)["image"] for id in range(COUNT)]
    assert images == ["web:2"] * 4 + ["web:1"] * 8
    del found.pods["web-11"]
    found.settle()
    container = found.container(11)
    assert container["image"] == "web:1"
    assert container["env"][0]["value"] == "v11"
