"""Every regular expression takes time in proportion to the text, whatever a tenant writes.

Each one in the product, also those that are written where they are used, and the CRD's: the texts
are made of the expression itself (`tests/backtracking.py`), and have twice the length each time.
"""

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from crds.schema import tapp
from tests.backtracking import growth, ops, parsed

ROOT = Path(__file__).parents[2]
PACKAGES = ("tapp", "hooks", "kubectl_tapp", "crds", "migration", "simulator/objects")
SEARCHING = {"search", "sub", "subn", "finditer", "findall", "split"}
MOST = 2.6
"""Twice the length costs twice as much, and a little more; the square would be four times."""
ENDS = {"tapp/kube/env.py:_PARTS": ")"}
"""What the texts end with that some are called with."""


class Expression(NamedTuple):
    """One expression: where it stands, and whether texts are searched with it."""

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


@pytest.mark.parametrize("found", EXPRESSIONS, ids=[found.where for found in EXPRESSIONS])
def test_twice_the_text_costs_twice_the_steps(found: Expression) -> None:
    """No expression goes back over a text again and again to find that it does not fit."""
    times, text = growth(found.pattern, whole=found.whole, end=ENDS.get(found.where, ""))
    assert times < MOST, f"{found.where}: {times:.1f} times as many steps for {text}"


def test_the_count_of_steps_finds_what_backtracks() -> None:
    """The expression that once held up a worker for half a minute is found, and its like."""
    for text in (r"\d+\.?\d*|\.\d+", r"(ab|a|b)*c", r"(\w+\s?)*$", r"x*y?x*z"):
        assert growth(re.compile(text), whole=True)[0] > MOST, text
    assert growth(re.compile(r"\$\(([^)]*)\)"), whole=False)[0] > MOST


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


def test_a_pattern_of_the_crd_is_about_the_whole_text() -> None:
    """The API server looks for a pattern anywhere in a text: each begins and ends with an anchor.

    An alternative without one lets everything pass that has a placeholder in it.
    """
    found = dict(reversed(pair) for pair in _patterns(tapp(), ""))
    assert found
    for pattern, path in found.items():
        nodes = parsed(re.compile(pattern))
        begins, ends = nodes[0], nodes[-1]
        anchored = begins == (ops.AT, ops.AT_BEGINNING) and ends == (ops.AT, ops.AT_END)
        assert anchored, f"{path}: {pattern}"


def test_expressions_are_made_where_the_test_finds_them() -> None:
    """An expression is a constant of its module, or written into the call: none is overlooked."""
    assert len(EXPRESSIONS) > 30
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.FunctionDef):
                    calls = [each for each in ast.walk(node) if isinstance(each, ast.Call)]
                    made = [call for call in calls if ast.unparse(call.func) == "re.compile"]
                    allowed = MADE_IN_FUNCTIONS.get(f"{path.relative_to(ROOT)}:{node.name}", 0)
                    assert len(made) == allowed, f"{path}: {made}"


MADE_IN_FUNCTIONS = {"migration/moves.py:_find_strangers": 1}
"""One that is made of a name, without any repeat of its own."""
