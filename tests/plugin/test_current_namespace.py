"""Tests which namespace a command has without `-n`: the current context's, otherwise the pod's."""

from pathlib import Path

import pytest

from kubectl_tapp.base.errors import CommandError
from kubectl_tapp.cluster import pod
from kubectl_tapp.cluster.access import ClusterAccess
from kubectl_tapp.cluster.kubectl import CallResult
from tests.plugin.fake_kubectl import StandIn, kubectl_tapp
from tests.plugin.states import web
from tests.scenarios.life import Life

NO_CONTEXT = CallResult(1, "", "error: current-context must exist in order to minify\n")


class View:
    """Simulates a kubectl that supports only `config view`, and stores the arguments of its
    calls.
    """

    def __init__(self, done: CallResult) -> None:
        self.done, self.calls = done, list[list[str]]()

    def run(self, arguments: list[str], stdin: str = "") -> CallResult:  # noqa: ARG002 - kubectl's
        """Stores the arguments, and returns the result that the test has set."""
        self.calls.append([*arguments])
        return self.done

    follow = run


@pytest.fixture
def in_pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Makes the plugin believe that it runs in a pod in the namespace `shop`; returns the account's
    directory.
    """
    monkeypatch.setattr(pod, "_ACCOUNT", tmp_path)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    monkeypatch.delenv("POD_NAMESPACE", raising=False)
    (tmp_path / "token").write_text("t")
    (tmp_path / "namespace").write_text("shop\n")
    return tmp_path


def namespace(done: CallResult, **targets: str) -> str:
    """Returns the namespace of a command if `kubectl config view` has the result `done`.

    `targets` are the options with which the user chooses a cluster or a namespace.
    """
    return ClusterAccess(targets, View(done)).namespace  # type: ignore[arg-type]


def test_namespace_of_the_context_is_used_in_a_pod(in_pod: Path) -> None:
    """In a pod, `-n` comes first, then the namespace of the context, and then that of the pod.

    This is kubectl's order, even if the context has the namespace `default`.
    """
    assert namespace(CallResult(0, "default", "")) == "default"
    assert namespace(CallResult(0, "other", "")) == "other"
    assert namespace(CallResult(0, "other", ""), namespace="mine") == "mine"
    assert namespace(CallResult(0, "", "")) == "shop"
    assert namespace(NO_CONTEXT) == "shop"
    assert in_pod.exists()


def test_variable_overrides_the_namespace_file_in_a_pod(
    in_pod: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POD_NAMESPACE", "from-env")
    assert namespace(NO_CONTEXT) == "from-env"
    (in_pod / "token").unlink()
    assert namespace(NO_CONTEXT) == "default", "kubectl reads the variable only in a pod"


@pytest.mark.parametrize("missing", ["token", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"])
def test_namespace_is_default_outside_of_pods(
    in_pod: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    if missing == "token":
        (in_pod / missing).unlink()
    else:
        monkeypatch.delenv(missing)
    assert namespace(NO_CONTEXT) == "default"


def test_unreadable_kubeconfig_is_an_error() -> None:
    said = 'error: error loading config file "/c": open /c: permission denied\n'
    with pytest.raises(CommandError, match="permission denied"):
        namespace(CallResult(1, "", said))
    with pytest.raises(CommandError, match="cannot locate context mars"):
        namespace(CallResult(1, "", "error: cannot locate context mars\n"))


def test_only_the_namespace_of_the_context_is_read() -> None:
    """The plugin asks kubectl for the path of the current context's namespace only.

    Extensions of a kubeconfig may have namespaces, too, for example those of Telepresence.
    """
    view = View(CallResult(0, "shop", ""))
    targets = {"context": "c", "kubeconfig": "/k"}
    assert ClusterAccess(targets, view).namespace == "shop"  # type: ignore[arg-type]
    path = "--output=jsonpath={.contexts[0].context.namespace}"
    assert view.calls == [["--context=c", "--kubeconfig=/k", "config", "view", "--minify", path]]


def test_kubectl_gets_only_options_that_the_user_gave() -> None:
    """The calls of several commands contain neither a timeout nor an impersonation, unless the user
    asks for it.

    For example, with --request-timeout kubectl ignores the service account of a pod.
    """
    standin = StandIn(Life().apply(web()).world)
    for line in ("list", "status web", "why web", "plan web --replicas 3", "pause web -y",
                 "wait web --for=available", "migrate --dry-run", "history web"):  # fmt: skip
        kubectl_tapp(standin, *line.split())
    options = {word.partition("=")[0] for call in standin.calls for word in call}
    assert not {each for each in options if "timeout" in each or each.startswith("--as")}
    assert all(not call[0].startswith("--") for call in standin.calls)
