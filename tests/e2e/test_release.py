"""Builds a release, and installs, upgrades and removes it on an empty real API server."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import HTTPCookieProcessor, build_opener

import pytest
import yaml

from hooks.version import VERSION

from .app import tapp
from .cluster import REPOSITORY
from .definitions import definition_files
from .hook import HookService
from .installed_release import (
    CHART,
    CONTROLLER,
    GROUP,
    IMAGE,
    Fresh,
    checkout_of,
    fresh_cluster,
    release_into,
)

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
PREVIOUS = "18f57e17ed8ea9a8fd1fa454e6efe74921bbdedb"
"""The last commit without releases."""
WRITTEN = "4af0fc8e04a82d6d518be2c67706828511f9bb09"
"""The last commit whose chart was written by a program."""
OLDER_CHART = """\
import sys
from pathlib import Path
from release import chart
for name, text in chart.files("0.1.0", sys.argv[2], "oci://none", "4.17.2").items():
    file = Path(sys.argv[1], name)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
described = Path(sys.argv[1], "Chart.yaml")
head = described.read_text().partition("dependencies:")
described.write_text(head[0] + "keywords:" + head[2].partition("keywords:")[2])
"""
HELM = ("--namespace", "tapp-system")
TAPPS = "tapps.apps.tkestack.io"


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that `make release` writes."""
    return release_into(tmp_path_factory.mktemp("release"))


@pytest.fixture
def fresh(workspace: Path) -> Iterator[Fresh]:
    """An empty cluster for one test."""
    with fresh_cluster(workspace) as made:
        yield made


def create_ready_tapp(fresh: Fresh, name: str = "web") -> dict[str, str]:
    """Creates a TApp of three instances, waits until it is ready, and returns its pods."""
    fresh.established()
    fresh.kube.apply(manifest(name))
    fresh.until(lambda: fresh.ready(name), "the TApp is ready")
    return fresh.pods(name)


def manifest(name: str) -> dict[str, object]:
    """Returns the manifest of the TApp."""
    made = tapp(name)
    made["metadata"]["namespace"] = "default"
    return made


def untouched(fresh: Fresh, mark: int) -> bool:
    """Asserts that no pod of the namespace `default` was written, except for statuses.

    Returns True.
    """
    found = fresh.plane.audit.writes(mark, resource="pods", namespace="default")
    assert [f"{each.user} {each.what} {each.name}" for each in found if not each.subresource] == []
    return True


# --- contents -------------------------------------------------------------------------------------


