"""Tests updates that admission refuses, as on a real API server
(tests/e2e/test_other_tools_security.py).
"""

from typing import Any

import pytest

from simulator.api.admission import Operation
from simulator.api.store import ForbiddenError
from simulator.objects.objects import Object
from tests.scenarios.apps import tapp, template
from tests.scenarios.life import Life

Document = dict[str, Any]


class TightenedPolicy:
    """Refuses updates of pods, as an admission policy for Pod Security that becomes stricter while
    pods run.

    Attributes:
        on: True after the policy has become stricter.
    """

    on = False

    def __call__(self, operation: Operation, obj: Object) -> Object:
        """Returns the object; raises ForbiddenError for an update to the image `root:2` while the
        policy is on.
        """
        watched = self.on and operation == "UPDATE" and obj["kind"] == "Pod"
        if watched and obj["spec"]["containers"][0]["image"] == "root:2":
            raise ForbiddenError(f"pods {obj['metadata']['name']} violates PodSecurity")
        return obj


@pytest.mark.parametrize("budget", [1, 2], ids="maxUnavailable {}".format)
def test_refused_update_uses_the_budget_and_the_other_instances_continue(budget: int) -> None:
    policy = TightenedPolicy()
    life = Life(policies=[policy]).apply(
        tapp(
            replicas=4,
            templatePool={"root": template("root:1")},
            templates={"1": "root"},
            updateStrategy={"maxUnavailable": budget},
        )
    )
    born = life.uids()
    life.watch_readiness()
    policy.on = True
    life.begin_patch(template=template("web:2"), templatePool={"root": template("root:2")})
    life.settle(allow_errors=True)
    others = "web:1" if budget == 1 else "web:2"
    assert life.images() == f"{others} root:1 {others} {others}"
    refused = {write.name for write in life.news() if write.outcome not in ("ok", "conflict")}
    assert refused == {"web-1"}
    policy.on = False
    life.idle()
    assert life.images() == "web:2 root:2 web:2 web:2"
    assert life.uids() == born
    assert life.fewest_ready == 3
