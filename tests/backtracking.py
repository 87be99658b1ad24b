"""The cost of a regular expression on a text: steps of a matcher that backtracks, as Python's.

Counted, not timed. It knows no shortcut of the real one, so it never counts less than that does.
"""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from re import _constants as ops  # type: ignore[attr-defined] # the one parser of expressions
from re import _parser  # type: ignore[attr-defined]
from typing import Any

Node = tuple[Any, Any]
Nodes = Sequence[Node]
MANY = 8
"""A repeat of more than this is taken for one without an end."""


def parsed(pattern: "re.Pattern[Any]") -> Nodes:
    """The parts of an expression, in order."""
    text = pattern.pattern
    text = text.decode("latin-1") if isinstance(text, bytes) else text
    return list(_parser.parse(text, pattern.flags & ~re.UNICODE))


class _TooManyError(Exception):
    """More steps than any expression may take for so short a text."""


_MOST = 50_000


class Steps:
    """Counts what one text costs."""

    def __init__(self, nodes: Nodes, text: str, flags: int) -> None:
        self.nodes, self.text, self.flags, self.count = nodes, text, flags, 0

    def fullmatch(self) -> int:
        """Steps of a match of all of it."""
        any(end == len(self.text) for end in self._ends(self.nodes, 0))
        return self.count

    def search(self) -> int:
        """Steps of finding all matches."""
        start = 0
        while start <= len(self.text):
            start = max(start + 1, next(self._ends(self.nodes, start), 0))
        return self.count

    def _ends(self, nodes: Nodes, at: int) -> Iterator[int]:
        if not nodes:
            yield at
            return
        for end in self._of(nodes[0], at):
            yield from self._ends(nodes[1:], end)

    def _of(self, node: Node, at: int) -> Iterator[int]:
        self.count += 1
        if self.count > _MOST:
            raise _TooManyError
        op, value = node
        if op is ops.SUBPATTERN:
            yield from self._ends(list(value[-1]), at)
        elif op is ops.BRANCH:
            for branch in value[1]:
                yield from self._ends(list(branch), at)
        elif op in (ops.MAX_REPEAT, ops.MIN_REPEAT):
            least, most, body = value
            yield from self._repeat(list(body), at, least, most, greedy=op is ops.MAX_REPEAT)
        elif op is ops.POSSESSIVE_REPEAT:  # what it has taken it gives back as a whole
            least, most, body = value
            yield from islice(self._repeat(list(body), at, least, most, greedy=True), 1)
        elif op is ops.AT:
            if self._at(value, at):
                yield at
        elif op in (ops.ASSERT, ops.ASSERT_NOT):
            back = at if value[0] > 0 else at - _width(value[1])
            met = back >= 0 and next(self._ends(list(value[1]), back), None) is not None
            if met == (op is ops.ASSERT):
                yield at
        elif at < len(self.text) and self._takes(node, self.text[at]):
            yield at + 1

    def _repeat(
        self, body: Nodes, at: int, least: int, most: int, *, greedy: bool
    ) -> Iterator[int]:
        single = len(body) == 1 and body[0][0] in _SINGLE
        if single:  # without a recursion for each character
            end = at
            while end - at < most and end < len(self.text):
                self.count += 1
                if not self._takes(body[0], self.text[end]):
                    break
                end += 1
            ends = range(at + least, end + 1)
            yield from reversed(ends) if greedy else ends
            return
        if least <= 0 and not greedy:
            yield at
        if most > 0:
            for end in self._ends(body, at):
                if end > at:
                    yield from self._repeat(body, end, least - 1, most - 1, greedy=greedy)
        if least <= 0 and greedy:
            yield at

    def _at(self, where: Any, at: int) -> bool:
        text = self.text
        if where in (ops.AT_BEGINNING, ops.AT_BEGINNING_STRING):
            lines = bool(self.flags & re.MULTILINE)
            return at == 0 or (lines and where is ops.AT_BEGINNING and text[at - 1] == "\n")
        if where in (ops.AT_END, ops.AT_END_STRING):
            return at == len(text) or (where is ops.AT_END and text[at:] == "\n")
        edge = (at > 0 and _is_word(text[at - 1])) != (at < len(text) and _is_word(text[at]))
        return edge == (where is ops.AT_BOUNDARY)

    def _takes(self, node: Node, letter: str) -> bool:
        op, value = node
        if op is ops.LITERAL:
            return ord(letter) == value
        if op is ops.NOT_LITERAL:
            return ord(letter) != value
        if op is ops.ANY:
            return letter != "\n" or bool(self.flags & re.DOTALL)
        return _is_in(value, letter)


