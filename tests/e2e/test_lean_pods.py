"""The policy `tapp-lean-pods` on a real API server: the text that it cuts, and the life of lean
pods.

With `E2E_POLICIES=lean` all tests run with the policy. These tests install and delete it while pods
run.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from simulator.api.admission import lean_pods
from simulator.api.apply import LAST_APPLIED
from simulator.objects.objects import annotations_of
from tests.simulator.last_applied import CUT, LEFT_ALONE

from .app import App, each, tapp, template
from .kube import Json, Kube, KubeError
from .policies import LEAN, OURS, OWNER, copy_of, pod_with, put, stored, take
from .realnode.trial import Trial

pytestmark = pytest.mark.e2e


@pytest.fixture
def lean(install: Callable[..., None]) -> None:
    """Installs the policy for the test."""
    install(LEAN)


def copies(app: App) -> list[Json]:
    """Returns the parsed last-applied annotation of each pod, sorted by instance number.
    Metacontroller writes this annotation.
    """
    pods = [pod for _, pod in sorted(app.pods.items())]
    return [json.loads(pod["metadata"]["annotations"][LAST_APPLIED]) for pod in pods]


def are_lean(app: App) -> bool:
    """Returns True if no pod has a copy of its spec, or managedFields."""
    histories = [pod["metadata"].get("managedFields") for pod in app.pods.values()]
    return not any(histories) and not any("spec" in copy for copy in copies(app))


# --- the cut text ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("lean")
def test_lean_policy_cuts_only_the_spec_for_any_text(kube: Kube) -> None:
    """The CEL expression and the simulator's Python must give the same result."""
    for text, left in [*CUT, *((text, text) for text in LEFT_ALONE)]:
        pod = pod_with(text, OURS, OWNER)
        expected = {LAST_APPLIED: left, "other": "1"}
        assert stored(kube, pod)["annotations"] == expected, f"the policy, for {text}"
        assert annotations_of(lean_pods("CREATE", pod))[LAST_APPLIED] == left, (
            f"the simulator, for {text}"
        )


@pytest.mark.usefixtures("lean")
def test_lean_policy_cuts_a_very_long_copy(kube: Kube) -> None:
    """The API server limits the cost of a policy, which a long text may exceed."""
    long = {"annotations": {"a": 'x"},"spec":{' * 8_000}}
    text = copy_of({"a": {"b": "y" * 60_000}}, **long)
    assert len(text) > 150_000
    assert stored(kube, pod_with(text, OURS, OWNER))["annotations"][LAST_APPLIED] == copy_of(**long)


@pytest.mark.usefixtures("lean")
def test_lean_policy_leaves_foreign_pods_unchanged(kube: Kube) -> None:
    text = copy_of({"containers": []})
    others = [
        pod_with(text, OURS),
        pod_with(text, {}, OWNER),
        pod_with(text, OURS, {**OWNER, "kind": "ReplicaSet"}),
        pod_with(text, OURS, {**OWNER, "apiVersion": "other/v1"}),
        pod_with(None, OURS, OWNER),
    ]
    for pod in others:
        found = stored(kube, pod)
        assert found["annotations"] == pod["metadata"]["annotations"], pod["metadata"]
        assert found["managedFields"], pod["metadata"]


# --- at work --------------------------------------------------------------------------------------


@pytest.mark.usefixtures("lean")
def test_lean_pods_are_updated_replaced_and_deleted_like_others(app: App) -> None:
    """Metacontroller compares pods with its annotation, so a cut annotation could cause further
    writes.
    """
    app.apply(tapp()).settle()
    assert app.wrote(*each("create Pod", "web", 0, 1, 2))
    assert are_lean(app)
    assert app.idle()
    uids = app.uids()
    app.patch(template=template("app:2")).settle()
    assert app.wrote_in_order(*each("update Pod", "web", 0, 1, 2))
    assert app.images() == "app:2 app:2 app:2"
    assert app.uids() == uids
    assert app.idle()
    assert are_lean(app)
    app.patch(template=template("app:2", hostname="h")).settle()
    assert app.wrote(*each("delete Pod", "web", 0, 1, 2), *each("create Pod", "web", 0, 1, 2))
    app.patch(replicas=0).settle()
    assert app.wrote(*each("delete Pod", "web", 0, 1, 2))


