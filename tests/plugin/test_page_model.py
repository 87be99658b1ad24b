"""Tests the texts on the page of `kubectl tapp web`: banner, budget, next steps and disabled
buttons.
"""

from collections.abc import Callable

import pytest

from kubectl_tapp.cluster.access import ClusterAccess
from kubectl_tapp.decide.inspection import Inspection, inspect
from kubectl_tapp.decide.progress import Progress
from kubectl_tapp.edit.revisions import history_of
from kubectl_tapp.live.banner import banner
from kubectl_tapp.live.budgets import budget_model
from kubectl_tapp.live.model import explanation_of, model_of
from kubectl_tapp.live.steps import instance_steps, next_steps
from kubectl_tapp.show.offers import without_effect
from tests.plugin.fake_kubectl import StandIn
from tests.plugin.states import calm, crashing, stuck_image, template, web
from tests.scenarios.life import Life, registration


def seen(state: Callable[[Life], None], replicas: int = 4, *, exposing: bool = False) -> Inspection:
    """Returns the plugin's view of a TApp after the function `state` has brought the TApp into a
    state.

    With `exposing`, the components services and disruption-budgets are installed.
    """
    life = Life(exposing=exposing).apply(registration(exposing=exposing))
    life.apply(web(replicas=replicas))
    state(life)
    cluster = ClusterAccess({}, StandIn(life.world))
    return inspect(cluster, cluster.observe("web", events=True), life.world.clock.unix())


BANNERS: dict[Callable[[Life], None], str] = {
    stuck_image: "image nginx:typo does not exist; instance 0 does not start; instances 1-3 wait "
    "for it",
    crashing: "container web of image nginx:bad keeps ending (exit code 1); instances 0-2 "
    "do not run; instance 3 waits for them",
    calm: "",
}


@pytest.mark.parametrize("state", BANNERS, ids=lambda it: it.__name__)
def test_banner_names_cause_effect_and_waiting_instances(state: Callable[[Life], None]) -> None:
    view = seen(state)
    found = banner(view, Progress(view))
    assert found.sentence == BANNERS[state]
    assert bool(found.words) == bool(found.sentence)


@pytest.mark.parametrize("replicas", [1, 2, 3, 12])
def test_budget_has_the_field_and_the_instances_that_use_it_up(replicas: int) -> None:
    """The sentences about the budget name its field and value, and the instance that uses it up.

    With one instance, none has to stay available.
    """
    most = f"maxUnavailable 1 of {replicas} (for template default): at most 1 may be unavailable"
    model = budget_model(seen(calm, replicas))
    keeps = f"{replicas - 1} must stay available" if replicas > 1 else "none has to stay available"
    verb = "is" if replicas == 1 else "are"
    assert model["sentences"][0] == (
        f"{most} at a time, so {keeps}; {replicas} {verb} available now."
    )
    assert model["sentences"][1].endswith("available: 1 may become unavailable.")
    stuck = budget_model(seen(stuck_image, replicas))
    assert stuck["gone"] == 1
    assert stuck["ids"] == "0"
    assert stuck["may"] == 0
    assert stuck["sentences"][1] == (
        "Instance 0 is unavailable and uses up the budget: no other instance may become "
        "unavailable."
    )


def test_budget_has_a_sentence_about_evictions_if_the_spec_limits_them() -> None:
    """The number is that of `disruptionBudget`, and a killed instance does not count."""

    def guarded(life: Life) -> None:
        life.patch(disruptionBudget={"maxUnavailable": "50%"}, statuses={"3": "Killed"})

    sentences = budget_model(seen(guarded, exposing=True))["sentences"]
    assert sentences[1] == (
        "disruptionBudget.maxUnavailable 50% (2) of 3 (for evictions): at most 2 may be "
        "unavailable at a time, so 1 must stay available; 3 are available now."
    )


def test_next_steps_name_the_buttons_that_they_have() -> None:
    view = seen(stuck_image)
    found = next_steps(view, without_effect(view, history_of(view.observed)))
    labels = [each["label"] for each in found["buttons"]]
    assert labels == ["Roll back", "Set another image", "Raise budget"]
    text = " ".join(found["texts"])
    assert all(f'"{label}"' in text for label in labels)
    assert "kubectl" not in text
    budget = next(each for each in found["buttons"] if each["change"] == "budget")
    assert budget["values"] == {"to": "2", "others": False}


