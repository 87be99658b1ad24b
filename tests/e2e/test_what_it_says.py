"""The status while the API server says no: quotas, other people's pods, lost claims."""

from __future__ import annotations

import pytest

from .app import App, tapp, template
from .kube import Json
from .metacontroller import Controller
from .test_claims import stored
from .test_crd import Kubectl

pytestmark = pytest.mark.e2e
SOON = 90.0


def quota(name: str, **hard: str) -> Json:
    """A quota of the test's namespace."""
    body: Json = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name}}
    return {**body, "spec": {"hard": {key.replace("_", "/"): value for key, value in hard.items()}}}


def counted(app: App, name: str) -> None:
    """Waits until the quota is enforced."""
    app.until(
        lambda: bool(
            (app.kube.get("v1", "resourcequotas", app.namespace, name).get("status") or {}).get(
                "used"
            )
        ),
        "the quota counts",
    )


def test_a_quota_that_refuses_pods_is_said_and_healed(
    app: App, kubectl: Kubectl, tapps: Controller
) -> None:
    """Then the events have the API server's words, and the reason stands in `kubectl get`."""
    app.apply(quota("two", pods="2"))
    counted(app, "two")
    app.apply(tapp(replicas=3))
    app.until(lambda: len(app.pods) == 2, "two of three are there")
    assert "PodsNotCreated" not in app.condition("Degraded")
    app.until(
        lambda: app.condition("Degraded").startswith("True PodsNotCreated"), "it is said", SOON
    )
    assert "kubectl describe" in app.condition("PodsNotCreated")
    listed = kubectl("get", "tapp", "-n", app.namespace)
    assert "2/3" in listed
    assert "PodsNotCreated" in listed
    if tapps.real:  # the simulator's Metacontroller writes no events
        assert "exceeded quota" in kubectl("describe", "tapp", "web", "-n", app.namespace)
    app.kube.delete("v1", "resourcequotas", app.namespace, "two")
    app.nudge()
    app.settle()
    assert app.condition("Degraded").startswith("False AsExpected")


def test_somebody_elses_pod_of_that_name_is_said(app: App) -> None:
    """Metacontroller takes `AlreadyExists` for success, and no event tells of it."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-1"}}
    app.apply({**pod, "spec": template()["spec"]})
    app.apply(tapp(replicas=2))
    app.until(
        lambda: app.condition("Degraded").startswith("True PodsNotCreated"), "it is said", SOON
    )
    assert "instances 1 since" in app.condition("PodsNotCreated")
    app.kube.delete("v1", "pods", app.namespace, "web-1", gracePeriodSeconds=0)
    app.nudge()
    app.settle()
    assert app.status["ready"] == "2/2"


def test_a_claim_that_a_quota_refused_is_made_when_there_is_room(app: App) -> None:
    """Its pod waits without a node meanwhile, which is said, and runs in the end."""
    app.apply(quota("one", persistentvolumeclaims="1"))
    counted(app, "one")
    app.apply(stored())
    app.until(lambda: len(app.pods) == 2 and len(app.claims()) == 1, "one claim is refused")
    app.until(lambda: 'persistentvolumeclaim "data-web-' in app.condition("Degraded"), "said", SOON)
    app.kube.delete("v1", "resourcequotas", app.namespace, "one")
    app.nudge()
    app.settle()
    assert sorted(app.claims()) == ["data-web-0", "data-web-1"]


def test_a_template_that_was_copied_from_a_job_runs(app: App) -> None:
    """Its controller-uid is the Job's; Metacontroller refuses children that carry another one."""
    copied = template()
    copied["metadata"]["labels"]["controller-uid"] = "00000000-0000-4000-8000-000000000000"
    app.apply(tapp(template=copied)).settle()
    assert app.status["ready"] == "3/3"
