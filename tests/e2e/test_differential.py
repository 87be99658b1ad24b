"""Plays the same stories in the simulator and on a real API server, and compares writes and states.

The stories are all examples and random sequences of edits. By default these are the first 60, in
which every step and every field occurs. `DIFFERENTIAL` sets their number; `make differential` plays
300. `normalize.py` and `worlds.py` remove the values that must differ, and docs/simulator.md lists
them. To play one story: `DIFFERENTIAL=r017 pytest tests/e2e/test_differential.py -k random`.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from simulator.objects.objects import changed_paths

from .cluster import Cluster
from .edits import Story, example_stories, random_story, spelling_stories
from .kube import Kube
from .kubelet import FakeKubelet
from .proxy import HookProxy
from .worlds import Real, Simulated, Writes, in_parallel, of_story, split

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("tapps"), pytest.mark.timeout(1500)]
WANTED = os.environ.get("DIFFERENTIAL", "60")
"""The number of stories, or the names of some."""
SHOWN = 25
ATTEMPTS = 4
"""How often a step with a difference is observed again: a busy machine pauses before it is done."""
PAUSE = 4.0
"""Seconds between the attempts; together they last longer than the period of a probe."""


@pytest.fixture
def real(
    cluster: Cluster, kube: Kube, kubelet: FakeKubelet, hook_proxy: HookProxy, namespace: str
) -> Iterator[Real]:
    """The real world without any TApp."""
    if cluster.audit is None:
        pytest.skip("writes are compared by the API server's audit log, which cannot be read here")
    world = Real(cluster, kube, kubelet, hook_proxy, namespace)
    yield world
    world.stop()


def differences(story: Story, number: int, simulated: Any, real: Any, what: str) -> list[str]:
    """Returns a line for each difference between the worlds."""
    if simulated == real:
        return []
    lines = []
    for child in sorted(simulated.keys() | real.keys()):
        here, there = simulated.get(child), real.get(child)
        if here == there:
            continue
        where = f"{story.name} step {number} ({story.steps[number]}): {what} of {child}"
        paths = list(changed_paths(here, there)) if here and there else [""]
        lines += [
            f"{where}: {path}: simulated {_at(here, path)!r}, real {_at(there, path)!r}"
            for path in paths[:5]
        ]
    return lines


def _at(value: Any, path: str) -> Any:
    """Returns the value at a path of `changed_paths`, or the last value on the way to it."""
    for part in path.replace("[", ".[").split("."):
        if isinstance(value, list) and part.startswith("["):
            value = value[int(part[1:-1])]
        elif isinstance(value, dict) and part in value:
            value = value[part]
    return value


def play_all(stories: list[Story], real: Real, *, complete: bool = False) -> list[str]:
    """Plays all stories in both worlds, step by step, and returns the differences."""
    tells = real.kube.pods_tell_what_was_seen
    simulated = {story.name: Simulated(story, reports_generation=tells) for story in stories}
    refused: dict[str, tuple[Writes, Writes]] = {}
    found: list[str] = []
    for number in range(max(len(story.steps) for story in stories)):
        playing = [story for story in stories if number < len(story.steps)]
        in_parallel([partial(real.play, story, story.steps[number]) for story in playing])
        ended = []
        for story in playing:
            here = simulated[story.name]
            here.play(story.steps[number])
            ended.append((story, *split(here.writes()), here.state()))
        writes: Writes = {}
        for attempt in range(ATTEMPTS):
            time.sleep(PAUSE if attempt else 0.0)
            real.settle(complete=complete)
            for child, lines in real.writes().items():
                writes.setdefault(child, []).extend(lines)
            state, differing = real.state(), []
            for story, accepted, again, here_state in ended:
                really_accepted, really_again = split(of_story(writes, story))
                add_refused(refused, story, again, really_again)
                compare = partial(differences, story, number)
                differing += compare(accepted, really_accepted, "writes")
                differing += compare(here_state, of_story(state, story), "state")
                if number == len(story.steps) - 1:
                    differing += compare(*refused[story.name], "refused writes")
            if not differing:
                break
        found += differing
    return found


def add_refused(
    refused: dict[str, tuple[Writes, Writes]], story: Story, simulated: Writes, real: Writes
) -> None:
    """Adds the refused writes of a step to those of the story."""
    for all_of_them, more in zip(
        refused.setdefault(story.name, ({}, {})), (simulated, real), strict=True
    ):
        for child, lines in more.items():
            all_of_them[child] = sorted({*all_of_them.get(child, []), *lines})


def report(found: list[str]) -> str:
    """Returns the differences as text, one of each kind, limited to `SHOWN` lines."""
    stories = {line.partition(" ")[0] for line in found}
    head = f"{len(found)} differences in {len(stories)} stories"
    kinds: dict[str, list[str]] = {}
    for line in found:
        what = line.partition("): ")[2]
        kinds.setdefault(re.sub(r"\d+", "#", what.replace(line.split()[0], "")), []).append(line)
    shown = [f"{len(lines)} x {lines[0]}" for lines in kinds.values()]
    return "\n".join([head, *shown[:SHOWN]])


def test_simulator_plays_examples_like_the_api_server(real: Real, note: list[str]) -> None:
    found = play_all(example_stories(), real, complete=True)
    note.append(f"differential: {len(example_stories())} examples, stale writes {dict(real.stale)}")
    assert not found, report(found)


def test_simulator_plays_written_defaults_like_the_api_server(real: Real, note: list[str]) -> None:
    """Written defaults change no pod, so in both worlds nothing restarts."""
    found = play_all(spelling_stories(), real)
    note.append(f"differential: {len(spelling_stories())} shapes spelt in two ways")
    assert not found, report(found)


def test_simulator_plays_random_edits_like_the_api_server(real: Real, note: list[str]) -> None:
    names = [f"r{seed}" for seed in range(int(WANTED))] if WANTED.isdecimal() else WANTED.split(",")
    stories = [random_story(int(name.removeprefix("r"))) for name in names]
    found = play_all(stories, real)
    steps = sum(len(story.steps) for story in stories)
    note.append(
        f"differential: {len(stories)} random stories of {steps} steps, "
        f"stale writes {dict(real.stale)}"
    )
    assert not found, report(found)
