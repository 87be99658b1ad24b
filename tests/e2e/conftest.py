"""Fixtures of the end-to-end tests. Without `E2E=1` (or `--e2e`) nothing here starts a process.

A test is an end-to-end test if it has the mark `e2e` or uses the fixture `cluster`. So a plain
`pytest` run never runs such a test by mistake.
"""

from __future__ import annotations

import contextlib
import copy
import os
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from . import policies
from .admission import demand as demand  # noqa: PLC0414 - fixtures
from .admission import reshape as reshape  # noqa: PLC0414
from .app import App
from .binaries import build
from .cluster import REPOSITORY, Cluster, Workspace, all_logs, choose, wait_namespace_ready
from .definitions import definition_files
from .hook import HookService
from .kube import Kube, KubeError, documents
from .kubelet import FakeKubelet
from .kubelet_controls import Levers
from .metacontroller import SHIPPED, Controller, choose_controller, install_account, registered
from .order import longest_first
from .placement import NAMESPACE_LABEL, steered
from .plugin import Plugin
from .pods import Pods
from .process import ProcessError
from .proxy import HookProxy
from .realnode.node import RealNode, missing
from .realnode.trial import Trial
from .volumes import Provisioner

Needs = Callable[[int, str], None]
FAILED = pytest.StashKey[bool]()
NOTES = pytest.StashKey[list[str]]()
CHILDREN = [
    REPOSITORY / "metacontroller" / "components" / name
    for name in ("services", "disruption-budgets")
]
"""Components that add a kind of children."""
CLUSTERLESS = ("test_cluster_choice",)
"""Files with tests that need no cluster. A plain run reads no other file of this directory."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds `--e2e`, for runs that name this directory. `E2E=1` works in every run."""
    with contextlib.suppress(ValueError):  # another conftest has added it already
        parser.addoption("--e2e", action="store_true", help="run the end-to-end tests")


def pytest_configure(config: pytest.Config) -> None:
    """Registers the mark and the notes of these tests."""
    config.addinivalue_line("markers", "bench: a measurement, not a test (make e2e-bench)")
    config.stash[NOTES] = []


def wanted(config: pytest.Config) -> bool:
    """Returns True if the run asks for end-to-end tests."""
    return os.environ.get("E2E") == "1" or bool(config.getoption("--e2e", default=False))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Ignores files that a plain run would deselect, because reading them costs each worker
    seconds.
    """
    stem = collection_path.stem
    unread = stem.startswith("test_") and stem not in CLUSTERLESS and not wanted(config)
    return unread or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks the tests that need a cluster, and deselects them unless the run asks for them."""
    longest_first(items)
    for item in items:
        if "cluster" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.e2e)
    if wanted(config):
        here = [item for item in items if item.path.parent == Path(__file__).parent]
        without = {item.path.stem for item in here if not item.get_closest_marker("e2e")}
        assert without <= set(CLUSTERLESS), f"one is not in CLUSTERLESS: {without}"
        return
    out = [item for item in items if item.get_closest_marker("e2e")]
    if out:
        config.hook.pytest_deselected(items=out)
        items[:] = [item for item in items if not item.get_closest_marker("e2e")]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Remembers that a test failed, so that the logs are kept.

    Skips in fixtures get one location, so that pytest reports all tests with one reason in one
    line.
    """
    report: Any = yield
    if report.failed:
        item.config.stash[FAILED] = True
    if report.skipped and report.when == "setup" and isinstance(report.longrepr, tuple):
        report.longrepr = (__file__, 1, report.longrepr[2])
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints the notes on the run, such as the versions of the cluster."""
    for note in terminalreporter.config.stash[NOTES]:
        terminalreporter.write_line(f"e2e: {note}")


@pytest.fixture(scope="session")
def workspace() -> Iterator[Path]:
    """The temporary directory of the run."""
    place = Workspace()
    yield place.directory
    place.remove()


@pytest.fixture(scope="session")
def note(request: pytest.FixtureRequest) -> list[str]:
    """Lines for the end of the report: versions and measured figures."""
    return request.config.stash[NOTES]


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest, workspace: Path, note: list[str]) -> Iterator[Cluster]:
    """The started cluster of the session; skips with one line if no cluster can be used."""
    choice = choose(os.environ)
    if isinstance(choice, str):
        if os.environ.get("E2E_REQUIRED") == "1":
            pytest.fail(f"E2E_REQUIRED=1, but {choice}", pytrace=False)
        pytest.skip(choice)
    chosen = choice.make(workspace, definition_files(os.environ))
    try:
        chosen.start()
        plane = chosen.control_plane
        if plane is not None:
            note.append(f"control plane up in {plane.seconds:.1f} s ({plane.version})")
        yield chosen
    except BaseException:
        request.config.stash[FAILED] = True
        raise
    finally:
        logs = all_logs(chosen, workspace) if request.config.stash.get(FAILED, False) else []
        chosen.stop()
        if logs:
            note.append(f"logs kept in {Workspace.keep(logs, os.environ)}")


