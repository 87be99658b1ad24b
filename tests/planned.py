"""The answer of `/plan` to the sync just answered, from that sync's own plan: half the work.

A world or a life looks at the plan of each of its syncs. `make full` asks `/plan` itself, and so do
the model, a sync in four, and the tests of that endpoint.
"""

import json
from collections.abc import Callable
from typing import Any

from hooks.explain import explain
from hooks.wire.request import encode
from tapp.plan import Plan
from tests.sizes import FULL


class LastPlan:
    """Stands where the service hands a sync's plan on to be resized; `then` gets it as well."""

    def __init__(self, then: Callable[[Plan], None] | None = None) -> None:
        self._then = then
        self._plan: Plan | None = None

    def __call__(self, plan: Plan) -> None:
        """Keep it, until it is asked for."""
        self._plan = plan
        if self._then:
            self._then(plan)

    def explained(self) -> Any:
        """The answer of `/plan` to the request of the last sync; None if it is to be asked."""
        plan, self._plan = self._plan, None
        return None if plan is None or FULL else json.loads(encode(explain(plan)))
