"""Tests that the check of docstrings finds the wordings that it is meant to find, and no others."""

import pytest

from tests.wording import findings


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("The same, but for claims.", "refers to another text"),
        ("Likewise for Services.", "refers to another text"),
        ("As above, without an order.", "refers to another text"),
        ("What belongs to nobody.", "begins with a clause"),
        ("Whether the pod is Ready.", "begins with a clause"),
        ("It is being deleted.", "begins with a pronoun"),
        ("All are free.", "begins with a pronoun"),
    ],
)
def test_wording_finds_texts_that_do_not_stand_alone(text: str, pattern: str) -> None:
    assert findings(f'def f():\n    """{text}"""\n') == [(1, pattern, text)]


@pytest.mark.parametrize(
    "text",
    [
        "Returns the pods that no object owns.",
        "The same pod in two namespaces is two pods; returns both.",
        "None if the pod has no node.",
        "All containers, init containers first.",
        "Seconds until the next retry.",
    ],
)
def test_wording_accepts_texts_that_stand_alone(text: str) -> None:
    assert findings(f'class C:\n    """{text}"""\n') == []


def test_wording_reads_docstrings_of_modules_classes_and_functions() -> None:
    source = '"""What is it."""\nclass C:\n    """It is C."""\n    def f():\n        """Of C."""\n'
    assert [line for line, _, _ in findings(source)] == [1, 2, 4]
