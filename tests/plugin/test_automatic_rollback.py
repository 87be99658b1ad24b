"""Tests what the plugin says of a TApp whose rollout was rolled back, and the verb `retry`."""

import json

import pytest

from tests.plugin.clusters import running, spec_of
from tests.plugin.fake_kubectl import StandIn, kubectl_tapp
from tests.plugin.states import template

RETRY = "apps.tkestack.io/retry"
STRATEGY = {"onDeadline": "Rollback"}


def images(standin: StandIn) -> list[str]:
    pods = [standin.world.get("pods", f"web-{id}") for id in range(3)]
    return [pod["spec"]["containers"][0]["image"] for pod in pods]


@pytest.fixture
def web() -> StandIn:
    """Returns a TApp whose rollout to `nginx:bad` was rolled back to `nginx:1`."""
    standin = running(
        replicas=3, template=template("nginx:1"), updateStrategy=STRATEGY, templatePool={},
        templates={}, statuses={}, progressDeadlineSeconds=60,
    )  # fmt: skip
    standin.world.kubelet.levers.crashing_images.add("nginx:bad")
    standin.world.patch("TApp", "web", {"spec": {"template": template("nginx:bad")}})
    standin.world.run(240)
    assert images(standin) == ["nginx:1"] * 3
    standin.calls.clear()
    return standin


def test_status_and_why_say_which_revision_was_rolled_back(web: StandIn) -> None:
    said = kubectl_tapp(web, "status", "web")
    assert "a rollback keeps instances 0-2 at an old revision" in said.out
    assert "`kubectl tapp retry web -n default`" in said.out
    assert "CrashLoopBackOff" in said.out  # why it was rolled back
    why = kubectl_tapp(web, "why", "web", "1")
    assert "was rolled back, so it runs revision v1-" in why.out
    assert "the partition" not in why.out


def test_plan_says_that_the_revision_was_rolled_back(web: StandIn) -> None:
    web.world.patch("TApp", "web", {"metadata": {"labels": {"a": "b"}}})
    manifest = {**web.world.get("tapps", "web")}
    manifest.pop("status")
    manifest["spec"] = {**manifest["spec"], "replicas": 4}
    said = kubectl_tapp(web, "plan", "-f", "-", stdin=json.dumps(manifest))
    assert "was rolled back at" in said.out


def test_plan_of_another_template_forecasts_its_rollout(web: StandIn) -> None:
    said = kubectl_tapp(web, "set", "image", "web", "web=nginx:3", "--dry-run=server")
    assert "3 in place" in said.out
    assert "was rolled back" not in said.out


def test_retry_rolls_the_revision_out_once_more(web: StandIn) -> None:
    before = spec_of(web)
    web.world.kubelet.levers.crashing_images.clear()
    said = kubectl_tapp(web, "retry", "web", "-y", "--wait")
    assert said.code == 0
    assert images(web) == ["nginx:bad"] * 3
    assert spec_of(web) == before
    tapp = web.world.get("tapps", "web")
    assert "rolledBack" not in tapp["status"]
    # The annotation names the rollback, so a further rollback needs a further retry.
    assert tapp["metadata"]["annotations"][RETRY].startswith("v1-")
    again = kubectl_tapp(web, "retry", "web", "-y")
    assert again.code == 1
    assert "web has nothing to retry" in again.err


def test_retry_of_a_revision_that_fails_again_ends_with_a_rollback(web: StandIn) -> None:
    assert kubectl_tapp(web, "retry", "web", "-y").code == 0
    web.world.run(30)
    assert images(web)[0] == "nginx:bad"
    web.world.run(240)
    assert images(web) == ["nginx:1"] * 3
    assert kubectl_tapp(web, "retry", "web", "--dry-run=server").code == 0
