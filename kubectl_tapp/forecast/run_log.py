"""The record of a run of a TApp's decisions: seen, written, and left without an end."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from kubectl_tapp.base.words import instances
from kubectl_tapp.decide.standing import missed, standing
from tapp.decide.instances import Instance
from tapp.decide.judge import Verdict
from tapp.plan import Plan
from tapp.words.groups import grouped
from tapp.words.reasons import Disposition, Reason

_PASSING = ("ok", "no-op", "Conflict", "NotFound")
_MEANT = (Reason.PAUSED, Reason.HELD)  # Reasons of waits that somebody wants
_SHOWN = 5  # The most refused writes that are told of


@dataclass(frozen=True)
class Write:
    """One write of Metacontroller to a child, as an API server would log it."""

    at: float  # when: in seconds since the epoch, in a forecast from now
    verb: str  # `create`, `update`, `delete` or `status`
    kind: str  # the child's kind
    name: str  # the child's name
    paths: tuple[str, ...] = ()  # the fields that an update changes
    outcome: str = "ok"  # `ok`, `no-op` or the reason of a refusal
    message: str = ""  # the refusal's words


@dataclass(frozen=True)
class DecidedWrite(Write):
    """One write with the verdict that asked for it."""

    instance: int | None = None  # the pod's instance; None for other children
    verdict: Verdict | None = None  # the instance's verdict


@dataclass(frozen=True)
class Unplayed:
    """Instances that have a turn like those that were played, after them."""

    acts: tuple[DecidedWrite, ...]  # what becomes of them, as one more decision says; without times
    at: float  # when what was played was done, in seconds since the epoch
    seconds: float  # that it takes about from then on

    @property
    def ids(self) -> list[int]:
        """The instances."""
        return [act.instance for act in self.acts if act.instance is not None]


@dataclass
class RunLog:
    """All that a run came to."""

    looks: list[tuple[float, int]] = field(default_factory=list)  # when, and how many unavailable
    acts: list[DecidedWrite] = field(default_factory=list)
    states: dict[int, list[tuple[float, str]]] = field(default_factory=dict)
    """Instance -> since when it was in which state: what a timeline shows."""
    first: Plan | None = None
    last: Plan | None = None
    ended: float = 0.0  # The time when the last thing changed, in seconds since the epoch
    refused: str = ""  # The reason why the hooks cannot read the TApp at all
    gave_up: bool = False
    rest: Unplayed | None = None  # The rest that was not played, as it goes on in the same way
    played: bool = True  # True if it was run to its end; else it is one decision


def unavailable(plan: Plan) -> int:
    """The number of instances that are to run and do not serve, as everywhere."""
    return plan.budgets.should_run - len(plan.available)


def stuck(log: RunLog) -> list[str]:
    """Sentences: which instances do not come to where the edit wants them, and why."""
    last = log.last
    if last is None:
        return []
    coming = set() if log.rest is None else set(log.rest.ids)
    if log.played:
        pairs: Iterable[tuple[Instance, Verdict]]
        pairs = zip(last.instances, last.decisions, strict=True)
    else:
        pairs = last.cases
    missing = missed(last)
    stands = (
        (standing(last, missing, *pair), pair[1].reason)
        for pair in pairs
        if pair[0].id not in coming
    )
    left = grouped(
        (each.text, each.id)
        for each, reason in stands
        if each.disposition is not Disposition.DONE and reason not in _MEANT
    )
    found = [f"{instances(ids)}: {text}" for text, ids in left.items()]
    if not log.played:
        return found
    refused = {act.name: act for act in log.acts if act.outcome not in _PASSING}
    found += [
        f"{act.verb} {act.kind} {act.name} is refused: {act.message}"
        for act in list(refused.values())[:_SHOWN]
    ]
    return found


def paused(log: RunLog) -> list[str]:
    """Sentences about who waits for the person that paused updates: meant so, and not stuck."""
    last = log.last
    cases = [] if last is None else last.cases
    ids = [instance.id for instance, verdict in cases if verdict.reason == Reason.PAUSED]
    return [f"{instances(ids)}: updates are paused (spec.updateStrategy.paused)"] if ids else []
