"""Runs each verb of `kubectl tapp` on a real API server: with a wait, a guard or an
interruption.
"""

from __future__ import annotations

import re

import pytest

from kubectl_tapp.cluster.access import TAPPS, ClusterAccess
from kubectl_tapp.cluster.kubectl import KubectlError
from kubectl_tapp.edit import edits

from .app import App, tapp, template
from .cluster import Cluster
from .kube import Json, Kubectl
from .kubelet_controls import Levers
from .plugin import ROOT, Person, Plugin, interrupt

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


def spec_of(app: App) -> Json:
    """Returns the spec of the TApp."""
    assert app.found is not None
    spec: Json = app.found["spec"]
    return spec


def test_guarded_patch_is_refused_after_another_edit_of_the_spec(
    app: App, cluster: Cluster, kubectl: Kubectl
) -> None:
    """The guard must refuse after a foreign edit of the spec, but not of the metadata or the
    status.
    """
    app.apply(tapp(replicas=2)).settle()
    targets = {"kubeconfig": str(cluster.kubeconfig), "namespace": app.namespace}
    if cluster.context:
        targets["context"] = cluster.context
    access = ClusterAccess(targets)
    seen = access.get(TAPPS, "web")
    kubectl("annotate", "tapp", "web", "-n", app.namespace, "note=this")
    access.patch(TAPPS, "web", edits.guarded_patch(seen, edits.killed(seen, [1])))
    assert spec_of(app)["statuses"] == {"1": "Killed"}
    with pytest.raises(KubectlError, match="the server rejected our request") as raised:
        access.patch(TAPPS, "web", edits.guarded_patch(seen, edits.killed(seen, [0])))
    assert raised.value.reason == "Invalid"
    assert spec_of(app)["statuses"] == {"1": "Killed"}
    owners = kubectl(
        *("get", "tapp", "web", "-n", app.namespace, "--show-managed-fields"),
        *("-o", "jsonpath={.metadata.managedFields[*].manager}"),
    )
    assert "kubectl-tapp" in owners.split()


def test_verb_writes_nothing_unless_the_user_confirms(app: App, plugin: Plugin) -> None:
    """A no, an interruption or another edit before the answer must write nothing."""
    app.apply(tapp(replicas=2)).settle()
    question = "Apply? [y/N]"
    Person(plugin, "kill", "web", "0").reads(question).types("n\n").ends(5)
    said = Person(plugin, "kill", "web", "0").reads(question).interrupts()
    assert "interrupted; nothing was written" in said
    person = Person(plugin, "kill", "web", "0").reads(question)
    app.patch(minReadySeconds=1)
    assert "changed after the plan was made; nothing was written" in person.types("y\n").ends(6)
    assert "statuses" not in spec_of(app)
    Person(plugin, "kill", "web", "0", "--wait").reads(question).types("y\n").ends(0)
    assert sorted(app.pods) == [1]


def test_interrupted_wait_leaves_the_change_in_effect(
    app: App, plugin: Plugin, levers: Levers
) -> None:
    """The rollout continues without the command."""
    app.apply(tapp(replicas=2)).settle()
    levers.pull_seconds_by_image["app:2"] = 15
    person = Person(plugin, "set", "image", "web", "main=app:2", "--wait", "-y")
    said = person.reads("being updated in place").interrupts()
    assert "the change is written and goes on: `kubectl tapp wait web -n " in said
    process = plugin.start("wait", "web")
    assert process.stdout is not None
    process.stdout.readline()
    interrupt(process)
    assert process.returncode == 130
    levers.pull_seconds_by_image.clear()
    plugin.run("wait", "web")
    assert {pod["spec"]["containers"][0]["image"] for pod in app.pods.values()} == {"app:2"}


def everyday() -> list[tuple[str, str]]:
    """Returns the commands of docs/kubectl-tapp.md, "Everyday commands".

    Each entry has the command of the plugin, and the plain kubectl command or an empty string.
    """
    text = (ROOT / "docs/kubectl-tapp.md").read_text()
    section = text.partition("## Everyday commands\n")[2].partition("\n## ")[0]
    cells = [line.strip("|").split(" | ")[1:] for line in section.splitlines() if line[:1] == "|"]
    found = [[re.findall(r"`(kubectl [^`]+)`", cell) for cell in row] for row in cells]
    return [(row[0][0], "".join(row[1])) for row in found if row and row[0]]


READING = ("status", "why", "plan", "rehearse", "history", "wait", "list")


def test_everyday_commands_work_as_documented(app: App, plugin: Plugin) -> None:
    """Each documented line must work, and its plain kubectl line must do the same.

    Lines that write run with `-y`. After them, the plain line finds nothing to change.
    """
    lines = everyday()
    assert len(lines) > 15
    body = template("web:1")
    app.apply(tapp(replicas=6, template=body, templatePool={"v2": template("web:2")})).settle()
    for ours, plain in lines:
        verb = ours.split()[2]
        plugin.shell(ours if verb in READING else f"{ours} -y --wait")
        before = spec_of(app)
        if plain:
            plugin.shell(plain)
        assert verb == "restart" or spec_of(app) == before, (ours, plain)
        plugin.run("wait", "web")
    assert app.found is not None
    assert app.found["metadata"]["annotations"]["kubernetes.io/change-cause"].startswith(
        "kubectl tapp rollback web"
    )
