"""Tests the file of the CRD: valid for the API server, suitable for old TApps, and with complete
texts.

The CEL rules run only in an API server. Here only their form is checked; end-to-end tests check
their effect.
"""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped] # no stubs among our requirements
import kubernetes_validate
import pytest
import yaml
from pydantic import BaseModel

from crds import generate, reference, schema
from crds.kubernetes_schema import KUBERNETES, first_sentence
from hooks.app import create_app
from hooks.service.settings import Settings
from tapp.answer import conditions as findings
from tapp.answer import kstatus, mistakes, refusals
from tapp.declared import model, policies, rules
from tapp.words import conditions, vocabulary
from tapp.words.vocabulary import InstanceStatus

Node = dict[str, Any]

ROOT = Path(__file__).parents[2]
CRD: Node = yaml.load(generate.PATH.read_text(encoding="utf-8"), yaml.CSafeLoader)
VERSION: Node = CRD["spec"]["versions"][0]
OPENAPI: Node = VERSION["schema"]["openAPIV3Schema"]
SPEC: Node = OPENAPI["properties"]["spec"]
STATUS: Node = OPENAPI["properties"]["status"]

CLIENT_SIDE_APPLY_LIMIT = 256 * 1024
"""Bytes that all annotations of an object may have; `kubectl apply` stores the object in one."""


def nodes(node: Node, path: str = "") -> Iterator[tuple[str, Node]]:
    """Yields this node of the schema and all nodes below it, each with its path.

    `path` is the path of this node; "" for the root.
    """
    yield path, node
    for name, child in node.get("properties", {}).items():
        yield from nodes(child, f"{path}.{name}")
    if "additionalProperties" in node:
        yield from nodes(node["additionalProperties"], f"{path}.*")
    if "items" in node:
        yield from nodes(node["items"], f"{path}[]")


ALL_NODES = list(nodes(OPENAPI))


# --- the file -------------------------------------------------------------------------------------


def test_committed_files_are_up_to_date() -> None:
    assert generate.PATH.read_text(encoding="utf-8") == generate.render()
    assert generate.PAGE.read_text(encoding="utf-8") == reference.render()
    assert generate.main(["--check"]) == 0


