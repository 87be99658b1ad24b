"""Tests the page's next steps, its disabled buttons and the timeline of a plan, in a real
browser.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from demo.web import template
from tests.plugin.fake_kubectl import StandIn
from tests.web.page_server import Served, cluster, on_port, tapp, until

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

HOLD = "apps.tkestack.io/hold"
BROKEN = {"template": template("shop", "shop:broken")}


def _image(served: Served) -> str:
    return str(served.spec()["template"]["spec"]["containers"][0]["image"])


@dataclass(frozen=True)
class Step:
    """A next step: the state that needs it, and the effect of its button.

    Attributes:
        label: the text of the button.
        done: returns True after the step was carried out.
        spec: fields of the TApp's spec at the beginning.
        edit: fields of the spec that change then, so that the step is needed.
        held: True if the pod of instance 4 is on hold.
    """

    label: str
    done: Callable[[Served], bool]
    spec: dict[str, Any] = field(default_factory=dict)
    edit: dict[str, Any] = field(default_factory=dict)
    held: bool = False


def _budget(served: Served) -> object:
    return served.spec().get("updateStrategy", {}).get("maxUnavailable")


NEWER = {"template": template("shop", "shop:1.1")}
STEPS = {
    "rollback": Step("Roll back", lambda it: _image(it) == "shop:1.0", edit=BROKEN),
    "budget": Step("Raise budget", lambda it: _budget(it) == 2, edit=BROKEN),
    "resume": Step(
        "Resume updates", lambda it: not it.spec()["updateStrategy"].get("paused"),
        {"updateStrategy": {"paused": True, "maxUnavailable": 2}}, NEWER,
    ),
    "advance": Step(
        "Advance rollout", lambda it: not it.spec()["updateStrategy"].get("partition"),
        {"updateStrategy": {"partition": 3, "maxUnavailable": 2}}, NEWER,
    ),
    "release": Step(
        "Release holds",
        lambda it: HOLD not in (it.pod(4)["metadata"].get("annotations") or {}),
        edit=NEWER, held=True,
    ),
}  # fmt: skip


def _stuck(step: Step) -> StandIn:
    standin = cluster(tapp(**step.spec))
    if step.held:
        standin.world.patch("Pod", "shop-4", {"metadata": {"annotations": {HOLD: "a game"}}})
    standin.world.patch("TApp", "shop", {"spec": step.edit})
    standin.world.settle()
    return standin


@pytest.mark.parametrize("name", STEPS)
def test_next_step_shows_its_plan_and_is_carried_out(page: "Page", name: str) -> None:
    """Clicks the button of each next step: the dialog has the values already, and `Do it` carries
    out the step.

    Nothing is written before `Do it`.
    """
    step = STEPS[name]
    with on_port(_stuck(step), first="/default/shop") as served:
        page.goto(served.door.address)
        page.locator("#next").get_by_text(f'"{step.label}"').first.wait_for(timeout=120_000)
        page.locator("#next").get_by_role("button", name=step.label).click()
        do_it = page.get_by_role("button", name="Do it")
        do_it.wait_for()
        assert not step.done(served)
        do_it.click()
        page.locator("#dialog").wait_for(state="hidden")
        until(page, lambda: step.done(served))


def test_banner_has_the_sentence_before_the_words_of_the_registry(page: "Page") -> None:
    """Breaks a rollout: the banner first has our sentence and then the error of the registry.

    The button `Set another image` opens the form of the image, and gets the focus back.
    """
    with on_port(_stuck(Step("", lambda _: True, edit=BROKEN)), first="/default/shop") as served:
        page.goto(served.door.address)
        page.locator("#stuck p").nth(1).wait_for(timeout=120_000)
        first, second, *_ = page.locator("#stuck p").all_inner_texts()
        assert first == (
            "The rollout is stuck: image shop:broken does not exist; instance 0 does not start; "
            "instances 1-5 wait for it."
        )
        assert "docker.io/library/shop:broken: not found" in second
        button = page.locator("#next").get_by_role("button", name="Set another image")
        button.focus()
        page.keyboard.press("Enter")
        page.locator('#dialog [name="image web"]').wait_for()
        page.get_by_role("button", name="Cancel").click()
        assert page.evaluate("document.activeElement.textContent") == "Set another image"


def test_budget_says_whose_number_it_is_and_why(page: "Page") -> None:
    with on_port(_stuck(Step("", lambda _: True, edit=BROKEN)), first="/default/shop") as served:
        page.goto(served.door.address)
        page.locator("#budget p").get_by_text("uses up the budget").wait_for(timeout=120_000)
        assert page.locator("#budget p").all_inner_texts() == [
            "maxUnavailable 1 of 6 (for template default): at most 1 may be unavailable at a time, "
            "so 5 must stay available; 5 are available now.",
            "Instance 0 is unavailable and uses up the budget: no other instance may become "
            "unavailable.",
        ]
        assert page.locator("#budget .must").inner_text() == "5 of 6 must stay available"


def test_panel_of_an_instance_offers_its_own_buttons(page: "Page") -> None:
    """Opens the panels of a broken and of a stopped instance.

    The first rolls its own template back. The second starts that instance alone. A button without
    an effect says why, and opens no dialog.
    """
    standin = _stuck(Step("", lambda _: True, {"statuses": {"4": "Killed"}}, BROKEN))
    with on_port(standin, first="/default/shop") as served:
        page.goto(served.door.address)
        page.locator("#stuck").get_by_text("The rollout is stuck").wait_for()
        panel = page.locator("#why")

        def button(name: str) -> "Locator":
            return panel.get_by_role("button", name=name, exact=True)

        page.locator("#i4").click()
        panel.get_by_text("Why shop-4").wait_for()
        button("Kill").focus()
        page.keyboard.press("Enter")
        said = panel.get_by_text("Kill has no effect now: instance 4 is stopped.")
        said.wait_for()
        assert not page.locator("#dialog").is_visible()
        button("Start").click()
        page.get_by_role("button", name="Do it").click()
        until(page, lambda: not served.spec().get("statuses"))

        page.locator("#i0").click()
        panel.get_by_text("Why shop-0").wait_for()
        assert panel.locator(".cause").text_content() == (
            "image shop:broken does not exist; instance 0 does not start."
        )
        assert panel.locator(".advised").all_inner_texts() == ["Roll back", "Set another image"]
        button("Set another image").click()
        page.locator('#dialog [name="image web"]').wait_for()
        page.get_by_role("button", name="Cancel").click()
        button("Roll back").click()
        page.get_by_role("button", name="Do it").click()
        until(page, lambda: _image(served) == "shop:1.0")


def test_panel_fills_in_the_template_of_its_instance(page: "Page") -> None:
    """Opens the form of the image for a broken canary: it has the canary's template and image."""
    pool = {"templatePool": {"canary": template("shop", "shop:2.0")}, "templates": {"5": "canary"}}
    broken = {"templatePool": {"canary": template("shop", "shop:broken")}}
    with on_port(_stuck(Step("", lambda _: True, pool, broken)), first="/default/shop") as served:
        page.goto(served.door.address)
        page.locator("#i5.bad").click(timeout=120_000)
        page.locator("#why").get_by_role("button", name="Set another image").click()
        image = page.locator('#dialog [name="image web"]')
        image.wait_for()
        assert page.locator('#dialog [name="template"]').input_value() == "canary"
        assert image.input_value() == "shop:broken"


