"""Events of TApps on a real API server: the output of kubectl, the number of writes, and the
rights.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from .app import App, tapp, template
from .audit import Write
from .cluster import REPOSITORY, Cluster
from .component import account_of, replicas
from .hook import HookService
from .kube import Json, Kube, Kubectl, KubeError, documents
from .proxy import HookProxy

pytestmark = pytest.mark.e2e
COMPONENT = REPOSITORY / "metacontroller" / "components" / "events"
USER = "system:serviceaccount:tapp-system:tapp-hooks"


@pytest.fixture(scope="module")
def account(
    kube: Kube, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """The component's account and role in the cluster, with token and CA as a pod gets them."""
    place = tmp_path_factory.mktemp("account")
    with account_of(kube, cluster, COMPONENT, "tapp-hooks", place) as account:
        yield account


@pytest.fixture(scope="module")
def service_with_events(account: Path, kube: Kube, workspace: Path) -> Iterator[HookService]:
    """Two replicas of the service with Events switched on, and two workers each."""
    with replicas(kube, workspace / "telling", account, "TAPP_EVENTS") as service:
        yield service


@pytest.fixture
def app_with_events(
    app: App, hook_proxy: HookProxy, service_with_events: HookService
) -> Iterator[App]:
    """A TApp whose syncs go to these replicas."""
    with hook_proxy.led_to(service_with_events.url):
        yield app


def events(app: App, reason: str = "") -> list[Json]:
    """Returns the TApp's Events, oldest first."""
    found = app.kube.list_all("events.k8s.io/v1", "events", app.namespace)
    ours = [each for each in found if each["reportingController"] == "tapp-hooks"]
    ours.sort(key=lambda each: each["eventTime"])
    return [each for each in ours if reason in ("", each["reason"])]


def attempts(cluster: Cluster, mark: int, namespace: str) -> list[Write]:
    """Returns the hooks' requests to the API server since a mark, and asserts that all create
    Events.
    """
    assert cluster.audit is not None
    found = [each for each in cluster.audit.asked(mark, USER) if each.namespace == namespace]
    assert {write.what for write in found} <= {"create events"}
    return found


def wait_for(app: App, reason: str, count: int = 1) -> None:
    app.until(lambda: len(events(app, reason)) == count, f"{count} times {reason}")


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("replicas", "budget"),
    [(5, 1), (60, "10%")],
    ids=["five instances one by one", "sixty instances by tenths"],
)
def test_events_report_creation_updates_and_completion_of_a_rollout(
    app_with_events: App, cluster: Cluster, note: list[str], replicas: int, budget: int | str
) -> None:
    app = app_with_events
    begun = cluster.audit.mark() if cluster.audit else 0
    app.apply(tapp(replicas=replicas, updateStrategy={"maxUnavailable": budget})).settle(120)
    wait_for(app, "Completed")
    assert Counter(each["reason"] for each in events(app)) == {"Created": 1, "Completed": 1}
    (created,) = events(app, "Created")
    assert f"instances 0-{replicas - 1}: pods created from template 'default'" in created["note"]
    assert created["regarding"]["uid"] == app.kube.request("GET", app.path)["metadata"]["uid"]

    app.patch(template=template("app:2")).settle(180)
    wait_for(app, "Completed", 2)
    counts = Counter(each["reason"] for each in events(app))
    steps = counts.pop("UpdatedInPlace")
    assert counts == {"Created": 1, "Completed": 2, "Waiting": 1}
    assert steps == replicas if replicas < 10 else steps <= 10

    asked = attempts(cluster, begun, app.namespace)
    made = [write for write in asked if write.accepted]
    assert len(made) == len(events(app))
    # Each worker tries to create an Event once. Only the first of the four succeeds.
    assert {write.code for write in asked} <= {201, 409}
    assert len(asked) <= 4 * len(made)
    pods = len([w for w in app.news() if w.resource == "pods" and w.accepted])
    note.append(
        f"{replicas} instances created and rolled: {len(made)} events in {len(asked)} requests, "
        f"beside {pods} writes of pods"
    )
    note += [f"{each['reason']}: {each['note']}" for each in events(app)]