@pytest.mark.parametrize("path", ["PATH", "PAGE"], ids=["CRD", "reference page"])
def test_check_fails_for_an_outdated_file_and_names_the_command(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stale = tmp_path / "tapp"
    monkeypatch.setattr(generate, path, stale)
    assert generate.main(["--check"]) == 1
    stale.write_text("old", encoding="utf-8")
    assert generate.main(["--check"]) == 1
    assert "python -m crds.generate" in capsys.readouterr().err
    assert generate.main([]) == 0
    assert generate.main(["--check"]) == 0


def test_file_is_a_valid_custom_resource_definition() -> None:
    """Validates the file strictly with Kubernetes' own schema, which also refuses unknown keys."""
    assert kubernetes_validate.validate(CRD, KUBERNETES, strict=True) == KUBERNETES


def test_file_is_small_enough_for_a_client_side_apply() -> None:
    """The file takes less than 90% of the largest annotation.

    `kubectl apply` without --server-side stores a copy of the file in an annotation.
    """
    assert len(json.dumps(CRD, separators=(",", ":"))) < CLIENT_SIDE_APPLY_LIMIT * 0.9


def test_argo_cd_uses_server_side_apply() -> None:
    """The CRD has an annotation that makes Argo CD use server-side apply for it.

    By default, Argo CD uses client-side apply, unlike the commands in the README.
    """
    annotations = CRD["metadata"]["annotations"]
    assert annotations["argocd.argoproj.io/sync-options"] == "ServerSideApply=true"


def test_file_has_no_field_that_the_api_server_drops() -> None:
    """The file does not have `preserveUnknownFields`, which the API server drops.

    Otherwise Argo CD would apply the file repeatedly (docs/migration.md has a patch).
    """
    assert "preserveUnknownFields" not in CRD["spec"]


def test_helm_keeps_the_definition_when_the_chart_is_deleted() -> None:
    """The CRD has Helm's annotation `keep`, because its deletion would delete all TApps and their
    pods.
    """
    assert CRD["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"


# --- printer columns ------------------------------------------------------------------------------


def test_printer_columns_show_existing_fields() -> None:
    """Each column of `kubectl get` shows a field of the schema; the status word needs `-o wide`."""
    columns = VERSION["additionalPrinterColumns"]
    shown = [column["name"] for column in columns if not column.get("priority")]
    assert shown == ["Ready", "Updated", "Available", "Reason", "Age"]
    assert [column["name"] for column in columns if column.get("priority")] == ["Status"]
    for column in columns:
        root, field, *rest = column["jsonPath"].lstrip(".").split(".", maxsplit=2)
        if root != "metadata":
            node = OPENAPI["properties"][root]["properties"][field.partition("[")[0]]
            assert not rest or rest == ['type=="Ready")].reason']
            assert node["type"] == ("array" if rest else column["type"])


# --- structural schema ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "keyword",
    [
        "$ref",
        "$defs",
        "definitions",
        "oneOf",
        "anyOf",
        "allOf",
        "not",
        "patternProperties",
        "uniqueItems",
        "x-kubernetes-embedded-resource",
    ],
)
def test_schema_does_not_use_a_keyword_that_structural_schemas_forbid(keyword: str) -> None:
    assert [path for path, node in ALL_NODES if keyword in node] == []


def test_only_maps_that_server_side_apply_can_empty_are_nullable() -> None:
    """Lists the fields that may be null: maps, because a map whose last entry is removed becomes
    null.

    The API server prunes all other nulls.
    """
    assert [path for path, node in ALL_NODES if "nullable" in node] == [
        ".spec.templatePool",
        ".spec.templates",
        ".spec.values",
        ".spec.defaultValues",
        ".spec.statuses",
    ]


def test_every_node_has_a_type_or_accepts_anything() -> None:
    vague = [
        path
        for path, node in ALL_NODES
        if "type" not in node
        and not node.get("x-kubernetes-int-or-string")
        and not node.get("x-kubernetes-preserve-unknown-fields")
    ]
    assert vague == []


def test_every_type_is_complete() -> None:
    """Each array has the type of its items, and each object has either properties or a type of its
    values.
    """
    for path, node in ALL_NODES:
        kind = node.get("type", "object")
        assert kind in {"object", "array", "string", "integer", "number", "boolean"}, path
        assert ("items" in node) == (node.get("type") == "array"), path
        assert not ("properties" in node and "additionalProperties" in node), path
        assert set(node.get("required", ())) <= set(node.get("properties", ())), path


def test_only_replicas_and_the_observed_generation_have_defaults() -> None:
    """Lists the fields with a default: `spec.replicas`, and `status.observedGeneration`.

    A default in a template would restart pods, and would fix today's meaning. The observed
    generation of -1 shows that no sync has happened yet.
    """
    found = [path for path, node in ALL_NODES if "default" in node]
    assert found == [".spec.replicas", ".status", ".status.observedGeneration"]
    assert SPEC["properties"]["replicas"]["default"] == model.TAppSpec().replicas == 1
    assert STATUS["default"] == {"observedGeneration": -1}
    assert STATUS["properties"]["observedGeneration"]["default"] == -1


def test_keys_of_map_lists_are_required_in_their_items() -> None:
    """The keys of each list of type `map` are required fields; otherwise the API server refuses the
    CRD.
    """
    for path, node in ALL_NODES:
        if node.get("x-kubernetes-list-type") == "map":
            keys = node["x-kubernetes-list-map-keys"]
            assert set(keys) <= set(node["items"]["required"]), path


def test_lists_whose_keys_may_repeat_are_not_map_lists() -> None:
    """Lists the fields that are lists of type `map`.

    Ports may repeat a number and variables a name, so a map list would refuse valid pods.
    """
    keyed = {
        path.rsplit(".", maxsplit=1)[-1]
        for path, node in ALL_NODES
        if node.get("x-kubernetes-list-type") in {"map", "set"}
    }
    assert keyed == {"containers", "initContainers", "volumes", "conditions"}


def test_spec_and_status_prune_unknown_fields() -> None:
    """Only templates, the selector and metadata keep unknown fields, so that typos elsewhere are
    errors.
    """
    open_paths = {
        path for path, node in ALL_NODES if node.get("x-kubernetes-preserve-unknown-fields")
    }
    pods = (".spec.template", ".spec.templatePool.*")
    services = (".spec.serviceTemplate.metadata", ".spec.serviceTemplate.spec")
    roots = (*pods, ".spec.volumeClaimTemplates[]", *services)
    allowed = (*roots, ".spec.selector")
    assert [path for path in open_paths if not path.startswith(allowed)] == []
    assert ".spec.templates" not in open_paths
    for root in roots:
        below = [path for path, node in ALL_NODES if path.startswith(root) and "properties" in node]
        assert set(below) <= open_paths


@pytest.mark.parametrize("template", ["template", "templatePool"])
def test_metadata_of_templates_are_not_pruned(template: str) -> None:
    node = SPEC["properties"][template]
    metadata = node.get("additionalProperties", node)["properties"]["metadata"]
    assert metadata["x-kubernetes-preserve-unknown-fields"] is True
    assert {"labels", "annotations"} <= set(metadata["properties"])


def test_only_spec_template_has_descriptions_of_its_fields() -> None:
    """The fields of `spec.template` have descriptions, and the fields of the pool do not.

    `kubectl explain tapp.spec.template` shows the descriptions; in the pool they would only take
    space.
    """
    template, pool = SPEC["properties"]["template"], SPEC["properties"]["templatePool"]
    assert not any("description" in node for _, node in nodes(pool["additionalProperties"]))
    container = template["properties"]["spec"]["properties"]["containers"]["items"]
    assert container["properties"]["image"]["description"] == "Container image name."
    for path, node in ALL_NODES:
        if not path.startswith(".spec.templatePool.*") and path.startswith(".spec."):
            assert path.endswith(("[]", ".*")) or "metadata" in path or "description" in node, path


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("One. Two.", "One."),
        ("No end", "No end"),
        ("Use e.g. This one. Two.", "Use e.g. This one."),
        ("Lines\nrun on.\n\nMore.", "Lines run on."),
    ],
    ids=["two sentences", "no period", "abbreviation", "two lines"],
)
def test_summary_is_the_first_sentence(text: str, first: str) -> None:
    """A field's description is cut after its first sentence, but not after an abbreviation."""
    assert first_sentence(text) == first