def stuck_with_stopped(life: Life) -> None:
    """Stops instance 3, and gives the others an image that cannot be pulled."""
    life.patch(statuses={"3": "Killed"})
    stuck_image(life)


ADVISED = {
    0: {"rollback": {"to": "1"}, "image": {"template": "default"}},
    1: {"budget": {"to": "2", "others": False}},
    3: {},
}
VAIN = {
    0: {"start": "instance 0 is not stopped"},
    1: {"start": "instance 1 is not stopped"},
    3: dict.fromkeys(("restart", "kill", "hold"), "instance 3 is stopped"),
}


@pytest.mark.parametrize("id", ADVISED)
def test_panel_of_an_instance_offers_its_own_changes(id: int) -> None:
    """The panel of a broken, a waiting and a stopped instance first has the buttons of the advice,
    with values. Then it has all changes of the instance, with the reasons of those without effect.
    """
    view = seen(stuck_with_stopped)
    found = instance_steps(view, id, history_of(view.observed))
    advised = {each["change"]: each["values"] for each in found["buttons"] if each["advised"]}
    assert advised == ADVISED[id]
    others = [each for each in found["buttons"] if not each["advised"]]
    assert [each["change"] for each in others] == [
        "restart", "kill", "start", "template", "hold", "release",
    ]  # fmt: skip
    assert all(each["values"] == {"ids": f"{id}"} for each in others)
    assert {each["change"]: each["vain"] for each in others if each["vain"]} == VAIN[id] | {
        "template": "the only template is default",
        "release": f"the pod of instance {id} is not on hold",
    }
    assert all(f'"{each["label"]}"' in " ".join(found["texts"]) for each in found["buttons"]
               if each["advised"])  # fmt: skip


def test_panel_names_the_cause_before_the_words_of_the_registry() -> None:
    view = seen(stuck_with_stopped)
    found = explanation_of(view, 0, [], history_of(view.observed))
    assert found["cause"] == "image nginx:typo does not exist; instance 0 does not start"
    assert "rpc error" in found["message"]
    assert explanation_of(view, 1, [], [])["cause"] == ""


def test_panel_of_an_instance_beyond_replicas_offers_no_change() -> None:
    def shrinking(life: Life) -> None:
        life.begin_patch(replicas=3).world.run(0.5)

    view = seen(shrinking)
    buttons = instance_steps(view, 3, [])["buttons"]
    assert {each["vain"] for each in buttons} == {"spec.replicas is 3"}


def test_first_revision_cannot_be_rolled_back() -> None:
    view = seen(calm)
    vain = without_effect(view, history_of(view.observed))
    assert vain["rollback"] == "there is no earlier revision"
    assert {"image", "replicas", "partition", "budget", "kill"} & vain.keys() == set()


def test_history_on_the_page_names_the_instances_of_each_revision_with_placeholders() -> None:
    """A pod whose template has placeholders has another hash than the revision in the history.

    Revision 3 has the template of revision 2, with another value.
    """

    def kept(life: Life) -> None:
        body = template(container={"env": [{"name": "A", "value": "$(tapp.values.a)"}]})
        life.patch(template=body, defaultValues={"a": "1"})
        life.patch(defaultValues={"a": "2"}, updateStrategy={"partition": 1})

    view = seen(kept)
    shown = model_of(view, history_of(view.observed))["history"]
    assert [(each["number"], each["current"], each["ids"]) for each in shown] == [
        (3, True, "0-2"), (2, False, "3"), (1, False, ""),
    ]  # fmt: skip


def test_budget_of_a_canary_is_raised_if_only_canaries_wait() -> None:
    def canary(life: Life) -> None:
        life.world.kubelet.levers.bad_images.add("nginx:typo")
        life.patch(
            templatePool={"canary": template()},
            templates={"2": "canary", "3": "canary"},
            updateStrategy={"forceUpdate": {"maxUnavailable": 1}},
        )
        life.begin_patch(templatePool={"canary": template("nginx:typo")}).world.run(90)

    view = seen(canary)
    (budget,) = (each for each in next_steps(view, {})["buttons"] if each["change"] == "budget")
    assert budget["values"] == {"to": "2", "others": True}
    assert len(budget_model(view)["sentences"]) == 3
