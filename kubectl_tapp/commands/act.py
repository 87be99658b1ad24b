"""An edit, done: its plan first, then the question, then one guarded write.

Ctrl-C does no harm at any time: before the write nothing is written, the write itself is not
interrupted, and after it the TApp goes on without us.
"""

from collections.abc import Sequence
from dataclasses import replace

from hooks.wire.decode import WireError
from kubectl_tapp.base.errors import CommandError, Exit
from kubectl_tapp.base.hints import hinted
from kubectl_tapp.base.observed import Document, Observed
from kubectl_tapp.base.words import instances
from kubectl_tapp.cluster.access import TAPPS, ClusterAccess
from kubectl_tapp.cluster.kubectl import KubectlError
from kubectl_tapp.cluster.session import Session, uninterrupted
from kubectl_tapp.commands.options import NO_CHANGE, NOTHING_WRITTEN, Choices, DryRun
from kubectl_tapp.commands.waiting import WaitGoal, wait
from kubectl_tapp.edit import edits

Operations = Sequence[edits.Operation]
_UNSURE = ("Timeout", "Unreachable")  # Failures that leave open whether a write was done


def carry_out(  # noqa: PLR0913 - what a verb under way consists of
    session: Session,
    seen: Observed,
    edited: Document,
    choices: Choices,
    *,
    notes: Sequence[str],
    everything: bool,
) -> None:
    """Shows what an edit does, asks, writes, and waits if that is asked for; or a CommandError.

    `seen` is the TApp of which the edit was made, `notes` are said before the question.
    `everything` waits for all instances, not only for those that the edit means something to.
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
        tell(session, seen, operations, notes)
        if choices.dry_run is not None:
            checked = "" if choices.dry_run is DryRun.CLIENT else " The API server would take it."
            session.say(f"{NOTHING_WRITTEN}{checked}")
            return
        session.confirm(yes=choices.yes)
    except KeyboardInterrupt:
        session.note("interrupted; nothing was written")
        raise
    with uninterrupted():
        written = _write(session, *_with_newest_notes(session, seen, edited))
    generation = written["metadata"].get("generation")
    session.say(f"{name}: written (generation {generation})")
    if choices.wait:
        which = None if everything else ids
        message = f"{instances(ids)} done" if which else "done"
        follow(session, WaitGoal(name, which, choices.seconds, message), seen.tapp)


def _try_children(session: Session, seen: Observed, edited: Document) -> None:
    """Asks the API server for the pods of new templates; CommandError: it refuses them."""
    from kubectl_tapp.edit.trial import tried_children  # noqa: PLC0415 - it costs start time

    options = session.cluster.registration(seen).options
    found = tried_children(session.cluster, seen, edited, options.toleration_seconds)
    if found.refused:
        raise CommandError(f"{'; '.join(found.refused)}; nothing was written")
    for text in (*found.stuck, *found.remarks):
        session.note(f"warning: {text}")


def is_no_change(session: Session, name: str, operations: Operations, notes: Sequence[str]) -> bool:
    """Says so, with the notes, where these operations change nothing of the spec."""
    if any(str(each["path"]).startswith("/spec") for each in operations):
        return False
    session.say("\n".join([*notes, f"{name}: {NO_CHANGE}"]))
    return True


def tell(session: Session, seen: Observed, operations: Operations, notes: Sequence[str]) -> None:
    """Says what is to be known beside a plan: the notes, and who else writes this TApp."""
    for note in ("", *notes) if notes else ():
        session.say(note)
    scaling = any(each["path"] == "/spec/replicas" for each in operations)
    for warning in warnings(session.cluster, seen.tapp, scaling=scaling):
        session.note(f"warning: {warning}")


def follow(session: Session, watch: WaitGoal, tapp: Document) -> None:
    """Waits after a write to this TApp; whoever interrupts that is told that it goes on."""
    try:
        wait(session, watch)
    except KeyboardInterrupt:
        again = hinted(tapp, "wait")
        session.note(f"interrupted; it is written and goes on: {again} looks again")
        raise


def _preview(session: Session, seen: Observed, edited: Document) -> list[int]:
    """Shows what the edit means, and to whom. CommandError: the service would not take it."""
    from kubectl_tapp.forecast.meaning import meaning  # noqa: PLC0415 - it costs start time
    from kubectl_tapp.show.plan import print_plan  # noqa: PLC0415

    registration = session.cluster.registration(seen)
    try:
        expected, concerned = meaning(seen, edited, registration, session.now())
    except WireError as error:
        where = f"{error.path}: " if error.path else ""
        raise CommandError(f"{where}{error.message}; nothing was written") from None
    print_plan(session.console, expected)
    return concerned


def _write(
    session: Session, seen: Observed, edited: Document, *, dry_run: bool = False
) -> Document:
    """One guarded write. CommandError: refused; or nobody knows, and the sentence says so."""
    cluster, name = session.cluster, seen.name
    patch = edits.guarded_patch(seen.tapp, edited)
    try:
        return cluster.patch(TAPPS, name, patch, dry_run=dry_run)
    except KubectlError as error:
        if dry_run and error.reason in _UNSURE:
            raise
        raise _explained(session, seen, edited, error) from None


def _with_newest_notes(
    session: Session, seen: Observed, edited: Document
) -> tuple[Observed, Document]:
    """The TApp that was seen and the edit of it, both with the metadata of now.

    Labels and annotations may be written by others while a person reads the plan: that changes no
    generation, and a patch made of the old ones could take away what is new.
    """
    live = session.cluster.get(TAPPS, seen.name)
    if changed(seen.tapp, live):
        return seen, edited  # the guard refuses it
    base = {**seen.tapp, "metadata": live["metadata"]}
    return replace(seen, tapp=base), edits.moved(seen.tapp, edited, base)


def _explained(
    session: Session, seen: Observed, edited: Document, error: KubectlError
) -> CommandError:
    """The error to raise for a write that failed: was it done, and if not, why not."""
    unsure = error.reason in _UNSURE
    try:
        live = session.cluster.get(TAPPS, seen.name)
    except CommandError as second:
        if not unsure:
            return second if getattr(second, "reason", "") == "NotFound" else error
        return CommandError(
            f"it may be written, {hinted(seen.tapp, 'status')} shows what is there: {error}"
        )
    if unsure:
        done = live.get("spec") == edited["spec"]
        return CommandError(f"{error}; it was {'' if done else 'not '}written")
    return changed(seen.tapp, live) or CommandError(f"{error}; nothing was written", error.code)


def changed(seen: Document, live: Document) -> CommandError | None:
    """The error to raise where the plan is old: the TApp's spec is another than was seen."""
    before, now = seen["metadata"], live["metadata"]
    if all(before.get(field) == now.get(field) for field in ("uid", "generation")):
        return None
    return out_of_date(before["name"])


