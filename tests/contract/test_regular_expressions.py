"""Tests that each regular expression takes linear time for any text.

Four rules ensure that for each expression in the product: no repeat in a repeat, no repeat after a
repeat, no alternatives in a repeat, and an anchor if the expression is searched. A pattern of the
CRD only has to have anchors, because the API server's engine does not backtrack.
"""

import ast
import importlib
import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from re import _compiler, _parser  # type: ignore[attr-defined] # the one parser of expressions
from re import _constants as ops  # type: ignore[attr-defined]
from typing import Any, NamedTuple

import pytest

from crds.schema import tapp_schema

ROOT = Path(__file__).parents[2]
PACKAGES = ("tapp", "hooks", "kubectl_tapp", "migration", "simulator/objects")
SEARCHING = {"search", "sub", "subn", "finditer", "findall", "split"}
MANY = 8
"""A repeat of at most this number costs little everywhere."""
EXCEPT = {
    "tapp/declared/placeholders.py:_FOUND": "the repeat ends at '(', which the beginning has",
    "kubectl_tapp/edit/trial.py:_MISSING": "the text is one message of the API server's",
    "tapp/kube/env.py:_PARTS": "the text is cut after its last ')' before",
    "hooks/wire/decode.py:_BRACKET": "all repeats are possessive, and it matches everywhere",
    "kubectl_tapp/cluster/kubectl.py:_CONFLICTS": "the first match takes all that follows",
    "kubectl_tapp/decide/refused.py:_CHILD_REFUSED": "an Event has at most 1,024 characters",
    "tapp/words/remedies.py:_LINKS": "the texts are the product's own, in tapp/words/advice.py",
}
"""Expressions that break a rule, and why they take linear time all the same."""
_REPEATS = (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT)
_Nodes = Sequence[tuple[Any, Any]]


class Expression(NamedTuple):
    """A regular expression of the product.

    Attributes:
        where: the file and the variable or line.
        pattern: the compiled expression.
        whole: True if the expression has to match a whole text, and is not searched in it.
    """

    where: str
    pattern: "re.Pattern[Any]"
    whole: bool


def _expressions() -> Iterator[Expression]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            if "re." in text:
                yield from _of_file(path.relative_to(ROOT).as_posix(), text)


def _of_file(name: str, text: str) -> Iterator[Expression]:
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    used = {
        (node.func.value.id, node.func.attr)
        for node in calls
        if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name)
    }
    if ("re", "compile") in used:
        module = importlib.import_module(name.removesuffix(".py").replace("/", "."))
        for variable, value in vars(module).items():
            if isinstance(value, re.Pattern) and f"{variable} = re." in text:
                searched = any(method in SEARCHING for known, method in used if known == variable)
                yield Expression(f"{name}:{variable}", value, not searched)
    for node in calls:
        if not (isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name)):
            continue
        if node.func.value.id != "re":
            continue
        if node.args and isinstance(node.args[0], ast.Constant) and node.func.attr != "compile":
            pattern = re.compile(node.args[0].value)
            yield Expression(f"{name}:{node.lineno}", pattern, node.func.attr not in SEARCHING)


EXPRESSIONS = list(_expressions())


def parsed(pattern: "re.Pattern[Any]") -> list[Any]:
    """Returns the parts into which Python's parser splits an expression, in order."""
    text = pattern.pattern
    text = text.decode("latin-1") if isinstance(text, bytes) else text
    return list(_parser.parse(text, pattern.flags & ~re.UNICODE))


def broken_rules(nodes: _Nodes, inside: Any = None) -> Iterator[str]:
    """Yields the ways in which an expression may need more than linear time, as short phrases.

    Args:
        nodes: the parts of the expression.
        inside: the kind of the repeat (such as `*`) that contains the parts; None if no repeat
            contains them.
    """
    open_end = False  # True after a repeat that nothing mandatory follows
    for op, value in nodes:
        if op in _REPEATS and value[1] > MANY:
            if ops.POSSESSIVE_REPEAT not in (op, inside) and inside is not None:
                yield "a repeat inside a repeat"
            if open_end and op is not ops.POSSESSIVE_REPEAT:
                yield "a repeat after a repeat"
            yield from broken_rules(value[2], op)
            open_end = op is not ops.POSSESSIVE_REPEAT
        elif op in _REPEATS:
            yield from broken_rules(value[2], inside)
            open_end = open_end and value[0] == 0
        elif op is ops.SUBPATTERN:
            yield from broken_rules(value[-1], inside)
            open_end = _has_open_end(value[-1], before=open_end)
        elif op is ops.BRANCH:
            if inside is not None and inside is not ops.POSSESSIVE_REPEAT:
                yield "alternatives in a repeat"
            for branch in value[1]:
                yield from broken_rules(branch, inside)
            open_end = any(_has_open_end(branch, before=open_end) for branch in value[1])
        elif op not in (ops.AT, ops.ASSERT, ops.ASSERT_NOT):
            open_end = False


