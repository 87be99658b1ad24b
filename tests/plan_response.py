"""Computes the response of `/plan` for the last sync from that sync's own plan, without a call.

This halves the work of tests that look at the plan of every sync. `make full`, the tests of the
model (for one sync in four) and the tests of the endpoint do call `/plan`.
"""

import json
from collections.abc import Callable
from typing import Any

from hooks.explain import explain
from hooks.wire.request import encode
from tapp.plan import Plan
from tests.sizes import FULL


class LastPlan:
    """Stores the plan of the last sync; the service calls this object with the plan of each sync.

    `then` is a function that receives each plan as well, or None.
    """

    def __init__(self, then: Callable[[Plan], None] | None = None) -> None:
        self._then = then
        self._plan: Plan | None = None

    def __call__(self, plan: Plan) -> None:
        self._plan = plan
        if self._then:
            self._then(plan)

    def explained(self) -> Any:
        """Returns the response that `/plan` would give for the last sync, and forgets the plan.

        Returns None if no plan is stored, or in a full run (FULL=1). The caller then has to call
        `/plan`.
        """
        plan, self._plan = self._plan, None
        return None if plan is None or FULL else json.loads(encode(explain(plan)))
