"""Says which changes of a TApp have no effect now, and why.

`without_effect` is the entry point for changes of the TApp, and `without_effect_on` for changes of
one instance. The page disables the buttons of these changes, and advice does not recommend them.
"""

from collections.abc import Iterable, Mapping

from kubectl_tapp.base.arguments import template_names
from kubectl_tapp.decide.inspection import Inspection
from kubectl_tapp.edit import canaries
from kubectl_tapp.edit.edits import spec_of
from kubectl_tapp.edit.revisions import HistoryEntry
from tapp.declared.model import TAppSpec
from tapp.words.conditions import Type
from tapp.words.vocabulary import HOLD


def held_instances(view: Inspection) -> list[int]:
    """Returns the numbers of the instances whose pods have the annotation of a hold."""
    return [
        id
        for id in view.cases
        if HOLD in (((view.pod(id) or {}).get("metadata") or {}).get("annotations") or {})
    ]


def without_effect(view: Inspection, history: Iterable[HistoryEntry]) -> Mapping[str, str]:
    """Returns the changes of a TApp that have no effect now: name of the change on the page -> the
    reason.

    `history` are the revisions of the TApp's templates.
    """
    tapp, spec = view.observed.tapp, spec_of(view.observed.tapp)
    strategy = view.plan.budgets.strategy
    instances = view.plan.instances
    running = [each.id for each in instances if not each.killed]
    stopped = [each.id for each in instances if each.killed]
    no_canary = "" if canaries.candidates(tapp) else "there is no canary"
    earlier = any(not each.current for each in history)
    reasons = {
        "kill": "" if running else "all instances are stopped",
        "start": "" if stopped else "no instance is stopped",
        "template": only_template(spec),
        "advance": "" if strategy.partition else "no partition keeps instances back",
        "pause": "updates are paused already" if strategy.paused else "",
        "resume": "" if strategy.paused else "updates are not paused",
        "retry": "" if view.plan.rollback.active else "no revision was rolled back at its deadline",
        "restart": "" if running else "all instances are stopped",
        "hold": "" if view.observed.pods else "there are no pods",
        "release": "" if held_instances(view) else "no pod is on hold",
        "adopt": _nothing_to_adopt(view),
        "promote": no_canary,
        "abort": no_canary,
        "rollback": "" if earlier else "there is no earlier revision",
    }
    if tapp["metadata"].get("deletionTimestamp"):
        reasons = dict.fromkeys((*reasons, *_ALWAYS), "the TApp is being deleted")
    return {name: text for name, text in reasons.items() if text}


def without_effect_on(view: Inspection, id: int) -> Mapping[str, str]:
    """Returns the changes that have no effect on one instance now: name of the change -> the
    reason.

    Only changes that a user makes to chosen instances are considered, such as `kill` and `hold`.
    """
    spec, instance = spec_of(view.observed.tapp), view.cases[id].instance
    stopped, no_pod = "", "" if view.pod(id) else f"instance {id} has no pod"
    if instance.killed:
        stopped = f"instance {id} is stopped"
    reasons = {
        "restart": stopped or no_pod,
        "kill": stopped,
        "start": "" if stopped else f"instance {id} is not stopped",
        "template": only_template(spec),
        "hold": stopped or no_pod,
        "release": "" if id in held_instances(view) else f"the pod of instance {id} is not on hold",
    }
    if view.observed.tapp["metadata"].get("deletionTimestamp"):
        reasons = dict.fromkeys(reasons, "the TApp is being deleted")
    elif id >= spec.replicas:
        reasons = dict.fromkeys(reasons, f"spec.replicas is {spec.replicas}")
    return {name: text for name, text in reasons.items() if text}


def _nothing_to_adopt(view: Inspection) -> str:
    """Returns why the TApp can adopt no pod or claim; "" if there may be a pod or claim without an
    owner.
    """
    if any(each.type == Type.CLAIMS_NOT_OWNED for each in view.refused):
        return ""
    # If an instance has no pod, a pod without an owner may have its name, and its claims are
    # unknown.
    complete = all(each.pod is not None for each in view.plan.instances)
    return "all instances have pods and claims of their own" if complete else ""


def only_template(spec: TAppSpec) -> str:
    """Returns why no instance can get another template, if the spec has only one; "" if it has
    several.
    """
    several = len(template_names(spec)) > 1
    return "" if several else f"the only template is {spec.default_name}"


_ALWAYS = ("image", "replicas", "partition", "budget")  # Changes that have an effect at any time
