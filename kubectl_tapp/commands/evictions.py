"""`kubectl tapp restart` of chosen instances: their pods are evicted one after the other.

Each goes after the one before is available again: an annotation of a shared template would restart
them all, and a template of their own would stay behind. `--in-place`: an annotation of the
template, or of the chosen pods, which the service obeys within the budget.
"""

import json
from dataclasses import replace

from kubectl_tapp.base.arguments import nearest
from kubectl_tapp.base.errors import CommandError, Exit, UsageError
from kubectl_tapp.base.observed import Document
from kubectl_tapp.cluster.kubectl import KubectlError
from kubectl_tapp.cluster.session import uninterrupted
from kubectl_tapp.commands.verb_options import Verb
from kubectl_tapp.commands.waiting import WaitGoal, until_done, wait
from kubectl_tapp.commands.writes import annotate, write_each
from kubectl_tapp.edit import edits
from tapp.decide.instances import Instance
from tapp.decide.judge import Action, Verdict
from tapp.decide.rollout import is_update, spend
from tapp.declared.templates import Template
from tapp.plan import Plan
from tapp.pod.pod import Pod
from tapp.words.ranges import id_list
from tapp.words.reasons import Reason
from tapp.words.times import written
from tapp.words.vocabulary import RESTART_IN_PLACE, RESTART_INSTANCE, Wish

_BUSY = "TooManyRequests"  # An eviction that a PodDisruptionBudget does not allow now
_CHANGED = ("NotFound", "Conflict")


def one_by_one(verb: Verb, found: dict[int, Pod]) -> None:
    """Shows who gets a new pod, asks, and evicts one after the other."""
    ids = list(found)
    verb.session.say(
        f"TApp {verb.name}: new pods for {id_list(ids)}, one after the other: each is evicted when "
        "the budget allows it, and waited for until it is available again"
    )
    write_each(
        verb, ids, "restarted", id_list,
        # Who may evict one may evict all, and each try is a call of its own.
        attempt=lambda id: id == ids[0] and _evict(verb, id, found[id].uid, dry_run=True),
        write=lambda id: _replace(verb, id, found[id].uid),
    )  # fmt: skip


def _instance(plan: Plan, id: int) -> Instance:
    """Raises a CommandError where it is gone: the TApp was scaled down meanwhile."""
    found = next((each for each in plan.instances if each.id == id), None)
    if found is None:
        raise CommandError(f"instance {id} is gone: the TApp has fewer now")
    return found


def pod_of(plan: Plan, id: int) -> Pod:
    """The pod of an instance that is to be restarted; CommandError: none, or none would follow."""
    instance = _instance(plan, id)
    if not instance.should_run:
        how = "is stopped: start it" if instance.killed else "has finished: kill it, then start it"
        raise UsageError(f"instance {id} {how}")
    if instance.pod is None or instance.pod.terminating:
        raise CommandError(f"instance {id} has no pod now: the service makes one")
    if instance.pod.silent:
        raise CommandError(
            f"instance {id} is on a node that does not report: its pod cannot end there"
        )
    return instance.pod


def _replace(verb: Verb, id: int, uid: str) -> None:
    """Evicts one pod as soon as that may be, and waits for the next one."""
    session, timeout = verb.session, verb.choices.seconds

    def attempt() -> str:
        verb.seen = session.observed(verb.name)
        if why := _held(verb.plan(), id, uid):
            return why
        with uninterrupted():
            return _evict(verb, id, uid)

    waits = f"{verb.name}: instance {id} waits: {{}}"
    late = f"instance {id} was not restarted within {{}}: {{}}"
    until_done(session, timeout, attempt, waits, late)
    wait(session, WaitGoal(verb.name, [id], timeout, f"instance {id} has a new pod"))


def _held(plan: Plan, id: int, uid: str) -> str:
    """The reason why a pod must not go now, "" if it may: the service's rule, asked for a new pod.

    What the service takes in this very moment is taken first.
    """
    instance = _instance(plan, id)
    if not instance.should_run:
        raise CommandError(f"instance {id} is not to run any more")
    if instance.pod is None or instance.pod.uid != uid:
        return ""
    hold = instance.pod.spec.hold
    if hold is not None and hold.covers(Wish.RECREATE):
        return f"its pod is on hold ({hold.reason!r})"
    taken = {each.id for each, verdict in plan.cases if is_update(verdict)}
    if id in taken:
        return "it is about to be updated"
    wanted = Verdict(Action.RECREATE, Reason.RESTART_ASKED, "a person asks for a new pod")
    serving = replace(plan.serving, available=plan.serving.available - taken)
    rolling = plan.world.tapp.spec.rolling_name
    verdict = spend([(instance, wanted)], serving, plan.budgets, rolling).get(id, wanted)
    if verdict.reason in (Reason.PAUSED, Reason.INVALID_BUDGET):  # time does not change these
        raise CommandError(f"instance {id} is not restarted: {verdict.message}", Exit.STUCK)
    return "" if is_update(verdict) else verdict.message


def _evict(verb: Verb, id: int, uid: str, *, dry_run: bool = False) -> str:
    """Evicts a pod; why that is not allowed now, "" if it is done or somebody else did it."""
    namespace, name = verb.tapp["metadata"]["namespace"], f"{verb.name}-{id}"
    options: dict[str, object] = {"preconditions": {"uid": uid}}
    if dry_run:
        options["dryRun"] = ["All"]
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": namespace},
        "deleteOptions": options,
    }
    path = f"--raw=/api/v1/namespaces/{namespace}/pods/{name}/eviction"
    try:
        verb.session.cluster.kubectl("create", path, "--filename=-", stdin=json.dumps(eviction))
    except KubectlError as error:
        if error.reason == _BUSY:
            return str(error)
        if error.reason not in _CHANGED:
            raise
    return ""


def restart_templates(verb: Verb, names: list[str], container: str | None) -> Document:
    """The TApp whose templates ask for it, all that have the container. CommandError: none has."""
    at, key = written(verb.session.now()), RESTART_IN_PLACE
    if container is not None:
        runs = {name: edits.running_containers(verb.spec, name) for name in names}
        names = [name for name in names if container in runs[name]]
        if not names:
            every = {each for found in runs.values() for each in found}
            message = f"no template has a container {container!r} that keeps running"
            raise UsageError(message + nearest(container, every))
        key = f"{key}.{container}"
    return edits.restarted(verb.tapp, names, at, key)


def restart_instances(verb: Verb, pods: dict[int, Pod], container: str | None) -> None:
    """Asks the pods of instances, after the question; CommandError: no such container."""
    _check(verb.plan(), pods, container)
    key = RESTART_INSTANCE if container is None else f"{RESTART_INSTANCE}.{container}"
    marks = {key: written(verb.session.now())}
    done = "asked to restart in place"
    annotate(verb, pods, marks, _means, done, how=", within the budget")
    verb.follow(list(pods))


def _check(plan: Plan, pods: dict[int, Pod], container: str | None) -> None:
    for instance in plan.instances:
        if container is None or instance.id not in pods:
            continue
        template, told = instance.template, pods[instance.id].spec
        known = set(template.images) & set(told.images) if isinstance(template, Template) else set()
        if container not in known:
            message = f"instance {instance.id} has no container {container!r} that keeps running"
            raise UsageError(message + nearest(container, known))


def _means(verdict: Verdict, decision: Verdict) -> str:
    """The service's next step, or that a hold keeps it from that."""
    if decision.reason is Reason.HELD:
        return f"{decision.reason}: {decision.message}"
    return f"{verdict.action}: {verdict.message}"
