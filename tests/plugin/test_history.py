"""Tests the history as users read it, and which revision a rollback restores."""

import json
from typing import Any

import pytest

from kubectl_tapp.base.errors import CommandError
from kubectl_tapp.base.observed import Observed
from kubectl_tapp.cluster.access import ClusterAccess
from kubectl_tapp.cluster.kubectl import CallResult
from kubectl_tapp.commands.act import warnings
from kubectl_tapp.edit.revisions import history_of, rollback_target
from tapp.declared.lookup import resolve_templates
from tapp.declared.model import TAppSpec
from tapp.declared.templates import Template
from tests.builders import tapp, template

Document = dict[str, Any]
ONE, TWO, THREE = (template(f"nginx:{number}") for number in (1, 2, 3))


def digest(body: Document) -> str:
    """Returns the revision (the hash) of a pod template."""
    spec = TAppSpec.model_validate({"template": body})
    found = resolve_templates(spec).named("default")
    assert isinstance(found, Template)
    return found.revision


def record(number: int, body: Document, name: str = "default", **metadata: Any) -> Document:
    """Returns a ControllerRevision of a template like those of the service.

    `number` is its revision number, `name` the template's name, and `metadata` has further
    metadata.
    """
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": f"web-{number}",
            "creationTimestamp": f"2026-01-05T1{number}:00:00Z",
            "labels": {"tapp_template_hash_key": digest(body)},
            "annotations": {"apps.tkestack.io/template": name},
            **metadata,
        },
        "revision": number,
        "data": {"template": body},
    }


def seen(*records: Document, **spec: Any) -> Observed:
    """Returns a TApp with three instances and these ControllerRevisions, as the plugin reads it."""
    given = {"replicas": 3, "template": THREE, **spec}
    return Observed(tapp(**given), revisions=list(records))


def target(observed: Observed, to: str | None = None, template: str | None = None) -> int:
    """Returns the number of the revision that a rollback restores.

    `to` is the option `--to`, and `template` the option `--template`; None if the user does not
    give it.
    """
    spec = TAppSpec.model_validate(observed.tapp["spec"])
    return rollback_target(history_of(observed), spec, to, template).number


def test_history_shows_the_changes() -> None:
    env = template("nginx:3", container={"env": [{"name": "A", "value": "1"}]})
    found = history_of(seen(record(3, env), record(1, ONE), record(2, THREE), template=env))
    assert [each.number for each in found] == [1, 2, 3]
    assert [each.summary for each in found] == [
        "first revision", "app: nginx:1 → nginx:3", "spec.containers[app].env",
    ]  # fmt: skip
    assert [each.current for each in found] == [False, False, True]


def test_each_template_has_its_own_history() -> None:
    pool = {"v2": TWO}
    observed = seen(record(1, ONE), record(2, TWO, "v2"), record(3, THREE), templatePool=pool)
    assert [each.summary for each in history_of(observed)] == [
        "first revision", "first revision", "app: nginx:1 → nginx:3",
    ]  # fmt: skip


def rolled_back(number: int, body: Document) -> Document:
    """Returns the ControllerRevision of the template `body` after a rollback to it, which has given
    it the number `number`.
    """
    found = record(number, body)
    notes = {**found["metadata"]["annotations"]}
    notes["kubernetes.io/change-cause"] = f"kubectl tapp rollback web --to {digest(body)}"
    return record(number, body, annotations=notes)


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        # 1 became 4.
        ((record(2, TWO), record(3, THREE), rolled_back(4, ONE)),
         ["app: nginx:1 → nginx:2", "app: nginx:2 → nginx:3", "app: nginx:3 → nginx:1"]),
        # Then 3 became 5.
        ((record(2, TWO), rolled_back(4, ONE), rolled_back(5, THREE)),
         ["app: nginx:1 → nginx:2", "app: nginx:3 → nginx:1", "app: nginx:1 → nginx:3"]),
        # The missing record was renumbered by hand, or deleted.
        ((record(2, TWO), record(3, THREE)),
         ["app: nginx:2 (revision 1 is not kept)", "app: nginx:2 → nginx:3"]),
        ((record(4, TWO), record(6, THREE)),
         ["app: nginx:2 (3 revisions are not kept)",
          "app: nginx:2 → nginx:3 (revision 5 is not kept)"]),
        # The missing numbers belong to another template.
        ((record(1, ONE), record(2, TWO, "v2"), record(3, THREE)),
         ["first revision", "first revision", "app: nginx:1 → nginx:3"]),
    ],
    ids=[
        "one rollback", "two rollbacks", "first record is missing",
        "several records are missing", "records of another template",
    ],
)  # fmt: skip
def test_revision_shows_its_changes_after_a_rollback(
    records: tuple[Document, ...], expected: list[str]
) -> None:
    """A rollback gives an old revision a new number; the changes of all revisions are still right.

    The revision after the old number is still compared with the old one.
    """
    assert [
        each.summary for each in history_of(seen(*records, templatePool={"v2": TWO}))
    ] == expected


