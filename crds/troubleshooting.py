"""Renders the tables of reasons in docs/troubleshooting.md from `tapp.words.advice`.

In the page, a comment above each table has the name of the table. `render` replaces the rows below
each of these comments.
"""

import re
from collections.abc import Iterator
from typing import Final

from tapp.words.advice import ADVICE, ROLLOUT, advice_on
from tapp.words.conditions import REFUSED, Type
from tapp.words.reasons import OF_DECISIONS
from tapp.words.remedies import COMMANDS, Advice, Remedy

_COMMENT: Final = "<!-- Generated: {}. Change tapp/words/advice.py, then run: make generate -->"
_TABLE: Final = re.compile(
    rf"(?m)^{_COMMENT.format(r'([a-z ]+)')}\n\n(?:\|.*\n)*".replace("/", r"\/")
)

_Row = tuple[str, ...]


def render(page: str) -> str:
    """Returns the text of the page with the rows of all generated tables replaced.

    `page` is the present text. Raises KeyError if a comment in the page names a table that does not
    exist.
    """
    return _TABLE.sub(lambda found: f"{_COMMENT.format(found[1])}\n\n{_table(found[1])}", page)


def _table(name: str) -> str:
    heads, rows = {
        "rollout": (("reason", "what keeps the rollout", "how it goes on"), _rollout),
        "conditions": (("reason", "of", "what happened", "what to do"), _conditions),
        "refusals": (("type", "reason", "what happened", "what to do"), _refusals),
        "decisions": (("reason", "it is", "the instance", "what to do"), _decisions),
    }[name]
    ruler = f"|{'---|' * len(heads)}"
    lines = [_line(heads), ruler, *(_line(each) for each in rows())]
    return "\n".join(lines) + "\n"


def _line(cells: _Row) -> str:
    return f"| {' | '.join(cells)} |"


def _rollout() -> Iterator[_Row]:
    for reason in ROLLOUT:
        advice = next(each for each in ADVICE if each.reason is reason)
        yield f"`{reason}`", advice.happened, _do(advice)


def _conditions() -> Iterator[_Row]:
    for each in ADVICE:
        types = [type for type in each.types if type not in REFUSED]
        if types:
            yield f"`{each.reason}`", ", ".join(types), each.happened, _do(each)


def _refusals() -> Iterator[_Row]:
    for each in ADVICE:
        for type in each.types:
            if type in REFUSED or type is Type.STALLED:
                yield f"`{type}`", f"`{each.reason}`", each.happened, _do(each)


def _decisions() -> Iterator[_Row]:
    for reason in OF_DECISIONS:
        yield f"`{reason}`", reason.standing, reason.meaning, _do(advice_on(reason))


def _do(advice: Advice) -> str:
    return advice.filled(_command)


def _command(remedy: Remedy) -> str:
    return f"`{' '.join(('kubectl', *COMMANDS[remedy]))}`"
