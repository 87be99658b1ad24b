"""The CRD as kubectl sees it: apply, explain, scale, columns, wait, and a readable refusal."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
import yaml

from crds.definition import COLUMNS

from .app import App, each, tapp, template
from .cluster import REPOSITORY
from .kube import Json, Kube
from .process import ProcessError

pytestmark = pytest.mark.e2e
Kubectl = Callable[..., str]

CRD = REPOSITORY / "crds" / "tapp.yaml"
HINT = (
    "look for a mistyped name, or a template that was removed while in use; names are the keys of "
    "spec.templatePool, and 'default' for spec.template"
)
BUDGET = "must be a whole number from 1, or a percentage from 1% to 100%, such as 25%"
# An older API server (1.33) names the type, a newer one what was written.
VALUE = r'Invalid value: (?:"object": )?("[^"]*"|\{.*?\}|\[.*?\]|null): '
"""Kubernetes shows the value, or just its type, between its words and ours."""
SHOWN = [column["name"].upper() for column in COLUMNS if not column.get("priority")]


@pytest.fixture
def refused(kubectl: Kubectl, namespace: str) -> Callable[[Json], str]:
    """What `kubectl create` says of a TApp that is refused."""

    def say(document: Json) -> str:
        with pytest.raises(ProcessError) as refusal:
            kubectl("create", "-n", namespace, "-f", "-", stdin=yaml.safe_dump(document))
        return str(refusal.value).partition("is invalid: ")[2].strip()

    return say


def test_the_definition_is_applied_server_side_and_again_without_a_change(
    kubectl: Kubectl, kube: Kube
) -> None:
    def version() -> str:
        name = "tapps.apps.tkestack.io"
        found = kube.get("apiextensions.k8s.io/v1", "customresourcedefinitions", None, name)
        conditions = {c["type"]: c["status"] for c in found["status"]["conditions"]}
        assert conditions["Established"] == "True"
        assert conditions.get("NonStructuralSchema", "False") == "False"
        return str(found["metadata"]["resourceVersion"])

    apply = ("apply", "--server-side", "--force-conflicts", "-f", str(CRD))
    kubectl(*apply)
    first = version()
    assert "serverside-applied" in kubectl(*apply)
    assert version() == first


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("tapp", "FIELDS:"),
        ("tapp.spec.statuses", "Killed"),
        ("tapp.spec.updateStrategy.maxUnavailable", "unavailable"),
        ("tapp.spec.template.spec.containers.image", "Container image name"),
        ("tapp.spec.template.spec.containers.livenessProbe.httpGet.port", "port"),
        ("tapp.spec.volumeClaimTemplates.spec.accessModes", "accessModes"),
        ("tapp.status.templates", "FIELDS:|DESCRIPTION:"),
    ],
)
def test_explain(kubectl: Kubectl, path: str, words: str) -> None:
    assert re.search(words, kubectl("explain", path))


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (
            {"templates": {"1": "b"}},
            f'spec.templates: Invalid value: there is no template "b": {HINT}',
        ),
        (
            {"updateStrategy": {"maxUnavailable": "0%"}},
            f"spec.updateStrategy.maxUnavailable: Invalid value: {BUDGET}",
        ),
        (
            {"template": None},
            "spec.template: Invalid value: the default template is missing: set spec.template with "
            "at least one container, or set spec.defaultTemplateName to a key of spec.templatePool",
        ),
    ],
)
def test_rules_speak_word_for_word(refused: Callable[[Json], str], spec: Json, words: str) -> None:
    document = tapp(**spec)
    document["spec"] = {k: v for k, v in document["spec"].items() if v is not None}
    assert re.sub(VALUE, "Invalid value: ", refused(document)) == words


def test_a_mistyped_field_is_refused_with_its_path(refused: Callable[[Json], str]) -> None:
    broken = template()
    broken["spec"]["containers"][0]["ports"] = [{"containerPort": "eighty"}]
    path = "spec.template.spec.containers[0].ports[0].containerPort"
    assert f'{path}: Invalid value: "eighty"' in refused(tapp(template=broken))


def test_columns_short_name_and_category(app: App, kubectl: Kubectl) -> None:
    app.apply(tapp()).settle()
    listed = kubectl("get", "ta", "-n", app.namespace)
    header, row = listed.splitlines()
    assert header.split() == [
        "NAME",
        *(c["name"].upper() for c in COLUMNS if not c.get("priority")),
    ]
    assert row.split()[:-1] == ["web", "3/3", "3", "3", "AsSpecified"]
    wide = kubectl("get", "tapp", "-n", app.namespace, "-o", "wide").splitlines()
    assert wide[0].split() == ["NAME", *(column["name"].upper() for column in COLUMNS)]
    assert wide[1].split()[-1] == "Running"
    assert "tapp.apps.tkestack.io/web" in kubectl("get", "all", "-n", app.namespace)
    described = kubectl("describe", "tapp", "web", "-n", app.namespace)
    assert "App Status:" in described


def test_scale_and_wait(app: App, kubectl: Kubectl) -> None:
    """`kubectl scale`, then `kubectl wait` for it: the generation that was observed tells."""
    app.apply(tapp(replicas=1))
    where = ("-n", app.namespace, "tapp/web")
    waits = ("wait", "--timeout=60s")
    kubectl(*waits, "--for=condition=Ready", *where)
    assert app.statuses == "Running"
    kubectl("scale", "--replicas=3", *where)
    kubectl(*waits, "--for=jsonpath={.status.readyReplicas}=3", *where)
    kubectl(*waits, "--for=condition=Available", *where)
    kubectl(*waits, "--for=condition=Progressing=False", *where)
    app.settle()
    kubectl("scale", "--current-replicas=3", "--replicas=2", *where)
    app.settle()
    with pytest.raises(ProcessError, match=r"[Ee]xpected replicas"):
        kubectl("scale", "--current-replicas=3", "--replicas=1", *where)
    assert app.wrote(*each("create Pod", "web", 0, 1, 2), "delete Pod web-2")
    kubectl("delete", "--wait", "--timeout=60s", *where)
    app.until(lambda: not app.pods, "no pods")
