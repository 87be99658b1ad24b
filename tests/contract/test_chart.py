"""Tests that the chart renders the same objects as kustomize, with any components."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from release.kustomize import INSTALL, ROOT, build, components, composed
from tests.contract.charts import IMAGE, Document, camel, helm, rendered, tools, unpacked
from tests.sizes import FULL

INSTALLING = ROOT / "docs" / "install.md"
NAMES = components()
LOCKS = ("bearer-token", "pod-status", "tls-cert-manager")
TABLE = [(), *[(name,) for name in NAMES], LOCKS, ("hpa-hook", "tls-cert-manager"), tuple(NAMES)]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yields the directory of the chart."""
    with tools():
        yield unpacked(tmp_path_factory.mktemp("chart"))


@pytest.fixture(scope="module")
def stub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yields the directory of the chart, in which the CRD has no schema."""
    with tools():
        yield unpacked(tmp_path_factory.mktemp("stub"), stub=True)


OF_ONE = (
    "helm.sh/resource-policy",
    "app.kubernetes.io/part-of",
    "tapp-hooks-account",
    "apps.tkestack.io/token",
    "apps.tkestack.io/tls",
)
"""Keys that only the chart or only the manifests have."""


def comparable(value: Any) -> Any:
    """Returns a value in a form in which the chart's and kustomize's objects can be compared.

    Lists of named items are sorted, because their order has no meaning, and keys that only one tool
    has are removed.
    """
    if isinstance(value, dict):
        return {key: comparable(each) for key, each in value.items() if key not in OF_ONE}
    if isinstance(value, list):
        items = [comparable(each) for each in value]
        named = all(isinstance(each, dict) and "name" in each for each in items)
        return sorted(items, key=lambda each: str(each["name"])) if named else items
    return value


def by_key(documents: list[Document]) -> dict[tuple[str, ...], Any]:
    """Returns (kind, namespace, name) -> object, in the comparable form, without Namespaces and
    Helm hooks.
    """
    found = {}
    for each in documents:
        if each["kind"] == "Namespace" or "helm.sh/hook" in json.dumps(each["metadata"]):
            continue
        document = comparable(each)
        meta = document["metadata"]
        for key in ("annotations", "labels"):
            if meta.get(key) == {}:
                del meta[key]
        for rules in ("ingress", "egress"):
            once = document.get("spec", {}).get(rules) if each["kind"] == "NetworkPolicy" else None
            if once:
                document["spec"][rules] = [
                    item for place, item in enumerate(once) if item not in once[:place]
                ]
        found[each["kind"], meta.get("namespace", ""), meta["name"]] = document
    return found


@pytest.mark.parametrize("names", TABLE, ids=lambda names: "+".join(names) or "base")
def test_chart_renders_the_same_objects_as_kustomize(
    directory: Path, stub: Path, names: tuple[str, ...]
) -> None:
    """Compares all objects for each combination of components, except the Namespace, which Helm
    creates.

    The CRD is compared without components and with all; `make full` compares it with each.
    """
    whole = FULL or names in ((), tuple(NAMES))
    values = [f"components.{camel(name)}=true" for name in names]
    found = by_key(rendered(directory if whole else stub, *values))
    wanted = by_key(composed(names, IMAGE, stub=not whole))
    assert sorted(found) == sorted(wanted)
    for key, document in wanted.items():
        assert found[key] == document, key


def test_value_for_kube_state_metrics_renders_the_same_objects_as_the_component(stub: Path) -> None:
    """Compares the objects of kube-state-metrics in the chart with those of the kustomize
    component.

    Its account may only list and watch TApps and CRDs. The alerts about TApps need its metrics.
    """
    values = ("components.monitoring=true", "monitoring.kubeStateMetrics.enabled=true")
    found = by_key(rendered(stub, *values))
    wanted = by_key(composed(("monitoring", "monitoring/kube-state-metrics"), IMAGE, stub=True))
    assert sorted(found) == sorted(wanted)
    for key, document in wanted.items():
        assert found[key] == document, key
    rules = wanted["ClusterRole", "", "tapp-state-metrics"]["rules"]
    assert [(rule["resources"], rule["verbs"]) for rule in rules] == [
        (["tapps"], ["list", "watch"]),
        (["customresourcedefinitions"], ["list", "watch"]),
    ]


def test_image_of_kube_state_metrics_can_be_set(stub: Path) -> None:
    values = ("components.monitoring=true", "monitoring.kubeStateMetrics.enabled=true")
    image = "mirror.example.com/ksm:v2.20.0"
    found = by_key(
        rendered(stub, *values, f"monitoring.kubeStateMetrics.image={json.dumps(image)}")
    )
    deployment = found["Deployment", "tapp-system", "tapp-state-metrics"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"] == image


@pytest.mark.parametrize(
    "names", [(), ("pod-status", "tls-cert-manager")], ids=["base", "components"]
)
def test_patches_in_the_documentation_equal_the_values_next_to_them(
    directory: Path, names: tuple[str, ...], tmp_path: Path
) -> None:
    """Renders the values and the patches that docs/install.md prints, and compares the objects."""
    page = INSTALLING.read_text().split("## Values and patches")[1]
    values, kustomization = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)[:2]
    (tmp_path / "values.yaml").write_text(values)
    patched = yaml.safe_load(kustomization)
    patched["components"] = [f"metacontroller/components/{name}" for name in names]
    shutil.copytree(INSTALL, tmp_path / "metacontroller")
    (tmp_path / "install.yaml").write_text(
        yaml.dump_all(composed((), IMAGE), Dumper=yaml.CSafeDumper)
    )
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(patched))
    on = [f"components.{camel(name)}=true" for name in names]
    file = ("--values", tmp_path / "values.yaml")
    assert by_key(rendered(directory, *on, flags=file)) == by_key(build(tmp_path))


def test_helm_lint_succeeds(directory: Path) -> None:
    done = helm("lint", "--strict", directory)
    assert done.returncode == 0, done.stdout


def test_values_and_schema_have_every_component(directory: Path) -> None:
    values = yaml.safe_load((directory / "values.yaml").read_text())
    schema = json.loads((directory / "values.schema.json").read_text())
    assert [*values["components"]] == [camel(name) for name in NAMES]
    assert {*schema["properties"]["components"]["properties"]} == {*values["components"]}
    assert {*schema["properties"]} - {"global", "enabled"} == {*values}


def test_every_value_has_a_comment_in_helm_show_values(directory: Path) -> None:
    lines = helm("show", "values", directory).stdout.splitlines()
    for name in yaml.safe_load("\n".join(lines)):
        (place,) = [number for number, line in enumerate(lines) if line.startswith(f"{name}:")]
        assert lines[place - 1].startswith("# ")
    inner = [line for line in lines if re.match(r"  (# )?[A-Z]+_\w+:|  (?!allow)\w+: false", line)]
    assert len(inner) == len(NAMES) + 17
    for line in inner:
        assert re.match(r"  # (?!\w+:)", lines[lines.index(line) - 1])
