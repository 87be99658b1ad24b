"""`kubectl tapp plan` against a real API server: what was foretold is what was then written.

Every example, and random edits: `FORETOLD=100` for so many stories of them instead of ten, or the
names of some (`FORETOLD=r1003,r1025`). Before
each edit the forecast is made from what the API server shows; then the edit is made, and the audit
log tells what Metacontroller wrote, to each child in order. What can only differ, because it is a
matter of timing, is left out as in `test_differential.py`.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from kubectl_tapp.base.observed import Observed
from kubectl_tapp.cluster.registration import Registration
from kubectl_tapp.forecast.forecast import Assumptions, Forecast
from kubectl_tapp.forecast.foresee import forecast
from tapp.world import Options
from tests.scenarios.life import manifest

from .cluster import Cluster
from .edits import BAD, GROUP, Story, example_stories, random_story
from .kube import FIELD_MANAGER, Json, Kube
from .kubelet import FakeKubelet
from .metacontroller import USER
from .proxy import HookProxy
from .worlds import CHILDREN, STALE, Real, Writes, in_parallel, of_story, split, told

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.usefixtures("tapps"),
    pytest.mark.timeout(1500),
]
WANTED = os.environ.get("FORETOLD", "10")
FIRST = 1000
"""Seed of the first story: others than `test_differential.py` plays."""
ATTEMPTS = 4
PAUSE = 4.0
"""As there: a busy machine rests before it is done."""


@pytest.fixture
def world(
    cluster: Cluster, kube: Kube, kubelet: FakeKubelet, hook_proxy: HookProxy, namespace: str
) -> Iterator[Real]:
    """The real world, with nothing in it."""
    if cluster.audit is None:
        pytest.skip("writes are compared by the API server's audit log, which cannot be read here")
    world = Real(cluster, kube, kubelet, hook_proxy, namespace)
    yield world
    world.stop()


def observe(world: Real, name: str) -> Observed | None:
    """The TApp as kubectl shows it."""
    kube, namespace = world.kube, world.namespace
    tapp = kube.find(GROUP, "tapps", namespace, name)
    if tapp is None or "deletionTimestamp" in tapp["metadata"]:
        return None
    uid = tapp["metadata"]["uid"]

    def owned(api_version: str, plural: str) -> list[Json]:
        return kube.list_all(api_version, plural, namespace, labelSelector=f"controller-uid={uid}")

    return Observed(
        tapp,
        pods=owned("v1", "pods"),
        claims=owned("v1", "persistentvolumeclaims"),
        revisions=owned("apps/v1", "controllerrevisions"),
        storage_classes=kube.list_all("storage.k8s.io/v1", "storageclasses"),
        namespace=kube.get("v1", "namespaces", None, namespace),
    )


def edited_by(world: Real, story: Story, number: int) -> Json | None:
    """The API server's answer to a step, by a dry run; None where it edits no TApp."""
    kube, step = world.kube, story.steps[number]
    tapps = [each for each in step.documents if each["kind"] == "TApp"]
    if step.what == "patch":
        path = kube.path(GROUP, "tapps", world.namespace, story.name)
        return kube.request("PATCH", path, step.patch, {"dryRun": "All"})
    if step.what != "apply" or not tapps:
        return None
    obj = tapps[0] | {"metadata": tapps[0]["metadata"] | {"namespace": world.namespace}}
    query = {"fieldManager": FIELD_MANAGER, "force": "true", "dryRun": "All"}
    return kube.request("PATCH", kube.path_of(obj), obj, query)


def foretell(world: Real, story: Story, number: int) -> Forecast | None:
    """The forecast of a step; None where it is no edit of a TApp that is there."""
    observed = observe(world, story.name) if number else None
    edited = None if observed is None else edited_by(world, story, number)
    if observed is None or edited is None:
        return None
    return forecast(
        observed,
        edited,
        Registration(manifest("metacontroller/base/composite-controller.yaml"), Options()),
        time.time(),
        Assumptions(broken=(BAD,)),
    )


def as_writes(found: Forecast) -> Writes:
    """The forecast in the words in which `Real` tells of writes."""
    writes: Writes = defaultdict(list)
    for each in found.writes:
        if each.kind in CHILDREN.values() and each.outcome not in ("Conflict", "NotFound"):
            writes[f"{each.kind} {each.name}"].append(told(each.verb, each.paths, each.outcome))
    return writes


