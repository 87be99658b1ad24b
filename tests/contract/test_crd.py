"""Tests the file of the CRD: valid for the API server, suitable for old TApps, and with complete
texts.

The CEL rules run only in an API server. Here only their form is checked; end-to-end tests check
their effect.
"""

import json
from pathlib import Path

import kubernetes_validate
import pytest

from crds import generate, reference
from crds.kubernetes_schema import KUBERNETES, first_sentence
from tapp.declared import model
from tests.contract.crd_schema import ALL_NODES, CRD, OPENAPI, SPEC, STATUS, VERSION, nodes

CLIENT_SIDE_APPLY_LIMIT = 256 * 1024
"""Bytes that all annotations of an object may have; `kubectl apply` stores the object in one."""


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
