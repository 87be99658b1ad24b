"""Tests every change on the page, by mouse and by keyboard, in a real browser on the simulated
cluster.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from demo.web import template
from tests.web.page_server import Served, cluster, on_port, tapp, until

if TYPE_CHECKING:
    from playwright.sync_api import Page

HOLD = "apps.tkestack.io/hold"
RETRY = "apps.tkestack.io/retry"
CANARY = {"templatePool": {"canary": template("shop", "shop:2.0")}}


@dataclass(frozen=True)
class Case:
    """A change on the page: the input of the user, and the expected result.

    Attributes:
        change: the text of the button.
        done: returns True after the change has been carried out.
        fields: name of a form field -> the text that the user enters; "" leaves it as it is.
        spec: fields of the TApp's spec at the beginning.
        chosen: the first and the last instance that the user selects; None for no selection.
        plan: a text that the plan shows.
    """

    change: str
    done: Callable[[Served], bool]
    fields: dict[str, str] = field(default_factory=dict)
    spec: dict[str, Any] = field(default_factory=dict)
    chosen: tuple[int, int] | None = None
    plan: str = "Changes"


def _image(spec: dict[str, Any]) -> str:
    return str(spec["template"]["spec"]["containers"][0]["image"])


def _annotated(served: Served, id: int) -> str | None:
    found: str | None = served.pod(id)["metadata"].get("annotations", {}).get(HOLD)
    return found


def _is_retried(served: Served) -> bool:
    tapp = served.standin.world.get("TApp", "shop")
    return RETRY in tapp["metadata"].get("annotations", {})


ROLLED_BACK = {"updateStrategy": {"onDeadline": "Rollback"}, "progressDeadlineSeconds": 30}
CASES = {
    "image": Case(
        "Image", lambda it: _image(it.spec()) == "shop:1.1",
        {"template": "default", "image web": "shop:1.1"}, plan="6 in place",
    ),
    "replicas": Case("Replicas", lambda it: it.spec()["replicas"] == 8, {"replicas": "8"}),
    "kill": Case(
        "Kill", lambda it: it.spec()["statuses"] == {"1": "Killed", "2": "Killed"}, {"ids": ""},
        chosen=(1, 2), plan="2 deleted",
    ),
    "start": Case(
        "Start", lambda it: "2" not in it.spec().get("statuses", {}), {"ids": "2"},
        {"statuses": {"2": "Killed"}}, plan="1 created",
    ),
    "template of chosen tiles": Case(
        "Template", lambda it: it.spec().get("templates") == {"3": "canary", "4": "canary"},
        {"template": "canary", "ids": ""}, CANARY, (3, 4),
    ),
    "partition": Case(
        "Partition", lambda it: it.spec()["updateStrategy"]["partition"] == 3, {"to": "3"}
    ),
    "advance": Case(
        "Advance", lambda it: it.spec()["updateStrategy"]["partition"] == 1, {"to": "1"},
        {"updateStrategy": {"partition": 3}},
    ),
    "pause": Case("Pause", lambda it: it.spec()["updateStrategy"]["paused"] is True),
    "resume": Case(
        "Resume", lambda it: not it.spec().get("updateStrategy", {}).get("paused"),
        spec={"updateStrategy": {"paused": True}},
    ),
    "restart": Case(
        "Restart", lambda it: "restartedAt" in str(it.spec()["template"]["metadata"]), {"ids": ""},
        plan="6 recreated",
    ),
    "restart of chosen tiles": Case(
        "Restart", lambda it: "pods/shop-2/eviction" in str(it.standin.writes), {"ids": ""},
        chosen=(1, 2), plan="one after the other",
    ),
    "hold": Case(
        "Hold", lambda it: _annotated(it, 1) == _annotated(it, 2) == "a game is on",
        {"ids": "", "reason": "a game is on"}, chosen=(1, 2), plan="1, 2",
    ),
    "release": Case("Release", lambda it: _annotated(it, 4) is None, {"ids": "4"}, plan="4"),
    "promote": Case(
        "Promote", lambda it: _image(it.spec()) == "shop:2.0", {"template": ""},
        {**CANARY, "templates": {"5": "canary"}},
    ),
    "abort": Case(
        "Abort", lambda it: not it.spec().get("templates"), {"template": ""},
        {**CANARY, "templates": {"5": "canary"}},
    ),
    "rollback": Case("Rollback", lambda it: _image(it.spec()) == "shop:1.0", {"to": ""}),
    "retry": Case("Retry", _is_retried, spec=ROLLED_BACK, plan="in place"),
}  # fmt: skip


def _begun(name: str, case: Case) -> Any:
    standin = cluster(tapp(**case.spec))
    if name == "release":
        standin.world.patch("Pod", "shop-4", {"metadata": {"annotations": {HOLD: "a game"}}})
    if name == "rollback":
        standin.world.patch("TApp", "shop", {"spec": {"template": template("shop", "shop:0.9")}})
    if name == "retry":
        standin.world.kubelet.levers.bad_images.add("shop:0.9")
        standin.world.patch("TApp", "shop", {"spec": {"template": template("shop", "shop:0.9")}})
        standin.world.run(120)
    standin.world.settle()
    return standin


def _killed(page: "Page", ids: str) -> None:
    """Opens the plan for killing the instances that the text `ids` names."""
    page.locator("#i5").wait_for()
    page.locator("#bar").get_by_role("button", name="Kill").click()
    page.locator('#dialog [name="ids"]').fill(ids)
    page.get_by_role("button", name="Show the plan").click()


def _by_mouse(page: "Page", case: Case) -> None:
    if case.chosen:
        first, last = (page.locator(f"#i{id}").bounding_box() for id in case.chosen)
        assert first is not None
        assert last is not None
        page.mouse.move(first["x"] + 20, first["y"] + 20)
        page.mouse.down()
        page.mouse.move(last["x"] + 20, last["y"] + 20, steps=5)
        page.mouse.up()
    page.locator("#bar").get_by_role("button", name=case.change, exact=True).click()
    for name, text in case.fields.items():
        if text:
            found = page.locator(f'#dialog [name="{name}"]')
            if found.evaluate("it => it.tagName") == "SELECT":
                found.select_option(text)
            else:
                found.fill(text)
    show = page.get_by_role("button", name="Show the plan")
    if case.fields:
        show.click()
    page.locator(".plan").get_by_text(re.compile(re.escape(case.plan))).first.wait_for()
    page.get_by_role("button", name="Do it").click()


def _by_keyboard(page: "Page", case: Case) -> None:
    _reach(page, case)
    for number, (name, text) in enumerate(case.fields.items()):
        if number:
            page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.name") == name
        if text and page.evaluate("document.activeElement.tagName") == "SELECT":
            page.keyboard.type(text)
        elif text:
            page.keyboard.press("Control+a")
            page.keyboard.type(text)
    if case.fields:
        if page.evaluate("document.activeElement.tagName") == "SELECT":
            _tab_to(page, "Show the plan")
        page.keyboard.press("Enter")
    page.locator(".plan").get_by_text(re.compile(re.escape(case.plan))).first.wait_for()
    _tab_to(page, "Do it")
    page.keyboard.press("Enter")


def _tab_to(page: "Page", button: str) -> None:
    while page.evaluate("document.activeElement.textContent") != button:
        page.keyboard.press("Tab")


def _reach(page: "Page", case: Case) -> None:
    """Selects the instances of the case in the grid with the keyboard, and opens the form of the
    change.
    """
    if case.chosen:
        page.locator('#grid [tabindex="0"]').focus()
        for _ in range(case.chosen[0]):
            page.keyboard.press("ArrowRight")
        for _ in range(case.chosen[1] - case.chosen[0]):
            page.keyboard.press("Shift+ArrowRight")
    page.locator('#bar [tabindex="0"]').focus()
    while page.evaluate("document.activeElement.textContent") != case.change:
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")


@pytest.mark.parametrize("by", [_by_mouse, _by_keyboard], ids=["by mouse", "by keyboard"])
@pytest.mark.parametrize("name", CASES)
def test_change_shows_its_plan_and_is_carried_out(
    page: "Page", name: str, by: Callable[["Page", Case], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Makes each change: the TApp is not written before the user clicks `Do it`, and then has the
    change.
    """
    case = CASES[name]
    monkeypatch.setattr("kubectl_tapp.web.changes._MAX_WAIT", 2.0)
    with on_port(_begun(name, case), first="/default/shop") as served:
        page.goto(served.door.address)
        page.locator("#i5").wait_for()
        assert not served.standin.writes
        by(page, case)
        page.locator("#dialog").wait_for(state="hidden")
        until(page, lambda: case.done(served))


