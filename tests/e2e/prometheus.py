"""Runs Prometheus and kube-state-metrics as processes of this host, with the shipped configuration.

There is no Prometheus operator, so the targets' labels are written here as the operator would set
them. Prometheus is Debian's package, kube-state-metrics the published module (binaries/build.py).
"""

from __future__ import annotations

import json
import math
import os
import shutil
import urllib.parse
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.monitoring.monitoring_files import RULES

from .binaries import build
from .process import Process, free_ports
from .waiting import until

Points = list[tuple[float, float]]
SECONDS = 1
"""Seconds between scrapes, and between evaluations of the rules."""


@dataclass(frozen=True)
class Target:
    """An endpoint to scrape, with the labels that the operator's configuration would set."""

    job: str
    address: str
    labels: dict[str, str] = field(default_factory=dict)
    honor_labels: bool = False

    @property
    def config(self) -> dict[str, Any]:
        """The entry of the target in `scrape_configs`."""
        return {
            "job_name": self.job,
            "honor_labels": self.honor_labels,
            "static_configs": [{"targets": [self.address], "labels": self.labels}],
        }


class Prometheus:
    """The server with the shipped rules; a context manager."""

    def __init__(self, binary: str, directory: Path, targets: Sequence[Target]) -> None:
        (port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{port}"
        (directory / "rules.yaml").write_text(yaml.safe_dump(RULES))
        config = directory / "prometheus.yaml"
        often = {f"{name}_interval": f"{SECONDS}s" for name in ("scrape", "evaluation")}
        scraped = [each.config for each in targets]
        made = {"global": often, "rule_files": ["rules.yaml"], "scrape_configs": scraped}
        config.write_text(yaml.safe_dump(made))
        self._process = Process(
            "prometheus",
            [
                binary,
                f"--config.file={config}",
                f"--storage.tsdb.path={directory / 'series'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            directory / "prometheus.log",
            directory=directory,
        )

    def __enter__(self) -> Prometheus:
        self._process.start()
        self._process.wait_http(f"{self.url}/-/ready")
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stop()

    def api(self, path: str, **parameters: str | float) -> Any:
        """Returns the data of a response of the HTTP API.

        Raises an error if the request is refused.
        """
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"{self.url}/api/v1/{path}?{query}", timeout=30) as answer:
            found = json.load(answer)
        assert found["status"] == "success", found
        return found["data"]

    def at(self, query: str, moment: float | None = None) -> list[tuple[dict[str, str], float]]:
        """Returns labels and value of all series at a time, or now."""
        when = {} if moment is None else {"time": moment}
        found = self.api("query", query=query, **when)["result"]
        return [(each["metric"], float(each["value"][1])) for each in found]

    def value(self, query: str, moment: float | None = None) -> float | None:
        """Returns the value of the only series, or None if there is no series."""
        found = self.at(query, moment)
        assert len(found) <= 1, found
        return found[0][1] if found else None

    def over(self, query: str, begin: float, end: float) -> list[tuple[dict[str, str], Points]]:
        """Returns labels and points (one a second, without NaN) of all series that have points."""
        data = self.api("query_range", query=query, start=begin, end=end, step=SECONDS)
        read = [
            (each["metric"], [(at, float(value)) for at, value in each["values"]])
            for each in data["result"]
        ]
        kept = [(labels, [p for p in points if not math.isnan(p[1])]) for labels, points in read]
        return [(labels, points) for labels, points in kept if points]

    def until(self, query: str, wanted: float, seconds: float = 30) -> None:
        """Waits until a query has this value."""
        until(lambda: self.value(query) == wanted, f"{query} is {wanted}", seconds)


class KubeStateMetrics:
    """The real kube-state-metrics with a configuration for custom resources; a context manager."""

    def __init__(self, binary: str, directory: Path, kubeconfig: Path, config: Path) -> None:
        port, own = free_ports(2)
        self.address = f"127.0.0.1:{port}"
        self._process = Process(
            "kube-state-metrics",
            [
                binary,
                f"--kubeconfig={kubeconfig}",
                f"--custom-resource-state-config-file={config}",
                "--custom-resource-state-only",
                "--host=127.0.0.1",
                f"--port={port}",
                "--telemetry-host=127.0.0.1",
                f"--telemetry-port={own}",
            ],
            directory / "kube-state-metrics.log",
            directory=directory,
        )

    def __enter__(self) -> KubeStateMetrics:
        self._process.start()
        self._process.wait_http(f"http://{self.address}/healthz")
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stop()


def kube_state_metrics() -> str | None:
    """Returns the path of kube-state-metrics, built or in PATH, or None."""
    places = [str(build.kube_state_metrics().bin_dir), os.environ["PATH"]]
    return shutil.which("kube-state-metrics", path=os.pathsep.join(places))
