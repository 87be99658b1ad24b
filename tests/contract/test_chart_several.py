"""Tests several Metacontrollers with the chart: replicas with leader election, and shards."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from release.kustomize import INSTALL
from tapp.words.vocabulary import SHARD
from tests.contract.charts import Document, controller_arguments, only, templated, tools, unpacked
from tests.contract.charts import installed as rendered

ENABLED, SHARDS = "metacontroller.enabled=true", "components.shards=true"
LOCKS = ("components.bearerToken=true", "components.tlsCertManager=true")
LEASES = INSTALL / "overlays" / "high-availability" / "leases.yaml"


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yields the directory of the chart, in which the CRD has no schema, because no value changes
    the CRD.
    """
    with tools():
        yield unpacked(tmp_path_factory.mktemp("chart"), stub=True)


def arguments(*more: str) -> str:
    """Returns the value of the chart that adds the arguments `more` to Metacontroller's command
    line.
    """
    return f"metacontroller.commandArgs={json.dumps([*controller_arguments(), *more])}"


def arguments_of(made: list[Document], name: str) -> list[str]:
    """Returns the command line arguments of the Metacontroller with this name."""
    (container,) = only(made, "StatefulSet", name)["spec"]["template"]["spec"]["containers"]
    found: list[str] = container["args"]
    return found


def test_two_replicas_have_the_rights_to_elect_a_leader(directory: Path) -> None:
    """Two replicas with `--leader-election` get a Role for leases; without leader election the
    chart has no Role.
    """
    two = (ENABLED, "metacontroller.replicas=2", arguments("--leader-election"))
    made = rendered(directory, *two, namespace="ours")
    assert only(made, "StatefulSet")["spec"]["replicas"] == 2
    role, binding = yaml.safe_load_all(LEASES.read_text())
    assert only(made, "Role")["rules"] == role["rules"]
    bound = only(made, "RoleBinding")
    assert bound["roleRef"] == binding["roleRef"]
    assert bound["subjects"] == [
        {"kind": "ServiceAccount", "name": "theirs", "namespace": "ours"}
    ]  # fmt: skip
    elsewhere = rendered(directory, *two, 'metacontroller.namespaceOverride="theirs"')
    for kind in ("Role", "RoleBinding"):
        assert only(made, kind)["metadata"]["namespace"] == "ours"
        assert only(elsewhere, kind)["metadata"]["namespace"] == "theirs"
    assert "leader-election" not in json.dumps(rendered(directory, ENABLED))


def test_values_in_the_documentation_enable_leader_election(
    directory: Path, tmp_path: Path
) -> None:
    """Renders the values that docs/sizing.md prints: the shipped arguments and
    `--leader-election`.
    """
    page = (INSTALL.parent / "docs" / "sizing.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"```yaml\n(metacontroller:\n  enabled: true\n.*?)```", page, re.DOTALL)
    file = tmp_path / "values.yaml"
    file.write_text(text)
    made = rendered(directory, flags=("--values", file))
    name = only(made, "StatefulSet")["metadata"]["name"]
    assert arguments_of(made, name) == [*controller_arguments(), "--leader-election"]
    assert only(made, "StatefulSet")["spec"]["replicas"] == 2


@pytest.mark.parametrize("more", [(), LOCKS], ids=["base", "components"])
def test_each_shard_has_its_own_registration_and_metacontroller(
    directory: Path, more: tuple[str, ...]
) -> None:
    """Compares the objects of two shards with those of the base: they differ in name, selector,
    label and lease.
    """
    on = (ENABLED, SHARDS, *more)
    before = rendered(directory, *on)
    made = rendered(directory, *on, 'shards=["b","c"]')
    new = [each for each in made if each not in before]
    assert [each for each in before if each not in made] == []
    assert sorted((each["kind"], each["metadata"]["name"]) for each in new) == [
        ("CompositeController", "tapp-controller-b"),
        ("CompositeController", "tapp-controller-c"),
        ("StatefulSet", "tapp-metacontroller-b"),
        ("StatefulSet", "tapp-metacontroller-c"),
    ]
    mine = {SHARD: "b"}
    registered = only(new, "CompositeController", "tapp-controller-b")
    assert registered["metadata"]["labels"].items() >= mine.items()
    spec, default = registered["spec"], only(before, "CompositeController")["spec"]
    assert spec["parentResource"]["labelSelector"] == {"matchLabels": mine}
    assert default["parentResource"]["labelSelector"] == {
        "matchExpressions": [{"key": SHARD, "operator": "DoesNotExist"}]
    }
    parent = {**spec["parentResource"], "labelSelector": default["parentResource"]["labelSelector"]}
    assert {**spec, "parentResource": parent} == default
    controller = only(new, "StatefulSet", "tapp-metacontroller-b")["spec"]
    labels = controller["template"]["metadata"]["labels"]
    assert labels.items() >= mine.items()
    assert controller["selector"]["matchLabels"] == labels
    others = [each for each in controller_arguments() if "selector" not in each]
    assert {*arguments_of(made, "tapp-metacontroller-b")} == {
        *others,
        f"--target-label-selector={SHARD}=b",
        "--leader-election-id=tapp-metacontroller-b",
    }
    by_others = rendered(directory, SHARDS, *more, 'shards=["b"]')
    assert not [each for each in by_others if each["kind"] == "StatefulSet"]


@pytest.mark.parametrize(
    ("values", "error"),
    [
        (f"{ENABLED} metacontroller.replicas=2", "replicas is more than 1, but they elect no"),
        ("metacontroller.replicas=0", "'/metacontroller/replicas'"),
        ('shards=["b"]', "would take them as well: add --set components.shards=true"),
        (
            f'{ENABLED} {SHARDS} shards=["b"] metacontroller.commandArgs=["--workers=10"]',
            "metacontroller.commandArgs has no --target-label-selector=!apps.tkestack.io/shard",
        ),
        (f'{SHARDS} shards=["B"]', "'/shards/0'"),
    ],
    ids=["no leader election", "no replicas", "no component", "no selector", "invalid name"],
)
def test_impossible_values_are_refused(directory: Path, values: str, error: str) -> None:
    done = templated(directory, *values.split(" "))
    assert done.returncode != 0
    assert error in done.stderr
