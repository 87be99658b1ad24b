"""The status as tools see it that apply a TApp or wait for it: kubectl, and helm with kstatus."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.kstatus import compute

from .app import App, tapp, template
from .binaries import build
from .cluster import Cluster
from .kube import Json, Kube, Kubectl
from .kubelet_controls import Levers

pytestmark = pytest.mark.e2e
UNSEEN = {"observedGeneration": -1}


def test_new_tapp_is_shown_as_in_progress(kube: Kube, namespace: str) -> None:
    """A tool must not read the missing status of a new TApp as current."""
    document = tapp("unseen", replicas=0)
    document["metadata"]["namespace"] = namespace
    created = kube.create(document)
    assert created["status"] == UNSEEN
    assert compute(created) == "InProgress"


@pytest.mark.parametrize("way", [(), ("--server-side",)], ids=["by the client", "by the server"])
def test_apply_of_a_tapp_does_not_own_its_status(
    app: App, kubectl: Kubectl, way: tuple[str, ...]
) -> None:
    """The CRD's default of the status must belong to no field manager.

    A second apply, with the options `way`, must find no difference.
    """
    text = yaml.safe_dump(tapp())

    def apply(verb: str) -> str:
        return kubectl(verb, *way, "-n", app.namespace, "-f", "-", stdin=text)

    apply("apply")
    app.settle()
    before = app.found
    apply("apply")
    assert app.found == before
    assert apply("diff") == ""
    assert app.idle()
    owners = {
        (entry["manager"], entry.get("subresource"))
        for entry in (before or {})["metadata"]["managedFields"]
        if "f:status" in entry["fieldsV1"]
    }
    assert [subresource for _, subresource in owners] == ["status"]


@pytest.fixture
def helm(
    cluster: Cluster, app: App, tmp_path: Path
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Returns a function that installs or upgrades a chart with one TApp, and waits for it."""
    binary = shutil.which(
        "helm", path=os.pathsep.join((str(build.helm().bin_dir), os.environ["PATH"]))
    )
    if binary is None:
        pytest.skip("no helm: `make e2e-binaries` builds one")
    chart = tmp_path / "shop"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: shop\nversion: 0.1.0\n")
    homes = {f"HELM_{name}_HOME": str(tmp_path) for name in ("CACHE", "CONFIG", "DATA")}
    context = ["--kube-context", cluster.context] if cluster.context else []

    def run(verb: str, document: Json) -> subprocess.CompletedProcess[str]:
        (chart / "templates" / "tapp.yaml").write_text(yaml.safe_dump(document))
        where = ["--kubeconfig", str(cluster.kubeconfig), *context, "-n", app.namespace]
        return subprocess.run(
            [binary, verb, "shop", str(chart), *where, "--wait", "--timeout", "90s"],
            env=os.environ | homes, text=True, capture_output=True, check=False,
        )  # fmt: skip

    return run


def test_helm_waits_for_a_tapp_until_it_is_ready_or_stalled(
    app: App, levers: Levers, helm: Callable[..., subprocess.CompletedProcess[str]], note: list[str]
) -> None:
    """Helm waits until the TApp is Ready, fails if it is Stalled, and waits again for the
    repair.
    """
    begun = time.monotonic()
    done = helm("install", tapp())
    assert done.returncode == 0, done.stderr
    assert app.condition("Ready").startswith("True")
    took = [time.monotonic() - begun]

    levers.unready_images.add("app:unready")
    begun = time.monotonic()
    done = helm("upgrade", tapp(template=template("app:unready"), progressDeadlineSeconds=3))
    took.append(time.monotonic() - begun)
    assert done.returncode != 0
    assert re.search(
        r"web not ready\. status: Failed, message: the rollout has made no", done.stderr
    )
    assert took[-1] < 60

    begun = time.monotonic()
    done = helm("upgrade", tapp(template=template("app:2"), progressDeadlineSeconds=3))
    took.append(time.monotonic() - begun)
    assert done.returncode == 0, done.stderr
    assert app.images() == "app:2 app:2 app:2"
    words = ("a new TApp", "one that is stalled, which fails", "what mends it")
    note += [f"helm --wait for {what}: {t:.1f} s" for what, t in zip(words, took, strict=True)]
