"""Tests that `plan --from` finds edits in files that an API server would refuse."""

import json
from pathlib import Path
from typing import Any

import pytest

from kubectl_tapp.base.manifests import read_manifests
from kubectl_tapp.forecast.schema import mistakes
from tests.builders import manifest, template
from tests.plugin.clusters import running
from tests.plugin.fake_kubectl import kubectl_tapp

EXAMPLES = Path(__file__).parents[2] / "examples"


def pod(**fields: Any) -> dict[str, Any]:
    """Returns a spec whose pod template has these fields in its pod spec."""
    return {"template": template("web:2", **fields)}


def container(**fields: Any) -> dict[str, Any]:
    """Returns a spec whose container has these fields."""
    return {"template": template("web:2", container=fields)}


CASES: dict[str, tuple[dict[str, Any], str]] = {
    "replicas as a text": ({"replicas": "3"}, "spec.replicas"),
    "negative replicas": ({"replicas": -1}, "spec.replicas"),
    "an unknown policy": ({"podManagementPolicy": "All"}, "spec.podManagementPolicy"),
    "a label that is a number": (
        {"template": {"metadata": {"labels": {"a": 811110}},
                      "spec": {"containers": [{"name": "a", "image": "a:1"}]}}}, "labels.a"),
    "a port name": (
        container(ports=[{"containerPort": 80, "name": "a-port-name-long"}]), "ports[0].name"),
    "a port": (container(ports=[{"containerPort": 70000}]), "containerPort"),
    "a port without its number": (container(ports=[{"name": "http"}]), "containerPort: Required"),
    "a protocol": (container(ports=[{"containerPort": 80, "protocol": "tcp"}]), "protocol"),
    "successThreshold": (
        container(livenessProbe={"tcpSocket": {"port": 80}, "successThreshold": 2}), "must be 1"),
    "a negative period": (
        container(readinessProbe={"tcpSocket": {"port": 80}, "periodSeconds": -1}),
        "periodSeconds"),
    "imagePullPolicy": (container(imagePullPolicy="always"), "imagePullPolicy"),
    "runAsUser": (container(securityContext={"runAsUser": -1}), "runAsUser"),
    "a number as a text": (container(env=[{"name": "A", "value": 1}]), "env[0].value"),
    "restartPolicy": (pod(restartPolicy="always"), "restartPolicy"),
    "dnsPolicy": (pod(dnsPolicy="Cluster"), "dnsPolicy"),
    "in the pool": (
        {"templatePool": {"blue": template("web:2", dnsPolicy="Cluster")}},
        "spec.templatePool.blue.spec.dnsPolicy"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_edit_that_an_api_server_would_refuse_is_refused(tmp_path: Path, case: str) -> None:
    spec, said = CASES[case]
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text(json.dumps(manifest(replicas=2)))
    new.write_text(json.dumps(manifest(**{"replicas": 2, **spec})))
    found = kubectl_tapp(running(), "plan", "--from", str(old), "-f", str(new))
    assert found.code == 1
    assert said in found.out + found.err


def test_plan_of_files_says_what_it_did_not_check(tmp_path: Path) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text(json.dumps(manifest(replicas=2)))
    new.write_text(json.dumps(manifest(replicas=3)))
    found = kubectl_tapp(running(), "plan", "--from", str(old), "-f", str(new))
    assert found.code == 0
    assert "no API server was asked: the CRD's rules between fields" in found.out


@pytest.mark.parametrize(
    "spec",
    [
        container(livenessProbe={"exec": None, "httpGet": {"port": 80}}),
        pod(volumes=[{"name": "v", "emptyDir": None, "configMap": {"name": "a"}}]),
        container(volumeMounts=[
            {"name": "v", "mountPath": "/v", "subPath": "", "subPathExpr": "x"}]),
        container(resources={"limits": {"cpu": 1}, "requests": {"cpu": None}}),
    ],
    ids=["a handler of a probe", "a kind of volume", "a path in a volume", "a request"],
)  # fmt: skip
def test_fields_that_are_null_or_empty_count_as_unset(spec: dict[str, Any]) -> None:
    """Checks specs in which a field that would exclude another one is null or "": no error is
    found.

    Charts often render such fields, and the API server accepts them.
    """
    assert mistakes(manifest(**spec)) == ()


def test_examples_have_no_errors() -> None:
    documents = [each for path in EXAMPLES.rglob("*.yaml") for each in _documents(path)]
    assert len(documents) > 5
    assert [found for each in documents if (found := mistakes(each))] == []


def _documents(path: Path) -> list[Any]:
    found = read_manifests(path.read_bytes())
    return [each for each in found if each.get("kind") == "TApp"]
