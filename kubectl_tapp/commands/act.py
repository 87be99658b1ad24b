"""Carries out an edit of a TApp: plan, confirmation, one guarded write, and optionally a wait.

The entry point is `carry_out`. Ctrl-C is safe at any time. Before the write nothing has been
written, the write ignores Ctrl-C, and after the write the service continues without the plugin.
"""

from collections.abc import Sequence
from dataclasses import replace

from hooks.wire.decode import WireError
from kubectl_tapp.base.errors import CommandError, Exit
from kubectl_tapp.base.hints import tapp_command
from kubectl_tapp.base.observed import Document, Observed
from kubectl_tapp.base.words import instances_phrase
from kubectl_tapp.cluster.access import TAPPS, ClusterAccess
from kubectl_tapp.cluster.kubectl import KubectlError
from kubectl_tapp.cluster.session import Session, uninterrupted
from kubectl_tapp.commands.options import NO_CHANGE, NOTHING_WRITTEN, Choices, DryRun
from kubectl_tapp.commands.waiting import WaitGoal, wait
from kubectl_tapp.edit import edits
from tapp.words.vocabulary import RETRY

Operations = Sequence[edits.Operation]
# Reasons of errors after which it is unknown whether the write happened
_UNSURE = ("Timeout", "Unreachable")


def carry_out(  # noqa: PLR0913 - all of them describe one run of a verb
    session: Session,
    seen: Observed,
    edited: Document,
    choices: Choices,
    *,
    notes: Sequence[str],
    waits_for_all: bool,
) -> None:
    """Shows the plan of an edit, asks for confirmation, writes the edit, and waits if `--wait` is
    given.

    Raises CommandError if the edit is refused or not confirmed.

    Args:
        session: the run of the command.
        seen: the TApp before the edit, with its objects.
        edited: the TApp after the edit.
        choices: the options of the command, such as `--dry-run`, `-y` and `--wait`.
        notes: sentences that are printed before the question.
        waits_for_all: True if `--wait` waits for all instances; False if it waits only for the
            instances that the edit concerns.
    """
    name = seen.name
    operations = edits.json_patch(seen.tapp, edited)
    if is_no_change(session, name, operations, notes):
        return
    try:
        tried = edited
        if choices.dry_run is not DryRun.CLIENT:
            tried = _write(session, seen, edited, dry_run=True)
            _try_children(session, seen, tried)
        ids = _preview(session, seen, tried)
        print_notes(session, seen, operations, notes)
        if choices.dry_run is not None:
            checked = (
                ""
                if choices.dry_run is DryRun.CLIENT
                else " The API server would accept the change."
            )
            session.say(f"{NOTHING_WRITTEN}{checked}")
            return
        session.confirm(yes=choices.yes)
    except KeyboardInterrupt:
        session.note("interrupted; nothing was written")
        raise
    with uninterrupted():
        written = _write(session, *_with_current_metadata(session, seen, edited))
    generation = written["metadata"].get("generation")
    session.say(f"{name}: the change was written (generation {generation})")
    if choices.wait:
        which = None if waits_for_all else ids
        message = f"{instances_phrase(ids)} done" if which else "done"
        wait_after_write(session, WaitGoal(name, which, choices.seconds, message), seen.tapp)


def _try_children(session: Session, seen: Observed, edited: Document) -> None:
    """Creates the pods and other children of the edited TApp in a dry run, and prints warnings.

    Raises CommandError if the API server refuses one of these objects.
    """
    from kubectl_tapp.edit.trial import try_children  # noqa: PLC0415 - it costs start time

    options = session.cluster.registration(seen).options
    found = try_children(session.cluster, seen, edited, options.toleration_seconds)
    if found.refused:
        raise CommandError(f"{'; '.join(found.refused)}; nothing was written")
    for text in (*found.stuck, *found.remarks):
        session.note(f"warning: {text}")


