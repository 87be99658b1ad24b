"""Finds out which commands and options the tests type, from the source code of the tests.

`typed` is the entry point. The words of a test are the strings in the test, in its parameters, and
in the constants of its file that it uses: `--output=json` is `--output` and `json`. A test that has
the words of a command and of an option has typed both.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parent
THEMSELVES = ("tested_inputs.py", "test_inputs_are_tested.py")
"""Files that name the words that they look for."""
_BETWEEN = re.compile(r"[\s=,;`'\"()]+")


@cache
def tests() -> tuple[frozenset[str], ...]:
    """Returns a set of words for each function in the files of the tests."""
    files = [each for each in TESTS.rglob("*.py") if each.name not in THEMSELVES]
    return tuple(
        words for file in files for words in _of_file(ast.parse(file.read_text(encoding="utf-8")))
    )


def typed(*words: str | tuple[str, ...]) -> bool:
    """Returns True if a single test has all the given words.

    A tuple stands for several spellings of a word, of which one is enough.
    """
    spellings = [(word,) if isinstance(word, str) else word for word in words]
    return any(all(not each.isdisjoint(word) for word in spellings) for each in tests())


def _of_file(tree: ast.Module) -> Iterator[frozenset[str]]:
    constants = dict(_constants(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            used = [constants[name] for name in _names(node) if name in constants]
            yield frozenset(_words(node)).union(*used)


def _constants(tree: ast.Module) -> Iterator[tuple[str, frozenset[str]]]:
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    yield target.id, frozenset(_words(node.value))


def _names(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _words(node: ast.AST) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, ast.Constant) and isinstance(each.value, str):
            yield from _BETWEEN.split(each.value)
        elif isinstance(each, ast.keyword) and each.arg is not None:
            yield each.arg