def test_release_has_all_files_with_correct_checksums(dist: Path) -> None:
    names = {file.name for file in dist.iterdir()}
    assert names == {
        "SHA256SUMS",
        "install.yaml",
        "install-with-metacontroller.yaml",
        "sbom.cdx.json",
        "tapp.schema.json",
        f"tapp-{VERSION}-py3-none-any.whl",
        plugin_of(dist).name,
        CHART,
    }
    for line in (dist / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split()
        assert hashlib.sha256((dist / name).read_bytes()).hexdigest() == digest
        names.remove(name)
    assert names == {"SHA256SUMS"}


def plugin_of(dist: Path) -> Path:
    """Returns the plugin's archive for this platform."""
    (found,) = dist.glob(f"kubectl-tapp-{VERSION}-*.tar.gz")
    return found


def test_archive_of_the_plugin_needs_no_python(dist: Path, tmp_path: Path, note: list[str]) -> None:
    """`kubectl_complete-tapp` in the archive must find the plugin by its name alone."""
    with tarfile.open(plugin_of(dist)) as packed:
        packed.extractall(tmp_path, filter="data")
    place = tmp_path / "kubectl-tapp"
    assert (place / "man" / "kubectl-tapp.1").exists()
    assert (place / "licenses" / "pydantic" / "LICENSE").exists()
    alone = {"PATH": str(place)}

    def said(*command: str) -> str:
        return subprocess.run(command, env=alone, check=True, capture_output=True, text=True).stdout

    assert said(str(place / "kubectl-tapp"), "--version").strip() == VERSION
    assert "status\t" in said("/bin/sh", str(place / "kubectl_complete-tapp"), "stat")
    took = []
    for _ in range(5):
        begun = time.monotonic()
        assert "Exit codes:" in said(str(place / "kubectl-tapp"), "--help")
        took.append(time.monotonic() - begun)
    note.append(f"the plugin's archive: --help takes {min(took):.2f} s at best of {len(took)}")


def the_archives_page(fresh: Fresh, dist: Path, place: Path) -> str:
    """Returns the page that the plugin of the archive serves to a browser."""
    with tarfile.open(plugin_of(dist)) as packed:
        packed.extractall(place, filter="data")
    command = [place / "kubectl-tapp" / "kubectl-tapp", "web", "web", "--no-browser", "--port", "0"]
    environment = {
        "PATH": fresh.path,
        "KUBECONFIG": str(fresh.kubeconfig),
        "HOME": str(place),  # the place of kubectl's cache, which is otherwise in this directory
    }
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        try:
            with build_opener(HTTPCookieProcessor()).open(address, timeout=30) as answer:
                return str(answer.read().decode())
        finally:
            process.terminate()


def test_release_names_its_image_and_no_path_of_this_machine(dist: Path) -> None:
    for name in ("install.yaml", "install-with-metacontroller.yaml", "sbom.cdx.json"):
        text = (dist / name).read_text()
        assert ".invalid" not in text
        assert str(REPOSITORY) not in text
        assert str(dist.parent) not in text
    assert f"image: {IMAGE}" in (dist / "install.yaml").read_text()
    packages = {
        each["name"] for each in yaml.safe_load((dist / "sbom.cdx.json").read_text())["components"]
    }
    assert {"flask", "gunicorn", "werkzeug"} <= {name.lower() for name in packages}


# --- Helm -----------------------------------------------------------------------------------------


def test_helm_upgrade_and_rollback_change_the_crd_and_no_pod(
    fresh: Fresh, dist: Path, tmp_path: Path
) -> None:
    """Helm waits for upgrades. If the new pods find no node, the upgrade fails and the old pods
    stay.

    The page of the archive's plugin shows the installed version.
    """
    wait = ("--wait", "--timeout", "60s")
    on = ("--create-namespace", "--set", "metacontroller.enabled=true")
    fresh.do("helm", "install", "tapp", dist / CHART, *HELM, *on, *wait)
    fresh.serve()
    fresh.control()
    before = create_ready_tapp(fresh)
    assert "<title>TApps</title>" in the_archives_page(fresh, dist, tmp_path)
    mark = fresh.plane.audit.mark()
    with tarfile.open(dist / CHART) as packed:
        packed.extractall(tmp_path, filter="data")
    file = tmp_path / "tapp" / "files" / "tapp.yaml"
    file.write_text(file.read_text().replace("    - ta\n", "    - ta\n    - tapplet\n"))

    def state() -> tuple[list[str], int]:
        """Returns the short names of TApps, and the number of ready pods of the service."""
        found = fresh.kube.get("apiextensions.k8s.io/v1", "customresourcedefinitions", None, TAPPS)
        service = fresh.kube.get("apps/v1", "deployments", "tapp-system", "tapp-hooks")
        return found["spec"]["names"]["shortNames"], service["status"]["readyReplicas"]

    assert state() == (["ta"], 2)
    upgrade = ("helm", "upgrade", "tapp", tmp_path / "tapp", *HELM, "--reset-then-reuse-values")
    fresh.do(*upgrade, "--set", "replicas=3,components.podStatus=true", *wait)
    fresh.do("kubectl", "get", "decoratorcontroller", "tapp-pod-status")
    assert state() == (["ta", "tapplet"], 3)
    failed = fresh.run(*upgrade, "--set", "nodeSelector.no=such", "--wait", "--timeout", "5s")
    assert failed.returncode != 0
    assert "Deployment/tapp-system/tapp-hooks not ready" in failed.stderr
    assert state() == (["ta", "tapplet"], 3)
    fresh.do("helm", "rollback", "tapp", "1", *HELM, *wait)
    assert state() == (["ta"], 2)
    assert fresh.ready("web")
    assert fresh.pods("web") == before
    assert untouched(fresh, mark)


def test_helm_upgrade_from_the_generated_chart_touches_no_pod(
    fresh: Fresh, dist: Path, tmp_path: Path
) -> None:
    """Values of the old chart stay, with the image as a text. No pod of a TApp may be written."""
    older = checkout_of(WRITTEN, tmp_path)
    made = subprocess.run(
        [sys.executable, "-c", OLDER_CHART, tmp_path / "tapp", IMAGE],
        cwd=older, env=os.environ | {"PATH": fresh.path},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    set_then = ("--set", f"image={IMAGE},replicas=3,components.podStatus=true")
    chart = ("tapp", tmp_path / "tapp", *HELM)
    fresh.kube.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "tapp-system"}})
    for file in definition_files(os.environ)[-1:]:
        fresh.do("kubectl", "create", "-f", file)
    fresh.do("helm", "install", *chart, *set_then)
    fresh.serve()
    fresh.control()
    before = create_ready_tapp(fresh)
    mark = fresh.plane.audit.mark()
    fresh.do("helm", "upgrade", "tapp", dist / CHART, *HELM, "--reset-then-reuse-values")
    fresh.control()
    deployment = fresh.kube.get("apps/v1", "deployments", "tapp-system", "tapp-hooks")["spec"]
    pod = deployment["template"]["spec"]
    assert deployment["replicas"] == 3
    assert pod["containers"][0]["image"] == IMAGE
    assert "runAsUser" not in pod["securityContext"]
    found = fresh.kube.get(
        "metacontroller.k8s.io/v1alpha1", "compositecontrollers", None, CONTROLLER
    )
    url = found["spec"]["hooks"]["sync"]["webhook"]["url"]
    assert url == "http://tapp-hooks.tapp-system.svc:8080/sync"
    assert fresh.ready("web")
    assert fresh.pods("web") == before
    assert untouched(fresh, mark)


