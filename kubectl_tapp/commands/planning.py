"""Carries out `kubectl tapp plan`: determines the edited TApp, forecasts the rollout and prints it.

This module is apart from `plan.py` because its imports take time, and the help does not need them.
"""

import sys
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from hooks.wire.decode import WireError
from kubectl_tapp.base.arguments import (
    read_ids,
    read_images,
    read_partition,
    read_replicas,
    read_use,
)
from kubectl_tapp.base.errors import CommandError, Exit, UsageError
from kubectl_tapp.base.observed import Document, Observed
from kubectl_tapp.base.printed import formatted
from kubectl_tapp.cluster.access import PODS
from kubectl_tapp.cluster.kubectl import KubectlError
from kubectl_tapp.cluster.session import Session
from kubectl_tapp.commands.plan_options import PlanOptions
from kubectl_tapp.decide.inspection import idle_controller
from kubectl_tapp.edit import applied, edits
from kubectl_tapp.edit.adoption import lost_label
from kubectl_tapp.edit.files import read_tapp
from kubectl_tapp.edit.trial import TrialResults, try_children
from kubectl_tapp.forecast import assumed, schema
from kubectl_tapp.forecast.fail_if import read_condition
from kubectl_tapp.forecast.forecast import Assumptions, Forecast
from kubectl_tapp.forecast.foresee import as_running, forecast
from kubectl_tapp.forecast.taken import with_existing_children
from kubectl_tapp.show.page import page
from kubectl_tapp.show.plan import as_document, print_plan
from tapp.words.times import written
from tapp.words.vocabulary import RESTART_IN_PLACE, RESTARTED_AT


def plan(session: Session, options: PlanOptions) -> Exit:
    """Prints the forecast of an edit, and returns the exit code of the command.

    The exit code is FAILED if the API server or the service would refuse the edit. It is CONDITION
    if a condition of `--fail-if` holds, and otherwise DONE.
    """
    conditions = [read_condition(text) for text in options.fail_if or []]
    found = _forecast(session, options)
    # The page comes first: if the reader of the output ends, the command ends as well.
    if options.html is not None:
        _write_page(found, options.html)
    if options.output is None:
        print_plan(session.console, found, folded=not options.unfold)
        if options.from_ is not None and not found.refused:
            session.say(f"\nNot checked\n  {schema.UNCHECKED}")
    else:
        session.say(formatted(as_document(found), options.output))
    if found.refused:
        return Exit.FAILED
    held = [each for each in conditions if each.holds(found)]
    for each in held:
        session.note(f"--fail-if {each.text}: it holds")
    return Exit.CONDITION if held else Exit.DONE


def _write_page(found: Forecast, path: str) -> None:
    try:
        Path(path).write_text(page(found), encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}") from None


def _forecast(session: Session, options: PlanOptions) -> Forecast:
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
    return _without_cluster(session, options) if options.from_ else _with_cluster(session, options)


def _without_cluster(session: Session, options: PlanOptions) -> Forecast:
    """Returns the forecast of an edit of a TApp in a file, which is assumed to be running.

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
        observed = as_running(old, registration, now)
    except WireError as error:
        raise CommandError(f"{options.from_} cannot be taken as running: {error}") from None
    if edited is None:
        edited = _edited(observed.tapp, options, now)
    with progress_line():
        known = schema.mistakes(old)
        wrong = tuple(each for each in schema.mistakes(edited) if each not in known)
        assumptions = Assumptions(options.broken, wrong, made_up=True)
        found = forecast(observed, edited, registration, now, assumptions)
    notes = (*found.notes, *assumed.assumption_sentences(found, observed.tapp, edited))
    return replace(found, notes=notes)


def _with_cluster(session: Session, options: PlanOptions) -> Forecast:
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
    with progress_line():
        assumptions = Assumptions(
            options.broken, (*refused, *tried.refused), remarks=(*remarks, *tried.remarks)
        )
        found = forecast(observed, edited, registration, now, assumptions)
    if not found.refused:  # A refused edit may be one whose spec cannot be parsed.
        found = with_existing_children(cluster, observed.tapp, found)
        if lost := lost_label(edited, observed.pods):
            found = replace(found, remarks=(*found.remarks, lost))
    return replace(found, stuck=(*found.stuck, *tried.stuck))


def progress_line() -> AbstractContextManager[object]:
    """Returns a context manager that shows a progress line while its block runs.

    The line is on standard error, and is not shown if standard error is no terminal.
    """
    if not sys.stderr.isatty():
        return nullcontext()
    return Console(stderr=True).status("playing the plan")


def _check_namespace(edited: Document, space: str, who: str) -> None:
    named = edited["metadata"].get("namespace") or space
    if named != space:
        raise UsageError(f"the edited TApp is of namespace {named}, and {who} {space}")


def _observed(session: Session, name: str, edited: Document | None) -> Observed:
    """Returns the TApp with its objects, as read from the cluster.

    `edited` is the TApp of a file, or None. If it does not exist in the cluster yet, it is returned
    without any objects. Raises CommandError if the TApp or its pods cannot be read.
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


def _edited(tapp: Document, options: PlanOptions, now: float) -> Document:
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
