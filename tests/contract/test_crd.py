"""The CRD file: what the API server demands of it, what old TApps need, what `explain` tells.

The CEL rules run only in an API server; here their shape is checked. What they say about whole
objects is tested where there is one.
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
"""Bytes that all annotations of an object may have; `kubectl apply` puts the object into one."""


def nodes(node: Node, path: str = "") -> Iterator[tuple[str, Node]]:
    """Every schema node below and including this one, with its path."""
    yield path, node
    for name, child in node.get("properties", {}).items():
        yield from nodes(child, f"{path}.{name}")
    if "additionalProperties" in node:
        yield from nodes(node["additionalProperties"], f"{path}.*")
    if "items" in node:
        yield from nodes(node["items"], f"{path}[]")


ALL_NODES = list(nodes(OPENAPI))


# --- the file -------------------------------------------------------------------------------------


def test_committed_file_is_what_the_generator_writes() -> None:
    """The CRD in the repository was not edited by hand and not forgotten."""
    assert generate.PATH.read_text(encoding="utf-8") == generate.render()
    assert generate.PAGE.read_text(encoding="utf-8") == reference.render()
    assert generate.main(["--check"]) == 0


@pytest.mark.parametrize("which", ["PATH", "PAGE"])
def test_check_fails_with_what_to_do(
    which: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An outdated file fails the check, and the message names the command."""
    stale = tmp_path / "tapp"
    monkeypatch.setattr(generate, which, stale)
    assert generate.main(["--check"]) == 1
    stale.write_text("old", encoding="utf-8")
    assert generate.main(["--check"]) == 1
    assert "python -m crds.generate" in capsys.readouterr().err
    assert generate.main([]) == 0
    assert generate.main(["--check"]) == 0


def test_is_a_valid_custom_resource_definition() -> None:
    """Kubernetes' own schema of a CustomResourceDefinition accepts it, unknown keys refused."""
    assert kubernetes_validate.validate(CRD, KUBERNETES, strict=True) == KUBERNETES


def test_fits_a_client_side_apply() -> None:
    """`kubectl apply` without --server-side works: the file fits its annotation."""
    assert len(json.dumps(CRD, separators=(",", ":"))) < CLIENT_SIDE_APPLY_LIMIT * 0.9


def test_argo_cd_applies_it_on_the_server() -> None:
    """As the README does: on its own Argo CD would apply on the client."""
    annotations = CRD["metadata"]["annotations"]
    assert annotations["argocd.argoproj.io/sync-options"] == "ServerSideApply=true"


def test_names_no_field_that_is_not_stored() -> None:
    """Argo CD would apply it again and again; docs/migration.md has a patch for old definitions."""
    assert "preserveUnknownFields" not in CRD["spec"]


def test_a_chart_that_goes_leaves_it() -> None:
    """With the definition all TApps would go, and their pods."""
    assert CRD["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"


# --- how people reach it --------------------------------------------------------------------------


def test_printer_columns_show_trouble_and_fields_that_exist() -> None:
    """Ready of how many, and why not; the word for the whole app only with -o wide."""
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
def test_keyword_is_not_used(keyword: str) -> None:
    """Nothing that a structural schema forbids."""
    assert [path for path, node in ALL_NODES if keyword in node] == []


def test_null_lives_only_where_server_side_apply_leaves_it() -> None:
    """A map whose last entry goes becomes null there; anything else that is null is pruned."""
    assert [path for path, node in ALL_NODES if "nullable" in node] == [
        ".spec.templatePool",
        ".spec.templates",
        ".spec.values",
        ".spec.defaultValues",
        ".spec.statuses",
    ]


def test_every_node_says_what_it_is() -> None:
    """Each node has a type, or is int-or-string, or takes anything."""
    vague = [
        path
        for path, node in ALL_NODES
        if "type" not in node
        and not node.get("x-kubernetes-int-or-string")
        and not node.get("x-kubernetes-preserve-unknown-fields")
    ]
    assert vague == []


def test_types_are_single_and_complete() -> None:
    """One type each; arrays say what is in them; an object has properties or a value type."""
    for path, node in ALL_NODES:
        kind = node.get("type", "object")
        assert kind in {"object", "array", "string", "integer", "number", "boolean"}, path
        assert ("items" in node) == (node.get("type") == "array"), path
        assert not ("properties" in node and "additionalProperties" in node), path
        assert set(node.get("required", ())) <= set(node.get("properties", ())), path


def test_only_replicas_has_a_default() -> None:
    """A default would write into templates (and restart pods) or pin today's meaning.

    And the status says that nobody has answered yet, also the old controller's.
    """
    found = [path for path, node in ALL_NODES if "default" in node]
    assert found == [".spec.replicas", ".status", ".status.observedGeneration"]
    assert SPEC["properties"]["replicas"]["default"] == model.TAppSpec().replicas == 1
    assert STATUS["default"] == {"observedGeneration": -1}
    assert STATUS["properties"]["observedGeneration"]["default"] == -1


def test_merge_keys_are_required_in_their_items() -> None:
    """The API server refuses a list of type `map` whose keys may be missing."""
    for path, node in ALL_NODES:
        if node.get("x-kubernetes-list-type") == "map":
            keys = node["x-kubernetes-list-map-keys"]
            assert set(keys) <= set(node["items"]["required"]), path


def test_lists_that_may_repeat_a_key_stay_plain() -> None:
    """Ports may repeat a number, env a name: a keyed list would refuse what pods accept."""
    keyed = {
        path.rsplit(".", maxsplit=1)[-1]
        for path, node in ALL_NODES
        if node.get("x-kubernetes-list-type") in {"map", "set"}
    }
    assert keyed == {"containers", "initContainers", "volumes", "conditions"}


def test_status_and_spec_prune_what_they_do_not_know() -> None:
    """Only templates, selector and metadata keep unknown fields: a typo elsewhere is an error."""
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
def test_template_metadata_is_kept(template: str) -> None:
    """Labels and annotations of a template have a schema; without one they would be pruned."""
    node = SPEC["properties"][template]
    metadata = node.get("additionalProperties", node)["properties"]["metadata"]
    assert metadata["x-kubernetes-preserve-unknown-fields"] is True
    assert {"labels", "annotations"} <= set(metadata["properties"])


def test_the_pool_has_no_texts_and_the_template_has() -> None:
    """`kubectl explain tapp.spec.template...` works; the pool's copy would only cost space."""
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
)
def test_summary_is_the_first_sentence(text: str, first: str) -> None:
    """Texts are cut after a sentence, not after an abbreviation."""
    assert first_sentence(text) == first


