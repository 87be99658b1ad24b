"""Helm templates made of what kustomize built: one text that becomes each of the variants.

What all variants share is written once; what some have stands in an `if` on the components that
bring it; what the chart lets a user set is a value's name.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import yaml

from .kustomize import Document
from .variants import Chosen, Variants, condition

Path = tuple[str, ...]
"""Keys from the object's root; an item of a list is called by its name, else by its number."""
Overrides = Mapping[Path, Callable[[str], list[str]]]
"""A place that a value fills -> the lines for it, given its indentation.

A place that the manifests do not have comes last among its neighbours.
"""

AUTH_SECRET = "tapp-hooks-token"  # noqa: S105 - its name
TLS_SECRET = "tapp-hooks-tls"  # noqa: S105
EXPRESSIONS = {
    "tapp-system": ".Release.Namespace",
    AUTH_SECRET: ".Values.auth.secretName",
    TLS_SECRET: 'include "tapp.tlsSecret" .',
}
"""What a user of the chart may call otherwise, wherever it stands -> Helm's expression for it."""
NAMED = ("name", "mountPath")
"""The keys by which items of a list are known, the first that all of them have."""


def template(variants: Variants, among: list[Chosen], overrides: Overrides) -> str:
    """The template of one object; empty where the components that bring it are not chosen."""
    lines = mapping(variants, "", (), overrides)
    needed = condition(lambda chosen: chosen in variants, among, True)
    return "\n".join(guarded(lines, needed)) + "\n"


def guarded(lines: list[str], needed: str) -> list[str]:
    """The lines, where the condition holds."""
    return [f"{{{{- if {needed} }}}}", *lines, "{{- end }}"] if needed else lines


def mapping(variants: Variants, indent: str, path: Path, overrides: Overrides) -> list[str]:
    """The lines of a mapping."""
    among = list(variants)
    lines: list[str] = []
    keys = merged([list(value) for value in variants.values()])
    for key in keys:
        there = {chosen: value[key] for chosen, value in variants.items() if key in value}
        found = entry(key, there, indent, (*path, key), overrides)
        needed = condition(lambda chosen, there=there: chosen in there, among, True)  # type: ignore[misc]
        lines += guarded(found, needed)
    return lines + added(keys, indent, path, overrides)


def added(there: list[str], indent: str, path: Path, overrides: Overrides) -> list[str]:
    """The lines of the places below `path` that only values fill."""
    return [
        line
        for place, write in overrides.items()
        if place[:-1] == path and place[-1] not in there
        for line in write(indent)
    ]


def entry(key: str, variants: Variants, indent: str, path: Path, overrides: Overrides) -> list[str]:
    """The lines of one key with its value."""
    if path in overrides:
        return overrides[path](indent)
    values = list(variants.values())
    for kind, write in ((dict, mapping), (list, sequence)):
        nested = all(isinstance(value, kind) and value for value in values)
        if nested and differ(values, path, overrides):
            return [f"{indent}{key}:", *write(variants, indent + "  ", path, overrides)]
    return chosen_text(variants, lambda value: literal({key: value}, indent))


def differ(values: list[Any], path: Path, overrides: Overrides) -> bool:
    """Whether a value must be written piece by piece."""
    inside = any(place[: len(path)] == path for place in overrides)
    return inside or any(value != values[0] for value in values)


def chosen_text(variants: Variants, write: Callable[[Any], list[str]]) -> list[str]:
    """One of several values, each under its condition."""
    texts = {json.dumps(value, sort_keys=True): value for value in variants.values()}
    if len(texts) == 1:
        return write(next(iter(texts.values())))
    lines: list[str] = []
    for text, value in texts.items():
        needed = condition(
            lambda one: json.dumps(variants[one], sort_keys=True), list(variants), text
        )
        lines += guarded(write(value), needed)
    return lines


def sequence(variants: Variants, indent: str, path: Path, overrides: Overrides) -> list[str]:
    """The lines of a list.

    Which items are the same is told by their names; where they have none, by their places in lists
    of one length, else by all that they say.
    """
    same_length = len({len(value) for value in variants.values()}) == 1
    named = {
        chosen: dict(zip(names(value, by_place=same_length), value, strict=True))
        for chosen, value in variants.items()
    }
    among = list(variants)
    lines: list[str] = []
    every = merged([list(items) for items in named.values()])
    for number, name in enumerate(every):
        there = {chosen: items[name] for chosen, items in named.items() if name in items}
        place = (*path, name if not name.startswith(("{", "[", '"')) else str(number))
        needed = condition(lambda chosen, there=there: chosen in there, among, True)  # type: ignore[misc]
        lines += guarded(item(there, indent, place, overrides), needed)
    return lines + added(every, indent, path, overrides)


def item(variants: Variants, indent: str, path: Path, overrides: Overrides) -> list[str]:
    """The lines of one item of a list."""
    if path in overrides:
        return overrides[path](indent)
    values = list(variants.values())
    if all(isinstance(value, dict) for value in values) and differ(values, path, overrides):
        # A dash of its own, so that the first key may be one that is not always there.
        return [f"{indent}-", *mapping(variants, indent + "  ", path, overrides)]
    return chosen_text(variants, lambda value: literal([value], indent))


def names(items: list[Any], *, by_place: bool) -> list[str]:
    """What each item of a list is called: by its name if all have one, else by place or content."""
    for word in NAMED:
        found = [each.get(word) for each in items if isinstance(each, dict)]
        if len(found) == len(items) == len({*found}) and None not in found:
            return [str(each) for each in found]
    if by_place:
        return [str(number) for number in range(len(items))]
    return [json.dumps(each, sort_keys=True) for each in items]


def merged(orders: list[list[str]]) -> list[str]:
    """All keys of several lists; each stands after what it follows in the longest that has it."""
    result: list[str] = []
    for order in sorted(orders, key=len, reverse=True):
        at = 0
        for key in order:
            if key in result:
                at = result.index(key) + 1
            else:
                result.insert(at, key)
                at += 1
    return result


def literal(value: Document | list[Any], indent: str) -> list[str]:
    """YAML that Helm leaves alone, but for what a user may call otherwise."""
    text = yaml.safe_dump(value, sort_keys=False, width=1_000_000, allow_unicode=True)
    text = text.replace("{{", '{{ "{{" }}')
    for name, expression in EXPRESSIONS.items():
        # Quoted where it stands alone: a namespace may be called `123`.
        text = re.sub(
            rf"(?<=[:-] ){name}$", f"{{{{ {expression} | quote }}}}", text, flags=re.MULTILINE
        )
        text = text.replace(name, f"{{{{ {expression} }}}}")
    return [f"{indent}{line}" if line else "" for line in text.rstrip("\n").split("\n")]
