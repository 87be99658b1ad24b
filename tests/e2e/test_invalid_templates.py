"""Templates from which no pod can be created: the real API server refuses them, and no pod is
deleted for them.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.invalid_templates import INVALID, VALID

from .admission import VOLUME, Reshape, mutation
from .app import App, tapp, template
from .kube import Json, Kube, KubeError
from .pods import dry_run_pod

pytestmark = pytest.mark.e2e
WORDS = ("Duplicate value", "must be unique", "Not found", "must not already", "can only use")


@pytest.mark.parametrize("made", [wrong for wrong, _ in INVALID.values()], ids=[*INVALID])
def test_api_server_refuses_the_templates_that_the_service_refuses(
    kube: Kube, namespace: str, made: Json
) -> None:
    """The message must be about a duplicate or a missing object, among others."""
    with pytest.raises(KubeError) as refusal:
        dry_run_pod(kube, namespace, made)
    assert refusal.value.status == 422
    assert any(word in str(refusal.value) for word in WORDS), str(refusal.value)


@pytest.mark.parametrize("made", VALID.values(), ids=[*VALID])
def test_api_server_accepts_the_templates_that_the_service_accepts(
    kube: Kube, namespace: str, made: Json
) -> None:
    """A repeated name or number is not everywhere a mistake."""
    dry_run_pod(kube, namespace, made)


def mounting(*names: str, image: str = "app:1", **spec: Any) -> Json:
    """Returns a template that mounts these volumes and differs from any other in its command."""
    made = template(image, **spec)
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in names]
    (main,) = made["spec"]["containers"]
    main |= {"volumeMounts": mounts, "command": ["run", image, *names]}
    return made


def test_volume_added_by_admission_does_not_block_the_tapp(reshape: Reshape, app: App) -> None:
    """A policy adds the volume of a mount, so the service must create and update the TApp."""

    def added(pod: Json) -> bool:
        return any(volume["name"] == "certs" for volume in pod["spec"]["volumes"])

    reshape(["CREATE"], mutation(*VOLUME), added)
    app.apply(tapp(template=mounting("certs"))).settle()
    before = app.uids()
    app.patch(template=mounting("certs", image="app:2")).settle()
    assert set(app.uids().values()).isdisjoint(before.values())
    assert app.condition("CreationBlocked") == ""