def test_plan_of_an_old_tapp_is_replaced_by_a_new_one(page: "Page") -> None:
    """Edits the TApp while its plan is shown: the plan is not carried out, and the user can plan
    again.
    """
    with on_port(cluster(tapp()), first="/default/shop") as served:
        page.goto(served.door.address)
        _killed(page, "1")
        page.get_by_role("button", name="Do it").wait_for()
        served.patch({"statuses": {"3": "Killed"}})
        page.get_by_role("button", name="Do it").click()
        page.get_by_role("alert").get_by_text("nothing was written").wait_for()
        assert served.spec()["statuses"] == {"3": "Killed"}
        page.get_by_role("button", name="Plan again").click()
        page.get_by_role("button", name="Do it").click()
        until(page, lambda: served.spec()["statuses"] == {"3": "Killed", "1": "Killed"})


def test_refused_change_has_no_button_to_carry_it_out(page: "Page") -> None:
    """Enters an unknown instance, or a change without effect: the form says why, and has no button
    `Do it`.
    """
    with on_port(cluster(tapp()), first="/default/shop") as served:
        page.goto(served.door.address)
        _killed(page, "9")
        page.locator("#dialog .error").get_by_text("9").wait_for()
        page.get_by_role("button", name="Cancel").click()
        page.locator("#bar").get_by_role("button", name="Replicas").click()
        page.get_by_role("button", name="Show the plan").click()
        page.locator(".plan").get_by_text("no change needed").wait_for()
        assert page.get_by_role("button", name="Do it").count() == 0


def test_read_only_page_has_no_buttons_for_changes(page: "Page") -> None:
    """Opens the page of a server with `--read-only`: it has no buttons for changes.

    test_attacks.py checks that the server refuses changes as well.
    """
    with on_port(cluster(tapp()), first="/default/shop", read_only=True) as served:
        page.goto(served.door.address)
        page.locator("#i5").wait_for()
        assert page.locator("#bar button").count() == 0
