"""Holds on a real API server: delayed actions, their notice, the end of a hold, and evictions."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.holds import AUTOSCALERS, HELD, HOLD, WANTED, WANTED_SINCE
from tests.hook_calls import note

from .app import App, example, tapp, template
from .cluster import Cluster
from .kube import Json, KubeError, authority_of

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


def label(app: App, id: int) -> str | None:
    found: str | None = app.pod(id)["metadata"]["labels"].get(HELD)
    return found


def pending_action(app: App, id: int) -> str:
    return note(app.pod(id), WANTED)


def tapp_on_hold(app: App) -> App:
    """Creates a TApp with one pod on hold, and waits until the service has observed the hold."""
    app.apply(tapp()).settle().annotate(1, hold="match 42")
    return app.until(lambda: label(app, 1) == "true", "the service has observed the hold")


def for_autoscalers(app: App, id: int) -> dict[str, str]:
    """Returns the annotations of an instance's pod that autoscalers read."""
    notes: dict[str, str] = app.pod(id)["metadata"].get("annotations") or {}
    return {key: notes[key] for key in AUTOSCALERS if key in notes}


@pytest.mark.parametrize("replicas", [1, 3, 12])
def test_pod_on_hold_carries_annotations_for_autoscalers_until_it_is_released(
    app: App, replicas: int
) -> None:
    last = replicas - 1
    app.apply(tapp(replicas=replicas)).settle()
    born, restarts = app.uids(), app.restarts()
    app.annotate(last, hold="match 42")
    app.until(lambda: label(app, last) == "true", "the service has observed the hold")
    assert for_autoscalers(app, last) == {
        "apps.tkestack.io/held-annotations": (
            "cluster-autoscaler.kubernetes.io/safe-to-evict,karpenter.sh/do-not-disrupt"
        ),
        "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
        "karpenter.sh/do-not-disrupt": "true",
    }
    assert [for_autoscalers(app, id) for id in range(last)] == [{}] * last
    assert app.idle()
    app.annotate(last, hold=None)
    app.until(lambda: label(app, last) is None, "the service has observed the release")
    assert for_autoscalers(app, last) == {}
    assert app.uids() == born
    assert app.restarts() == restarts
    assert app.idle()


def progressing(app: App) -> str:
    return app.condition("Progressing")


@pytest.mark.parametrize(
    ("change", "action"),
    [({"template": template("app:2")}, "Update"), ({"statuses": {"1": "Killed"}}, "Delete")],
    ids=["update", "kill"],
)
def test_action_waits_for_a_hold_is_announced_and_follows_its_removal(
    app: App, change: Json, action: str
) -> None:
    tapp_on_hold(app)
    born, restarts = app.uids(), app.restarts()
    app.patch(**change)
    app.until(
        lambda: progressing(app).startswith("True Held: instance 1 is on hold"),
        "only the instance on hold is left",
        60,
    )
    app.quiet()
    pod = app.pod(1)
    assert pod["metadata"]["uid"] == born[1]
    assert app.restarts()[1] == restarts[1]
    assert note(pod, WANTED) == action
    assert app.status["held"] == "1"
    since = datetime.fromisoformat(note(pod, WANTED_SINCE))
    assert timedelta(0) < datetime.now(UTC) - since < timedelta(minutes=2)
    assert app.condition("Ready").startswith("False Held")
    assert app.condition("Degraded").startswith("False")
    assert app.idle()
    app.annotate(1, hold=None)
    app.settle()
    assert "held" not in app.status
    assert app.uids().get(1) == (born[1] if action == "Update" else None)
    if action == "Update":
        assert app.images() == "app:2 app:2 app:2"
        assert not pending_action(app, 1)
        assert label(app, 1) is None
    assert app.idle()


def test_deletion_of_a_tapp_waits_for_a_hold_and_ends_with_its_timeout(app: App) -> None:
    tapp_on_hold(app)
    app.kube.delete("apps.tkestack.io/v1", "tapps", app.namespace, "web")
    app.until(lambda: sorted(app.pods) == [1], "the other pods are gone")
    app.until(lambda: progressing(app).startswith("True Held"), "Progressing reports the hold")
    assert "waits for pod web-1 on hold" in progressing(app)
    assert "'match 42'" in progressing(app)
    assert pending_action(app, 1) == "Delete"
    app.quiet()
    assert app.found is not None
    app.patch(deletionHoldTimeoutSeconds=0)
    app.until(lambda: app.found is None, "the TApp is gone")
    assert not app.pods


