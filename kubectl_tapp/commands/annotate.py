"""Annotations of pods, by which the service is asked for something: shown, asked for, written."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from kubectl_tapp.base.observed import Document
from kubectl_tapp.cluster.access import PODS
from kubectl_tapp.cluster.session import uninterrupted
from kubectl_tapp.commands.verb_options import Verb
from kubectl_tapp.commands.writes import write_each
from tapp.words.groups import grouped
from tapp.words.ranges import id_list

if TYPE_CHECKING:
    from tapp.decide.judge import Verdict
    from tapp.pod.pod import Pod

Marks = Mapping[str, str | None]  # Annotation -> its text, None to remove it


def annotate(  # noqa: PLR0913 - what a write to pods consists of
    verb: Verb,
    pods: "Mapping[int, Pod]",
    marks: Marks,
    means: "Callable[[Verdict, Verdict], str]",
    done: str,
    *,
    first: Iterable[str] = (),
    how: str = "",
) -> None:
    """Annotates the pods of instances, after the question; each write is guarded by the pod's uid.

    `means` says what the service would do now, by its verdict and its decision on an instance;
    `done` what the instances are then; `first` and `how`, if given, what else is to be known.

    Raises CommandError: one may not be written, or is another pod by now.
    """
    session = verb.session
    plan = verb.decided(replace(verb.seen, pods=_annotated(verb, pods, marks)))
    cases = zip(plan.instances, plan.verdicts, plan.decisions, strict=True)
    found = grouped((means(*both), instance.id) for instance, *both in cases if instance.id in pods)
    session.say(f"TApp {verb.name}{how}:")
    for line in (*first, *(f"{id_list(those)}  {text}" for text, those in found.items())):
        session.say(f"  {line}")

    def write(id: int, *, dry_run: bool = False) -> None:
        patch = {"metadata": {"uid": pods[id].uid, "annotations": dict(marks)}}
        with uninterrupted():
            session.cluster.patch(PODS, f"{verb.name}-{id}", patch, "merge", dry_run=dry_run)

    attempt = partial(write, dry_run=True)
    write_each(verb, list(pods), done, id_list, attempt=attempt, write=write)


def _annotated(verb: Verb, pods: "Mapping[int, Pod]", marks: Marks) -> list[Document]:
    names = {pod.name for pod in pods.values()}
    return [
        {**pod, "metadata": {**meta, "annotations": _with(meta.get("annotations"), marks)}}
        if (meta := pod["metadata"])["name"] in names
        else pod
        for pod in verb.seen.pods
    ]


def _with(notes: Mapping[str, str] | None, marks: Marks) -> dict[str, str]:
    found = {**(notes or {}), **marks}
    return {key: text for key, text in found.items() if text is not None}
