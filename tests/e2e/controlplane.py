"""Runs etcd, kube-apiserver, kube-controller-manager and kube-scheduler as processes on loopback.

The CustomResourceDefinitions are applied before kube-controller-manager starts, because its garbage
collector reads new kinds only every 30 seconds. Endpoints may not contain a loopback address. The
ServiceAccount admission stays on, so that pods get the same additions as in a cluster.
"""

from __future__ import annotations

import contextlib
import secrets
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import yaml

from .audit import AuditLog
from .kube import Kube, KubeError, documents
from .process import Process, ProcessError, free_ports

HERE = Path(__file__).resolve().parent
NEEDED = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
CONTROLLERS = (
    "namespace",
    "garbage-collector",
    "serviceaccount",
    "serviceaccount-token",
    "root-ca-certificate-publisher",
    "persistentvolumeclaim-protection",
    "persistentvolume-protection",
    "persistentvolume-binder",
    "pod-garbage-collector",
    "node-lifecycle",
    "taint-eviction",
    "disruption",
    "replicaset",
    "deployment",
    "statefulset",
    "job",
    "endpointslice",
    "resourcequota",
    "clusterrole-aggregation",
    "validatingadmissionpolicy-status",
    "horizontal-pod-autoscaler",
)
# Seconds after the last report of a node until it is lost, and then until its pods are deleted.
NODE_GRACE = 8
EVICTION_GRACE = 3


class LocalControlPlane:
    """A complete control plane in one directory, with fake nodes only.

    `stop` keeps the directory.
    """

    backend = "local"
    context: str | None = None
    hook_in_cluster = False

    def __init__(
        self,
        binaries: Path,
        directory: Path,
        crds: Sequence[Path] = (),
        api_flags: Sequence[str] = (),
        gates: str = "",
    ) -> None:
        """Takes `gates`, the feature gates of all processes, in the form of their flag:
        `A=true,B=true`.
        """
        self.directory = directory
        self.kubeconfig = directory / "admin.kubeconfig"
        self.audit = AuditLog(directory / "audit.log")
        self.seconds = 0.0
        """Seconds until the control plane was up."""
        self.version = "not started"
        self.binaries = binaries
        self._crds = list(crds)
        self._api_flags = list(api_flags)
        self._gates = [f"--feature-gates={gates}"] if gates else []
        self._token = secrets.token_hex(16)
        etcd, peer, api, kcm, scheduler = free_ports(5)
        self._ports = {"kcm": kcm, "scheduler": scheduler}
        self._etcd_url = f"http://127.0.0.1:{etcd}"
        self._url = f"https://127.0.0.1:{api}"
        self._ca = directory / "pki" / "apiserver.crt"
        self._prepare()
        self._etcd = self._etcd_process(f"http://127.0.0.1:{peer}")
        self._api = self._api_process(api)
        self._kcm = self._kcm_process(kcm)
        self._scheduler = self._scheduler_process(scheduler)

    # Life

    def start(self) -> None:
        """Starts all processes; raises ProcessError with the end of the log if one does not start.

        This takes about six seconds on two cores.
        """
        begun = time.monotonic()
        self._etcd.start()
        self._etcd.wait_http(f"{self._etcd_url}/health")
        self.start_api()
        with contextlib.closing(Kube(self.kubeconfig)) as kube:
            for file in self._crds:
                apply_definitions(kube, file)
            self.version = str(kube.request("GET", "/version")["gitVersion"])
            self._kcm.start()
            self._scheduler.start()
            self._wait_healthy(self._kcm, "kcm")
            self._wait_healthy(self._scheduler, "scheduler")
            self._kcm.wait_until(
                lambda: kube.find("v1", "serviceaccounts", "default", "default") is not None,
                "default service account",
            )
        self.seconds = time.monotonic() - begun

    def stop(self) -> None:
        """Stops the processes: the ones that write first, etcd last."""
        for process in (self._scheduler, self._kcm, self._api, self._etcd):
            with contextlib.suppress(ProcessError):
                process.stop()

    def start_api(self) -> None:
        """Starts kube-apiserver on the existing data."""
        self._api.start()
        self._api.wait_http(f"{self._url}/readyz", token=self._token, ca=self._ca)

    def restart_api(self, *, kill: bool = False, down: float = 0) -> None:
        """Ends kube-apiserver, waits `down` seconds, and starts it on the same data."""
        self._api.stop(kill=kill)
        time.sleep(down)
        self.start_api()

    def restart_controller_manager(self, *, kill: bool = False, down: float = 0) -> None:
        """Ends kube-controller-manager, waits `down` seconds, and starts it with empty caches."""
        self._kcm.stop(kill=kill)
        time.sleep(down)
        self._kcm.start()
        self._wait_healthy(self._kcm, "kcm")

    def become(self, binaries: Path) -> None:
        """Restarts all processes but etcd from other binaries, the API server first, as in an
        upgrade.
        """
        self.binaries = binaries
        self._api.stop()
        self._api.becomes(binaries / self._api.name)
        self.start_api()
        for process, port in ((self._kcm, "kcm"), (self._scheduler, "scheduler")):
            process.stop()
            process.becomes(binaries / process.name)
            process.start()
            self._wait_healthy(process, port)

    @property
    def pids(self) -> dict[str, int]:
        """Process ids of the running processes, by name."""
        all_of_them = (self._etcd, self._api, self._kcm, self._scheduler)
        return {process.name: process.pid for process in all_of_them if process.alive}

    @property
    def control_plane(self) -> LocalControlPlane:
        """This control plane itself."""
        return self

    def logs(self) -> list[Path]:
        """Returns all log files, including the audit log."""
        return [*sorted(self.directory.glob("*.log"))]

    def _wait_healthy(self, process: Process, port: str) -> None:
        process.wait_http(f"https://127.0.0.1:{self._ports[port]}/healthz")

    # Files and commands

    def _prepare(self) -> None:
        pki = self.directory / "pki"
        pki.mkdir(parents=True)
        make_key_pair(pki / "sa.key", pki / "sa.pub")
        tokens = self.directory / "tokens.csv"
        tokens.touch(mode=0o600)
        tokens.write_text(f"{self._token},e2e-admin,e2e-admin,system:masters\n")
        write_kubeconfig(self.kubeconfig, self._url, self._ca, self._token)
        for name in NEEDED:
            if not (self.binaries / name).exists():
                raise ProcessError(f"{name} is missing in {self.binaries}")

    def _process(self, name: str, *arguments: str) -> Process:
        command = [str(self.binaries / name), *arguments]
        return Process(name, command, self.directory / f"{name}.log", directory=self.directory)

    def _etcd_process(self, peer: str) -> Process:
        return self._process(
            "etcd",
            "--name=default",
            f"--data-dir={self.directory / 'etcd'}",
            "--unsafe-no-fsync",
            f"--listen-client-urls={self._etcd_url}",
            f"--advertise-client-urls={self._etcd_url}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--log-level=warn",
        )

    def _api_process(self, port: int) -> Process:
        pki = self.directory / "pki"
        return self._process(
            "kube-apiserver",
            f"--etcd-servers={self._etcd_url}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
            f"--cert-dir={pki}",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--allow-privileged",
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
            f"--service-account-key-file={pki / 'sa.pub'}",
            f"--service-account-signing-key-file={pki / 'sa.key'}",
            f"--token-auth-file={self.directory / 'tokens.csv'}",
            "--authorization-mode=Node,RBAC",
            "--shutdown-watch-termination-grace-period=1s",
            f"--default-not-ready-toleration-seconds={EVICTION_GRACE}",
            f"--default-unreachable-toleration-seconds={EVICTION_GRACE}",
            f"--audit-policy-file={HERE / 'audit-policy.yaml'}",
            f"--audit-log-path={self.audit.file}",
            "--audit-log-maxsize=100000",
            *self._api_flags,
            *self._gates,
        )

    def _kcm_process(self, port: int) -> Process:
        pki = self.directory / "pki"
        groups = ("podgroup-protection",) if "GenericWorkload=true" in "".join(self._gates) else ()
        names = ",".join(f"{name}-controller" for name in (*CONTROLLERS, *groups))
        return self._process(
            "kube-controller-manager",
            f"--kubeconfig={self.kubeconfig}",
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--cert-dir={pki / 'kcm'}",
            "--authorization-always-allow-paths=/healthz,/metrics",
            f"--root-ca-file={self._ca}",
            f"--service-account-private-key-file={pki / 'sa.key'}",
            "--use-service-account-credentials",
            "--kube-api-qps=200",
            "--kube-api-burst=400",
            "--node-monitor-period=1s",
            f"--node-monitor-grace-period={NODE_GRACE}s",
            "--horizontal-pod-autoscaler-sync-period=1s",
            f"--controllers={names}",
            *self._gates,
        )

    def _scheduler_process(self, port: int) -> Process:
        settings = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {"kubeconfig": str(self.kubeconfig), "qps": 200, "burst": 400},
        }
        file = self.directory / "scheduler.yaml"
        file.write_text(yaml.safe_dump(settings))
        return self._process(
            "kube-scheduler",
            f"--config={file}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--cert-dir={self.directory / 'pki' / 'scheduler'}",
            "--authorization-always-allow-paths=/healthz,/metrics",
            *self._gates,
        )


