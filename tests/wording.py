"""Finds docstrings that readers have to read twice: `python -m tests.wording`.

`make lint` runs the check over the product and the tests. Each text must stand alone: it must not
refer to another text ("The same, but ..."), begin with a clause instead of a noun or a verb ("What
is left of ..."), or begin with a pronoun ("It is ..."). The rules are in CONTRIBUTING.md, "Words".
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = (
    "tapp", "hooks", "kubectl_tapp", "simulator", "demo", "release", "crds", "migration", "charts",
    "tests",
)  # fmt: skip

PATTERNS = {
    "refers to another text": re.compile(
        r"(The same,|(Likewise|As (above|there|it|in|for)|The other way|So too|Also|And|See)\b)"
    ),
    "begins with a clause": re.compile(
        r"(What|Whatever|Who|Whoever|Whom|Whose|Whether|How|Why|Where|All that|That|Of)\b"
    ),
    "begins with a pronoun": re.compile(
        r"(It|They|He|This|These|Those|One|Others|Some|None|Nobody|Somebody|Everything|All|Both|Each)"
        r" (is|are|was|were|has|have|had|may|can|will|does|do|gets?|goes|of|that|which|who)\b"
    ),
}


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yields the line and the text of the docstring of each module, class and function in a
    file.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield getattr(node, "lineno", 1), text


def findings(source: str) -> list[tuple[int, str, str]]:
    """Returns the line, the pattern's name and the first line of each docstring that a pattern
    matches.

    `source` is the text of a Python file.
    """
    return [
        (line, name, text.partition("\n")[0])
        for line, text in docstrings(ast.parse(source))
        for name, pattern in PATTERNS.items()
        if pattern.match(text)
    ]


def main() -> int:
    """Prints all findings in the product and the tests; returns 1 if there are any, otherwise 0."""
    failed = 0
    for path in sorted(path for each in PACKAGES for path in (ROOT / each).rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        for line, pattern, text in findings(path.read_text(encoding="utf-8")):
            sys.stdout.write(f"{name}:{line}: {pattern}: {text}\n")
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
