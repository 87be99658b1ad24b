"""Calls `kubectl tapp` through the real kubectl on a real API server.

The tests cover completion, messages for users with few rights, and the source of messages.
test_commands.py compares the output about TApps with docs/kubectl-tapp.md.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass

import pytest

from .app import App, tapp
from .kube import Json, Kube
from .metacontroller import Controller
from .plugin import Plugin

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
USER = "jane"


@dataclass(frozen=True)
class Said:
    """The exit code and output of a call."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Kubectl:
    """Runs kubectl with the plugin in its PATH."""

    plugin: Plugin
    namespace: str

    def __call__(self, *arguments: str, **environment: str) -> Said:
        """Runs `kubectl ARGUMENTS`."""
        done = subprocess.run(
            ["kubectl", *arguments],
            env={**self.plugin.environment, "COLUMNS": "140", **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        return Said(done.returncode, done.stdout, done.stderr)

    def tapp(self, *arguments: str) -> Said:
        """Runs `kubectl tapp ARGUMENTS` in the test's namespace."""
        return self("tapp", *arguments, "-n", self.namespace)

    def completed(self, *words: str) -> list[str]:
        """Returns kubectl's completions of the last word, without descriptions."""
        offered = self("__complete", "tapp", *words).out.splitlines()
        return [line.partition("\t")[0] for line in offered]


@pytest.fixture
def kubectl(plugin: Plugin, app: App) -> Kubectl:
    """The real kubectl with the plugin, as the cluster's administrator."""
    return Kubectl(plugin, app.namespace)


@pytest.fixture
def jane(kube: Kube, app: App) -> str:
    """A user who may read TApps in the test's namespace, and nothing else."""
    group = {"apiGroup": "rbac.authorization.k8s.io"}
    role: Json = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role"}
    rules = [{"apiGroups": ["apps.tkestack.io"], "resources": ["tapps"], "verbs": ["get", "list"]}]
    meta = {"name": "reads-tapps", "namespace": app.namespace}
    kube.create({**role, "metadata": meta, "rules": rules})
    binding = {
        **role,
        "kind": "RoleBinding",
        "metadata": meta,
        "subjects": [{**group, "kind": "User", "name": USER}],
        "roleRef": {**group, "kind": "Role", "name": "reads-tapps"},
    }
    kube.create(binding)
    return USER


def test_kubectl_completes_arguments_of_the_plugin(app: App, kubectl: Kubectl) -> None:
    """Commands, names, instances, flags and namespaces pass through cobra's completion."""
    app.apply(tapp(replicas=3))
    assert {"status", "why", "list", "migrate"} <= set(kubectl.completed(""))
    assert sorted(kubectl.completed("sta")) == [":4", "start", "status"]
    there = ("-n", app.namespace)
    assert kubectl.completed("status", *there, "w") == ["web", ":4"]
    assert kubectl.completed("why", *there, "web", "") == ["all", "0", "1", "2", ":4"]
    assert "--watch" in kubectl.completed("status", "--w")
    assert app.namespace in kubectl.completed("status", "-n", "tapp-e2e-")
    assert kubectl.completed("status", "--context", "nowhere", "w") == [":4"]


def test_user_without_rights_to_pods_sees_the_data_of_the_tapp(
    app: App, kubectl: Kubectl, jane: str
) -> None:
    """The output must name the refused reads, and must not guess the missing objects."""
    app.apply(tapp(replicas=2))
    app.settle()
    said = kubectl.tapp("status", "web", "--as", jane)
    assert said.code == 0
    assert ["1", "default", "Running"] in [line.split() for line in said.out.splitlines()]
    assert f'note: no permission: pods is forbidden: User "{jane}" cannot list' in said.err
    said = kubectl.tapp("why", "web", "--as", jane)
    assert said.code == 1
    assert said.out == ""
    assert said.err.startswith(f'error: no permission: pods is forbidden: User "{jane}"')
    said = kubectl("tapp", "list", "-A", "--as", jane)
    assert said.code == 1
    assert said.out == ""
    assert "at the cluster scope" in said.err
    said = kubectl.tapp("status", "web", "--as", "nobody")
    assert said.code == 1
    assert said.out == ""
    assert said.err.startswith("error: no permission: tapps.apps.tkestack.io")


@pytest.mark.parametrize(
    ("arguments", "environment", "sentence", "code"),
    [
        (["--context", "mars"], {}, "Error in configuration: context was not found", 2),
        (["--kubeconfig", "/nowhere"], {}, "kubectl: stat /nowhere: no such", 1),
        ([], {"KUBECONFIG": "/dev/null"}, "no cluster: no kubeconfig with a current context", 1),
    ],
    ids=["an unknown context", "a missing kubeconfig", "no current context"],
)
def test_missing_cluster_is_reported_in_one_sentence(
    kubectl: Kubectl, arguments: list[str], environment: dict[str, str], sentence: str, code: int
) -> None:
    said = kubectl("tapp", "status", "web", *arguments, **environment)
    assert said.code == code, said
    assert said.out == "", said
    assert said.err.startswith(f"error: {sentence}"), said
    assert said.err.count("\n") == 1


def test_refused_pod_is_reported_with_the_message_of_the_api_server(
    app: App, kubectl: Kubectl, kube: Kube, tapps: Controller
) -> None:
    """Causes are the name of another pod, a quota, a missing account and a missing priority
    class.
    """
    app.apply(tapp(replicas=2))
    app.settle()
    body: Json = {"containers": [{"name": "x", "image": "app:1"}]}
    pod: Json = {"apiVersion": "v1", "kind": "Pod", "spec": body}
    kube.create({**pod, "metadata": {"name": "web-2", "namespace": app.namespace}})
    app.patch(replicas=3)
    app.until(lambda: "PodsNotCreated" in str(app.status), "PodsNotCreated is reported")
    command = f"`kubectl tapp adopt web -n {app.namespace}`"
    taken = "instance 2: not created: another pod with the same name exists, and has no owner; "
    taken += command
    for verb in ("status", "why"):
        said = kubectl.tapp(verb, "web")
        assert said.code == 0
        assert said.err == ""
        assert taken in said.out
    kube.delete("v1", "pods", app.namespace, "web-2", gracePeriodSeconds=0)
    app.trigger_sync()
    app.until(lambda: app.status.get("readyReplicas") == 3, "instance 2 is ready")
    assert "not created" not in kubectl.tapp("why", "web").out
    if not tapps.real:
        return
    app.quota("few", pods="3")
    account: Json = {"containers": body["containers"], "serviceAccountName": "nobody"}
    urgent: Json = {"containers": body["containers"], "priorityClassName": "urgent"}
    app.patch(
        replicas=6,
        templatePool={"account": {"spec": account}, "urgent": {"spec": urgent}},
        templates={"4": "account", "5": "urgent"},
    )
    words = {
        3: "forbidden: exceeded quota: few, requested: pods=1, used: pods=3, limited: pods=3",
        4: 'forbidden: error looking up service account .*: serviceaccount "nobody" not found',
        5: "forbidden: no PriorityClass with name urgent was found",
    }

    def all_refusals_shown() -> bool:
        out = kubectl.tapp("status", "web").out
        refuses = "not created: the API server refused the pod:"
        return all(re.search(f"{id}: {refuses} {text}", out) for id, text in words.items())

    app.until(all_refusals_shown, "each instance shows its refusal")
    said = kubectl.tapp("wait", "web", "3", "--timeout=2m")
    assert said.code == 4
    assert "exceeded quota: few" in said.err
    kube.delete("v1", "resourcequotas", app.namespace, "few")
    app.trigger_sync()
    app.until(lambda: app.status.get("readyReplicas") == 4, "instance 3 is ready")
    out = kubectl.tapp("why", "web").out
    assert "exceeded quota" not in out
    assert "serviceaccount" in out
