"""Tests the fields of the examples: all are valid and known, and `every-field` has each one."""

import jsonschema  # type: ignore[import-untyped] # no stubs among our requirements

from tests.scenarios.example_steps import EVERY_STEP
from tests.scenarios.life import EXAMPLES, Document, example, manifest

SCHEMA: Document = manifest("crds/tapp.yaml")["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


@EVERY_STEP
def test_every_step_is_valid_and_has_no_unknown_field(step: str) -> None:
    """Validates the TApps of each example, which must have no field that the CRD would prune."""
    for document in example(step):
        if document["kind"] == "TApp":
            VALIDATOR.validate(document)
            assert sorted(unknown_fields(document, SCHEMA)) == []


def unknown_fields(value: object, schema: Document, path: str = "") -> list[str]:
    """Returns the paths of the fields in `value` that the schema does not know; `path` is the path
    of `value`.
    """
    if isinstance(value, list):
        items = schema.get("items", {})
        return [found for item in value for found in unknown_fields(item, items, f"{path}[]")]
    if not isinstance(value, dict) or path == ".metadata":
        return []
    known, rest = schema.get("properties", {}), schema.get("additionalProperties")
    if not known and rest is None:
        return []
    found = []
    for key, item in value.items():
        if key in known or rest is not None:
            found += unknown_fields(item, known.get(key, rest), f"{path}.{key}")
        else:
            found.append(f"{path}.{key}")
    return found


def test_every_field_shows_each_field_of_the_spec() -> None:
    """The example `every-field` has each field of the spec, so that a new field has to be explained
    there.
    """
    (tapp,) = example("every-field")
    text = (EXAMPLES / "every-field.yaml").read_text()
    own = {"selector", "template", "templatePool", "serviceTemplate", "volumeClaimTemplates"}
    missing = [path for path in fields(SCHEMA["properties"]["spec"], own) if not shown(path, tapp)]
    assert missing == ["DefaultTemplateName"]
    assert "# DefaultTemplateName: " in text


def fields(schema: Document, opaque: set[str], path: str = "") -> list[str]:
    """Returns the paths of all fields of a schema.

    Of the fields in `opaque`, only their own paths are returned. `path` is put before each path.
    """
    found = []
    for name, field in schema.get("properties", {}).items():
        found.append(f"{path}{name}")
        if name not in opaque:
            found += fields(field, opaque, f"{path}{name}.")
    return found


def shown(path: str, tapp: Document) -> bool:
    value: object = tapp["spec"]
    for name in path.split("."):
        if not isinstance(value, dict) or name not in value:
            return False
        value = value[name]
    return True
