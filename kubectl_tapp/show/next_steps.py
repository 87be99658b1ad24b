"""The next steps of a TApp: advice on each problem that prevents the TApp from reaching its spec.

`advice_now` is the entry point. `tapp.words.advice` has the sentences. `next_step_lines` and
`next_steps_document` put commands into them, and the page puts the names of its buttons into them.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from typing import Any

from kubectl_tapp.base.errors import CommandError
from kubectl_tapp.base.hints import shell_command
from kubectl_tapp.decide.inspection import Inspection
from kubectl_tapp.decide.progress import Progress
from kubectl_tapp.edit import revisions
from kubectl_tapp.show.offers import held_instances, without_effect
from tapp.answer.conditions import conditions_of
from tapp.words.advice import advice_for, advice_on
from tapp.words.conditions import HARMLESS, Type
from tapp.words.ranges import ranges
from tapp.words.reasons import Reason, Standing
from tapp.words.remedies import COMMANDS, Advice, Remedy

_BY_A_PERSON = (Reason.PAUSED, Reason.HELD, Reason.REACHED)
"""Reasons that a person has caused on purpose, such as a pause. `status` and `why` have separate
lines about them, so the lines with next steps leave them out.
"""


def advice_now(view: Inspection) -> list[Advice]:
    """Returns advice on a TApp's conditions and on the decisions about its instances, the most
    urgent first.

    The list is empty if the TApp is being deleted, or if a person has nothing to do.
    """
    if view.observed.tapp["metadata"].get("deletionTimestamp"):
        return []
    return [each for each in dict.fromkeys(_all_advice(view)) if each.is_needed]


def advice_about(view: Inspection, id: int) -> list[Advice]:
    """Returns advice on the decision about one instance and on its pod, the most urgent first.

    The list is empty if the TApp is being deleted, or if a person has nothing to do about the
    instance.
    """
    if view.observed.tapp["metadata"].get("deletionTimestamp"):
        return []
    stands, case = view.standings[id].standing, view.cases[id]
    found: list[Advice] = []
    if stands is Standing.BLOCKED:
        found += [*_trouble(view, [id]), *_decisions(view, [id])]
    elif stands.waits:
        found.append(advice_on(case.decision.reason))
    if case.instance.is_rolled_back:
        found.append(advice_for(Type.STALLED, Reason.ROLLED_BACK))
    elif case.instance.kept:
        found.append(advice_for(Type.READY, Reason.REACHED))
    return [each for each in dict.fromkeys(found) if each.is_needed]


def _all_advice(view: Inspection) -> Iterator[Advice]:
    stands = view.standings
    blocked = [id for id, each in stands.items() if each.standing is Standing.BLOCKED]
    yield from _trouble(view, blocked)
    yield from (advice_for(each.type, each.reason) for each in view.refused)
    yield from _decisions(view, blocked)
    if all(each.standing is not Standing.PROGRESSING for each in stands.values()):
        yield from _decisions(view, [id for id, each in stands.items() if each.standing.waits])
    if view.plan.budgets.strategy.paused:
        yield advice_on(Reason.PAUSED)
    ready = conditions_of(view.plan).ready
    if ready.reason == Reason.REACHED:
        yield advice_for(Type.READY, ready.reason)


def _trouble(view: Inspection, blocked: Iterable[int]) -> Iterator[Advice]:
    """Yields advice on pods that do not run well, for these blocked instances."""
    cases = [view.cases[id] for id in blocked]
    # If the decision itself blocks an instance, `_decisions` has the advice, and the pod may run
    # well.
    troubled = [it for it in cases if it.decision.reason.standing is not Standing.BLOCKED]
    broken = [each.instance.pod for each in troubled]
    if any(pod and not pod.silent and not pod.terminating for pod in broken):
        yield advice_for(Type.DEGRADED, Reason.BROKEN)
    if any(pod and pod.silent for pod in broken):
        yield advice_on(Reason.NODE_SILENT)


def _decisions(view: Inspection, ids: Iterable[int]) -> Iterator[Advice]:
    """Yields advice on the decisions about the instances `ids`: one piece for each different
    reason.
    """
    yield from (advice_on(each) for each in {view.cases[id].decision.reason: None for id in ids})


def next_step_lines(view: Inspection, *, without: Collection[Remedy] = ()) -> list[str]:
    """Returns the next steps of a TApp with their commands, one line for each piece of advice.

    The list is empty if the TApp is neither stuck nor Degraded.

    Sentences are left out if they name a remedy that is in `without` or that has no effect now.
    """
    refused = any(each.type not in HARMLESS for each in view.refused)
    blocked = any(each.standing is Standing.BLOCKED for each in view.standings.values())
    if not (refused or blocked or Progress(view).stuck_reason(None)):
        return []
    return lines_of(view, advice_now(view), without=without)


def next_step_block(view: Inspection, *, without: Collection[Remedy] = ()) -> list[str]:
    """Returns the lines of `next_step_lines` after an empty line, or an empty list if there are no
    such lines.
    """
    lines = next_step_lines(view, without=without)
    return ["", *lines] if lines else []


def lines_of(
    view: Inspection, advice: Collection[Advice], *, without: Collection[Remedy] = ()
) -> list[str]:
    """Returns the lines `next step for REASON: ...` for these pieces of advice.

    Advice on a state that a person has chosen, such as a pause, is left out. Sentences are also
    left out if they name a remedy that is in `without` or that has no effect now.
    """
    needed = [each for each in advice if each.reason not in _BY_A_PERSON]
    if not needed:
        return []
    return [f"next step for {text}" for text in texts_of(needed, _commands(view, without))]


def next_steps_document(
    view: Inspection, *, without: Collection[Remedy] = ()
) -> list[dict[str, Any]]:
    """Returns the advice for `-o json`: an object for each sentence, the most urgent first.

    Each object has the reason, the sentence, and the command in the sentence, without backquotes.
    The command is None if the sentence names no command. Advice on a state that a person has chosen
    is included. Sentences are left out if they name a remedy that is in `without` or that has no
    effect now.
    """
    advice = advice_now(view)
    if not advice:
        return []
    word = _commands(view, without)
    known: set[str] = set()
    found = []
    for each in advice:
        for sentence, remedy in each.steps(word):
            if sentence not in known:
                known.add(sentence)
                typed = None if remedy is None else command(view, remedy).strip("`")
                found.append({"reason": each.reason, "sentence": sentence, "command": typed})
    return found


def _commands(view: Inspection, without: Collection[Remedy]) -> Callable[[Remedy], str]:
    """Returns a function from a remedy to its command in backquotes.

    The function returns "" if the remedy is in `without` or has no effect now.
    """
    history: list[revisions.HistoryEntry] = []
    with suppress(CommandError):
        history = revisions.history_of(view.observed)
    vain = without_effect(view, history).keys() | {*without}
    return lambda remedy: "" if remedy in vain else command(view, remedy)


def texts_of(advice: Iterable[Advice], word: Callable[[Remedy], str]) -> list[str]:
    """Returns a text `REASON: ...` for each piece of advice. No sentence is repeated in a later
    text.

    `word` returns the command or the button's name for a remedy. If `word` returns "", the
    sentences that name this remedy are left out.
    """
    known: set[str] = set()
    texts = []
    for each in advice:
        new = [text for text in each.sentences(word) if text not in known]
        known.update(new)
        if new:
            texts.append(f"{each.name}: {' '.join(new)}")
    return texts


def command(view: Inspection, remedy: Remedy) -> str:
    """Returns the command of a remedy for this TApp, in backquotes."""
    held = held_instances(view) if remedy is Remedy.RELEASE else []
    known = {"NAME": view.name, "ID": ranges(held) or "ID"}
    program, *words = COMMANDS[remedy]
    plugin = program == "tapp"
    words = [known.get(each, each) for each in (words if plugin else COMMANDS[remedy])]
    return shell_command(*words, namespace=view.namespace, plugin=plugin)
