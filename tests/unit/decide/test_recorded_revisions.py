"""Tests the data that a ControllerRevision records for kept instances: Service name and claim
templates.
"""

import pytest

from tests.builders import Document, tapp
from tests.hook_calls import desired
from tests.unit.decide.kept_instances import (
    BOTH_2,
    NO_LOGS,
    claims,
    claims_and_service_of,
    edit,
    lose,
    play,
    recorded,
    records_of_an_earlier_release,
    tapp_with_claims,
    web_template,
)
from tests.unit.world import World

NEITHER = {"serviceName": "", "volumeClaimTemplates": []}


def test_revision_records_service_name_and_claim_templates() -> None:
    """Compares the data of ControllerRevisions: an empty name and an empty list are recorded,
    too.
    """
    found = tapp_with_claims("data", serviceName="web")
    assert recorded(found) == [{"serviceName": "web", "volumeClaimTemplates": claims("data")}]
    assert recorded(World(tapp(), history=True).settle()) == [NEITHER]
    assert recorded(World(tapp(serviceName="web"), history=True).settle()) == [
        {"serviceName": "web", "volumeClaimTemplates": []}
    ]


def test_revision_is_recreated_only_if_service_name_or_claim_templates_change() -> None:
    """Changes the Service name, and then the replicas: only the first creates the
    ControllerRevision again.

    There is one ControllerRevision for each revision, and no write without a change.
    """
    found = tapp_with_claims("data", serviceName="web")
    edit(serviceName="other")(found)
    assert recorded(found) == [{"serviceName": "other", "volumeClaimTemplates": claims("data")}]
    assert [each["revision"] for each in found.revisions.values()] == [2]
    edit(replicas=4)(found)
    assert [each["revision"] for each in found.revisions.values()] == [2]


@pytest.mark.parametrize(
    "more", [{}, {"updateStrategy": {"partition": 1}}], ids=["no partition", "partition"]
)
def test_revision_of_an_earlier_release_is_not_rewritten(more: Document) -> None:
    """A sync with ControllerRevisions of an earlier release writes nothing, so an upgrade writes no
    object.
    """
    found = tapp_with_claims("data", serviceName="web", **more)
    records_of_an_earlier_release(found)
    found.sync()
    assert found.writes == []
    assert recorded(found) == [{}]


@pytest.mark.parametrize(
    "data",
    [
        {"serviceName": 7, "volumeClaimTemplates": claims("data", "logs")},
        {"serviceName": "", "volumeClaimTemplates": "none"},
        {"serviceName": "", "volumeClaimTemplates": [None, 1]},
        {"serviceName": "", "volumeClaimTemplates": [{"metadata": {"name": ["x"]}}]},
    ],
    ids=["service name", "claim templates", "entries", "claim name"],
)
def test_recorded_template_is_used_although_other_recorded_data_is_invalid(data: Document) -> None:
    """Damages the recorded Service name or claim templates, and loses a kept pod: its next pod has
    its claims.

    Data that cannot be read counts as absent.
    """
    found = tapp_with_claims()
    edit(**NO_LOGS)(found)
    first = min(found.revisions.values(), key=lambda each: each["revision"])
    first["data"] |= data
    play([lose(2)], found)
    assert claims_and_service_of(found, 2) == BOTH_2


@pytest.mark.parametrize(
    ("kept", "service"), [(1, "new"), (2, "old")], ids=["no other pod", "another pod"]
)
def test_unrecorded_service_name_is_taken_from_another_pod_of_the_revision(
    kept: int, service: str
) -> None:
    """A revision has no recorded Service name: a lost kept pod gets the name of another pod of the
    revision.

    If there is no such pod, the current name is used, and the message says so.
    """
    found = tapp_with_claims("data", serviceName="old")
    records_of_an_earlier_release(found)
    roll = {"template": web_template(2, "data"), "updateStrategy": {"partition": kept}}
    edit(**roll, serviceName="new")(found)
    del found.pods["web-2"]
    message = found.hook.answer("/plan", found.request())["instances"][2]["message"]
    assert ("no pod shows it, so the pod gets the present one: new" in message) == (
        service == "new"
    )
    assert desired(found.sync(), "Pod")["web-2"]["spec"]["subdomain"] == service


def test_plan_message_names_claims_and_service_that_the_spec_no_longer_has() -> None:
    found = tapp_with_claims(serviceName="old")
    edit(**NO_LOGS, serviceName=None)(found)
    del found.pods["web-2"]
    plan = found.hook.answer("/plan", found.request())["instances"]
    kept = next(iter(found.parent["status"]["kept"]))
    assert [plan[1]["message"], plan[2]["message"]] == [
        f"spec.updateStrategy.partition keeps it at revision {kept}, with its claim logs, "
        "in Service old",
        "the TApp service creates its pod from template 'default' as it was at revision "
        f"{kept}, with its claim logs, in Service old",
    ]
