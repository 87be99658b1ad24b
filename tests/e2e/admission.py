"""Admission policies in the namespace of a test, in place of webhooks: they change pods or refuse
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Protocol

import pytest

from .app import template
from .kube import Json, Kube
from .waiting import until

ADMISSION = "admissionregistration.k8s.io/v1"


class Reshape(Protocol):
    """Installs mutations of pods for these operations.

    `felt` returns True for a pod that has the mutations.
    """

    def __call__(
        self, operations: list[str], mutations: list[str], felt: Callable[[Json], bool] = ...
    ) -> None: ...


class Demand(Protocol):
    """Installs an expression that must be true for pods at these operations."""

    def __call__(
        self, expression: str, message: str = ..., operations: Sequence[str] = ...
    ) -> None: ...


def install_policy(
    kube: Kube, kind: str, namespace: str, operations: Sequence[str], **spec: list[Json]
) -> None:
    """Installs a `Mutating` or `Validating` policy for the pods of a namespace, with its
    binding.
    """
    name = f"tapp-e2e-{namespace[-8:]}"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
    where = {
        "resourceRules": [{**rule, "operations": list(operations)}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
    }
    whole: Json = {"failurePolicy": "Fail", "matchConstraints": where, **spec}
    bound: Json = {"policyName": name}
    if kind == "Validating":
        bound["validationActions"] = ["Deny"]
    else:
        whole["reinvocationPolicy"] = "Never"
    for tail, body in (("", whole), ("Binding", bound)):
        kind_of = {"apiVersion": ADMISSION, "kind": f"{kind}AdmissionPolicy{tail}"}
        kube.apply({**kind_of, "metadata": {"name": name}, "spec": body})


def delete_policy(kube: Kube, kind: str, namespace: str) -> None:
    """Deletes the policy and its binding."""
    for plural in ("policybindings", "policies"):
        name = f"tapp-e2e-{namespace[-8:]}"
        kube.delete(ADMISSION, f"{kind.lower()}admission{plural}", None, name)


def other_image(pod: Json) -> bool:
    """Returns True if the first container's image differs from the template's image."""
    image: str = pod["spec"]["containers"][0]["image"]
    return image != "app:1"


@pytest.fixture
def reshape(kube: Kube, namespace: str, needs: Callable[[int, str], None]) -> Iterator[Reshape]:
    """Returns a function that installs a policy with these mutations for the pods of the test's
    namespace.
    """
    needs(36, "MutatingAdmissionPolicy v1")

    def install(
        operations: list[str], mutations: list[str], felt: Callable[[Json], bool] = other_image
    ) -> None:
        patches = [
            {"patchType": "JSONPatch", "jsonPatch": {"expression": each}} for each in mutations
        ]
        install_policy(kube, "Mutating", namespace, operations, mutations=patches)
        probe: Json = {"apiVersion": "v1", "kind": "Pod", **template()}
        probe["metadata"] |= {"name": "probe", "namespace": namespace}
        probe["metadata"]["annotations"] = {"probe": "has one, as the pods of a TApp"}
        tried = partial(kube.request, "POST", kube.path("v1", "pods", namespace), probe)
        until(lambda: felt(tried({"dryRun": "All"})), "the policy has an effect")

    yield install
    delete_policy(kube, "Mutating", namespace)


@pytest.fixture
def demand(kube: Kube, namespace: str) -> Iterator[Demand]:
    """Returns a function that installs a policy that refuses pods in the test's namespace."""

    def demanded(
        expression: str, message: str = "refused", operations: Sequence[str] = ("CREATE",)
    ) -> None:
        said = {"expression": expression, "message": message, "reason": "Forbidden"}
        install_policy(kube, "Validating", namespace, operations, validations=[said])

    yield demanded
    delete_policy(kube, "Validating", namespace)


ADD = "JSONPatch{op: 'add', path: "


def added(path: str, value: str) -> str:
    """Returns a JSON patch operation for a mutation; the value is an expression."""
    return f"{ADD}{path}, value: {value}}}"


def mutation(*operations: str) -> list[str]:
    """Returns one mutation with these operations."""
    return [f"[{', '.join(operations)}]"]


VOLUME = (
    added("'/spec/volumes/-'", "Object.spec.volumes{name: 'certs',"
          " emptyDir: Object.spec.volumes.emptyDir{}}"),
)  # fmt: skip
