"""Installs and deletes the shipped admission policies, and checks whether they are in force.

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
from tests.simulator.last_applied import noted

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
    """Returns True if all pods of this run are lean.

    An unknown value of E2E_POLICIES is an error.
    """
    choice = os.environ.get("E2E_POLICIES", "")
    if choice not in ("", "lean"):
        pytest.fail(f"E2E_POLICIES={choice}: only `lean` is known", pytrace=False)
    return choice == "lean"


def copy_of(spec: Json | None = None, **metadata: Any) -> str:
    """Returns the text that Metacontroller would write to a pod's annotation."""
    return canonical_json(noted(spec, **metadata))


def pod_with(text: str | None, labels: Json = OURS, *owners: Json) -> Json:
    """Returns a pod in the namespace `default` with this text in Metacontroller's annotation."""
    metadata: Json = {
        "name": "p",
        "namespace": "default",
        "labels": labels,
        "ownerReferences": list(owners),
        "annotations": {"other": "1"} | ({} if text is None else {LAST_APPLIED: text}),
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template()["spec"]}


def stored(kube: Kube, pod: Json) -> Json:
    """Returns the metadata that a new pod would have in the API server (dry run)."""
    path = kube.path("v1", "pods", pod["metadata"]["namespace"])
    made: Json = kube.request("POST", path, pod, {"dryRun": "All"})["metadata"]
    return made


def pooled(names: tuple[str, ...], **spec: Any) -> Json:
    """Returns a TApp without instances that has these templates in its pool."""
    pool = {"templatePool": dict.fromkeys(names, template()), "autoDeleteUnusedTemplate": True}
    made = tapp("pooled", **{"replicas": 0, **pool, **spec})
    made["metadata"]["namespace"] = "default"
    return made


def stored_pool(kube: Kube, document: Json) -> list[str]:
    """Returns the names in the template pool that a new TApp would have in the API server (dry
    run).
    """
    path = kube.path(GROUP, "tapps", "default")
    made = kube.request("POST", path, document, {"dryRun": "All"})
    return sorted(made["spec"].get("templatePool") or {})


def in_force(kube: Kube, name: str) -> bool:
    """Returns True if a policy has an effect now."""
    if name == UNUSED:
        return stored_pool(kube, pooled(("unused",))) == []
    found = stored(kube, pod_with(copy_of({}), OURS, OWNER))
    cut = bool(found["annotations"][LAST_APPLIED] == copy_of())
    return cut and "managedFields" not in found


def put(kube: Kube, name: str) -> None:
    """Installs a policy and waits until it has an effect."""
    for document in documents(DIRECTORY / f"{name}.yaml"):
        kube.apply(document)
    _wait(kube, name, wanted=True)


def take(kube: Kube, name: str) -> None:
    """Deletes a policy and waits until it has no effect."""
    for document in documents(DIRECTORY / f"{name}.yaml"):
        plural, _ = kube.resource_of(document["apiVersion"], document["kind"])
        kube.delete(document["apiVersion"], plural, None, document["metadata"]["name"])
    _wait(kube, name, wanted=False)


def _wait(kube: Kube, name: str, *, wanted: bool) -> None:
    """Waits for the effect of a policy. The API server reads its policies only once a second."""
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
    """Removes all policies, and yields a function that installs the named policies, or both.

    At the end, the policies are those of the run again.
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
