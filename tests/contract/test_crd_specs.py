"""Tests which specs the CRD accepts and refuses, by its schema and by the form of its CEL rules."""

from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped] # no stubs among our requirements
import pytest
import yaml

from tapp.declared import rules
from tapp.words.vocabulary import InstanceStatus
from tests.contract.crd_schema import ALL_NODES, OPENAPI, Node, as_json_schema, with_container

ROOT = Path(__file__).parents[2]


def without_nulls(value: Any) -> Any:
    """Returns the value as the API server validates it: without null fields of objects."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


VALIDATOR = jsonschema.Draft202012Validator(as_json_schema(OPENAPI))


def problems(spec: Node) -> list[str]:
    """Returns the JSON paths at which the schema refuses a TApp with this spec; empty if it is
    accepted.
    """
    document = {"apiVersion": "apps.tkestack.io/v1", "kind": "TApp", "spec": without_nulls(spec)}
    return [error.json_path for error in VALIDATOR.iter_errors(document)]


def with_volume(**source: Any) -> Node:
    return {"template": {"spec": {"volumes": [{"name": "v", **source}]}}}


ACCEPTED = {
    "number as a quantity": with_container(resources={"limits": {"cpu": 0.5, "memory": "1Gi"}}),
    "one port on TCP and UDP": with_container(
        ports=[{"containerPort": 53, "protocol": "TCP"}, {"containerPort": 53, "protocol": "UDP"}]
    ),
    "named port in a probe": with_container(livenessProbe={"httpGet": {"port": "http"}}),
    "header without a value": with_container(
        livenessProbe={"httpGet": {"port": 80, "httpHeaders": [{"name": "X"}]}}
    ),
    "values and placeholders": {
        **with_container(
            image="web:$(tapp.values.tag)",
            ports=[{"containerPort": "$(tapp.values.port)", "hostPort": "$(tapp.index)"}],
            securityContext={"runAsUser": "$(tapp.values.user)"},
            readinessProbe={"grpc": {"port": "$(tapp.values.port)"}},
            resources={"limits": {"memory": "$(tapp.values.memory)Gi"}},
        ),
        "values": {"3": {"port": "7003", "tag": "a b\n"}},
        "defaultValues": {"port": "7000", "tag": ""},
    },
    "field newer than the schema": with_container(fieldOfTheFuture={"a": [1]}),
    "empty template of the old controller": {
        "template": {
            "metadata": {"creationTimestamp": None, "labels": {"a": "b"}},
            "spec": {"containers": None},
        }
    },
    "defaults of the old controller": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "a"}},
        "defaultTemplateName": "default",
        "updateStrategy": {
            "template": "default",
            "maxUnavailable": 1,
            "forceUpdate": {"maxUnavailable": "100%"},
        },
    },
    "claim template of the old controller": {
        "volumeClaimTemplates": [
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": "data", "creationTimestamp": None},
                "spec": {"resources": {"requests": {"storage": "1Gi"}}},
                "status": {"phase": "Pending"},
            }
        ]
    },
    "both field names of the default template": {
        "defaultTemplateName": "a",
        "DefaultTemplateName": "b",
    },
    "null template": {"templatePool": {"a": None}},
    "image volume": with_volume(image={"reference": "models:1", "pullPolicy": "Always"}),
    "eviction responder": {
        "template": {"spec": {"evictionResponders": [{"name": "a.b/c", "priority": 0}]}}
    },
}

REFUSED = {
    "word as a port": (
        with_container(ports=[{"containerPort": "eighty"}]),
        "$.spec.template.spec.containers[0].ports[0].containerPort",
    ),
    "name placeholder as a port": (
        with_container(ports=[{"containerPort": 80, "hostPort": "$(tapp.name)"}]),
        "$.spec.template.spec.containers[0].ports[0].hostPort",
    ),
    "placeholder with text as a port": (
        with_container(ports=[{"containerPort": 80, "hostPort": "70$(tapp.index)"}]),
        "$.spec.template.spec.containers[0].ports[0].hostPort",
    ),
    "placeholder in a numeric field": (
        {"template": {"spec": {"priority": "$(tapp.index)"}}},
        "$.spec.template.spec.priority",
    ),
    "invalid placeholder in a quantity": (
        with_container(resources={"limits": {"memory": "$(tapp.value.memory)"}}),
        "$.spec.template.spec.containers[0].resources.limits.memory",
    ),
    "value is a number": ({"values": {"0": {"port": 7003}}}, "$.spec.values['0'].port"),
    "value of 1 MB": ({"defaultValues": {"a": "x" * (1 << 20)}}, "$.spec.defaultValues.a"),
    "value with a NUL": ({"values": {"0": {"a": "x\0"}}}, "$.spec.values['0'].a"),
    "invalid unit": (
        with_container(resources={"limits": {"memory": "1GB"}}),
        "$.spec.template.spec.containers[0].resources.limits.memory",
    ),
    "number as an environment value": (
        with_container(env=[{"name": "A", "value": 1}]),
        "$.spec.template.spec.containers[0].env[0].value",
    ),
    "number as a label": (
        {"template": {"metadata": {"labels": {"a": 1}}}},
        "$.spec.template.metadata.labels.a",
    ),
    "wrong type in the pool": (
        {"templatePool": {"a": {"spec": {"containers": {}}}}},
        "$.spec.templatePool.a.spec.containers",
    ),
    "negative replicas": ({"replicas": -1}, "$.spec.replicas"),
    "negative minReadySeconds": ({"minReadySeconds": -1}, "$.spec.minReadySeconds"),
    "unknown retention policy": (
        {"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Keep"}},
        "$.spec.persistentVolumeClaimRetentionPolicy.whenScaled",
    ),
    "unknown field": ({"replica": 1}, "$.spec"),
    "image volume without a reference": (
        with_volume(image={"pullPolicy": "Always"}),
        "$.spec.template.spec.volumes[0].image",
    ),
    "image volume with an empty reference": (
        with_volume(image={"reference": ""}),
        "$.spec.template.spec.volumes[0].image.reference",
    ),
}


@pytest.mark.parametrize("spec", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_schema_accepts_valid_and_old_specs(spec: Node) -> None:
    """The schema accepts specs that ran under the old controller, and fields of valid pods."""
    assert problems(spec) == []


@pytest.mark.parametrize(("spec", "path"), REFUSED.values(), ids=REFUSED.keys())
def test_schema_refuses_a_mistake_at_its_field(spec: Node, path: str) -> None:
    assert problems(spec) == [path]


EXAMPLES = sorted((ROOT / "examples").rglob("*.yaml"))


@pytest.mark.parametrize("file", EXAMPLES, ids=[file.stem for file in EXAMPLES])
def test_examples_match_the_schema(file: Path) -> None:
    """The schema accepts each example without pruning any field."""
    for document in yaml.load_all(file.read_text(encoding="utf-8"), yaml.CSafeLoader):
        if document and document.get("kind") == "TApp":
            assert problems(document["spec"]) == []


RULES = [(path, rule) for path, node in ALL_NODES for rule in node.get(rules.KEY, ())]


def test_each_rule_is_at_the_field_that_it_checks() -> None:
    """Lists the paths of all CEL rules.

    The API server skips a rule while the field at its path does not change.
    """
    assert [path for path, _ in RULES] == [
        *[""] * 2,
        *[".spec"] * 5,
        ".spec.templatePool.*",
        ".spec.templates",
        ".spec.values",
        ".spec.defaultValues",
        ".spec.statuses",
        ".spec.statuses.*",
        ".spec.updateStrategy.maxUnavailable",
        ".spec.updateStrategy.partition",
        ".spec.updateStrategy.forceUpdate.maxUnavailable",
        ".spec.disruptionBudget.maxUnavailable",
        *[".spec.volumeClaimTemplates"] * 2,
        ".spec.serviceName",
        ".spec.serviceTemplate.spec",
    ]


def test_rules_about_several_fields_compare_with_the_old_object() -> None:
    """Rules above a single field accept a violation that the old object already has.

    Otherwise an invalid TApp could not be edited at all. The rules apply to creations, too.
    """
    for path, rule in RULES:
        if path in {"", ".spec", ".spec.templatePool.*", ".spec.templates", ".spec.statuses"}:
            assert "oldSelf.hasValue()" in rule["rule"]
        assert rule.get("optionalOldSelf", False) == ("oldSelf" in rule["rule"])
        # The API server does not provide `oldSelf` in message expressions.
        assert "oldSelf" not in rule.get("messageExpression", "")


def test_each_rule_has_a_message_and_names_its_field() -> None:
    for path, rule in RULES:
        assert len(rule["message"]) > 30
        assert "\n" not in rule["message"]
        assert ("fieldPath" in rule) == (path in {"", ".spec"})


def test_only_the_status_killed_is_accepted_in_statuses() -> None:
    """The rule for `spec.statuses` accepts `Killed` only, because the service would ignore a
    typo.
    """
    (rule,) = [rule for path, rule in RULES if path == ".spec.statuses.*"]
    assert rule["rule"] == f"self == '{InstanceStatus.KILLED}'"
    assert f'"{InstanceStatus.KILLED}"' in rule["message"]


def test_field_paths_of_rules_exist() -> None:
    paths = {path for path, _ in ALL_NODES}
    assert {path + rule["fieldPath"] for path, rule in RULES if "fieldPath" in rule} <= paths
