"""Runs the service of this checkout under gunicorn, with any number of replicas.

Each replica is a gunicorn master. All replicas share one port (SO_REUSEPORT), like pods behind a
Service. A test can stop, kill and restart each of them separately.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from .controlplane import EVICTION_GRACE
from .process import Process, free_ports
from .realnode.images import PAUSE

REPOSITORY = Path(__file__).resolve().parents[2]


class HookService:
    """The service on a loopback port that stays the same while replicas start and stop."""

    def __init__(
        self,
        directory: Path,
        *,
        workers: int = 2,
        settings: dict[str, str] | None = None,
        checkout: Path = REPOSITORY,
        port: int | None = None,
    ) -> None:
        self._checkout = checkout
        self.port = port or free_ports(1)[0]
        self.url = f"http://127.0.0.1:{self.port}"
        self._directory = directory
        self._workers = workers
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("TAPP_", "GUNICORN"))}
        self._environment = inherited | {
            "HOST": "127.0.0.1",
            "PORT": str(self.port),
            "WEB_CONCURRENCY": str(workers),
            "TAPP_TOLERATION_SECONDS": str(EVICTION_GRACE),
            "TAPP_PULLER_IMAGE": PAUSE,
            "PYTHONPATH": str(checkout),
        }
        self._environment |= settings or {}
        self.replicas: list[Process] = []

    def start(self, replicas: int = 1) -> HookService:
        """Starts replicas and waits until each of them serves."""
        self.scale(replicas)
        return self

    def stop(self, *, kill: bool = False) -> None:
        """Stops all replicas, so that connections are refused from then on."""
        while self.replicas:
            self.replicas.pop().stop(kill=kill)

    def restart(self, *, kill: bool = False) -> None:
        """Stops and starts the replicas, one after another."""
        for process in self.replicas:
            process.stop(kill=kill)
            self._launch(process)

    def configure(self, **settings: str) -> None:
        """Restarts every replica with these settings in addition to its own."""
        replicas = len(self.replicas)
        self.stop()
        self._environment = self._environment | settings
        self.start(replicas)

    def scale(self, replicas: int) -> None:
        """Starts or stops replicas until their number is `replicas`."""
        while len(self.replicas) > replicas:
            self.replicas.pop().stop()
        while len(self.replicas) < replicas:
            process = self._process(len(self.replicas))
            self.replicas.append(process)
            self._launch(process)

    @property
    def log(self) -> str:
        """The log of all replicas so far."""
        logs = sorted(self._directory.glob("hook-*.log"))
        return "".join(each.read_text(errors="replace") for each in logs)

    def _process(self, number: int) -> Process:
        command: list[str | Path] = [
            sys.executable, "-m", "gunicorn", "--config", self._checkout / "gunicorn.conf.py",
            "--reuse-port", "hooks.app:create_app()",
        ]  # fmt: skip
        log = self._directory / f"hook-{number}.log"
        return Process(
            f"hook-{number}", command, log, environment=self._environment, directory=self._checkout
        )

    def _launch(self, process: Process) -> None:
        seen = process.log.stat().st_size if process.log.exists() else 0
        process.start()

        def booted() -> bool:
            # Another replica may answer on the port, so wait for the workers in this replica's log
            # first.
            with process.log.open("rb") as log:
                log.seek(seen)
                return log.read().count(b"Booting worker") >= self._workers

        process.wait_until(booted, "workers")
        process.wait_http(f"{self.url}/healthz")
