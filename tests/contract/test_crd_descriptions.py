"""Tests the descriptions of the CRD, its status, and the reference page made of them."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped] # no stubs among our requirements
import pytest
from pydantic import BaseModel

from crds import reference, schema
from hooks.app import create_app
from hooks.service.settings import Settings
from tapp.answer import claim_refusals, kstatus, mistakes, refusals
from tapp.answer import conditions as findings
from tapp.declared import model, policies
from tapp.words import conditions, vocabulary
from tests.contract.crd_schema import SPEC, STATUS, Node, as_json_schema, with_container

# --- descriptions and the status ------------------------------------------------------------------

MODELS: list[tuple[type[BaseModel], Node]] = [
    (model.TAppSpec, SPEC),
    (policies.UpdateStrategy, SPEC["properties"]["updateStrategy"]),
    (policies.ForceUpdate, SPEC["properties"]["updateStrategy"]["properties"]["forceUpdate"]),
    (
        policies.InPlaceUpdateStrategy,
        SPEC["properties"]["updateStrategy"]["properties"]["inPlaceUpdateStrategy"],
    ),
    (policies.RetentionPolicy, SPEC["properties"]["persistentVolumeClaimRetentionPolicy"]),
]


def unset(value: Any) -> str:
    """Returns the text with which a description states a default, for example `Unset: true`."""
    return "Unset: " + (str(value).lower() if isinstance(value, bool) else str(value))


OWN_WORDS = {
    "template": "Unset: the default template.",
    "domain": "Unset: all domains are updated at the same time.",
    "defaultTemplateName": f"Unset: '{vocabulary.DEFAULT_TEMPLATE}'.",
    "DefaultTemplateName": f"Unset: '{vocabulary.DEFAULT_TEMPLATE}'.",
    "serviceName": "Unset: pods get no DNS name.",
    "serviceTemplate": "Unset: no Services.",
    "serviceRetentionPolicy": "Unset: they are retained.",
    "updateStrategy": f"{unset('maxUnavailable')} {policies.UpdateStrategy().max_unavailable}, and "
    f"forceUpdate.maxUnavailable {policies.ForceUpdate().max_unavailable}.",
    "forceUpdate": f"{unset('maxUnavailable')} {policies.ForceUpdate().max_unavailable}.",
    "inPlaceUpdateStrategy": f"{unset('gracePeriodSeconds')} "
    f"{policies.InPlaceUpdateStrategy().grace_period_seconds}.",
    "disruptionBudget": "Unset: no PodDisruptionBudget.",
    "persistentVolumeClaimRetentionPolicy": "Unset: they are retained.",
    "holdTimeoutSeconds": "Unset: no limit.",
    "deletionHoldTimeoutSeconds": "Unset: no limit.",
    "resources": "Unset: pods are replaced, unless they already have these resources.",
}
"""Descriptions of defaults that are empty or have several values."""


@pytest.mark.parametrize(("kind", "node"), MODELS, ids=[kind.__name__ for kind, _ in MODELS])
def test_kubectl_explain_shows_every_default(kind: type[BaseModel], node: Node) -> None:
    """The description of each field with a default in the service ends with this default.

    Only the service knows these defaults; the API server does not apply them.
    """
    for name, field in kind.model_fields.items():
        alias = field.alias or name
        described = node["properties"][alias]
        if described.get("type") == "array" or "additionalProperties" in described:
            continue  # an empty list or map
        if "default" in described or described.get("x-kubernetes-preserve-unknown-fields"):
            continue  # shown by kubectl, or a template
        expected = OWN_WORDS.get(alias) or f"{unset(getattr(kind(), name))}."
        assert described["description"].endswith(expected), alias


def condition_types() -> Iterator[str]:
    """Yields the type of each condition that the code can set, once or several times."""
    for module in (findings, kstatus, refusals, claim_refusals, mistakes):
        for node in ast.walk(ast.parse(Path(module.__file__).read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in MAKERS and node.args:
                made = eval(ast.unparse(node.args[0]), vars(module))
                if isinstance(made, str):
                    yield str(made)


MAKERS = {"Finding", "refused"}


def test_kubectl_explain_names_every_condition_type() -> None:
    known = {*conditions.ALWAYS, *conditions.REFUSED, *conditions.KSTATUS}
    assert known == set(conditions.Type) == set(condition_types())
    schema = STATUS["properties"]["conditions"]
    types = schema["items"]["properties"]["type"]["description"]
    for name in conditions.Type:
        assert name in types
    assert ", ".join(conditions.ALWAYS) in schema["description"]


def test_status_has_exactly_the_documented_fields() -> None:
    assert set(STATUS["properties"]) == {
        "observedGeneration",
        "replicas",
        "readyReplicas",
        "updatedReplicas",
        "currentRevision",
        "updateRevision",
        "kept",
        "availableReplicas",
        "scaleLabelSelector",
        "appStatus",
        "statuses",
        "templates",
        "replacing",
        "ready",
        "failures",
        "outdated",
        "settling",
        "pulling",
        "resizing",
        "turned",
        "unserved",
        "notCreated",
        "notOwned",
        "notExposed",
        "unguarded",
        "progressed",
        "rolledBack",
        "held",
        "conditions",
    }
    template = STATUS["properties"]["templates"]["additionalProperties"]
    assert set(template["properties"]) == {"replicas", "readyReplicas", "updatedReplicas"}
    conditions = STATUS["properties"]["conditions"]
    assert conditions["x-kubernetes-list-map-keys"] == ["type"]


def test_conditions_have_the_fields_of_kubernetes_conditions() -> None:
    """The schema of conditions has the fields of metav1.Condition, because tools need all of
    them.
    """
    conditions = STATUS["properties"]["conditions"]["items"]["properties"]
    assert set(conditions) == {
        "type",
        "status",
        "reason",
        "message",
        "lastTransitionTime",
        "observedGeneration",
    }
    assert conditions["status"]["enum"] == ["True", "False", "Unknown"]


SYNCED = {
    "healthy": {"replicas": 2, "template": with_container(image="a")["template"]},
    "unknown name and unused template": {
        "replicas": 2,
        "template": with_container(image="a")["template"],
        "templates": {"1": "gone"},
        "templatePool": {"idle": with_container(image="b")["template"]},
        "autoDeleteUnusedTemplate": True,
        "forceDeletePod": True,
        "statuses": {"0": "Killed"},
    },
    "invalid budget": {
        "replicas": 1,
        "template": with_container(image="a")["template"],
        "updateStrategy": {"maxUnavailable": "many"},
    },
}


@pytest.mark.parametrize("spec", SYNCED.values(), ids=SYNCED.keys())
def test_written_status_matches_the_schema(spec: Node) -> None:
    """The status that a sync returns has only fields of the schema.

    A field that is pruned would cause a status write at every sync.
    """
    metadata = {"name": "t", "namespace": "n", "uid": "u", "generation": 1}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "t-1",
            "namespace": "n",
            "labels": {"tapp_instance_key": "1", "controller-uid": "u"},
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {"containers": [{"name": "main", "image": "a"}]},
        "status": {"phase": "Running"},
    }
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n", "uid": "nu"}}
    parent = {
        "apiVersion": "apps.tkestack.io/v1",
        "kind": "TApp",
        "metadata": {**metadata, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": spec,
    }
    answer = (
        create_app(Settings())
        .test_client()
        .post(
            "/sync",
            json={
                "controller": {},
                "parent": parent,
                "children": {"Pod.v1": {"n/t-1": pod}, "PersistentVolumeClaim.v1": {}},
                "related": {"Namespace.v1": {"n": namespace}},
                "finalizing": False,
            },
        )
    )
    assert answer.status_code == 200, answer.text
    status = answer.get_json()["status"] | {"observedGeneration": 1}
    errors = jsonschema.Draft202012Validator(as_json_schema(STATUS)).iter_errors(status)
    assert [error.message for error in errors] == []
    assert status["conditions"]


# --- the reference page ---------------------------------------------------------------------------


def test_reference_page_has_every_field_of_spec_and_status() -> None:
    page = set(re.findall(r"(?m)^\| `([^`]+)` \|", reference.render()))
    fields = schema.tapp_schema()["properties"]
    assert set(fields["spec"]["properties"]) | set(fields["status"]["properties"]) <= page
    assert "updateStrategy.forceUpdate.maxUnavailable" in page
    assert "conditions[].lastTransitionTime" in page
