"""Stories for two worlds: the examples, and random edits of small random TApps from a seed.

A story is a list of steps. Both worlds come to rest after each step. So each step must lead to one
state at any timing; no step depends on which pod becomes Ready first.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tapp.kube.merges import merge_patch
from tests.builders import claim_template, manifest, patch_between
from tests.equivalent_specs import fully_written
from tests.scenarios.life import EXAMPLES, example

from .shapes import SHAPES, pod_template

Json = dict[str, Any]
GROUP = "apps.tkestack.io/v1"
BAD = "app:bad"
"""An image that cannot be pulled in either world."""
MOST = 4


@dataclass(frozen=True)
class Step:
    """A step of a story: an action of a user, or an event of a pod.

    The values of `what` are:

    * `apply`: applies documents.
    * `patch`: merges a patch into the TApp.
    * `delete`: deletes the TApp with this propagation.
    * `delete pod`: deletes a pod.
    * `finish`: ends a pod with an exit code.
    * `drift`: merges a patch into a pod.
    """

    what: str
    documents: tuple[Json, ...] = ()
    patch: Json = field(default_factory=dict)
    pod: str = ""
    code: int = 0
    propagation: str = "Background"

    def __str__(self) -> str:
        told = [self.what, self.pod, str(self.patch or ""), str(self.code or "")]
        return " ".join(filter(None, [*told, self.propagation if self.what == "delete" else ""]))


@dataclass(frozen=True)
class Story:
    """A TApp's name, and the steps of its life."""

    name: str
    steps: tuple[Step, ...]


ACCOUNT = "ServiceAccount"
"""A real API server creates no pod of a missing account. The simulator does not check accounts."""


ELSEWHERE = ("attributes", "growing")
"""Examples without a story: only one of the worlds changes volumes (test_growing_claims.py and
test_volume_attributes.py test that).
"""


def example_stories() -> list[Story]:
    """Returns a story for each example: a file, or the files of a directory in their order."""
    stories = []
    for path in sorted([*EXAMPLES.glob("*.yaml"), *EXAMPLES.glob("*/1-*.yaml")]):
        files = [path] if path.parent == EXAMPLES else sorted(path.parent.glob("*.yaml"))
        steps = [Step("apply", documents=tuple(_known(file))) for file in files]
        name = next(d for d in steps[0].documents if d["kind"] == "TApp")["metadata"]["name"]
        if name not in ELSEWHERE:
            stories.append(Story(name, (*steps, *AFTERWARDS.get(name, ()))))
    return stories


def _known(file: Path) -> list[Json]:
    documents = example(str(file.relative_to(EXAMPLES).with_suffix("")))
    return [each for each in documents if each["kind"] in ("TApp", "Service", ACCOUNT)]


def _changed(**spec: Any) -> tuple[Step, ...]:
    return (Step("patch", patch={"spec": spec}),)


AFTERWARDS: dict[str, tuple[Step, ...]] = {
    "mixed": _changed(templates={"3": "writer"}),
    "shards": _changed(values={"1": {"range": "h-n"}}),
    "game": _changed(values={"2": {"port": "7012"}}),
    "zones": _changed(values={"2": {"zone": "c"}}),
    "chosen": _changed(templates=None),
    "tidy": _changed(templatePool={"blue": None}),
    "scaled": _changed(replicas=2),
    "work": (
        *(Step("finish", pod=f"work-{n}", code=int(n == 3)) for n in range(4)),
        *_changed(statuses={"3": "Killed"}),
        *_changed(statuses={"3": None}),
    ),
    "stored": (Step("delete"),),
}
"""Steps after an example was applied: edits that its comments mention, and events of its pods."""


def spelling_stories() -> list[Story]:
    """Returns a story for each shape: applied, then with all defaults written out, then as
    before.
    """
    return [_spelling(f"s{n:02}", spec) for n, spec in enumerate(SHAPES.values())]