# --- what old TApps hold --------------------------------------------------------------------------


def as_json_schema(node: Node) -> Node:
    """The schema for a JSON schema validator, as far as it has words for it."""
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
    """The value as the API server validates it: null fields of objects are pruned before."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


VALIDATOR = jsonschema.Draft202012Validator(as_json_schema(OPENAPI))


def problems(spec: Node) -> list[str]:
    """Where the schema refuses a TApp with this spec."""
    document = {"apiVersion": "apps.tkestack.io/v1", "kind": "TApp", "spec": without_nulls(spec)}
    return [error.json_path for error in VALIDATOR.iter_errors(document)]


def with_volume(**source: Any) -> Node:
    return {"template": {"spec": {"volumes": [{"name": "v", **source}]}}}


def with_container(**fields: Any) -> Node:
    """A spec whose one container has these fields."""
    return {"template": {"spec": {"containers": [{"name": "main", **fields}]}}}


ACCEPTED = {
    "a number as a quantity": with_container(resources={"limits": {"cpu": 0.5, "memory": "1Gi"}}),
    "one port on TCP and UDP": with_container(
        ports=[{"containerPort": 53, "protocol": "TCP"}, {"containerPort": 53, "protocol": "UDP"}]
    ),
    "a named port in a probe": with_container(livenessProbe={"httpGet": {"port": "http"}}),
    "a header without a value": with_container(
        livenessProbe={"httpGet": {"port": 80, "httpHeaders": [{"name": "X"}]}}
    ),
    "values, and placeholders for texts, numbers and quantities": {
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
    "a field newer than the schema": with_container(fieldOfTheFuture={"a": [1]}),
    "what the old controller wrote for an empty template": {
        "template": {
            "metadata": {"creationTimestamp": None, "labels": {"a": "b"}},
            "spec": {"containers": None},
        }
    },
    "what the old controller wrote for defaults": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "a"}},
        "defaultTemplateName": "default",
        "updateStrategy": {
            "template": "default",
            "maxUnavailable": 1,
            "forceUpdate": {"maxUnavailable": "100%"},
        },
    },
    "a claim template as the old controller wrote it": {
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
    "both spellings of the default template's name": {
        "defaultTemplateName": "a",
        "DefaultTemplateName": "b",
    },
    "a template that is null": {"templatePool": {"a": None}},
    "an image as a volume": with_volume(image={"reference": "models:1", "pullPolicy": "Always"}),
    "a responder of evictions": {
        "template": {"spec": {"evictionResponders": [{"name": "a.b/c", "priority": 0}]}}
    },
}

REFUSED = {
    "a word as a port": (
        with_container(ports=[{"containerPort": "eighty"}]),
        "$.spec.template.spec.containers[0].ports[0].containerPort",
    ),
    "a placeholder that is no number's": (
        with_container(ports=[{"containerPort": 80, "hostPort": "$(tapp.name)"}]),
        "$.spec.template.spec.containers[0].ports[0].hostPort",
    ),
    "a placeholder and more as a number": (
        with_container(ports=[{"containerPort": 80, "hostPort": "70$(tapp.index)"}]),
        "$.spec.template.spec.containers[0].ports[0].hostPort",
    ),
    "a placeholder in a field that takes no text": (
        {"template": {"spec": {"priority": "$(tapp.index)"}}},
        "$.spec.template.spec.priority",
    ),
    "a placeholder in a quantity that is none": (
        with_container(resources={"limits": {"memory": "$(tapp.value.memory)"}}),
        "$.spec.template.spec.containers[0].resources.limits.memory",
    ),
    "a value that is no text": ({"values": {"0": {"port": 7003}}}, "$.spec.values['0'].port"),
    "a value of 1 MB": ({"defaultValues": {"a": "x" * (1 << 20)}}, "$.spec.defaultValues.a"),
    "a value with a NUL": ({"values": {"0": {"a": "x\0"}}}, "$.spec.values['0'].a"),
    "a mistyped unit": (
        with_container(resources={"limits": {"memory": "1GB"}}),
        "$.spec.template.spec.containers[0].resources.limits.memory",
    ),
    "a number as an environment value": (
        with_container(env=[{"name": "A", "value": 1}]),
        "$.spec.template.spec.containers[0].env[0].value",
    ),
    "a label that is a number": (
        {"template": {"metadata": {"labels": {"a": 1}}}},
        "$.spec.template.metadata.labels.a",
    ),
    "a wrong type in the pool": (
        {"templatePool": {"a": {"spec": {"containers": {}}}}},
        "$.spec.templatePool.a.spec.containers",
    ),
    "a negative number of replicas": ({"replicas": -1}, "$.spec.replicas"),
    "negative minReadySeconds": ({"minReadySeconds": -1}, "$.spec.minReadySeconds"),
    "an unknown retention": (
        {"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Keep"}},
        "$.spec.persistentVolumeClaimRetentionPolicy.whenScaled",
    ),
    "an unknown field": ({"replica": 1}, "$.spec"),
    "an image volume of no image": (
        with_volume(image={"pullPolicy": "Always"}),
        "$.spec.template.spec.volumes[0].image",
    ),
    "an image volume of an empty image": (
        with_volume(image={"reference": ""}),
        "$.spec.template.spec.volumes[0].image.reference",
    ),
}


@pytest.mark.parametrize("spec", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_schema_accepts(spec: Node) -> None:
    """What ran under the old controller, or runs as a pod, is not refused."""
    assert problems(spec) == []


@pytest.mark.parametrize(("spec", "path"), REFUSED.values(), ids=REFUSED.keys())
def test_schema_refuses(spec: Node, path: str) -> None:
    """A mistake is refused at the field that holds it."""
    assert problems(spec) == [path]


EXAMPLES = sorted((ROOT / "examples").rglob("*.yaml"))


@pytest.mark.parametrize("file", EXAMPLES, ids=[file.stem for file in EXAMPLES])
def test_examples_fit_the_schema(file: Path) -> None:
    """Every TApp among the examples passes, without a field that would be pruned."""
    for document in yaml.load_all(file.read_text(encoding="utf-8"), yaml.CSafeLoader):
        if document and document.get("kind") == "TApp":
            assert problems(document["spec"]) == []


# --- rules ----------------------------------------------------------------------------------------

RULES = [(path, rule) for path, node in ALL_NODES for rule in node.get(rules.KEY, ())]


def test_rules_are_where_they_belong() -> None:
    """A rule about one field sits on it: then it is skipped while the field stays as it is."""
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
        *[".spec.volumeClaimTemplates"] * 2,
        ".spec.serviceName",
        ".spec.serviceTemplate.spec",
    ]


def test_rules_over_several_fields_never_lock_a_running_tapp_in() -> None:
    """They compare with the old object, and hold on creation all the same."""
    for path, rule in RULES:
        if path in {"", ".spec", ".spec.templatePool.*", ".spec.templates", ".spec.statuses"}:
            assert "oldSelf.hasValue()" in rule["rule"]
        assert rule.get("optionalOldSelf", False) == ("oldSelf" in rule["rule"])
        # In these the API server does not offer `oldSelf`.
        assert "oldSelf" not in rule.get("messageExpression", "")


def test_rules_speak_to_people() -> None:
    """Each rule has a message, and one about several fields names the field to look at."""
    for path, rule in RULES:
        assert len(rule["message"]) > 30
        assert "\n" not in rule["message"]
        assert ("fieldPath" in rule) == (path in {"", ".spec"})


def test_the_only_wanted_status_is_the_one_that_is_read() -> None:
    """A typo such as `killed` would be ignored, and the status would say that all is as asked."""
    (rule,) = [rule for path, rule in RULES if path == ".spec.statuses.*"]
    assert rule["rule"] == f"self == '{InstanceStatus.KILLED}'"
    assert f'"{InstanceStatus.KILLED}"' in rule["message"]


def test_blamed_fields_exist() -> None:
    """`fieldPath` leads to a field of the schema."""
    paths = {path for path, _ in ALL_NODES}
    assert {path + rule["fieldPath"] for path, rule in RULES if "fieldPath" in rule} <= paths


# --- texts and the status -------------------------------------------------------------------------

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
    """A default in the words of the schema."""
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
    "persistentVolumeClaimRetentionPolicy": "Unset: they are retained.",
    "holdTimeoutSeconds": "Unset: no limit.",
    "deletionHoldTimeoutSeconds": "Unset: no limit.",
    "resources": "Unset: pods are replaced, unless they already have these resources.",
}
"""Where no value is to be shown: an empty name, or several values."""


@pytest.mark.parametrize(("kind", "node"), MODELS, ids=[kind.__name__ for kind, _ in MODELS])
def test_explain_gives_every_default(kind: type[BaseModel], node: Node) -> None:
    """`kubectl explain` tells the defaults that only the hook knows, as the model has them."""
    for name, field in kind.model_fields.items():
        alias = field.alias or name
        described = node["properties"][alias]
        if described.get("type") == "array" or "additionalProperties" in described:
            continue  # unset, it lists nothing
        if "default" in described or described.get("x-kubernetes-preserve-unknown-fields"):
            continue  # shown by itself; or a template, or without effect
        expected = OWN_WORDS.get(alias) or f"{unset(getattr(kind(), name))}."
        assert described["description"].endswith(expected), alias


def condition_types() -> Iterator[str]:
    """The type of every condition that the code can make."""
    for module in (findings, kstatus, refusals, mistakes):
        for node in ast.walk(ast.parse(Path(module.__file__).read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in MAKERS and node.args:
                made = eval(ast.unparse(node.args[0]), vars(module))
                if isinstance(made, str):
                    yield str(made)


MAKERS = {"Finding", "refused"}


def test_explain_names_every_type_of_condition() -> None:
    """The code's list is what it makes, and both texts give all of it."""
    known = {*conditions.ALWAYS, *conditions.REFUSED, *conditions.KSTATUS}
    assert known == set(conditions.Type) == set(condition_types())
    schema = STATUS["properties"]["conditions"]
    types = schema["items"]["properties"]["type"]["description"]
    for name in conditions.Type:
        assert name in types
    assert ", ".join(conditions.ALWAYS) in schema["description"]


