"""Tests that `plan -f` reads files with TApps as kubectl does."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.plugin.clusters import one_sentence, running
from tests.plugin.fake_kubectl import StandIn, kubectl_tapp

TAPP = """
apiVersion: apps.tkestack.io/v1
kind: TApp
metadata: {{name: web{metadata}}}
spec:
  replicas: 6
  {spec}
  template:
    metadata: {{labels: {{app: web}}{notes}}}
    spec: {{containers: [{{name: app, image: "nginx:1.25"}}]}}
"""


@pytest.fixture
def web() -> StandIn:
    return running()


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., str]:
    def write(text: str = "", name: str = "web.yaml", **parts: str) -> str:
        given = {"metadata": "", "spec": "", "notes": "", **parts}
        path = tmp_path / name
        path.write_text(text or TAPP.format(**given), encoding="utf-8")
        return str(path)

    return write


def test_plan_uses_the_namespace_in_the_file(web: StandIn, written: Callable[..., str]) -> None:
    """Plans a file with a namespace while the context has another one.

    Otherwise the file would be compared with a TApp in the namespace of the context.
    """
    web.namespace = "other"
    said = kubectl_tapp(web, "plan", "-f", written(metadata=", namespace: default"), "-o", "json")
    assert said.code == 0
    found = json.loads(said.out)
    assert [each["outcome"] for each in found["instances"]] == ["unchanged"] * 6


def test_file_with_another_namespace_than_the_option_is_refused(
    web: StandIn, written: Callable[..., str]
) -> None:
    path = written(metadata=", namespace: prod")
    one_sentence(
        kubectl_tapp(web, "plan", "-n", "default", "-f", path),
        "the edited TApp is of namespace prod, and --namespace says default",
    )
    other = written(name="old.yaml", metadata=", namespace: test")
    one_sentence(kubectl_tapp(web, "plan", "--from", other, "-f", path), "old.yaml has test")
    bare = written(name="old.yaml")
    said = kubectl_tapp(web, "plan", "--from", bare, "-f", path)
    assert said.code == 0
    assert said.lines[0] == "TApp prod/web: nothing changes"


@pytest.mark.parametrize(
    "way", [[], ["--no-dry-run"], ["--from"]], ids=["dry run", "no dry run", "from a file"]
)
def test_values_that_are_texts_for_kubectl_are_texts(
    web: StandIn, written: Callable[..., str], way: list[str]
) -> None:
    """Numbers as keys, times, and `22:22` are texts, although PyYAML would convert them.

    This holds for each way in which a plan reads files.
    """
    before = [*way, written(name="old.yaml")] if way == ["--from"] else way
    path = written(
        spec="statuses: {1: Killed}",
        notes=", annotations: {at: 2024-01-01T00:00:00Z, day: 2024-01-01, time: 22:22}",
    )
    said = kubectl_tapp(web, "plan", *before, "-f", path, "-o", "json")
    assert said.err == ""
    assert said.code == 0
    found = json.loads(said.out)
    assert {each["id"] for each in found["instances"] if each["outcome"] == "deleted"} == {1}
    (change,) = (each for each in found["templates"] if each["name"] == "default")
    values = {each["path"].rpartition(".")[2]: each["after"] for each in change["differences"]}
    assert values == {"at": "2024-01-01T00:00:00Z", "day": "2024-01-01", "time": "22:22"}


@pytest.mark.parametrize("empty", ["null", '""'])
def test_empty_namespace_in_a_file_counts_as_not_set(
    web: StandIn, written: Callable[..., str], empty: str
) -> None:
    said = kubectl_tapp(web, "plan", "-f", written(metadata=f", namespace: {empty}"))
    assert said.code == 0
    assert said.lines[0] == "TApp default/web: no instance changes"


@pytest.mark.parametrize("way", ["-f", "--from"])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TAPP.format(metadata="", spec="x: &x {a: *x}", notes=""), "circular alias"),
        (TAPP.format(metadata="", spec="", notes="").replace("web", "12"), "name is not a text"),
        (TAPP.format(metadata=", labels: 5", spec="", notes=""), "metadata.labels is not an obj"),
        ("[" * 5000, "is not YAML"),
        (TAPP.format(metadata="", spec="", notes="").replace("io/v1", "io/v9"),
         "has a TApp of apiVersion apps.tkestack.io/v9: the only known version is apps."),
        ("{apiVersion: apps.tkestack.io/v1, kind: TApp, metadata: {name: web}, spec: all}",
         "spec is not an object"),
        ("{apiVersion: apps.tkestack.io/v1, kind: TApp, metadata: {name: web}, spec: {template: "
         "{spec: {containers: [{image: a}]}}}}", "spec.template.spec.containers[0] has no name"),
        ("{apiVersion: apps.tkestack.io/v1, kind: TApp, metadata: {name: web}, spec: "
         "{templatePool: {a: {metadata: 7}}}}", "spec.templatePool.a.metadata is not an object"),
    ],
    ids=[
        "circular alias", "name that is a number", "labels that are a number", "no YAML",
        "unknown version", "spec that is a text", "container without a name",
        "metadata that are a number",
    ],
)  # fmt: skip
def test_invalid_file_is_one_error(
    web: StandIn, written: Callable[..., str], way: str, text: str, message: str
) -> None:
    one_sentence(kubectl_tapp(web, "plan", way, written(text)), message)
