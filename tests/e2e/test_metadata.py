"""Labels and annotations that another writer set on a pod, on the real API server.

The real Metacontroller merges the response into the pod, based on its copy of its last write.
"""

from __future__ import annotations

from typing import Any

import pytest

from .app import App, tapp, template
from .kube import Json

pytestmark = pytest.mark.e2e
ROLE = {"app": "web", "role": "replica"}


def labelled_template(image: str = "app:1", **parts: Json) -> Json:
    """Returns a template with a label `role` and an annotation `note`."""
    found = template(image)
    found["metadata"] = {"labels": ROLE, "annotations": {"note": "first"}, **parts}
    return found


def metadata(app: App, number: int) -> tuple[Any, Any]:
    """Returns the label and the annotation of a pod; None if a key is missing."""
    found = app.pod(number)["metadata"]
    return found["labels"].get("role"), found["annotations"].get("note")


@pytest.mark.parametrize("history", [10, 0], ids=["with a history", "without"])
def test_labels_and_annotations_set_by_a_program_stay_through_updates(
    app: App, history: int
) -> None:
    """Updates of another container and another label, and a written default, must not reset the
    values.
    """
    app.apply(tapp(template=labelled_template(), revisionHistoryLimit=history)).settle()
    uids = app.uids()
    app.edit(0, {"metadata": {"labels": {"role": "master"}, "annotations": {"note": "mine"}}})
    app.until(lambda: "MetadataEdited" in str(app.status), "MetadataEdited is reported")
    said = app.condition("MetadataEdited")
    assert "instance 0: label 'role' is 'master' (template: 'replica')" in said
    assert app.condition("Degraded").startswith("False")
    assert app.idle()
    for changed in (
        labelled_template("app:2"),
        labelled_template("app:2", labels={**ROLE, "tier": "gold"}),
        {
            **labelled_template("app:3", labels={**ROLE, "tier": None}),
            "spec": {**labelled_template("app:3")["spec"], "restartPolicy": "Always"},
        },
    ):
        app.patch(template=changed).settle()
        assert [metadata(app, number) for number in range(3)] == [
            ("master", "mine"), ("replica", "first"), ("replica", "first"),
        ]  # fmt: skip
    assert "tier" not in app.pod(0)["metadata"]["labels"]
    assert app.uids() == uids
    assert app.idle()
    app.patch(template=labelled_template("app:3", labels={**ROLE, "role": "standby"})).settle()
    # Without a revision, the service cannot know whether the template has changed a foreign key.
    first = "standby" if history else "master"
    assert [metadata(app, number)[0] for number in range(3)] == [first, "standby", "standby"]
    assert metadata(app, 0)[1] == "mine"
    assert app.uids() == uids


def test_label_removed_by_a_user_does_not_return(app: App) -> None:
    """The label returns only with another value in the template.

    A key that the template loses leaves all pods.
    """
    app.apply(tapp(template=labelled_template())).settle()
    app.edit(1, {"metadata": {"labels": {"role": None}}})
    app.until(
        lambda: "label 'role' was removed" in app.condition("MetadataEdited"),
        "the removed label is reported",
    )
    app.patch(template=labelled_template("app:2")).settle()
    assert [metadata(app, number)[0] for number in range(3)] == ["replica", None, "replica"]
    app.patch(template=labelled_template("app:2", labels={"role": None})).settle()
    assert [metadata(app, number)[0] for number in range(3)] == [None] * 3
    assert app.condition("MetadataEdited") == ""
    assert app.idle()
