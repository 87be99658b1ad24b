"""Uninstallation in the wrong order is refused, or has no effect that cannot be reverted."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from .app import App, tapp
from .cluster import REPOSITORY, Cluster
from .hook import HookService
from .kube import Json, Kube, KubeError, documents
from .metacontroller import SHIPPED, Controller
from .proxy import HookProxy
from .waiting import PATIENCE, until

pytestmark = pytest.mark.e2e
GUARD = REPOSITORY / "metacontroller" / "base" / "guard.yaml"
DEFINITIONS = ("apiextensions.k8s.io/v1", "customresourcedefinitions")
TAPPS = "tapps.apps.tkestack.io"
ALLOWED = "apps.tkestack.io/delete-all-tapps"
LABEL = "e2e.fake/victim"
DRY = {"dryRun": ["All"]}


@pytest.fixture(autouse=True)
def ours(cluster: Cluster) -> None:
    """Skips unless the cluster belongs to the tests."""
    if cluster.backend != "local":
        pytest.skip("takes apart what others rely on")


# --- the definition -------------------------------------------------------------------------------


def change(kube: Kube, **metadata: Json) -> None:
    """Sets labels or annotations of TApp's definition."""
    kube.patch(kube.path(*DEFINITIONS, None, TAPPS), {"metadata": metadata})


@pytest.fixture
def guarded(kube: Kube) -> Iterator[Kube]:
    """Installs the shipped policy, and restores the definition at the end."""
    for each in documents(GUARD):
        kube.apply(each)
    until(lambda: refusal(kube) is not None, "the policy comes into force", PATIENCE)
    yield kube
    change(kube, annotations={ALLOWED: None}, labels={LABEL: None})
    for each in reversed(documents(GUARD)):
        kube.request("DELETE", kube.path_of(each))


def refusal(kube: Kube, name: str = TAPPS) -> str | None:
    """Returns why a definition cannot be deleted (dry run), or None if it can."""
    try:
        assert kube.delete(*DEFINITIONS, None, name, **DRY)
    except KubeError as error:
        return f"{error.status}: {error.message}"
    return None


def test_policy_refuses_the_deletion_of_the_crd_without_an_annotation(guarded: Kube) -> None:
    """The message says what a deletion would do, and the command that allows it.

    The deletion of a whole collection, which has no name, is refused as well. Other definitions can
    be deleted.
    """
    why = refusal(guarded)
    assert why is not None
    assert why.startswith("403: ")
    assert "deleting this definition deletes every TApp of the cluster with its pods" in why
    command = why.partition("run first: ")[2]
    assert command == f"kubectl annotate crd {TAPPS} {ALLOWED}=true"
    change(guarded, labels={LABEL: "yes"})
    many = {"labelSelector": f"{LABEL}=yes", "dryRun": "All"}
    with pytest.raises(KubeError, match="deletes every TApp of the cluster"):
        guarded.request("DELETE", guarded.path(*DEFINITIONS), None, many)
    assert refusal(guarded, "compositecontrollers.metacontroller.k8s.io") is None
    change(guarded, annotations={ALLOWED: "false"})
    assert refusal(guarded) is not None
    change(guarded, annotations={ALLOWED: "true"})
    assert refusal(guarded) is None


# --- the registration and the service -------------------------------------------------------------


@pytest.fixture
def registration(tapps: Controller, hook_proxy: HookProxy) -> Iterator[Json]:
    """The shipped CompositeController, which is registered again at the end."""
    (shipped,) = documents(SHIPPED[0])
    yield shipped
    tapps.register(shipped, hook_proxy.url)


def test_tapp_keeps_running_without_its_registration(
    app: App, tapps: Controller, hook_proxy: HookProxy, registration: Json
) -> None:
    """No pod changes.

    A TApp that was deleted in the meantime ends when the registration returns.
    """
    app.apply(tapp()).settle()
    before = app.uids()
    tapps.unregister(registration["metadata"]["name"])
    app.news()
    time.sleep(1)
    app.patch(replicas=1)
    time.sleep(2)
    assert app.uids() == before
    assert app.wrote()
    tapps.register(registration, hook_proxy.url)
    app.settle()
    assert app.uids() == {0: before[0]}
    tapps.unregister(registration["metadata"]["name"])
    time.sleep(1)
    app.kube.delete("apps.tkestack.io/v1", "tapps", app.namespace, app.name)
    time.sleep(2)
    assert app.found is not None
    assert app.uids() == {0: before[0]}
    tapps.register(registration, hook_proxy.url)
    app.until(lambda: app.found is None, "the TApp is gone")


def test_tapp_keeps_running_without_the_service(app: App, hook: HookService) -> None:
    app.apply(tapp()).settle()
    before = app.uids()
    hook.stop()
    try:
        app.kube.delete("apps.tkestack.io/v1", "tapps", app.namespace, app.name)
        time.sleep(2)
        assert app.found is not None
        assert app.uids() == before
    finally:
        hook.start()
    app.until(lambda: app.found is None, "the TApp is gone")
