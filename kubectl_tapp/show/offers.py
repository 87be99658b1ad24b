"""Says which changes of a TApp have no effect now, and why.

The page disables the buttons of these changes, and advice leaves them out.
"""

from collections.abc import Iterable, Mapping

from kubectl_tapp.base.arguments import template_names
from kubectl_tapp.decide.inspection import Inspection
from kubectl_tapp.edit import canaries
from kubectl_tapp.edit.edits import spec_of
from kubectl_tapp.edit.revisions import HistoryEntry
from tapp.words.vocabulary import HOLD


def held_instances(view: Inspection) -> list[int]:
    """Returns the numbers of the instances whose pods have the annotation of a hold."""
    return [
        id
        for id in view.cases
        if HOLD in (((view.pod(id) or {}).get("metadata") or {}).get("annotations") or {})
    ]


def without_effect(view: Inspection, history: Iterable[HistoryEntry]) -> Mapping[str, str]:
    """Returns the changes that have no effect now: name of the change on the page -> the reason.

    `history` are the revisions of the TApp's templates.
    """
    tapp, spec = view.observed.tapp, spec_of(view.observed.tapp)
    strategy = view.plan.budgets.strategy
    instances = view.plan.instances
    running = [each.id for each in instances if not each.killed]
    stopped = [each.id for each in instances if each.killed]
    only = f"the only template is {spec.default_name}"
    no_canary = "" if canaries.candidates(tapp) else "there is no canary"
    earlier = any(not each.current for each in history)
    reasons = {
        "kill": "" if running else "all instances are stopped",
        "start": "" if stopped else "no instance is stopped",
        "template": "" if len(template_names(spec)) > 1 else only,
        "advance": "" if strategy.partition else "no partition keeps instances back",
        "pause": "updates are paused already" if strategy.paused else "",
        "resume": "" if strategy.paused else "updates are not paused",
        "restart": "" if running else "all instances are stopped",
        "hold": "" if view.observed.pods else "there are no pods",
        "release": "" if held_instances(view) else "no pod is on hold",
        "promote": no_canary,
        "abort": no_canary,
        "rollback": "" if earlier else "there is no earlier revision",
    }
    if tapp["metadata"].get("deletionTimestamp"):
        reasons = dict.fromkeys((*reasons, *_ALWAYS), "the TApp is being deleted")
    return {name: text for name, text in reasons.items() if text}


_ALWAYS = ("image", "replicas", "partition", "budget")  # Changes that have an effect at any time
