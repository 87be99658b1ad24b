"""A rollout that a test disturbs, and the properties that must hold at its end after any
disturbance.
"""

from __future__ import annotations

from collections import Counter

from tests.sizes import FULL

from .app import App, each, tapp, template
from .kube import Json
from .kubelet_controls import Levers

INSTANCES = 6
BUDGET = 2
PATIENCE = 500.0 if FULL else 120.0
CUT_OFF = (500, 503, 504)
"""Status codes in the audit log for requests whose client or server went away."""


def image(tag: int) -> Json:
    """Returns a template whose pods tolerate lost nodes, because a slow API server makes nodes look
    lost.
    """
    return template(f"app:{tag}", tolerations=[{"operator": "Exists"}])


class Roll:
    """A rollout of another image in place, a few instances at a time."""

    def __init__(
        self, app: App, levers: Levers, *, instances: int = INSTANCES, budget: int = BUDGET
    ) -> None:
        self._app, self._levers = app, levers
        self._instances, self._budget = instances, budget
        self._born: dict[int, str] = {}
        self._nodes: dict[str, str] = {}

    def create(self, **labels: str) -> Roll:
        """Creates the TApp with these labels, and waits until it is complete."""
        strategy = {"maxUnavailable": self._budget}
        made = tapp(replicas=self._instances, template=image(1), updateStrategy=strategy)
        if labels:
            made["metadata"]["labels"] = labels
        self._app.apply(made).settle(PATIENCE)
        return self

    def begin(self, *, pull_seconds: float = 0.4) -> Roll:
        """Starts the rollout, after it created the TApp if necessary.

        Returns while the rollout is incomplete.
        """
        app = self._app
        if app.found is None:
            self.create()
        self._born, self._nodes = app.uids(), nodes_seen_ready(app)
        self._levers.pull_seconds = pull_seconds
        app.watcher.begin()
        app.patch(template=image(2))
        app.until(
            lambda: app.images().count("app:2") >= self._budget, "the rollout has begun", PATIENCE
        )
        assert app.images().count("app:1") > 0, "too late: all are updated already"
        return self

    def end(self) -> Roll:
        """Waits for the end, and asserts that each instance was updated once, in place, and within
        the budget.
        """
        app = self._app
        app.settle(PATIENCE)
        assert app.images() == " ".join(["app:2"] * self._instances)
        assert app.uids() == self._born
        assert app.restarts() == dict.fromkeys(range(self._instances), 1)
        if nodes_seen_ready(app) == self._nodes:  # on lost nodes, pods do not count as available
            assert app.watcher.fewest >= self._instances - self._budget
        return self

    def wrote_once(self) -> None:
        """Asserts that each child was written once for its creation and once for its update.

        A write that failed because Metacontroller or the API server died may or may not have been
        made.
        """
        app, everyone = self._app, range(self._instances)
        expected = [*each("create pods", "web", *everyone), *each("update pods", "web", *everyone)]
        if not app.counted:
            return
        made: Counter[str] = Counter()
        cut_off: set[str] = set()
        for write in app.news(refused=(404, 409, *CUT_OFF)):
            line = f"{write.what} {write.name}"
            if write.accepted and write.resource in ("pods", "persistentvolumeclaims"):
                made[line] += 1
            elif write.code in CUT_OFF:
                cut_off.add(line)
        assert made.keys() <= set(expected)
        assert [
            line for line in expected if made[line] != 1 and (made[line] or line not in cut_off)
        ] == []
        assert app.idle()


def nodes_seen_ready(app: App) -> dict[str, str]:
    """Returns since when each node has been Ready.

    The time changes if the cluster took a node for lost.
    """
    return {
        node["metadata"]["name"]: condition["lastTransitionTime"]
        for node in app.kube.list_all("v1", "nodes")
        for condition in (node.get("status") or {}).get("conditions") or []
        if condition["type"] == "Ready"
    }
