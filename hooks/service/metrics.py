"""The Prometheus metrics of the service.

Under gunicorn each worker writes its values into files in PROMETHEUS_MULTIPROC_DIR, and
`exposition` adds up the values of all workers.
"""

import os

if not os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
    # prometheus_client would use an empty value as the name of a directory.
    os.environ.pop("PROMETHEUS_MULTIPROC_DIR", None)

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
    multiprocess,
)
from prometheus_client.registry import REGISTRY

CONTENT_TYPE = CONTENT_TYPE_LATEST
REQUESTS = Counter("tapp_hook_requests", "Requests answered.", ["hook", "code"])
SECONDS = Histogram(
    "tapp_hook_seconds",
    "Seconds from the request's bytes to the answer's.",
    ["hook"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
IN_FLIGHT = Gauge(
    "tapp_hook_requests_in_flight",
    "Requests that are being decided or wait for their turn, all workers together.",
    multiprocess_mode="livesum",
)
PACED = Histogram(
    "tapp_hook_pace_seconds",
    "Seconds that syncs of large TApps waited; syncs without a wait are not counted.",
    buckets=(0.05, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5),
)
BODY_BYTES = Histogram(
    "tapp_hook_body_bytes",
    "Bytes of the requests' bodies.",
    ["hook"],
    buckets=[1 << exponent for exponent in (12, 14, 16, 18, 20, 22, 24, 25, 26, 27, 28, 29, 30)],
)
BODY_LIMIT = Gauge(
    "tapp_hook_body_limit_bytes",
    "The largest body that is not refused.",
    multiprocess_mode="livemax",
)
ACTIONS = Counter(
    "tapp_hook_actions", "Instances acted on, by action; Keep is left out.", ["action"]
)
_PODS = Counter("tapp_hook_pods", "Pods of syncs, known from the memo or read anew.", ["how"])
PODS_KNOWN, PODS_READ = _PODS.labels("known"), _PODS.labels("read")
MEMO_BYTES = Gauge(
    "tapp_hook_memo_bytes",
    "Bytes that the memos take, all workers together.",
    multiprocess_mode="livesum",
)
EVENTS = Counter(
    "tapp_hook_events", "Events of TApps (TAPP_EVENTS), by what became of them.", ["outcome"]
)
RESIZES = Counter(
    "tapp_hook_resizes",
    "Resizes of pods that were asked for (TAPP_RESIZE), by what became of them.",
    ["outcome"],
)
HOLDS = Counter(
    "tapp_hook_holds",
    "Holds on pods: pods that were told what is wanted, and holds whose limit had passed.",
    ["outcome"],
)


def exposition() -> bytes:
    """Returns all metrics in the text format of Prometheus, summed over all workers."""
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return generate_latest(REGISTRY)
    registry = CollectorRegistry()
    multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return generate_latest(registry)