@pytest.mark.parametrize("width", [360, 1280])
def test_panel_of_a_distant_tile_is_visible(page: "Page", width: int) -> None:
    """Clicks the last tile of many: a wide screen shows both, a narrow one shows the panel."""
    with on_port(cluster(tapp(replicas=400)), first="/default/shop") as served:
        page.set_viewport_size({"width": width, "height": 780})
        page.goto(served.door.address)
        page.locator("#i399").click(timeout=120_000)
        heading = page.locator("#why").get_by_text("Why shop-399")
        heading.wait_for()
        inside = "it => it.getBoundingClientRect().top < innerHeight"
        until(page, lambda: heading.evaluate(inside))
        assert heading.evaluate("it => it.getBoundingClientRect().top > 0")
        if width > 1000:
            until(page, lambda: page.locator("#i399").evaluate(inside))


def test_read_only_panel_has_advice_without_buttons(page: "Page") -> None:
    standin = _stuck(Step("", lambda _: True, edit=BROKEN))
    with on_port(standin, first="/default/shop", read_only=True) as served:
        page.goto(served.door.address)
        page.locator("#i0.bad").click()
        page.locator("#why").get_by_text("go back to the previous revision").wait_for()
        assert page.locator("#why .buttons").count() == 0


def test_read_only_page_has_advice_without_buttons(page: "Page") -> None:
    standin = _stuck(Step("", lambda _: True, edit=BROKEN))
    with on_port(standin, first="/default/shop", read_only=True) as served:
        page.goto(served.door.address)
        page.locator("#next").get_by_text("go back to the previous revision").wait_for()
        assert page.locator("#next button").count() == 0


