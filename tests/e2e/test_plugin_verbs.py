"""Each verb of `kubectl tapp` on a real API server: written, waited for, guarded, interrupted."""

from __future__ import annotations

import pytest

from kubectl_tapp import edits
from kubectl_tapp.cluster import TAPPS
from kubectl_tapp.cluster import Cluster as Access
from kubectl_tapp.kubectl import KubectlError

from .app import App, tapp, template
from .cluster import Cluster
from .plugin import Plugin
from .test_crd import Kubectl

pytestmark = pytest.mark.e2e


@pytest.fixture
def plugin(cluster: Cluster, namespace: str) -> Plugin:
    """`kubectl tapp` in the test's namespace."""
    return Plugin(cluster, namespace)


def test_a_life_by_verbs(app: App, plugin: Plugin) -> None:
    """What each verb asks for is there when its `--wait` returns."""
    pool = {"v2": template("app:2")}
    app.apply(tapp(replicas=4, templatePool=pool)).settle()

    plugin.run("kill", "web", "1,3", "-y", "--wait")
    assert sorted(app.pods) == [0, 2]
    plugin.run("start", "web", "all", "-y", "--wait")
    assert sorted(app.pods) == [0, 1, 2, 3]

    out = plugin.run("use", "web", "v2", "--canary", "25%", "-y", "--wait")
    assert "Canary: 1 of 4" in out
    assert sorted(app.images().split()).count("app:2") == 1 or "app:2" in app.images()
    picked = next(iter(app.found["spec"]["templates"]))  # type: ignore[index]
    plugin.run("use", "web", "default", picked, "-y", "--wait")
    assert app.found["spec"]["templates"] == {}  # type: ignore[index]

    before = app.uids
    plugin.run("set", "image", "web", "app=app:3", "-y", "--wait")
    assert "app:2" not in app.images()
    assert app.uids == before, "in place"

    plugin.run("pause", "web", "-y")
    plugin.run("set", "image", "web", "app=app:4", "-y")
    out = plugin.run("wait", "web", "--timeout", "60s", code=4)
    assert "spec.updateStrategy.paused is set" in out
    plugin.run("resume", "web", "-y", "--wait")

    plugin.run("scale", "web", "--replicas", "2", "-y", "--wait")
    assert sorted(app.pods) == [0, 1]


def test_the_guard_refuses_what_changed_meanwhile(
    app: App, cluster: Cluster, kubectl: Kubectl
) -> None:
    """A foreign edit of the spec, not of the status; whatever the API server's words are."""
    app.apply(tapp(replicas=2)).settle()
    access = Access(str(cluster.kubeconfig), cluster.context or None, app.namespace)
    seen = access.get(TAPPS, "web")
    kubectl("annotate", "tapp", "web", "-n", app.namespace, "note=this")
    access.patch(TAPPS, "web", edits.guarded_patch(seen, edits.killed(seen, [1])))
    assert app.found["spec"]["statuses"] == {"1": "Killed"}  # type: ignore[index]
    with pytest.raises(KubectlError, match="the server rejected our request") as raised:
        access.patch(TAPPS, "web", edits.guarded_patch(seen, edits.killed(seen, [0])))
    assert raised.value.reason == "Invalid"
    assert app.found["spec"]["statuses"] == {"1": "Killed"}  # type: ignore[index]
    owners = kubectl(
        "get", "tapp", "web", "-n", app.namespace, "--show-managed-fields",
        "-o", "jsonpath={.metadata.managedFields[*].manager}",
    )  # fmt: skip
    assert "kubectl-tapp" in owners.split()
