"""What the README says a user can do, one operation after the other, with the writes it takes."""

from __future__ import annotations

from typing import Any

import pytest

from .app import App, each, tapp, template
from .kube import Json
from .kubelet import FakeKubelet
from .kubelet_levers import Levers

pytestmark = pytest.mark.e2e


def running(app: App, **spec: Any) -> App:
    """A complete TApp whose creation has been checked."""
    made = tapp(**spec)
    app.apply(made).settle()
    claims = [one["metadata"]["name"] for one in spec.get("volumeClaimTemplates", [])]
    numbers = range(made["spec"]["replicas"])
    wanted = [line for name in claims for line in each("create Claim", f"{name}-web", *numbers)]
    assert app.wrote(*each("create Pod", "web", *numbers), *wanted)
    return app


def claim(name: str) -> Json:
    size = {"resources": {"requests": {"storage": "1Gi"}}}
    return {"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"], **size}}


def task(image: str = "task:1", policy: str = "Never") -> Json:
    return template(image, restartPolicy=policy)


def test_kill_and_start_any_set_of_instances(app: App) -> None:
    born = running(app, replicas=4).uids()
    app.patch(statuses={"0": "Killed", "2": "Killed", "9": "Killed"}).settle()
    assert app.wrote(*each("delete Pod", "web", 0, 2))
    assert app.statuses == "Killed Running Killed Running"
    app.patch(statuses={"1": "Killed", "3": "Killed"}).settle()
    assert app.wrote(*each("delete Pod", "web", 1, 3))
    assert app.status["appStatus"] == "Killed"
    assert app.idle()
    app.patch(statuses=None).settle()
    assert app.wrote(*each("create Pod", "web", 0, 1, 2, 3))
    assert not set(app.uids().values()) & set(born.values())
    assert app.status["appStatus"] == "Running"
    assert app.idle()


def test_a_killed_instance_starts_with_the_template_of_now(app: App) -> None:
    running(app)
    app.patch(statuses={"1": "Killed"}).settle()
    app.patch(template=template("app:2")).settle()
    assert app.wrote("delete Pod web-1", *each("update Pod", "web", 0, 2))
    app.patch(statuses=None).settle()
    assert app.wrote("create Pod web-1")
    assert app.images() == "app:2 app:2 app:2"


def test_templates_by_name(app: App) -> None:
    """Another name for the same template touches nothing; both spellings of the default count."""
    running(app)
    app.patch(templatePool={"same": template(), "next": template("app:2")}).settle()
    app.patch(templates={"0": "same"}, defaultTemplateName="same").settle()
    assert app.wrote()
    app.patch(defaultTemplateName=None, DefaultTemplateName="next").settle()
    assert app.wrote_in_order(*each("update Pod", "web", 1, 2))
    assert app.images() == "app:1 app:2 app:2"
    app.patch(templates=None).settle()
    assert app.wrote("update Pod web-0")
    app.patch(templatePool={"next": None, "same": None}, DefaultTemplateName=None).settle()
    assert app.wrote_in_order(*each("update Pod", "web", 0, 1, 2))
    assert app.images() == "app:1 app:1 app:1"
    assert set(app.restarts().values()) == {2}


def test_a_pause_in_the_middle_of_a_roll(app: App, levers: Levers) -> None:
    """It stops updates and nothing else: kills, starts and scaling go on."""
    running(app, replicas=4)
    levers.pull_seconds = 0.5
    app.patch(template=template("app:2"))
    app.until(lambda: app.images().startswith("app:2 app:2 app:1"), "half of them")
    app.patch(updateStrategy={"paused": True})
    app.until(lambda: app.condition("Progressing").startswith("False Paused"), "a pause").quiet()
    halfway = app.images().split()
    assert halfway[-1] == "app:1"
    app.patch(replicas=5, statuses={"0": "Killed"})
    app.until(lambda: app.statuses.startswith("Killed ") and app.statuses.endswith("Running"),
              "0 is killed, 4 runs").quiet()  # fmt: skip
    app.until(lambda: len(app.pods) == 4, "four pods")
    assert app.images().split() == [*halfway[1:], "app:2"]
    assert app.idle()
    app.patch(updateStrategy={"paused": None}, statuses=None).settle()
    assert app.images() == " ".join(["app:2"] * 5)
    assert app.idle()


def test_claims_stay_when_an_instance_goes_and_are_found_again(app: App) -> None:
    def stored() -> Json:
        made = template()
        mount = {"name": "data", "mountPath": "/data"}
        made["spec"]["containers"][0]["volumeMounts"] = [mount]
        return made

    running(app, template=stored(), volumeClaimTemplates=[claim("data")])
    claims = app.claims()
    assert sorted(claims) == ["data-web-0", "data-web-1", "data-web-2"]
    app.patch(replicas=1).settle()
    app.patch(statuses={"0": "Killed"}).settle()
    assert app.wrote(*each("delete Pod", "web", 0, 1, 2))
    assert app.claims() == claims
    assert app.idle()
    app.patch(replicas=3, statuses=None).settle()
    assert app.wrote(*each("create Pod", "web", 0, 1, 2))
    assert app.claims() == claims
    volumes = {volume["name"]: volume for volume in app.pod(2)["spec"]["volumes"]}
    assert volumes["data"]["persistentVolumeClaim"]["claimName"] == "data-web-2"
    app.patch(persistentVolumeClaimRetentionPolicy={"whenScaled": "Delete"}, replicas=2).settle()
    app.until(lambda: len(app.claims()) == 2, "the claim of 2 goes").quiet()
    assert app.wrote("delete Pod web-2", "delete Claim data-web-2")
    assert app.idle()


