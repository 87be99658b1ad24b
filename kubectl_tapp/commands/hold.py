"""`kubectl tapp hold` and `release`: set and remove the annotations of a hold on pods.

docs/hold.md says how the service treats these pods.
"""

from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from kubectl_tapp.base.arguments import read_ids
from kubectl_tapp.base.errors import CommandError, UsageError
from kubectl_tapp.base.words import instances_phrase
from kubectl_tapp.commands.options import NO_CHANGE
from kubectl_tapp.commands.verb_options import SomeIds, Verb
from kubectl_tapp.commands.writes import annotate
from tapp.words.groups import grouped
from tapp.words.ranges import id_list
from tapp.words.reasons import Reason
from tapp.words.vocabulary import HOLD, HOLD_FOR

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tapp.decide.verdicts import Verdict
    from tapp.pod.pod import Pod

_NOTHING_YET = "up to date: no action is pending"
_NOTHING = "up to date: the hold has prevented nothing"
_LONGEST_REASON = (
    # Largest number of characters of a reason, because the messages of waiting instances quote it
    1_000
)


class For(StrEnum):
    """The values of `--for`: the actions that a hold prevents."""

    UPDATE = "update"
    DELETE = "delete"


def hold(
    verb: Verb,
    ids: SomeIds,
    reason: Annotated[
        str,
        typer.Option(
            "--reason",
            metavar="TEXT",
            help="Reason for the hold. Messages about waiting instances quote it.",
        ),
    ],
    only: Annotated[
        For | None,
        typer.Option("--for", help="Prevent only updates or only deletions (default: both)."),
    ] = None,
) -> None:
    """Protect the pods of instances from updates and deletion.

    The hold lasts until `kubectl tapp release`. A pod that is already on hold gets the new reason.
    """
    if not reason.strip():
        raise UsageError(
            "--reason is empty: give a reason, which messages about waiting instances quote"
        )
    if len(reason) > _LONGEST_REASON:
        raise UsageError(f"--reason is longer than {_LONGEST_REASON:,} characters")
    pods = _pods(verb, ids)
    ended = [id for id, pod in pods.items() if pod.completed]
    if ended:
        raise UsageError(f"a hold has no effect on a pod that has ended: {instances_phrase(ended)}")
    annotations = {HOLD: reason, HOLD_FOR: None if only is None else only.value}
    annotate(
        verb,
        pods,
        annotations,
        partial(_next_step, _NOTHING_YET),
        "on hold",
        first=_replaced_holds(pods, annotations),
    )
    if verb.choices.wait and verb.choices.dry_run is None:
        _wait_until_respected(verb, pods)


def release(verb: Verb, ids: SomeIds) -> None:
    """Remove the hold from instances.

    The service then does what the hold prevented. Updates respect the budget.
    """
    pods = _pods(verb, ids)
    held = {id: pod for id, pod in pods.items() if pod.spec.hold and pod.spec.hold.reason}
    if not held:
        are = "is" if len(pods) == 1 else "are"
        message = f"{instances_phrase(list(pods))} {are} not on hold: {NO_CHANGE}"
        verb.session.say(f"{verb.name}: {message}")
        return
    annotations = {HOLD: None, HOLD_FOR: None}
    annotate(verb, held, annotations, partial(_next_step, _NOTHING), "released")
    verb.wait_after_write(list(held))


def _pods(verb: Verb, texts: list[str]) -> "dict[int, Pod]":
    """Returns instance number -> pod for the instances that the user has typed.

    Instances outside spec.replicas may be named, too, as long as they have a pod. Raises
    CommandError if a named instance has no pod, or if its pod is terminating. The word `all` leaves
    such instances out.
    """
    there = {each.id: each.pod for each in verb.plan().instances}
    ids = read_ids(texts, max(there, default=-1) + 1)
    found = {id: pod for id in ids if (pod := there.get(id)) is not None and not pod.terminating}
    missing = [id for id in ids if id not in found]
    if missing and (texts != ["all"] or not found):
        has = "has no pod" if len(missing) == 1 else "have no pods"
        raise CommandError(f"{instances_phrase(missing)} {has} now")
    if not found:
        raise CommandError(f"{verb.name} has no pods now")
    return found


def _replaced_holds(
    pods: "Mapping[int, Pod]", annotations: "Mapping[str, str | None]"
) -> "Iterable[str]":
    """Returns a line for each hold of these pods that the new hold would replace.

    `pods` maps instance numbers to pods. `annotations` are the annotations of the new hold; the
    value None removes an annotation. There is no line for a pod whose hold already equals the new
    hold.
    """
    from tapp.pod.hold import NO_HOLD, hold_of  # noqa: PLC0415 - it costs start time

    new = hold_of({}, annotations) or NO_HOLD
    holds = ((pod.spec.hold or NO_HOLD, id) for id, pod in pods.items())
    found = grouped(
        (repr(known.reason) + (known.limited_to and f", for {known.limited_to}"), id)
        for known, id in holds
        if known.reason and (known.reason, known.limited_to) != (new.reason, new.limited_to)
    )
    what = "already on hold: {}; the new hold replaces this one"
    return [f"{id_list(ids)}  {what.format(text)}" for text, ids in found.items()]


def _next_step(up_to_date: str, _: "Verdict", decision: "Verdict") -> str:
    """Returns a phrase that says what the service would do with an instance: the reason and the
    message of `decision`.

    Returns `up_to_date` if the service would do nothing.
    """
    if decision.reason == Reason.UP_TO_DATE:
        return up_to_date
    return f"{decision.reason}: {decision.message}"


def _wait_until_respected(verb: Verb, pods: "Mapping[int, Pod]") -> None:
    """Waits until the service has labelled the pods, which shows that it respects the hold.

    `pods` maps instance numbers to pods. Raises CommandError if a pod was deleted before that, or
    at the timeout.
    """
    from kubectl_tapp.commands.waiting import poll_until_done  # noqa: PLC0415 - start time

    session = verb.session

    def unseen() -> str:
        verb.seen = session.observed(verb.name)
        now = {each.id: each.pod for each in verb.plan().instances}
        left = [
            id for id in pods
            if (pod := now.get(id)) is None or pod.terminating
            or pod.spec.hold is None or not pod.spec.hold.label
        ]  # fmt: skip
        gone = [id for id in left if (pod := now.get(id)) is None or pod.uid != pods[id].uid]
        gone += [id for id in left if (pod := now.get(id)) and pod.terminating]
        if gone:
            raise CommandError(
                f"the hold came too late for {instances_phrase(gone)}: the TApp service deleted "
                "the pod before it saw the hold"
            )
        return instances_phrase(left) if left else ""

    waits = f"{verb.name}: the TApp service has not seen the hold of {{}} yet"
    late = "after {} the TApp service has not seen the hold of {}"
    poll_until_done(session, verb.choices.seconds, unseen, waits, late)
    session.say(
        f"{verb.name}: the TApp service has seen the hold of {instances_phrase(list(pods))}"
    )
