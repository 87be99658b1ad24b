"""The form of an advice: text that names remedies, and the command of each remedy.

`Advice.filled` puts a command, or the name of a button, in the place of each remedy. `advice.py`
has the advice of each reason.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tapp.words.conditions import REFUSED, Type
from tapp.words.reasons import Reason


class Remedy(StrEnum):
    """A command, or a change on the page, that helps a user; an advice names it in braces."""

    ROLLBACK = "rollback"  # goes back to the revision before
    IMAGE = "image"  # sets other images
    BUDGET = "budget"  # sets `maxUnavailable`
    RESUME = "resume"  # resumes paused updates
    ADVANCE = "advance"  # lowers or removes the partition
    RELEASE = "release"  # removes holds of pods
    RESTART = "restart"  # replaces pods
    ADOPT = "adopt"  # takes over pods and claims without an owner
    WHY = "why"  # explains instances
    DESCRIBE = "describe"  # shows the Events of the TApp


COMMANDS: Final = {
    Remedy.ROLLBACK: ("tapp", "rollback", "NAME"),
    Remedy.IMAGE: ("tapp", "set", "image", "NAME", "CONTAINER=IMAGE"),
    Remedy.BUDGET: ("edit", "tapp", "NAME"),
    Remedy.RESUME: ("tapp", "resume", "NAME"),
    Remedy.ADVANCE: ("tapp", "advance", "NAME"),
    Remedy.RELEASE: ("tapp", "release", "NAME", "ID"),
    Remedy.RESTART: ("tapp", "restart", "NAME", "ID"),
    Remedy.ADOPT: ("tapp", "adopt", "NAME"),
    Remedy.WHY: ("tapp", "why", "NAME"),
    Remedy.DESCRIBE: ("describe", "tapp", "NAME"),
}
"""Words of each remedy's command after `kubectl`. NAME stands for the TApp, ID for instances."""


@dataclass(frozen=True)
class Advice:
    """The meaning of a reason, and what a user can do about it.

    Both texts are Markdown.
    """

    reason: Reason
    types: tuple[Type, ...]  # the conditions that have the reason; () if only decisions have it
    happened: str  # the event; empty if only decisions have the reason (`Reason.meaning`)
    do: str  # what to do, as sentences with remedies in braces

    @property
    def name(self) -> str:
        """The word that a user finds in the status or in `kubectl tapp why`.

        For a refusal it is the type of its condition, otherwise the reason.
        """
        return next((type for type in self.types if type in REFUSED), self.reason)

    @property
    def remedies(self) -> list[Remedy]:
        """The remedies that the text `do` names, in its order, each once."""
        return [Remedy(name) for name in dict.fromkeys(_BRACES.findall(self.do))]

    @property
    def is_needed(self) -> bool:
        """True if a person can do something other than to wait."""
        return self.do not in (NOTHING, WAIT)

    def filled(self, word: Callable[[Remedy], str]) -> str:
        """Returns what to do as Markdown, with a text in place of each remedy.

        `word` returns the text for a remedy, such as a command.
        """
        return _BRACES.sub(lambda found: word(Remedy(found[1])), self.do)

    def sentences(self, word: Callable[[Remedy], str]) -> list[str]:
        """Returns what to do as sentences without links, with a text in place of each remedy.

        `word` returns the text for a remedy, such as a command. If it returns an empty string, the
        sentences with this remedy are left out.
        """
        return [sentence for sentence, _ in self.steps(word)]

    def steps(self, word: Callable[[Remedy], str]) -> list[tuple[str, Remedy | None]]:
        """Returns the sentences of `sentences`, each with the remedy that it names; None if it
        names no remedy.

        `word` returns the text for a remedy, as in `sentences`.
        """
        found = []
        for each in _SENTENCES.split(self.do):
            named = [Remedy(name) for name in _BRACES.findall(each)]
            if all(word(remedy) for remedy in named):
                sentence = _BRACES.sub(lambda found: word(Remedy(found[1])), each)
                found.append((_LINKS.sub(r"\1", sentence), named[0] if named else None))
        return found


_BRACES = re.compile(r"\{(\w+)\}")
_LINKS = re.compile(r"\[([^]]+)\]\([^)]*\)")
_SENTENCES = re.compile(r"(?<=\.) (?=[A-Z])")
NOTHING, WAIT = "Nothing.", "Wait."  # What to do if a person can do nothing
