"""Determines the edit of a command that only forecasts: `plan` and `rehearse`.

`edit_of` is the entry point. It reads the TApp before the edit from a cluster or a file, and the
edit from a file or from options such as `--image`.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from hooks.wire.decode import WireError
from kubectl_tapp.base.arguments import (
    read_ids,
    read_images,
    read_partition,
    read_replicas,
    read_use,
)
from kubectl_tapp.base.errors import CommandError, UsageError
from kubectl_tapp.base.observed import Document, Observed
from kubectl_tapp.cluster.access import PODS
from kubectl_tapp.cluster.kubectl import KubectlError
from kubectl_tapp.cluster.registration import Registration
from kubectl_tapp.cluster.session import Session
from kubectl_tapp.commands.plan_options import EditOptions
from kubectl_tapp.decide.inspection import idle_controller
from kubectl_tapp.edit import applied, edits
from kubectl_tapp.edit.files import read_tapp
from kubectl_tapp.edit.trial import TrialResults, try_children
from kubectl_tapp.forecast import assumed, schema
from kubectl_tapp.forecast.forecast import Assumptions
from kubectl_tapp.forecast.foresee import as_running
from simulator.seed import SPARE_NODE
from tapp.words.times import written
from tapp.words.vocabulary import RESTART_IN_PLACE, RESTARTED_AT


@dataclass(frozen=True)
class Edit:
    """An edit, and everything else that a forecast of this edit needs."""

    observed: Observed  # the TApp before the edit, with its objects
    edited: Document  # the TApp after the edit
    registration: Registration
    now: float  # seconds since the epoch
    assumptions: Assumptions
    session: Session  # the session, with the namespace of the TApp
    # sentences about children of the edited TApp that the API server would refuse
    stuck: tuple[str, ...] = ()

    @property
    def start(self) -> tuple[Observed, Document, Registration, float, Assumptions]:
        """The arguments of `foresee.forecast` and `foresee.start_of`."""
        return self.observed, self.edited, self.registration, self.now, self.assumptions


def edit_of(session: Session, options: EditOptions, nodes: Iterable[str] = (SPARE_NODE,)) -> Edit:
    """Returns the edit that the options of the command describe.

    Raises UsageError if the options do not fit together. `nodes` are the names of the nodes over
    which the pods of a TApp from a file are spread.
    """
    if options.filename is not None and options.by_options:
        raise UsageError("give the edit as a file or by options such as --image, not both")
    if options.in_place and not options.restart:
        raise UsageError("--in-place needs --restart")
    if options.template and not (options.image or options.restart):
        message = "--template needs --image or --restart; --use lets instances run a template"
        raise UsageError(message)
    if options.filename is None and options.name is None and options.from_ is None:
        raise UsageError("name a TApp, or give a file with -f")
    if options.filename is None and (options.server_side is not None or options.force_conflicts):
        raise UsageError("--server-side and --force-conflicts need -f")
    if options.filename == "-" and options.from_ == "-":
        raise UsageError("only one of the two files can be standard input")
    if options.from_:
        return _without_cluster(session, options, nodes)
    return _with_cluster(session, options)


def _without_cluster(session: Session, options: EditOptions, nodes: Iterable[str]) -> Edit:
    """Returns the edit of a TApp in a file, for a plan without a cluster that assumes that the TApp
    is running.

    The edit is another file, or comes from options. The caller has checked that the options fit
    together.
    """
    old = read_tapp(options.from_ or "-", options.name)
    name = old["metadata"]["name"]
    edited = read_tapp(options.filename, name) if options.filename else None
    if edited is not None:
        old["metadata"].setdefault("namespace", edited["metadata"].get("namespace") or "default")
        _check_namespace(edited, old["metadata"]["namespace"], f"{options.from_} has")
    registration, now = assumed.registration(), session.now()
    try:
        observed = as_running(old, registration, now, nodes)
    except WireError as error:
        raise CommandError(f"{options.from_} cannot be taken as running: {error}") from None
    if edited is None:
        edited = _edited(observed.tapp, options, now)
    known = schema.mistakes(old)
    wrong = tuple(each for each in schema.mistakes(edited) if each not in known)
    assumptions = Assumptions(options.broken, wrong, made_up=True)
    return Edit(observed, edited, registration, now, assumptions, session)


def _with_cluster(session: Session, options: EditOptions) -> Edit:
    edited = read_tapp(options.filename, options.name) if options.filename else None
    if edited is not None and (space := edited["metadata"].get("namespace")):
        # kubectl also refuses a --namespace that differs from the namespace in the file.
        _check_namespace(edited, session.global_options.get("namespace", space), "--namespace says")
        session = session.with_options(namespace=space)
    cluster = session.cluster
    name = options.name if edited is None else str(edited["metadata"]["name"])
    observed = _observed(session, name or "", edited)
    how = None
    if edited is None:
        edited = _edited(observed.tapp, options, session.now())
    else:
        how = applied.apply_method(
            cluster, observed, options.server_side, force=options.force_conflicts
        )
    refused: tuple[str, ...] = ()
    if options.dry_run:
        edited, refused = applied.dry_run_result(session, observed, edited, how)
    elif how is not None:
        edited = applied.client_side_result(observed, edited, how)
    idle = idle_controller(observed.tapp, session.now())
    said = how.remark if how is not None else ""
    remarks = tuple(each for each in (said, idle) if each)
    registration, now = cluster.registration(observed), session.now()
    tried = TrialResults()
    if options.dry_run and not refused:
        seconds = registration.options.toleration_seconds
        tried = try_children(cluster, observed, edited, seconds)
    assumptions = Assumptions(
        options.broken, (*refused, *tried.refused), remarks=(*remarks, *tried.remarks)
    )
    return Edit(observed, edited, registration, now, assumptions, session, tuple(tried.stuck))


def _check_namespace(edited: Document, space: str, who: str) -> None:
    named = edited["metadata"].get("namespace") or space
    if named != space:
        raise UsageError(f"the edited TApp is of namespace {named}, and {who} {space}")


def _observed(session: Session, name: str, edited: Document | None) -> Observed:
    """Returns the TApp with its objects, as read from the cluster.

    `edited` is the TApp of a file, or None. If the cluster has no such TApp yet, `edited` is
    returned as a TApp without any objects. Raises CommandError if the TApp or its pods cannot be
    read.
    """
    try:
        observed = session.cluster.observe(name)
    except KubectlError as error:
        if edited is None or error.reason != "NotFound":
            raise
        space = edited["metadata"].get("namespace") or session.cluster.namespace
        metadata = {**edited["metadata"], "namespace": space}
        return Observed({**edited, "metadata": metadata})
    observed.require_readable(PODS)
    return observed


def _edited(tapp: Document, options: EditOptions, now: float) -> Document:
    if options.replicas is not None:
        tapp = edits.scaled(tapp, read_replicas(options.replicas))
    spec = edits.spec_of(tapp)
    if options.image:
        tapp = edits.with_images(tapp, read_images(options.image), options.template)
    if options.partition is not None:
        tapp = edits.with_partition(tapp, read_partition(options.partition))
    for text in options.use or []:
        template, ids = read_use(text, spec)
        tapp = edits.with_assigned_template(tapp, template, ids)
    if options.kill:
        tapp = edits.killed(tapp, read_ids(options.kill, spec.replicas))
    if options.start:
        tapp = edits.started(tapp, read_ids(options.start, spec.replicas))
    if options.restart:
        names = [options.template] if options.template else edits.used_templates(spec)
        key = RESTART_IN_PLACE if options.in_place else RESTARTED_AT
        tapp = edits.restarted(tapp, names, written(now), key)
    return tapp
