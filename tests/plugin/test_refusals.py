"""Tests invalid input and failures: one error, an exit code, no other output, and no write."""

from collections.abc import Callable

import pytest

from kubectl_tapp.cluster.kubectl import CallResult, error_of
from tests.plugin.fake_kubectl import StandIn, kubectl_tapp
from tests.plugin.states import web
from tests.scenarios.life import Life

PERMISSION = 'User "jane" cannot list resource'
REFUSED = (
    "E1122 10:46:03.141592   28 memcache.go:265] couldn't get current server API group list: dial\n"
    "E1122 10:46:03.141593   28 memcache.go:265] couldn't get current server API group list: dial\n"
    "The connection to the server 127.0.0.1:6443 was refused - did you specify the right host or "
    "port?\n"
)


@pytest.fixture(scope="module")
def life() -> Life:
    """Returns a simulated cluster with a running TApp that no test of this file changes."""
    return Life().apply(web())


@pytest.fixture
def standin(life: Life) -> StandIn:
    """Returns a fake kubectl for the running TApp, with an empty list of calls."""
    return StandIn(life.world)


def forbid(*pairs: str) -> Callable[[StandIn], object]:
    """Returns a function that takes these permissions from the user, for example `list pods`."""
    return lambda standin: standin.forbid(*pairs)


def fail(said: str) -> Callable[[StandIn], object]:
    """Returns a function that makes every call of kubectl that reads fail with this error."""
    return lambda standin: standin.failing.update({"get": said})


def nothing(standin: StandIn) -> None:
    """Changes nothing, so that every call of kubectl works."""


def no_definition(standin: StandIn) -> None:
    """Removes the CRD of TApps from the cluster."""
    standin.missing.add("tapps")


