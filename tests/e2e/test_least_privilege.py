"""The rights that docs/security.md gives Metacontroller: enough for a TApp's life, and all needed.

The whole suite runs with them (metacontroller.py). Here the API server's audit log says which of
them were used, and the real Metacontroller is run without each of them in turn.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from .app import App, tapp, template
from .audit import Write
from .cluster import Cluster
from .definitions import metacontroller_manifests
from .kube import Json, Kube, documents
from .metacontroller import LEAST, USER, Controller, RealMetacontroller
from .proxy import HookProxy

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
(ROLE,) = documents(LEAST)
Right = tuple[str, str, str]
"""Group, resource (with its subresource) and verb."""
NOT_ENFORCED = {("apps.tkestack.io", "tapps/finalizers", "update")}
"""Checked by an admission plugin only that this API server does not run."""
GATE = "apps.tkestack.io/InPlaceUpdateReady"
HISTORY = ("apps/v1", "controllerrevisions")
SECONDS = 8.0
"""Seconds for which a life that cannot go on is waited for; one that can takes less."""


def rights(rules: list[Json]) -> set[Right]:
    """Rights of the rules, one by one."""
    return {
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def right(request: Write) -> Right:
    """Rights that a request needs."""
    resource = "/".join(part for part in (request.resource, request.subresource) if part)
    return request.group, resource, request.verb


def stored(image: str = "app:1", **container: Any) -> Json:
    """A template with a claim and the readiness gate."""
    made = template(image, readinessGates=[{"conditionType": GATE}])
    made["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    made["spec"]["containers"][0] |= container
    return made


def whole() -> Json:
    """A TApp that uses all that the service can do."""
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return tapp(
        replicas=2,
        template=stored(),
        volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": claim}],
        persistentVolumeClaimRetentionPolicy={"whenScaled": "Delete", "whenDeleted": "Delete"},
        updateStrategy={"inPlaceUpdateStrategy": {"gracePeriodSeconds": 1}},
    )


def owned(found: Json) -> bool:
    """True if an object has a controller again."""
    return any(each.get("controller") for each in found["metadata"].get("ownerReferences") or [])


@pytest.fixture
def enforced(cluster: Cluster, tapps: Controller) -> Cluster:
    """The cluster, where what is asked for can be read and Metacontroller has our role."""
    if cluster.audit is None:
        pytest.skip("the audit log of this cluster cannot be read")
    if metacontroller_manifests({}) is not None or not isinstance(tapps, RealMetacontroller):
        pytest.skip("the rights are those of the real Metacontroller: METACONTROLLER_BIN=FILE")
    return cluster


def asked(cluster: Cluster, since: int = 0) -> list[Write]:
    """Requests of Metacontroller, its test definitions left out."""
    assert cluster.audit is not None
    found = cluster.audit.asked(since, USER)
    return [each for each in found if each.resource and each.group != "e2e.fake"]


def test_a_tapp_lives_and_ends_with_them_and_uses_each(
    enforced: Cluster, app: App, hook_proxy: HookProxy
) -> None:
    """Claims, a drain, new pods, an orphan that is found again, refused syncs, the end."""
    app.apply(whole()).settle()
    app.patch(template=stored("app:2")).settle()
    app.patch(template=stored("app:2", env=[{"name": "A", "value": "1"}])).settle()
    app.patch(replicas=1).settle()
    app.until(lambda: len(app.claims()) == 1, "the claim goes with its instance")
    hook_proxy.fail(4)
    app.patch(replicas=2).settle(60)
    kept = app.kube.list_all(HISTORY[0], HISTORY[1], app.namespace)
    orphans = [("v1", "pods", "web-0"), ("v1", "persistentvolumeclaims", "data-web-0")]
    for *kind, name in [*orphans, (*HISTORY, kept[0]["metadata"]["name"])]:
        path = app.kube.path(kind[0], kind[1], app.namespace, name)
        app.kube.patch(path, {"metadata": {"ownerReferences": None}})
        app.until(lambda path=path: owned(app.kube.request("GET", path)), f"{name} is taken back")
    app.delete()
    requests = asked(enforced)
    refused = {right(each) for each in requests if each.code == 403}
    assert refused == set()
    used = {right(each) for each in requests}
    # A newer API server lists in the answer to a watch; an older one is asked for a list.
    used |= {(group, resource, "list") for group, resource, verb in used if verb == "watch"}
    assert used - rights(ROLE["rules"]) == set()
    assert rights(ROLE["rules"]) - used - NOT_ENFORCED == set()


@pytest.fixture
def without(
    request: pytest.FixtureRequest, enforced: Cluster, kube: Kube, tapps: Controller
) -> Iterator[set[Right]]:
    """Metacontroller, started anew without one rule; it has all of them again afterwards."""
    assert isinstance(tapps, RealMetacontroller)
    assert enforced.audit is not None
    less = copy.deepcopy(ROLE)
    taken = less["rules"].pop(request.param)
    tapps.process.stop()
    kube.apply(less)
    tapps.process.start()
    yield rights([taken])
    tapps.process.stop()
    kube.apply(ROLE)
    tapps.start()


NEEDED = [
    pytest.param(index, id=",".join(rule["resources"]))
    for index, rule in enumerate(ROLE["rules"])
    if not rights([rule]) <= NOT_ENFORCED
]


@pytest.mark.parametrize("without", NEEDED, indirect=True)
def test_without_one_of_them_something_is_refused(
    request: pytest.FixtureRequest, without: set[Right], enforced: Cluster
) -> None:
    """And but for events, which nothing waits for, the TApp does not get what it asks for."""
    assert enforced.audit is not None
    mark = enforced.audit.mark()
    app = request.getfixturevalue("app")
    app.apply(whole())
    if any(resource == "events" for _, resource, _ in without):
        app.settle()
    else:
        with pytest.raises(AssertionError, match="the TApp is complete"):
            app.settle(SECONDS)
    # Not those of earlier tests: a namespace that is being deleted refuses what is created in it.
    # In `default` are the events of what is registered.
    ours = [
        each for each in asked(enforced, mark) if each.namespace in ("", "default", app.namespace)
    ]
    refused = {right(each) for each in ours if each.code == 403}
    assert refused
    assert refused <= without
