"""The change of a spec as a person would show it: changed lines of YAML, and their parents."""

import difflib
from typing import Any

import yaml
from rich.text import Text

STYLES = {"+": "green", "-": "red", " ": "bright_black"}


class _Dumper(yaml.SafeDumper):
    """YAML as people write it: the items of a list stand deeper than its name."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002
        super().increase_indent(flow, indentless=False)


def difference(before: dict[str, Any], after: dict[str, Any]) -> list[Text]:
    """The lines that go, the lines that come, and the fields above them."""
    both = difflib.ndiff(_lines(before), _lines(after))
    merged = [(line[0], line[2:]) for line in both if line[0] in STYLES]
    shown: set[int] = set()
    for index, (mark, _) in enumerate(merged):
        if mark != " ":
            shown.add(index)
            shown.update(_above(merged, index))
    return [
        Text(" ".join(merged[index]), style=STYLES[merged[index][0]]) for index in sorted(shown)
    ]


def _lines(spec: dict[str, Any]) -> list[str]:
    if not spec:
        return []
    text: str = yaml.dump({"spec": spec}, Dumper=_Dumper, sort_keys=False)
    return text.splitlines()


def _above(merged: list[tuple[str, str]], index: int) -> list[int]:
    """The unchanged lines that lead to a line: its parents by indentation."""
    found, depth = [], _depth(merged[index][1])
    for above in range(index - 1, -1, -1):
        mark, line = merged[above]
        if _depth(line) < depth:
            depth = _depth(line)
            if mark == " ":
                found.append(above)
    return found


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())
