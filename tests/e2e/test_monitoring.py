"""The monitoring component: a real Prometheus watches a rollout, an outage and an invalid image.

The tests send the dashboard's queries to the HTTP API, with the labels that the operator would set.
The tests need Debian's `prometheus` in PATH. Queries about TApps also need kube-state-metrics.
"""

from __future__ import annotations

import json
import shlex
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.contract.pages import WATCH, section
from tests.monitoring.monitoring_files import ALERTS, on_dashboard

from .app import App, tapp, template
from .cluster import REPOSITORY, Cluster, wait_namespace_ready
from .hook import HookService
from .kube import Kube, Kubectl
from .kubelet import FakeKubelet
from .metacontroller import Controller, account_kubeconfig
from .prometheus import SECONDS, KubeStateMetrics, Prometheus, Target, kube_state_metrics
from .proxy import HookProxy

pytestmark = pytest.mark.e2e

NAMESPACE = "shop"
QUERIES = on_dashboard(
    # The values that Grafana would insert: four scrapes, one selected namespace, and all TApps.
    {"$__rate_interval": f"{4 * SECONDS}s", "$namespace": NAMESPACE, "$tapp": ".*"}
)
HOOKS = {
    "namespace": "tapp-system",
    "service": "tapp-hooks",
    "pod": "tapp-hooks-0",
    "container": "hooks",
    "endpoint": "http",
}
METACONTROLLER = {
    "namespace": "metacontroller",
    "pod": "metacontroller-0",
    "container": "metacontroller",
    "endpoint": "metrics",
}


@dataclass
class Run:
    """The observations of a run. Moments are in seconds since the epoch."""

    prometheus: Prometheus
    lacks: dict[str, str]
    """The fixture `lacks`."""
    begun: float = field(default_factory=time.time)
    moments: dict[str, float] = field(default_factory=dict)
    logged: Counter[str] = field(default_factory=Counter)
    """Counts of actions in the service's log up to the moment `rolled`."""

    def need(self, query: str) -> None:
        """Skips the test if no target serves the metrics of a query."""
        for start, reason in self.lacks.items():
            if start in query:
                pytest.skip(reason)

    def mark(self, moment: str, query: str, value: float) -> None:
        """Waits until a query has this value and alerts are evaluated, and records the moment."""
        if not any(start in query for start in self.lacks):
            self.prometheus.until(query, value)
        time.sleep(2 * SECONDS)
        self.moments[moment] = time.time()

    def alerts(self, moment: str) -> set[tuple[str, str, str]]:
        """Returns name, state and TApp of all alerts at a moment."""
        found = self.prometheus.at("ALERTS", self.moments[moment])
        return {
            (labels["alertname"], labels["alertstate"], labels.get("tapp", ""))
            for labels, _ in found
            if labels.get("namespace", NAMESPACE) in (NAMESPACE, "tapp-system")
        }


@pytest.fixture(scope="module", autouse=True)
def binary(cluster: Cluster) -> str:
    """The path of Prometheus; skips if Prometheus or the necessary rights are missing."""
    found = shutil.which("prometheus")
    if found is None:
        pytest.skip("no prometheus on PATH (Debian: prometheus)")
    if cluster.control_plane is None:
        pytest.skip("kube-system is not ours to write to, nor are the service's replicas")
    return found


@pytest.fixture(scope="module")
def service(workspace: Path, hook_proxy: HookProxy) -> Iterator[HookService]:
    """A replica with fresh counters that answers the hooks during this module."""
    directory = workspace / "monitored"
    directory.mkdir()
    made = HookService(directory).start()
    with hook_proxy.led_to(made.url):
        yield made
    made.stop()


@pytest.fixture(scope="module")
def states(
    cluster: Cluster, kube: Kube, kubectl: Kubectl, workspace: Path
) -> Iterator[KubeStateMetrics | None]:
    """Runs kube-state-metrics as docs/monitoring.md says, with the rights of its commands."""
    binary = kube_state_metrics()
    if binary is None:
        yield None
        return
    where, name = "kube-system", "kube-state-metrics"
    metadata = {"namespace": where, "name": name}
    kube.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
    block = section(WATCH, "Monitoring").split("```")[1].replace("\\\n", "")
    for line in block.strip().splitlines():
        command, *words = shlex.split(line)
        assert command == "kubectl"
        kubectl(
            *(word.replace("=metacontroller/", f"={REPOSITORY}/metacontroller/") for word in words)
        )
    account_kubeconfig(cluster, kube, workspace / name, namespace=where, name=name)
    given = kube.get("v1", "configmaps", where, "tapp-state-metrics")["data"]
    config = workspace / "kube-state-metrics.yaml"
    config.write_text(given["kube-state-metrics.yaml"])
    with KubeStateMetrics(binary, workspace, workspace / name, config) as running:
        yield running