def make_key_pair(private: Path, public: Path) -> None:
    """Creates the key pair with which the API server signs service account tokens."""
    openssl = shutil.which("openssl")
    if openssl is None:
        raise ProcessError("openssl is needed to make the service account key")
    for call in (
        [openssl, "genrsa", "-out", str(private), "2048"],
        [openssl, "rsa", "-in", str(private), "-pubout", "-out", str(public)],
    ):
        subprocess.run(call, check=True, capture_output=True)


def write_kubeconfig(file: Path, server: str, ca: Path, token: str) -> None:
    """Writes a kubeconfig for a bearer token that only its owner can read."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "e2e",
        "clusters": [
            {"name": "e2e", "cluster": {"server": server, "certificate-authority": str(ca)}}
        ],
        "users": [{"name": "e2e", "user": {"token": token}}],
        "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": "e2e"}}],
    }
    file.touch(mode=0o600)
    file.write_text(yaml.safe_dump(content))


def apply_definitions(kube: Kube, file: Path) -> None:
    """Applies the CustomResourceDefinitions of a file and waits until the API server serves
    them.
    """
    for document in documents(file):
        if document["kind"] != "CustomResourceDefinition":
            continue
        kube.apply(document)
        wait_established(kube, document["metadata"]["name"])


def wait_established(kube: Kube, name: str) -> None:
    """Waits until the API server serves the kind of a definition."""
    deadline = time.monotonic() + 60
    while True:
        found = kube.get("apiextensions.k8s.io/v1", "customresourcedefinitions", None, name)
        conditions = {
            each["type"]: each["status"]
            for each in (found.get("status") or {}).get("conditions") or []
        }
        version = next(each["name"] for each in found["spec"]["versions"] if each["served"])
        if conditions.get("Established") == "True":
            with contextlib.suppress(KubeError):
                kube.request("GET", f"/apis/{found['spec']['group']}/{version}")
                return
        if time.monotonic() > deadline:
            raise ProcessError(f"{name} is not established after a minute: {conditions}")
        time.sleep(0.05)
