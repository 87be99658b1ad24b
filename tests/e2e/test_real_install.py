"""Installs a release on an empty cluster with a real node, and runs a TApp: nothing differs from a
user's install.

The image is built like a release's. Metacontroller's image is built from the binary that the
environment names. The manifests are unchanged: the node takes all pods, and Services have addresses
and names. Without the binary of Metacontroller, the simulator's Metacontroller runs on this host
and calls the service by the address of its Service.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from hooks.app import create_app
from hooks.service.settings import Settings
from hooks.version import VERSION
from tests.contract.metacontroller_substitutes import IMAGE as METACONTROLLER_IMAGE
from tests.contract.recordings import FILES

from . import service_image
from .cluster import REPOSITORY, choose
from .installed_release import CHART, CONTROLLER, GROUP, IMAGE, metacontroller_chart, release_into
from .kube import Json, KubeError
from .metacontroller import API, binary_from
from .pods import is_ready
from .realnode.node import missing
from .realnode.user_cluster import WholeCluster

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]
EXAMPLE = REPOSITORY / "examples" / "same-template.yaml"
OTHER = "nginx:1.29"
HELM = ("--namespace", "tapp-system")
TOKEN = ("--from-literal=token=secret", "--from-literal=accepted=secret")
PROXIED = json.dumps(
    [
        {"name": "HTTP_PROXY", "value": "http://127.0.0.1:9"},
        {"name": "HTTPS_PROXY", "value": "http://127.0.0.1:9"},
        {"name": "NO_PROXY", "value": ".svc,198.18.0.0/15"},
    ]
)
"""Variables of Metacontroller for a proxy that refuses everything, except Services and the API
server.
"""
THEIR_IMAGE = "FROM scratch\nCOPY metacontroller /usr/bin/metacontroller\n"


@dataclass
class Product:
    """A release and its images."""

    dist: Path
    archives: list[Path]
    """Archives of images that a node can load."""


@pytest.fixture(scope="module")
def product(workspace: Path, note: list[str]) -> Iterator[Product]:
    """The release and its images. Metacontroller's image is included if its binary is available."""
    problem = service_image.missing() or missing(backend())
    if problem is not None:
        if os.environ.get("E2E_REAL_NODE") == "1":
            pytest.fail(f"E2E_REAL_NODE=1, but {problem}", pytrace=False)
        note.append(problem)
        pytest.skip(problem)
    place = workspace / "product"
    place.mkdir()
    dist = release_into(place)
    with service_image.Builder(place / "image") as builder:
        archives = [builder.build(IMAGE)]
        binary = binary_from(os.environ)
        if binary is not None:
            (place / "theirs").mkdir()
            (place / "theirs" / "Dockerfile").write_text(THEIR_IMAGE)
            shutil.copy(binary, place / "theirs" / "metacontroller")
            archives.append(builder.build(their_image(dist), place / "theirs"))
        yield Product(dist, archives)


def backend() -> str:
    """Returns the kind of cluster that the environment chooses."""
    choice = choose(os.environ)
    return "none" if isinstance(choice, str) else choice.backend


def their_image(dist: Path) -> str:
    """Returns the image of Metacontroller that the release names."""
    documents = yaml.safe_load_all((dist / "install-with-metacontroller.yaml").read_text())
    (found,) = [each for each in documents if each and each["kind"] == "StatefulSet"]
    (container,) = found["spec"]["template"]["spec"]["containers"]
    return str(container["image"])


@pytest.fixture
def whole(product: Product, workspace: Path) -> Iterator[WholeCluster]:
    """An empty cluster of one node that has the images."""
    choice = choose(os.environ)
    assert not isinstance(choice, str)
    assert choice.binaries is not None
    # Without the real Metacontroller, its image contains a program that only runs.
    names = [f"docker.io/library/{each}" for each in (example_image(), OTHER, METACONTROLLER_IMAGE)]
    directory = Path(tempfile.mkdtemp(dir=workspace))
    with WholeCluster(choice.binaries, directory, names) as made:
        for archive in product.archives:
            made.node.containerd.load(archive)
        yield made


def example_image() -> str:
    """Returns the image of the example."""
    (container,) = yaml.safe_load(EXAMPLE.read_text())["spec"]["template"]["spec"]["containers"]
    return str(container["image"])


def control(whole: WholeCluster) -> str:
    """Starts a Metacontroller unless the release installed one, and returns its description."""
    if binary_from(os.environ) is not None:
        return "the real Metacontroller, in the cluster"
    whole.control()
    return "the simulator's Metacontroller"


