"""Tests the children of the first sync of each example: they are valid, and equal the recorded
ones.

A golden file lists all children and shows those of the first instance of each template. `pytest
tests/scenarios --update-golden` rewrites them; review the difference.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from kubernetes_validate import utils

from hooks.app import create_app
from hooks.service.settings import Settings
from tests.hook_calls import template_name
from tests.scenarios.life import EXAMPLES, ROOT, Life, example

Document = dict[str, Any]

KUBERNETES = "1.37"
GOLDEN = ROOT / "tests" / "golden"
MOST_LINES = 140
"""Keeps golden files short enough to be reviewed."""

FIRST_STEPS = sorted([*EXAMPLES.glob("*.yaml"), *EXAMPLES.glob("*/1-*.yaml")])


def name_of(path: Path) -> str:
    """Returns the name of an example: that of its file, or of its directory if it has several
    steps.
    """
    return path.stem if path.parent == EXAMPLES else path.parent.name


schema = cache(utils.schema_contents)
"""Reads each schema file only once."""
EVERY_EXAMPLE = pytest.mark.parametrize("path", FIRST_STEPS, ids=name_of)


@cache
def first_sync(path: Path) -> tuple[Document, list[Document]]:
    """Returns the TApp of an example, and the children in the response to its first sync."""
    life = Life(exposing=name_of(path) == "service-each")
    documents = example(str(path.relative_to(EXAMPLES).with_suffix("")))
    life.begin(*[document for document in documents if document["kind"] in ("TApp", "Service")])
    calls = life.world.hook_calls
    life.until(lambda: any(call.hook == "sync" for call in calls))
    return life.tapp, calls[-1].response["children"]


@EVERY_EXAMPLE
def test_first_children_are_valid_kubernetes_objects(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Validates the children of each example's first sync; unknown fields count as errors."""
    monkeypatch.setattr(utils, "schema_contents", schema)
    _, children = first_sync(path)
    assert children
    for child in children:
        kubernetes_validate.validate(child, KUBERNETES, strict=True)


@EVERY_EXAMPLE
def test_first_children_are_as_recorded(path: Path, update_golden: bool) -> None:
    tapp, children = first_sync(path)
    text = yaml.safe_dump(excerpt(tapp, children), sort_keys=False, width=100)
    golden = GOLDEN / f"{name_of(path)}.yaml"
    if update_golden:
        golden.write_text(f"# The first sync of examples/{path.relative_to(EXAMPLES)}.\n{text}")
    assert golden.read_text().partition("\n")[2] == text
    assert text.count("\n") < MOST_LINES


def test_every_golden_file_has_its_example() -> None:
    names = {name_of(path) for path in FIRST_STEPS}
    assert {path.stem for path in GOLDEN.glob("*.yaml")} == names


def excerpt(tapp: Document, children: list[Document]) -> Document:
    """Returns the part of the children that a golden file has.

    The excerpt has the names of all children, the first revision, and the children of each
    template's first instance.
    """
    replicas = tapp["spec"].get("replicas", 1)
    shown: dict[str, int] = {}
    for number in range(replicas):
        shown.setdefault(template_name(tapp["spec"], number), number)
    numbers = {str(number) for number in shown.values()}
    return {
        "names": [f"{child['kind']} {child['metadata']['name']}" for child in children],
        "shown": [
            child
            for child in children
            if child is children[0]
            or (
                child["kind"] != "ControllerRevision"
                and child["metadata"]["labels"]["tapp_instance_key"] in numbers
            )
        ],
    }


@pytest.mark.parametrize("name", ["sync", "plan"])
def test_example_request_for_curl_gets_a_response(name: str) -> None:
    """Sends the example requests, with which the README shows `curl`, to the service."""
    body = (EXAMPLES / "requests" / f"{name}.json").read_bytes()
    client = create_app(Settings(log_level="ERROR"), clock=lambda: 1767225600.0).test_client()
    response = client.post(f"/{name}", data=body, content_type="application/json")
    assert response.status_code == 200, response.data
    answer = json.loads(response.data)
    expected = {"sync": {"status", "children"}, "plan": {"instances", "budget", "claims"}}
    assert expected[name] <= answer.keys()
