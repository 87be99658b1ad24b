"""`make e2e-bench`: 300 instances that differ in one variable, by 300 templates and by 300 values.

What the TApp weighs, and what a sync in which nothing changes costs Metacontroller and the service.
"""

from __future__ import annotations

import time
from typing import Any

import msgspec
import pytest

from tests import builders

from .app import App, tapp
from .costs import cpu_seconds
from .kubelet import FakeKubelet
from .metacontroller import Controller, RealMetacontroller

pytestmark = [pytest.mark.e2e, pytest.mark.bench, pytest.mark.timeout(600)]
INSTANCES = 300
SYNCS = 20


def body(value: str) -> dict[str, Any]:
    """A template of some size with the one variable."""
    env = [{"name": f"SETTING_{number}", "value": "x" * 40} for number in range(10)]
    own = {"name": "SHARD", "value": value}
    return builders.template("app:1", container={"env": [*env, own]})


def spec_of(way: str) -> dict[str, Any]:
    """The TApp's spec: each instance says which shard it is."""
    names = {str(id): f"shard-{id}" for id in range(INSTANCES)}
    if way == "values":
        values = {id: {"shard": name} for id, name in names.items()}
        return {"template": body("$(tapp.values.shard)"), "values": values}
    pool = {name: body(name) for name in names.values()}
    return {"template": None, "templatePool": pool, "templates": names}


@pytest.mark.parametrize("way", ["templates", "values"])
def test_what_a_sync_costs(
    way: str,
    app: App,
    tapps: Controller,
    kubelet: FakeKubelet,  # noqa: ARG001 - it runs the pods
    note: list[str],
) -> None:
    if not isinstance(tapps, RealMetacontroller):
        pytest.skip("only of the real Metacontroller the cost is of interest")
    spec = {key: item for key, item in spec_of(way).items() if item is not None}
    manifest = tapp(replicas=INSTANCES, **spec)
    if way == "templates":
        del manifest["spec"]["template"]
        manifest["spec"]["defaultTemplateName"] = "shard-0"
    size = len(msgspec.json.encode(manifest))
    app.apply(manifest).settle(300)
    app.quiet(120)
    began, used = time.monotonic(), cpu_seconds(tapps.process.pid)
    for _ in range(SYNCS):
        app.nudge()
    time.sleep(3)  # the last one is applied
    spent = cpu_seconds(tapps.process.pid) - used
    seconds = time.monotonic() - began - 3
    note.append(
        f"300 {way}: {size / 1000:.0f} KB, Metacontroller {1000 * spent / SYNCS:.0f} ms of CPU and "
        f"{1000 * seconds / SYNCS:.0f} ms from an edit to the call, a sync in which nothing changes"
    )
    assert spent > 0