@pytest.mark.parametrize(
    ("policy", "code", "again"),
    [("Never", 0, False), ("Never", 1, False), ("OnFailure", 0, False), ("Always", 0, True)],
)
def test_an_instance_that_ends(
    app: App, kubelet: FakeKubelet, policy: str, code: int, again: bool
) -> None:
    """By its restart policy it is over or goes on in the same pod; the others run on."""
    running(app, replicas=2, template=task(policy=policy))
    born = app.uids()
    kubelet.finish(app.namespace, "web-0", code)
    if again:
        app.until(lambda: app.restarts()[0] == 1, "a restart").settle()
        assert app.statuses == "Running Running"
    else:
        ended = "Failed" if code else "Succ"
        app.until(lambda: app.statuses == f"{ended} Running", "it has ended").quiet()
    assert (app.status["appStatus"], app.uids()) == ("Running", born)
    assert app.wrote()
    assert app.idle()


def test_a_finished_instance_is_not_run_again_by_a_new_template(
    app: App, kubelet: FakeKubelet
) -> None:
    """Kill it and start it, then it is."""
    running(app, replicas=2, template=task())
    kubelet.finish(app.namespace, "web-0", 0)
    app.until(lambda: app.statuses == "Succ Running", "0 is done").quiet()
    app.patch(template=task("task:2"))
    app.until(lambda: app.images() == "task:1 task:2", "1 is updated").quiet()
    app.until(lambda: app.statuses == "Succ Running", "1 runs").quiet()
    assert app.wrote("update Pod web-1")
    app.patch(statuses={"0": "Killed"})
    app.until(lambda: app.statuses == "Killed Running", "0 is killed").quiet()
    app.patch(statuses=None)
    app.until(lambda: app.statuses == "Running Running", "0 runs again").quiet()
    assert app.wrote_in_order("delete Pod web-0", "create Pod web-0")
    assert app.images() == "task:2 task:2"


@pytest.mark.parametrize("never", [False, True])
def test_a_pod_that_its_node_refused(
    app: App, kubelet: FakeKubelet, levers: Levers, never: bool
) -> None:
    """It never ran, so it is made again, unless `neverMigrate` says that it must not move."""
    del kubelet
    levers.refuse[f"{app.namespace}/web-0"] = ("OutOfcpu", "Pod was rejected")
    app.apply(tapp(replicas=2, neverMigrate=never))
    if never:
        app.until(lambda: app.statuses == "Failed Running", "0 has failed").quiet()
        assert app.wrote(*each("create Pod", "web", 0, 1))
        assert app.idle()
        return
    app.until(lambda: len(tries(app)) > 1, "another try")
    levers.refuse.clear()
    app.until(lambda: app.statuses == "Running Running", "both run").settle()
    assert app.idle()


def tries(app: App) -> set[str]:
    """The pods web-0 that the watcher has seen."""
    return app.watcher.seen("web-0")


@pytest.mark.parametrize(
    ("budget", "fewest"), [(1, 4), ("100%", 0), ("30%", 3)], ids=["one", "all", "percent"]
)
def test_the_two_budgets(app: App, levers: Levers, budget: Any, fewest: int) -> None:
    """Instances off the rolling template go by `forceUpdate`, the others by the strategy's own."""
    levers.pull_seconds = 0.5
    force = {"updateStrategy": {"template": "other", "forceUpdate": {"maxUnavailable": budget}}}
    running(app, replicas=5, templatePool={"other": template("app:9")}, **force)
    app.watcher.begin()
    app.patch(template=template("app:2")).settle()
    assert app.wrote(*each("update Pod", "web", *range(5)))
    assert app.watcher.fewest == fewest
    app.watcher.begin()
    app.patch(defaultTemplateName="other").settle()
    assert app.wrote_in_order(*each("update Pod", "web", *range(5)))
    assert app.watcher.fewest == 4


def test_two_tapps_whose_pods_look_the_same(app: App) -> None:
    """Neither takes the other's pods, and deleting one leaves the other alone."""
    app.apply(tapp("web")).settle()
    app.apply(tapp("twin", replicas=2)).settle()
    assert app.wrote(*each("create Pod", "web", 0, 1, 2), *each("create Pod", "twin", 0, 1))
    app.delete()
    app.until(lambda: not app.pods, "the twin's pods are gone").quiet()
    assert app.wrote(*each("delete Pod", "twin", 0, 1))
    app.name = "web"
    assert len(app.pods) == 3
    assert app.idle()


@pytest.mark.parametrize("labels", [{"app": "other"}, {"mine": "1"}, {"tapp_instance_key": None}])
def test_what_people_do_to_a_pod_s_labels_is_left_alone(app: App, labels: Json) -> None:
    """Only a change of its template touches a pod; then the template's labels are back."""
    running(app)
    born = app.uids()
    path = app.kube.path("v1", "pods", app.namespace, "web-1")
    app.kube.patch(path, {"metadata": {"labels": labels}})
    assert app.idle()
    app.patch(template=template("app:2")).settle()
    assert app.wrote_in_order(*each("update Pod", "web", 0, 1, 2))
    assert app.pod(1)["metadata"]["labels"]["app"] == "web"
    assert app.pod(1)["metadata"]["labels"]["tapp_instance_key"] == "1"
    assert app.uids() == born
    assert app.idle()
