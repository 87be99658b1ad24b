"""Templates that no pod can be made of: named before a write, by `plan` and by every verb."""

import json

import pytest

from tests.builders import Document, claim_template, manifest, template
from tests.plugin.clusters import running
from tests.plugin.standin import StandIn, kubectl_tapp

CLAIMS = [claim_template("data"), claim_template("logs")]
LOGS = "container 'app' mounts 'logs', which is neither a volume, nor a claim template, nor a claim"


def mounting(*names: str, image: str = "nginx:1") -> Document:
    """A template whose container mounts these, and whose command no update changes."""
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in names]
    return template(image, container={"volumeMounts": mounts, "command": ["run", image]})


@pytest.fixture
def web() -> StandIn:
    """The second revision has no logs any more, and somebody has deleted their claims."""
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
    """The uids of the pods."""
    return {pod["metadata"]["uid"] for pod in standin.world.list("pods")}


def test_a_rollback_says_what_the_old_template_lacks_and_takes_no_pod(web: StandIn) -> None:
    """Before the question; whoever says yes loses nothing, and every later verb says it again."""
    before = uids(web)
    said = kubectl_tapp(web, "rollback", "web", "-y")
    assert "3 waiting, and it gets stuck" in said.lines[0]
    assert f"template 'default': {LOGS}" in said.out
    assert "CreationBlocked: instance 0" in said.out
    web.world.settle()
    assert uids(web) == before
    for verb in (["restart", "web"], ["scale", "web", "--replicas=4"], ["why", "web"]):
        options = [] if verb[0] == "why" else ["--dry-run=client"]
        assert LOGS in kubectl_tapp(web, *verb, *options).out


def test_plan_says_what_would_get_stuck_and_what_only_claims_stand_for(web: StandIn) -> None:
    """Of a file: a mount of nothing, and a claim template that goes while it is mounted."""
    spec = {"replicas": 3, "volumeClaimTemplates": CLAIMS[:1]}
    wrong = json.dumps(manifest(**spec, template=mounting("data", "logs", image="nginx:3")))
    said = kubectl_tapp(web, "plan", "-f", "-", "--fail-if", "stuck", stdin=wrong)
    assert LOGS in said.out
    assert "recreated" not in said.out
    assert said.code == 3
    gone = manifest(replicas=3, template=mounting("data", image="nginx:2"), volumeClaimTemplates=[])
    said = kubectl_tapp(web, "plan", "-f", "-", stdin=json.dumps(gone))
    assert "nothing happens" in said.lines[0]
    assert "CreationBlocked: template 'default': container 'app' mounts 'data'" in said.out


def test_a_new_instance_that_gets_no_pod_is_named_by_the_short_plan(web: StandIn) -> None:
    """Its claims are not there, and their template went."""
    web.world.patch("tapps", "web", {"spec": {"volumeClaimTemplates": []}})
    web.world.settle()
    said = kubectl_tapp(web, "scale", "web", "--replicas=4", "--dry-run=client")
    assert "CreationBlocked: instance 3: template 'default': container 'app' mounts 'data'" in (
        said.out
    )
