"""kubectl's own options reach kubectl, as they were typed."""

import pytest

from kubectl_tapp.base.global_options import GLOBAL_OPTIONS
from tests.plugin.clusters import one_sentence
from tests.plugin.standin import StandIn, kubectl_tapp
from tests.scenarios.apps import tapp
from tests.scenarios.life import Life


@pytest.fixture
def web() -> StandIn:
    """A TApp that runs."""
    return StandIn(Life().apply(tapp(replicas=1)).world)


VALUED = [name for name, each in GLOBAL_OPTIONS.items() if each.metavar and name != "namespace"]
SWITCHES = [name for name, each in GLOBAL_OPTIONS.items() if not each.metavar]


@pytest.mark.parametrize("name", VALUED)
@pytest.mark.parametrize("where", ["before", "behind"])
def test_an_option_of_kubectl_is_passed_on(web: StandIn, name: str, where: str) -> None:
    """To every call of it, in either place, in each spelling."""
    for word in GLOBAL_OPTIONS[name].forms:
        typed = [word, "a-value"]
        words = [*typed, "status", "web"] if where == "before" else ["status", "web", *typed]
        web.calls.clear()
        assert kubectl_tapp(web, *words).code == 0
        assert web.calls
        for call in web.calls:
            assert call.count(f"{GLOBAL_OPTIONS[name].forms[-1]}=a-value") == 1


@pytest.mark.parametrize("name", SWITCHES)
def test_a_switch_of_kubectl_is_passed_on(web: StandIn, name: str) -> None:
    """`--switch=true` is the switch, `--switch=false` is none."""
    (word,) = GLOBAL_OPTIONS[name].forms
    for typed, count in ((word, 1), (f"{word}=true", 1), (f"{word}=false", 0)):
        web.calls.clear()
        assert kubectl_tapp(web, "list", typed).code == 0
        assert {call.count(f"{word}=true") for call in web.calls} == {count}


def test_what_may_be_given_several_times_is_passed_on_as_often(web: StandIn) -> None:
    """Before the command and behind it; of the others the last one counts."""
    before = ["--as-group", "dev", "--as", "eve", "--token", "one"]
    behind = ["--as-group=ops", "--as-group=all", "--as", "jane"]
    assert kubectl_tapp(web, *before, "status", "web", *behind).code == 0
    for call in web.calls:
        asked = [word for word in call if word.startswith(("--as", "--token"))]
        assert asked == [
            "--as=jane", "--as-group=dev", "--as-group=ops", "--as-group=all", "--token=one"
        ]  # fmt: skip


def test_a_namespace_is_asked_for_where_a_call_has_one(web: StandIn) -> None:
    assert kubectl_tapp(web, "-n", "default", "list").code == 0
    assert any(call[-3:-1] == ["--namespace", "default"] for call in web.calls)


def test_a_write_has_them_too(web: StandIn) -> None:
    """The same user asks for what is tried and what is written."""
    words = ["scale", "web", "--replicas", "2", "-y", "--as-group", "ops", "--server", "https://a"]
    assert kubectl_tapp(web, *words).code == 0
    assert web.writes
    for call in web.calls:
        assert {"--as-group=ops", "--server=https://a"} <= set(call)


def test_an_option_that_is_none_of_kubectls_is_refused(web: StandIn) -> None:
    one_sentence(kubectl_tapp(web, "list", "--tokens", "x"), "no such option: --tokens")
