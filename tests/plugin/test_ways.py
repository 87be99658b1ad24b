"""How a command ends, whatever it is: one sentence, an exit code, and nothing written."""

import pytest

from tests.plugin.standin import StandIn, kubectl_tapp
from tests.scenarios.life import Life, example


@pytest.fixture
def web() -> StandIn:
    """A TApp that runs."""
    return StandIn(Life().apply(*example("same-template")).world)


def test_status_names_every_instance(web: StandIn) -> None:
    said = kubectl_tapp(web, "status", "same")
    assert said.code == 0
    assert said.err == ""
    assert said.lines[2].split()[:4] == ["0", "default", said.lines[2].split()[2], "nginx:1.28"]


def test_an_unknown_name_is_answered_with_the_nearest(web: StandIn) -> None:
    said = kubectl_tapp(web, "status", "sane")
    assert said.code == 1
    assert said.out == ""
    assert said.err == "error: no TApp 'sane' in namespace default; did you mean 'same'?\n"
