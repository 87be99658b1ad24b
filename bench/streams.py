"""The streams that are measured: requests of one TApp as one worker gets them, and their targets.

A stream is a list of calls, each with few other pods than the one before. Nothing is stored: pods
are the hook's own answers as a cluster makes them (`bench/pods.py`), and what happens to them
between two syncs is in `bench/changes.py`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from bench import changes
from bench.herd import Call, Herd
from bench.parent import NAME, NEW

CHANGED_TARGETS = {100: 0.50, 1_000: 0.40, 10_000: 0.40}
"""handler / REF, one pod changed."""
ROLL_TARGET = 0.70
"""handler / REF in the middle of a roll, 1,000 pods, 20 changed."""
OWN_VALUES_TARGET = 0.52
"""handler / REF with a value for each of 1,000 pods, one changed: 1.3 times that of equal ones."""
TEMPLATES_TARGET = 0.45
"""handler / REF with up to 300 templates, one pod changed."""
COLD_TARGETS = {1_000: 2.50}
"""handler / REF of a worker's first request."""
WARM = 2
"""The first requests of a stream, which are not counted."""
KINDS = 4
"""Kinds of changes that take turns in `one_changed`, in a multiple of so many syncs."""

NOTHING, AFTER_ROLL, ROLL, CREATE, FINALIZE = SITUATIONS = (
    "nothing to do", "nothing to do after a roll", "middle of a roll", "create all", "finalize",
)  # fmt: skip
ONE_CHANGED, OWN_VALUES = "one pod changed", "one pod changed, a value each"
COLD = "first request"


@dataclass(frozen=True)
class Stream:
    """Calls of one TApp in their order, and the target of the handler's time.

    Attributes:
        name: what happens.
        pods: the number of instances.
        changed: how many pods the worker has not seen like that before.
        calls: makes the requests.
        target: the most that handler / REF may be, if there is a target.
        templates: the number of templates.
        cold: a worker is started before every request.
    """

    name: str
    pods: int
    changed: int
    calls: Callable[[], list[Call]]
    target: float | None
    templates: int = 1
    cold: bool = False

    @property
    def warm(self) -> int:
        """The number of first requests that are not counted."""
        return 0 if self.cold else WARM


def streams(sizes: list[int]) -> Iterator[Stream]:
    """One pod changed and the first request, of these sizes; others up to the largest."""
    for n in sizes:
        calls = partial(one_changed, n, KINDS * max(1, min(8, 2_000 // n)))
        yield Stream(ONE_CHANGED, n, 1, calls, CHANGED_TARGETS.get(n))
        calls = partial(one_changed, n, KINDS - WARM)
        yield Stream(COLD, n, n, calls, COLD_TARGETS.get(n), cold=True)
    yield from (stream for stream in _others() if stream.pods <= max(sizes))


def _others() -> Iterator[Stream]:
    yield Stream(ROLL, 1_000, 20, partial(rolling, 1_000, 10, 12), ROLL_TARGET)
    for n, templates in ((300, 1), (300, 9), (300, 300), (1_000, 300)):
        calls = partial(one_changed, n, 2 * KINDS, templates)
        yield Stream(ONE_CHANGED, n, 1, calls, TEMPLATES_TARGET, templates=templates)
    own = partial(one_changed, 1_000, 2 * KINDS, values=True)
    yield Stream(OWN_VALUES, 1_000, 1, own, OWN_VALUES_TARGET)


def one_changed(n: int, counted: int, templates: int = 1, *, values: bool = False) -> list[Call]:
    """Nothing to do, and one pod is another than in the request before; `WARM` calls come first.

    In turn a pod stops being ready, is ready again, another one restarts, and gets another
    resourceVersion without any news.
    """
    herd = Herd(n, templates, values=values)
    calls = [herd.sync()[0]]
    pod = 0
    for turn in range(WARM + counted - 1):
        if turn % 2 == 0:
            pod = herd.rng.randrange(n)
        herd.change(
            pod,
            (
                partial(changes.readiness, now=herd.time, ready=False),
                partial(changes.readiness, now=herd.time, ready=True),
                partial(changes.restarts, now=herd.time, rng=herd.rng),
                lambda _pod: None,
            )[turn % KINDS],
        )
        calls.append(herd.sync()[0])
    return calls


def rolling(n: int, step: int, counted: int) -> list[Call]:
    """Half of the instances run the new image already; `WARM` calls come first.

    Between two syncs Metacontroller writes `step` of the updates that the hook wants, and as many
    earlier ones get their new containers.
    """
    herd = Herd(n)
    updated = _rolled(herd, n // 2)
    creating = _update(herd, updated, herd.sync()[1], n // 20)
    calls = []
    for _ in range(WARM + counted):
        sent, answer = herd.sync()
        calls.append(sent)
        _finish(herd, creating[:step])
        creating = creating[step:] + _update(herd, updated, answer, step)
    return calls


def _rolled(herd: Herd, count: int) -> list[int]:
    """The author has written the new image, and so many instances run it: these."""
    herd.ask(NEW)
    updated: list[int] = []
    while len(updated) < count:
        begun = _update(herd, updated, herd.sync()[1], count - len(updated))
        _finish(herd, begun)
    return updated


def _update(herd: Herd, updated: list[int], answer: Any, most: int) -> list[int]:
    """Writes at most so many of the updates in an answer, and adds them to `updated`."""
    begun: list[int] = []
    for child in answer["children"]:
        if child["kind"] != "Pod" or child["spec"]["containers"][0]["image"] != NEW:
            continue
        index = int(child["metadata"]["name"].removeprefix(f"{NAME}-"))
        if index not in updated and len(begun) < most:
            herd.change(index, partial(changes.is_updated, child=child, now=herd.time))
            begun.append(index)
    updated += begun
    return begun


def _finish(herd: Herd, creating: list[int]) -> None:
    for index in creating:
        herd.change(index, partial(changes.has_new_container, now=herd.time, rng=herd.rng))


def request_in(situation: str, n: int, seed: int = 1) -> tuple[str, bytes]:
    """(Endpoint, request) of a TApp in one of `SITUATIONS`; another seed gives it other pods."""
    herd = Herd(n, seed=seed)
    if situation == CREATE:
        return "/sync", herd.first.body
    if situation in (ROLL, AFTER_ROLL):
        updated = _rolled(herd, n if situation == AFTER_ROLL else n // 2)
        _update(herd, updated, herd.sync()[1], n // 20)
    if situation == AFTER_ROLL:
        herd.settle()
    body = herd.sync()[0].body
    if situation == FINALIZE:
        return "/finalize", body.replace(b'"finalizing":false', b'"finalizing":true')
    return "/sync", body
