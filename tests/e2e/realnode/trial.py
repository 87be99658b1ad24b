"""A TApp on the real node, with the witness of its processes."""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from typing import Any

from tests.e2e.app import App, tapp
from tests.e2e.kube import Json
from tests.e2e.pods import container as status_of
from tests.e2e.pods import is_ready

from .images import SERVING
from .node import RealNode
from .witness import Witness
from .workloads import History, real_template, tag_of


class Trial:
    """A TApp (`app`) with real containers, and short methods for tests."""

    def __init__(self, one: App, node: RealNode) -> None:
        self.app = one
        self.node = node
        self.history = History(one.kube, one.namespace)

    @property
    def witness(self) -> Witness:
        """The witness, which records the running containers and the minimum of running pods."""
        return self.node.witness

    def create(
        self, *containers: Json | str, counted: tuple[str, ...] = ("main",), **spec: Any
    ) -> Trial:
        """Creates the TApp, waits until it is complete, and starts the witness's count.

        `pod` adds fields to the pods' spec.
        """
        template = real_template(*containers, **spec.pop("pod", {}))
        self.app.apply(tapp(template=template, **spec)).settle()
        self.witness.begin(self.app.namespace, *counted)
        return self

    def change(self, *containers: Json | str, **pod: Any) -> Trial:
        """Sets another template, without waiting."""
        self.app.patch(template=real_template(*containers, **pod))
        return self

    def roll(self, *containers: Json | str, seconds: float = 240, **pod: Any) -> Trial:
        """Sets another template and waits until the TApp is complete."""
        self.change(*containers, **pod).app.settle(seconds)
        return self

    def wait(self, seconds: float) -> Trial:
        """Sleeps, for tests that depend on the time between two events."""
        time.sleep(seconds)
        return self

    # Observations

    def tags(self) -> str:
        """Returns the image tag of each instance's first container in its spec, in one line."""
        return " ".join(tag_of(image) for image in self.app.images().split())

    def runs(self) -> dict[str, str]:
        """Returns the tags of the running containers by `pod/container`."""
        running = self.witness.now(self.app.namespace)
        return {f"{each.pod}/{each.container}": tag_of(each.image) for each in running}

    def container(self, number: int, index: int = 0, group: str = "containerStatuses") -> Json:
        """Returns the published status of a container."""
        found = self.app.pods.get(number) or {"status": {}}
        return status_of(found, index, group)

    def ready(self, number: int) -> bool:
        """Returns True if the instance's pod is Ready."""
        return is_ready(self.app.pods.get(number) or {})

    def environment(self, number: int) -> set[str]:
        """Returns `NAME=value` of all processes of the instance."""
        found = [(each / "environ").read_bytes() for each in self._processes(number)]
        return {text.decode() for one in found for text in one.split(b"\0") if text}

    def file(self, number: int, path: str) -> str:
        """Returns the text of a file in one of the instance's containers, or an empty string."""
        roots = [process / "root" / path.lstrip("/") for process in self._processes(number)]
        return next((each.read_text() for each in roots if each.exists()), "")

    def begin_of(self, tag: str) -> dict[str, float]:
        """Returns for each pod the time at which its first container of an image ran."""
        found: dict[str, float] = {}
        for moment in self.witness.timeline:
            for each in moment.running:
                if tag_of(each.image) == tag:
                    found.setdefault(each.pod, moment.seconds)
        return found

    def end_of(self, tag: str) -> dict[str, float]:
        """Returns for each pod the time at which its last container of an image ended."""
        found: dict[str, float] = {}
        for before, after in itertools.pairwise(self.witness.timeline):
            left = {each.id for each in after.running}
            for each in before.running:
                if each.id not in left and tag_of(each.image) == tag:
                    found[each.pod] = after.seconds
        return found

    def never_fewer_than(self, least: int) -> bool:
        """Asserts that at least `least` instances ran at every moment. Returns True.

        The message of a failure is the timeline.
        """
        assert self.witness.fewest >= least, (
            f"{self.witness.fewest} ran:\n{self.witness}\npublished:\n{self.history}"
        )
        return True

    def always_served(self, least: int) -> bool:
        """Asserts that at least `least` instances served at every moment. Returns True."""
        assert self.witness.fewest_serving >= least, (
            f"{self.witness.fewest_serving} served:\n{self.witness}\npublished:\n{self.history}"
        )
        return True

    # Disturbances

    def spoil(self, number: int) -> None:
        """Makes the instance's processes stop serving, so that its probes fail."""
        for each in self._processes(number):
            (each / "root" / SERVING).unlink(missing_ok=True)

    def kill(self, number: int) -> None:
        """Kills the instance's processes, as in a crash."""
        for each in self._processes(number):
            self.node.kill(int(each.name))

    def _processes(self, number: int) -> list[Path]:
        return self.witness.processes(self.app.namespace, f"{self.app.name}-{number}")