def is_no_change(session: Session, name: str, operations: Operations, notes: Sequence[str]) -> bool:
    """Returns True if an edit changes neither the spec nor requests a retry.

    In that case the function first tells the user that no change is needed.

    `operations` is the JSON patch of the edit, `name` is the TApp's name, and `notes` are printed
    before this message.
    """
    if any(str(each["path"]).startswith("/spec") or _retries(each) for each in operations):
        return False
    session.say("\n".join([*notes, f"{name}: {NO_CHANGE}"]))
    return True


def _retries(operation: edits.Operation) -> bool:
    """Returns True if an operation of a JSON patch writes the annotation for a retry.

    The path alone does not show that: for a TApp without annotations, one operation adds the whole
    mapping. So the function searches the complete operation for the annotation's name.
    """
    return RETRY in str(operation).replace("~1", "/")


def print_notes(
    session: Session, seen: Observed, operations: Operations, notes: Sequence[str]
) -> None:
    """Prints the notes about an edit, and a warning for each tool that will probably undo the edit.

    `operations` is the JSON patch of the edit. If it changes `spec.replicas`,
    HorizontalPodAutoscalers count as such tools.
    """
    for note in ("", *notes) if notes else ():
        session.say(note)
    scaling = any(each["path"] == "/spec/replicas" for each in operations)
    for warning in warnings(session.cluster, seen.tapp, scaling=scaling):
        session.note(f"warning: {warning}")


def wait_after_write(session: Session, goal: WaitGoal, tapp: Document) -> None:
    """Waits until the TApp reaches `goal` after a write.

    If the user interrupts the wait, a note says how to wait again, and KeyboardInterrupt is raised.
    """
    try:
        wait(session, goal)
    except KeyboardInterrupt:
        again = tapp_command(tapp, "wait")
        session.note(f"interrupted; the change is written and goes on: {again} waits for it")
        raise


def _preview(session: Session, seen: Observed, edited: Document) -> list[int]:
    """Prints what the edit does, and returns the numbers of the instances that it concerns.

    `seen` is the TApp before the edit, with its objects. Raises CommandError if the service would
    not accept the edit.
    """
    from kubectl_tapp.forecast.meaning import decide_edit  # noqa: PLC0415 - it costs start time
    from kubectl_tapp.show.plan import print_plan  # noqa: PLC0415

    registration = session.cluster.registration(seen)
    try:
        expected, concerned = decide_edit(seen, edited, registration, session.now())
    except WireError as error:
        where = f"{error.path}: " if error.path else ""
        raise CommandError(f"{where}{error.message}; nothing was written") from None
    print_plan(session.console, expected)
    return concerned


def _write(
    session: Session, seen: Observed, edited: Document, *, dry_run: bool = False
) -> Document:
    """Writes the edit and returns the TApp as the API server has stored it.

    If `dry_run` is True, nothing is stored, and the TApp is returned as the API server would store
    it.

    The write is refused if the generation of the TApp is no longer the one in `seen`. Raises
    CommandError if the write is refused. If it is unknown whether the write happened, the message
    says so.
    """
    cluster, name = session.cluster, seen.name
    patch = edits.guarded_patch(seen.tapp, edited)
    try:
        return cluster.patch(TAPPS, name, patch, dry_run=dry_run)
    except KubectlError as error:
        if dry_run and error.reason in _UNSURE:
            raise
        raise _write_error(session, seen, edited, error) from None


def _with_current_metadata(
    session: Session, seen: Observed, edited: Document
) -> tuple[Observed, Document]:
    """Returns `seen` and `edited` with the labels and annotations that the TApp has now.

    Other tools may write labels and annotations while the user reads the plan, which does not
    change the generation. So a patch that is computed from the old metadata could remove new
    labels. If the spec has changed, the arguments are returned unchanged, because the write will be
    refused.
    """
    live = session.cluster.get(TAPPS, seen.name)
    if changed_error(seen.tapp, live):
        return seen, edited  # The guard of the patch refuses the write
    base = {**seen.tapp, "metadata": live["metadata"]}
    return replace(seen, tapp=base), edits.rebased(seen.tapp, edited, base)