CASES = [
    (nothing, "status wbe", 1, "no TApp 'wbe' in namespace default; did you mean 'web'?"),
    (nothing, "status tapp/wbe", 1, "no TApp 'wbe' in namespace default; did you mean 'web'?"),
    (nothing, "why zzz", 1, "no TApp 'zzz' in namespace default; known names: 'web'"),
    (nothing, "status web -n other", 1, "no TApp 'web' in namespace other; `kubectl tapp list -A`"),
    (nothing, "why web 9", 2, "there is no instance 9: the instances are 0 to 3"),
    (nothing, "why web 2-9", 2, "there are no instances 4-9: the instances are 0 to 3"),
    (nothing, "why web 3-1", 2, "'3-1' is not a list of instances: write 3, 0-3,7 or all"),
    (nothing, "why web one", 2, "'one' is not a list of instances: write 3, 0-3,7 or all"),
    (nothing, "why web -o xml", 2, "invalid value for '-o' / '--output': 'xml' is not one of"),
    (nothing, "status", 2, "missing argument 'NAME'"),
    (nothing, "status web --wach", 2, "no such option: --wach"),
    (nothing, "stats web", 2, "no such command 'stats'"),
    (nothing, "status web -w -o json", 2, "--watch and --output cannot be used together"),
    (no_definition, "status web", 1, "this cluster does not know TApps: check --context"),
    (no_definition, "list", 1, "this cluster does not know TApps: check --context"),
    (forbid("get tapps"), "status web", 1, "no permission: tapps.apps.tkestack.io is forbidden"),
    (forbid("list tapps"), "list", 1, "no permission: tapps.apps.tkestack.io is forbidden: User"),
    (forbid("list pods"), "why web", 1, f"no permission: pods is forbidden: {PERMISSION}"),
    (forbid("list tapps"), "status wbe", 1, "no TApp 'wbe' in namespace default; `kubectl tapp"),
    (fail(REFUSED), "status web", 1, "no cluster: The connection to the server 127.0.0.1:6443"),
    (
        fail('error: context "mars" does not exist\n'),
        "list", 2, 'context "mars" does not exist; `kubectl config get-contexts` lists the contexts'
    ),
    (
        fail('error: context "mars" does not exist\n'),
        "list --kubeconfig=b.yaml --context=mars", 2, 'context "mars" does not exist; '
        "`kubectl config get-contexts --kubeconfig=b.yaml` lists the contexts",
    ),
    (
        fail("Unable to connect to the server: context deadline exceeded (Client.Timeout)\n"),
        "status web", 1, "the cluster did not answer in time (Unable to connect",
    ),
    (
        fail("Unable to connect to the server: dial tcp: lookup nowhere: no such host\n"),
        "status web", 1, "no cluster: Unable to connect to the server: dial tcp: lookup nowhere",
    ),
    (
        fail("Unable to connect to the server: tls: failed to verify certificate: x509: unknown\n"),
        "status web", 1, "the cluster's certificate is not trusted: Unable to connect",
    ),
    (
        fail("error: You must be logged in to the server (Unauthorized)\n"),
        "status web", 1, "the cluster does not accept your credentials: You must be logged in",
    ),
    (
        fail("Error from server (InternalError): etcdserver: leader changed\n"),
        "status web", 1, "etcdserver: leader changed",
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("around", "line", "code", "sentence"),
    CASES,
    ids=[f"{case[1]}-{case[3][:24]}" for case in CASES],
)
def test_problem_is_one_error(
    standin: StandIn, around: Callable[[StandIn], object], line: str, code: int, sentence: str
) -> None:
    around(standin)
    said = kubectl_tapp(standin, *line.split())
    assert said.code == code
    assert said.out == ""
    assert said.err.startswith(f"error: {sentence}")
    assert said.err.count("\n") == 1
    assert standin.writes == []


def test_invalid_spec_is_an_error_with_the_path_of_the_field() -> None:
    life = Life().apply(web())
    kind = life.world.kinds.find("tapps")
    life.world.cluster.edit(
        kind, life.tapp, lambda old: {**old, "spec": {**old["spec"], "replicas": "four"}}
    )
    said = kubectl_tapp(StandIn(life.world), "status", "web")
    assert said.code == 1
    assert said.err.startswith("error: TApp web is invalid: parent.spec.replicas")


def test_forbidden_pods_are_reported_and_the_rest_is_shown(standin: StandIn) -> None:
    """Without permission for pods, claims and events, `status` notes that and prints the TApp's own
    status.
    """
    standin.forbid("list pods", "list persistentvolumeclaims", "list events")
    said = kubectl_tapp(standin, "status", "web")
    assert said.code == 0
    assert said.err.splitlines() == [
        'note: no permission: pods is forbidden: User "jane" cannot list resource "pods" in API '
        'group "" in the namespace "default"',
        "note: no permission: persistentvolumeclaims is forbidden: "
        'User "jane" cannot list resource "persistentvolumeclaims" in API group "" in the '
        'namespace "default"',
        'note: no permission: events is forbidden: User "jane" cannot list resource "events" in '
        'API group "" in the namespace "default"',
    ]
    assert said.lines[0] == "default/web: Running, 4/4 ready, 4 up to date, 4 available"
    assert said.lines[2].split() == ["0", "default", "Running"]


@pytest.mark.parametrize(
    "resource", ["compositecontrollers", "namespaces", "controllerrevisions", "deployments"]
)
def test_objects_that_only_operators_may_read_are_not_needed(
    standin: StandIn, resource: str
) -> None:
    everything = kubectl_tapp(standin, "status", "web")
    standin.forbid(f"list {resource}", f"get {resource}")
    assert kubectl_tapp(standin, "status", "web") == everything


@pytest.mark.parametrize(
    ("said", "reason", "sentence"),
    [
        ("", "", "kubectl ended with code 1 without a message"),
        ("E1122 10:46:03.1 1 x.go:1] only this\n", "", "kubectl: E1122 10:46:03.1 1 x.go:1] only"),
        ("Error from server: oops\n", "", "oops"),
        ("error: exec plugin: getting credentials: exit 1\n", "Unauthorized", "the cluster does"),
        (
            'Error from server (Conflict): Operation cannot be fulfilled on tapps "web"\n',
            "Conflict", 'Operation cannot be fulfilled on tapps "web"',
        ),
    ],
)  # fmt: skip
def test_error_of_kubectl_becomes_one_sentence(said: str, reason: str, sentence: str) -> None:
    error = error_of(CallResult(1, "", said))
    assert error.reason == reason
    assert str(error).startswith(sentence)
