"""Uses the CRD through kubectl: apply, explain, get, scale and wait."""

from __future__ import annotations

import re

import pytest

from crds.definition import COLUMNS

from .app import App, each, tapp
from .cluster import REPOSITORY
from .kube import Kube, Kubectl
from .process import ProcessError

pytestmark = pytest.mark.e2e

CRD = REPOSITORY / "crds" / "tapp.yaml"


def test_second_server_side_apply_of_the_crd_changes_nothing(kubectl: Kubectl, kube: Kube) -> None:
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


EXPLAINED = {
    "tapp": "FIELDS:",
    "tapp.spec.statuses": "Killed",
    "tapp.spec.updateStrategy.maxUnavailable": "unavailable",
    "tapp.spec.template.spec.containers.livenessProbe.httpGet.port": "port",
    "tapp.spec.volumeClaimTemplates.spec.accessModes": "accessModes",
    "tapp.status.templates": "FIELDS:|DESCRIPTION:",
}


@pytest.mark.parametrize("path", EXPLAINED)
def test_kubectl_explain_describes_fields(kubectl: Kubectl, path: str) -> None:
    assert re.search(EXPLAINED[path], kubectl("explain", path))


def test_kubectl_get_shows_columns_short_name_and_category(app: App, kubectl: Kubectl) -> None:
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


def test_kubectl_wait_follows_kubectl_scale(app: App, kubectl: Kubectl) -> None:
    """`kubectl wait` after `kubectl scale` depends on the observed generation."""
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
