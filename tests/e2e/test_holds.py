"""Holds on a real API server: what is kept back and told, what ends it, and whom nobody evicts."""

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

from tests.holds import HELD, HOLD, HOLD_FOR, WANTED, WANTED_SINCE
from tests.reading import note

from .app import App, example, tapp, template
from .cluster import Cluster
from .kube import Json, KubeError, authority_of
from .test_beside_scheduling import evict

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]


def hold(app: App, id: int, text: str | None, only: str | None = None) -> None:
    """A program holds its pod, or lets it go."""
    path = app.kube.path("v1", "pods", app.namespace, f"{app.name}-{id}")
    app.kube.patch(path, {"metadata": {"annotations": {HOLD: text, HOLD_FOR: only}}})


def label(app: App, id: int) -> str | None:
    found: str | None = app.pod(id)["metadata"]["labels"].get(HELD)
    return found


def wanted(app: App, id: int) -> str:
    return note(app.pod(id), WANTED)


def held(app: App, id: int = 1, **spec: Any) -> App:
    """A TApp that runs, one pod of which is on hold; the service has seen it."""
    app.apply(tapp(**spec)).settle()
    hold(app, id, "match 42")
    app.until(lambda: label(app, id) == "true", "the service has seen it")
    return app


def progressing(app: App) -> str:
    return app.condition("Progressing")


@pytest.mark.parametrize(
    ("change", "wish"),
    [
        ({"template": template("app:2")}, "Update"),
        ({"template": template(priority=None, shareProcessNamespace=True)}, "Recreate"),
        ({"statuses": {"1": "Killed"}}, "Delete"),
        ({"replicas": 1}, "Delete"),
    ],
    ids=["update", "recreate", "kill", "scale down"],
)
def test_it_is_kept_back_told_and_done_when_the_program_lets_go(
    app: App, change: Json, wish: str
) -> None:
    held(app)
    born, restarts = app.uids(), app.restarts()
    app.patch(**change)
    app.until(lambda: progressing(app).startswith("True Held: on hold: 1"), "only it is left", 60)
    app.quiet()
    pod = app.pod(1)
    assert pod["metadata"]["uid"] == born[1]
    assert app.restarts()[1] == restarts[1]
    assert (note(pod, WANTED), app.status["held"]) == (wish, "1")
    since = datetime.fromisoformat(note(pod, WANTED_SINCE))
    assert timedelta(0) < datetime.now(UTC) - since < timedelta(minutes=2)
    assert app.condition("Ready").startswith("False Held")
    assert app.condition("Degraded").startswith("False")
    assert app.idle()
    hold(app, 1, None)
    app.settle()
    assert "held" not in app.status
    pods = app.pods
    if wish == "Update":
        assert pods[1]["metadata"]["uid"] == born[1]
        assert pods[1]["spec"]["containers"][0]["image"] == "app:2"
    else:
        assert 1 not in pods or pods[1]["metadata"]["uid"] != born[1]
    if 1 in pods:
        assert not note(pods[1], WANTED)
        assert HELD not in pods[1]["metadata"]["labels"]
    assert app.idle()


def test_others_go_first_and_it_waits_for_the_budget_like_any_other(app: App) -> None:
    held(app, 0)
    app.news()
    app.patch(template=template("app:2"))
    app.until(lambda: app.images() == "app:1 app:2 app:2", "the others are done")
    hold(app, 0, None)
    app.settle()
    if app.counted:
        pods = [line for line in app.writes() if line.startswith("update Pod")]
        assert pods[-1] == "update Pod web-0"
        assert [pods.count(f"update Pod web-{id}") for id in (1, 2)] == [1, 1]


def test_what_is_wanted_no_more_is_taken_back(app: App) -> None:
    held(app)
    born = app.uids()
    app.patch(statuses={"1": "Killed"})
    app.until(lambda: wanted(app, 1) == "Delete", "it is told")
    app.patch(statuses=None)
    app.settle()
    assert not wanted(app, 1)
    app.patch(template=template("app:2"))
    app.until(lambda: wanted(app, 1) == "Update", "it is told of another wish")
    app.patch(template=template("app:1"))
    app.settle()
    assert (app.uids(), wanted(app, 1), label(app, 1)) == (born, "", "true")
    assert app.restarts()[1] == 0
    assert app.idle()


def test_a_limit_ends_it_and_the_hold_stays_on_an_updated_pod(app: App) -> None:
    held(app, updateStrategy={"holdTimeoutSeconds": 4}, deletionHoldTimeoutSeconds=4)
    born = app.uids()
    app.patch(template=template("app:2"))
    app.until(lambda: wanted(app, 1) == "Update", "it is told")
    assert app.images().split()[1] == "app:1"
    app.settle()
    assert app.images() == "app:2 app:2 app:2"
    assert app.uids() == born
    assert (note(app.pod(1), HOLD), label(app, 1)) == ("match 42", "true")
    app.patch(statuses={"1": "Killed"})
    app.until(lambda: wanted(app, 1) == "Delete", "it is told")
    app.until(lambda: 1 not in app.pods, "it goes")
    app.settle()


