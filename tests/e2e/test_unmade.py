"""What no pod can be made of: what the real API server refuses, and that no pod goes for it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import claim_template
from tests.unit.decide.test_unmade import RIGHT, WRONG

from .admission import Reshape
from .app import App, tapp, template
from .kube import Json, Kube, KubeError
from .test_beside_injection import VOLUME, mutation

pytestmark = pytest.mark.e2e
WORDS = ("Duplicate value", "must be unique", "Not found", "must not already", "can only use")
CLAIMS = [claim_template("data"), claim_template("logs")]


def tried(kube: Kube, namespace: str, made: Json) -> None:
    """A dry run of a pod of a template.

    Raises:
        KubeError: it is refused.
    """
    pod = {"apiVersion": "v1", "kind": "Pod", **made}
    pod["metadata"] = {**made.get("metadata", {}), "name": "probe", "namespace": namespace}
    kube.request("POST", kube.path("v1", "pods", namespace), pod, {"dryRun": "All"})


@pytest.mark.parametrize("made", [wrong for wrong, _ in WRONG.values()], ids=[*WRONG])
def test_the_api_server_refuses_what_the_service_refuses(
    kube: Kube, namespace: str, made: Json
) -> None:
    """For what is said twice, or is not there, whatever else it has to say."""
    with pytest.raises(KubeError) as refusal:
        tried(kube, namespace, made)
    assert refusal.value.status == 422
    assert any(word in str(refusal.value) for word in WORDS), str(refusal.value)


@pytest.mark.parametrize("made", RIGHT.values(), ids=[*RIGHT])
def test_the_api_server_takes_what_the_service_takes(
    kube: Kube, namespace: str, made: Json
) -> None:
    """A name or a number twice is no mistake everywhere."""
    tried(kube, namespace, made)


def mounting(*names: str, image: str = "app:1", **spec: Any) -> Json:
    """A template that mounts these, and differs in more than its image from any other."""
    made = template(image, **spec)
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in names]
    (main,) = made["spec"]["containers"]
    main |= {"volumeMounts": mounts, "command": ["run", image, *names]}
    return made


def blocked(app: App, words: str) -> bool:
    """True if `CreationBlocked` says this, and the TApp is Degraded for it."""
    found = app.condition("CreationBlocked")
    return words in found and app.condition("Degraded").startswith("True CreationBlocked")


def test_a_rollback_to_a_mount_of_nothing_takes_no_pod(app: App) -> None:
    """Said at once when the claim template goes, blocked when the claims are gone, and mended."""
    first, second = mounting("data", "logs"), mounting("data", image="app:2")
    app.apply(tapp(template=first, volumeClaimTemplates=CLAIMS)).settle()
    app.patch(volumeClaimTemplates=CLAIMS[:1])
    app.until(lambda: blocked(app, "container 'main' mounts 'logs'"), "it is said at once")
    app.patch(template=second)
    app.until(lambda: app.condition("CreationBlocked") == "", "nothing mounts it any more").settle()
    for number in range(3):
        app.kube.delete("v1", "persistentvolumeclaims", app.namespace, f"logs-web-{number}")
    app.until(lambda: len(app.claims()) == 3, "the claims are gone")
    app.nudge()
    uids = app.quiet().uids()
    app.patch(template=first)
    app.until(lambda: blocked(app, "instance 0: template 'default': container 'main'"), "blocked")
    app.nudge()
    assert app.quiet().uids() == uids
    app.patch(volumeClaimTemplates=CLAIMS)
    app.settle()
    assert set(app.uids().values()).isdisjoint(uids.values())
    assert len(app.claims()) == 6
    assert app.condition("CreationBlocked") == ""


def test_what_admission_adds_is_no_mistake(reshape: Reshape, app: App) -> None:
    """A mount whose volume a policy adds: a new TApp is made, and rolls."""

    def added(pod: Json) -> bool:
        return any(volume["name"] == "certs" for volume in pod["spec"]["volumes"])

    reshape(["CREATE"], mutation(*VOLUME), added)
    app.apply(tapp(template=mounting("certs"))).settle()
    before = app.uids()
    app.patch(template=mounting("certs", image="app:2")).settle()
    assert set(app.uids().values()).isdisjoint(before.values())
    assert app.condition("CreationBlocked") == ""


@pytest.mark.since(35, "image volumes by default")
def test_an_image_volume_reaches_the_pods(app: App) -> None:
    """It is added to a TApp that runs, and comes through as it is written."""
    app.apply(tapp()).settle()
    volume: Json = {"name": "model", "image": {"reference": "registry.example.com/models/small:1"}}
    app.patch(template=mounting("model", volumes=[volume])).settle()
    for pod in app.pods.values():
        found = next(each for each in pod["spec"]["volumes"] if each["name"] == "model")
        assert found["image"]["reference"] == volume["image"]["reference"]
    assert app.idle()
