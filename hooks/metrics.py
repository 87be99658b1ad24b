"""Prometheus metrics; under gunicorn the workers share them through PROMETHEUS_MULTIPROC_DIR."""

import os

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Histogram,
    generate_latest,
    multiprocess,
)
from prometheus_client.registry import REGISTRY

__all__ = ["ACTIONS", "CONTENT_TYPE_LATEST", "REQUESTS", "SECONDS", "exposition"]

REQUESTS = Counter("tapp_hook_requests", "Requests answered.", ["hook", "code"])
SECONDS = Histogram(
    "tapp_hook_seconds",
    "Seconds from the request's bytes to the answer's.",
    ["hook"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
ACTIONS = Counter(
    "tapp_hook_actions", "Instances acted on, by action; Keep is left out.", ["action"]
)


def exposition() -> bytes:
    """All metrics in Prometheus' text format, summed over the workers."""
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return generate_latest(REGISTRY)
    registry = CollectorRegistry()
    multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return generate_latest(registry)
