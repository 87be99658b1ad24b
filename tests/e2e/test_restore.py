"""Restores a TApp from a backup: with its status, a finished batch stays finished."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from .app import App, each, example
from .claims import collector_has_worked, owners, stored
from .cluster import Cluster
from .kube import Json
from .kubelet import FakeKubelet
from .metacontroller import Controller
from .plugin import Plugin
from .waiting import LONG

pytestmark = pytest.mark.e2e
OF_ITS_OWN_CLUSTER = ("uid", "resourceVersion", "ownerReferences", "finalizers")


@pytest.mark.parametrize("with_status", [True, False], ids=["with status", "without"])
def test_restored_batch_stays_finished_only_with_its_status(  # noqa: PLR0913, PLR0917 - the parts of a restore
    app: App,
    kubelet: FakeKubelet,
    tapps: Controller,
    kubectl: Callable[..., str],
    tmp_path: Path,
    with_status: bool,
) -> None:
    """The test runs the commands of docs/troubleshooting.md, "Backup and restore".

    Without the status, the batch runs again.
    """
    place = ["-n", app.namespace]
    app.apply(*example("batch"))
    app.until(
        lambda: app.statuses == "Running Running Running Running", "all instances run"
    ).quiet()
    for number in range(4):
        kubelet.finish(app.namespace, f"work-{number}", code=0)
    app.until(lambda: not app.pods, "all pods have ended").quiet()
    saved = json.loads(kubectl(*place, "get", "tapp", "work", "-o", "json"))
    app.delete()
    app.quiet()
    app.news()
    tapps.stop()
    try:
        status = {"status": saved.pop("status")}
        saved["metadata"] = {
            key: item for key, item in saved["metadata"].items() if key not in OF_ITS_OWN_CLUSTER
        }
        recreated, status_file = tmp_path / "work.yaml", tmp_path / "work-status.yaml"
        recreated.write_text(json.dumps(saved))
        status_file.write_text(json.dumps(status))
        kubectl(*place, "create", "-f", str(recreated))
        if with_status:
            patch = ["--subresource=status", "--type=merge", "--patch-file", str(status_file)]
            kubectl(*place, "patch", "tapp", "work", *patch)
    finally:
        tapps.start()
    if with_status:
        app.until(
            lambda: bool(app.found and app.found["metadata"].get("finalizers")),
            "Metacontroller has observed the TApp",
        )
        app.quiet()
        assert app.statuses == "Succ Succ Succ Succ"
        assert app.wrote()
    else:
        app.until(
            lambda: app.statuses == "Running Running Running Running", "all instances run again"
        )
        assert app.wrote(*each("create Pod", "work", *range(4)))


def recreated(found: Json) -> Json:
    """Returns an object as Velero creates it.

    Its metadata has name, labels and annotations only.
    """
    spec = {key: item for key, item in found["spec"].items() if key != "nodeName"}
    if found["kind"] == "Pod":
        spec["volumes"] = [each_one for each_one in spec["volumes"] if "projected" not in each_one]
        for container in spec["containers"]:
            container["volumeMounts"] = [
                mount for mount in container["volumeMounts"] if "secrets" not in mount["mountPath"]
            ]
    spec.pop("volumeName", None)
    kept = ("name", "namespace", "labels", "annotations")
    metadata = {key: found["metadata"][key] for key in kept if key in found["metadata"]}
    for key in [key for key in metadata.get("annotations", {}) if "pv.kubernetes.io" in key]:
        del metadata["annotations"][key]
    return {
        **{key: found[key] for key in ("apiVersion", "kind")},
        "metadata": metadata,
        "spec": spec,
    }


def test_restored_pods_and_claims_are_reported_and_adopted(
    app: App, tapps: Controller, cluster: Cluster, tmp_path: Path
) -> None:
    """Restored objects have no owner and the label of the old TApp.

    The status reports that, and one command repairs it.
    """
    app.apply(stored()).settle()
    kinds = (("v1", "persistentvolumeclaims"), ("v1", "pods"))
    saved = [each_one for kind in kinds for each_one in app.kube.list_all(*kind, app.namespace)]
    whole = app.found or {}
    app.delete()
    app.until(lambda: not app.pods, "the pods are gone")
    for name in app.claims():
        app.kube.delete("v1", "persistentvolumeclaims", app.namespace, name)
    app.until(lambda: not app.kube.list_all(*kinds[0], app.namespace), "the claims are gone")
    tapps.stop()
    try:
        for each_one in saved:
            app.kube.create(recreated(each_one))
        app.kube.create(recreated({"apiVersion": "apps.tkestack.io/v1", "kind": "TApp", **whole}))
    finally:
        tapps.start()
    born = {number: pod["metadata"]["uid"] for number, pod in app.pods.items()}
    claims = app.claims()
    app.until(lambda: app.reasons() == ["PodsNotCreated"] * 2, "PodsNotCreated is reported", LONG)
    assert "kubectl tapp adopt web" in app.condition("PodsNotCreated")
    assert {**app.uids()} == born
    Plugin.at(cluster, app.namespace, tmp_path).run("adopt", "web", "-y")
    app.settle()
    assert app.uids() == born
    assert app.claims() == claims
    assert set(app.restarts().values()) == {0}
    assert owners(app, "data-web-0") == ["Namespace", "TApp"]
    assert app.idle()
    app.delete()
    app.until(lambda: not app.pods, "the pods are deleted with the TApp")
    collector_has_worked(app)
    assert app.claims() == claims


def test_restore_without_pods_creates_pods_on_the_restored_claims(
    app: App, tapps: Controller, cluster: Cluster, tmp_path: Path
) -> None:
    """With `--exclude-resources pods` no foreign pod is in the way, and only the claims need the
    command.
    """
    app.apply(stored()).settle()
    saved = app.kube.list_all("v1", "persistentvolumeclaims", app.namespace)
    whole = app.found or {}
    app.delete()
    app.until(lambda: not app.pods, "the pods are gone")
    for name in app.claims():
        app.kube.delete("v1", "persistentvolumeclaims", app.namespace, name)
    app.until(lambda: not app.claims(), "the claims are gone")
    app.until(
        lambda: not app.kube.list_all("v1", "persistentvolumeclaims", app.namespace),
        "the claims are deleted completely",
    )
    for each_one in saved:
        app.kube.create(recreated(each_one))
    kept = app.claims()
    assert tapps is not None
    app.kube.create(recreated({"apiVersion": "apps.tkestack.io/v1", "kind": "TApp", **whole}))
    app.until(lambda: app.statuses == "Running Running", "all instances run")
    assert app.claims() == kept
    app.until(lambda: app.reasons() == ["ClaimsNotOwned"] * 2, "ClaimsNotOwned is reported", LONG)
    Plugin.at(cluster, app.namespace, tmp_path).run("adopt", "web", "-y")
    app.settle()
    assert app.claims() == kept
    assert app.idle()
