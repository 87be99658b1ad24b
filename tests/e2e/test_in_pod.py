"""Runs the plugin and the migration as in a pod, with a service account and without a kubeconfig.

The files of a service account have a fixed path. Each command runs in its own mount namespace,
where that path is a directory with a real token. So these tests need root on Linux.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from .app import App, tapp
from .binaries import build
from .cluster import Cluster
from .kube import Json, Kube, authority_of
from .plugin import ROOT, Plugin
from .process import free_ports

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        sys.platform != "linux" or os.geteuid() != 0 or shutil.which("unshare") is None,
        reason="a mount namespace needs root on Linux, and unshare",
    ),
]
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
RBAC = {"apiVersion": "rbac.authorization.k8s.io/v1"}


class Pod:
    """A shell in a pod, with only the environment and the files that a kubelet provides."""

    def __init__(self, cluster: Cluster, kube: Kube, namespace: str, directory: Path) -> None:
        config = yaml.safe_load(cluster.kubeconfig.read_text())
        address = urlsplit(config["clusters"][0]["cluster"]["server"])
        self._directory, self._files = directory, directory / "account"
        self._files.mkdir()
        (self._files / "token").write_text(kube.token(namespace, "default"))
        (self._files / "ca.crt").write_bytes(authority_of(cluster.kubeconfig))
        (self._files / "namespace").write_text(namespace)
        self._environment = {
            "PATH": os.pathsep.join([str(directory), str(build.bin_dir()), "/usr/bin", "/bin"]),
            "HOME": str(directory), "PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8",
            "KUBERNETES_SERVICE_HOST": str(address.hostname),
            "KUBERNETES_SERVICE_PORT": str(address.port),
        }  # fmt: skip

    def run(self, line: str, code: int = 0, **variables: str) -> str:
        """Runs a shell line in the pod and returns its output. The exit code must be `code`."""
        files = shlex.quote(str(self._files))
        mounted = f"mkdir -p {ACCOUNT} && mount --bind {files} {ACCOUNT}"
        # The directory is in a file system that only this shell sees.
        private = f"mount -t tmpfs tmpfs /var/run && {mounted}"
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-c", f"{private} && {line}"],
            cwd=self._directory, env={**self._environment, **variables},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip
        assert done.returncode == code, f"{line}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr


@pytest.fixture
def pod(cluster: Cluster, kube: Kube, app: App, plugin: Plugin, tmp_path: Path) -> Pod:
    """A pod of the test's namespace whose service account has all rights."""
    subject = {"kind": "ServiceAccount", "name": "default", "namespace": app.namespace}
    binding: Json = {
        **RBAC, "kind": "ClusterRoleBinding", "metadata": {"name": f"in-pod-{app.namespace}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                    "name": "cluster-admin"},
        "subjects": [subject],
    }  # fmt: skip
    kube.create(binding)
    (tmp_path / "pod").mkdir()
    for each in ("kubectl-tapp", "kubectl_complete-tapp"):
        shutil.copy(plugin.directory / each, tmp_path / "pod")
    return Pod(cluster, kube, app.namespace, tmp_path / "pod")


def test_every_command_uses_the_service_account_of_its_pod(app: App, pod: Pod) -> None:
    """With a time limit kubectl ignores the service account (kubernetes/kubernetes#49343), so the
    plugin must not set one.
    """
    app.apply(tapp(replicas=2)).settle()
    name = app.name
    assert name in pod.run("kubectl tapp list")
    assert "2 of 2 instances run" in pod.run(f"kubectl tapp status {name}")
    assert "UpToDate" in pod.run(f"kubectl tapp why {name}")
    assert "replicas" in pod.run(f"kubectl tapp plan {name} --replicas 3 -o json")
    assert "written" in pod.run(f"kubectl tapp scale {name} --replicas 3 -y")
    assert "done" in pod.run(f"kubectl tapp wait {name} --timeout 5m")
    assert "TEMPLATE" in pod.run(f"kubectl tapp history {name}")
    assert "nothing to adopt" in pod.run(f"kubectl tapp adopt {name} -y")
    assert f"{name}\n" in pod.run("kubectl __complete tapp why ''")
    assert "0 changes" in pod.run("kubectl tapp migrate --dry-run")
    said = pod.run(f"{sys.executable} -m migration")
    assert f"TApp {app.namespace}/{name}" in said


def test_watch_in_a_pod_continues(app: App, pod: Pod) -> None:
    app.apply(tapp(replicas=1)).settle()
    said = pod.run(f"timeout 20 kubectl tapp status {app.name} -w", code=124)
    assert "1 of 1 instance runs" in said
    assert "error" not in said


PAGE = """
import http.cookiejar, json, re, subprocess, sys, time, urllib.request
name, port, namespace = sys.argv[1:]
command = ["kubectl", "tapp", "web", name, "--port", port]
with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as page:
    lines = [page.stdout.readline().strip() for _ in range(3)]
    jar = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
    found = urllib.request.build_opener(jar)
    shown = found.open(lines[0].split()[-1])
    key = re.search("key=([^&]+)", shown.url)[1]
    asked = f"http://127.0.0.1:{port}/api/tapp?namespace={namespace}&name={name}&since="
    end = time.monotonic() + 120
    while time.monotonic() < end:
        answer = json.load(found.open(urllib.request.Request(asked, headers={"X-TApp-Key": key})))
        if any("tiles" in each for each in answer["changes"]):
            break
        time.sleep(0.2)
    page.terminate()
    page.wait(60)
print(json.dumps({"lines": lines, "answer": answer, "code": page.returncode}))
"""


def test_page_in_a_pod_prints_the_port_forward_command(app: App, pod: Pod) -> None:
    """The command starts no browser there, and listens only on the loopback address of the pod."""
    app.apply(tapp(replicas=2)).settle()
    (port,) = free_ports(1)
    line = shlex.join([sys.executable, "-c", PAGE, app.name, str(port), app.namespace])
    found = json.loads(pod.run(line, POD_NAME="toolbox-0").splitlines()[-1])
    command = f"kubectl port-forward -n {app.namespace} pod/toolbox-0 {port}:{port}"
    assert f"Run `{command}` on your machine" in found["lines"][2]
    tiles = {key: each for one in found["answer"]["changes"] for key, each in one["tiles"].items()}
    assert set(tiles) == {"0", "1"}


def test_commands_in_a_pod_use_the_namespace_of_the_pod(app: App, pod: Pod) -> None:
    """Messages about missing objects name the namespace of the pod as well."""
    assert f"There is no TApp in namespace {app.namespace}" in pod.run("kubectl tapp list")
    assert f"no TApp 'nope' in namespace {app.namespace}" in pod.run(
        "kubectl tapp status nope", code=1
    )
    said = pod.run("kubectl tapp status nope", code=1, POD_NAMESPACE="default")
    assert "no TApp 'nope' in namespace default" in said


def test_error_names_options_that_disable_the_service_account(app: App, pod: Pod) -> None:
    """With such an option, kubectl itself ignores the service account."""
    said = pod.run("kubectl tapp list --request-timeout 10s", code=1)
    assert "uses the service account of this pod only without options" in said
    assert app.namespace in pod.run("kubectl tapp list")


CONFIG: Json = {
    "apiVersion": "v1", "kind": "Config", "current-context": "a",
    "contexts": [{"name": "a", "context": {
        "cluster": "c", "user": "u", "namespace": "mine",
        "extensions": [{"name": "telepresence.io", "extension": {"namespace": "ambassador"}}],
    }}, {"name": "b", "context": {"cluster": "c", "user": "u"}}],
    "preferences": {"extensions": [{"name": "x", "extension": {"namespace": "preferred"}}]},
    "users": [{"name": "u", "user": {}}],
}  # fmt: skip
FILES = {
    "extensions": ("--kubeconfig=c", "mine"),
    "another context": ("--kubeconfig=c --context=b", "default"),
    "given": ("--kubeconfig=c --context=b -n given", "given"),
    "several files, the first counts": ("KUBECONFIG=none:d:c", "other"),
    "several files, a context of the second": ("--context=b KUBECONFIG=d:c", "default"),
}


@pytest.mark.parametrize("case", FILES)
def test_commands_use_the_namespace_of_the_current_context(
    cluster: Cluster, kube: Kube, plugin: Plugin, tmp_path: Path, case: str
) -> None:
    """Extensions in the kubeconfig, such as Telepresence's, may contain another namespace."""
    words, expected = FILES[case]
    admin = yaml.safe_load(cluster.kubeconfig.read_text())
    clusters = [{"name": "c", "cluster": admin["clusters"][0]["cluster"]}]
    users = [{"name": "u", "user": admin["users"][0]["user"]}]
    document = {**CONFIG, "clusters": clusters, "users": users}
    (tmp_path / "c").write_text(yaml.safe_dump(document))
    document["contexts"] = [
        {"name": "a", "context": {"cluster": "c", "user": "u", "namespace": "other"}}
    ]
    (tmp_path / "d").write_text(yaml.safe_dump(document))
    given = [each for each in words.split() if not each.startswith("KUBECONFIG=")]
    named = [each for each in words.split() if each.startswith("KUBECONFIG=")]
    done = subprocess.run(
        ["env", *named, "kubectl", "tapp", "status", "no-such-tapp", *given],
        cwd=tmp_path, env=dict(plugin.environment), capture_output=True, text=True, check=False,
        timeout=120,
    )  # fmt: skip
    assert kube is not None
    assert f"no TApp 'no-such-tapp' in namespace {expected}" in done.stderr