@pytest.fixture(scope="session")
def kube(cluster: Cluster) -> Iterator[Kube]:
    """The client of the tests, with the rights of the cluster's administrator."""
    client = Kube(cluster.kubeconfig, context=cluster.context)
    yield client
    client.close()


@pytest.fixture(scope="session")
def needs(kube: Kube) -> Needs:
    """Returns `needs(36, "what")`, which skips a test if Kubernetes is older than 1.36."""

    def check(minor: int, what: str) -> None:
        if kube.minor < minor:
            pytest.skip(f"Kubernetes 1.{kube.minor} has no {what} (1.{minor})")

    return check


@pytest.fixture(autouse=True)
def old_enough(request: pytest.FixtureRequest) -> None:
    """Applies the mark `since` to a test or a file: skips if Kubernetes is older."""
    if mark := request.node.get_closest_marker("since"):
        request.getfixturevalue("needs")(*mark.args)


@pytest.fixture(scope="session")
def kubectl(cluster: Cluster) -> Callable[..., str]:
    """Runs a current kubectl against the cluster and returns its output; raises ProcessError if it
    fails.
    """
    places = [os.environ.get("KUBEBUILDER_ASSETS"), str(build.bin_dir()), os.environ["PATH"]]
    binary = shutil.which("kubectl", path=os.pathsep.join(each for each in places if each))
    if binary is None:
        pytest.skip("no kubectl: `make e2e-binaries` builds one")
    context = ["--context", cluster.context] if cluster.context else []

    def run(*arguments: str, stdin: str = "") -> str:
        command = [binary, "--kubeconfig", str(cluster.kubeconfig), *context, *arguments]
        done = subprocess.run(command, input=stdin, text=True, capture_output=True, check=False)
        if done.returncode != 0:
            raise ProcessError(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    return run


@pytest.fixture(scope="session")
def running_kubelet(cluster: Cluster, kube: Kube) -> Iterator[FakeKubelet]:
    """The fake nodes of the session, with volumes for claims. Tests use the fixture `kubelet`."""
    local = cluster.backend == "local"
    with contextlib.ExitStack() as stack:
        if local:
            stack.enter_context(Provisioner(cluster.kubeconfig))
        else:
            stack.enter_context(steered(kube))
        yield stack.enter_context(
            FakeKubelet(cluster.kubeconfig, context=cluster.context, tainted=not local)
        )


@pytest.fixture(scope="session")
def everywhere(kube: Kube, needs: Needs, note: list[str]) -> Iterator[None]:
    """Installs the admission policy that E2E_POLICIES names, for the whole run."""
    wished = policies.lean_everywhere()
    if wished:
        needs(36, policies.NEEDED)
        policies.put(kube, policies.LEAN)
        note.append("all pods of TApps are lean (E2E_POLICIES=lean)")
    yield
    if wished:
        policies.take(kube, policies.LEAN)


@pytest.fixture
def install(
    kube: Kube,
    needs: Needs,
    everywhere: None,  # noqa: ARG001
) -> Iterator[Callable[..., None]]:
    """Installs the named admission policies, or both by default, and deletes them after the
    test.
    """
    needs(36, policies.NEEDED)
    with policies.by_hand(kube) as put:
        yield put


@pytest.fixture(scope="session")
def controller(
    cluster: Cluster, kube: Kube, workspace: Path, note: list[str], everywhere: None
) -> Iterator[Controller]:
    """Runs the registered controllers: the real Metacontroller if possible."""
    assert everywhere is None  # the policies are installed before its first pod
    made = [] if cluster.hook_in_cluster else install_account(kube, os.environ)
    chosen = choose_controller(cluster, kube, workspace, os.environ)
    note.append(f"ran {chosen.description}")
    begun = time.monotonic()
    chosen.start()
    note.append(f"Metacontroller ready in {time.monotonic() - begun:.1f} s")
    yield chosen
    chosen.stop()
    if cluster.backend == "existing":
        for path in reversed(made):
            with contextlib.suppress(KubeError):  # it may have been deleted with its namespace
                kube.request("DELETE", path)


@pytest.fixture(scope="session")
def hook(workspace: Path, cluster: Cluster) -> Iterator[HookService]:
    """The service under gunicorn on this host, with one replica unless a test scales it."""
    service = HookService(workspace)
    if not cluster.hook_in_cluster:
        service.start()
    yield service
    service.stop()


@pytest.fixture(scope="session")
def hook_proxy(hook: HookService) -> Iterator[HookProxy]:
    """A proxy between Metacontroller and the service that records calls and can break them."""
    proxy = HookProxy(hook.url).start()
    yield proxy
    proxy.stop()


@pytest.fixture(scope="session")
def tapps(controller: Controller, hook_proxy: HookProxy) -> Iterator[Controller]:
    """Registers the shipped controllers; their hooks lead to the proxy."""
    with registered(controller, hook_proxy.url):
        yield controller


@pytest.fixture
def exposing(kube: Kube, tapps: Controller, hook_proxy: HookProxy) -> Iterator[None]:
    """Installs the components services and disruption-budgets for the test."""
    (shipped,) = documents(SHIPPED[0])
    changed = copy.deepcopy(shipped)
    for component in CHILDREN:
        for document in documents(component / "cluster-role.yaml"):
            kube.apply(document)
        (patch,) = documents(component / "composite-controller.yaml")
        changed["spec"]["childResources"] += [each["value"] for each in patch]
    tapps.register(changed, hook_proxy.url)
    yield
    tapps.register(shipped, hook_proxy.url)


@pytest.fixture(scope="module")
def running_node(cluster: Cluster, workspace: Path, note: list[str]) -> Iterator[RealNode]:
    """The real node of a file; skips with one line if this machine cannot run one. Tests use
    `real_node`.

    The node stops with the file: pods of other files that tolerate all taints would run on it.
    """
    problem = missing(cluster.backend)
    if problem is not None:
        if os.environ.get("E2E_REAL_NODE") == "1":
            pytest.fail(f"E2E_REAL_NODE=1, but {problem}", pytrace=False)
        pytest.skip(problem)
    place = Path(tempfile.mkdtemp(prefix="node-", dir=workspace))
    with RealNode(cluster.kubeconfig, place) as node:
        note.append(f"real node ready in {node.seconds:.1f} s")
        yield node


@pytest.fixture
def real_node(running_node: RealNode) -> Iterator[RealNode]:
    """A Ready node with kubelet, containerd and runc. The fixture makes the node Ready again after
    the test.
    """
    running_node.rest()
    yield running_node
    running_node.rest()


@pytest.fixture
def kubelet(running_kubelet: FakeKubelet) -> Iterator[FakeKubelet]:
    """The fake kubelet. All its levers are reset before the test and after it."""
    running_kubelet.levers.reset()
    running_kubelet.failures.clear()
    yield running_kubelet
    running_kubelet.levers.reset()
    running_kubelet.poke()
    assert not running_kubelet.failures, running_kubelet.failures


@pytest.fixture
def levers(kubelet: FakeKubelet) -> Levers:
    """The levers of the fake kubelet."""
    return kubelet.levers


@pytest.fixture
def namespace(kube: Kube) -> Iterator[str]:
    """A new namespace that is ready for pods; it is deleted after the test."""
    name = f"tapp-e2e-{secrets.token_hex(4)}"
    metadata = {"name": name, "labels": {NAMESPACE_LABEL: "true"}}
    kube.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    wait_namespace_ready(kube, name)
    yield name
    kube.delete("v1", "namespaces", None, name)


@pytest.fixture
def pods(kube: Kube, namespace: str, kubelet: FakeKubelet) -> Pods:  # noqa: ARG001
    """Plain pods in the test's namespace that the fake kubelet runs."""
    return Pods(kube, namespace)


@pytest.fixture
def app(request: pytest.FixtureRequest, cluster: Cluster, kube: Kube) -> Iterator[App]:
    """A TApp in the test's namespace, with its client and its count of writes."""
    namespace, proxy = (request.getfixturevalue(name) for name in ("namespace", "hook_proxy"))
    for runs_it in ("kubelet", "tapps"):
        request.getfixturevalue(runs_it)
    one = App(cluster, kube, namespace, proxy)
    one.watcher.start()
    yield one
    one.watcher.stop()


@pytest.fixture
def real(
    request: pytest.FixtureRequest, app: App, real_node: RealNode, note: list[str]
) -> Iterator[Trial]:
    """A TApp on the real node. The figures of its witness become a line of the report."""
    made = Trial(app, real_node)
    made.history.start()
    yield made
    made.history.stop()
    witness = real_node.witness
    if witness.timeline:
        counts = f"{witness.fewest} ran, {witness.fewest_serving} served"
        note.append(f"fewest: {counts}: {request.node.name}")


@pytest.fixture
def plugin(cluster: Cluster, namespace: str, tmp_path: Path) -> Plugin:
    """`kubectl tapp` in the test's namespace."""
    return Plugin.at(cluster, namespace, tmp_path)
