"""`kubectl tapp restart --in-place`: containers start again in their pods.

All instances of a template: by the annotation in it. Chosen ones: by an annotation of their pods,
which the service obeys within the budget; nothing of it stays in the TApp.
"""

from kubectl_tapp.base.arguments import nearest
from kubectl_tapp.base.errors import UsageError
from kubectl_tapp.base.observed import Document
from kubectl_tapp.commands.annotate import annotate
from kubectl_tapp.commands.verb_options import Verb
from kubectl_tapp.edit import edits
from tapp.decide.judge import Verdict
from tapp.declared.templates import Template
from tapp.plan import Plan
from tapp.pod.pod import Pod
from tapp.words.reasons import Reason
from tapp.words.times import written
from tapp.words.vocabulary import RESTART_IN_PLACE, RESTART_INSTANCE


def restart_templates(verb: Verb, names: list[str], container: str | None) -> Document:
    """The TApp whose templates ask for it: all of these that have the container.

    Raises CommandError: none has.
    """
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
    """Asks the pods of instances, after the question.

    Raises CommandError: one has not this container, or may not be written.
    """
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