@pytest.fixture(scope="module")
def prometheus(
    binary: str,
    service: HookService,
    tapps: Controller,
    states: KubeStateMetrics | None,
    workspace: Path,
) -> Iterator[Prometheus]:
    """Prometheus with all available targets."""
    targets = [Target("tapp-hooks", service.url.removeprefix("http://"), HOOKS)]
    if tapps.metrics:
        targets.append(Target("tapp-system/tapp-metacontroller", tapps.metrics, METACONTROLLER))
    if states:
        targets.append(Target("kube-state-metrics", states.address, honor_labels=True))
    with Prometheus(binary, workspace, targets) as running:
        running.until("sum(up)", len(targets))
        yield running


@pytest.fixture(scope="module")
def app(
    cluster: Cluster, kube: Kube, hook_proxy: HookProxy, running_kubelet: FakeKubelet
) -> Iterator[App]:
    """A TApp in the namespace of this module. The kubelet's levers are reset at the end."""
    metadata = {"name": NAMESPACE}
    kube.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    wait_namespace_ready(kube, NAMESPACE)
    yield App(cluster, kube, NAMESPACE, hook_proxy)
    kube.delete("v1", "namespaces", None, NAMESPACE)
    running_kubelet.levers.reset()


@pytest.fixture(scope="module")
def lacks(tapps: Controller, states: KubeStateMetrics | None) -> dict[str, str]:
    """For prefixes of metrics without a target: the reason why no target serves them."""
    found = {}
    if states is None:
        found["kube_tapp_"] = "no kube-state-metrics: `E2E_KUBE_STATE_METRICS=1 make e2e-binaries`"
    if not tapps.metrics:
        names = ("workqueue_", "metacontroller_", "rest_client_")
        found |= dict.fromkeys(names, "the simulator's Metacontroller has no metrics")
    return found


@pytest.fixture(scope="module")
def run(
    app: App,
    prometheus: Prometheus,
    service: HookService,
    running_kubelet: FakeKubelet,
    lacks: dict[str, str],
) -> Run:
    """Creates 30 instances, updates them with a pause, kills two in an outage, and sets an invalid
    image.
    """
    made, levers = Run(prometheus, lacks), running_kubelet.levers
    levers.reset()
    levers.pull_seconds_by_image["app:2"] = 1.0
    levers.bad_images.add("app:3")
    ready = f'sum(kube_tapp_status_replicas_ready{{namespace="{NAMESPACE}"}})'

    app.apply(tapp(replicas=30, updateStrategy={"maxUnavailable": "10%"})).settle()
    made.mark("created", ready, 30)

    some = {str(number): "canary" for number in range(25, 30)}
    app.patch(templatePool={"canary": template("app:2")}, templates=some).settle()
    app.patch(template=template("app:2"))
    app.until(
        lambda: app.images().split().count("app:2") >= 15, "half of the instances are updated"
    )
    app.patch(updateStrategy={"paused": True})
    made.mark("paused", QUERIES["Paused A"], 1)
    app.patch(updateStrategy={"paused": False}).settle()
    made.mark("rolled", ready, 30)
    made.logged = actions(service.log)

    service.stop(kill=True)
    app.patch(statuses={"28": "Killed", "29": "Killed"})
    made.prometheus.until('count(ALERTS{alertname="TAppHooksDown"})', 1)
    made.mark("away", QUERIES["Newest spec not seen A"], 1)
    service.start()
    app.settle()
    made.mark("killed", ready, 28)

    app.patch(template=template("app:3"))
    app.until(lambda: app.condition("Degraded").startswith("True"), "the TApp is degraded")
    made.mark("broken", QUERIES["Degraded A"], 1)
    return made


def actions(log: str) -> Counter[str]:
    """Returns the counts of actions in the service's log, without Keep."""
    found: Counter[str] = Counter()
    for line in log.splitlines():
        if line.startswith("{"):
            found.update(json.loads(line).get("actions") or {})
    del found["Keep"]
    return found


@pytest.mark.timeout(300)
@pytest.mark.parametrize("place", QUERIES)
def test_dashboard_query_returns_data(run: Run, place: str) -> None:
    """Each query has a result at some time of the run.

    Problems that no TApp has any more give no series.
    """
    run.need(QUERIES[place])
    assert run.prometheus.over(QUERIES[place], run.begun, run.moments["broken"])


