"""`python -m bench.diet`: what makes requests smaller and fewer, measured.

First what a pod's bytes are made of, and what the admission policy `tapp-lean-pods` saves; then how
many syncs a roll takes with and without `ignoreStatusChanges`, played in the simulator.
"""

from collections.abc import Callable

import msgspec
from rich.console import Console
from rich.table import Table

from bench.parent import Document
from bench.pods import LAST_APPLIED, go
from bench.roll import played
from bench.streams import NOTHING, request_in

INSTANCES = 1_000
ROLLED = 100


def main() -> None:
    """Measures and prints."""
    Console(highlight=False).print(sizes(), syncs(), sep="\n")


def sizes() -> Table:
    """Requests as they are, and without what can be left out."""
    _, sent = request_in(NOTHING, INSTANCES)
    table = Table(title=f"Requests of {INSTANCES:,} pods with nothing to do")
    for title in ("request", "bytes a pod", "MB"):
        table.add_column(title, justify="left" if title == "request" else "right")
    for name, body in {
        "as Metacontroller sends it": sent,
        "without last-applied": _without(sent, _drop_last_applied),
        "without managedFields": _without(sent, _drop_managed_fields),
        "lean (the admission policy)": _without(sent, _make_lean),
    }.items():
        pods = msgspec.json.decode(body)["children"]["Pod.v1"].values()
        table.add_row(
            name, f"{sum(len(go(pod)) for pod in pods) / INSTANCES:,.0f}", f"{len(body) / 1e6:.2f}"
        )
    return table


def syncs() -> Table:
    """How often Metacontroller asks during the creation and the roll of a TApp."""
    table = Table(title=f"Calls of /sync for {ROLLED} instances, 10% at a time")
    for title in ("ignoreStatusChanges", "creation", "roll", "MB of the roll's requests"):
        table.add_column(title, justify="right")
    for ignored in (True, False):
        created, rolled = played(ROLLED, ignore_status_changes=ignored)
        size = sum(len(call.body) for call in rolled)
        table.add_row(
            str(ignored).lower(), str(len(created)), str(len(rolled)), f"{size / 1e6:.1f}"
        )
    return table


def _without(body: bytes, drop: Callable[[Document], None]) -> bytes:
    document = msgspec.json.decode(body)
    for pod in document["children"]["Pod.v1"].values():
        drop(pod)
    return go(document)


def _drop_last_applied(pod: Document) -> None:
    del pod["metadata"]["annotations"][LAST_APPLIED]


def _make_lean(pod: Document) -> None:
    annotations = pod["metadata"]["annotations"]
    applied = msgspec.json.decode(annotations[LAST_APPLIED])
    del applied["spec"]
    annotations[LAST_APPLIED] = go(applied).decode()
    _drop_managed_fields(pod)


def _drop_managed_fields(pod: Document) -> None:
    del pod["metadata"]["managedFields"]


if __name__ == "__main__":
    main()
