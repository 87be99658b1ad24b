"""The limits of the API server that the service knows, on the real API server.

Each field in the table is accepted at its limit and refused beyond it. Annotations together have a
limit, most of which Metacontroller's copy of the pod uses. A pod is not deleted if the pod after it
would exceed this limit, unless the policy `tapp-lean-pods` cuts the copy.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from simulator.api.apply import LAST_APPLIED
from tapp.kube.limits import MOST_ANNOTATIONS, MOST_CUT
from tests.limits import LIMITS

from .app import App, each, tapp, template
from .kube import Json, Kube, KubeError
from .pods import dry_run_pod
from .policies import LEAN, OURS, OWNER, copy_of, pod_with, stored

pytestmark = pytest.mark.e2e
POOL = {"defaultTemplateName": "large"}
EVERYBODY = {"template": "default", "forceUpdate": {"maxUnavailable": "100%"}}


@pytest.mark.parametrize("name", LIMITS)
def test_api_server_refuses_a_field_beyond_its_limit(kube: Kube, namespace: str, name: str) -> None:
    """A wrong limit would block valid pods, or delete pods that cannot be created again."""
    made, accepted, refused, _ = LIMITS[name]
    if accepted is not None:  # otherwise a class or an account would have to exist
        dry_run_pod(kube, namespace, made(accepted))
    with pytest.raises(KubeError) as refusal:
        dry_run_pod(kube, namespace, made(refused))
    # Admission looks up a class or an account before the API server checks the name.
    assert refusal.value.status == (422 if accepted is not None else 403), str(refusal.value)


def large(length: int, image: str = "app:2") -> Json:
    """Returns a template with a variable of `length` characters."""
    made = template(image)
    made["spec"]["containers"][0]["env"] = [{"name": "LARGE", "value": "x" * length}]
    return made


def annotation_bytes(pod: Json) -> int:
    """Returns the bytes of a pod's annotations as the API server counts them."""
    return sum(len(key) + len(text) for key, text in pod["metadata"]["annotations"].items())


def assign_large_template(app: App, length: int) -> None:
    """Assigns a template of the pool with a variable of `length` characters to all instances."""
    app.patch(templatePool={"large": large(length)}, **POOL)


def test_annotations_above_the_limit_by_one_byte_keep_all_pods(app: App) -> None:
    """At the limit all instances are replaced.

    With one more byte all keep their pods, and a condition says so.
    """
    strategy = {"updateStrategy": EVERYBODY}
    app.apply(tapp(templatePool={"large": large(1_000)}, **POOL, **strategy)).settle()
    app.wrote(*each("create Pod", "web", 0, 1, 2))
    lengths = {annotation_bytes(pod) for pod in app.pods.values()}
    length = 1_000 + MOST_ANNOTATIONS - max(lengths)
    before = app.uids()
    assign_large_template(app, length + 1)
    said = "annotations of a pod would have 262145 bytes"
    app.until(lambda: said in app.condition("CreationBlocked"), "CreationBlocked is reported")
    assert app.idle()
    assert app.uids() == before
    assign_large_template(app, length)
    app.settle()
    assert set(app.uids().values()).isdisjoint(before.values())
    assert {annotation_bytes(pod) for pod in app.pods.values()} == {MOST_ANNOTATIONS}
    assert app.condition("CreationBlocked") == ""


def test_lean_policy_cuts_any_copy_up_to_its_limit(
    kube: Kube, install: Callable[..., None]
) -> None:
    """The policy cuts any content.

    The API server refuses a copy far beyond the limit before the policy.
    """
    install(LEAN)
    for letter in ("x", "<", "é"):
        empty, one = (len(copy_of({"a": text}).encode()) for text in ("", letter))
        text = copy_of({"a": letter * ((MOST_CUT - empty) // (one - empty))})
        cut = stored(kube, pod_with(text, OURS, OWNER))["annotations"][LAST_APPLIED]
        assert len(cut) < 100
    many = [{"name": f"N{number}", "value": "x"} for number in range(10_000)]
    text = copy_of({"env": many})
    assert MOST_ANNOTATIONS < len(text) <= MOST_CUT
    assert len(stored(kube, pod_with(text, OURS, OWNER))["annotations"][LAST_APPLIED]) < 100
    with pytest.raises(KubeError, match="Too long"):
        stored(kube, pod_with(copy_of({"a": "x" * 400_000}), OURS, OWNER))


def test_larger_template_is_rolled_out_once_a_lean_pod_exists(
    app: App, install: Callable[..., None]
) -> None:
    """A pod that was created under the policy proves that the other pods can be replaced."""
    app.apply(tapp(updateStrategy=EVERYBODY)).settle()
    before = app.uids()
    assign_large_template(app, 270_000)
    app.until(
        lambda: "tapp-lean-pods" in app.condition("CreationBlocked"), "CreationBlocked is reported"
    )
    assert app.uids() == before
    install(LEAN)
    app.delete_pod(0).settle()
    assert set(app.uids().values()).isdisjoint(before.values())
    assert app.condition("CreationBlocked") == ""
    copies = [pod["metadata"]["annotations"][LAST_APPLIED] for pod in app.pods.values()]
    assert all(len(copy) < 10_000 for copy in copies)


def test_pods_are_kept_if_no_kubelet_would_start_the_image(app: App, kube: Kube) -> None:
    """The API server accepts the image name `App:2`, which no kubelet can start. Only the service
    can keep the container running.
    """
    app.apply(tapp()).settle()
    before = app.uids()
    odd = template("App:2")
    app.patch(template=odd)
    app.until(
        lambda: "not an image reference" in app.condition("CreationBlocked"),
        "CreationBlocked is reported",
    )
    assert app.idle()
    assert app.images() == "app:1 app:1 app:1"
    assert app.uids() == before
    dry_run_pod(kube, app.namespace, odd)
    app.patch(template=template("app:2")).settle()
    assert app.images() == "app:2 app:2 app:2"
    assert app.uids() == before
