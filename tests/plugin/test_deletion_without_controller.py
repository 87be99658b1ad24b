"""Tests the output about a TApp in deletion while no controller acts, for example without
Metacontroller.
"""

from typing import Any

import pytest

from simulator.objects.kinds import Kind
from tests.plugin.fake_kubectl import Document, StandIn, kubectl_tapp
from tests.plugin.states import web
from tests.scenarios.life import Life

FINALIZER = "metacontroller.io/compositecontroller-tapp-controller"
GOING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


class Unattended(StandIn):
    """Simulates a cluster whose namespace and TApp are being deleted, and whose pods are gone."""

    def _live(self, kind: Kind, options: dict[str, str], name: str) -> Document:
        found = super()._live(kind, options, name)
        more: Document = {"finalizers": [FINALIZER]} if kind.plural == "tapps" else {}
        return {**found, "metadata": {**found["metadata"], **GOING, **more}}

    def _found(self, words: list[str], options: dict[str, str]) -> Any:
        kind, objects = super()._found(words, options)
        return kind, [] if kind is not None and kind.plural == "pods" else objects


class InNamespace(StandIn):
    """Simulates a cluster in which the namespace is being deleted, but not yet the TApp in it."""

    def _live(self, kind: Kind, options: dict[str, str], name: str) -> Document:
        found = super()._live(kind, options, name)
        more = GOING if kind.plural == "namespaces" else {}
        return {**found, "metadata": {**found["metadata"], **more}}


@pytest.mark.parametrize("verb", ["status", "why"])
def test_finalizer_whose_controller_has_not_acted_is_named(verb: str) -> None:
    said = kubectl_tapp(Unattended(Life().apply(web()).world), verb, "web")
    assert said.err == ""
    assert said.code == 0
    assert "being deleted (since 2026-01-01T00:00:00Z)" in said.out
    assert f"the controllers of its finalizers ({FINALIZER}) have to act" in said.out
    assert "Create" not in said.out.replace("NotCreated", "")


def test_deletion_of_the_namespace_is_reported() -> None:
    """`status` says that the namespace is being deleted.

    The API server refuses new pods in such a namespace, even before the TApp is deleted.
    """
    said = kubectl_tapp(InNamespace(Life().apply(web()).world), "status", "web")
    assert "its namespace is being deleted, so no pod can be created" in said.lines[0]
