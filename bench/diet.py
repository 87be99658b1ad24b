"""`python -m bench.diet`: what makes requests smaller and fewer, measured.

First what a pod's bytes are made of, and what the admission policy that drops the last-applied
annotation saves; then how many syncs a roll takes with and without `ignoreStatusChanges`, played in
the simulator.
"""

import logging
import statistics
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import msgspec
import yaml
from rich.console import Console
from rich.table import Table

from bench.inprocess import ROOT, measured
from bench.parent import NEW, OLD, Document, tapp
from bench.pods import LAST_APPLIED, go
from bench.requests import NOTHING, Sample
from hooks.app import create_app
from hooks.settings import Settings
from simulator.clock import EPOCH, Clock
from simulator.hook_calls import HookCall
from simulator.hook_client import WsgiHook
from simulator.world import World

INSTANCES = 1_000
ROLLED = 100
SEEDS = (1, 2, 3)


def main() -> None:
    """Measures and prints."""
    console = Console(highlight=False)
    console.print(sizes())
    console.print(syncs())


def sizes() -> Table:
    """Requests as they are, and without what can be left out."""
    requests = [Sample(INSTANCES, seed).request(NOTHING) for seed in SEEDS]
    table = Table(title=f"Requests of {INSTANCES:,} pods with nothing to do")
    for title in ("request", "bytes a pod", "MB", "REF ms", "handler ms"):
        table.add_column(title, justify="left" if title == "request" else "right")
    variants = {
        "as Metacontroller sends it": requests,
        "without last-applied (the admission policy)": [
            (path, _without(body, _drop_last_applied)) for path, body in requests
        ],
        "without managedFields (nobody can leave them out)": [
            (path, _without(body, _drop_managed_fields)) for path, body in requests
        ],
    }
    for name, some in variants.items():
        times = measured(some, 21, INSTANCES)
        body = some[0][1]
        pods = msgspec.json.decode(body)["children"]["Pod.v1"].values()
        table.add_row(
            name,
            f"{sum(len(go(pod)) for pod in pods) / INSTANCES:,.0f}",
            f"{len(body) / 1e6:.2f}",
            f"{statistics.median(times['ref']) * 1e3:.1f}",
            f"{statistics.median(times['handler']) * 1e3:.1f}",
        )
    return table


def syncs() -> Table:
    """How often Metacontroller asks during the creation and the roll of a TApp."""
    table = Table(title=f"Calls of /sync for {ROLLED} instances, 10% at a time")
    for title in ("ignoreStatusChanges", "creation", "roll", "MB of the roll's requests"):
        table.add_column(title, justify="right")
    for ignored in (True, False):
        created, rolled, size = _roll(ignored)
        table.add_row(str(ignored).lower(), str(created), str(rolled), f"{size / 1e6:.1f}")
    return table


def _roll(ignore_status_changes: bool) -> tuple[int, int, int]:
    """Syncs of the creation and of the roll, and the bytes of the roll's requests."""
    clock = Clock()
    logging.getLogger("tapp").setLevel(logging.ERROR)
    application = create_app(
        Settings(log_level="ERROR"), clock=lambda: EPOCH.timestamp() + clock.now
    )
    controller = deepcopy(_manifest("metacontroller/base/composite-controller.yaml"))
    controller["spec"]["parentResource"]["ignoreStatusChanges"] = ignore_status_changes
    crds = [_manifest("crds/tapp.yaml")]
    world = World(controller, WsgiHook(application.wsgi_app), clock=clock, crds=crds)
    sent: list[int] = []

    def note(call: HookCall) -> None:
        if call.hook == "sync":
            sent.append(sum(len(part) for part in call.parts))

    world.on_call(note)
    created = 0
    for image in (OLD, NEW):
        created = len(sent)
        parent = tapp(ROLLED, image)
        world.apply({**parent, "metadata": {"name": parent["metadata"]["name"]}})
        world.settle()
    return created, len(sent) - created, sum(sent[created:])


def _manifest(path: str) -> Document:
    document: Document = yaml.safe_load((ROOT / Path(path)).read_text())
    return document


def _without(body: bytes, drop: Callable[[Document], None]) -> bytes:
    document = msgspec.json.decode(body)
    for pod in document["children"]["Pod.v1"].values():
        drop(pod)
    return go(document)


def _drop_last_applied(pod: Document) -> None:
    del pod["metadata"]["annotations"][LAST_APPLIED]


def _drop_managed_fields(pod: Document) -> None:
    del pod["metadata"]["managedFields"]


if __name__ == "__main__":
    main()
