"""The changes that `python -m tests.mutation` makes, on sources made for it."""

import ast

import pytest

from tests.mutation.operators import mutants


def changes(text: str) -> list[str]:
    return [mutant.change for mutant in mutants("pack/mod.py", text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a < b", ["a < b -> a <= b"]),
        ("a is not b", ["a is not b -> a is b"]),
        ("a <= b == c", ["a <= b == c -> a < b == c", "a <= b == c -> a <= b != c"]),
        ("a and b", ["a and b -> a or b", "a and b -> b", "a and b -> a"]),
        ("not a", ["not a -> a"]),
        ("a - b", ["a - b -> a", "a - b -> b"]),
        ("x = True", ["True -> False"]),
        ("x = 3", ["3 -> 4", "3 -> 2", "3 -> 0"]),
        ("x = max(a, b)", [f"max(a, b) -> {new}" for new in ("min(a, b)", "max(b)", "max(a)")]),
        ("x = 'a', 'b'", ["('a', 'b') -> ('b',)", "('a', 'b') -> ('a',)"]),
        ("x = {a}", ["{a} -> set()"]),
        ("x = {'a': b, **c}", ["{'a': b, **c} -> {**c}", "{'a': b, **c} -> {'a': b}"]),
        ("x = [y for y in z if y]", ["y -> True"]),
        ("while a:\n    break", ["a -> True", "a -> False", "break -> pass"]),
        ("if a:\n    b.c = d", ["a -> True", "a -> False", "b.c = d -> pass"]),
        ("a.add(b)", ["a.add(b) -> pass"]),
        ("raise Refused(a)", ["raise Refused(a) -> pass"]),
        ("def f():\n    return a", ["return a -> return None"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_changed(text: str, expected: list[str]) -> None:
    assert changes(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        '"""What it is."""',
        "x = 'text'",
        "x = f'{a + b} of {len(c) - 1}'",
        "x = 'a' + b",
        "LOGGER.info('said', a and b)",
        "x: dict[str, int]",
        "def f(a: B | None) -> C | None: ...",
        "@lru_cache(maxsize=64)\ndef f(): ...",
        "def f():\n    return None",
        "x = (None, a.b)",
    ],
)
def test_what_cannot_matter_is_left_alone(text: str) -> None:
    assert changes(text) == []


SOURCE = """
class A:
    async def f(self):  # ünïcode before it
        é = "é"; return (self.a
            + self.b)

    def g(self):
        return any(x > 1
                   for x in self.a if not x)
"""


def test_only_the_changed_place_differs() -> None:
    found = mutants("pack/mod.py", SOURCE)
    assert {mutant.function for mutant in found} == {"pack.mod.A.f", "pack.mod.A.g"}
    assert len({mutant.applied(SOURCE) for mutant in found}) == len(found)
    for mutant in found:
        ast.parse(mutant.applied(SOURCE))
        assert mutant.applied(SOURCE).startswith(SOURCE[: SOURCE.index("é =")])
    first = next(mutant for mutant in found if mutant.change == "self.a + self.b -> self.a")
    assert "return ((self.a))" in first.applied(SOURCE)
    assert first.line == 4


def test_every_number_in_the_report_is_where_it_says() -> None:
    (mutant, *_) = mutants("pack/mod.py", "\n\nx = a < b\n")
    assert (mutant.file, mutant.line, mutant.function) == ("pack/mod.py", 3, "pack.mod")
    assert mutant.applied("\n\nx = a < b\n") == "\n\nx = (a <= b)\n"
