"""Types the commands that install, run and remove TApp, in three sequences.

Each sequence begins on an empty control plane. tests/commands.py has the blocks in their order.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from tests.commands import BY_HELM, BY_KUBECTL, FROM_SOURCE, block

from .app import tapp
from .cluster import REPOSITORY
from .installed_release import CHART, GROUP, Fresh, fresh_cluster, release_into
from .kube import Json, documents
from .plugin import Plugin
from .policies import DIRECTORY, NEEDED

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
CLONE = ("crds", "examples", "gitops", "metacontroller")
Act = Callable[["Story"], None]


class Story:
    """An empty cluster, and a directory with files of a clone and of a release."""

    def __init__(self, fresh: Fresh, directory: Path) -> None:
        self.fresh = fresh
        self.directory = directory
        self._plugin = Plugin.at(fresh, "default", directory)
        for name in CLONE:
            shutil.copytree(REPOSITORY / name, directory / name)

    def type(self, name: str) -> None:
        """Types the commands of a documentation block into the shell."""
        self._plugin.shell(f"set -e\n{block(name).text.replace(' NAME ', ' web ')}")

    def shell(self, line: str) -> str:
        """Types a line and returns its output."""
        return self._plugin.shell(line)

    def play(self, names: tuple[str, ...], before: dict[str, Act], after: dict[str, Act]) -> None:
        """Types the blocks in order, with actions before and after some of them."""
        for name in names:
            before.get(name, do_nothing)(self)
            self.type(name)
            after.get(name, do_nothing)(self)

    def create_tapp(self) -> None:
        """Creates a TApp `web`, which the service and Metacontroller of this host run."""
        self.fresh.established()
        made = tapp()
        made["metadata"]["namespace"] = "default"
        self.fresh.kube.apply(made)
        self.is_ready()

    def is_ready(self) -> None:
        """Waits until `web` is Ready at its newest generation."""
        self.fresh.until(lambda: self.fresh.ready("web"), "the TApp is ready")

    def start_controllers(self) -> None:
        """Starts the service and Metacontroller."""
        self.fresh.serve()
        self.fresh.control()


def do_nothing(_: Story) -> None:
    """Does nothing before or after a block."""


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that `make release` writes."""
    return release_into(tmp_path_factory.mktemp("release"))


@pytest.fixture
def story(workspace: Path, dist: Path, tmp_path: Path) -> Iterator[Story]:
    """A story on a new cluster, with the files of the release."""
    with fresh_cluster(workspace) as fresh:
        made = Story(fresh, tmp_path)
        for file in dist.iterdir():
            shutil.copy(file, tmp_path)
        shutil.copy(dist / CHART, tmp_path / "tapp-0.2.0.tgz")
        yield made


def start_tapp(first: str, story: Story) -> None:
    """Starts the service and a TApp after the first block."""
    assert first in BY_HELM + BY_KUBECTL
    story.start_controllers()
    story.create_tapp()


def wait_until_pods_are_gone(story: Story) -> None:
    story.fresh.until(lambda: not story.fresh.pods("web"), "its pods are gone")


def test_documented_commands_install_and_remove_tapp_by_helm(story: Story) -> None:
    first, upgrade, _, last = BY_HELM
    after = {
        first: lambda each: start_tapp(first, each),
        upgrade: Story.is_ready,
        last: wait_until_pods_are_gone,
    }
    story.play(BY_HELM, {}, after)
    assert story.fresh.run("kubectl", "get", "compositecontroller", "tapp-controller").returncode


# --- by kubectl -----------------------------------------------------------------------------------


def create_argo_namespace(story: Story) -> None:
    story.shell("kubectl create namespace argocd")
    story.shell("kubectl -n argocd create configmap argocd-cm")


def install_old_policy(story: Story) -> None:
    for each in documents(DIRECTORY / "lean-pods.yaml"):
        text = yaml.safe_dump(each).replace("tapp-lean-pods", "tapp-slim-pods")
        story.fresh.kube.apply(yaml.safe_load(text))


