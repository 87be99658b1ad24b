"""Tests the scrape configuration for Prometheus, in any order of components."""

import pytest
import yaml

from hooks.app import create_app
from hooks.service.settings import Settings
from tests.contract.manifests import METACONTROLLER, composed, key_of_secret, only, pod_spec

ORDERS = [
    ("monitoring",),
    ("monitoring", "tls-cert-manager"),
    ("tls-cert-manager", "monitoring"),
    ("bearer-token", "monitoring", "tls-cert-manager", "pod-status"),
    ("tls-cert-manager", "pod-status", "bearer-token", "monitoring"),
]


@pytest.mark.parametrize("order", ORDERS, ids="+".join)
def test_service_is_scraped_with_its_scheme_in_any_order_of_components(
    order: tuple[str, ...],
) -> None:
    documents = composed(*order)
    monitor, service = only(documents, "ServiceMonitor"), only(documents, "Service")
    (endpoint,) = monitor["spec"]["endpoints"]
    (port,) = service["spec"]["ports"]
    tls = "tls-cert-manager" in order
    assert endpoint["scheme"] == endpoint["port"] == port["name"] == ("https" if tls else "http")
    assert ("tlsConfig" in endpoint) == tls
    if tls:
        certificate = only(documents, "Certificate", "tapp-hooks")["spec"]
        key = key_of_secret("ca.crt", "tls")
        assert key.pop("namespace") == monitor["metadata"]["namespace"]
        assert endpoint["tlsConfig"]["ca"]["secret"] == key
        assert key["name"] == certificate["secretName"]
        assert endpoint["tlsConfig"]["serverName"] in certificate["dnsNames"]
    labels = monitor["spec"]["selector"]["matchLabels"].items()
    assert labels <= service["metadata"]["labels"].items()
    assert "jobLabel" not in monitor["spec"]  # so that the job is named after the Service


def test_metrics_can_be_read_without_a_token(tmp_path_factory: pytest.TempPathFactory) -> None:
    (endpoint,) = only(composed("monitoring"), "ServiceMonitor")["spec"]["endpoints"]
    tokens = tmp_path_factory.mktemp("token") / "accepted"
    tokens.write_text("secret")
    client = create_app(Settings(auth_token_file=tokens, log_level="ERROR")).test_client()
    assert client.get(endpoint["path"]).status_code == 200
    assert client.post("/sync", json={}).status_code == 401


def test_network_policy_admits_the_operators_prometheus() -> None:
    allowed = only(composed("monitoring"), "NetworkPolicy")["spec"]["ingress"][0]["from"]
    labels = [each.get("podSelector", {}).get("matchLabels") for each in allowed]
    assert {"app.kubernetes.io/name": "prometheus"} in labels


def test_metacontroller_is_scraped_in_its_namespace_at_its_port() -> None:
    """Compares the PodMonitor of Metacontroller with its overlay: namespace, port and container
    name.

    The alerts select Metacontroller by the name of its container.
    """
    monitor = only(composed("monitoring"), "PodMonitor")["spec"]
    patch = yaml.safe_load((METACONTROLLER / "arguments.yaml").read_text())
    (container,) = patch["spec"]["template"]["spec"]["containers"]
    assert monitor["namespaceSelector"]["matchNames"] == [patch["metadata"]["namespace"]]
    (endpoint,) = monitor["podMetricsEndpoints"]
    assert endpoint["port"] in {port["name"] for port in container["ports"]}
    assert container["name"] == "metacontroller"


def test_alert_about_the_service_selects_its_job() -> None:
    documents = composed("monitoring")
    service = only(documents, "Service")["metadata"]
    groups = only(documents, "PrometheusRule")["spec"]["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    (down,) = [rule["expr"] for rule in rules if rule["alert"] == "TAppHooksDown"]
    assert f'namespace="{service["namespace"]}", job="{service["name"]}"' in down


def test_dashboard_has_the_label_that_grafana_looks_for() -> None:
    config = only(composed("monitoring"), "ConfigMap", "tapp-dashboard")
    assert config["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert yaml.safe_load(config["data"]["tapp.json"])["uid"] == "tapp"


def test_monitoring_does_not_change_the_pods_of_the_service() -> None:
    assert pod_spec(composed("monitoring")) == pod_spec(composed())