def example_runs(whole: WholeCluster, begun: float) -> str:
    """Applies the example and waits for it as the README says; returns the time since `begun` as
    text.
    """
    which = control(whole)
    whole.do("kubectl", "apply", "-f", EXAMPLE)
    whole.do("kubectl", "wait", "tapp/same", "--for=condition=Ready", "--timeout=5m")
    seconds = time.monotonic() - begun
    assert {is_ready(each) for each in service_pods(whole)} == {True}
    return f"a TApp of three is ready {seconds:.1f} s after the first command ({which})"


def service_pods(whole: WholeCluster) -> list[Json]:
    """Returns the service's pods that are not being deleted."""
    found = whole.kube.list_all(
        "v1", "pods", "tapp-system", labelSelector="app.kubernetes.io/name=tapp-hooks"
    )
    return [each for each in found if "deletionTimestamp" not in each["metadata"]]


def has_no_privilege(whole: WholeCluster) -> bool:
    """Asserts by the kernel's data: user, no capability, no new privileges, seccomp and a read-only
    root.
    """
    for pod in service_pods(whole):
        (process,) = whole.node.witness.processes("tapp-system", pod["metadata"]["name"])
        lines = (line.partition(":") for line in (process / "status").read_text().splitlines())
        status = {key: value.split() for key, _, value in lines}
        # The user is from the image. The kubelet takes no group from an image, and without
        # capabilities group 0 has only the rights of all users.
        assert status["Uid"] == ["65532"] * 4
        assert status["Gid"] == ["0"] * 4
        assert {int(status[each][0], 16) for each in ("CapEff", "CapPrm", "CapBnd")} == {0}
        assert status["NoNewPrivs"] == ["1"]
        assert status["Seccomp"] == ["2"]
        mounts = [line.split() for line in (process / "mountinfo").read_text().splitlines()]
        writable = {each[4] for each in mounts if "rw" in each[5].split(",")}
        assert "/tmp" in writable
        assert not writable & {"/", "/app", "/venv"}
    return True


def answers_as_this_checkout_does(whole: WholeCluster) -> bool:
    """Asserts that every replica answers the recorded calls of a real Metacontroller like this
    checkout.
    """
    for pod, file in itertools.product(service_pods(whole), FILES):
        record = json.loads(file.read_text())
        body, path = json.dumps(record["request"]).encode(), f"/{record['hook']}"
        request = urllib.request.Request(f"http://{pod['status']['podIP']}:8080{path}", body)
        request.add_header("Content-Type", "application/json")
        for _ in range(5):
            second = int(time.time())
            with urllib.request.urlopen(request, timeout=10) as answer:
                found = json.load(answer)
            if int(time.time()) == second:
                break
        settings = Settings(log_level="ERROR")
        client = create_app(settings, clock=lambda now=second: float(now)).test_client()
        assert found == json.loads(client.post(path, data=body).data), file.stem
    return True


def test_helm_installs_upgrades_and_uninstalls_while_instances_run(
    whole: WholeCluster, product: Product, note: list[str]
) -> None:
    """No step may restart a container of the instances."""
    chart = product.dist / CHART
    install = ("helm", "install", "tapp", chart, *HELM, "--create-namespace", "--wait")
    wanted = ("--set", "metacontroller.enabled=true", "--set-json", f"metacontroller.env={PROXIED}")
    begun = time.monotonic()
    whole.do(*install, *wanted)
    installed = time.monotonic() - begun
    ready = example_runs(whole, begun)
    note.append(f"real node: helm install --wait, from nothing, takes {installed:.1f} s; {ready}")
    tested = whole.do("helm", "test", "tapp", *HELM)
    assert {line.split()[-1] for line in tested.splitlines() if "Phase" in line} == {"Succeeded"}
    assert has_no_privilege(whole)
    assert answers_as_this_checkout_does(whole)
    assert whole.do("kubectl", "get", "tapp", "same", "--no-headers").split()[:5] == [
        "same", "3/3", "3", "3", "AsSpecified",
    ]  # fmt: skip

    patch = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": OTHER}]
    uids = whole.pods("same")
    whole.kube.patch(whole.kube.path(GROUP, "tapps", "default", "same"), patch)
    whole.until(lambda: images(whole) == [OTHER] * 3 and whole.ready("same"), "the new image runs")
    assert whole.pods("same") == uids  # in place

    running = set(whole.node.witness.now("default"))
    before = {each["metadata"]["uid"] for each in service_pods(whole)}
    whole.node.witness.begin("tapp-system", "hooks")
    whole.do("kubectl", "create", "secret", "generic", "tapp-hooks-token", *HELM, *TOKEN)
    # the simulator's Metacontroller sends no token
    real = binary_from(os.environ) is not None
    setting = "components.bearerToken=true" if real else "settings.TAPP_LOG_LEVEL=debug"
    changed = ("--reset-then-reuse-values", "--wait", "--set", setting)
    whole.do("helm", "upgrade", "tapp", chart, *HELM, *changed)
    assert whole.node.witness.fewest == len(before), "new ones serve before old ones go"
    control(whole)
    assert not before & {each["metadata"]["uid"] for each in service_pods(whole)}
    whole.do("kubectl", "scale", "tapp", "same", "--replicas=4")
    whole.until(
        lambda: len(whole.pods("same")) == 4 and whole.ready("same"),
        "the TApp is ready with four instances",
    )
    assert running < set(whole.node.witness.now("default"))

    running = set(whole.node.witness.now("default"))
    whole.do("helm", "uninstall", "tapp", *HELM, "--wait")
    whole.until(lambda: not service_pods(whole), "the service is gone")
    assert whole.ready("same")
    assert set(whole.node.witness.now("default")) == running

    whole.do(*install, *wanted)
    control(whole)
    whole.do("kubectl", "scale", "tapp", "same", "--replicas=2")
    whole.until(lambda: len(whole.pods("same")) == 2, "the TApp is scaled down")
    whole.do("kubectl", "delete", "tapp", "same", "--timeout=60s")
    whole.until(lambda: whole.node.witness.now("default") == [], "its containers have ended")


