"""The writes that one decision asks for, now or as soon as the budget lets it."""

from collections.abc import Iterator

from kubectl_tapp.forecast.run_log import DecidedWrite
from tapp.decide.instances import Instance
from tapp.decide.judge import Action, Verdict
from tapp.decide.rollout import DELAYED
from tapp.plan import Plan
from tapp.storage.claims import Claims, Made
from tapp.words.kinds import SERVICE
from tapp.words.reasons import Reason

_VERBS = {
    Action.CREATE: "create",
    Action.DELETE: "delete",
    Action.RECREATE: "delete",
    Action.UPDATE: "update",
    Action.ADOPT: "update",
    Action.MARK: "update",
}


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
    """Claims that are made now, and those that come with the pods that replace others."""
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
