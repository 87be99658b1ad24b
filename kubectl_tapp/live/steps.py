"""The next steps on the page: advice in the page's words, with the buttons that the advice names.

`next_steps` is the entry point. Each button opens the dialog of a change, with values filled in.
"""

from collections.abc import Mapping
from typing import Any

from kubectl_tapp.decide.budget import limits
from kubectl_tapp.decide.inspection import Inspection
from kubectl_tapp.show.next_steps import advice_now, command, texts_of
from kubectl_tapp.show.offers import held_instances
from tapp.decide.rollout import BUDGET_REASONS
from tapp.words.ranges import ranges
from tapp.words.remedies import Remedy

_BUTTONS = {
    Remedy.ROLLBACK: "Roll back", Remedy.IMAGE: "Set another image", Remedy.BUDGET: "Raise budget",
    Remedy.RESUME: "Resume updates", Remedy.ADVANCE: "Advance rollout",
    Remedy.RELEASE: "Release holds", Remedy.RESTART: "Restart instances",
}  # fmt: skip
"""The label of each remedy's button; the value of the remedy is the name of the change."""
_PLACES = {Remedy.WHY: "choose its tile", Remedy.DESCRIBE: "the timeline below shows them"}
"""The place of the page that stands for a remedy without a change."""


def next_steps(view: Inspection, vain: Mapping[str, str]) -> dict[str, Any]:
    """Returns the texts of the advice for the page, and a button for each change that the texts
    name.

    `vain` maps the changes that have no effect now to the reasons. Advice and buttons leave them
    out.
    """
    advice = advice_now(view)

    def word(remedy: Remedy) -> str:
        if remedy in vain:
            return ""
        button = _BUTTONS.get(remedy)
        return f'"{button}"' if button else _PLACES.get(remedy) or command(view, remedy)

    # The page has no code style within its texts.
    texts = [text.replace("`", "") for text in texts_of(advice, word)]
    named = dict.fromkeys(remedy for each in advice for remedy in each.remedies)
    return {
        "texts": texts,
        "buttons": [
            {"change": str(each), "label": _BUTTONS[each], "values": _values(view, each)}
            for each in named
            if each in _BUTTONS and each not in vain
        ],
    }


def _values(view: Inspection, remedy: Remedy) -> dict[str, str | bool]:
    """Returns the values with which the dialog of a remedy is filled in; empty for most
    remedies.
    """
    if remedy is Remedy.RELEASE:
        return {"ids": ranges(held_instances(view))}
    if remedy is not Remedy.BUDGET:
        return {}
    rolling, other = limits(view.plan)
    name = view.plan.world.tapp.spec.rolling_name
    waiting = [case for case in view.plan.notable if case.decision.reason in BUDGET_REASONS]
    others = bool(waiting) and all(case.instance.template_name != name for case in waiting)
    limit = other if others else rolling
    return {"to": str((limit.allowed or 0) + 1), "others": others}