REASONS = {
    "Rollback": "there is no earlier revision", "Resume": "updates are not paused",
    "Retry": "no revision was rolled back at its deadline",
    "Advance": "no partition keeps instances back", "Promote": "there is no canary",
    "Abort": "there is no canary", "Start": "no instance is stopped",
    "Template": "the only template is default", "Release": "no pod is on hold",
    "Adopt": "all instances have pods and claims of their own",
}  # fmt: skip


def test_buttons_without_effect_say_why_and_open_no_dialog(page: "Page") -> None:
    """Activates each button that has no effect now: the page says why, and opens no dialog.

    Such buttons keep their place in the order of the arrow keys.
    """
    with on_port(cluster(tapp()), first="/default/shop") as served:
        page.goto(served.door.address)
        page.locator("#i5").wait_for()
        page.locator('#bar [aria-disabled="true"]').first.wait_for()
        disabled = page.locator('#bar [aria-disabled="true"]')
        assert set(disabled.all_inner_texts()) == {*REASONS}
        for name, why in REASONS.items():
            button = page.locator("#bar").get_by_role("button", name=name, exact=True)
            assert button.get_attribute("title") == why
            button.focus()
            page.keyboard.press("Enter")
            assert page.locator("#chosen").inner_text() == f"{name} has no effect now: {why}."
            assert not page.locator("#dialog").is_visible()
        groups = page.locator("#bar [role=group]")
        assert [each.get_attribute("aria-labelledby") for each in groups.all()] == [
            "group-Rollout", "group-Instances", "group-Size",
        ]  # fmt: skip
        served.patch({"statuses": {"2": "Killed"}})
        start = page.locator("#bar").get_by_role("button", name="Start", exact=True)
        until(page, lambda: start.get_attribute("aria-disabled") is None)
        start.click()
        page.locator('#dialog [name="ids"]').wait_for()


@pytest.mark.parametrize(
    ("button", "typed", "error"),
    [
        ("Promote", {}, 'name one with "Canary"'),
        ("Budget", {"to": "none"}, '"Number of instances that may be unavailable at a time"'),
    ],
    ids=["promote", "budget"],
)
def test_errors_name_the_fields_of_the_form(
    page: "Page", button: str, typed: dict[str, str], error: str
) -> None:
    """Sends a form with a missing or invalid field: the error names the field, and no option of the
    command line.
    """
    pool = {name: template("shop", "shop:2.0") for name in ("one", "two")}
    spec = {"templatePool": pool, "templates": {"4": "one", "5": "two"}}
    with on_port(cluster(tapp(**spec)), first="/default/shop") as served:
        page.goto(served.door.address)
        page.locator("#i5").wait_for()
        page.locator("#bar").get_by_role("button", name=button, exact=True).click()
        for name, text in typed.items():
            page.locator(f'#dialog [name="{name}"]').fill(text)
        page.get_by_role("button", name="Show the plan").click()
        said = page.locator("#dialog .error")
        said.get_by_text(error).wait_for()
        assert "--" not in said.inner_text()


@pytest.mark.parametrize("width", [360, 1280])
def test_dialog_draws_the_timeline_of_the_plan(page: "Page", width: int) -> None:
    """Opens a plan on a wide screen and on a phone: the dialog has the timeline and is not wider
    than the screen.

    The notes of the plan name the page's fields.
    """
    pool = {"templatePool": {"canary": template("shop", "shop:2.0")}, "templates": {"5": "canary"}}
    with on_port(cluster(tapp(**pool)), first="/default/shop") as served:
        page.set_viewport_size({"width": width, "height": 780})
        page.goto(served.door.address)
        page.locator("#i5").wait_for()
        page.locator("#bar").get_by_role("button", name="Image").click()
        page.locator('#dialog [name="image web"]').fill("shop:1.1")
        page.get_by_role("button", name="Show the plan").click()
        plan = page.locator(".plan")
        plan.get_by_text("5 in place").first.wait_for()
        assert plan.locator("svg").count() == 2
        assert plan.locator("svg .s-updating").count() >= 1
        fill = "it => getComputedStyle(it).fill"
        assert plan.locator("svg .s-updating").first.evaluate(fill) == "rgb(224, 161, 0)"
        said = plan.inner_text()
        assert 'choose canary in the field "Template" to change it' in said
        assert "--" not in said
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        dialog = page.locator("#dialog")
        assert dialog.evaluate("it => it.scrollWidth <= it.clientWidth")
