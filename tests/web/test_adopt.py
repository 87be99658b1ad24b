"""Tests the change "Adopt" on the page, which takes over pods and claims that have no owner."""

from typing import TYPE_CHECKING

import pytest

from demo.web import session_of
from kubectl_tapp.base.errors import CommandError, Exit
from kubectl_tapp.web.changes import Changes
from tests.plugin.fake_kubectl import StandIn
from tests.plugin.test_adopt import CLAIMS, PODS, again, labels, uid
from tests.web.page_server import cluster, on_port, tapp, until

if TYPE_CHECKING:
    from playwright.sync_api import Page


def changes_of(standin: StandIn) -> Changes:
    """Returns the changes of a page for this cluster."""
    return Changes(session_of(standin), lambda *_: None)


def test_orphans_are_adopted_from_the_panel_of_an_instance(page: "Page") -> None:
    """Recreates a TApp whose pods and claims were left behind: the panel of an instance has the
    button, the plan names the objects, and the TApp gets them.
    """
    standin = again("Orphan")
    with on_port(standin, first="/default/web") as served:
        page.goto(served.door.address)
        page.locator("#i1").click()
        page.locator("#why").get_by_text('"Adopt" adopts it').first.wait_for()
        page.locator("#why").get_by_role("button", name="Adopt").click()
        page.locator("#dialog .plan").get_by_text("pod web-1").first.wait_for()
        page.get_by_role("button", name="Do it").click()
        page.locator("#dialog").wait_for(state="hidden")
        until(page, lambda: labels(standin, "pods")["web-1"] == uid(standin))
        page.locator("#i1.ok").wait_for()
        assert labels(standin, "pods")["web-0"] != uid(standin)
        page.locator("#bar").get_by_role("button", name="Adopt").click()
        page.locator('#dialog [name="ids"]').fill("")
        page.get_by_role("button", name="Show the plan").click()
        page.locator("#dialog .plan").get_by_text("0, 2").first.wait_for()
        page.get_by_role("button", name="Do it").click()
        page.locator("#i0.ok").wait_for()
        page.locator("#i2.ok").wait_for()
        owned = labels(standin, "pods") | labels(standin, "persistentvolumeclaims")
        assert {owned[each] for each in (*PODS, *CLAIMS)} == {uid(standin)}


def test_adopt_is_refused_if_the_objects_have_changed_since_the_plan() -> None:
    """Deletes one of the pods after the plan: nothing is adopted, and a new plan is needed."""
    standin = again("Orphan")
    changes = changes_of(standin)
    plan = changes.plan("default", "web", "adopt", {})
    standin.world.delete("pods", "web-2")
    before = labels(standin, "pods")
    with pytest.raises(CommandError, match="pods and claims") as refused:
        changes.do(plan["key"])
    assert refused.value.code == Exit.CHANGED
    assert labels(standin, "pods") == before


def test_plan_without_objects_to_adopt_cannot_be_carried_out() -> None:
    found = changes_of(cluster(tapp())).plan("default", "shop", "adopt", {})
    assert "nothing to adopt" in found["text"]
    assert found["key"] == ""


def test_adopt_says_that_all_pods_have_their_owner(page: "Page") -> None:
    with on_port(cluster(tapp()), first="/default/shop") as served:
        page.goto(served.door.address)
        page.locator("#i5.ok").wait_for()
        page.locator("#bar").get_by_role("button", name="Adopt").click(force=True)
        page.locator("#chosen").get_by_text("all instances have pods and claims").wait_for()
        page.locator("#i0").click()
        page.locator("#why").get_by_role("button", name="Kill").wait_for()
        assert page.locator("#why").get_by_role("button", name="Adopt").count() == 0


def test_page_says_how_to_adopt_pods_of_a_statefulset(page: "Page") -> None:
    """Creates a TApp beside a StatefulSet of this name: the panel has the command that releases the
    pods, and the button that adopts them afterwards.
    """
    standin = again("Orphan")
    # Without the StatefulSet the garbage collector would delete the pods after a while.
    kind = {"apiVersion": "apps/v1", "kind": "StatefulSet"}
    metadata = {"name": "web", "namespace": "default"}
    existing = standin.world.apply({**kind, "metadata": metadata, "spec": {}})
    owner = {**kind, "name": "web", "uid": existing["metadata"]["uid"], "controller": True}
    pods = standin.world.list("pods")
    for pod in pods:
        standin.world.patch(
            "pods", pod["metadata"]["name"],
            {"metadata": {"labels": {"controller-uid": None}, "ownerReferences": [owner]}},
        )  # fmt: skip
    with on_port(standin, first="/default/web") as served:
        page.goto(served.door.address)
        page.locator("#i1").click()
        why = page.locator("#why")
        why.get_by_text("belongs to StatefulSet web").first.wait_for()
        said = why.inner_text()
        assert "kubectl delete statefulset web --cascade=orphan -n default" in said
        assert 'Then use "Adopt"' in said