# --- kubectl --------------------------------------------------------------------------------------


def test_manifests_are_applied_deleted_and_applied_again_without_loss(
    fresh: Fresh, dist: Path
) -> None:
    """The manifests are applied until the new kinds are served, deleted in the wrong order, applied
    again and removed.
    """
    apply = ("kubectl", "apply", "--server-side", "-f")
    fresh.until_done(*apply, dist / "install-with-metacontroller.yaml")
    fresh.serve()
    fresh.control()
    before = create_ready_tapp(fresh)
    mark = fresh.plane.audit.mark()

    done = fresh.run("kubectl", "delete", "-f", dist / "install.yaml", "--timeout=60s")
    assert done.returncode != 0
    assert "deleting this definition deletes every TApp" in done.stderr
    assert fresh.run("kubectl", "get", "compositecontroller", CONTROLLER).returncode != 0
    fresh.control()
    time.sleep(1)
    assert fresh.tapp("web") is not None
    assert fresh.pods("web") == before
    assert untouched(fresh, mark)

    fresh.until_done(*apply, dist / "install.yaml")  # the namespace is still being deleted
    fresh.control()
    fresh.until(lambda: fresh.ready("web"), "the TApp is ready")
    assert untouched(fresh, mark)
    fresh.do("kubectl", "delete", "tapps", "--all", "--all-namespaces", "--timeout=60s")
    fresh.do("kubectl", "annotate", "crd", TAPPS, "apps.tkestack.io/delete-all-tapps=true")
    fresh.do("kubectl", "delete", "-f", dist / "install.yaml", "--timeout=60s")
    assert fresh.run("kubectl", "get", "crd", TAPPS).returncode != 0


# --- from a version without releases --------------------------------------------------------------


@pytest.fixture
def previous(tmp_path: Path) -> Path:
    """The repository at the last commit without releases."""
    return checkout_of(PREVIOUS, tmp_path)


@pytest.mark.parametrize("way", ["kubectl", "helm"])
def test_upgrade_from_a_version_without_releases_touches_no_pod(
    fresh: Fresh, dist: Path, previous: Path, way: str
) -> None:
    """Definition, registration and service are new, and both services answer for a while."""
    apply = ("kubectl", "apply", "--server-side")
    fresh.do(*apply, "-f", REPOSITORY / "tests/e2e/metacontroller-crds.yaml")
    kustomization = ("-k", previous / "metacontroller" / "base")
    fresh.until_done(*apply, *kustomization)
    fresh.serve(HookService(fresh.directory, checkout=previous))
    fresh.control()
    before = create_ready_tapp(fresh)
    mark = fresh.plane.audit.mark()

    if way == "kubectl":
        fresh.do(*apply, "-f", dist / "install.yaml")
    else:
        own = ("--take-ownership", "--force-conflicts")
        fresh.do("helm", "install", "tapp", dist / CHART, *HELM, *own)
    (fresh.directory / "new").mkdir()
    old = fresh.hook
    fresh.serve(HookService(fresh.directory / "new", port=old.port))
    old.stop()
    fresh.control()
    for number in range(3):
        annotation = {"metadata": {"annotations": {"nudge": str(number)}}}
        fresh.kube.patch(fresh.kube.path(GROUP, "tapps", "default", "web"), annotation)
        time.sleep(1)
    assert fresh.ready("web")
    assert fresh.pods("web") == before
    assert untouched(fresh, mark)
    fresh.kube.patch(fresh.kube.path(GROUP, "tapps", "default", "web"), {"spec": {"replicas": 4}})
    fresh.until(lambda: len(fresh.pods("web")) == 4, "the new service is called")
