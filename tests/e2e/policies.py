"""The admission policies that are shipped: put into force, taken out, and asked whether they are.

With `E2E_POLICIES=lean` the policy `tapp-lean-pods` is in force for the whole run.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from simulator.api.apply import LAST_APPLIED, canonical_json
from tests.simulator.copies import noted

from .app import GROUP, tapp, template
from .cluster import REPOSITORY
from .kube import Json, Kube, KubeError, documents

DIRECTORY = REPOSITORY / "metacontroller" / "components" / "admission-policies"
UNUSED, LEAN = BOTH = ("auto-delete-unused-templates", "lean-pods")
NEEDED = "MutatingAdmissionPolicy v1"
OURS = {"tapp_instance_key": "0"}
OWNER = {"apiVersion": GROUP, "kind": "TApp", "name": "t", "uid": "u", "controller": True}
PATIENCE = 60.0


def lean_everywhere() -> bool:
    """True if this run is to have lean pods; an unknown wish is an error."""
    wish = os.environ.get("E2E_POLICIES", "")
    if wish not in ("", "lean"):
        pytest.fail(f"E2E_POLICIES={wish}: only `lean` is known", pytrace=False)
    return wish == "lean"


def copy_of(spec: Json | None = None, **metadata: Any) -> str:
    """The text that Metacontroller would put into a pod's annotation."""
    return canonical_json(noted(spec, **metadata))


def pod_with(text: str | None, labels: Json = OURS, *owners: Json) -> Json:
    """A pod in the namespace `default` with this text in its annotation."""
    metadata: Json = {
        "name": "p",
        "namespace": "default",
        "labels": labels,
        "ownerReferences": list(owners),
        "annotations": {"other": "1"} | ({} if text is None else {LAST_APPLIED: text}),
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template()["spec"]}


def stored(kube: Kube, pod: Json) -> Json:
    """The pod's metadata as it would be stored when created (in a dry run)."""
    path = kube.path("v1", "pods", pod["metadata"]["namespace"])
    made: Json = kube.request("POST", path, pod, {"dryRun": "All"})["metadata"]
    return made


def pooled(names: tuple[str, ...], **spec: Any) -> Json:
    """A TApp that has these templates and runs nothing."""
    pool = {"templatePool": dict.fromkeys(names, template()), "autoDeleteUnusedTemplate": True}
    made = tapp("pooled", **{"replicas": 0, **pool, **spec})
    made["metadata"]["namespace"] = "default"
    return made


def stored_pool(kube: Kube, document: Json) -> list[str]:
    """What is left of the pool when such a TApp is created (in a dry run)."""
    path = kube.path(GROUP, "tapps", "default")
    made = kube.request("POST", path, document, {"dryRun": "All"})
    return sorted(made["spec"].get("templatePool") or {})


def in_force(kube: Kube, name: str) -> bool:
    """True if a policy has an effect at this moment."""
    if name == UNUSED:
        return stored_pool(kube, pooled(("unused",))) == []
    found = stored(kube, pod_with(copy_of({}), OURS, OWNER))
    cut = bool(found["annotations"][LAST_APPLIED] == copy_of())
    return cut and "managedFields" not in found


def put(kube: Kube, name: str) -> None:
    """Puts a policy into force, and waits until it is."""
    for document in documents(DIRECTORY / f"{name}.yaml"):
        kube.apply(document)
    _wait(kube, name, wanted=True)


def take(kube: Kube, name: str) -> None:
    """Takes a policy out of force, and waits until it is."""
    for document in documents(DIRECTORY / f"{name}.yaml"):
        plural, _ = kube.resource_of(document["apiVersion"], document["kind"])
        kube.delete(document["apiVersion"], plural, None, document["metadata"]["name"])
    _wait(kube, name, wanted=False)


def _wait(kube: Kube, name: str, *, wanted: bool) -> None:
    """The API server reads its policies once a second; each answer may be the last old one."""
    deadline = time.monotonic() + PATIENCE
    last: object = None
    while True:
        try:
            last = in_force(kube, name)
        except KubeError as error:
            last = error
        if last is wanted:
            return
        assert time.monotonic() < deadline, f"{name}: in force {last}, wanted {wanted}"
        time.sleep(0.2)


@contextlib.contextmanager
def by_hand(kube: Kube) -> Iterator[Callable[..., None]]:
    """Without any policy at first: what is given puts those into force that are named, or both.

    In the end it is as the run asks for.
    """
    if lean_everywhere():
        take(kube, LEAN)

    def install(*names: str) -> None:
        for name in names or BOTH:
            put(kube, name)

    yield install
    for name in BOTH:
        take(kube, name)
    if lean_everywhere():
        put(kube, LEAN)