def disturbed(found: Forecast) -> list[str]:
    """Pods in the order in which they are foretold to be updated or deleted, each once."""
    return _once(
        each.name
        for each in found.writes
        if each.kind == "Pod" and each.outcome == "ok" and each.verb in ("update", "delete")
    )


def really_disturbed(world: Real, since: int) -> list[str]:
    """The same as the audit log has it."""
    return _once(
        each.name
        for each in world.audit.writes(since, user=USER, namespace=world.namespace)
        if each.resource == "pods"
        and not each.subresource
        and each.verb in ("update", "delete")
        and each.accepted
        and each.code not in STALE
    )


def in_order(found: Forecast, happened: list[str]) -> bool:
    """True if pods were disturbed in the steps foretold.

    Those of one step in any order: a real Metacontroller goes through the children of a kind as Go
    goes through a map.
    """
    steps: dict[str, float] = {}
    for each in found.writes:
        if each.kind == "Pod" and each.outcome == "ok" and each.verb in ("update", "delete"):
            steps.setdefault(each.name, each.at)
    times = [steps.get(name, -1.0) for name in happened]
    return set(steps) == set(happened) and times == sorted(times)


def _once(names: Any) -> list[str]:
    return list(dict.fromkeys(names))


def compare(story: Story, number: int, here: dict[str, Any], there: dict[str, Any]) -> list[str]:
    """A line for each child that was written otherwise than foretold."""
    where = f"{story.name} step {number} ({story.steps[number]})"
    return [
        f"{where}: {child}: foretold {here.get(child)}, happened {there.get(child)}"
        for child in sorted({*here, *there})
        if here.get(child) != there.get(child)
    ]


def play_all(
    stories: list[Story], world: Real, *, complete: bool = False
) -> tuple[int, int, list[str]]:
    """Plays all stories; the edits foretold, the writes compared, and what differs."""
    edits, compared, found = 0, 0, list[str]()
    for number in range(max(len(story.steps) for story in stories)):
        playing = [story for story in stories if number < len(story.steps)]
        foreseen = {story.name: foretell(world, story, number) for story in playing}
        since = world.audit.mark()
        world.writes()
        in_parallel([partial(world.play, story, story.steps[number]) for story in playing])
        edits += sum(each is not None for each in foreseen.values())
        writes: Writes = {}
        differing: list[str] = []
        slowest = max([each.duration for each in foreseen.values() if each], default=0.0)
        attempt, ends = 0, time.monotonic() + slowest
        # Some things only time can prove, and the forecast knows how long that takes.
        while attempt < ATTEMPTS or time.monotonic() < ends:
            time.sleep(PAUSE if attempt else 0.0)
            attempt += 1
            world.settle(complete=complete)
            for child, lines in world.writes().items():
                writes.setdefault(child, []).extend(lines)
            differing = []
            order = really_disturbed(world, since)
            for story in playing:
                forecast_of = foreseen[story.name]
                if forecast_of is None:
                    continue
                expected, happened = as_writes(forecast_of), of_story(writes, story)
                for here, there in zip(split(expected), split(happened), strict=True):
                    differing += compare(story, number, here, there)
                mine = [name for name in order if of_story({f"Pod {name}": 0}, story)]
                if not in_order(forecast_of, mine):
                    line = f"foretold {disturbed(forecast_of)}, happened {mine}"
                    differing.append(f"{story.name} step {number}: order: {line}")
            if not differing:
                break
        found += differing
        compared += sum(
            len(lines)
            for story in playing
            if foreseen[story.name] is not None
            for lines in of_story(writes, story).values()
        )
    return edits, compared, found


def test_examples_go_as_foretold(world: Real, note: list[str]) -> None:
    edits, writes, found = play_all(example_stories(), world, complete=True)
    note.append(f"foretold: {edits} edits of examples, {writes} writes, {len(found)} otherwise")
    assert not found, "\n".join(found)


def test_random_edits_go_as_foretold(world: Real, note: list[str]) -> None:
    names = [f"r{FIRST + number}" for number in range(int(WANTED) if WANTED.isdecimal() else 0)]
    stories = [random_story(int(name[1:])) for name in names or WANTED.split(",")]
    edits, writes, found = play_all(stories, world)
    note.append(f"foretold: {edits} random edits, {writes} writes, {len(found)} otherwise")
    assert not found, "\n".join(found)