def test_kubectl_describe_shows_the_events(app_with_events: App, kubectl: Kubectl) -> None:
    app = app_with_events
    made = tapp(replicas=2, forceDeletePod=True)
    made["metadata"]["annotations"] = {"apps.tkestack.io/lost-node-seconds": "soon"}
    app.apply(made)
    wait_for(app, "InvalidLostNodeSeconds")
    wait_for(app, "Created")
    app.trigger_sync()
    app.trigger_sync()
    shown = kubectl("describe", "tapp", "web", "-n", app.namespace).split("Events:")[1]
    assert re.search(
        r"Normal +Created +\S+ +tapp-hooks +instances 0, 1: pods created from template", shown
    )
    assert re.search(r"Warning +InvalidLostNodeSeconds +\S+ +tapp-hooks +.*'soon'", shown)
    assert shown.count("InvalidLostNodeSeconds") == 1
    by_time = kubectl("get", "events", "-n", app.namespace, "--sort-by=.eventTime")
    assert "Created " in by_time
    assert "Completed " not in by_time  # a degraded TApp is not Completed


def test_syncs_continue_if_the_role_for_events_is_missing(
    app_with_events: App, cluster: Cluster, service_with_events: HookService
) -> None:
    app = app_with_events
    (binding,) = [
        each
        for each in documents(COMPONENT / "account.yaml")
        if each["kind"] == "ClusterRoleBinding"
    ]
    app.kube.request("DELETE", app.kube.path_of(binding))
    try:
        begun = cluster.audit.mark() if cluster.audit else 0
        app.apply(tapp(replicas=3)).settle()
        app.until(
            lambda: 403 in {write.code for write in attempts(cluster, begun, app.namespace)},
            "the API server refuses the Event",
        )
        assert events(app) == []
        said = "cannot create resource"
        # The message follows the last attempt.
        app.until(lambda: said in service_with_events.log, "the log contains the refusal")
    finally:
        app.kube.apply(binding)


def test_syncs_are_answered_while_the_api_server_is_down(
    app_with_events: App, cluster: Cluster, hook_proxy: HookProxy
) -> None:
    """A restart of the API server must cost neither a response nor an Event."""
    if cluster.control_plane is None:
        pytest.skip("the API server is not ours to stop")
    app = app_with_events
    app.apply(tapp(replicas=3)).settle()
    request = app.calls()[-1].replace(b"app:1", b"app:9")
    cluster.control_plane._api.stop()
    try:
        status, _ = hook_proxy.answer("/sync", {"Content-Type": "application/json"}, request)
        assert status == 200
    finally:
        cluster.control_plane.start_api()
    app.until(lambda: bool(events(app, "UpdatedInPlace")), "the event arrives late", 30)


def rights_of(kubectl: Kubectl, account: str) -> set[tuple[str, str]]:
    """Returns resource and verbs that `kubectl auth can-i --list` names for a service account."""
    groups = (f"--as-group=system:{name}" for name in ("serviceaccounts", "authenticated"))
    listed = kubectl("auth", "can-i", "--list", "--no-headers", f"--as={account}", *groups)
    rows = [re.split(r"  +", line.strip()) for line in listed.splitlines() if line.strip()]
    return {(row[0], row[-1]) for row in rows if not row[0].startswith(("/", "["))}


def test_account_of_events_has_only_the_right_to_create_events(
    kubectl: Kubectl, account: Path, kube: Kube
) -> None:
    """Besides `create events`, the account has only the rights of every account, which grow with
    Kubernetes.
    """
    ours, everybodys = rights_of(kubectl, USER), rights_of(kubectl, f"{USER}-not")
    assert ("selfsubjectaccessreviews.authorization.k8s.io", "[create]") in everybodys
    assert ours - everybodys == {("events.events.k8s.io", "[create]")}
    with pytest.raises(KubeError):
        kube.get("v1", "secrets", "tapp-system", "tapp-hooks-token")
    assert (account / "token").stat().st_size
