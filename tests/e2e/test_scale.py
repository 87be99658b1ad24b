"""Three hundred instances: created, rolled in place a quarter at a time, scaled to nothing."""

from __future__ import annotations

from typing import Any

import pytest

from .app import App, tapp, template
from .audit import Write, tally
from .cluster import Cluster
from .metacontroller import USER

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(420)]
INSTANCES = 300
PATIENCE = 180.0


def refused(writes: list[Write]) -> list[str]:
    """Refusals other than lost races."""
    return [
        f"{w.what} {w.name} {w.code}" for w in writes if not w.accepted and w.code not in (404, 409)
    ]


def test_three_hundred_instances(app: App, cluster: Cluster, note: list[str]) -> None:
    def complete(count: int) -> bool:
        found = app.kube.request("GET", app.path)
        status = found.get("status") or {}
        wanted: dict[str, Any] = {
            "observedGeneration": found["metadata"]["generation"],
            "availableReplicas": count,
            "updatedReplicas": count,
        }
        return all(status.get(key) == value for key, value in wanted.items())

    def children(mark: int) -> dict[str, int]:
        """Metacontroller's accepted writes to children since a mark."""
        if cluster.audit is None:
            return {}
        writes = cluster.audit.writes(mark, user=USER, namespace=app.namespace)
        assert refused(writes) == []
        counted = tally([write for write in writes if write.resource == "pods"])
        note.append(f"{INSTANCES} instances: {dict(tally(writes))}")
        return dict(counted)

    def mark() -> int:
        return cluster.audit.mark() if cluster.audit else 0

    begun = mark()
    app.apply(tapp(replicas=INSTANCES, updateStrategy={"maxUnavailable": "25%"}))
    app.until(lambda: complete(INSTANCES), "all are there", PATIENCE)
    assert children(begun) in ({"create pods": INSTANCES}, {})
    born = app.uids()
    assert sorted(born) == list(range(INSTANCES))

    begun = mark()
    app.watcher.begin()
    app.patch(template=template("app:2"))
    app.until(lambda: complete(INSTANCES), "all are updated", PATIENCE)
    assert children(begun) in ({"update pods": INSTANCES}, {})
    assert app.watcher.fewest >= INSTANCES - INSTANCES // 4
    assert app.uids() == born
    assert set(app.images().split()) == {"app:2"}
    assert set(app.restarts().values()) == {1}

    begun = mark()
    app.patch(replicas=0)
    app.until(lambda: complete(0) and not app.pods, "all are gone", PATIENCE)
    assert children(begun) in ({"delete pods": INSTANCES}, {})
    assert app.status["appStatus"] == "Pending"