def test_narrowed_it_keeps_back_only_that(app: App) -> None:
    held(app)
    hold(app, 1, "match 42", "delete")
    app.patch(template=template("app:2")).settle()
    assert app.images() == "app:2 app:2 app:2"
    app.patch(statuses={"1": "Killed"})
    app.until(lambda: wanted(app, 1) == "Delete", "it is told")
    app.quiet()
    assert 1 in app.pods
    hold(app, 1, "match 42", "update")
    app.settle()
    assert 1 not in app.pods


def test_scaled_down_its_claim_stays_as_long_as_its_pod(app: App) -> None:
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    policy = {"whenScaled": "Delete"}
    held(app, 2, volumeClaimTemplates=[claim], persistentVolumeClaimRetentionPolicy=policy)
    app.patch(replicas=1)
    app.until(lambda: sorted(app.claims()) == ["data-web-0", "data-web-2"], "one goes", 60)
    app.quiet()
    assert sorted(app.pods) == [0, 2]
    hold(app, 2, None)
    app.until(lambda: sorted(app.claims()) == ["data-web-0"], "the other goes", 60)


def test_the_end_of_the_tapp_waits_says_for_whom_and_can_be_hurried(app: App) -> None:
    held(app)
    app.kube.delete("apps.tkestack.io/v1", "tapps", app.namespace, "web")
    app.until(lambda: sorted(app.pods) == [1], "the others go")
    app.until(lambda: progressing(app).startswith("True Held"), "it is said")
    assert "pods web-1" in progressing(app)
    assert "'match 42'" in progressing(app)
    assert wanted(app, 1) == "Delete"
    app.quiet()
    assert app.found is not None
    app.patch(deletionHoldTimeoutSeconds=0)
    app.until(lambda: app.found is None, "the TApp is gone")
    assert not app.pods


# --- evictions ------------------------------------------------------------------------------------


def asked_to_go(app: App, id: int) -> int:
    """The code that the eviction API answers with."""
    try:
        evict(app, id)
    except KubeError as error:
        return error.status
    return 201


def arena(app: App) -> list[Json]:
    """The example, in the test's namespace."""
    found = example("hold")
    for document in found:
        for subject in document.get("subjects") or []:
            subject["namespace"] = app.namespace
    return found


def test_the_examples_budget_covers_pods_on_hold_and_no_others(app: App) -> None:
    app.apply(*arena(app)).settle()
    hold(app, 0, "match 1")
    app.until(lambda: label(app, 0) == "true", "the service has seen it")
    budget = app.kube.path("policy/v1", "poddisruptionbudgets", app.namespace, "arena-on-hold")
    app.until(
        lambda: (app.kube.request("GET", budget).get("status") or {}).get("currentHealthy") == 1,
        "the disruption controller has counted",
    )
    status = app.kube.request("GET", budget)["status"]
    assert (status["expectedPods"], status["disruptionsAllowed"]) == (4, 0)
    born = app.uids()
    assert asked_to_go(app, 0) == 429
    assert asked_to_go(app, 1) == 201
    app.until(lambda: app.uids().get(1) not in (None, born[1]), "that one is replaced")
    assert app.uids()[0] == born[0]
    hold(app, 0, None)
    app.until(lambda: label(app, 0) is None, "the service has seen it")
    assert asked_to_go(app, 0) == 201
    app.until(lambda: app.uids().get(0) not in (None, born[0]), "it is replaced")


class Kubelet(threading.Thread):
    """Brings the files of a downward API volume up to date."""

    def __init__(self, app: App, id: int, directory: Path) -> None:
        super().__init__(daemon=True)
        self.app, self.id, self.directory = app, id, directory
        self.ending = threading.Event()
        self.write("", "")

    def write(self, held: str, asked: str) -> None:
        for name, text in (("held", held), ("wanted", asked)):
            (self.directory / f"{name}.new").write_text(text)
            (self.directory / f"{name}.new").rename(self.directory / name)

    def run(self) -> None:
        while not self.ending.wait(0.1):
            pod = self.app.pods.get(self.id)
            if pod is not None:
                label = pod["metadata"]["labels"].get(HELD, "")
                self.write(label, note(pod, WANTED))


@contextmanager
def playing(app: App, cluster: Cluster, id: int, directory: Path) -> Iterator[Any]:
    """The example's program, run here with its own account's rights."""
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


def test_the_examples_program_plays_and_lets_go_when_it_is_asked(
    app: App, cluster: Cluster, tmp_path: Path
) -> None:
    app.apply(*arena(app)).settle()
    with playing(app, cluster, 2, tmp_path) as program:
        app.until(lambda: note(app.pod(2), HOLD).startswith("match"), "it plays")
        assert label(app, 2) == "true"
        born = app.uids()
        app.patch(statuses={"2": "Killed"})
        app.until(lambda: 2 not in app.pods, "its match is over, and it goes")
        program.kill()
        said = program.stdout.read().splitlines()
    assert said[0] == "match 1"
    assert said[-1] == "lets go: Delete"
    app.patch(statuses=None).settle()
    assert {**app.uids(), 2: ""} == {**born, 2: ""}
