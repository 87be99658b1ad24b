"""The changes that `python -m tests.mutation` makes, on sources made for it."""

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
    """What can decide something."""
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
    """Else it would be a survivor that nobody can do anything about."""
    assert changes(text) == []


def test_only_the_changed_place_differs() -> None:
    """One of them at a time, and the next is made of the same file."""
    source = "def f(a, b):\n    return a + b"
    found = mutants("pack/mod.py", source)
    assert {each.change: each.applied() for each in found} == {
        "return a + b -> return None": "def f(a, b):\n    return None",
        "a + b -> a": "def f(a, b):\n    return a",
        "a + b -> b": "def f(a, b):\n    return b",
    }
    assert {(each.file, each.line, each.function) for each in found} == {
        ("pack/mod.py", 2, "pack.mod.f")
    }
