"""Tests that `plan` and all verbs report templates whose pods cannot be created, before they
write.
"""

import json

import pytest

from tests.builders import Document, claim_template, manifest, template
from tests.plugin.clusters import running
from tests.plugin.fake_kubectl import StandIn, kubectl_tapp

CLAIMS = [claim_template("data"), claim_template("logs")]
LOGS = "container 'app' mounts 'logs', which is neither a volume, nor a claim template, nor a claim"


def mounting(*names: str, image: str = "nginx:1") -> Document:
    """Returns a pod template whose container mounts the claims with these names.

    The command contains the image, so that a change of the image needs a new pod.
    """
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in names]
    return template(image, container={"volumeMounts": mounts, "command": ["run", image]})


@pytest.fixture
def web() -> StandIn:
    """Returns a TApp whose first revision mounts claims for logs, which its second revision does
    not have.

    The claims for logs have been deleted.
    """
    standin = running(
        replicas=3, template=mounting("data", "logs"), volumeClaimTemplates=CLAIMS, templatePool={}
    )
    without = {"template": mounting("data", image="nginx:2"), "volumeClaimTemplates": CLAIMS[:1]}
    standin.world.patch("tapps", "web", {"spec": without})
    standin.world.settle()
    for id in range(3):
        standin.world.delete("persistentvolumeclaims", f"logs-web-{id}")
    standin.world.settle()
    return standin


def uids(standin: StandIn) -> set[str]:
    """Returns the UIDs of all pods."""
    return {pod["metadata"]["uid"] for pod in standin.world.list("pods")}


def test_rollback_names_missing_claim_templates_and_deletes_no_pod(web: StandIn) -> None:
    """Rolls back to a revision that mounts missing claims: the plan says so, and all pods stay.

    Every later verb and `why` have the message, too.
    """
    before = uids(web)
    said = kubectl_tapp(web, "rollback", "web", "-y")
    assert "3 waiting, and the rollout gets stuck" in said.lines[0]
    assert f"template 'default': {LOGS}" in said.out
    assert "CreationBlocked: instance 0" in said.out
    web.world.settle()
    assert uids(web) == before
    for verb in (["restart", "web"], ["scale", "web", "--replicas=4"], ["why", "web"]):
        options = [] if verb[0] == "why" else ["--dry-run=client"]
        assert LOGS in kubectl_tapp(web, *verb, *options).out


def test_plan_names_instances_without_volumes_or_with_only_their_claims(web: StandIn) -> None:
    """Plans a file that mounts an unknown volume, and one that removes a claim template that is
    mounted.

    In the first case the update is blocked. In the second case the existing claims are enough for
    existing instances.
    """
    spec = {"replicas": 3, "volumeClaimTemplates": CLAIMS[:1]}
    wrong = json.dumps(manifest(**spec, template=mounting("data", "logs", image="nginx:3")))
    said = kubectl_tapp(web, "plan", "-f", "-", "--fail-if", "stuck", stdin=wrong)
    assert LOGS in said.out
    assert "recreated" not in said.out
    assert said.code == 3
    gone = manifest(replicas=3, template=mounting("data", image="nginx:2"), volumeClaimTemplates=[])
    said = kubectl_tapp(web, "plan", "-f", "-", stdin=json.dumps(gone))
    assert "no instance changes" in said.lines[0]
    assert "CreationBlocked: template 'default': container 'app' mounts 'data'" in said.out


def test_short_plan_names_a_new_instance_without_a_pod(web: StandIn) -> None:
    """Scales up a TApp whose template mounts a claim without a claim template: the new instance has
    no pod.
    """
    web.world.patch("tapps", "web", {"spec": {"volumeClaimTemplates": []}})
    web.world.settle()
    said = kubectl_tapp(web, "scale", "web", "--replicas=4", "--dry-run=client")
    assert "CreationBlocked: instance 3: template 'default': container 'app' mounts 'data'" in (
        said.out
    )
