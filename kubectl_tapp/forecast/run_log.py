"""The record of a run of a TApp's decisions: seen, written, and left without an end."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from kubectl_tapp.base.words import instances
from kubectl_tapp.decide.standing import missed, standing
from tapp.decide.instances import Instance
from tapp.decide.judge import Action, Verdict
from tapp.decide.rollout import DELAYED
from tapp.plan import Plan
from tapp.storage.claims import Claims, Made
from tapp.words.groups import grouped
from tapp.words.kinds import SERVICE
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


_VERBS = {
    Action.CREATE: "create", Action.DELETE: "delete", Action.RECREATE: "delete",
    Action.UPDATE: "update", Action.ADOPT: "update", Action.MARK: "update",
}  # fmt: skip


def due_writes(after: Plan) -> tuple[list[DecidedWrite], list[tuple[Instance, Verdict]]]:
    """The writes of all that is due, as if all were done at once; and who is left, with the reason.

    What waits for a budget comes by itself: what is going to happen then, its verdict says.
    """
    acts, left = [], []
    for instance, verdict, decision in zip(
        after.instances, after.verdicts, after.decisions, strict=True
    ):
        if decision.reason == Reason.UP_TO_DATE:
            continue
        due = verdict if decision.reason in DELAYED else decision
        verb = None if due.reason == Reason.HELD else _VERBS.get(due.action)
        if verb is None and due.reason == Reason.TERMINATING:
            verb = "create" if instance.should_run else ""
        if verb:
            name = f"{after.world.tapp.metadata.name}-{instance.id}"
            acts.append(
                DecidedWrite(after.now, verb, "Pod", name, instance=instance.id, verdict=due)
            )
        elif verb is None:
            left.append((instance, due))
    claims = [("create", name) for name in _new_claims(after, acts)]
    claims += [("delete", claim.metadata.name) for claim in after.claims.delete]
    claims += [("update", name) for name in after.growth.to]
    acts += [DecidedWrite(after.now, verb, "PersistentVolumeClaim", name) for verb, name in claims]
    acts += [DecidedWrite(after.now, verb, "Service", name) for verb, name in _of_services(after)]
    return acts, left


def _new_claims(after: Plan, acts: list[DecidedWrite]) -> Iterator[str]:
    yield from (claim.name for claim in after.claims.create)
    known, every = {claim.name for claim in after.claims.create}, Claims(after.world)
    replaced = {
        act.instance for act in acts if act.verdict and act.verdict.action is Action.RECREATE
    }
    for instance in after.instances:
        if instance.id in replaced:
            names = every.of(Made(instance.id, instance.template)).values()
            yield from (n for n in names if n not in known and n not in after.world.claims)


def _of_services(after: Plan) -> Iterator[tuple[str, str]]:
    name, services = after.world.tapp.metadata.name, after.services
    known = after.world.plain.get(SERVICE, {})
    for id in services.apply:
        if f"{name}-{id}" not in known:
            yield "create", f"{name}-{id}"
        elif id in services.missing:
            yield "update", f"{name}-{id}"
    yield from (("delete", each) for each in services.delete)
