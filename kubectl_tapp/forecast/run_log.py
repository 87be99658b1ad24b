"""The record of a run: decisions, writes, and the instances that did not reach their goal."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from kubectl_tapp.base.words import instances_phrase
from kubectl_tapp.decide.instance_views import view_of
from tapp.decide.cases import ids_of
from tapp.decide.rollout import DELAYED
from tapp.decide.verdicts import Action, Verdict
from tapp.plan import Plan
from tapp.storage.claims import Claims, PodSource
from tapp.words.groups import grouped
from tapp.words.kinds import SERVICE
from tapp.words.ranges import about
from tapp.words.reasons import Reason, Standing

# Fields of a claim that an update changes
SIZE_PATH = "spec.resources.requests.storage"
CLASS_PATH = "spec.volumeAttributesClassName"
# Outcomes of writes that are normal or that Metacontroller retries
_HARMLESS_OUTCOMES = ("ok", "no-op", "Conflict", "NotFound")
_INTENDED_WAITS = (Reason.PAUSED, Reason.HELD)  # Reasons of waits that a user has asked for
_MAX_REFUSALS = 5  # The largest number of refused writes that are listed


@dataclass(frozen=True)
class Write:
    """One write of Metacontroller to a child in the simulation, as an audit log would show it."""

    # when the write happens: in seconds since the epoch, but in a `Forecast` in seconds from now
    at: float
    verb: str  # `create`, `update`, `delete` or `status`
    kind: str  # kind of the child
    name: str  # name of the child
    paths: tuple[str, ...] = ()  # fields that an update changes
    outcome: str = "ok"  # `ok`, `no-op` or the reason of a refusal
    message: str = ""  # message of a refusal


@dataclass(frozen=True)
class DecidedWrite(Write):
    """One write in the simulation, with the decision of the service that caused it."""

    instance: int | None = None  # number of the pod's instance; None for other children
    verdict: Verdict | None = None  # the decision about the instance


@dataclass(frozen=True)
class RemainingUpdates:
    """Updates of a long rollout that were not simulated, because they repeat the simulated ones."""

    # the writes of these updates, as one more decision lists them; their times (`at`) have no
    # meaning
    acts: tuple[DecidedWrite, ...]
    at: float  # when the simulated updates were complete, in seconds since the epoch
    seconds: float  # estimated seconds that these updates take after `at`

    @property
    def ids(self) -> list[int]:
        """The numbers of the instances that these updates change."""
        return [act.instance for act in self.acts if act.instance is not None]


@dataclass
class RunLog:
    """The record of one simulation: decisions, writes, and the states of the instances over time.

    Attributes:
        first: the first plan of the service; None if the service has made none.
        last: the last plan of the service; None if the service has made none.
        gave_up: True if the simulation was stopped at its time limit.
    """

    # each change of the number of unavailable instances: when, in seconds since the epoch, and the
    # new number
    looks: list[tuple[float, int]] = field(default_factory=list)
    acts: list[DecidedWrite] = field(default_factory=list)
    states: dict[int, list[tuple[float, str]]] = field(default_factory=dict)
    """Instance number to its states over time: seconds since the epoch, and the state."""
    first: Plan | None = None
    last: Plan | None = None
    ended: float = 0.0  # when the last change happened, in seconds since the epoch
    refused: str = ""  # why the hooks cannot read the TApp, or empty
    gave_up: bool = False
    # the updates of a long rollout that were not simulated; None if all updates were simulated
    rest: RemainingUpdates | None = None
    # True if this record comes from a simulation; False if it was made from a single decision
    played: bool = True


def unavailable(plan: Plan) -> int:
    """Returns how many instances should run and are not available, according to the plan."""
    return plan.budgets.should_run - len(plan.available)


def stuck_sentences(log: RunLog) -> list[str]:
    """Returns sentences about instances that do not reach their goal, and about writes that the API
    server refuses.

    Instances that wait because a user has paused updates or put a hold on the pod are left out.
    """
    last = log.last
    if last is None:
        return []
    coming = set() if log.rest is None else set(log.rest.ids)
    stands = (
        (view_of(last, case), case.decision.reason)
        for case in (last.cases if log.played else last.notable)
        if case.instance.id not in coming
    )
    left = grouped(
        (each.text, each.id)
        for each, reason in stands
        if each.standing is not Standing.DONE and reason not in _INTENDED_WAITS
    )
    found = [about(ids, text) for text, ids in left.items()]
    if not log.played:
        return found
    refused = {act.name: act for act in log.acts if act.outcome not in _HARMLESS_OUTCOMES}
    found += [
        f"the API server refuses to {act.verb} {act.kind} {act.name}: {act.message}"
        for act in list(refused.values())[:_MAX_REFUSALS]
    ]
    return found


def paused_sentences(log: RunLog) -> list[str]:
    """Returns a list with one sentence about the instances that wait because updates are paused.

    The list is empty if there are no such instances.
    """
    last = log.last
    cases = [] if last is None else last.notable
    ids = ids_of(case for case in cases if case.decision.reason is Reason.PAUSED)
    return (
        [f"{instances_phrase(ids)}: updates are paused (spec.updateStrategy.paused)"] if ids else []
    )


_VERBS = {
    Action.CREATE: "create", Action.DELETE: "delete", Action.RECREATE: "delete",
    Action.UPDATE: "update", Action.ADOPT: "update", Action.MARK: "update",
}  # fmt: skip


def due_writes(after: Plan) -> tuple[list[DecidedWrite], dict[int, Verdict]]:
    """Returns the writes that the plan leads to without any help, and the instances that wait for
    help.

    The first result has the writes to pods, claims and Services, also those of updates that only
    wait for their budget. The second result has the other instances that are not up to date:
    instance number -> the verdict, which says why the instance needs help.
    """
    acts, left = [], dict[int, Verdict]()
    for case in after.notable:
        instance, decision = case.instance, case.decision
        if decision.reason == Reason.UP_TO_DATE:
            continue
        due = case.verdict if decision.reason in DELAYED else decision
        verb = None if due.reason == Reason.HELD else _VERBS.get(due.action)
        if verb is None and due.reason == Reason.TERMINATING:
            verb = "create" if instance.should_run else ""
        if verb:
            name = f"{after.world.tapp.metadata.name}-{instance.id}"
            acts.append(
                DecidedWrite(after.now, verb, "Pod", name, instance=instance.id, verdict=due)
            )
        elif verb is None:
            left[instance.id] = due
    claims = [("create", name) for name in _new_claims(after, acts)]
    storage = after.findings.storage
    claims += [("delete", claim.metadata.name) for claim in storage.claims.delete]
    acts += [DecidedWrite(after.now, verb, "PersistentVolumeClaim", name) for verb, name in claims]
    acts += [
        DecidedWrite(after.now, "update", "PersistentVolumeClaim", name, (path,))
        for path, names in ((CLASS_PATH, storage.modification.to), (SIZE_PATH, storage.growth.to))
        for name in names
    ]
    acts += [
        DecidedWrite(after.now, verb, "Service", name) for verb, name in _service_writes(after)
    ]
    return acts, left


def _new_claims(after: Plan, acts: list[DecidedWrite]) -> Iterator[str]:
    known = dict.fromkeys(claim.name for claim in after.findings.storage.claims.create)
    every = Claims(after.world)
    yield from known
    replaced = {
        act.instance for act in acts if act.verdict and act.verdict.action is Action.RECREATE
    }
    for instance in after.instances:
        if instance.id in replaced:
            names = every.of(PodSource(instance.id, instance.template)).values()
            yield from (n for n in names if n not in known and n not in after.world.claims)


def _service_writes(after: Plan) -> Iterator[tuple[str, str]]:
    name, services = after.world.tapp.metadata.name, after.findings.storage.services
    known = after.world.plain.get(SERVICE, {})
    for id in services.apply:
        if f"{name}-{id}" not in known:
            yield "create", f"{name}-{id}"
        elif id in services.missing:
            yield "update", f"{name}-{id}"
    yield from (("delete", each) for each in services.delete)
