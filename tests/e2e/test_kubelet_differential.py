"""Plays the same stories of plain pods with the real kubelet and the fake one, and compares the
statuses.

The hundred stories are edits, series of edits, typing errors, crashes, probes, slow stops and batch
policies. The comparison covers the basis of decisions: observed generation, shown image, running or
not, Ready, and the end. A story with a difference on the busy machine is repeated with fewer
others. `KUBELET_STORY=17,28` plays two stories.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from .cluster import Cluster
from .kube import Json, Kube
from .kubelet import FakeKubelet
from .kubelet_stories import Event, Scripted, Story, are_alike, lines_of, story
from .pods import Pods, container, phase
from .realnode.images import app
from .realnode.node import RealNode
from .realnode.workloads import History

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1500), pytest.mark.slow]
STORIES = 100
AT_ONCE = 20
CALM = 4
TWIN = "twin-0"


class Stage:
    """Plays stories with both kubelets, as pods `real-N` and `fake-N` of one namespace."""

    def __init__(self, pods: Pods, history: History, node: RealNode, fake: FakeKubelet) -> None:
        self._pods = pods
        self._history = history
        self._node = node
        self._fake = fake

    def play(self, one: Story) -> tuple[list[str], list[str]]:
        """Plays a story and returns the lines of the real kubelet and of the fake one."""
        with ThreadPoolExecutor(2) as pool:
            real = pool.submit(self._life, one, f"real-{one.number}", self._kill_real)
            fake = pool.submit(self._life, one, f"fake-{one.number}", self._kill_fake, TWIN)
            return real.result(), fake.result()

    def _life(
        self, one: Story, name: str, kill: Callable[[str], None], node: str = ""
    ) -> list[str]:
        selector = {"nodeSelector": {"kubernetes.io/hostname": node}} if node else {}
        metadata = {"name": name, "namespace": self._pods.namespace}
        spec = one.spec(**selector)
        born = self._pods.kube.create(
            {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        )
        self._pods.wait(name, lambda pod: "containerID" in container(pod))
        for event in one.events:
            time.sleep(event.after)
            self._happens(name, event, kill)
        time.sleep(one.lasts)
        versions = self._versions(name, born["metadata"]["uid"])
        self._pods.delete(name, gracePeriodSeconds=1)
        self._pods.wait_gone(name)
        return lines_of(versions)

    def _happens(self, name: str, event: Event, kill: Callable[[str], None]) -> None:
        if event.tag:
            self._pods.set_image(name, app(event.tag))
        elif phase(self._pods.get(name)) == "Running":
            kill(name)

    def _versions(self, name: str, uid: str) -> list[Json]:
        return [
            each.pod
            for each in self._history.of(name)
            if each.pod["metadata"]["uid"] == uid
            and "deletionTimestamp" not in each.pod["metadata"]
        ]

    def _kill_real(self, name: str) -> None:
        for process in self._node.witness.processes(self._pods.namespace, name):
            self._node.kill(int(process.name))

    def _kill_fake(self, name: str) -> None:
        self._fake.finish(self._pods.namespace, name, 137)


@pytest.fixture
def stage(cluster: Cluster, kube: Kube, namespace: str, real_node: RealNode) -> Iterator[Stage]:
    """Both kubelets, and a watch of their pods."""
    history = History(kube, namespace).start()
    fake = FakeKubelet(
        cluster.kubeconfig, (TWIN,), context=cluster.context, tainted=True, levers=Scripted()
    )
    with fake:
        yield Stage(Pods(kube, namespace), history, real_node, fake)
        assert not fake.failures, fake.failures
    history.stop()


def test_fake_kubelet_reports_the_same_statuses_as_the_real_one(
    stage: Stage, note: list[str]
) -> None:
    only = os.environ.get("KUBELET_STORY")
    stories = [story(int(number)) for number in (only.split(",") if only else range(STORIES))]
    begun = time.monotonic()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        played = list(pool.map(stage.play, stories))
    again = [
        one for one, (real, fake) in zip(stories, played, strict=True) if not are_alike(real, fake)
    ]
    # A watch may miss a status that lasts a few milliseconds. So stories with a difference are
    # played again, with fewer at once, and finally alone.
    differ, left = [], again
    for at_once in (CALM, 1, 1):
        with ThreadPoolExecutor(at_once) as pool:
            replayed = list(zip(left, pool.map(stage.play, left), strict=True))
        differ = [
            f"{one}\n  real: {real}\n  fake: {fake}"
            for one, (real, fake) in replayed
            if not are_alike(real, fake)
        ]
        left = [one for one, (real, fake) in replayed if not are_alike(real, fake)]
    lines = sum(len(real) for real, _ in played)
    seconds = time.monotonic() - begun
    note.append(
        f"kubelets: {len(stories)} stories of {lines} changes in {seconds:.0f} s, "
        f"{len(again)} of them played again, {len(differ)} differ"
    )
    assert not differ, "\n" + "\n".join(differ)