@pytest.mark.parametrize(
    "broken",
    [
        {"metadata": {"name": "x"}},
        {"data": None},
        {"data": {"template": "nginx"}},
        {"revision": "1"},
        {"metadata": {**record(2, TWO)["metadata"], "deletionTimestamp": "2026-01-05T10:00:00Z"}},
    ],
    ids=["no labels", "null data", "template is a text", "revision is a text", "terminating"],
)
def test_invalid_records_are_skipped(broken: Document) -> None:
    observed = seen(record(1, ONE), record(2, TWO) | broken, record(3, THREE))
    assert [each.number for each in history_of(observed)] == [1, 3]


def test_forbidden_history_is_not_reported_as_empty() -> None:
    observed = Observed(tapp(), unread={"controllerrevisions.apps": "no permission: ..."})
    with pytest.raises(CommandError, match="no permission"):
        history_of(observed)


@pytest.mark.parametrize(
    ("records", "to", "expected"),
    [
        ((record(1, ONE), record(2, TWO), record(3, THREE)), None, 2),
        ((record(1, ONE), record(2, TWO), record(3, THREE)), "1", 1),
        ((record(1, ONE), record(2, TWO), record(3, THREE)), digest(ONE), 1),
        ((record(1, ONE), record(2, TWO), record(3, THREE)), digest(TWO)[:9], 2),
        ((record(1, ONE), record(2, TWO), record(3, THREE)), digest(TWO)[3:9], 2),
        ((record(1, ONE), record(2, TWO)), None, 2),  # the current template has no record yet
        ((record(2, THREE), record(4, TWO)), None, 4),  # its record will get another number
    ],
    ids=[
        "previous one",
        "number",
        "hash",
        "start of the hash",
        "middle of the hash",
        "current template without a record",
        "current template with an old number",
    ],
)
def test_rollback_restores_the_expected_revision(
    records: tuple[Document, ...], to: str | None, expected: int
) -> None:
    assert target(seen(*records), to) == expected


def test_rollback_restores_the_template_that_changed_last() -> None:
    pool = {"v2": TWO}
    two = seen(
        record(1, ONE), record(2, ONE, "v2"), record(3, THREE), record(4, TWO, "v2"),
        templatePool=pool, templates={"0": "v2"},
    )  # fmt: skip
    assert target(two) == 2
    assert target(two, template="default") == 1
    unused = seen(
        record(1, ONE), record(2, ONE, "v2"), record(3, THREE), record(4, TWO, "v2"),
        templatePool=pool,
    )  # fmt: skip
    assert target(unused) == 1, "nobody runs v2"


@pytest.mark.parametrize(
    ("records", "to", "template", "message"),
    [
        (
            (record(3, THREE),),
            None,
            None,
            "there is no earlier revision of template 'default' to roll back to",
        ),
        ((), None, None, "there is no earlier revision"),
        ((record(1, ONE),), "7", None, "there is no revision 7: the history has 1"),
        ((), "7", None, "there is no revision 7: the history is empty"),
        ((record(1, ONE),), None, "v9", "the history has no template 'v9'"),
        ((record(1, ONE), record(2, TWO)), "v1-", None, "'v1-' is not a revision"),
    ],
    ids=[
        "only the current revision",
        "empty history",
        "unknown number",
        "number in an empty history",
        "unknown template",
        "incomplete name",
    ],
)
def test_rollback_without_a_target_is_an_error(
    records: tuple[Document, ...], to: str | None, template: str | None, message: str
) -> None:
    with pytest.raises(CommandError, match=message):
        target(seen(*records), to, template)


# --- autoscalers ----------------------------------------------------------------------------------


class _Kubectl:
    """Simulates a kubectl for a cluster with autoscalers, one of which scales the TApp `web`."""

    def run(self, arguments: list[str], stdin: str = "") -> CallResult:  # noqa: ARG002
        """Returns a list of two autoscalers for every call."""
        assert not stdin
        target = {"kind": "TApp", "name": "web"}
        spec = {"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 9}
        other = {"scaleTargetRef": {"kind": "Deployment", "name": "web"}, "maxReplicas": 3}
        items = [{"metadata": {"name": "mine"}, "spec": spec},
                 {"metadata": {"name": "not-mine"}, "spec": other}]  # fmt: skip
        return CallResult(0, json.dumps({"items": items}), "")


def test_replicas_set_by_an_autoscaler_are_recognized() -> None:
    cluster = ClusterAccess({"namespace": "shop"}, _Kubectl())
    assert warnings(cluster, tapp(), scaling=False) == []
    assert warnings(cluster, tapp(), scaling=True) == [
        "the HorizontalPodAutoscaler mine sets spec.replicas (2 to 9) and may undo this"
    ]