_REPEATS = (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT)
_SINGLE = (ops.LITERAL, ops.NOT_LITERAL, ops.ANY, ops.IN)


def _is_word(letter: str) -> bool:
    return letter.isalnum() or letter == "_"


def _is_in(items: Nodes, letter: str) -> bool:
    negated = bool(items) and items[0][0] is ops.NEGATE
    return any(_holds(item, letter) for item in items if item[0] is not ops.NEGATE) != negated


_CATEGORIES: dict[Any, Callable[[str], bool]] = {
    ops.CATEGORY_DIGIT: str.isdigit,
    ops.CATEGORY_NOT_DIGIT: lambda letter: not letter.isdigit(),
    ops.CATEGORY_SPACE: str.isspace,
    ops.CATEGORY_NOT_SPACE: lambda letter: not letter.isspace(),
    ops.CATEGORY_WORD: _is_word,
    ops.CATEGORY_NOT_WORD: lambda letter: not _is_word(letter),
}


def _holds(item: Node, letter: str) -> bool:
    op, value = item
    if op is ops.LITERAL:
        return ord(letter) == value
    if op is ops.RANGE:
        return bool(value[0] <= ord(letter) <= value[1])
    return _CATEGORIES[value](letter)


def _width(nodes: Any) -> int:
    return int(nodes.getwidth()[0])


def sample(nodes: Nodes) -> str:
    """A short text that these parts take, each repeat once at least."""
    return "".join(_sample(node) for node in nodes)


def _sample(node: Node) -> str:
    op, value = node
    if op is ops.SUBPATTERN:
        return sample(list(value[-1]))
    if op is ops.BRANCH:
        return sample(list(value[1][0]))
    if op in _REPEATS:
        return sample(list(value[2])) * max(1, value[0])
    if op in (ops.AT, ops.ASSERT, ops.ASSERT_NOT):
        return ""
    return next(
        letter for letter in "1a.- ,:$(" + "".join(map(chr, range(9, 127))) if _fits(node, letter)
    )


def _fits(node: Node, letter: str) -> bool:
    return Steps([], "", 0)._takes(node, letter)


def attacks(nodes: Nodes, before: str = "") -> Iterator[tuple[str, str]]:
    """Texts that may cost much: what stands once, and what is to be repeated after it."""
    for number, node in enumerate(nodes):
        start = before + sample(nodes[:number])
        yield "", start + _sample(node)
        yield "", start
        op, value = node
        if op in _REPEATS:
            inner = list(value[2])
            if value[1] > MANY:
                yield start, sample(inner)
            yield from attacks(inner, start)
        elif op is ops.SUBPATTERN:
            yield from attacks(list(value[-1]), start)
        elif op is ops.BRANCH:
            for branch in value[1]:
                yield from attacks(list(branch), start)


def growth(pattern: "re.Pattern[Any]", *, whole: bool, end: str = "") -> tuple[float, str]:
    """The factor that a text of twice the length costs at the worst, and that text's form.

    Args:
        pattern: the expression.
        whole: whether texts are matched as a whole, or searched.
        end: what every text ends with that it is called with.
    """
    nodes, worst = parsed(pattern), (0.0, "")
    for once, again in dict.fromkeys(attacks(nodes)):
        if not again:
            continue
        for tail in ("", "\0", "!", again[:1] + "\0"):
            form = f"{once!r} + {again!r}*n + {tail + end!r}"
            few, many = (once + again * (size // len(again) + 1) + tail + end for size in (80, 160))
            short, long = (_steps(nodes, text, pattern, whole) for text in (few, many))
            worst = max(worst, (long / max(short, 1) if long < math.inf else long, form))
    return worst


def _steps(nodes: Nodes, text: str, pattern: "re.Pattern[Any]", whole: bool) -> float:
    steps = Steps(nodes, text, pattern.flags)
    with suppress(_TooManyError):
        return steps.fullmatch() if whole else steps.search()
    return math.inf
