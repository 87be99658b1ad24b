"""What of a forecast does not come to its end: what is stuck, and what a person has paused."""

from kubectl_tapp.decide.phrases import instances
from kubectl_tapp.forecast.record import Record
from tapp.words.groups import grouped
from tapp.words.reasons import Disposition, Reason

_PASSING = ("ok", "no-op", "Conflict", "NotFound")
_MEANT = (Reason.PAUSED, Reason.HELD)
"""What somebody waits for on purpose."""
_SHOWN = 5
"""How many refused writes are told of."""


def stuck(record: Record) -> list[str]:
    """What does not come to its end, and why, in sentences."""
    last = record.last
    if last is None:
        return []
    held = grouped(
        ((verdict.reason, verdict.message), instance.id)
        for instance, verdict in last.cases
        if verdict.reason.disposition is not Disposition.DONE and verdict.reason not in _MEANT
    )
    found = [f"{instances(ids)}: {message}" for (_, message), ids in held.items()]
    if not record.played:
        return found
    troubles = grouped((each.text, id) for id, each in last.troubles.items() if each.text)
    found += [f"{instances(ids)}: {text}" for text, ids in troubles.items()]
    covered = {id for ids in (*held.values(), *troubles.values()) for id in ids}
    covered.update(i.id for i, verdict in last.cases if verdict.reason in _MEANT)
    silent = [
        i.id
        for i in last.instances
        if i.should_run and i.id not in last.available and i.id not in covered
    ]
    if silent:
        found.append(f"{instances(silent)}: not available in the end")
    refused = {act.name: act for act in record.acts if act.outcome not in _PASSING}
    found += [
        f"{act.verb} {act.kind} {act.name} is refused: {act.message}"
        for act in list(refused.values())[:_SHOWN]
    ]
    return found


def paused(record: Record) -> list[str]:
    """Who waits for the person that paused updates: that is meant so, and not stuck."""
    last = record.last
    cases = [] if last is None else last.cases
    ids = [instance.id for instance, verdict in cases if verdict.reason == Reason.PAUSED]
    return [f"{instances(ids)}: updates are paused (spec.updateStrategy.paused)"] if ids else []