# --- evictions ------------------------------------------------------------------------------------


def eviction_status(app: App, id: int) -> int:
    """Returns the status code of the eviction API."""
    try:
        app.evict(id)
    except KubeError as error:
        return error.status
    return 201


def arena(app: App) -> list[Json]:
    """Returns the documents of the example, for the test's namespace."""
    found = example("hold")
    for document in found:
        for subject in document.get("subjects") or []:
            subject["namespace"] = app.namespace
    return found


def test_disruption_budget_of_the_example_protects_only_pods_on_hold(app: App) -> None:
    app.apply(*arena(app)).settle()
    app.annotate(0, hold="match 1")
    app.until(lambda: label(app, 0) == "true", "the service has observed the hold")
    budget = app.kube.path("policy/v1", "poddisruptionbudgets", app.namespace, "arena-on-hold")
    app.until(
        lambda: (app.kube.request("GET", budget).get("status") or {}).get("currentHealthy") == 1,
        "the disruption controller has counted",
    )
    status = app.kube.request("GET", budget)["status"]
    assert status["expectedPods"] == 4
    assert status["disruptionsAllowed"] == 0
    born = app.uids()
    assert eviction_status(app, 0) == 429
    assert eviction_status(app, 1) == 201
    app.wait_until_replaced(1, born)
    assert app.uids()[0] == born[0]
    app.annotate(0, hold=None)
    app.until(lambda: label(app, 0) is None, "the service has observed the end of the hold")
    assert eviction_status(app, 0) == 201
    app.wait_until_replaced(0, born)


class Kubelet(threading.Thread):
    """Updates the files of a downward API volume."""

    def __init__(self, app: App, id: int, directory: Path) -> None:
        super().__init__(daemon=True)
        self.app, self.id, self.directory = app, id, directory
        self.ending = threading.Event()
        self.write("", "")

    def write(self, held: str, action: str) -> None:
        for name, text in (("held", held), ("wanted", action)):
            (self.directory / f"{name}.new").write_text(text)
            (self.directory / f"{name}.new").rename(self.directory / name)

    def run(self) -> None:
        while not self.ending.wait(0.1):
            pod = self.app.pods.get(self.id)
            if pod is not None:
                label = pod["metadata"]["labels"].get(HELD, "")
                self.write(label, note(pod, WANTED))


@contextmanager
def running_program(app: App, cluster: Cluster, id: int, directory: Path) -> Iterator[Any]:
    """Runs the example's program here with the rights of its service account."""
    (directory / "token").write_text(app.kube.token(app.namespace, "arena"))
    (directory / "ca.crt").write_bytes(authority_of(cluster.kubeconfig))
    kubelet = Kubelet(app, id, directory)
    kubelet.start()
    script = app.pod(id)["spec"]["containers"][0]["command"][2]
    environment = {
        **os.environ,
        "NAMESPACE": app.namespace,
        "POD": f"{app.name}-{id}",
        "SERVER": app.kube.server,
        "ACCOUNT": str(directory),
        "TOLD": str(directory),
        "SECONDS": "[0.5, 2]",
    }
    with subprocess.Popen(
        [sys.executable, "-uc", script], env=environment, stdout=subprocess.PIPE, text=True
    ) as program:
        try:
            yield program
        finally:
            program.kill()
            kubelet.ending.set()
            kubelet.join()


def test_program_of_the_example_removes_its_hold_after_the_match(
    app: App, cluster: Cluster, tmp_path: Path
) -> None:
    app.apply(*arena(app)).settle()
    with running_program(app, cluster, 2, tmp_path) as program:
        app.until(lambda: note(app.pod(2), HOLD).startswith("match"), "the program plays")
        assert label(app, 2) == "true"
        born = app.uids()
        app.patch(statuses={"2": "Killed"})
        app.until(lambda: 2 not in app.pods, "the pod is gone after its match")
        program.kill()
        said = program.stdout.read().splitlines()
    assert said[0] == "match 1"
    assert said[-1] == "lets go: Delete"
    app.patch(statuses=None).settle()
    assert {**app.uids(), 2: ""} == {**born, 2: ""}
