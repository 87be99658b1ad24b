"""Tests that the first call of kubectl ends before others run in parallel, so that users log in
only once.
"""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from kubectl_tapp.base.errors import CommandError
from kubectl_tapp.cluster.first_call import FirstCall
from kubectl_tapp.cluster.kubectl import CallResult
from kubectl_tapp.cluster.session import Session
from kubectl_tapp.live.following import Followers
from tests.plugin.fake_kubectl import StandIn, kubectl_tapp
from tests.plugin.states import web
from tests.scenarios.life import Life

DONE = CallResult(0, "", "")
REFUSED = CallResult(1, "", "error: You must be logged in to the server (Unauthorized)\n")


class Login(StandIn):
    """Simulates a kubectl whose credential plugin starts a login in each call until there is a
    token.

    Attributes:
        logins: the number of logins so far.
        token: True after a successful login.
        works: False if every login fails.
    """

    logins = 0
    token = False
    works = True

    def run(self, arguments: Sequence[str], stdin: str = "") -> CallResult:
        """Runs a call after a login, which takes long enough for parallel calls to start another
        login.
        """
        if arguments[0] == "config":
            return super().run(arguments, stdin)
        if not self.token:
            self.logins += 1
            threading.Event().wait(0.3)
            if not self.works:
                return REFUSED
            self.token = True
        return super().run(arguments, stdin)


@pytest.fixture
def login() -> Login:
    """Returns a cluster with a TApp, to which nobody has logged in yet."""
    return Login(Life().apply(web()).world)


@pytest.mark.parametrize(
    "line", ["list", "status web", "why web", "history web", "plan web --replicas 3", "values web",
             "pause web -y", "wait web", "adopt web -y", "migrate --dry-run"],
)  # fmt: skip
def test_command_logs_in_once(login: Login, line: str) -> None:
    kubectl_tapp(login, *line.split())
    assert login.logins == 1


def test_page_with_several_readers_logs_in_once(login: Login) -> None:
    live = Followers(Session(login, login.world.clock.unix))
    followers = [live.all_tapps(), live.one_tapp("default", "web")]
    for each in followers:
        while "lost" not in each.since("")["changes"][0]:
            threading.Event().wait(0.05)
    live.stop()
    assert login.logins == 1


def test_failed_login_is_not_repeated_in_parallel(login: Login) -> None:
    login.works = False
    with pytest.raises(CommandError, match="does not accept your credentials"):
        Session(login).cluster.observe("web")
    assert login.logins == 1


def test_calls_run_in_parallel_after_the_first_response() -> None:
    """After one response, two calls run at the same time.

    A refusal by the API server is a response, too, because it shows that the server knows the user.
    """
    answers = [DONE, CallResult(1, "", "Error from server (NotFound): gone\n")]
    for answer in answers:
        gate = FirstCall()
        gate.run(lambda answer=answer: answer)  # type: ignore[misc]
        both = threading.Barrier(2)
        _in_threads(lambda both=both: both.wait(60), gate)  # type: ignore[misc]


def test_first_call_after_a_pause_runs_alone_again() -> None:
    """An hour after the last response, calls run one after the other again until one gets a
    response.

    The token may have expired in the meantime.
    """
    now = [0.0]
    gate = FirstCall(lambda: now[0])
    gate.run(lambda: DONE)
    now[0] = 3600.0
    running, most = [], []

    def call() -> None:
        running.append(1)
        most.append(len(running))
        threading.Event().wait(0.1)
        running.pop()

    # Each call waits for the previous one, because none gets a response.
    _in_threads(call, gate, CallResult(1, "", "Unable to connect to the server\n"))
    assert most == [1, 1]


def _in_threads(call: Callable[[], object], gate: FirstCall, answer: CallResult = DONE) -> None:
    def run() -> CallResult:
        call()
        return answer

    threads = [threading.Thread(target=gate.run, args=(run,)) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
        assert not each.is_alive()


@pytest.mark.parametrize("name", ["token", "cache"])
def test_sessions_for_other_namespaces_share_the_login(
    login: Login, name: str, tmp_path: Path
) -> None:
    """A session for another namespace waits for the same first call as the session that it comes
    from.

    The web page reads each TApp in its namespace, as the same user.
    """
    given = {"token": "t"} if name == "token" else {"cache_dir": str(tmp_path)}
    session = Session(login).with_options(**given)
    assert session.with_options(namespace="shop").first_call is session.first_call