def _spelling(name: str, spec: Json) -> Story:
    plain = pod_template(name, "app:1", spec)
    written = {**plain, "spec": fully_written(plain["spec"])}
    steps = [
        Step("apply", documents=(manifest(name, replicas=2, template=body),))
        for body in (plain, written, plain)
    ]
    return Story(name, tuple(steps))


def random_story(seed: int) -> Story:
    """Returns a TApp of one to four instances and one to four edits of it."""
    return _Writer(f"r{seed:03d}", random.Random(seed)).story()


class _Writer:
    """Creates one story, and tracks the spec that results from its edits."""

    def __init__(self, name: str, rng: random.Random) -> None:
        self.name = name
        self.rng = rng
        # A second generator, so that its numbers do not change the steps.
        self.order = random.Random(name)
        self.shape = SHAPES[rng.choice(sorted(SHAPES))]
        self.ends = self.shape.get("restartPolicy", "Always") != "Always"
        self.finished: set[int] = set()
        self.broke = False
        self.serial = 0
        self.spec: Json = {}

    def story(self) -> Story:
        rng = self.rng
        pool = {"blue": self._template("app:1"), "green": self._template("app:2")}
        strategy: Json = {"maxUnavailable": rng.choice([1, 1, 2, "50%"])}
        if rng.random() < 0.2:
            strategy["template"] = rng.choice(["default", "blue"])
        if rng.random() < 0.3:
            strategy["forceUpdate"] = {"maxUnavailable": rng.choice([1, "50%"])}
        self.spec = {
            "replicas": rng.randint(1, MOST),
            "template": self._template("app:1"),
            "templatePool": pool,
            "templates": {str(rng.randrange(MOST)): "blue"} if rng.random() < 0.3 else {},
            "updateStrategy": strategy,
        }
        if rng.random() < 0.3:
            self.spec["volumeClaimTemplates"] = [claim_template()]
            if rng.random() < 0.5:
                policy = {"whenScaled": "Delete", "whenDeleted": rng.choice(["Delete", "Retain"])}
                self.spec["persistentVolumeClaimRetentionPolicy"] = policy
        for key, value in (("serviceName", "peers"), ("neverMigrate", True)):
            if rng.random() < 0.15:
                self.spec[key] = value
        if self.order.random() < 0.3:
            strategy["partition"] = self.order.choice([1, 2, "50%"])
        if self.order.random() < 0.15:
            self.spec["podManagementPolicy"] = "OrderedReady"
        tapp = manifest(self.name, **copy.deepcopy(self.spec))
        steps = [Step("apply", documents=(tapp,))]
        for _ in range(rng.randint(1, 4)):
            steps.append(self._step())
            if steps[-1].what == "delete":
                break
        return Story(self.name, tuple(steps))

    def _template(self, image: str) -> Json:
        return pod_template(self.name, image, self.shape)

    # Steps

    def _step(self) -> Step:
        edits: list[tuple[int, Callable[[], Step | None]]] = [
            (8, self._image),
            (3, self._second_image),
            (3, self._metadata),
            (3, self._recreate),
            (5, self._scale),
            (5, self._assign),
            (4, self._kill),
            (3, self._strategy),
            (2, self._default),
            (3, self._delete_pod),
            (3, self._drift),
            (6 if self.ends else 1, self._finish),
            (2, self._delete),
        ]
        weights = [weight for weight, _ in edits]
        while True:
            step = self.rng.choices(edits, weights)[0][1]()
            if step is not None:
                return step

    def _patch(self, spec: Json) -> Step:
        self.spec = merge_patch(self.spec, copy.deepcopy(spec))
        return Step("patch", patch={"spec": spec})

    def _named(self, change: Callable[[Json], None]) -> Step:
        """Changes one of the three templates."""
        where = self.rng.choice(["default", "default", "blue", "green"])
        old = self.spec["template"] if where == "default" else self.spec["templatePool"][where]
        new = copy.deepcopy(old)
        change(new)
        patch = patch_between(old, new)
        pool = {"templatePool": {where: patch}}
        return self._patch({"template": patch} if where == "default" else pool)

    def _image(self) -> Step:
        image = self.rng.choice(["app:1", "app:2", "app:3", "app:3", BAD])
        self.broke |= image == BAD

        def change(template: Json) -> None:
            template["spec"]["containers"][0]["image"] = image

        return self._named(change)

    def _second_image(self) -> Step | None:
        groups = [g for g in ("containers", "initContainers") if self.shape.get(g)]
        if not groups:
            return None
        group, image = self.rng.choice(groups), f"side:{self.rng.randint(2, 4)}"

        def change(template: Json) -> None:
            template["spec"][group][-1]["image"] = image

        return self._named(change)

    def _metadata(self) -> Step:
        kind, self.serial = self.rng.choice(["labels", "annotations"]), self.serial + 1
        values = self.rng.choice([{"tier": str(self.serial)}, {"note": f"n{self.serial}"}, {}])

        def change(template: Json) -> None:
            template["metadata"][kind] = {"app": self.name} | values

        return self._named(change)

    def _recreate(self) -> Step:
        self.serial += 1
        env = [{"name": "SERIAL", "value": str(self.serial)}]
        if self.rng.random() < 0.3:
            env.append({"name": "SERIAL", "value": f"{self.serial}b"})

        def change(template: Json) -> None:
            template["spec"]["containers"][0]["env"] = env

        return self._named(change)

    def _scale(self) -> Step:
        return self._patch({"replicas": self.rng.randint(0, MOST)})

    def _assign(self) -> Step:
        ids = self.rng.sample(range(MOST), self.rng.randint(1, 2))
        return self._patch(
            {"templates": {str(id): self.rng.choice(["blue", "green", None]) for id in ids}}
        )

    def _kill(self) -> Step:
        ids = self.rng.sample(range(MOST), self.rng.randint(1, 2))
        return self._patch({"statuses": {str(id): self.rng.choice(["Killed", None]) for id in ids}})

    def _strategy(self) -> Step:
        rng = self.rng
        return self._patch(
            rng.choice(
                [
                    {"updateStrategy": {"paused": rng.random() < 0.6}},
                    {"updateStrategy": {"maxUnavailable": rng.choice([1, 2, "34%", "100%"])}},
                    {"updateStrategy": {"template": rng.choice(["blue", None])}},
                    {"minReadySeconds": rng.choice([0, 1])},
                ]
            )
        )

    def _default(self) -> Step:
        return self._patch({"defaultTemplateName": self.rng.choice(["blue", "green", None])})

    def _pod(self) -> str | None:
        """Returns the name of a pod that is certain to exist and run, or None."""
        if self.ends and self.broke:
            return None  # such a pod does not start again, so it has ended
        killed = {int(id) for id, what in (self.spec.get("statuses") or {}).items() if what}
        ids = sorted(set(range(self.spec["replicas"])) - killed - self.finished)
        return f"{self.name}-{self.rng.choice(ids)}" if ids else None

    def _delete_pod(self) -> Step | None:
        pod = self._pod()
        return None if pod is None else Step("delete pod", pod=pod)

    def _drift(self) -> Step | None:
        pod = self._pod()
        patches: list[Json] = [
            {"metadata": {"labels": {"by-hand": "yes"}}},
            {"metadata": {"labels": {"app": "wrong"}}},
            {"metadata": {"annotations": {"by-hand": "yes"}}},
            {"metadata": {"labels": {"tapp_instance_key": "9"}}},
        ]  # a foreign image is reported by managedFields, which the simulator does not write
        return None if pod is None else Step("drift", pod=pod, patch=self.rng.choice(patches))

    def _finish(self) -> Step | None:
        pod = self._pod()
        if pod is None or self.broke:
            return None  # the pod may never have run
        # Each pod ends only once: how long a container waits for its next start depends on the
        # kubelet.
        self.finished.add(int(pod.rpartition("-")[2]))
        return Step("finish", pod=pod, code=self.rng.choice([0, 1]))

    def _delete(self) -> Step:
        how = self.rng.choice(["Background", "Foreground", "Orphan"])
        return Step("delete", propagation=how)
