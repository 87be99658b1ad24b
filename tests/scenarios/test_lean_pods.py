"""Tests pods without managed fields, where only time can prove that some updates are complete."""

import pytest

from simulator.api.admission import lean_pods
from tests.scenarios.apps import tapp, template
from tests.scenarios.life import Life, each


def tapp_with_overtaken_update(*, lean: bool) -> Life:
    """Returns a TApp whose image was changed twice in a row, to two tags of the same image.

    The kubelet still stops the container for the first change. `lean` is True if an admission
    policy removes managed fields.
    """
    life = Life(policies=[lean_pods] if lean else [])
    life.world.kubelet.levers.digests |= {"web:2": "2" * 64, "web:3": "2" * 64}
    life.world.kubelet.levers.stop_seconds = 4.0
    life.apply(tapp(replicas=1, template=template(terminationGracePeriodSeconds=5)))
    life.writes()
    for tag in "23":
        life.begin_patch(template=template(f"web:{tag}", terminationGracePeriodSeconds=5))
        life.world.run(1.0)
    assert life.writes() == each("update Pod", *["web-0"] * 2)
    return life


@pytest.mark.parametrize("lean", [False, True], ids=["normal pods", "lean pods"])
def test_update_to_another_tag_of_the_same_image_is_complete_after_some_time(lean: bool) -> None:
    """The update counts as complete after twice the grace period and a margin, from the kubelet's
    last report.

    The status of the pod shows the same image ID for both tags, so nothing else proves the update.
    """
    life = tapp_with_overtaken_update(lean=lean)
    begun = life.world.clock.now
    life.world.run(30.0)
    assert life.statuses == "Updating"
    assert bool(life.pods[0]["metadata"]["managedFields"]) is not lean
    assert ("settling" in life.status) is lean
    life.until(lambda: life.complete)
    assert 45.0 < life.world.clock.now - begun < 55.0
    assert life.restarts() == {0: 2}
    assert life.writes() == []
    life.idle()
    assert life.news() == []


def test_update_to_another_image_is_complete_when_its_name_is_published() -> None:
    life = Life(policies=[lean_pods]).apply(tapp(replicas=1))
    life.writes()
    life.begin_patch(template=template("web:2"))
    begun = life.world.clock.now
    life.until(lambda: life.complete)
    assert life.world.clock.now - begun < 5.0
    assert "settling" not in life.status
    assert life.writes() == ["update Pod web-0"]
