"""The shipped controllers as they are registered with a Metacontroller of the tests.

These need no cluster.
"""

from __future__ import annotations

import pytest

from .kube import Json, documents
from .metacontroller import PLURALS, SHIPPED, with_hook

HOOK = "http://127.0.0.1:1"
SERVICE = {"service": {"name": "a", "namespace": "b"}, "path": "/c"}


def urls(manifest: Json) -> dict[str, str]:
    """The hooks' addresses, by name."""
    pointed = with_hook(manifest, HOOK)["spec"]["hooks"]
    assert not any({"service", "path"} & set(each["webhook"]) for each in pointed.values())
    return {name: each["webhook"]["url"] for name, each in pointed.items()}


def test_shipped_webhooks_keep_their_paths() -> None:
    """A decorator's sync hook is not at /sync."""
    shipped = [document for file in SHIPPED for document in documents(file)]
    assert [each["kind"] for each in shipped] == list(PLURALS)
    composite, decorator = (urls(each) for each in shipped)
    assert composite == {name: f"{HOOK}/{name}" for name in ("sync", "finalize", "customize")}
    assert decorator == {"sync": f"{HOOK}/pod-status"}


@pytest.mark.parametrize(
    ("webhook", "path"), [({"timeout": "5s"}, "/sync"), (SERVICE, "/c"), ({"url": HOOK}, "/sync")]
)
def test_a_webhook_without_a_path_is_called_by_its_name(webhook: Json, path: str) -> None:
    """Else by the path that it names."""
    manifest = {"kind": "CompositeController", "spec": {"hooks": {"sync": {"webhook": webhook}}}}
    assert urls(manifest) == {"sync": f"{HOOK}{path}"}
