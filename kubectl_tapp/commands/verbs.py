"""The verbs: each computes an edit of the TApp and passes it to `Verb.do`, which shows the plan,
asks the user and writes the edit.

`add_to` registers the verbs as commands.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from kubectl_tapp.base.arguments import read_images, read_partition, read_replicas, read_values
from kubectl_tapp.base.errors import CommandError, UsageError
from kubectl_tapp.base.hints import tapp_command
from kubectl_tapp.cluster.session import Session
from kubectl_tapp.commands.canary_budget import copy_hint, with_canary_budget
from kubectl_tapp.commands.complete import templates
from kubectl_tapp.commands.history import history, no_history_message
from kubectl_tapp.commands.hold import hold, release
from kubectl_tapp.commands.options import Ids, Name, Output, option, register
from kubectl_tapp.commands.restart import restart
from kubectl_tapp.commands.verb_options import (
    CanaryBudget,
    CanaryOption,
    CauseOption,
    SomeIds,
    TemplateName,
    Verb,
    register_verb,
    template_option,
)
from kubectl_tapp.commands.wait import wait
from tapp.words.ranges import instance_list, ranges

if TYPE_CHECKING:
    from kubectl_tapp.base.observed import Document
    from kubectl_tapp.edit.canaries import Canary as CanaryTemplate


_Base = Annotated[
    str | None,
    option(
        metavar="NAME",
        help="Template that the canary replaces (default: the template that was copied for the "
        "canary, or the template that all other instances run).",
        autocompletion=templates,
    ),
]


_ChangedTemplate = Annotated[
    str | None, template_option("Template to change (default: the default template).")
]
_RolledBackTemplate = Annotated[
    str | None, template_option("Template to roll back (default: the template that changed last).")
]
_CanaryTemplate = Annotated[
    str | None, template_option("Template of the canary. Required if there are several canaries.")
]


def kill(verb: Verb, ids: SomeIds) -> None:
    """Stop instances. The service deletes their pods and keeps their claims."""
    verb.do(verb.edits.killed(verb.tapp, verb.ids(ids)))


def start(verb: Verb, ids: SomeIds) -> None:
    """Start stopped instances."""
    chosen = verb.ids(ids)
    verb.note_finished(chosen)
    verb.do(verb.edits.started(verb.tapp, chosen))


def use(  # noqa: PLR0913, PLR0917 - the options of a command
    verb: Verb,
    template: TemplateName,
    ids: Ids = None,
    canary: CanaryOption = None,
    cause: CauseOption = None,
    max_unavailable: CanaryBudget = None,
) -> None:
    """Let instances run a template.

    Instances are named, or picked by --canary: available instances first, spread over the nodes,
    highest numbers first.
    """
    try:
        verb.edits.template_content(verb.spec, template)
    except UsageError as error:
        raise UsageError(f"{error}; {copy_hint(verb, template, ids, canary)}") from None
    chosen = verb.choose_instances(ids, canary, template)
    edited = verb.edits.with_assigned_template(verb.tapp, template, chosen)
    edited = with_canary_budget(verb, edited, chosen, max_unavailable)
    verb.do(verb.with_cause(edited, cause, f"use {verb.name} {template} {ranges(chosen)}"))


def image(  # noqa: PLR0913 - the options of a command
    verb: Verb,
    images: Annotated[
        list[str],
        typer.Argument(
            metavar="CONTAINER=IMAGE...",
            help="Containers and their new images. `*` as the name sets the image of all "
            "containers.",
        ),
    ],
    template: _ChangedTemplate = None,
    *,
    canary: CanaryOption = None,
    copy_as: Annotated[
        str | None,
        option(
            metavar="NAME",
            help="With --canary, name of the copy of the template (default: canary).",
        ),
    ] = None,
    partition: Annotated[
        str | None,
        option(
            metavar="SHARE",
            help="Keep this many instances (3 or 30%) at their revision until `advance`.",
        ),
    ] = None,
    max_unavailable: CanaryBudget = None,
    cause: CauseOption = None,
) -> None:
    """Set the images of containers in a template.

    With --canary, a copy of the template gets the images, and only the picked or named instances
    run the copy. `promote` or `abort` ends the canary.
    """
    from kubectl_tapp.edit import canaries  # noqa: PLC0415 - it costs start time

    wanted = read_images(images)
    base = verb.spec.default_name if template is None else template
    command = f"set image {verb.name} " + " ".join(f"{each}={wanted[each]}" for each in wanted)
    if canary is None and copy_as is not None:
        raise UsageError("--copy-as needs --canary")
    if canary is None and max_unavailable is not None:
        raise UsageError(
            "--max-unavailable needs --canary: other instances have the rolling budget"
        )
    copy = "canary" if copy_as is None else copy_as
    if canary is not None and partition is not None:
        raise UsageError("--canary and --partition cannot be used together")
    if canary is None:
        verb.note_others(base, wanted)
        edited = verb.edits.with_images(verb.tapp, wanted, base)
        command += f" in {base}"
        if partition is not None:
            edited = _partitioned(verb, edited, partition, base)
            command += f" --partition {partition}"
    else:
        copied = verb.edits.with_copied_template(verb.tapp, base, copy)
        chosen = verb.choose_instances(None, canary, copy, base)
        edited = verb.edits.with_assigned_template(
            verb.edits.with_images(copied, wanted, copy), copy, chosen
        )
        edited = canaries.with_copy_note(edited, copy, base)
        edited = with_canary_budget(verb, edited, chosen, max_unavailable)
        command += f" for {ranges(chosen)}"
    verb.do(verb.with_cause(edited, cause, command))


def _partitioned(verb: Verb, edited: "Document", partition: str, template: str) -> "Document":
    """Returns the edited TApp with the partition that the user has typed, such as `3` or `30%`.

    `template` is the template that the edit changes. Raises UsageError if it is not the rolling
    template, because a partition applies only to that template. The rolling template is the one
    that `updateStrategy.template` names, or else the default template.
    """
    rolling = verb.spec.rolling_name
    if template != rolling:
        message = (
            f"--partition applies only to the rolling template {rolling!r}, not to template "
            f"{template!r}"
        )
        raise UsageError(message)
    result: Document = verb.edits.with_partition(edited, read_partition(partition))
    return result


def advance(
    verb: Verb,
    to: Annotated[
        str | None,
        option(
            "--to",
            metavar="SHARE",
            help="Keep this many instances (3 or 30%) at their revision (default: 0).",
        ),
    ] = None,
) -> None:
    """Continue a rollout that a partition has stopped.

    Without --to the partition is removed, so that all instances are updated.
    """
    before = verb.spec.update_strategy.partition
    if before == 0:
        raise UsageError(
            f"{verb.name} has no partition (spec.updateStrategy.partition), so nothing has to be "
            "advanced"
        )
    value = 0 if to is None else read_partition(to)
    edited = verb.edits.with_partition(verb.tapp, value)
    if value:
        now, wanted = (verb.plan_for(replace(verb.seen, tapp=each)).partition.size
                       for each in (verb.tapp, edited))  # fmt: skip
        if wanted > now:
            raise UsageError(
                f"--to {to} keeps more instances than the present partition ({now}): advance "
                "cannot go back; "
                "set spec.updateStrategy.partition instead"
            )
        if wanted == now:
            verb.do(verb.tapp)
            return
    verb.notes.append(f"spec.updateStrategy.partition changes from {before} to {value or 'none'}.")
    verb.do(edited)


def value(
    verb: Verb,
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="ID... KEY=TEXT...",
            help="Instance numbers (3, 0-3,7 or all) and values to set. KEY- removes a value.",
        ),
    ],
    default: Annotated[
        bool,
        typer.Option(
            "--default",
            help="Set the value of all instances without a value of their own, instead of named "
            "instances.",
        ),
    ] = False,
    cause: CauseOption = None,
) -> None:
    """Set values of instances, which fill the placeholders in their templates."""
    ids, wanted = read_values(words)
    if default == bool(ids):
        raise UsageError("name either instances or --default")
    chosen = None if default else verb.ids(ids)
    whose = "--default" if chosen is None else ranges(chosen)
    said = " ".join(f"{key}-" if text is None else f"{key}={text}" for key, text in wanted.items())
    edited = verb.edits.with_values(verb.tapp, chosen, wanted)
    verb.do(verb.with_cause(edited, cause, f"set value {verb.name} {whose} {said}"))


def rollback(
    verb: Verb,
    to: Annotated[
        str | None,
        option(
            "--to",
            metavar="REVISION",
            help="Revision to restore: its number, or at least 6 characters of its hash (default: "
            "the previous revision).",
        ),
    ] = None,
    template: _RolledBackTemplate = None,
    with_values: Annotated[
        bool,
        typer.Option(
            "--with-values",
            help="Also restore the values of the instances (`spec.values`) that this revision "
            "used in its placeholders.",
        ),
    ] = False,
    cause: CauseOption = None,
) -> None:
    """Restore an earlier revision of a template."""
    from kubectl_tapp.edit import revisions  # noqa: PLC0415 - it costs start time

    history = revisions.history_of(verb.seen)
    if not history:
        raise CommandError(no_history_message(verb.seen))
    ends = f"{tapp_command(verb.tapp, 'abort')} or {tapp_command(verb.tapp, 'promote')}"
    entry = revisions.rollback_target(
        history, verb.spec, to, template, with_values=with_values, ends=ends
    )
    # The cause names the hash, because the rollback gives the ControllerRevision a new number.
    twins = {each.template for each in history if each.hash == entry.hash}
    which = f" --template {entry.template}" if len(twins) > 1 else ""
    command = f"rollback {verb.name}{which} --to {entry.short_hash}"
    verb.notes.append(
        f"Template {entry.template} goes back to revision {entry.number} ({entry.hash}, "
        f"{entry.created})."
    )
    edited = verb.tapp
    if not entry.current:
        edited = verb.edits.with_template_content(edited, entry.template, entry.body)
    if with_values:
        edited = verb.edits.with_restored_values(edited, entry.template, entry.body, entry.values)
        command += " --with-values"
    if edited == verb.tapp:
        verb.do(verb.tapp)
        return
    verb.do(verb.with_cause(edited, cause, command))


def promote(
    verb: Verb, template: _CanaryTemplate = None, base: _Base = None, cause: CauseOption = None
) -> None:
    """Give all instances the template of a canary, and end the canary.

    The instances of the canary are not restarted. The others are updated within their budget.
    """
    from kubectl_tapp.edit import canaries  # noqa: PLC0415 - it costs start time

    canary = canaries.find_canary(verb.tapp, template, base)
    who = f", which {instance_list(canary.ids)} run{'s'[: len(canary.ids) == 1]}"
    ran = who if canary.ids else ", which no instance runs"
    verb.notes.append(
        f"Canary: template {canary.base!r} gets the content of {canary.name!r}{ran}. "
        + _afterwards(canary)
    )
    edited = canaries.promoted(verb.tapp, canary)
    verb.do(verb.with_cause(edited, cause, f"promote {verb.name} --template {canary.name}"))


def abort(
    verb: Verb, template: _CanaryTemplate = None, base: _Base = None, cause: CauseOption = None
) -> None:
    """End a canary, and take its instances back.

    They run the template again that the canary has replaced.
    """
    from kubectl_tapp.edit import canaries  # noqa: PLC0415 - it costs start time

    canary = canaries.find_canary(verb.tapp, template, base)
    who = instance_list(canary.ids) if canary.ids else "no instance"
    goes = "go" if len(canary.ids) > 1 else "goes"
    verb.notes.append(
        f"Canary: {who} {goes} back from {canary.name!r} to {canary.base!r}. {_afterwards(canary)}"
    )
    edited = canaries.aborted(verb.tapp, canary)
    verb.do(verb.with_cause(edited, cause, f"abort {verb.name} --template {canary.name}"))


def _afterwards(canary: "CanaryTemplate") -> str:
    if canary.is_copy:
        return f"Template {canary.name!r} was copied for this canary, and is removed now."
    return f"Template {canary.name!r} stays in spec.templatePool, and no instance runs it then."


def pause(verb: Verb) -> None:
    """Pause updates of instances.

    The service still creates, stops and deletes pods, and replaces lost pods.
    """
    verb.do(verb.edits.paused(verb.tapp))


def resume(verb: Verb) -> None:
    """Resume paused updates."""
    verb.waits_for_all = True
    verb.do(verb.edits.resumed(verb.tapp))


def retry(verb: Verb) -> None:
    """Roll out a revision again that was rolled back.

    The command annotates the TApp, and the spec stays as it is. The rollout has a new deadline.
    """
    verb.waits_for_all = True
    note = verb.plan_for(verb.seen).rollback.active
    if note is None:
        raise CommandError(
            f"{verb.name} has nothing to retry: its newest revision was not rolled back "
            "(spec.updateStrategy.onDeadline: Rollback)"
        )
    verb.notes.append(f"Revision {note.revision}, rolled back at {note.at}, is rolled out again.")
    verb.do(verb.edits.retried(verb.tapp, note.retry))


def scale(
    verb: Verb,
    replicas: Annotated[
        str,
        typer.Option("--replicas", metavar="NUMBER", help="The new desired number of instances."),
    ],
) -> None:
    """Set the number of instances. Scaling down deletes the instances with the highest numbers."""
    verb.do(verb.edits.scaled(verb.tapp, read_replicas(replicas)))


def adopt(verb: Verb, ids: Ids = None) -> None:
    """Make pods and claims with the names of this TApp its children.

    Only objects without an existing owner are adopted, for example those of a deleted TApp. The
    command sets the label controller-uid, by which Metacontroller finds children. A claim that
    would be deleted with the TApp also gets its Namespace as a second owner.
    """
    from kubectl_tapp.commands import adopt as adoption  # noqa: PLC0415 - it costs start time

    adoption.adopt(verb, ids)


def values(session: Session, name: Name, output: Output = None) -> None:
    """Show the values of each instance, and where they are used."""
    from kubectl_tapp.commands import values as shown  # noqa: PLC0415 - it costs start time

    shown.values(session, name, output)


def add_to(app: typer.Typer) -> None:
    """Adds the verbs and the other commands of this module to the app."""
    verbs = (kill, start, use, restart, pause, resume, retry, hold, release, scale, rollback)
    for verb in (*verbs, advance, promote, abort, adopt):
        register_verb(app, verb)
    for command in (history, values, wait):
        register(app, command)
    group = typer.Typer(
        help="Set the images of a template, or the values of instances.", no_args_is_help=True
    )
    register_verb(group, image)
    register_verb(group, value)
    app.add_typer(group, name="set")
