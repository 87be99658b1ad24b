"""`kubectl tapp list`: lists the TApps of one namespace or of all namespaces."""

from typing import Annotated

import typer

from kubectl_tapp.base.errors import printable
from kubectl_tapp.base.observed import Document
from kubectl_tapp.base.printed import formatted
from kubectl_tapp.base.reading import state_of
from kubectl_tapp.base.shapes import template_shape_error
from kubectl_tapp.base.words import short_duration
from kubectl_tapp.cluster.access import TAPPS
from kubectl_tapp.cluster.session import Session
from kubectl_tapp.commands.options import ListFormat, ListOutput, option
from tapp.words.times import seconds

All = Annotated[
    bool,
    typer.Option(
        "-A",
        "--all-namespaces",
        help="If present, list the requested object(s) across all namespaces.",
    ),
]
Selector = Annotated[
    str | None,
    option(
        "-l",
        "--selector",
        metavar="SELECTOR",
        help="Selector (label query) to filter on, supports '=', '==', and '!='.",
    ),
]
_GIVE_WAY = (
    *(("IMAGES", 30), ("TEMPLATES", 0), ("IMAGES", 14), ("STATUS", 14), ("AGE", 0)),
    *(("UP-TO-DATE", 0), ("IMAGES", 0), ("AVAILABLE", 0), ("STATUS", 8), ("READY", 0)),
)
"""Columns to shorten on a narrow terminal, in this order, each with its new width in characters (0
removes the column).

The columns NAMESPACE and NAME are never shortened.
"""
_HEADS = ("NAME", "READY", "UP-TO-DATE", "AVAILABLE", "STATUS", "AGE")


def list_tapps(
    session: Session,
    all_namespaces: All = False,
    selector: Selector = None,
    output: ListOutput = None,
) -> None:
    """List TApps with their numbers of instances and their state."""
    found = session.cluster.list(TAPPS, selector, all_namespaces=all_namespaces)
    found.sort(key=lambda each: (each["metadata"]["namespace"], each["metadata"]["name"]))
    if output is ListFormat.NAME:
        for tapp in found:
            session.say(f"tapp.apps.tkestack.io/{tapp['metadata']['name']}")
    elif output in (ListFormat.JSON, ListFormat.YAML):
        document = {"apiVersion": "v1", "kind": "List", "items": found}
        session.say(formatted(document, output))
    elif not found:
        here = "" if all_namespaces else f" in namespace {session.cluster.namespace}; -A lists all"
        session.note(f"There is no TApp{here}.")
    else:
        _print(session, found, all_namespaces, output is ListFormat.WIDE)


def _print(session: Session, found: list[Document], with_namespace: bool, wide: bool) -> None:
    from rich.text import Text  # noqa: PLC0415 - it costs start time

    from kubectl_tapp.show.columns import fitted_table  # noqa: PLC0415

    heads = [*(["NAMESPACE"] if with_namespace else []), *_HEADS]
    heads += ["TEMPLATES", "IMAGES"] if wide else []
    cells = [_cells(tapp, session.now()) for tapp in found]
    rows = [{head: Text(printable(each[head])) for head in heads} for each in cells]
    given = [step for step in _GIVE_WAY if step[0] in heads]
    session.console.print(fitted_table(heads, rows, session.console.width, given))


def _cells(tapp: Document, now: float) -> dict[str, str]:
    spec, status = tapp.get("spec") or {}, tapp.get("status") or {}
    pool = spec.get("templatePool") or {}
    templates = [*([spec["template"]] if spec.get("template") else []), *pool.values()]
    containers = [
        container
        for template in templates
        if not template_shape_error("", template)
        for container in (template.get("spec") or {}).get("containers") or []
    ]
    return {
        "NAMESPACE": tapp["metadata"]["namespace"],
        "NAME": tapp["metadata"]["name"],
        "READY": str(status.get("ready") or "-"),
        "UP-TO-DATE": str(status.get("updatedReplicas", "-")),
        "AVAILABLE": str(status.get("availableReplicas", "-")),
        "STATUS": state_of(tapp),
        "AGE": short_duration(now - seconds(tapp["metadata"].get("creationTimestamp"))),
        "TEMPLATES": str(len(templates)),
        "IMAGES": ", ".join(dict.fromkeys(each.get("image", "") for each in containers)),
    }
