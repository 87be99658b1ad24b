"""`kubectl tapp restart` for chosen instances, and for `--in-place`.

The pods of chosen instances are evicted one after the other. The next pod is evicted when the
instance before is available again. No template changes: an annotation in a shared template would
restart all its instances, and a new template would remain in the spec. With `--in-place`, an
annotation in the template or on the chosen pods asks the service to restart the containers within
the budget.
"""

import json

from kubectl_tapp.base.arguments import name_suggestion
from kubectl_tapp.base.errors import CommandError, Exit, UsageError
from kubectl_tapp.base.observed import Document
from kubectl_tapp.base.words import instances_phrase
from kubectl_tapp.cluster.kubectl import KubectlError
from kubectl_tapp.cluster.session import uninterrupted
from kubectl_tapp.commands.verb_options import Verb
from kubectl_tapp.commands.waiting import WaitGoal, poll_until_done, wait
from kubectl_tapp.commands.writes import annotate, write_each
from kubectl_tapp.edit import edits
from tapp.decide.cases import Case, ids_of
from tapp.decide.domains import wait_for_domains
from tapp.decide.instances import Instance
from tapp.decide.rollout import spend
from tapp.decide.verdicts import Action, Verdict
from tapp.plan import Plan
from tapp.pod.pod import Pod
from tapp.words.reasons import Reason
from tapp.words.times import written
from tapp.words.vocabulary import RESTART_IN_PLACE, RESTART_INSTANCE, PendingAction

_BUSY = "TooManyRequests"  # The reason if a PodDisruptionBudget does not allow an eviction now
_CHANGED = ("NotFound", "Conflict")  # The reasons if the pod has been deleted or replaced


def evict_one_by_one(verb: Verb, found: dict[int, Pod]) -> None:
    """Evicts pods one after the other, after the user has confirmed, and waits for each new pod.

    `found` maps instance numbers to the pods.
    """
    ids = list(found)
    text = f"TApp {verb.name}: evicts the pod of {instances_phrase(ids)} when the budget allows it"
    if len(ids) > 1:
        text = (
            f"TApp {verb.name}: evicts the pods of {instances_phrase(ids)}, one after the other. "
            "Each eviction waits until the budget allows it and the new pod before is available"
        )
    verb.session.say(text)
    write_each(
        verb, ids, "restarted", instances_phrase,
        # Only the first eviction is tried in a dry run. The user may evict all pods or none, and
        # each dry run takes a call of kubectl.
        attempt=lambda id: id == ids[0] and _evict(verb, id, found[id].uid, dry_run=True),
        write=lambda id: _replace(verb, id, found[id].uid),
    )  # fmt: skip


def _instance(plan: Plan, id: int) -> Instance:
    """Returns the instance `id` of a plan.

    Raises CommandError if the TApp has been scaled down, so that the instance does not exist any
    more.
    """
    found = next((each for each in plan.instances if each.id == id), None)
    if found is None:
        raise CommandError(f"instance {id} does not exist any more: the TApp was scaled down")
    return found


def restartable_pod(plan: Plan, id: int) -> Pod:
    """Returns the pod of the instance `id`, after it has checked that the pod can be restarted.

    Raises UsageError if the instance should not run, because no new pod would follow. Raises
    CommandError if the instance has no pod, or if its node does not report.
    """
    instance = _instance(plan, id)
    if not instance.should_run:
        how = "has finished, so it has no pod to restart: kill it, then start it"
        if instance.killed:
            how = "is stopped, so it has no pod to restart: start it"
        raise UsageError(f"instance {id} {how}")
    if instance.pod is None or instance.pod.terminating:
        raise CommandError(f"instance {id} has no pod now; the TApp service is creating one")
    if instance.pod.silent:
        raise CommandError(
            f"the node of instance {id} ({instance.pod.node}) has stopped reporting, so its pod "
            "cannot be deleted before the node reports again"
        )
    return instance.pod


def _replace(verb: Verb, id: int, uid: str) -> None:
    """Evicts the pod of an instance as soon as the budgets allow it, and waits until a new pod is
    available.

    `uid` is the uid of the pod to evict. Raises CommandError at the timeout, or if waiting cannot
    help.
    """
    session, timeout = verb.session, verb.choices.seconds

    def attempt() -> str:
        verb.seen = session.observed(verb.name)
        if why := _eviction_obstacle(verb.plan(), id, uid):
            return why
        with uninterrupted():
            return _evict(verb, id, uid)

    waits = f"{verb.name}: instance {id} waits: {{}}"
    late = f"instance {id} was not restarted within {{}}: {{}}"
    poll_until_done(session, timeout, attempt, waits, late)
    wait(session, WaitGoal(verb.name, [id], timeout, f"instance {id} has a new pod"))