def _has_open_end(nodes: _Nodes, *, before: bool) -> bool:
    for op, value in reversed(list(nodes)):
        if op in _REPEATS and value[1] > MANY:
            return bool(op is not ops.POSSESSIVE_REPEAT)
        if op in _REPEATS and value[0] == 0:
            continue
        if op is ops.SUBPATTERN:
            return _has_open_end(value[-1], before=before)
        if op not in (ops.AT, ops.ASSERT, ops.ASSERT_NOT):
            return False
    return before


def is_searched_without_anchor(nodes: _Nodes) -> bool:
    """Returns True if a search for these parts may cost much at each position of a text.

    This is so if they have a repeat, no anchor at the beginning, and no first character that ends
    the repeat.
    """
    if nodes[0][0] is ops.AT:
        return False
    begin = [chr(value) for _, value in takewhile(lambda node: node[0] is ops.LITERAL, nodes)]
    ended = [any(_ends(char, repeated) for char in begin) for repeated in _repeats(nodes)]
    return not all(ended)


def _ends(char: str, repeated: _Nodes) -> bool:
    return len(repeated) == 1 and _compiler.compile(repeated).fullmatch(char) is None


def _repeats(nodes: _Nodes) -> Iterator[_Nodes]:
    for op, value in nodes:
        if op in _REPEATS:
            if value[1] > MANY:
                yield value[2]
            yield from _repeats(value[2])
        elif op is ops.SUBPATTERN:
            yield from _repeats(value[-1])
        elif op is ops.BRANCH:
            for branch in value[1]:
                yield from _repeats(branch)


def all_broken_rules(pattern: "re.Pattern[Any]", *, whole: bool) -> list[str]:
    """Returns the names of the rules that an expression breaks.

    `whole` is True if the expression has to match a whole text.
    """
    nodes = parsed(pattern)
    found = list(broken_rules(nodes))
    if not whole and is_searched_without_anchor(nodes):
        found.append("searched without an anchor")
    return found


@pytest.mark.parametrize("found", EXPRESSIONS, ids=[found.where for found in EXPRESSIONS])
def test_expression_cannot_backtrack(found: Expression) -> None:
    """Each expression of the product keeps the four rules, unless `EXCEPT` has a reason.

    An expression that backtracks has once blocked a worker for half a minute.
    """
    found_rules = all_broken_rules(found.pattern, whole=found.whole)
    assert bool(found_rules) == (found.where in EXCEPT), found_rules


BACKTRACKING = (r"\d+\.?\d*|\.\d+", r"(ab|a|b)*c", r"(\w+\s?)*$", r"x*y?x*z")


@pytest.mark.parametrize("text", BACKTRACKING)
def test_check_finds_an_expression_that_backtracks(text: str) -> None:
    assert all_broken_rules(re.compile(text), whole=True)


def test_check_finds_an_expression_that_is_searched_without_an_anchor() -> None:
    assert all_broken_rules(re.compile(r"\$\(([^)]*)\)"), whole=False)


def test_expression_whose_first_text_ends_its_repeat_is_accepted() -> None:
    assert not all_broken_rules(re.compile(r"\$\(([^()]*)\)"), whole=False)


def _patterns(schema: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(schema, list):
        for item in schema:
            yield from _patterns(item, path)
    if not isinstance(schema, dict):
        return
    if isinstance(schema.get("pattern"), str):
        yield path, schema["pattern"]
    for rule in schema.get("x-kubernetes-validations", ()):
        for text in re.findall(r"\.matches\('((?:[^'\\]|\\.)*)'\)", rule["rule"]):
            yield path, text
    for key, item in schema.items():
        yield from _patterns(item, f"{path}.{key}")


def test_each_pattern_of_the_crd_has_anchors() -> None:
    """Each pattern of the CRD begins with `^` and ends with `$`, because the API server searches
    it.

    Without anchors, an alternative would accept every text that contains a placeholder.
    """
    found = dict(reversed(pair) for pair in _patterns(tapp_schema(), ""))
    assert found
    for pattern, path in found.items():
        nodes = parsed(re.compile(pattern))
        begins, ends = nodes[0], nodes[-1]
        anchored = begins == (ops.AT, ops.AT_BEGINNING) and ends == (ops.AT, ops.AT_END)
        assert anchored, f"{path}: {pattern}"


def test_all_expressions_are_module_constants_or_arguments_of_a_call() -> None:
    """No function of the product compiles an expression, except for one, because this file checks
    only others.
    """
    assert len(EXPRESSIONS) > 30
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.FunctionDef):
                    calls = [each for each in ast.walk(node) if isinstance(each, ast.Call)]
                    made = [call for call in calls if ast.unparse(call.func) == "re.compile"]
                    allowed = COMPILED_IN_FUNCTIONS.get(f"{path.relative_to(ROOT)}:{node.name}", 0)
                    assert len(made) == allowed, f"{path}: {made}"


COMPILED_IN_FUNCTIONS = {"migration/moves.py:_find_foreign_pods": 1}
"""An expression that is built from a name, without a repeat of its own."""