def _write_error(
    session: Session, seen: Observed, edited: Document, error: KubectlError
) -> CommandError:
    """Returns the error for a failed write. Its message says whether the write happened, and why it
    failed.

    `error` is the error of the write. The function reads the TApp again to find out.
    """
    unsure = error.reason in _UNSURE
    try:
        live = session.cluster.get(TAPPS, seen.name)
    except CommandError as second:
        if not unsure:
            return second if getattr(second, "reason", "") == "NotFound" else error
        return CommandError(
            "it is unknown whether the change was written, "
            f"{tapp_command(seen.tapp, 'status')} shows the present state: {error}"
        )
    if unsure:
        done = live.get("spec") == edited["spec"]
        return CommandError(f"{error}; the change was {'' if done else 'not '}written")
    return changed_error(seen.tapp, live) or CommandError(
        f"{error}; nothing was written", error.code
    )


def changed_error(seen: Document, live: Document) -> CommandError | None:
    """Returns an error if a TApp's spec has changed since the plan was made, or None if it has not.

    `seen` is the TApp for which the plan was made, and `live` is the TApp as it is now.
    """
    before, now = seen["metadata"], live["metadata"]
    if all(before.get(field) == now.get(field) for field in ("uid", "generation")):
        return None
    return outdated_plan_error(before["name"])


def outdated_plan_error(what: str) -> CommandError:
    """Returns the error for objects that have changed since their plan was made. `what` names these
    objects.
    """
    message = f"{what} changed after the plan was made; nothing was written"
    return CommandError(f"{message}: repeat the command to see a new plan", Exit.CHANGED)


AUTOSCALERS = "horizontalpodautoscalers.autoscaling"
_TOOL_BY_KEY = {
    "argocd.argoproj.io/tracking-id": "Argo CD",
    "argocd.argoproj.io/instance": "Argo CD",
    "kustomize.toolkit.fluxcd.io/name": "Flux",
    "helm.toolkit.fluxcd.io/name": "Flux",
    "meta.helm.sh/release-name": "Helm",
}
"""A label or annotation that a tool sets on the objects that it applies -> the tool.

Sources: Argo CD "Resource Tracking", Flux "Kustomization" and "HelmRelease", Helm "Labels and
Annotations".
"""
_HOW_UNDONE = {
    "Argo CD": "its next sync undoes this, unless the Application ignores the difference",
    "Flux": "its next reconciliation undoes this",
    "Helm": "the next upgrade of its release undoes this",
}


def warnings(cluster: ClusterAccess, tapp: Document, *, scaling: bool) -> list[str]:
    """Returns a sentence for each tool that will probably undo an edit of a TApp.

    If `scaling` is True, the edit changes `spec.replicas`, and HorizontalPodAutoscalers count as
    well.
    """
    metadata = tapp["metadata"]
    keys = {**(metadata.get("labels") or {}), **(metadata.get("annotations") or {})}
    tools = sorted({tool for key, tool in _TOOL_BY_KEY.items() if key in keys})
    found = [
        f"{tool} manages this TApp: {_HOW_UNDONE[tool]}; make the change there, too"
        for tool in tools
    ]
    return found + (_autoscaler_warnings(cluster, tapp) if scaling else [])


def _autoscaler_warnings(cluster: ClusterAccess, tapp: Document) -> list[str]:
    try:
        scalers = cluster.list(AUTOSCALERS)
    except CommandError:
        return []
    result = []
    for each in scalers:
        target = each["spec"].get("scaleTargetRef") or {}
        if target.get("kind") == "TApp" and target.get("name") == tapp["metadata"]["name"]:
            least, most = each["spec"].get("minReplicas", 1), each["spec"].get("maxReplicas")
            result.append(
                f"the HorizontalPodAutoscaler {each['metadata']['name']} sets spec.replicas "
                f"({least} to {most}) and may undo this"
            )
    return result
