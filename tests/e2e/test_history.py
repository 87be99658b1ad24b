"""The history of a TApp on the real API server: which ControllerRevisions are written, and which
are not.
"""

from __future__ import annotations

import pytest

from .app import App, tapp, template
from .kube import Json, KubeError

pytestmark = pytest.mark.e2e
NAME = "apps.tkestack.io/template"


def revisions(app: App) -> list[Json]:
    """Returns the ControllerRevisions of the namespace, oldest first."""
    found = app.kube.list_all("apps/v1", "controllerrevisions", app.namespace)
    return sorted(found, key=lambda item: int(item["revision"]))


def history(app: App) -> list[str]:
    """Returns number, template and image of each revision that is not being deleted: `2 default
    app:2`.
    """
    return [
        f"{item['revision']} {item['metadata']['annotations'][NAME]} "
        f"{item['data']['template']['spec']['containers'][0]['image']}"
        for item in revisions(app)
        if not item["metadata"].get("deletionTimestamp")
    ]


def history_is(app: App, *expected: str) -> bool:
    """Waits until the history has these entries. Returns True."""
    app.until(lambda: history(app) == list(expected), f"the history is {expected}")
    return True


def test_revision_is_immutable_and_is_created_again_after_its_deletion(app: App) -> None:
    app.apply(tapp(replicas=1)).settle()
    assert history_is(app, "1 default app:1")
    (made,) = revisions(app)
    with pytest.raises(KubeError, match="immutable"):
        app.kube.replace({**made, "data": {"template": {}}})
    app.kube.delete("apps/v1", "controllerrevisions", app.namespace, made["metadata"]["name"])
    assert history_is(app, "1 default app:1")
    assert app.idle()


def test_orphaned_revisions_stay_and_do_not_disturb_another_tapp(app: App) -> None:
    """The garbage collector patches owners, and the API server compares `data` by its bytes."""
    odd = template("app:1")
    odd["metadata"]["annotations"] = {"zeta": "<&> é \u2028", "alpha": '"\\"'}
    app.apply(tapp(replicas=1, template=odd)).settle()
    assert history_is(app, "1 default app:1")
    app.delete(propagationPolicy="Orphan")
    app.until(
        lambda: not revisions(app)[0]["metadata"].get("ownerReferences"),
        "the revision has no owner",
    )
    app.apply(tapp("other", replicas=1)).settle()
    assert history_is(app, "1 default app:1", "1 default app:1")