def _eviction_obstacle(plan: Plan, id: int, uid: str) -> str:
    """Returns why the pod of an instance must not be evicted now, or "" if it may be evicted.

    The decision follows the service's rules for a replacement: within the budget, and in one
    failure domain at a time. Updates that the service is about to start take their share of the
    budget first. Returns "" if the pod with this uid no longer exists. Raises CommandError if
    waiting cannot help.
    """
    instance = _instance(plan, id)
    if not instance.should_run:
        raise CommandError(
            f"instance {id} was stopped or has finished in the meantime, so it is not restarted"
        )
    if instance.pod is None or instance.pod.uid != uid:  # The pod is already gone
        return ""
    hold = instance.pod.spec.hold
    if hold is not None and hold.prevents(PendingAction.RECREATE):
        return f"its pod is on hold (reason: {hold.reason!r})"
    taken = set(ids_of(case for case in plan.notable if case.decision.is_update))
    if id in taken:
        return "it is about to be updated"
    wanted = Verdict(Action.RECREATE, Reason.RESTART_ASKED, "a person asks for a new pod")
    serving = plan.serving.without(taken)
    rolling = plan.world.tapp.spec.rolling_name
    should_run = [item.id for item in plan.instances if item.should_run]
    asked, spec = Case(instance, wanted), plan.world.tapp.spec
    cases = [asked if case.instance.id == id else case for case in plan.cases]
    delays = {
        **spend([asked], serving, plan.budgets, rolling, should_run),
        **wait_for_domains(spec, cases, serving, plan.budgets).delays,
    }
    verdict = delays.get(id, wanted)
    # With these reasons waiting does not help: only an edit of the spec lets updates continue.
    if verdict.reason in (Reason.PAUSED, Reason.INVALID_BUDGET):
        raise CommandError(f"instance {id} is not restarted: {verdict.message}", Exit.STUCK)
    return "" if verdict.is_update else verdict.message


def _evict(verb: Verb, id: int, uid: str, *, dry_run: bool = False) -> str:
    """Tries to evict the pod of an instance.

    Returns the API server's message if a PodDisruptionBudget does not allow the eviction now.
    Returns "" if the pod was evicted, no longer exists or has another uid. If `dry_run` is True,
    the API server only checks the eviction.
    """
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
    """Returns the edited TApp: each named template that has the container gets kubectl's restart
    annotation.

    If `container` is None, each template in `names` gets the annotation, and all containers of its
    pods restart. Raises UsageError if no template has the container.
    """
    at, key = written(verb.session.now()), RESTART_IN_PLACE
    if container is not None:
        runs = {name: edits.running_containers(verb.spec, name) for name in names}
        names = [name for name in names if container in runs[name]]
        if not names:
            every = {each for found in runs.values() for each in found}
            message = f"no template has a container {container!r} that keeps running"
            raise UsageError(message + name_suggestion(container, every))
        key = f"{key}.{container}"
    return edits.restarted(verb.tapp, names, at, key)


def restart_instances(verb: Verb, pods: dict[int, Pod], container: str | None) -> None:
    """Annotates pods so that the service restarts their containers, after the user has confirmed.

    `pods` maps instance numbers to pods. If `container` is None, all their containers restart.
    Raises UsageError if a pod has no such container.
    """
    _check_container(verb.plan(), pods, container)
    key = RESTART_INSTANCE if container is None else f"{RESTART_INSTANCE}.{container}"
    annotations = {key: written(verb.session.now())}
    done = "asked to restart in place"
    annotate(verb, pods, annotations, _next_step, done, how=", within the budget")
    verb.wait_after_write(list(pods))


def _check_container(plan: Plan, pods: dict[int, Pod], container: str | None) -> None:
    for instance in plan.instances:
        if container is None or instance.id not in pods:
            continue
        template, told = instance.template, pods[instance.id].spec
        known = set(template.images) & set(told.images) if template is not None else set()
        if container not in known:
            message = f"instance {instance.id} has no container {container!r} that keeps running"
            raise UsageError(message + name_suggestion(container, known))


def _next_step(verdict: Verdict, decision: Verdict) -> str:
    """Returns what the service will do with an instance, or why a hold of its pod prevents that.

    `verdict` is what the instance needs, and `decision` is what happens to it in the next sync.
    """
    if decision.reason is Reason.HELD:
        return f"{decision.reason}: {decision.message}"
    return f"{verdict.action}: {verdict.message}"
