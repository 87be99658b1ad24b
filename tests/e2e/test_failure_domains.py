"""Failure domains (`updateStrategy.domain`) on nodes in zones, with the real API server and its
scheduler.

The API server copies the zone of a node to each pod that is bound to the node. A watch of the test
checks at every event that the pods of at most one zone are not available.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from .app import App, tapp, template
from .informer import Informer
from .kube import Json, Kube, KubeError
from .kubelet_controls import Levers
from .nodes import LABEL
from .pods import is_ready

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
ZONE = "topology.kubernetes.io/zone"
COPIED_FROM = 35
"""The minor version of Kubernetes that copies the zone to pods by default, and all newer ones."""


@pytest.fixture
def zones(kube: Kube) -> Iterator[list[str]]:
    """Puts each fake node into a zone of its own, and returns the zones."""
    nodes = sorted(
        node["metadata"]["name"]
        for node in kube.list_all("v1", "nodes")
        if LABEL in node["metadata"]["labels"]
    )
    found = [f"zone-{letter}" for letter, _ in zip("abc", nodes, strict=False)]
    try:
        for name, zone in zip(nodes, found, strict=False):
            kube.patch(f"/api/v1/nodes/{name}", {"metadata": {"labels": {ZONE: zone}}})
        yield found
    finally:
        for name in nodes:
            kube.patch(f"/api/v1/nodes/{name}", {"metadata": {"labels": {ZONE: None}}})


class Outages:
    """Watches which zones have an instance that is not available.

    Attributes:
        began: the zones in the order in which their first instance became unavailable.
        most: the greatest number of zones that had unavailable instances at the same time.
    """

    def __init__(self, kube: Kube, namespace: str, before: dict[int, str]) -> None:
        self.began: list[str] = []
        self.most = 0
        self._zones = {f"web-{id}": zone for id, zone in before.items()}
        self._serving = dict.fromkeys(self._zones, True)
        self._lock = threading.Lock()
        self._informer = Informer(kube, kube.path("v1", "pods", namespace), self._heard)

    def __enter__(self) -> Outages:
        self._informer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._informer.stop()

    def _heard(self, change: str, pod: Json) -> None:
        name = pod["metadata"]["name"]
        gone = change == "DELETED" or "deletionTimestamp" in pod["metadata"]
        with self._lock:
            if name not in self._zones:
                return
            self._serving[name] = is_ready(pod) and not gone
            down = {self._zones[one] for one, serves in self._serving.items() if not serves}
            self.began += sorted(down - {*self.began})
            self.most = max(self.most, len(down))


def pinned(replicas: int, zones: list[str], image: str = "app:1", **strategy: object) -> Json:
    """Returns a TApp whose instances run in the zones in turn, and come back in their zone."""
    body = template(image, nodeSelector={ZONE: "$(tapp.values.zone)"})
    return tapp(
        replicas=replicas,
        template=body,
        values={str(id): {"zone": zones[id % len(zones)]} for id in range(replicas)},
        updateStrategy={"domain": ZONE, "maxUnavailable": "100%", **strategy},
    )


def zones_of(app: App) -> dict[int, str]:
    """Returns instance number -> zone in the label of its pod."""
    return {id: pod["metadata"]["labels"].get(ZONE, "") for id, pod in app.pods.items()}


def other(made: Json, **container: object) -> Json:
    """Returns the template of a TApp with other fields of its container."""
    (main,) = made["spec"]["template"]["spec"]["containers"]
    spec = {**made["spec"]["template"]["spec"], "containers": [{**main, **container}]}
    return {**made["spec"]["template"], "spec": spec}


@pytest.mark.parametrize("replicas", [1, 3, 12])
@pytest.mark.parametrize(
    "change", [{"command": ["run"]}, {"image": "app:2"}], ids=["new pods", "in place"]
)
def test_zones_are_updated_one_after_the_other(  # noqa: PLR0913, PLR0917 - fixtures
    app: App,
    kube: Kube,
    levers: Levers,
    zones: list[str],
    needs: Callable[[int, str], None],
    replicas: int,
    change: Json,
) -> None:
    needs(COPIED_FROM, "labels of zones on pods")
    made = pinned(replicas, zones)
    app.apply(made).settle()
    before = zones_of(app)
    assert before == {id: zones[id % 3] for id in range(replicas)}
    assert app.condition("DomainLabelMissing") == ""
    levers.ready_seconds = 1.0
    app.news()
    with Outages(kube, app.namespace, before) as outages:
        app.patch(template=other(made, **change)).settle()
    assert zones_of(app) == before
    if "command" in change:
        assert outages.most == 1
        assert outages.began == zones[: min(replicas, 3)]
    else:
        # The status of a pod whose containers restart in place without probes stays Ready.
        written = [before[int(line.rpartition("-")[2])] for line in app.writes()]
        assert written == sorted(before.values())
    assert app.idle()


def test_broken_update_stays_in_its_zone(
    app: App, kube: Kube, levers: Levers, zones: list[str], needs: Callable[[int, str], None]
) -> None:
    needs(COPIED_FROM, "labels of zones on pods")
    made = pinned(6, zones)
    app.apply(made).settle()
    before, born = zones_of(app), app.uids()
    levers.unready_images.add("app:bad")
    with Outages(kube, app.namespace, before) as outages:
        app.patch(template=other(made, image="app:bad", command=["run"]))
        app.until(lambda: app.images().count("app:bad") == 2, "the pods of zone a are replaced")
        app.quiet()
        assert app.images() == "app:bad app:1 app:1 app:bad app:1 app:1"
        assert {id for id, uid in app.uids().items() if uid != born[id]} == {0, 3}
        assert "wait for another failure domain, until instances 0, 3 of domain zone-a" in (
            app.condition("Progressing")
        )
        app.patch(template=other(made, image="app:3", command=["run"])).settle()
    assert outages.most == 1
    assert outages.began == zones
    assert app.images() == " ".join(["app:3"] * 6)


def test_pods_without_a_zone_are_updated_one_at_a_time(app: App) -> None:
    """So it is on Kubernetes 1.34, and on nodes without zones."""
    app.apply(tapp(updateStrategy={"domain": ZONE, "maxUnavailable": "100%"})).settle()
    assert f"have no label '{ZONE}' (instances 0-2)" in app.condition("DomainLabelMissing")
    app.watcher.begin()
    app.news()
    app.patch(template=template(hostname="other")).settle()
    assert app.watcher.fewest == 2
    assert app.wrote_in_order(
        *[f"{verb} Pod web-{id}" for id in range(3) for verb in ("delete", "create")]
    )


def test_label_of_the_template_works_in_every_version(app: App) -> None:
    body = template()
    body["metadata"]["labels"]["rack"] = "$(tapp.values.rack)"
    app.apply(
        tapp(
            replicas=4,
            template=body,
            defaultValues={"rack": "r1"},
            values={"1": {"rack": "r2"}, "3": {"rack": "r2"}},
            updateStrategy={"domain": "rack", "maxUnavailable": "100%"},
        )
    ).settle()
    app.watcher.begin()
    app.patch(template={"spec": {"hostname": "other"}}).settle()
    assert app.watcher.fewest == 2
    assert app.condition("DomainLabelMissing") == ""


@pytest.mark.parametrize("key", ["my zone", "/zone", "a/b/c", "x" * 64])
def test_api_server_refuses_texts_that_are_no_label_keys(app: App, key: str) -> None:
    with pytest.raises(KubeError, match=r"updateStrategy\.domain"):
        app.apply(tapp(updateStrategy={"domain": key}))


def test_binding_replaces_a_zone_that_the_template_sets(
    app: App, zones: list[str], needs: Callable[[int, str], None]
) -> None:
    """The label says where the pod runs, and the service does not write the template's value
    again.
    """
    needs(COPIED_FROM, "labels of zones on pods")
    body = template(nodeSelector={ZONE: zones[1]})
    body["metadata"]["labels"][ZONE] = "elsewhere"
    app.apply(tapp(replicas=1, template=body, updateStrategy={"domain": ZONE})).settle()
    assert zones_of(app) == {0: zones[1]}
    assert app.idle()
