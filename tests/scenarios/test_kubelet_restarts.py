"""Tests a kubelet that restarts during an update, and takes over the published status of its
pods.
"""

import pytest

from simulator.api.admission import Policy, lean_pods
from tests.scenarios.apps import tapp, template
from tests.scenarios.life import Life

PROBE = {"exec": {"command": ["true"]}, "periodSeconds": 1, "failureThreshold": 30}


@pytest.mark.parametrize("probe", ["readinessProbe", "startupProbe"])
@pytest.mark.parametrize("policies", [(), (lean_pods,)], ids=["normal pods", "lean pods"])
@pytest.mark.parametrize("keeps", [True, False], ids=["Kubernetes 1.35", "before Kubernetes 1.35"])
def test_no_other_instance_is_updated_before_a_probe_has_checked_the_new_container(
    probe: str, policies: tuple[Policy, ...], keeps: bool
) -> None:
    """Restarts the kubelet during the update of one of three instances; the other two keep serving.

    The new container starts at once, but serves requests only after the kubelet is back, and its
    status still describes the old container.
    """
    life = Life(policies=policies)
    behaviour = life.world.kubelet.levers
    behaviour.keeps_ready = keeps
    container = {probe: PROBE, "lifecycle": {"postStart": {"exec": {"command": ["true"]}}}}
    life.apply(tapp(template=template(container=container), replicas=3))
    behaviour.post_start_seconds["web:2"], late = 60.0, 30.0
    behaviour.ready_seconds_by_image["web:2"] = behaviour.started_seconds_by_image["web:2"] = late
    life.begin_patch(template=template("web:2", container=container))

    def serving() -> int:
        workers = [life.world.kubelet.worker(pod) for pod in life.pods.values()]
        return sum(each.local.can_serve(life.world.clock.now) for each in workers if each)

    life.world.run(14)
    behaviour.post_start_seconds.clear()
    first = life.pods[0]
    assert serving() == 2
    life.world.kubelet.restart(first["spec"]["nodeName"])
    fewest = 3
    for _ in range(120):
        life.world.run(0.5)
        fewest = min(fewest, serving())
    assert fewest == 2
    life.settle()
    assert life.images() == "web:2 web:2 web:2"
