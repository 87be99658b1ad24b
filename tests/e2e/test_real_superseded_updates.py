"""Updates that overtake each other on a real kubelet, which handles one spec at a time.

The kubelet publishes the newest generation while the container of the previous spec is running and
ready. Only then it kills that container, which takes the whole grace period.
"""

from __future__ import annotations

from typing import Any

import pytest

from .kube import Json
from .realnode.trial import Trial
from .realnode.workloads import PROBE, container, environment

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
GRACE = 6
DEAF = {"env": environment(IGNORE_TERM=1)}
"""Fields of a container that ignores SIGTERM, and so lives for its whole grace period."""


def deaf(tag: str, **fields: Any) -> Json:
    """Returns a container of this image that ignores SIGTERM."""
    return container(tag, **DEAF, **fields)


@pytest.mark.parametrize("probe", [{}, {"readinessProbe": PROBE}], ids=["no probe", "readiness"])
def test_second_edit_while_a_container_is_stopped_keeps_the_budget(
    real: Trial, probe: Json
) -> None:
    """The image in between runs for a moment, which must not count as a finished update."""
    pod = {"terminationGracePeriodSeconds": GRACE}
    real.create(deaf("1", **probe), pod=pod)
    real.change(deaf("2", **probe), **pod).wait(2)
    real.roll(deaf("3", **probe), **pod)
    assert real.never_fewer_than(2)
    assert real.tags() == "3 3 3"


def test_rollback_while_the_first_image_is_stopped_keeps_the_budget(real: Trial) -> None:
    """The wanted image runs all the time, but in a container that is being killed."""
    pod = {"terminationGracePeriodSeconds": GRACE}
    real.create(deaf("1"), pod=pod)
    real.change(deaf("2"), **pod).wait(2)
    real.roll(deaf("1"), **pod)
    assert real.never_fewer_than(2)
    assert set(real.runs().values()) == {"1"}


def test_edits_in_quick_succession_keep_the_budget(real: Trial) -> None:
    pod = {"terminationGracePeriodSeconds": 3}
    real.create(deaf("1"), replicas=4, pod=pod, updateStrategy={"maxUnavailable": 2})
    for tag in ("2", "3", "1", "2", "1", "3"):
        real.change(deaf(tag), **pod).wait(1.5)
    real.app.settle(120)
    assert real.never_fewer_than(2)
    assert real.tags() == "3 3 3 3"


def test_edit_during_a_liveness_restart_keeps_the_budget(real: Trial) -> None:
    """The kubelet starts the old image once more, publishes it as new, and kills it."""
    pod = {"terminationGracePeriodSeconds": GRACE}
    alive = {"livenessProbe": PROBE | {"failureThreshold": 1}}
    real.create(deaf("1", **alive), pod=pod)
    real.spoil(0)
    real.wait(2.5)  # by now the probe has failed, and the container is being killed
    real.roll(deaf("2", **alive), **pod)
    assert real.never_fewer_than(2)
    assert real.tags() == "2 2 2"


def test_edit_during_a_post_start_hook_keeps_the_budget(real: Trial) -> None:
    """The kubelet handles the new image only after the hook of the old one has ended."""
    pod = {"terminationGracePeriodSeconds": GRACE}
    hook = {"lifecycle": {"postStart": {"exec": {"command": ["sleep", "4"]}}}}
    real.create(deaf("1", **hook), pod=pod)
    real.kill(0)
    real.app.until(
        lambda: "web-0/main" not in real.runs(), "the container of instance 0 has ended", 120
    )
    real.app.until(
        lambda: "web-0/main" in real.runs(), "the container of instance 0 is in its hook", 120
    )
    real.witness.begin(real.app.namespace)
    real.roll(deaf("2", **hook), **pod)
    assert real.never_fewer_than(2)
    assert real.tags() == "2 2 2"


@pytest.mark.parametrize(
    "tags", [("2-again", "3"), ("3", "2-again")], ids=["and on", "and back under another name"]
)
def test_edit_after_another_name_of_the_same_image_keeps_the_budget(
    real: Trial, tags: tuple[str, str]
) -> None:
    """The status of such a container never shows the image of the spec."""
    pod = {"terminationGracePeriodSeconds": 3}
    real.create(deaf("2"), pod=pod)
    real.change(deaf(tags[0]), **pod).wait(1.5)
    real.roll(deaf(tags[1]), seconds=200, **pod)
    assert real.never_fewer_than(2)
    assert real.tags() == " ".join([tags[1]] * 3)
    assert set(real.runs().values()) <= {tags[1], "2"}


def test_two_containers_stopped_one_after_another_keep_the_budget(real: Trial) -> None:
    """No status between the two kills may look like a finished update."""
    pod = {"terminationGracePeriodSeconds": 3}
    real.create(deaf("1"), deaf("1", name="side"), pod=pod, counted=("main", "side"))
    real.change(deaf("2"), deaf("1", name="side"), **pod).wait(1)
    real.roll(deaf("2"), deaf("3", name="side"), **pod)
    assert real.never_fewer_than(2)
    assert set(real.runs().values()) == {"2", "3"}
