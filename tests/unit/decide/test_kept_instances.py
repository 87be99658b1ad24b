"""Tests that pods of kept instances are recreated with the claims and the Service of their
revision.

A partition keeps such an instance at an older revision. A test plays steps: functions that change a
world.
"""

import pytest

from tests.builders import Document, claim_template, tapp
from tests.unit.decide.kept_instances import (
    BOTH_2,
    KEEP_2,
    NO_LOGS,
    Step,
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
from tests.unit.world import World, condition

RECORD = "ControllerRevision"


@pytest.mark.parametrize(
    "record", [[], [records_of_an_earlier_release]], ids=["recorded", "record of earlier releases"]
)
@pytest.mark.parametrize(
    "lost",
    [
        [lose(2)],
        [lose(1, 2)],
        [edit(statuses={"2": "Killed"}), edit(statuses={})],
        [edit(replicas=2), edit(replicas=3)],
        [edit(volumeClaimTemplates=claims("data", "more")), lose(2)],
    ],
    ids=[
        "one pod lost",
        "two pods lost",
        "killed and started",
        "scaled down and up",
        "another edit",
    ],
)
def test_kept_instance_mounts_its_claim_although_the_claim_template_was_removed(
    record: list[Step], lost: list[Step]
) -> None:
    found = play([*record, edit(**NO_LOGS), *lost], tapp_with_claims())
    assert claims_and_service_of(found, 2) == BOTH_2
    assert claims_and_service_of(found, 0) == "2 data=data-web-0"
    assert condition(found.parent["status"], "Ready")["status"] == "True"
    assert "keeps instances 1, 2" in condition(found.parent["status"], "Ready")["message"]
    assert {"logs-web-0", "logs-web-1", "logs-web-2"} <= found.claims.keys()


@pytest.mark.parametrize("policy", ["Parallel", "OrderedReady"])
def test_kept_pod_is_recreated_with_its_claims_if_it_is_lost_together_with_the_edit(
    policy: str,
) -> None:
    """A kept pod is lost at the moment of the edit: its next pod has the claims of the earlier
    revision.

    The first sync after the edit already shows that the pod is gone.
    """
    found = tapp_with_claims(podManagementPolicy=policy)
    found.change(**NO_LOGS)
    del found.pods["web-2"]
    assert claims_and_service_of(found.settle(), 2) == BOTH_2


@pytest.mark.parametrize(
    ("after", "kept", "rolled"),
    [
        (
            {
                "template": web_template(2, "data", "files"),
                "volumeClaimTemplates": claims("data", "files"),
            },
            BOTH_2,
            "2 data=data-web-0 files=files-web-0",
        ),
        (
            {
                "template": web_template(
                    2, "data", "logs", volumes=[{"name": "logs", "emptyDir": {}}]
                ),
                "volumeClaimTemplates": claims("data"),
            },
            BOTH_2,
            "2 logs:emptyDir data=data-web-0",
        ),
        (
            {
                "template": web_template(2, "data", "logs"),
                "volumeClaimTemplates": claims("data", "logs", "x"),
            },
            BOTH_2,
            "2 data=data-web-0 logs=logs-web-0 x=x-web-0",
        ),
        ({"template": web_template(2), "volumeClaimTemplates": None}, BOTH_2, "2"),
        (
            {"template": web_template(2, "data", "logs"), "serviceName": "new"},
            BOTH_2 + " in old",
            "2 data=data-web-0 logs=logs-web-0 in new",
        ),
        (
            {"template": web_template(2, "data", "logs"), "serviceName": None},
            BOTH_2 + " in old",
            "2 data=data-web-0 logs=logs-web-0",
        ),
    ],
    ids=[
        "claim renamed",
        "claim becomes an emptyDir",
        "claim added",
        "all claims removed",
        "Service changed",
        "Service removed",
    ],
)
def test_kept_instance_has_the_claims_and_service_of_its_revision_after_any_edit(
    after: Document, kept: str, rolled: str
) -> None:
    """Edits claims or the Service name, and loses a kept pod: its next pod has those of the earlier
    revision.

    All other instances have the claims and the Service of the current spec.
    """
    start = {"serviceName": "old"} if "serviceName" in after else {}
    found = play([edit(**after, updateStrategy=KEEP_2), lose(2)], tapp_with_claims(**start))
    assert claims_and_service_of(found, 2) == kept
    assert claims_and_service_of(found, 0) == rolled
    assert condition(found.parent["status"], "Ready")["status"] == "True"
    gone = play([edit(updateStrategy={})], found)
    assert claims_and_service_of(gone, 2) == rolled.replace("web-0", "web-2")


def test_kept_instance_keeps_its_empty_dir_after_the_volume_became_a_claim() -> None:
    """A volume becomes a claim template: a kept instance without the claim template gets no
    claim.
    """
    cache = [{"name": "cache", "emptyDir": {}}]
    first = World(
        tapp(replicas=3, template=web_template(1, "cache", volumes=cache)), history=True
    ).settle()
    after = {"template": web_template(2, "cache"), "volumeClaimTemplates": claims("cache")}
    found = play([edit(**after, updateStrategy=KEEP_2), lose(2)], first)
    assert claims_and_service_of(found, 2) == "1 cache:emptyDir"
    assert sorted(found.claims) == ["cache-web-0"]


def test_new_kept_instance_gets_the_claims_of_its_revision() -> None:
    """Adds instances that the partition keeps: they get the claims of the revision, which records
    claim templates.
    """
    found = play(
        [edit(**{**NO_LOGS, "replicas": 5, "updateStrategy": {"partition": 4}})], tapp_with_claims()
    )
    assert claims_and_service_of(found, 4) == "1 data=data-web-4 logs=logs-web-4"
    assert found.claims["logs-web-4"]["spec"] == found.claims["logs-web-2"]["spec"]


def claim_with_class_value(name: str) -> Document:
    """Returns a claim template with this name whose storage class is the value `class` of its
    instance.
    """
    found = claim_template(name)
    found["spec"]["storageClassName"] = "$(tapp.values.class)"
    return found


@pytest.mark.parametrize("values", [{"class": "fast"}, None], ids=["value stays", "value removed"])
def test_recorded_claim_template_is_filled_in_with_current_values(values: Document | None) -> None:
    """A kept revision's claim template reads a value that is still set, or that is gone.

    If the value is gone, an existing claim is still mounted, and a new instance is blocked.
    """
    both = [*claims("data"), claim_with_class_value("logs")]
    found = tapp_with_claims(volumeClaimTemplates=both, defaultValues={"class": "fast"})
    play(
        [
            edit(
                **{**NO_LOGS, "replicas": 4, "updateStrategy": {"partition": 3}},
                defaultValues=values,
            ),
            lose(2),
        ],
        found,
    )
    assert claims_and_service_of(found, 2) == BOTH_2
    if values is not None:
        assert claims_and_service_of(found, 3) == "1 data=data-web-3 logs=logs-web-3"
        assert found.claims["logs-web-3"]["spec"]["storageClassName"] == "fast"
    else:
        assert "web-3" not in found.pods
        blocked = condition(found.parent["status"], "CreationBlocked")["message"]
        assert "claim template 'logs'" in blocked
        assert "reads the value 'class', and the instance has none" in blocked


def test_change_of_the_service_name_alone_does_not_reach_kept_instances() -> None:
    """Changes the Service name only, and loses pods: the next pod of a kept instance has the old
    name.

    The change starts no rollout, but the next pod of any other instance has the new name.
    """
    steps = [edit(serviceName="new", updateStrategy=KEEP_2), lose(0, 2)]
    found = play(steps, tapp_with_claims("data", serviceName="old"))
    assert claims_and_service_of(found, 0) == "1 data=data-web-0 in new"
    assert claims_and_service_of(found, 2) == "1 data=data-web-2 in old"
    play([edit(updateStrategy={}), lose(2)], found)
    assert claims_and_service_of(found, 2) == "1 data=data-web-2 in new"


@pytest.mark.parametrize("tag", [1, 2], ids=["same template", "new template"])
@pytest.mark.parametrize(
    "after",
    [{"serviceName": "new"}, {"volumeClaimTemplates": claims("data")}],
    ids=["first service", "first claim"],
)
def test_kept_instance_gets_no_service_and_no_claim_that_its_revision_did_not_have(
    after: Document, tag: int
) -> None:
    """Adds the first Service or claim to a TApp, and loses all pods: the kept instance gets
    neither.

    No other pod of that revision is left to compare with.
    """
    first = World(tapp(replicas=2, template=web_template(1)), history=True).settle()
    keep = {"partition": 1, "maxUnavailable": 2}
    found = play(
        [edit(**after, template=web_template(tag), updateStrategy=keep), lose(0, 1)], first
    )
    assert claims_and_service_of(found, 1) == "1"
    assert claims_and_service_of(found, 0) != str(tag)


def test_rollback_mounts_existing_claims_whose_claim_template_was_removed() -> None:
    """Removes a claim template, and rolls the template back: the existing claims are mounted.

    A mount finds the instance's own claim by its name, for kept and other instances.
    """
    found = play(
        [edit(template=web_template(2, "data"), volumeClaimTemplates=claims("data"))],
        tapp_with_claims(),
    )
    play([edit(template=web_template(1, "data", "logs")), lose(1)], found)
    assert {claims_and_service_of(found, id) for id in range(3)} == {
        f"1 data=data-web-{id} logs=logs-web-{id}" for id in range(3)
    }


def test_rollback_keeps_the_claims_and_service_that_a_revision_has_recorded() -> None:
    """Rolls the template back: its ControllerRevision gets a new number and keeps its other data.

    A lost claim is then created again from this data.
    """
    found = play(
        [edit(**NO_LOGS), edit(template=web_template(1, "data", "logs"))], tapp_with_claims()
    )
    assert [each.get("volumeClaimTemplates") for each in recorded(found)] == [
        claims("data"), claims("data", "logs"),
    ]  # fmt: skip
    del found.claims["logs-web-2"]
    play([lose(0, 2)], found)
    assert claims_and_service_of(found, 0) == "1 data=data-web-0 logs=logs-web-0"
    assert claims_and_service_of(found, 2) == BOTH_2
    assert "logs-web-2" in found.claims


def test_claim_of_a_kept_instance_is_not_deleted_with_when_scaled_delete() -> None:
    """Scales down with `whenScaled: Delete`: claims whose claim template was removed stay."""
    policy = {"whenScaled": "Delete", "whenDeleted": "Retain"}
    start = tapp_with_claims(persistentVolumeClaimRetentionPolicy=policy)
    found = play([edit(**NO_LOGS), lose(2), edit(replicas=2)], start)
    assert sorted(found.claims) == [
        "data-web-0", "data-web-1", "logs-web-0", "logs-web-1", "logs-web-2",
    ]  # fmt: skip
    play([edit(replicas=3)], found)
    assert claims_and_service_of(found, 2) == BOTH_2


def sized(size: str, *names: str) -> list[Document]:
    found = [claim_template(name, size) for name in names]
    for each in found:
        each["spec"]["storageClassName"] = "fast"
    return found


def tapp_with_growing_claims() -> World:
    """Returns a TApp with two bound claims for each instance, of a class that allows expansion."""
    fast = {"kind": "StorageClass", "metadata": {"name": "fast"}, "allowVolumeExpansion": True}
    first = tapp(replicas=3, template=web_template(1, "data", "logs"))
    first["spec"]["volumeClaimTemplates"] = sized("1Gi", "data", "logs")
    return bound(World(first, history=True, classes=[fast]).settle())


def bound(found: World, phase: str = "Bound") -> World:
    for claim in found.claims.values():
        claim["status"] = {"phase": phase}
    return found


def sizes(found: World, name: str) -> list[str]:
    """Returns the requested sizes of the claims of this claim template, by instance number."""
    claims = [found.claims[f"{name}-web-{id}"] for id in range(3)]
    return [claim["spec"]["resources"]["requests"]["storage"] for claim in claims]


def test_claims_of_kept_instances_grow_with_the_current_claim_template() -> None:
    """Enlarges a claim template: the claims of kept instances grow, too.

    The current claim template determines the size, not the recorded one.
    """
    steps = [edit(**{**NO_LOGS, "volumeClaimTemplates": sized("2Gi", "data")}), lose(2)]
    found = play(steps, tapp_with_growing_claims())
    assert claims_and_service_of(found, 2) == BOTH_2
    assert sizes(found, "data") == ["2Gi"] * 3
    assert sizes(found, "logs") == ["1Gi"] * 3


def test_pending_claim_of_a_kept_instance_grows_to_its_recorded_size_when_it_is_bound() -> None:
    """A claim template was enlarged and then removed before the claims were bound: a kept claim
    grows when it is.
    """
    found = bound(tapp_with_growing_claims(), "Pending")
    edit(volumeClaimTemplates=sized("2Gi", "data", "logs"))(found)
    edit(**{**NO_LOGS, "volumeClaimTemplates": sized("2Gi", "data")})(found)
    assert sizes(found, "data") == ["1Gi"] * 3
    assert sizes(found, "logs") == ["1Gi"] * 3
    bound(found).settle()
    assert sizes(found, "data") == ["2Gi"] * 3
    assert sizes(found, "logs") == ["1Gi", "2Gi", "2Gi"]


def test_finalizers_of_a_template_reach_new_pods_and_start_no_rollout() -> None:
    """Changes the finalizers of a template: no pod is written, and the next pod of an instance has
    the new list.

    The next pod of a kept instance has the old list.
    """
    body = web_template(1, "data")
    body["metadata"]["finalizers"] = ["example.com/old"]
    found = tapp_with_claims("data", template=body)
    changed = {**body, "metadata": {**body["metadata"], "finalizers": ["example.com/new"]}}
    found.change(template=changed).sync()
    assert found.writes == []
    assert condition(found.parent["status"], "Ready")["status"] == "True"
    play([lose(0)], found)
    assert [found.pods[f"web-{id}"]["metadata"]["finalizers"] for id in (0, 1)] == [
        ["example.com/new"], ["example.com/old"],
    ]  # fmt: skip
    play([edit(template=web_template(2, "data"), updateStrategy={"partition": 2}), lose(2)], found)
    assert found.pods["web-2"]["metadata"]["finalizers"] == ["example.com/old"]