def images(whole: WholeCluster) -> list[str]:
    """Returns the running images, by instance."""
    found = whole.kube.list_all("v1", "pods", "default", labelSelector="app=same")
    running = [each["status"].get("containerStatuses") or [{}] for each in found]
    return [str(each[0].get("image", "")).rpartition("/")[2] for each in running]


STAND_IN = """\
#!/bin/sh
case "$(basename "$0") $1" in
"kind get") cat "$CLUSTERS" ;;
"kind create") echo tapp > "$CLUSTERS" ;;
"kind export") cp "$GIVEN" "$KUBECONFIG" ;;
"kind delete") : > "$CLUSTERS" ;;
esac
"""
"""A program in place of docker and kind: the cluster exists, and its node has the image."""


def test_kind_script_installs_a_working_example(
    whole: WholeCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, note: list[str]
) -> None:
    """Runs the script's own commands, but for docker and kind, then the commands that it suggests,
    and the script again.
    """
    for tool in ("docker", "kind"):
        (tmp_path / tool).write_text(STAND_IN)
        (tmp_path / tool).chmod(0o755)
    (tmp_path / "clusters").touch()
    monkeypatch.setenv("METACONTROLLER_CHART", str(metacontroller_chart(tmp_path)))
    monkeypatch.setenv("CLUSTERS", str(tmp_path / "clusters"))
    monkeypatch.setenv("GIVEN", str(whole.kubeconfig))
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    loaded = f"docker.io/library/tapp-hooks:{VERSION}"
    whole.node.containerd.ctr("images", "tag", IMAGE, loaded)

    begun = time.monotonic()
    command = (REPOSITORY / "release" / "kind.sh", tmp_path / "build")
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(whole.do, *command)
        whole.until(lambda: registered(whole) or running.done(), "the release is installed")
        which = control(whole)
        said = running.result()
    note.append(f"real node: make kind, without Docker: {time.monotonic() - begun:.1f} s; {which}")
    assert whole.ready("same")

    told = said.partition("TApp runs, and an example")[2]
    tried = "\n".join(re.findall(r"(?m)^  ((?:export|kubectl) .*?)(?:  .*)?$", told))
    left = {name: uid for name, uid in whole.pods("same").items() if name != "same-1"}
    told = whole.do("bash", "-euc", re.sub(r"(?m)^(kubectl tapp (?:set|kill).*)", r"\1 -y", tried))
    assert "default/same: " in told
    whole.until(lambda: whole.pods("same") == left and whole.ready("same"), "instance 1 is killed")
    assert images(whole) == [OTHER] * 2

    service = {each["metadata"]["uid"] for each in service_pods(whole)}
    assert "TApp runs" in whole.do(*command)
    assert service == {each["metadata"]["uid"] for each in service_pods(whole)}


def registered(whole: WholeCluster) -> bool:
    """Returns True if the CompositeController exists."""
    try:
        return whole.kube.find(API, "compositecontrollers", None, CONTROLLER) is not None
    except KubeError:
        return False
