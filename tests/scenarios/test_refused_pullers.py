"""Tests that updates continue without pullers if the cluster refuses or breaks them."""

import pytest

from simulator.api.store import ForbiddenError
from tests.prepull import is_puller
from tests.scenarios.apps import template
from tests.scenarios.life import Document, Life
from tests.scenarios.pullers import (
    SECONDS,
    Refusal,
    pullers,
    seconds_unavailable,
    tapp_with_slow_registry,
)


def no_image_volumes(operation: str, pod: Document) -> Document:
    """Refuses each new pod with an image volume, as an admission policy; each puller has such a
    volume.
    """
    volumes = (pod.get("spec") or {}).get("volumes") or []
    if operation == "CREATE" and any("image" in volume for volume in volumes):
        raise ForbiddenError("no image volumes here")
    return pod


def assert_update_without_pullers(life: Life, why: str, wait: float = 30) -> None:
    """Checks a rollout for which pullers cannot run: it waits, sets a condition, and then runs
    without pullers.

    The condition contains the text `why`, and the rollout begins after about `wait` seconds. The
    next rollout does not wait.
    """
    life.watch_readiness()
    life.begin_patch(template=template("web:2")).world.run(wait - 5)
    assert life.images() == " ".join(["web:1"] * 5)
    assert life.fewest_ready == 5
    life.world.run(10)
    assert why in life.condition("PullersNotRun")
    assert life.condition("Degraded").startswith("False")
    life.settle()
    assert life.images() == " ".join(["web:2"] * 5)
    assert life.fewest_ready == 4
    assert life.condition("PullersNotRun").endswith("later updates try again")
    assert pullers(life) == {}
    life.begin_patch(template=template("web:3")).world.run(3)
    assert life.images().startswith("web:3")
    while not life.complete:
        life.world.run(1)
        assert life.condition("PullersNotRun")
        assert pullers(life) == {}
    assert life.images() == " ".join(["web:3"] * 5)


def test_updates_continue_if_the_api_server_refuses_pullers() -> None:
    life = tapp_with_slow_registry(policies=[no_image_volumes])
    assert_update_without_pullers(
        life, "it was requested and does not exist; the Events of the TApp show why"
    )


def test_updates_continue_if_kubelets_reject_pullers() -> None:
    life = tapp_with_slow_registry()
    levers = life.world.kubelet.levers
    levers.refuses = is_puller
    assert_update_without_pullers(life, "the kubelet refused its pod (OutOfcpu")


def test_updates_continue_if_the_image_of_the_puller_cannot_be_pulled() -> None:
    """The image that the puller itself runs does not exist, so the rollout continues without
    pullers.

    The wait ends 30 seconds after the puller fails, and not after the time for a pull. The kubelet
    first pulls the new image and then that of the puller, both slowly.
    """
    life = tapp_with_slow_registry(puller_image="example.com/pause:1")
    life.world.kubelet.levers.bad_images.add("example.com/pause:1")
    assert_update_without_pullers(life, "example.com/pause:1", wait=2 * SECONDS + 27)


HOUR = 3600


@pytest.mark.parametrize("retry", ["after an hour", "after prePull was set again"])
def test_no_puller_is_created_for_an_hour_after_a_refusal(retry: str) -> None:
    """After a refused puller, rollouts run without pullers until an hour is over or prePull is set
    again.

    After that, the next rollout creates pullers again.
    """
    refusal = Refusal()
    life = tapp_with_slow_registry(policies=[refusal])
    life.begin_patch(template=template("web:2")).world.run(35)
    said = life.condition("PullersNotRun")
    assert said.startswith(
        "True NoPuller: images are not pulled before updates (prePull): pod web-pull-x"
    )
    life.settle()
    asked = refusal.asked
    life.patch(template=template("web:3"))
    assert refusal.asked == asked
    refusal.active = False
    if retry == "after prePull was set again":
        for pre_pull in (False, True):
            life.patch(updateStrategy={"inPlaceUpdateStrategy": {"prePull": pre_pull}})
        assert life.condition("PullersNotRun") == ""
    else:
        life.world.run(HOUR)
        assert life.condition("PullersNotRun").endswith("later updates try again")
    life.watch_readiness()
    life.begin_patch(template=template("web:4")).world.run(SECONDS / 2)
    assert life.fewest_ready == 5
    assert len(pullers(life)) == 3
    life.settle()
    assert life.condition("PullersNotRun") == ""
    assert not life.status.get("pulling")


def test_condition_stays_while_a_refused_puller_is_tried_again() -> None:
    """An hour after a refusal, one rollout waits half a minute for its puller, with the condition
    unchanged.

    The next rollout does not wait.
    """
    life = tapp_with_slow_registry(policies=[Refusal()])
    life.patch(template=template("web:2"))
    life.world.run(HOUR)
    life.begin_patch(template=template("web:3"))
    for _ in range(25):
        life.world.run(1)
        assert life.condition("PullersNotRun")
    assert life.images() == " ".join(["web:2"] * 5)
    life.settle()
    life.begin_patch(template=template("web:4")).world.run(3)
    assert life.images().startswith("web:4")


def test_pullers_run_one_by_one_if_a_quota_allows_only_one() -> None:
    """A quota allows one puller at a time: each image is still pulled before its update.

    No refusal is reported in a condition.
    """
    refusal = Refusal(most=1)
    life = tapp_with_slow_registry(policies=[refusal])
    refusal.life = life
    life.begin_patch(template=template("web:2"), updateStrategy={"maxUnavailable": 5})
    lost = seconds_unavailable(life)
    assert life.images() == " ".join(["web:2"] * 5)
    assert lost < 5
    assert life.condition("PullersNotRun") == ""


def test_deleted_puller_is_created_again() -> None:
    """Deletes a puller during a pull: it is created again, because a missing puller was not
    necessarily refused.
    """
    life = tapp_with_slow_registry(nodes=1)
    life.world.kubelet.levers.pull_seconds = 60
    life.begin_patch(template=template("web:2")).world.run(45)
    (puller,) = pullers(life).values()
    life.world.delete("Pod", puller["metadata"]["name"])
    life.settle()
    assert life.images() == " ".join(["web:2"] * 5)
    assert life.condition("PullersNotRun") == ""


def test_condition_about_pullers_stays_after_a_pause() -> None:
    life = tapp_with_slow_registry(policies=[Refusal()])
    life.patch(template=template("web:2"))
    life.patch(updateStrategy={"paused": True})
    assert life.condition("PullersNotRun").endswith("later updates try again")
