"""Serves metrics that a test sets, in place of a metrics server for the real
HorizontalPodAutoscaler.
"""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import trustme

from .kube import Json, Kube

VERSION = "metrics.k8s.io/v1beta1"
EXTERNAL = "external.metrics.k8s.io/v1beta1"


def resources(version: str) -> Json:
    """Returns the response to discovery."""
    name, kind = ("pods", "PodMetrics") if version == VERSION else ("*", "ExternalMetricValueList")
    entry = {"name": name, "namespaced": True, "kind": kind, "verbs": ["get", "list"]}
    found: Json = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version}
    return {**found, "resources": [entry]}


def external(value: int) -> Json:
    """Returns an external metric of this value, for any requested metric."""
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    item = {"metricName": "any", "metricLabels": {}, "timestamp": moment, "value": str(value)}
    return {
        "kind": "ExternalMetricValueList",
        "apiVersion": EXTERNAL,
        "metadata": {},
        "items": [item],
    }


def metrics_of(kube: Kube, path: str, cpu: str) -> Json:
    """Returns the usage of the pods that a request selects; all pods use the same."""
    asked = urlsplit(path)
    namespace = asked.path.split("/")[5]
    selector = parse_qs(asked.query).get("labelSelector", [""])[0]
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    pods = kube.list_all("v1", "pods", namespace, labelSelector=selector)
    items = [
        {
            "metadata": {"name": pod["metadata"]["name"], "namespace": namespace},
            "timestamp": moment,
            "window": "1s",
            "containers": [
                {"name": one["name"], "usage": {"cpu": cpu, "memory": "1Mi"}}
                for one in pod["spec"]["containers"]
            ],
        }
        for pod in pods
    ]
    return {"kind": "PodMetricsList", "apiVersion": VERSION, "metadata": {}, "items": items}


@contextmanager
def usage(kube: Kube, namespace: str, cpu: str) -> Iterator[None]:
    """Serves this CPU usage for every container."""
    with served(kube, namespace, VERSION, lambda path: metrics_of(kube, path, cpu)):
        yield


@contextmanager
def served(
    kube: Kube, namespace: str, version: str, answer: Callable[[str], Json]
) -> Iterator[None]:
    """Serves the metrics of a group and version, registered as an APIService."""

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            """Responds with discovery or a metric."""
            found = answer(self.path) if "/namespaces/" in self.path else resources(version)
            body = json.dumps(found).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Logs nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("localhost").configure_cert(context)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    group, number = version.split("/")
    service = {"name": "usage", "namespace": namespace, "port": server.server_address[1]}
    registration = {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": f"{number}.{group}"},
        "spec": {"group": group, "version": number, "service": service,
                 "insecureSkipTLSVerify": True, "groupPriorityMinimum": 100,
                 "versionPriority": 100},
    }  # fmt: skip
    kube.apply({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "usage", "namespace": namespace},
        "spec": {"type": "ExternalName", "externalName": "localhost"},
    })  # fmt: skip
    kube.apply(registration)
    try:
        yield
    finally:
        kube.delete("apiregistration.k8s.io/v1", "apiservices", None, f"{number}.{group}")
        server.shutdown()
        server.server_close()
