"""The next steps on the page: advice in the page's words, with the buttons that the advice names.

`next_steps` is the entry point for a TApp, `instance_steps` for one instance. Each button opens the
dialog of a change, with values filled in.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kubectl_tapp.cluster.belonging import orphaning_command, ownership_of
from kubectl_tapp.decide.budget import limits
from kubectl_tapp.decide.inspection import Inspection
from kubectl_tapp.edit.revisions import HistoryEntry
from kubectl_tapp.live.page_words import label_of
from kubectl_tapp.show.next_steps import advice_about, advice_now, command, texts_of
from kubectl_tapp.show.offers import held_instances, without_effect, without_effect_on
from tapp.decide.rollout import BUDGET_REASONS
from tapp.words.ranges import ranges
from tapp.words.remedies import Advice, Remedy

_BUTTONS = {
    Remedy.ROLLBACK: "Roll back", Remedy.IMAGE: "Set another image", Remedy.BUDGET: "Raise budget",
    Remedy.RETRY: "Retry rollout", Remedy.RESUME: "Resume updates",
    Remedy.ADVANCE: "Advance rollout",
    Remedy.RELEASE: "Release holds", Remedy.RESTART: "Restart instances",
    Remedy.ADOPT: "Adopt pods and claims",
}  # fmt: skip
"""Remedy -> the label of its button. The value of a remedy is the name of the change that the
button opens.
"""
_OF_INSTANCES = "restart", "kill", "start", "template", "hold", "release"
"""The changes that apply to chosen instances, in the order of their buttons."""
_PLACES = {Remedy.WHY: "choose its tile", Remedy.DESCRIBE: "see the timeline below"}
"""Remedy that is no change -> the place on the page that serves the same purpose."""


def next_steps(view: Inspection, vain: Mapping[str, str]) -> dict[str, Any]:
    """Returns the texts of the advice on a TApp for the page, and a button for each change that the
    texts name.

    `vain` maps each change that has no effect now to the reason. Texts and buttons of these changes
    are left out.
    """
    advice = advice_now(view)
    return {
        "texts": _texts(advice, lambda remedy: "" if remedy in vain else _word(view, remedy)),
        "buttons": [
            {"change": str(each), "label": _BUTTONS[each], "values": _values(view, each)}
            for each in _named(advice)
            if each not in vain
        ],
    }


def instance_steps(view: Inspection, id: int, entries: Sequence[HistoryEntry]) -> dict[str, Any]:
    """Returns the advice on one instance for the page, and the buttons of its changes.

    The buttons that the advice names come first, then the buttons of all changes of chosen
    instances. "Adopt" follows if an object without an owner has the name of the instance's pod or
    claims. For each button, `advised` is True if the advice names the button. `vain` is the reason
    if the change has no effect now, otherwise "". `entries` are the revisions of the TApp's
    templates, oldest first.
    """
    advice = advice_about(view, id)
    vain = {**without_effect(view, entries), **without_effect_on(view, id)}
    template = view.cases[id].instance.template_name
    earlier = [each for each in entries if each.template == template and not each.current]
    if not earlier:
        vain[Remedy.ROLLBACK] = f"template {template} has no earlier revision"
    values: dict[str, Mapping[str, str | bool]] = {
        Remedy.ROLLBACK: {"to": str(earlier[-1].number)} if earlier else {},
        Remedy.IMAGE: {"template": template},
        Remedy.BUDGET: _values(view, Remedy.BUDGET),
        Remedy.RETRY: {},
        Remedy.RESUME: {},
        Remedy.ADVANCE: {},
        Remedy.ADOPT: {"ids": str(id)},
        **{each: {"ids": str(id)} for each in _OF_INSTANCES},
    }
    named = _named(advice)

    def word(remedy: Remedy) -> str:
        if remedy in vain or remedy is Remedy.WHY:
            return ""
        own = remedy in _OF_INSTANCES
        return f'"{label_of(remedy)}"' if own else _word(view, remedy)

    changes = [(str(each), _BUTTONS[each]) for each in named if each not in _OF_INSTANCES]
    changes += [(each, label_of(each)) for each in _OF_INSTANCES]
    taken, tapp = view.obstacles.objects_in_the_way(id), view.observed.tapp
    can_adopt = any(ownership_of(each, tapp).can_be_adopted for each in taken)
    if can_adopt and Remedy.ADOPT not in named:
        changes.append((Remedy.ADOPT, label_of(Remedy.ADOPT)))
    orphaning = dict.fromkeys(orphaning_command(each, view.namespace) for each in taken)
    releases = [
        f'To move the StatefulSet\'s pods and claims to this TApp: {each}. Then use "Adopt".'
        for each in orphaning
        if each
    ]
    return {
        "texts": [*_texts(advice, word), *(text.replace("`", "") for text in releases)],
        "buttons": [
            {
                "change": each, "label": label, "values": values[each],
                "vain": vain.get(each, ""), "advised": each in named,
            }
            for each, label in changes
        ],
    }  # fmt: skip


def _named(advice: Sequence[Advice]) -> list[Remedy]:
    """Returns the remedies in the advice that have a button, each once, in the order of the
    advice.
    """
    named = dict.fromkeys(remedy for each in advice for remedy in each.remedies)
    return [each for each in named if each in _BUTTONS]


def _word(view: Inspection, remedy: Remedy) -> str:
    """Returns the word for a remedy in the page's texts.

    The word is the name of the remedy's button in quotes, or its place on the page, or else its
    command.
    """
    button = _BUTTONS.get(remedy)
    return f'"{button}"' if button else _PLACES.get(remedy) or command(view, remedy)


def _texts(advice: Sequence[Advice], word: Callable[[Remedy], str]) -> list[str]:
    # The page shows texts in a single style, so backquotes would appear as characters.
    return [text.replace("`", "") for text in texts_of(advice, word)]


def _values(view: Inspection, remedy: Remedy) -> dict[str, str | bool]:
    """Returns the values that the dialog of a remedy shows at first: name of the field -> value.

    The result is empty for most remedies.
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
