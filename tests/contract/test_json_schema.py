"""Tests the JSON Schema of TApps (crds/tapp.schema.json), which editors and kubeconform read."""

import json
import os
import re
import shutil
import subprocess
from copy import deepcopy
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped] # no stubs among our requirements
import pytest
import yaml

from tapp.words.vocabulary import KIND
from tests.contract.pages import ROOT

SCHEMA = ROOT / "crds" / "tapp.schema.json"
VALIDATOR = jsonschema.Draft7Validator(json.loads(SCHEMA.read_text()))
KUBECONFORM = r"github\.com/yannh/kubeconform/cmd/kubeconform@(v\S+)"
MODELINE = re.compile(r"^# yaml-language-server: \$schema=(\S+)$", re.MULTILINE)

EXAMPLES = sorted((ROOT / "examples").rglob("*.yaml"))
SHIPPED = [*EXAMPLES, ROOT / "gitops/kustomize/tapp.yaml", ROOT / "gitops/rollout/web/tapp.yaml"]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def tapps(path: Path) -> list[Any]:
    return [each for each in yaml.safe_load_all(path.read_text()) if each["kind"] == KIND]


def minimal(**spec: Any) -> dict[str, Any]:
    """Returns a TApp with one container; `spec` are further fields of its spec."""
    pod = {"spec": {"containers": [{"name": "web", "image": "nginx:1.28"}]}}
    return {
        "apiVersion": "apps.tkestack.io/v1",
        "kind": KIND,
        "metadata": {"name": "web"},
        "spec": {"replicas": 3, "template": pod, **deepcopy(spec)},
    }


def paths_of_errors(document: object) -> list[str]:
    return [error.json_path for error in VALIDATOR.iter_errors(document)]


@pytest.mark.parametrize("path", SHIPPED, ids=name_of)
def test_schema_accepts_every_shipped_tapp(path: Path) -> None:
    for document in tapps(path):
        assert paths_of_errors(document) == []


ACCEPTED = {
    "a percentage": {"updateStrategy": {"maxUnavailable": "30%"}},
    "a number for a percentage": {"updateStrategy": {"maxUnavailable": 2}},
    "a null, as kubectl apply sends it to remove a field": {"updateStrategy": None},
    "any label": {"template": {"metadata": {"labels": {"anything": "x"}}}},
    "a null template": {"templatePool": {"canary": None}},
}


@pytest.mark.parametrize("spec", ACCEPTED.values(), ids=ACCEPTED)
def test_schema_accepts(spec: dict[str, Any]) -> None:
    assert paths_of_errors(minimal(**spec)) == []


REFUSED = {
    "a misspelled field of the spec": ({"replicaz": 3}, "$.spec"),
    "a misspelled field of the strategy": (
        {"updateStrategy": {"maxUnavailible": 1}},
        "$.spec.updateStrategy",
    ),
    "a misspelled field of a pod": (
        {"template": {"spec": {"contaniers": []}}},
        "$.spec.template.spec",
    ),
    "a text for a number": ({"replicas": "3"}, "$.spec.replicas"),
    "no label key": ({"updateStrategy": {"domain": "my zone"}}, "$.spec.updateStrategy.domain"),
    "an unknown order": ({"updateStrategy": {"order": "Up"}}, "$.spec.updateStrategy.order"),
}


@pytest.mark.parametrize(("spec", "path"), REFUSED.values(), ids=REFUSED)
def test_schema_refuses(spec: dict[str, Any], path: str) -> None:
    assert paths_of_errors(minimal(**spec)) == [path]


@pytest.mark.parametrize("key", ["apiVersion", "kind"])
def test_schema_refuses_an_object_of_another_kind(key: str) -> None:
    assert paths_of_errors(minimal() | {key: "apps/v1"}) == [f"$.{key}"]


@pytest.mark.parametrize("path", EXAMPLES, ids=name_of)
def test_modeline_of_every_example_names_the_schema(path: Path) -> None:
    """The modeline belongs to one YAML document, so each TApp needs its own."""
    for text in re.split(r"(?m)^---$", path.read_text()):
        if f"\nkind: {KIND}\n" in text:
            named = MODELINE.findall(text)
            assert [Path(os.path.normpath(path.parent / each)) for each in named] == [SCHEMA]


def test_kubeconform_accepts_every_shipped_tapp() -> None:
    if shutil.which("kubeconform") is None:
        pytest.skip("there is no kubeconform: `go install`, as .ci/run does, builds one")
    location = str(SCHEMA.with_name("{{.ResourceKind}}.schema.json"))
    command = ["kubeconform", "-strict", "-ignore-missing-schemas", "-schema-location", location]
    done = subprocess.run(
        [*command, "-output", "json", "-verbose", *map(str, SHIPPED)],
        text=True,
        capture_output=True,
        check=False,
    )
    found = json.loads(done.stdout)["resources"]
    accepted = [each for each in found if each["status"] == "statusValid"]
    assert [each for each in found if each["status"] in {"statusInvalid", "statusError"}] == []
    assert len(accepted) == sum(len(tapps(path)) for path in SHIPPED)


def test_every_pipeline_uses_the_same_version_of_kubeconform() -> None:
    versions = {
        name: re.findall(KUBECONFORM, (ROOT / name).read_text())
        for name in (".ci/run", ".github/workflows/ci.yaml", "docs/editors.md")
    }
    assert len(versions[".ci/run"]) == 1
    assert set(map(tuple, versions.values())) == {tuple(versions[".ci/run"])}
