"""A partition on the real API server: who is kept, and what comes back when a pod is lost."""

from __future__ import annotations

import pytest

from tests.kstatus import compute

from .app import App, tapp, template
from .kube import Json
from .shapes import claim
from .test_history import revisions

pytestmark = pytest.mark.e2e


def shown(app: App) -> str:
    """The tag that each instance runs, by number: `2211`."""
    return "".join(image[-1] for image in app.images().split())


def comes_to(app: App, expected: str) -> bool:
    """True if these run in the end, and nothing is written after that."""
    app.settle()
    app.until(lambda: shown(app) == expected, f"the instances run {expected}")
    return app.settle().idle()


def kept(app: App, **spec: object) -> App:
    """A TApp whose roll from `app:1` to `app:2` keeps two of five."""
    app.apply(tapp(replicas=5, updateStrategy={"maxUnavailable": 5}, **spec)).settle()
    app.patch(template=template("app:2"), updateStrategy={"partition": 2})
    assert comes_to(app, "22211")
    return app


def lose(app: App, *numbers: int) -> None:
    """Somebody deletes pods."""
    uids = app.uids()
    for number in numbers:
        app.kube.delete("v1", "pods", app.namespace, f"{app.name}-{number}")
    app.until(
        lambda: all(app.uids().get(number) not in (None, uids[number]) for number in numbers),
        f"other pods {numbers}",
    )


def test_a_roll_stops_at_its_partition_and_is_complete(app: App) -> None:
    kept(app)
    status, label = app.status, "tapp_template_hash_key"
    assert status["updateRevision"] == app.pod(0)["metadata"]["labels"][label]
    assert status["currentRevision"] == app.pod(4)["metadata"]["labels"][label]
    assert status["kept"] == {status["currentRevision"]: "3,4"}
    assert (status["updatedReplicas"], status["availableReplicas"]) == (3, 5)
    assert [item["metadata"]["labels"][label] for item in revisions(app)] == [
        status["currentRevision"],
        status["updateRevision"],
    ]
    assert "updateStrategy.partition (2) keeps instances 3, 4" in app.condition("Ready")
    assert app.condition("Progressing").startswith("False Complete")
    assert compute(app.found or {}) == "Current"


def test_a_second_roll_keeps_two_revisions(app: App) -> None:
    kept(app).patch(template=template("app:3"), updateStrategy={"partition": "70%"})
    assert comes_to(app, "32211")
    assert sorted(app.status["kept"].values()) == ["1,2", "3,4"]
    lose(app, 0, 1, 2, 3, 4)
    assert comes_to(app, "32211")


def test_where_the_record_is_deleted_a_lost_pod_waits(app: App) -> None:
    kept(app)
    (past, _) = revisions(app)
    app.kube.delete("apps/v1", "controllerrevisions", app.namespace, past["metadata"]["name"])
    assert comes_to(app, "22211")
    assert app.condition("Ready").startswith("True")
    app.kube.delete("v1", "pods", app.namespace, f"{app.name}-4")
    app.until(lambda: bool(app.condition("RevisionsNotFound")), "it is said")
    assert app.idle()
    assert shown(app) == "2221"
    assert f"instances 4 at {app.status['currentRevision']}" in app.condition("RevisionsNotFound")
    app.patch(updateStrategy={"partition": 0})
    assert comes_to(app, "22222")


def mounting(image: str, *names: str) -> Json:
    """A template that mounts claims."""
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in names]
    return template(containers=[{"name": "main", "image": image, "volumeMounts": mounts}])


def made_of(app: App, number: int) -> str:
    """The claims of an instance's pod, and its Service: `data-web-2 logs-web-2 in old`."""
    spec = app.pod(number)["spec"]
    found = [each.get("persistentVolumeClaim") for each in spec["volumes"]]
    names = [each["claimName"] for each in found if each]
    return " ".join([*names, "in", str(spec.get("subdomain"))])


def test_a_kept_one_has_the_claims_and_the_service_that_it_had(app: App) -> None:
    """A claim template goes, and the Service changes; a new one that is kept has a claim made."""
    app.apply(
        tapp(
            template=mounting("app:1", "data", "logs"),
            volumeClaimTemplates=[claim("data"), claim("logs")],
            serviceName="old",
        )
    ).settle()
    app.patch(
        template=mounting("app:2", "data"),
        volumeClaimTemplates=[claim("data")],
        serviceName="new",
        updateStrategy={"partition": 2},
    )
    assert comes_to(app, "211")
    lose(app, 2)
    assert comes_to(app, "211")
    assert made_of(app, 2) == "data-web-2 logs-web-2 in old"
    app.patch(statuses={"1": "Killed"})
    app.until(lambda: 1 not in app.pods, "instance 1 is stopped")
    app.patch(statuses={"1": None}, replicas=4, updateStrategy={"partition": 3})
    assert comes_to(app, "2111")
    assert made_of(app, 1) == "data-web-1 logs-web-1 in old"
    assert made_of(app, 3) == "data-web-3 logs-web-3 in old"
    assert made_of(app, 0) == "data-web-0 in new"
    assert app.condition("Ready").startswith("True")
    app.patch(updateStrategy={"partition": None})
    assert comes_to(app, "2222")
    assert made_of(app, 2) == "data-web-2 in new"
    assert {"logs-web-1", "logs-web-2", "logs-web-3"} <= app.claims().keys()