INSTANCES = ("pods", "ready", "available", "updated", "wanted")


@pytest.mark.parametrize(
    ("moment", "instances", "by_template"),
    [
        ("created", (30, 30, 30, 30, 30), {"default": 30}),
        ("rolled", (30, 30, 30, 30, 30), {"default": 25, "canary": 5}),
        ("killed", (28, 28, 28, 28, 30), {"default": 25, "canary": 3}),
        ("broken", (28, 25, 25, 6, 30), {"default": 25, "canary": 3}),
    ],
    ids=["after the creation", "after the rollout", "after the kill", "with an invalid image"],
)
def test_dashboard_shows_the_numbers_of_instances(
    run: Run, moment: str, instances: tuple[float, ...], by_template: dict[str, float]
) -> None:
    run.need("kube_tapp_")
    at = run.moments[moment]
    shown = [run.prometheus.value(QUERIES[f"Instances {part}"], at) for part in "ABCDE"]
    assert dict(zip(INSTANCES, shown, strict=True)) == dict(zip(INSTANCES, instances, strict=True))
    found = run.prometheus.at(QUERIES["Pods of each template A"], at)
    assert {labels["template"]: value for labels, value in found} == by_template


COUNTS = ("TApps", "Not Ready", "Not available", "Degraded", "Paused", "Newest spec not seen")


@pytest.mark.parametrize(
    ("moment", "shown"),
    [
        ("rolled", {"TApps": 1}),
        ("paused", {"TApps": 1, "Not Ready": 1, "Paused": 1}),
        ("away", {"TApps": 1, "Newest spec not seen": 1}),
        ("broken", {"TApps": 1, "Not Ready": 1, "Degraded": 1}),
    ],
    ids=[
        "after the rollout",
        "while it is paused",
        "while the service is down",
        "with an invalid image",
    ],
)
def test_dashboard_counts_tapps_by_state(run: Run, moment: str, shown: dict[str, int]) -> None:
    """The dashboard shows 0 for a query without a result."""
    run.need("kube_tapp_")
    at = run.moments[moment]
    found = {title: run.prometheus.value(QUERIES[f"{title} A"], at) for title in COUNTS}
    assert {title: value for title, value in found.items() if value} == shown


def test_dashboard_table_names_unready_tapps_with_their_reason(run: Run) -> None:
    run.need("kube_tapp_")
    found = run.prometheus.at(QUERIES["Not Ready, and why A"], run.moments["broken"])
    (row,) = [labels for labels, _ in found]
    assert row == {"namespace": NAMESPACE, "tapp": "web", "reason": "InstancesBroken"}


def test_metric_of_actions_equals_the_log(run: Run) -> None:
    found = run.prometheus.at(
        "sum by (action) (tapp_hook_actions_total) > 0", run.moments["rolled"]
    )
    counted = {labels["action"]: value for labels, value in found}
    assert counted == run.logged
    assert counted["Create"] >= 30


def test_alert_rules_are_all_evaluated_without_errors(run: Run) -> None:
    groups = run.prometheus.api("rules")["groups"]
    rules = {rule["name"]: rule for group in groups for rule in group["rules"]}
    assert set(rules) == set(ALERTS)
    wrong = {name: rule.get("lastError") for name, rule in rules.items() if rule["health"] != "ok"}
    assert wrong == {}


def test_alerts_do_not_fire_early(run: Run) -> None:
    assert run.prometheus.over('ALERTS{alertstate="firing"}', run.begun, time.time()) == []


@pytest.mark.parametrize(
    ("moment", "pending"),
    [
        # At `created` an alert would be pending: a new counter has no increase yet, which looks
        # like no syncs.
        ("rolled", set()),
        ("away", {("TAppHooksDown", ""), ("TAppNotSynced", "web")}),
        ("killed", set()),
        ("broken", {("TAppDegraded", "web")}),
    ],
    ids=[
        "after the rollout",
        "while the service is down",
        "after the kill",
        "with an invalid image",
    ],
)
def test_alert_is_pending_while_its_cause_lasts(
    run: Run, moment: str, pending: set[tuple[str, str]]
) -> None:
    """While all is well no alert is pending, so none can fire later."""
    if "kube_tapp_" in run.lacks:
        pending = {(name, tapp) for name, tapp in pending if not tapp}
    if "rest_client_" in run.lacks:
        pending = pending | {("TAppMetacontrollerUnknown", "")}
    assert run.alerts(moment) == {(name, "pending", tapp) for name, tapp in pending}
