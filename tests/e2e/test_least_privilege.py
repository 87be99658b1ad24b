"""The role that docs/security.md gives Metacontroller: sufficient for a TApp's life, and without a
spare right.

All tests run with this role (metacontroller.py). Here the API server's audit log tells the rights
in use, and the real Metacontroller runs without each of the rules in turn.
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
"""Rights that only an admission plugin checks, which this API server does not run."""
GATE = "apps.tkestack.io/InPlaceUpdateReady"
HISTORY = ("apps/v1", "controllerrevisions")
SECONDS = 8.0
"""Seconds to wait for a TApp that must not become complete. A TApp with all rights needs less."""


def rights(rules: list[Json]) -> set[Right]:
    """Returns the single rights of the rules."""
    return {
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def right(request: Write) -> Right:
    """Returns the right that a request needs."""
    resource = "/".join(part for part in (request.resource, request.subresource) if part)
    return request.group, resource, request.verb


def stored(image: str = "app:1", **container: Any) -> Json:
    """Returns a template with a mounted claim and the readiness gate."""
    made = template(image, readinessGates=[{"conditionType": GATE}])
    made["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    made["spec"]["containers"][0] |= container
    return made


def full_tapp() -> Json:
    """Returns a TApp that uses all functions of the service."""
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return tapp(
        replicas=2,
        template=stored(),
        volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": claim}],
        persistentVolumeClaimRetentionPolicy={"whenScaled": "Delete", "whenDeleted": "Delete"},
        updateStrategy={"inPlaceUpdateStrategy": {"gracePeriodSeconds": 1}},
    )


def owned(found: Json) -> bool:
    """Returns True if an object has a controller."""
    return any(each.get("controller") for each in found["metadata"].get("ownerReferences") or [])


@pytest.fixture
def enforced(cluster: Cluster, tapps: Controller) -> Cluster:
    """The cluster; skips unless its audit log is readable and the real Metacontroller has this
    role.
    """
    if cluster.audit is None:
        pytest.skip("the audit log of this cluster cannot be read")
    if metacontroller_manifests({}) is not None or not isinstance(tapps, RealMetacontroller):
        pytest.skip("the rights are those of the real Metacontroller: METACONTROLLER_BIN=FILE")
    return cluster


def requests_of_metacontroller(cluster: Cluster, since: int = 0) -> list[Write]:
    """Returns the requests of Metacontroller, without those about test definitions."""
    assert cluster.audit is not None
    found = cluster.audit.asked(since, USER)
    return [each for each in found if each.resource and each.group != "e2e.fake"]


def test_least_privilege_role_is_sufficient_and_fully_used(
    enforced: Cluster, app: App, hook_proxy: HookProxy
) -> None:
    """The life includes claims, a drain, new pods, adopted orphans, refused syncs and the
    deletion.
    """
    app.apply(full_tapp()).settle()
    app.patch(template=stored("app:2")).settle()
    app.patch(template=stored("app:2", env=[{"name": "A", "value": "1"}])).settle()
    app.patch(replicas=1).settle()
    app.until(lambda: len(app.claims()) == 1, "the claim is deleted with its instance")
    hook_proxy.fail(4)
    app.patch(replicas=2).settle(60)
    kept = app.kube.list_all(HISTORY[0], HISTORY[1], app.namespace)
    orphans = [("v1", "pods", "web-0"), ("v1", "persistentvolumeclaims", "data-web-0")]
    for *kind, name in [*orphans, (*HISTORY, kept[0]["metadata"]["name"])]:
        path = app.kube.path(kind[0], kind[1], app.namespace, name)
        app.kube.patch(path, {"metadata": {"ownerReferences": None}})
        app.until(lambda path=path: owned(app.kube.request("GET", path)), f"{name} is adopted")
    app.delete()
    requests = requests_of_metacontroller(enforced)
    refused = {right(each) for each in requests if each.code == 403}
    assert refused == set()
    used = {right(each) for each in requests}
    # A newer API server sends the list in the response to a watch; an older one gets a list
    # request.
    used |= {(group, resource, "list") for group, resource, verb in used if verb == "watch"}
    assert used - rights(ROLE["rules"]) == set()
    assert rights(ROLE["rules"]) - used - NOT_ENFORCED == set()


@pytest.fixture
def without(
    request: pytest.FixtureRequest, enforced: Cluster, kube: Kube, tapps: Controller
) -> Iterator[set[Right]]:
    """Restarts Metacontroller without one rule, and restores the role afterwards."""
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
def test_missing_rule_of_the_role_causes_a_refusal(
    request: pytest.FixtureRequest, without: set[Right], enforced: Cluster
) -> None:
    """A right that is never missed is not needed.

    Only Events are optional for a TApp to become complete.
    """
    assert enforced.audit is not None
    mark = enforced.audit.mark()
    app = request.getfixturevalue("app")
    app.apply(full_tapp())
    if any(resource == "events" for _, resource, _ in without):
        app.settle()
    else:
        with pytest.raises(AssertionError, match="the TApp is complete"):
            app.settle(SECONDS)
    # Requests of earlier tests do not count: a namespace in deletion refuses new objects. The
    # namespace `default` has the Events of the registered controllers.
    ours = [
        each
        for each in requests_of_metacontroller(enforced, mark)
        if each.namespace in ("", "default", app.namespace)
    ]
    refused = {right(each) for each in ours if each.code == 403}
    assert refused
    assert refused <= without