def prepare_backup(story: Story) -> None:
    """Deletes the TApp after its backup, and prepares the saved files as the page says."""
    listed = yaml.safe_load((story.directory / "tapps.yaml").read_text())["items"]
    (found,) = (each for each in listed if each["kind"] == "TApp")
    story.shell("kubectl delete tapp web")
    story.fresh.until(lambda: not story.fresh.pods("web"), "its pods are gone")
    (story.directory / "web-status.yaml").write_text(
        yaml.safe_dump({"status": found.pop("status")})
    )
    gone = ("uid", "resourceVersion", "ownerReferences", "finalizers")
    found["metadata"] = {key: each for key, each in found["metadata"].items() if key not in gone}
    (story.directory / "web.yaml").write_text(yaml.safe_dump(found))


def delete_without_service(story: Story) -> None:
    """Deletes the TApp while the service is stopped."""
    story.fresh.hook.stop()
    story.shell("kubectl delete tapp web --wait=false")
    assert story.fresh.tapp("web") is not None


def finish_deletion(story: Story) -> None:
    """Waits until the TApp is deleted, starts the service again and creates another TApp."""
    story.fresh.until(lambda: story.fresh.tapp("web") is None, "the TApp is gone")
    wait_until_pods_are_gone(story)
    story.fresh.hook.start()
    story.create_tapp()


@pytest.mark.since(36, NEEDED)
def test_documented_commands_install_and_remove_tapp_by_kubectl(story: Story) -> None:
    first, last = BY_KUBECTL[0], BY_KUBECTL[-1]
    before: dict[str, Act] = {
        "docs/gitops.md: Argo CD 1": create_argo_namespace,
        "docs/sizing.md: Leaner pods 2": install_old_policy,
        "docs/troubleshooting.md: Backup and restore 2": prepare_backup,
        "docs/upgrade.md: Uninstall 3": delete_without_service,
    }
    after: dict[str, Act] = {
        first: lambda each: start_tapp(first, each),
        "docs/troubleshooting.md: Backup and restore 2": Story.is_ready,
        "docs/upgrade.md: Uninstall 3": finish_deletion,
        last: wait_until_pods_are_gone,
    }
    story.play(BY_KUBECTL, before, after)
    assert story.fresh.run("kubectl", "get", "crd", "tapps.apps.tkestack.io").returncode


# --- from source, where the old controller was ----------------------------------------------------


def old_world(story: Story) -> dict[str, str]:
    """Creates the Deployment of the old controller and a TApp with two pods of that controller."""
    kube = story.fresh.kube
    story.shell(f"kubectl apply --server-side -f {REPOSITORY}/tests/e2e/metacontroller-crds.yaml")
    story.shell(f"kubectl apply --server-side -f {REPOSITORY}/crds/tapp.yaml")
    story.fresh.established()
    story.shell("kubectl -n kube-system create deployment tapp-controller --image=tapp:old")
    made = tapp(replicas=2)
    made["metadata"]["namespace"] = "default"
    uid = kube.apply(made)["metadata"]["uid"]
    owner = {"apiVersion": GROUP, "kind": "TApp", "name": "web", "uid": uid, "controller": True}
    for number in range(2):
        metadata: Json = {
            "name": f"web-{number}",
            "namespace": "default",
            "labels": {"tapp_instance_key": str(number), "tapp_template_hash_key": "4711"},
            "ownerReferences": [owner],
        }
        spec = made["spec"]["template"]["spec"]
        kube.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    return story.fresh.pods("web")


def test_documented_commands_migrate_from_the_old_controller(story: Story) -> None:
    """A migration must replace no pod, and the removal of TApp must delete none."""
    born = old_world(story)
    *steps, last = FROM_SOURCE
    story.play(tuple(steps[:-1]), {}, {"docs/migration.md: Steps 5": Story.start_controllers})
    story.is_ready()
    story.type(steps[-1])
    assert story.fresh.pods("web") == born
    # The page says to repeat the second command until it prints nothing.
    first, look, *others = block(last).text.replace("\\\n", " ").splitlines()
    story.shell(first)
    story.fresh.control()
    story.fresh.until(
        lambda: "composite" not in story.shell(f"{look} || true"), "the command prints nothing"
    )
    for each in others:
        story.shell(each)
    assert story.fresh.pods("web") == born
