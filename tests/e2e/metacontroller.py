"""Runs Metacontroller on the API server: the real binary if there is one, or the simulator's.

Both use the token of Metacontroller's service account. Their rights come from Metacontroller's
manifests (`METACONTROLLER_MANIFESTS`) or, without these, from the shipped least-privilege role.
"""

from __future__ import annotations

import copy
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

import pytest
import yaml

from .cluster import REPOSITORY, Cluster
from .definitions import metacontroller_manifests
from .emulation import Emulation
from .kube import Json, Kube, KubeError, documents
from .process import Process, ProcessError, free_ports

ACCOUNT = "metacontroller"
USER = f"system:serviceaccount:{ACCOUNT}:{ACCOUNT}"
LEAST = REPOSITORY / "metacontroller" / "overlays" / "least-privilege" / "cluster-role.yaml"
OUR_RBAC = (Path(__file__).resolve().parent / "metacontroller-rbac.yaml", LEAST)


SHIPPED = (
    REPOSITORY / "metacontroller" / "base" / "composite-controller.yaml",
    REPOSITORY / "metacontroller" / "components" / "pod-status" / "decorator-controller.yaml",
)
API = "metacontroller.k8s.io/v1alpha1"
PLURALS = {
    "CompositeController": "compositecontrollers",
    "DecoratorController": "decoratorcontrollers",
}


class Controller(Protocol):
    """Runs Composite- and DecoratorControllers."""

    real: bool
    description: str
    metrics: str | None
    """`host:port` for scraping from this host, or None."""

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def restart(self, *, kill: bool = False) -> None: ...
    def register(self, manifest: Json, hook: str) -> None: ...
    def unregister(self, name: str) -> None: ...


@contextmanager
def registered(controller: Controller, hook: str) -> Iterator[None]:
    """Registers the shipped controllers with their hooks at `hook`, and unregisters them at the
    end.
    """
    shipped = [each for file in SHIPPED for each in documents(file)]
    for each in shipped:
        controller.register(each, hook)
    try:
        yield
    finally:
        for each in shipped:
            controller.unregister(each["metadata"]["name"])


def with_hook(manifest: Json, hook: str) -> Json:
    """Returns the controller with its webhooks at `hook` and no other change.

    A webhook keeps the path of its URL. The path of a webhook without an address is the hook's
    name.
    """
    pointed = copy.deepcopy(manifest)
    for name, each in (pointed["spec"].get("hooks") or {}).items():
        webhook = each["webhook"]
        path = urlsplit(webhook.get("url", "")).path or webhook.get("path") or f"/{name}"
        webhook["url"] = f"{hook}{path}"
        webhook.pop("service", None)
        webhook.pop("path", None)
    return pointed


def install_account(kube: Kube, environment: Mapping[str, str]) -> list[str]:
    """Applies namespace, service account and roles, but nothing that runs Metacontroller.

    Returns the paths of objects that did not exist before, for clean-up on a foreign cluster.
    """
    own = metacontroller_manifests(environment)
    names = ("metacontroller-namespace.yaml", "metacontroller-rbac.yaml")
    made = []
    for file in [own / name for name in names] if own else OUR_RBAC:
        for document in documents(file):
            path = kube.path_of(document)
            try:
                kube.request("GET", path)
            except KubeError:
                made.append(path)
            kube.apply(document)
    return made


def account_kubeconfig(
    cluster: Cluster, kube: Kube, target: Path, *, namespace: str = ACCOUNT, name: str = ACCOUNT
) -> None:
    """Writes a kubeconfig with the token of a service account, by default Metacontroller's."""
    token = kube.token(namespace, name, 24 * 3600)
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    current = cluster.context or config["current-context"]
    context = next(each for each in config["contexts"] if each["name"] == current)
    context["context"]["user"] = name
    config["users"] = [{"name": name, "user": {"token": token}}]
    config |= {"contexts": [context], "current-context": current}
    target.touch(mode=0o600)
    target.write_text(yaml.safe_dump(config))


class RealMetacontroller:
    """The real binary as a host process."""

    real = True

    def __init__(
        self,
        binary: Path,
        kubeconfig: Path,
        kube: Kube,
        directory: Path,
        *flags: str,
        name: str = "metacontroller",
    ) -> None:
        self.description = f"the real Metacontroller ({version_of(binary)})"
        self._kube = kube
        self._plurals: dict[str, str] = {}
        self._port, metrics = free_ports(2)
        self.metrics: str | None = f"127.0.0.1:{metrics}"
        self.process = Process(
            name,
            [
                binary,
                f"--kubeconfig={kubeconfig}",
                f"--metrics-address={self.metrics}",
                f"--health-probe-bind-address=127.0.0.1:{self._port}",
                "--discovery-interval=1s",
                "--client-go-qps=200",
                "--client-go-burst=400",
                "--workers=20",
                "--zap-log-level=4",
                *flags,
            ],
            directory / f"{name}.log",
            directory=directory,
        )

    def start(self) -> None:
        """Starts the process and waits until it is ready."""
        self.process.start()
        self.process.wait_http(f"http://127.0.0.1:{self._port}/readyz", timeout=90)

    def stop(self) -> None:
        """Stops the process."""
        self.process.stop()

    def restart(self, *, kill: bool = False) -> None:
        """Ends the process and starts it with empty caches."""
        self.process.stop(kill=kill)
        self.start()

    def register(self, manifest: Json, hook: str) -> None:
        """Applies a Composite- or DecoratorController with its hooks at `hook`."""
        self._plurals[manifest["metadata"]["name"]] = PLURALS[manifest["kind"]]
        self._kube.apply(with_hook(manifest, hook))

    def unregister(self, name: str) -> None:
        """Deletes the controller of this name."""
        self._kube.delete(API, self._plurals.pop(name), None, name)