def test_status_has_every_field_of_the_design() -> None:
    """Nothing that the design promises is missing, and nothing else is there."""
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
        "progressed",
        "held",
        "conditions",
    }
    template = STATUS["properties"]["templates"]["additionalProperties"]
    assert set(template["properties"]) == {"replicas", "readyReplicas", "updatedReplicas"}
    conditions = STATUS["properties"]["conditions"]
    assert conditions["x-kubernetes-list-map-keys"] == ["type"]


def test_conditions_can_hold_what_kubernetes_condition_holds() -> None:
    """Tools that read metav1.Condition find all of its fields."""
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
    "a dangling name and an unused template": {
        "replicas": 2,
        "template": with_container(image="a")["template"],
        "templates": {"1": "gone"},
        "templatePool": {"idle": with_container(image="b")["template"]},
        "autoDeleteUnusedTemplate": True,
        "forceDeletePod": True,
        "statuses": {"0": "Killed"},
    },
    "a budget that is none": {
        "replicas": 1,
        "template": with_container(image="a")["template"],
        "updateStrategy": {"maxUnavailable": "many"},
    },
}


@pytest.mark.parametrize("spec", SYNCED.values(), ids=SYNCED.keys())
def test_status_as_written_survives_the_schema(spec: Node) -> None:
    """A pruned or refused field would mean a status write at every sync."""
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


# --- the page -------------------------------------------------------------------------------------


def test_the_reference_page_names_every_field_of_spec_and_status() -> None:
    page = set(re.findall(r"(?m)^\| `([^`]+)` \|", reference.render()))
    fields = schema.tapp_schema()["properties"]
    assert set(fields["spec"]["properties"]) | set(fields["status"]["properties"]) <= page
    assert "updateStrategy.forceUpdate.maxUnavailable" in page
    assert "conditions[].lastTransitionTime" in page
