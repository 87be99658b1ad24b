"""Tests that options of kubectl are passed to kubectl as the user typed them."""

import pytest

from kubectl_tapp.base.global_options import GLOBAL_OPTIONS
from tests.plugin.clusters import one_sentence
from tests.plugin.fake_kubectl import StandIn, kubectl_tapp
from tests.scenarios.apps import tapp
from tests.scenarios.life import Life


@pytest.fixture
def web() -> StandIn:
    """Returns a fake kubectl for a running TApp with one instance."""
    return StandIn(Life().apply(tapp(replicas=1)).world)


VALUED = [name for name, each in GLOBAL_OPTIONS.items() if each.metavar and name != "namespace"]
SWITCHES = [name for name, each in GLOBAL_OPTIONS.items() if not each.metavar]


@pytest.mark.parametrize("name", VALUED)
@pytest.mark.parametrize("where", ["before", "behind"])
def test_option_of_kubectl_is_passed_to_every_call(web: StandIn, name: str, where: str) -> None:
    """An option of kubectl reaches each call once, in each of its spellings, before or behind the
    command.
    """
    for word in GLOBAL_OPTIONS[name].forms:
        typed = [word, "a-value"]
        words = [*typed, "status", "web"] if where == "before" else ["status", "web", *typed]
        web.calls.clear()
        assert kubectl_tapp(web, *words).code == 0
        assert web.calls
        for call in web.calls:
            assert call.count(f"{GLOBAL_OPTIONS[name].forms[-1]}=a-value") == 1


@pytest.mark.parametrize("name", SWITCHES)
def test_switch_of_kubectl_is_passed_to_every_call(web: StandIn, name: str) -> None:
    """A switch of kubectl reaches each call once; `--switch=true` is the switch, `--switch=false`
    is nothing.
    """
    (word,) = GLOBAL_OPTIONS[name].forms
    for typed, count in ((word, 1), (f"{word}=true", 1), (f"{word}=false", 0)):
        web.calls.clear()
        assert kubectl_tapp(web, "list", typed).code == 0
        assert {call.count(f"{word}=true") for call in web.calls} == {count}


def test_repeated_option_is_passed_as_often(web: StandIn) -> None:
    """`--as-group` may be repeated before and behind the command, and each value reaches each call.

    Of other options, the last value counts.
    """
    before = ["--as-group", "dev", "--as", "eve", "--token", "one"]
    behind = ["--as-group=ops", "--as-group=all", "--as", "jane"]
    assert kubectl_tapp(web, *before, "status", "web", *behind).code == 0
    for call in web.calls:
        asked = [word for word in call if word.startswith(("--as", "--token"))]
        assert asked == [
            "--as=jane", "--as-group=dev", "--as-group=ops", "--as-group=all", "--token=one"
        ]  # fmt: skip


def test_only_calls_with_a_namespace_get_the_namespace_option(web: StandIn) -> None:
    assert kubectl_tapp(web, "-n", "default", "list").code == 0
    assert any(call[-3:-1] == ["--namespace", "default"] for call in web.calls)


def test_write_gets_the_options_too(web: StandIn) -> None:
    """Dry runs and writes have the same options of kubectl, because they must be by the same
    user.
    """
    words = ["scale", "web", "--replicas", "2", "-y", "--as-group", "ops", "--server", "https://a"]
    assert kubectl_tapp(web, *words).code == 0
    assert web.writes
    for call in web.calls:
        assert {"--as-group=ops", "--server=https://a"} <= set(call)


def test_unknown_option_is_refused(web: StandIn) -> None:
    one_sentence(kubectl_tapp(web, "list", "--tokens", "x"), "no such option: --tokens")
