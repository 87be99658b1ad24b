"""`kubectl tapp plan`: what an edit would do, before anybody makes it."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kubectl_tapp.base import shipped
from kubectl_tapp.base.errors import CommandError, Exit
from kubectl_tapp.base.observed import Document, Observed
from kubectl_tapp.base.printed import printed
from kubectl_tapp.cluster.cluster import TAPPS
from kubectl_tapp.cluster.kubectl import KubectlError
from kubectl_tapp.cluster.session import Session
from kubectl_tapp.commands.complete import names
from kubectl_tapp.commands.options import Format, Output, bare
from kubectl_tapp.forecast.bar import bar
from tapp.words.times import written
from tapp.words.vocabulary import RESTART_IN_PLACE, RESTARTED_AT

if TYPE_CHECKING:
    from kubectl_tapp.forecast.forecast import Forecast

_None = {"show_default": False}
OneName = Annotated[
    str | None,
    typer.Argument(
        metavar="[NAME]",
        help="The TApp; not needed with a file.",
        autocompletion=names,
        callback=bare,
        **_None,
    ),
]
File = Annotated[
    str | None,
    typer.Option("-f", "--filename", metavar="FILE", help="The edited TApp; - is stdin.", **_None),
]
From = Annotated[
    str | None,
    typer.Option("--from", metavar="FILE", help="Take this as running; ask no cluster.", **_None),
]
Images = Annotated[
    list[str] | None, typer.Option("--image", metavar="CONTAINER=IMAGE", help="Set it.", **_None)
]
OfTemplate = Annotated[
    str | None, typer.Option("-t", "--template", metavar="NAME", help="Of --image.", **_None)
]
Replicas = Annotated[
    int | None, typer.Option("--replicas", metavar="N", help="Scale to it.", **_None)
]
Use = Annotated[
    list[str] | None, typer.Option("--use", metavar="TEMPLATE=IDS", help="Re-template.", **_None)
]
Kill = Annotated[list[str] | None, typer.Option("--kill", metavar="IDS", help="Stop.", **_None)]
Start = Annotated[list[str] | None, typer.Option("--start", metavar="IDS", help="Start.", **_None)]
Restart = Annotated[bool, typer.Option("--restart", help="New pods for all, or all of --template.")]
InPlace = Annotated[
    bool, typer.Option("--in-place", help="With --restart: the containers, in their pods.")
]
Broken = Annotated[
    list[str] | None,
    typer.Option("--assume-broken", metavar="IMAGE", help="It will not come up.", **_None),
]
FailIf = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-if",
        metavar="CONDITION",
        help="Exit with 3 if it holds: recreate, delete, stuck, unavailable>2, duration>10m.",
        **_None,
    ),
]
Html = Annotated[
    str | None, typer.Option("--html", metavar="FILE", help="Write a page with the plan.", **_None)
]
DryRun = Annotated[
    bool, typer.Option("--dry-run/--no-dry-run", help="Ask the API server what it would say.")
]
ServerSide = Annotated[
    bool | None,
    typer.Option(
        "--server-side/--no-server-side",
        help="How the file will be applied; else as this TApp was applied last.",
        **_None,
    ),
]
Force = Annotated[
    bool, typer.Option("--force-conflicts", help="Of a server-side apply, as for kubectl.")
]
Unfold = Annotated[bool, typer.Option("--unfold", help="A line for each instance.")]


@dataclass(frozen=True)
class _Asked:
    """The edit that the command line asks for."""

    name: str | None
    file: str | None
    before: str | None
    images: list[str]
    template: str | None
    replicas: int | None
    use: list[str]
    kill: list[str]
    start: list[str]
    restart: bool
    in_place: bool
    dry_run: bool
    broken: list[str] = field(default_factory=list)
    server_side: bool | None = None
    force: bool = False

    @property
    def by_options(self) -> bool:
        """Whether options say what to edit."""
        asked = (self.images, self.use, self.kill, self.start, self.restart)
        return any(asked) or self.replicas is not None


def plan(  # noqa: PLR0913, PLR0917 - the options of a command
    session: Session,
    name: OneName = None,
    filename: File = None,
    from_: From = None,
    image: Images = None,
    template: OfTemplate = None,
    replicas: Replicas = None,
    use: Use = None,
    kill: Kill = None,
    start: Start = None,
    restart: Restart = False,
    in_place: InPlace = False,
    assume_broken: Broken = None,
    fail_if: FailIf = None,
    html: Html = None,
    dry_run: DryRun = True,
    server_side: ServerSide = None,
    force_conflicts: Force = False,
    unfold: Unfold = False,
    output: Output = None,
) -> int:
    """What an edit would do: to whom, why, in which order, how long. Nothing is written."""
    from kubectl_tapp.forecast.fail_if import read_condition  # noqa: PLC0415 - it costs start time

    conditions = [read_condition(text) for text in fail_if or []]
    asked = _Asked(
        name,
        filename,
        from_,
        image or [],
        template,
        replicas,
        use or [],
        kill or [],
        start or [],
        restart,
        in_place,
        dry_run and from_ is None,
        assume_broken or [],
        server_side,
        force_conflicts,
    )
    found = _forecast(session, asked)
    _show(session, found, output, folded=not unfold)
    if html is not None:
        _write_page(found, html)
    if found.refused:
        return Exit.FAILED
    held = [each for each in conditions if each.holds(found)]
    for each in held:
        session.note(f"--fail-if {each.text}: it holds")
    return Exit.CONDITION if held else Exit.DONE


def _show(session: Session, found: "Forecast", output: Format | None, *, folded: bool) -> None:
    from kubectl_tapp.show.plan import as_document, print_plan  # noqa: PLC0415

    if output is None:
        print_plan(session.console, found, folded)
    else:
        session.say(printed(as_document(found), output))


def _write_page(found: "Forecast", path: str) -> None:
    from kubectl_tapp.show.page import page  # noqa: PLC0415

    try:
        Path(path).write_text(page(found), encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}") from None


def _forecast(session: Session, asked: _Asked) -> "Forecast":
    if asked.file is not None and asked.by_options:
        message = "give the edit as a file or by options such as --image, not both"
        raise CommandError(message, Exit.USAGE)
    if asked.in_place and not asked.restart:
        raise CommandError("--in-place goes with --restart", Exit.USAGE)
    if asked.template and not (asked.images or asked.restart):
        message = "--template goes with --image or --restart; --use gives a template to instances"
        raise CommandError(message, Exit.USAGE)
    if asked.file is None and asked.name is None and asked.before is None:
        raise CommandError("name a TApp, or give a file with -f", Exit.USAGE)
    if asked.file is None and (asked.server_side is not None or asked.force):
        raise CommandError("--server-side and --force-conflicts go with -f", Exit.USAGE)
    if asked.file == "-" and asked.before == "-":
        raise CommandError("only one of the two files can be standard input", Exit.USAGE)
    return _without_cluster(session, asked) if asked.before else _with_cluster(session, asked)


def _without_cluster(session: Session, asked: _Asked) -> "Forecast":
    """Two files, or one and an edit of it: the first is taken as running."""
    from hooks.wire.decode import WireError  # noqa: PLC0415
    from kubectl_tapp.edit.files import read_tapp  # noqa: PLC0415
    from kubectl_tapp.forecast.forecast import Assumptions  # noqa: PLC0415
    from kubectl_tapp.forecast.foresee import as_running, forecast  # noqa: PLC0415
    from tapp.world import Options  # noqa: PLC0415

    old = read_tapp(asked.before or "-", asked.name)
    name = old["metadata"]["name"]
    edited = read_tapp(asked.file, name) if asked.file else None
    if edited is not None:
        old["metadata"].setdefault("namespace", edited["metadata"].get("namespace") or "default")
        _same_place(edited, old["metadata"]["namespace"], f"{asked.before} has")
    controller, now = shipped.manifest(shipped.COMPOSITE), session.now()
    try:
        observed = as_running(old, controller, Options(), now)
    except WireError as error:
        raise CommandError(f"{asked.before} cannot be taken as running: {error}") from None
    if edited is None:
        edited = _edited(observed.tapp, asked, now)
    with bar("playing the plan") as tell:
        assumptions = Assumptions(tuple(asked.broken), made_up=True, tell=tell)
        return forecast(observed, edited, controller, Options(), now, assumptions=assumptions)


def _with_cluster(session: Session, asked: _Asked) -> "Forecast":
    from kubectl_tapp.edit import applied  # noqa: PLC0415
    from kubectl_tapp.edit.files import read_tapp  # noqa: PLC0415
    from kubectl_tapp.forecast.forecast import Assumptions  # noqa: PLC0415
    from kubectl_tapp.forecast.foresee import forecast  # noqa: PLC0415

    edited = read_tapp(asked.file, asked.name) if asked.file else None
    if edited is not None and (space := edited["metadata"].get("namespace")):
        # As kubectl does it: the file says where it belongs, and nobody may say otherwise.
        _same_place(edited, session.targets.get("namespace", space), "--namespace says")
        session = session.narrowed(namespace=space)
    cluster = session.cluster
    name = asked.name if edited is None else str(edited["metadata"]["name"])
    observed = _observed(session, name or "", edited)
    refused: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    if edited is None:
        edited = _edited(observed.tapp, asked, session.now())
        if asked.dry_run:
            edited, refused = _tried(session, observed, edited)
    else:
        how = applied.way(cluster, observed, asked.server_side, force=asked.force)
        remarks = (how.remark,) if how.remark else ()
        if asked.dry_run:
            edited, refused = applied.tried(session, observed, edited, how)
        else:
            edited = applied.untried(observed, edited, how)
    registration, now = cluster.registration(observed), session.now()
    with bar("playing the plan") as tell:
        assumptions = Assumptions(tuple(asked.broken), refused, remarks=remarks, tell=tell)
        return forecast(observed, edited, *registration, now, assumptions=assumptions)


def _same_place(edited: "Document", space: str, who: str) -> None:
    """Refuses to compare TApps of two namespaces."""
    named = edited["metadata"].get("namespace") or space
    if named != space:
        message = f"the edited TApp is of namespace {named}, and {who} {space}"
        raise CommandError(message, Exit.USAGE)


def _observed(session: Session, name: str, edited: "Document | None") -> "Observed":
    """The TApp; where there is none yet, the one of the file, with nothing that belongs to it."""
    try:
        observed = session.cluster.observe(name)
    except KubectlError as error:
        if edited is None or error.reason != "NotFound":
            raise
        space = edited["metadata"].get("namespace") or session.cluster.namespace
        metadata = {**edited["metadata"], "namespace": space}
        return Observed({**edited, "metadata": metadata})
    observed.require("pods")
    return session.cluster.with_stops(observed)


def _edited(tapp: "Document", asked: _Asked, now: float) -> "Document":
    """The TApp with what the options ask for."""
    from kubectl_tapp.base.arguments import (  # noqa: PLC0415
        read_ids,
        read_images,
        read_replicas,
        read_use,
    )
    from kubectl_tapp.edit import edits  # noqa: PLC0415

    if asked.replicas is not None:
        tapp = edits.scaled(tapp, read_replicas(asked.replicas))
    spec = edits.spec_of(tapp)
    if asked.images:
        tapp = edits.with_images(tapp, read_images(asked.images), asked.template)
    for text in asked.use:
        template, ids = read_use(text, spec)
        tapp = edits.using(tapp, template, ids)
    if asked.kill:
        tapp = edits.killed(tapp, read_ids(asked.kill, spec.replicas))
    if asked.start:
        tapp = edits.started(tapp, read_ids(asked.start, spec.replicas))
    if asked.restart:
        names = [asked.template] if asked.template else edits.used_templates(spec)
        key = RESTART_IN_PLACE if asked.in_place else RESTARTED_AT
        tapp = edits.restarted(tapp, names, written(now), key)
    return tapp


def _tried(
    session: Session, observed: "Observed", edited: "Document"
) -> "tuple[Document, tuple[str, ...]]":
    """What the API server would make of the edit; or the edit as it is, and why it is refused."""
    from kubectl_tapp.edit.edits import json_patch  # noqa: PLC0415

    operations = json_patch(observed.tapp, edited)
    if not operations:
        return edited, ()
    try:
        return session.cluster.patch(TAPPS, observed.name, operations, dry_run=True), ()
    except KubectlError as error:
        if error.reason == "Forbidden":
            session.note(f"the API server did not check the edit: {error}")
            return edited, ()
        if error.reason in ("Unreachable", "Timeout", "NoSuchKind"):
            raise
        return edited, (str(error),)
