"""The form of an advice: a text for a user that names remedies, which are commands or page buttons.

`Advice.filled` replaces the name of each remedy by its command or by the name of its button.
`advice.py` has the advice for each reason.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tapp.words.conditions import REFUSED, Type
from tapp.words.reasons import Reason


class Remedy(StrEnum):
    """A command, or a button on the page, that helps a user. The text of an advice names it in
    braces.
    """

    ROLLBACK = "rollback"  # goes back to the revision before
    IMAGE = "image"  # sets other images
    BUDGET = "budget"  # sets `maxUnavailable`
    RESUME = "resume"  # resumes paused updates
    RETRY = "retry"  # rolls out a revision once more that was rolled back at its deadline
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
    Remedy.RETRY: ("tapp", "retry", "NAME"),
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
    """An explanation of a reason: the event behind it, and what a user can do.

    Both texts are Markdown.
    """

    reason: Reason
    types: tuple[Type, ...]  # the conditions that have the reason; () if only decisions have it
    # the event behind the reason; empty if only decisions have the reason, because `Reason.meaning`
    # describes it then
    happened: str
    do: str  # what to do, as sentences with remedies in braces

    @property
    def name(self) -> str:
        """The word that a user finds in the status or in `kubectl tapp why`.

        If the advice is about a refusal, this is the type of the refusal's condition. If it is not,
        this is the reason.
        """
        return next((type for type in self.types if type in REFUSED), self.reason)

    @property
    def remedies(self) -> list[Remedy]:
        """The remedies that the text `do` names, in the order of the text, each once."""
        return [Remedy(name) for name in dict.fromkeys(_BRACES.findall(self.do))]

    @property
    def is_needed(self) -> bool:
        """True if a person can do more than wait."""
        return self.do not in (NOTHING, WAIT)

    def filled(self, word: Callable[[Remedy], str]) -> str:
        """Returns the text `do` as Markdown, with another text in place of each remedy.

        `word` returns the text for a remedy, such as its command.
        """
        return _BRACES.sub(lambda found: word(Remedy(found[1])), self.do)

    def sentences(self, word: Callable[[Remedy], str]) -> list[str]:
        """Returns the sentences of the text `do` without links, with a text in place of each
        remedy.

        `word` returns the text for a remedy, such as its command. If `word` returns an empty
        string, sentences that name the remedy are left out.
        """
        return [sentence for sentence, _ in self.steps(word)]

    def steps(self, word: Callable[[Remedy], str]) -> list[tuple[str, Remedy | None]]:
        """Returns the sentences of the text `do`, each with the remedy that it names.

        The remedy is None if a sentence names no remedy. `word` returns the text for a remedy, such
        as its command. If `word` returns an empty string, sentences that name the remedy are left
        out.
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
NOTHING, WAIT = "Nothing.", "Wait."  # Advice if nothing has to be done, or if a person has to wait
