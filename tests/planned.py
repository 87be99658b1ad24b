"""The response of `/plan` for the last sync, computed from the sync's own plan.

This halves the work of tests that look at the plan of every sync. `make full`, the model (for one
sync in four) and the tests of the endpoint call `/plan`.
"""

import json
from collections.abc import Callable
from typing import Any

from hooks.explain import explain
from hooks.wire.request import encode
from tapp.plan import Plan
from tests.sizes import FULL


class LastPlan:
    """A listener that stores the plan of the last sync; `then` is called with the plan, too."""

    def __init__(self, then: Callable[[Plan], None] | None = None) -> None:
        self._then = then
        self._plan: Plan | None = None

    def __call__(self, plan: Plan) -> None:
        self._plan = plan
        if self._then:
            self._then(plan)

    def explained(self) -> Any:
        """Returns the response of `/plan` for the last sync.

        Returns None if the caller has to call `/plan`.
        """
        plan, self._plan = self._plan, None
        return None if plan is None or FULL else json.loads(encode(explain(plan)))
