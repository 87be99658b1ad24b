"""Writes several objects: tries each in a dry run, asks once, then writes one after the other."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from kubectl_tapp.base.errors import CommandError
from kubectl_tapp.base.observed import Document
from kubectl_tapp.base.words import instances_phrase
from kubectl_tapp.cluster.access import PODS
from kubectl_tapp.cluster.session import uninterrupted
from kubectl_tapp.commands.options import NOTHING_WRITTEN, DryRun
from kubectl_tapp.commands.verb_options import Verb
from tapp.words.groups import grouped
from tapp.words.ranges import id_list

if TYPE_CHECKING:
    from tapp.decide.verdicts import Verdict
    from tapp.pod.pod import Pod


T = TypeVar("T")


def write_each(  # noqa: PLR0913 - all of them describe one write to several objects
    verb: Verb,
    items: Sequence[T],
    done: str,
    named: Callable[[list[T]], str],
    *,
    attempt: Callable[[T], object],
    write: Callable[[T], object],
    check: Callable[[], object] = lambda: None,
) -> bool:
    """Writes the items one after the other, after the user has confirmed.

    Returns False for a dry run, which writes nothing, and otherwise True. Raises the first error of
    a write, after a note that says which items were written.

    Args:
        verb: the running command, with its options.
        items: the items to write, such as pods or instance numbers, in the order of the writes.
        done: the state of the items after the write, for the messages, such as "on hold".
        named: returns the phrase by which messages name a list of items.
        attempt: lets the API server check the write of one item by a dry run.
        write: writes one item.
        check: called after the confirmation; raises an error if the write is no longer right.
    """
    session, choices = verb.session, verb.choices
    if choices.dry_run is not DryRun.CLIENT:
        # All items are checked before the first write, so that a missing permission prevents all
        # writes.
        for item in items:
            attempt(item)
    if choices.dry_run is not None:
        session.say(NOTHING_WRITTEN)
        return False
    session.confirm(yes=choices.yes)
    check()
    count = 0
    try:
        for item in items:
            write(item)
            count += 1
    except (KeyboardInterrupt, CommandError):
        written, left = list(items[:count]), list(items[count:])
        session.note(f"{done}: {named(written) if written else 'none'}; not {done}: {named(left)}")
        raise
    session.say(f"{verb.name}: {named(list(items))} {done}")
    return True


Annotations = Mapping[str, str | None]  # Annotation -> value; None removes the annotation


def annotate(  # noqa: PLR0913 - all of them describe one write to pods
    verb: Verb,
    pods: "Mapping[int, Pod]",
    annotations: Annotations,
    describe: "Callable[[Verdict, Verdict], str]",
    done: str,
    *,
    first: Iterable[str] = (),
    how: str = "",
) -> None:
    """Sets and removes annotations of the pods of instances, after the user has confirmed.

    Each write is guarded by the pod's uid.

    Args:
        verb: the running command, with its TApp and its options.
        pods: instance number -> its pod.
        annotations: annotation -> value; None removes the annotation.
        describe: returns the phrase that is printed about an instance before the user confirms.
            Both parameters are computed as if the annotations were written. The first is the
            verdict: the action that the instance needs. The second is the decision: the action or
            the wait of the next sync.
        done: a phrase for the state of the instances after the write, such as "on hold". It is
            part of the final message and of the message about an interruption.
        first: lines to print between the heading and the list of instances.
        how: the text after the TApp's name in the heading; may be empty.
    """
    session = verb.session
    plan = verb.plan_for(replace(verb.seen, pods=_annotated(verb, pods, annotations)))
    found = grouped(
        (describe(case.verdict, case.decision), case.instance.id)
        for case in plan.cases
        if case.instance.id in pods
    )
    session.say(f"TApp {verb.name}{how}:")
    for line in (*first, *(f"{id_list(those)}  {text}" for text, those in found.items())):
        session.say(f"  {line}")

    def write(id: int, *, dry_run: bool = False) -> None:
        patch = {"metadata": {"uid": pods[id].uid, "annotations": dict(annotations)}}
        with uninterrupted():
            session.cluster.patch(PODS, f"{verb.name}-{id}", patch, "merge", dry_run=dry_run)

    attempt = partial(write, dry_run=True)
    write_each(verb, list(pods), done, instances_phrase, attempt=attempt, write=write)


def _annotated(verb: Verb, pods: "Mapping[int, Pod]", annotations: Annotations) -> list[Document]:
    names = {pod.name for pod in pods.values()}
    return [
        {
            **pod,
            "metadata": {
                **meta,
                "annotations": _merged_annotations(meta.get("annotations"), annotations),
            },
        }
        if (meta := pod["metadata"])["name"] in names
        else pod
        for pod in verb.seen.pods
    ]


def _merged_annotations(
    notes: Mapping[str, str] | None, annotations: Annotations
) -> dict[str, str]:
    found = {**(notes or {}), **annotations}
    return {key: text for key, text in found.items() if text is not None}
