"""Admission that changes the pods of a namespace, as a webhook would: a policy of the test's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Protocol

import pytest

from .app import template
from .kube import Json, Kube
from .patience import until

ADMISSION = "admissionregistration.k8s.io/v1"
NAME = "tapp-e2e-reshape"


class Reshape(Protocol):
    """Puts mutations into force for these operations; `felt` tells it of an admitted pod."""

    def __call__(
        self, operations: list[str], mutations: list[str], felt: Callable[[Json], bool] = ...
    ) -> None: ...


def other_image(pod: Json) -> bool:
    """True if the first container is not the template's any more."""
    image: str = pod["spec"]["containers"][0]["image"]
    return image != "app:1"


@pytest.fixture
def reshape(kube: Kube, namespace: str, needs: Callable[[int, str], None]) -> Iterator[Reshape]:
    """Installs a policy that applies these mutations to the pods of the test's namespace."""
    needs(36, "MutatingAdmissionPolicy v1")
    name = f"{NAME}-{namespace[-8:]}"

    def install(
        operations: list[str], mutations: list[str], felt: Callable[[Json], bool] = other_image
    ) -> None:
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
        where = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
        spec: Json = {
            "matchConstraints": {
                "resourceRules": [{**rule, "operations": operations}],
                "namespaceSelector": where,
            },
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "mutations": [
                {"patchType": "JSONPatch", "jsonPatch": {"expression": each}} for each in mutations
            ],
        }
        policy = {"kind": "MutatingAdmissionPolicy", "spec": spec}
        binding = {"kind": "MutatingAdmissionPolicyBinding", "spec": {"policyName": name}}
        for one in (policy, binding):
            kube.apply({"apiVersion": ADMISSION, "metadata": {"name": name}, **one})
        probe: Json = {"apiVersion": "v1", "kind": "Pod", **template()}
        probe["metadata"] |= {"name": "probe", "namespace": namespace}
        probe["metadata"]["annotations"] = {"probe": "has one, as the pods of a TApp"}
        tried = partial(kube.request, "POST", kube.path("v1", "pods", namespace), probe)
        until(lambda: felt(tried({"dryRun": "All"})), "the policy has an effect")

    yield install
    kube.delete(ADMISSION, "mutatingadmissionpolicybindings", None, name)
    kube.delete(ADMISSION, "mutatingadmissionpolicies", None, name)
