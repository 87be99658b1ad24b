"""What a place in the manifests is, depending on which components are chosen.

A variant is what kustomize made of one set of components. Base, each component alone and each pair
are built, so a place may depend on two components; where more act on one place, that is refused.
"""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import combinations
from typing import Any

from .errors import ReleaseError
from .kustomize import Document, composed

Chosen = frozenset[str]
"""The components that are on."""
Variants = Mapping[Chosen, Any]
"""What each set of components makes of a place; absent where the place is not there."""
Key = tuple[str, str, str, str]

AT_ONCE = 2


def choices(names: list[str]) -> Iterator[Chosen]:
    """None, each, each pair, and all."""
    for count in range(AT_ONCE + 1):
        for some in combinations(names, count):
            yield frozenset(some)
    if len(names) > AT_ONCE:
        yield frozenset(names)


def key_of(document: Document) -> Key:
    """What an object is found by."""
    metadata = document["metadata"]
    name, namespace = metadata["name"], metadata.get("namespace", "")
    return document["apiVersion"], document["kind"], namespace, name


def objects(names: list[str]) -> Mapping[Key, Variants]:
    """Every object with its variants, in the order of an installation."""
    whole = {key_of(document): document for document in composed(())}
    found: dict[Key, dict[Chosen, Any]] = {}
    every = list(choices(names))
    with ThreadPoolExecutor() as pool:  # a process each, a hundred of them
        built = pool.map(partial(composed, stub=True), every)
    for chosen, documents in zip(every, built, strict=True):
        for document in documents:
            key = key_of(document)
            definition = document["kind"] == "CustomResourceDefinition"
            found.setdefault(key, {})[chosen] = whole[key] if definition else document
    return found


def condition(present: Callable[[Chosen], object], among: list[Chosen], value: object) -> str:
    """Helm's expression for "`present` is `value`", given that one of `among` is chosen.

    `present` is asked of each of `among`; what decides is found by turning one component at a time.
    Returns "" where it is always so.
    """
    deciding = sorted(
        {
            next(iter(one ^ other))
            for one in among
            for other in among
            if len(one ^ other) == 1 and present(one) != present(other)
        }
    )
    if not deciding:
        if all(present(one) == value for one in among):
            return ""
        raise ReleaseError(f"no single component decides about {value!r}")
    relevant = frozenset(deciding)
    table: dict[Chosen, object] = {}
    for one in among:
        if table.setdefault(one & relevant, present(one)) != present(one):
            raise ReleaseError(f"more components than {deciding} decide about {value!r}")
    rows = [row for row, found in table.items() if found == value]
    if len(table) < 2 ** len(deciding):
        raise ReleaseError(f"{deciding} are too many components for one place")
    terms = [conjunction(row, deciding) for row in sorted(rows, key=sorted)]
    simple = shorter(rows, deciding)
    return simple or (terms[0] if len(terms) == 1 else f"or {' '.join(f'({t})' for t in terms)}")


def conjunction(row: Chosen, deciding: list[str]) -> str:
    """All of these components as in this row."""
    terms = [flag(name) if name in row else f"(not {flag(name)})" for name in deciding]
    return terms[0].strip("()") if len(terms) == 1 else f"and {' '.join(terms)}"


def shorter(rows: list[Chosen], deciding: list[str]) -> str:
    """`or a b`, where the rows amount to that; else ""."""
    every = 2 ** len(deciding)
    if len(deciding) > 1 and len(rows) == every - 1 and frozenset() not in rows:
        return f"or {' '.join(flag(name) for name in deciding)}"
    return ""


def flag(component: str) -> str:
    """The chart's value that chooses a component: `.Values.components.podStatus`."""
    return f".Values.components.{camel(component)}"


def camel(component: str) -> str:
    """`pod-status` as the chart's values spell it: `podStatus`."""
    head, *tail = component.split("-")
    return head + "".join(word.capitalize() for word in tail)