class EmulatedMetacontroller:
    """The simulator's Metacontroller on the real API server, with an emulation for each
    controller.
    """

    real = False
    description = "the simulator's Metacontroller on the real API server"
    metrics: str | None = None

    def __init__(self, kubeconfig: Path) -> None:
        self._kube = Kube(kubeconfig, user_agent="tapp-e2e-emulation")
        self._manifests: dict[str, Json] = {}
        self.running: dict[str, Emulation] = {}

    def start(self) -> None:
        """Starts the registered controllers."""
        for name, manifest in self._manifests.items():
            self.running[name] = Emulation(self._kube, manifest)
            self.running[name].start()

    def stop(self) -> None:
        """Stops the controllers, which stay registered."""
        for each in self.running.values():
            each.stop()
        self.running.clear()

    def restart(self, *, kill: bool = False) -> None:  # noqa: ARG002 - it cannot be killed
        """Stops the controllers and starts them with empty caches."""
        self.stop()
        self.start()

    def register(self, manifest: Json, hook: str) -> None:
        """Starts a Composite- or DecoratorController with its hooks at `hook`, in place of an
        earlier one.
        """
        name = manifest["metadata"]["name"]
        self.unregister(name)
        self._manifests[name] = with_hook(manifest, hook)
        self.running[name] = Emulation(self._kube, self._manifests[name])
        self.running[name].start()

    def unregister(self, name: str) -> None:
        """Stops and forgets the controller of this name."""
        self._manifests.pop(name, None)
        running = self.running.pop(name, None)
        if running is not None:
            running.stop()


class InClusterMetacontroller:
    """Metacontroller and the service in the cluster, from the shipped manifests."""

    real = True
    description = "the real Metacontroller, in the cluster"
    metrics: str | None = None

    def __init__(self, kube: Kube) -> None:
        self._kube = kube

    def start(self) -> None:
        """Does nothing, because the pod of Metacontroller runs already."""

    def stop(self) -> None:
        """Does nothing, because Metacontroller ends with the cluster."""

    def restart(self, *, kill: bool = False) -> None:
        """Deletes the pod of Metacontroller; the next pod starts with empty caches."""
        options = {"gracePeriodSeconds": 0} if kill else {}
        self._kube.delete("v1", "pods", ACCOUNT, "metacontroller-0", **options)

    def register(self, manifest: Json, hook: str) -> None:  # noqa: ARG002 - its hooks are Services
        """Applies a controller unchanged: its hooks are Services of the cluster."""
        self._kube.apply(manifest)

    def unregister(self, name: str) -> None:
        """Does nothing, because the controller ends with the cluster."""


def binary_from(environment: Mapping[str, str]) -> Path | None:
    """Returns the real Metacontroller, or None if neither the environment nor PATH has one."""
    given = environment.get("METACONTROLLER_BIN")
    if given:
        if not Path(given).is_file():
            raise ProcessError(f"METACONTROLLER_BIN={given} is not a file")
        return Path(given)
    found = shutil.which("metacontroller")
    return Path(found) if found else None


def version_of(binary: Path) -> str:
    """Returns the module version that Go wrote into the binary, or the binary's path."""
    go = shutil.which("go")
    if go is not None:
        done = subprocess.run(
            [go, "version", "-m", binary], text=True, capture_output=True, check=False
        )
        for line in done.stdout.splitlines():
            words = line.split()
            if words[:1] == ["mod"] and len(words) > 2 and words[2] != "(devel)":
                return words[2]
    return str(binary)


def choose_controller(
    cluster: Cluster, kube: Kube, directory: Path, environment: Mapping[str, str]
) -> Controller:
    """Returns the Metacontroller of this run, not started. Its account must exist."""
    if cluster.hook_in_cluster:
        return InClusterMetacontroller(kube)
    kubeconfig = directory / "metacontroller.kubeconfig"
    account_kubeconfig(cluster, kube, kubeconfig)
    binary = binary_from(environment)
    if binary is None:
        return EmulatedMetacontroller(kubeconfig)
    return RealMetacontroller(binary, kubeconfig, kube, directory)


def another(  # noqa: PLR0913 - the parameters in which the two differ
    tapps: Controller,
    kube: Kube,
    directory: Path,
    *flags: str,
    name: str,
    binary: Path | None = None,
    kubeconfig: Path | None = None,
) -> RealMetacontroller:
    """Returns a second real Metacontroller with additional flags, not started."""
    found = binary or binary_from(os.environ)
    if not isinstance(tapps, RealMetacontroller) or found is None:
        pytest.skip("there is one Metacontroller at most but the real one: METACONTROLLER_BIN=FILE")
    config = kubeconfig or directory / "metacontroller.kubeconfig"
    return RealMetacontroller(found, config, kube, directory, *flags, name=name)