def out_of_date(what: str) -> CommandError:
    """The error to raise where a plan is old, because of what has changed since."""
    message = f"{what} changed after the plan was made; nothing was written"
    return CommandError(f"{message}: look at its new plan", Exit.CHANGED)


SCALERS = "horizontalpodautoscalers.autoscaling"
_BY_KEY = {
    "argocd.argoproj.io/tracking-id": "Argo CD",
    "argocd.argoproj.io/instance": "Argo CD",
    "kustomize.toolkit.fluxcd.io/name": "Flux",
    "helm.toolkit.fluxcd.io/name": "Flux",
    "meta.helm.sh/release-name": "Helm",
}
"""A label or annotation that a tool writes on what it applies -> the tool. Sources: Argo CD
"Resource Tracking", Flux "Kustomization" and "HelmRelease", Helm "Labels and Annotations"."""
_UNDONE = {
    "Argo CD": "its next sync undoes this, unless the Application ignores the difference",
    "Flux": "its next reconciliation undoes this",
    "Helm": "the next upgrade of its release undoes this",
}


def warnings(cluster: ClusterAccess, tapp: Document, *, scaling: bool) -> list[str]:
    """A sentence for each tool that will undo an edit, as far as it can be known.

    Autoscalers are looked for where it is of `spec.replicas` (`scaling`), which they write.
    """
    metadata = tapp["metadata"]
    keys = {**(metadata.get("labels") or {}), **(metadata.get("annotations") or {})}
    tools = sorted({tool for key, tool in _BY_KEY.items() if key in keys})
    found = [f"{tool} manages this TApp: {_UNDONE[tool]}; change it there, too" for tool in tools]
    return found + (_scalers(cluster, tapp) if scaling else [])


def _scalers(cluster: ClusterAccess, tapp: Document) -> list[str]:
    try:
        scalers = cluster.list(SCALERS)
    except CommandError:
        return []
    result = []
    for each in scalers:
        target = each["spec"].get("scaleTargetRef") or {}
        if target.get("kind") == "TApp" and target.get("name") == tapp["metadata"]["name"]:
            least, most = each["spec"].get("minReplicas", 1), each["spec"].get("maxReplicas")
            result.append(
                f"the HorizontalPodAutoscaler {each['metadata']['name']} sets its replicas "
                f"({least} to {most}) and may undo this"
            )
    return result
