"""Types the commands of all documentation pages, and compares their output with the pages.

tests/commands.py says where each command runs, and why some do not run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread

import pytest
import yaml

from tests.commands import ALONE, block, run

from .app import GROUP, App, tapp, template
from .cluster import REPOSITORY, Cluster
from .hook import HookService
from .kubelet import FakeKubelet
from .plugin import Plugin

pytestmark = pytest.mark.e2e
ASKS = r"(?m)^(kubectl tapp (?:set|advance) (?!.* -y\b).*)$"
"""Commands that ask a question. Without a terminal they write nothing unless `-y` answers it."""


class Scene:
    """A directory with files of a clone, a shell in it, and the namespace of a TApp."""

    def __init__(self, app: App, kubelet: FakeKubelet, plugin: Plugin, hook: HookService) -> None:
        self.app = app
        self.kubelet = kubelet
        self.directory = plugin.directory
        self._plugin = plugin
        self._hook = hook

    def shell(self, line: str) -> str:
        """Types a line, with the names of this scene in place of the placeholders."""
        here = line.replace("localhost:8080", self._hook.url).replace("NAME", self.app.name)
        here = re.sub(ASKS, r"\1 -y", here)
        return self._plugin.shell(f"set -e\n{here}")

    def web(self, **spec: object) -> App:
        """Creates a TApp `web` and waits until it is complete."""
        return self.app.apply(tapp(**spec)).settle()

    def meanwhile(self, act: Callable[[], None]) -> None:
        """Runs a function in another thread while the commands are typed."""
        Thread(target=act, daemon=True).start()

    def file(self, name: str, **spec: object) -> None:
        """Writes a manifest of `web` into a file."""
        (self.directory / name).write_text(yaml.safe_dump(tapp(**spec)))


def named_template(image: str) -> dict[str, object]:
    """Returns a template whose container has the name that the pages use."""
    made = template(image)
    made["spec"]["containers"][0]["name"] = "web"
    return made


def top_of_the_readme(scene: Scene) -> None:
    first = re.search(r"```yaml\n(.*?)```", (REPOSITORY / "README.md").read_text(), re.DOTALL)
    assert first
    scene.app.apply(yaml.safe_load(first[1])).settle()


def a_stuck_update(scene: Scene) -> None:
    no_such_image(scene)
    # Otherwise the container waits most of the time with another reason, as if it had been killed.
    scene.kubelet.levers.backoff_limit = 0.0
    scene.web(replicas=4, template=named_template("nginx:1.28"))
    scene.app.patch(template=named_template("nginx:typo"))
    scene.app.until(lambda: "broken" in scene.app.condition("Degraded"), "the instance is broken")


def no_such_image(scene: Scene) -> None:
    scene.kubelet.levers.bad_images.add("nginx:typo")


def ten_instances(scene: Scene) -> None:
    body = template("web:1")
    body["spec"]["containers"][0]["name"] = "app"
    scene.web(replicas=10, template=body)


def two_templates(scene: Scene) -> None:
    spec = {
        "replicas": 6,
        "template": named_template("web:1"),
        "templatePool": {"blue": named_template("blue:1")},
    }
    scene.web(**spec)
    scene.file("old.yaml", **spec)
    for name in ("web.yaml", "new.yaml"):
        scene.file(name, **{**spec, "template": named_template("web:2")})


def claims_of_its_own(scene: Scene) -> None:
    body = named_template("web:1")
    body["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]  # type: ignore[index]
    size = {"requests": {"storage": "1Gi"}}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": size}
    claims = [{"metadata": {"name": "data"}, "spec": claim}]
    scene.web(template=body, volumeClaimTemplates=claims)


def work_that_ends(scene: Scene) -> None:
    """Ends the containers soon after all of them run."""

    def end() -> None:
        app.until(lambda: app.found is not None, "the TApp exists")
        app.until(lambda: app.statuses == "Running Running Running Running", "all instances run")
        for number in range(4):
            scene.kubelet.finish(app.namespace, f"work-{number}", code=int(number == 3))

    app = scene.app
    app.name = "work"
    scene.meanwhile(end)


def five_that_are_applied(scene: Scene, how: str = "") -> None:
    """Applies five instances by kubectl, and writes `web.yaml` without their number."""
    document = tapp(replicas=5)
    scene.app.name = "web"
    (scene.directory / "before.yaml").write_text(yaml.safe_dump(document))
    scene.shell(f"kubectl apply {how} -f before.yaml")
    scene.app.settle()
    number = {"replicas": document["spec"].pop("replicas")}
    (scene.directory / "web.yaml").write_text(yaml.safe_dump(document))
    alone = {**document, "spec": number}
    (scene.directory / "replicas.yaml").write_text(yaml.safe_dump(alone))


def five_by_server_side_apply(scene: Scene) -> None:
    five_that_are_applied(scene, "--server-side")


BEFORE: dict[str, Callable[[Scene], object]] = {
    "README.md: TApp for today's Kubernetes 1": top_of_the_readme,
    "docs/gitops.md: Client-side apply 1": five_that_are_applied,
    "docs/gitops.md: Server-side apply 1": five_by_server_side_apply,
    "docs/kubectl-tapp.md: See 1": a_stuck_update,
    "docs/kubectl-tapp.md: Preview 1": two_templates,
    "docs/kubectl-tapp.md: Canaries 1": ten_instances,
    "docs/troubleshooting.md: Lost ownership 1": claims_of_its_own,
    "docs/monitoring.md: Events 1": Scene.web,
    "docs/sizing.md: Shards 1": Scene.web,
    "docs/how-to.md: 2. Take back an update that fails 1": no_such_image,
    "docs/how-to.md: 8. Run work that ends 1": work_that_ends,
}


@pytest.fixture
def scene(
    app: App, cluster: Cluster, kubelet: FakeKubelet, hook: HookService, tmp_path: Path
) -> Iterator[Scene]:
    """The scene for blocks that need no separate cluster."""
    (tmp_path / "examples").symlink_to(REPOSITORY / "examples")
    yield Scene(app, kubelet, Plugin.at(cluster, app.namespace, tmp_path), hook)
    for found in app.kube.list_all(GROUP, "tapps", app.namespace):
        path = app.kube.path(GROUP, "tapps", app.namespace, found["metadata"]["name"])
        app.kube.patch(path, {"metadata": {"finalizers": None}})


COMPONENTS = {"docs/how-to.md: 12. Let nodes be drained while an instance is stopped 1"}
"""Blocks that need a component which adds a kind of children."""


@pytest.mark.parametrize("name", ALONE)
def test_commands_of_a_page_work_as_documented(
    scene: Scene, name: str, request: pytest.FixtureRequest
) -> None:
    if name in COMPONENTS:
        request.getfixturevalue("exposing")
    BEFORE.get(name, lambda _: None)(scene)
    run(block(name), scene.shell)
