"""Tests that the texts on the page of `kubectl tapp web` name its buttons instead of commands."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from demo.web import session_of
from kubectl_tapp.base.errors import CommandError
from kubectl_tapp.cluster.access import ClusterAccess
from kubectl_tapp.decide.inspection import inspect
from kubectl_tapp.edit.revisions import history_of
from kubectl_tapp.live.model import explanation_of, list_row, model_of
from kubectl_tapp.live.page_words import BUTTONS, in_page_words
from kubectl_tapp.web.changes import OFFERED, Changes
from tests.plugin import test_status_output as status
from tests.plugin.fake_kubectl import StandIn, kubectl_tapp
from tests.plugin.states import calm, crashing, stuck_image, template, web
from tests.plugin.test_inactive_controller import idle
from tests.scenarios.life import Life

TEXTS = {
    "`kubectl tapp resume web -n default` resumes them": '"Resume" resumes them',
    "`kubectl tapp set image web A=B -n x` or `kubectl tapp use web v2 3`": '"Image" or "Template"',
    "on hold; `kubectl tapp why web -n x` shows it": "on hold; a click on the tile shows it",
    "`kubectl describe tapp web -n x` shows the error": "the timeline shows the error",
    "`kubectl tapp adopt web -n x` adopts it": '"Adopt" adopts it',
    "`kubectl tapp values web -n x` shows it": "`kubectl tapp values web -n x` shows it",
    "see `kubectl describe pod web-0`": "see `kubectl describe pod web-0`",
}


@pytest.mark.parametrize("text", TEXTS)
def test_commands_become_buttons_of_the_page(text: str) -> None:
    """A command that the page does not offer stays as it is."""
    assert in_page_words(text) == TEXTS[text]
    assert in_page_words({"a": [text, 1, None]}) == {"a": [TEXTS[text], 1, None]}


def test_buttons_are_the_offered_changes() -> None:
    assert {*BUTTONS} == OFFERED.keys()


def held(life: Life) -> None:
    """Puts instance 2 on hold, and changes the template of all instances."""
    kubectl_tapp(StandIn(life.world), "hold", "web", "2", "--reason", "a match", "-y")
    life.patch(template=template("nginx:1.29"))


def canary(life: Life) -> None:
    """Lets instance 3 run another template of the pool."""
    life.patch(templatePool={"canary": template("nginx:1.29")}, templates={"3": "canary"})


def left_over(life: Life) -> None:
    """Leaves the copy that a canary has made in the pool."""
    standin = StandIn(life.world)
    kubectl_tapp(standin, "set", "image", "web", "*=nginx:1.29", "--canary", "1", "-y")
    kubectl_tapp(standin, "use", "web", "default", "all", "-y")
    life.world.settle()


STATES = (
    calm, stuck_image, crashing, status.killed, status.paused, status.budget, status.over_quota,
    held, canary, left_over,
)  # fmt: skip
CHANGES: dict[str, tuple[dict[str, Any], ...]] = {
    "image": (
        {"template": "default", "images": ["*=nginx:9"]},
        {"template": "default", "images": ["*=nginx:9"], "canary": "1"},
    ),
    "rollback": ({}, {"to": "1"}, {"to": "99"}),
    "advance": ({},),
    "promote": ({},),
    "abort": ({},),
    "restart": ({}, {"ids": ["0"]}),
    "kill": ({"ids": ["1"]},),
    "start": ({"ids": ["1"]},),
    "hold": ({"ids": ["1"], "reason": "a match"},),
    "release": ({"ids": ["1"]},),
    "adopt": ({}, {"ids": ["1"]}),
    "replicas": ({"replicas": "2"},),
}


def _texts(value: Any) -> Iterator[str]:
    """Yields all texts in a value that the page receives, but for what users and kubelets write."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, each in value.items():
            if key not in ("changes", "pictures", "history", "events"):
                yield from _texts(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each)


@pytest.mark.parametrize("state", STATES, ids=lambda it: it.__name__)
def test_page_names_no_command_that_it_offers(state: Callable[[Life], None]) -> None:
    life = Life().apply(web(replicas=4))
    state(life)
    _check_words(StandIn(life.world))


def test_page_names_no_command_if_no_controller_acts() -> None:
    standin, _ = idle(300)
    _check_words(standin)


def _check_words(standin: StandIn) -> None:
    """Collects every text of the page about TApp `web`, and of the plans and errors of changes.

    Fails if a text names a command of the plugin.
    """
    cluster = ClusterAccess({}, standin)
    view = inspect(cluster, cluster.observe("web", events=True), standin.world.clock.unix())
    history = history_of(view.observed)
    said = [*_texts(model_of(view, history)), *_texts(list_row(view.observed.tapp))]
    for id in view.cases:
        said += _texts(explanation_of(view, id, [], history))
    changes = Changes(session_of(standin), lambda *_: None)
    for change, tries in CHANGES.items():
        for values in tries:
            try:
                said += _texts(changes.plan("default", "web", change, values))
            except CommandError as error:
                said.append(str(error))
    assert len(said) > 40
    assert [text for text in said if "kubectl tapp " in text] == []
    assert [text for text in said if "kubectl describe tapp" in text] == []
    # The page replaces the names of options that its forms have.
    options = ("--template", "--partition", "--canary", "--reason", "--to")
    dashed = [text for text in said if " --" in text and not any(it in text for it in options)]
    assert dashed == []