# --- specs of old TApps ---------------------------------------------------------------------------


def as_json_schema(node: Node) -> Node:
    """Returns a node of the schema as a JSON schema, without keywords that only Kubernetes
    knows.
    """
    if node.get("x-kubernetes-int-or-string"):
        return {"type": ["integer", "string"], **{k: node[k] for k in node if k == "pattern"}}
    said = {"type", "enum", "pattern", "minimum", "maximum", "required", "minLength", "maxLength"}
    plain = {key: value for key, value in node.items() if key in said}
    if "properties" in node:
        plain["properties"] = {
            name: as_json_schema(child) for name, child in node["properties"].items()
        }
        if not node.get("x-kubernetes-preserve-unknown-fields") and node is not OPENAPI:
            plain["additionalProperties"] = False
    for key in ("items", "additionalProperties"):
        if key in node:
            plain[key] = as_json_schema(node[key])
    return plain


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


def with_container(**fields: Any) -> Node:
    """Returns a spec whose template has a single container with these fields."""
    return {"template": {"spec": {"containers": [{"name": "main", **fields}]}}}


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


# --- validation rules -----------------------------------------------------------------------------

RULES = [(path, rule) for path, node in ALL_NODES for rule in node.get(rules.KEY, ())]


def test_each_rule_is_at_the_field_that_it_checks() -> None:
    """Lists the paths of all CEL rules.

    The API server skips a rule while the field at its path does not change.
    """
    assert [path for path, _ in RULES] == [
        *[""] * 2,
        *[".spec"] * 4,
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
    for module in (findings, kstatus, refusals, mistakes):
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
