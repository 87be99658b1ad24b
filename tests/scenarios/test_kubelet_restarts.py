"""A kubelet that is started anew in the middle of an update believes what it finds published."""

import pytest

from simulator.api.admission import Policy, lean_pods
from tests.scenarios.apps import tapp, template
from tests.scenarios.life import Life

PROBE = {"exec": {"command": ["true"]}, "periodSeconds": 1, "failureThreshold": 30}


@pytest.mark.parametrize("probe", ["readinessProbe", "startupProbe"])
@pytest.mark.parametrize("policies", [(), (lean_pods,)], ids=["plain", "lean"])
@pytest.mark.parametrize("keeps", [True, False], ids=["1.35", "before"])
def test_a_container_that_no_probe_has_seen_takes_no_other_instance_down(
    probe: str, policies: tuple[Policy, ...], keeps: bool
) -> None:
    """It started in the hook's first second, and serves after the kubelet is back."""
    life = Life(policies=policies)
    behaviour = life.world.kubelet.levers
    behaviour.keeps_ready = keeps
    container = {probe: PROBE, "lifecycle": {"postStart": {"exec": {"command": ["true"]}}}}
    life.apply(tapp(template=template(container=container), replicas=3))
    behaviour.hooks["web:2"], late = 60.0, 30.0
    behaviour.passes["web:2"] = behaviour.starts["web:2"] = late
    life.begin_patch(template=template("web:2", container=container))

    def serving() -> int:
        workers = [life.world.kubelet.worker(pod) for pod in life.pods.values()]
        return sum(each.local.can_serve(life.world.clock.now) for each in workers if each)

    life.world.run(14)
    behaviour.hooks.clear()
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
