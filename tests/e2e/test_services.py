"""A Service for each instance, on a real API server with defaults, refusals and foreign
Services.
"""

from __future__ import annotations

from typing import Any

import pytest

from .app import App, each, example, tapp
from .kube import Json

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600), pytest.mark.usefixtures("exposing")]
NAMES = ["web-0", "web-1"]
LATE = 60.0
"""Seconds to wait for a message; the service reports a missing Service after 30 s."""


def exposed(port: int = 80, **spec: Any) -> Json:
    """Returns a TApp of two instances with a Service each."""
    template = {"spec": {"ports": [{"port": port}], **spec}}
    return tapp(replicas=2, serviceTemplate=template)


def plain(app: App, name: str) -> Json:
    """Returns a Service of a user."""
    metadata = {"name": name, "namespace": app.namespace}
    spec = {"ports": [{"port": 9}], "selector": {"app": "mine"}}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def services(app: App) -> dict[str, Json]:
    """Returns the Services by name."""
    listed = app.kube.list_all("v1", "services", app.namespace)
    return {found["metadata"]["name"]: found for found in listed}


def refused(app: App) -> str:
    """Returns the message of the condition."""
    return app.condition("ServicesNotCreated")


def test_instance_has_a_service_until_its_number_is_removed(app: App) -> None:
    app.apply(*example("service-each")).settle()
    names = [f"room-{id}" for id in range(3)]
    app.until(lambda: [*services(app)] == names, "each instance has its Service")
    ports = [found["spec"]["ports"][0]["nodePort"] for found in services(app).values()]
    assert ports == [30_080, 30_081, 30_082]
    app.patch(statuses={"1": "Killed"}).settle()
    assert [*services(app)] == names
    app.patch(replicas=1).settle()
    app.until(lambda: [*services(app)] == names[:1], "the Services of removed numbers are gone")
    assert app.idle()


def test_headless_service_gives_each_pod_a_dns_name(app: App) -> None:
    app.apply(*example("headless-service")).settle()
    specs = [pod["spec"] for pod in app.pods.values()]
    assert [spec["hostname"] for spec in specs] == ["peers-0", "peers-1", "peers-2"]
    assert {spec["subdomain"] for spec in specs} == {"peers"}

    def published() -> set[str]:
        slices = app.kube.list_all("discovery.k8s.io/v1", "endpointslices", app.namespace)
        return {end.get("hostname") for one in slices for end in one.get("endpoints") or []}

    app.until(
        lambda: published() == {"peers-0", "peers-1", "peers-2"}, "all three pods have DNS names"
    )
    assert app.wrote(*each("create Pod", "peers", 0, 1, 2))
    assert app.idle()


def test_edit_of_the_service_template_changes_services_and_no_pod(app: App) -> None:
    filled = {"clusterIP": "", "sessionAffinity": "None", "publishNotReadyAddresses": False}
    app.apply(exposed(type="LoadBalancer", **filled)).settle()
    app.until(lambda: [*services(app)] == NAMES, "each instance has its Service")
    app.quiet()
    before, pods = services(app), app.uids()
    assert app.idle()
    assert {name: found["metadata"]["resourceVersion"] for name, found in before.items()} == {
        name: found["metadata"]["resourceVersion"] for name, found in services(app).items()
    }
    app.patch(serviceTemplate={"spec": {"ports": [{"port": 81, "name": "http"}]}})
    app.until(
        lambda: [each["spec"]["ports"][0]["port"] for each in services(app).values()] == [81, 81],
        "both Services have the other port",
    )
    app.quiet()
    after = services(app)
    assert [each["spec"]["clusterIP"] for each in after.values()] == [
        each["spec"]["clusterIP"] for each in before.values()
    ]
    assert app.uids() == pods
    assert refused(app) == ""
    assert app.idle()


def test_foreign_service_is_reported_and_left_unchanged(app: App) -> None:
    """One exists before the TApp, and one has an instance's labels, as after `kubectl
    expose pod`.
    """
    app.kube.apply(plain(app, "web-0"))
    app.apply(exposed())
    app.until(lambda: "instance 0 since" in refused(app), "ServicesNotCreated is reported", LATE)
    assert "web-1" in services(app)
    assert services(app)["web-0"]["spec"]["selector"] == {"app": "mine"}
    assert len(app.pods) == 2
    app.kube.delete("v1", "services", app.namespace, "web-0")
    # No request contained that Service, so its deletion is no event, and the retry may take
    # minutes.
    app.trigger_sync()
    app.until(lambda: refused(app) == "", "instance 0 gets its Service", LATE)
    labels = app.pod(1)["metadata"]["labels"]
    app.patch(serviceTemplate=None).quiet()
    app.until(lambda: not services(app), "no Service is left without a template")
    copied = plain(app, "web-1")
    copied["metadata"]["labels"] = labels
    made = app.kube.apply(copied)
    app.patch(serviceTemplate=exposed()["spec"]["serviceTemplate"])
    app.until(
        lambda: "instance 1: a Service with the name of the pod" in refused(app),
        "the foreign Service is reported",
    )
    app.quiet()
    found = services(app)
    assert found["web-1"]["spec"] == made["spec"]
    assert found["web-0"]["spec"]["selector"]["tapp_instance_key"] == "0"
    app.patch(replicas=0).quiet()
    app.until(lambda: [*services(app)] == ["web-1"], "only the foreign Service is left")


@pytest.mark.parametrize("propagation", ["Foreground", "Orphan"])
def test_services_are_deleted_with_their_tapp_unless_orphaned(app: App, propagation: str) -> None:
    app.apply(exposed()).settle()
    app.until(lambda: [*services(app)] == NAMES, "each instance has its Service")
    app.delete(propagationPolicy=propagation)
    if propagation == "Orphan":
        assert [*services(app)] == NAMES
        for number, name in enumerate(NAMES):
            app.kube.delete("v1", "services", app.namespace, name)
            app.delete_pod(number)
    app.until(lambda: not services(app), "their Services are gone")