# --- installed and deleted while pods run ---------------------------------------------------------


def test_existing_pods_become_lean_at_their_next_write(
    app: App, install: Callable[..., None]
) -> None:
    """The installation must write and restart nothing. Existing managedFields stay."""
    app.apply(tapp()).settle()
    app.wrote(*each("create Pod", "web", 0, 1, 2))
    install(LEAN)
    assert app.idle()
    assert all("spec" in copy for copy in copies(app))
    uids = app.uids()
    app.patch(template=template("app:2")).settle()
    assert app.wrote_in_order(*each("update Pod", "web", 0, 1, 2))
    assert not any("spec" in copy for copy in copies(app))
    assert all(pod["metadata"]["managedFields"] for pod in app.pods.values())
    assert app.idle()
    app.patch(template=template("app:3"), replicas=4).settle()
    assert app.wrote(*each("update Pod", "web", 0, 1, 2), "create Pod web-3")
    assert {**app.uids(), 3: ""} == {**uids, 3: ""}
    assert app.idle()


def test_lean_pods_stay_usable_after_the_policy_is_deleted(
    app: App, kube: Kube, install: Callable[..., None]
) -> None:
    install(LEAN)
    app.apply(tapp()).settle()
    app.wrote(*each("create Pod", "web", 0, 1, 2))
    uids = app.uids()
    take(kube, LEAN)
    assert app.idle()
    app.patch(template=template("app:2")).settle()
    assert app.wrote_in_order(*each("update Pod", "web", 0, 1, 2))
    assert app.idle()
    containers = [{"image": "app:2", "name": "main"}]
    assert [copy["spec"] for copy in copies(app)] == [{"containers": containers}] * 3
    put(kube, LEAN)
    app.patch(template=template("app:3")).settle()
    assert app.wrote_in_order(*each("update Pod", "web", 0, 1, 2))
    assert app.images() == "app:3 app:3 app:3"
    assert app.uids() == uids
    assert app.idle()
    assert are_lean(app)


# --- other writers --------------------------------------------------------------------------------


@pytest.mark.usefixtures("lean")
def test_server_side_apply_on_a_lean_pod_keeps_the_label_of_the_user(app: App, kube: Kube) -> None:
    """The apply starts managedFields, so that the user owns the label until the next apply omits
    it.
    """
    app.apply(tapp()).settle()
    app.wrote(*each("create Pod", "web", 0, 1, 2))
    metadata: Json = {"name": "web-1", "namespace": app.namespace}

    def applies(force: bool = False, **labels: str) -> Any:
        mine = {"apiVersion": "v1", "kind": "Pod", "metadata": {**metadata, "labels": labels}}
        return kube.apply(mine, force=force)["metadata"]

    with pytest.raises(KubeError, match="conflict"):
        applies(app="another")
    found = applies(mine="1")
    managers = {entry["manager"] for entry in found["managedFields"]}
    assert managers == {"before-first-apply", "tapp-e2e"}
    app.quiet()
    app.patch(template=template("app:2")).settle()
    assert app.wrote_in_order(*each("update Pod", "web", 0, 1, 2))
    pod = app.pod(1)
    assert pod["metadata"]["labels"]["mine"] == "1"
    assert pod["metadata"]["managedFields"]
    assert "spec" not in copies(app)[1]
    assert "mine" not in applies()["labels"]
    assert app.idle()


# --- on the real node -----------------------------------------------------------------------------


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("lean")
def test_lean_pods_are_updated_in_place_on_a_real_kubelet(real: Trial) -> None:
    """The time of the kubelet's last report is cut, so the report itself has to prove the
    update.
    """
    real.create("1")
    app = real.app
    app.wrote(*each("create Pod", "web", 0, 1, 2))
    uids = app.uids()
    real.roll("2")
    assert real.tags() == "2 2 2"
    assert app.uids() == uids
    assert set(app.restarts().values()) == {1}
    assert app.wrote_in_order(*each("update Pod", "web", 0, 1, 2))
    assert real.never_fewer_than(2)
    assert app.idle()
    assert are_lean(app)
