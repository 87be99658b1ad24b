"""Tests `updateStrategy.onDeadline: Rollback`: its conditions, its time and its end."""

from copy import deepcopy
from typing import Any

import pytest

from tests.builders import Document, claim_template, running, template
from tests.unit.decide.partitions import image_tags
from tests.unit.decide.pods import annotated
from tests.unit.decide.rollbacks import (
    LIMIT,
    ROLLBACK,
    fail,
    play,
    retry,
    rolled_back,
    stalled,
    tapp_at_web_1,
    wait,
)
from tests.unit.world import World, condition

HOLD = "apps.tkestack.io/hold"


def uids(found: World) -> list[str]:
    return [found.pod(id)["metadata"]["uid"] for id in range(found.parent["spec"]["replicas"])]


@pytest.mark.parametrize("replicas", [1, 2, 3, 12])
def test_stuck_rollout_returns_to_the_revision_before(replicas: int) -> None:
    found = tapp_at_web_1(replicas)
    before, first = uids(found), found.parent["status"]["currentRevision"]
    play(found.change(template=template("web:bad")))
    assert image_tags(found) == "bad" + "1" * (replicas - 1)
    # One second before the deadline nothing has changed.
    play(wait(found, LIMIT - 1))
    assert image_tags(found).startswith("bad")
    assert rolled_back(found) == []
    play(wait(found, 1))
    status = found.parent["status"]
    assert image_tags(found) == "1" * replicas
    assert uids(found) == before  # in place
    assert found.parent["spec"]["template"] == template("web:bad")
    assert (status["currentRevision"], rolled_back(found)) == (first, [status["updateRevision"]])
    assert status["updatedReplicas"] == 0
    assert not found.writes


def test_conditions_say_which_revision_was_rolled_back_when_and_why() -> None:
    found = fail(tapp_at_web_1())
    status = found.parent["status"]
    reason, message = stalled(found)
    assert reason == "RolledBack"
    assert message == (
        f"revision {status['updateRevision']} was rolled back at 2026-01-05T11:10:00Z, because its "
        "rollout had made no progress for spec.progressDeadlineSeconds (instance 0: its pod is not "
        "Ready since 2026-01-05T10:01:00Z; each of instances 1, 2: the update waits for instance 0 "
        "to become available, because spec.updateStrategy.maxUnavailable allows 1 of 3 instances "
        "to be unavailable); all instances of the rolling template run revision "
        f"{status['currentRevision']} again. The spec still asks for revision "
        f"{status['updateRevision']}: change the template, or roll the revision out once more with "
        "`kubectl tapp retry web -n shop`"
    )
    progressing, ready = condition(status, "Progressing"), condition(status, "Ready")
    assert progressing is not None
    assert ready is not None
    assert (progressing["status"], progressing["reason"]) == ("False", "RolledBack")
    assert (ready["status"], ready["reason"]) == ("False", "Stalled")
    assert condition(status, "Reconciling") is None


def test_sync_at_the_deadline_only_notes_the_rollback_and_asks_for_another_sync() -> None:
    """The decision is in the status before any pod changes, so no restart loses it."""
    found = wait(play(tapp_at_web_1().change(template=template("web:bad"))))
    answer = found.sync()
    assert found.writes == []
    assert answer["resyncAfterSeconds"] == 1
    assert rolled_back(found) == [found.parent["status"]["updateRevision"]]
    assert stalled(found)[0] == "ProgressDeadlineExceeded"
    assert "is rolled back now" in stalled(found)[1]
    found.sync()
    assert found.writes == ["update Pod/web-0"]
    assert "instance 0 still has to return" in stalled(found)[1]


def test_repeated_syncs_after_a_rollback_write_nothing() -> None:
    found = fail(tapp_at_web_1())
    before = deepcopy(found.parent["status"])
    play(wait(found, 10 * LIMIT), rounds=3)
    assert found.parent["status"] == before
    assert not found.writes


def test_default_stops_at_the_deadline() -> None:
    found = fail(tapp_at_web_1(updateStrategy={}))
    assert image_tags(found) == "bad11"
    assert rolled_back(found) == []
    assert "rolled back" not in stalled(found)[1]


# --- nothing to return to -------------------------------------------------------------------------


def test_first_rollout_stops_because_nothing_was_rolled_out_before() -> None:
    found = World({**tapp_at_web_1().parent, "status": {}}, history=True).change(
        template=template("web:bad")
    )
    play(wait(play(found)))
    assert image_tags(found) == "bad" * 3
    assert stalled(found)[0] == "ProgressDeadlineExceeded"
    assert (
        "It is not rolled back (spec.updateStrategy.onDeadline: Rollback), because no other "
        in (stalled(found)[1])
    )


def test_rollout_stops_if_the_history_lacks_the_revision_before() -> None:
    found = play(tapp_at_web_1().change(template=template("web:bad")))
    current = found.parent["status"]["currentRevision"]
    for name, record in [*found.revisions.items()]:
        if record["metadata"]["labels"]["tapp_template_hash_key"] == current:
            del found.revisions[name]
    play(wait(found))
    assert image_tags(found) == "bad11"
    assert f"because the history lacks revision {current}" in stalled(found)[1]


def test_instance_without_a_record_gets_no_pod_after_a_rollback() -> None:
    """Without the record, pods stay as they are, and a lost pod is not created."""
    found = fail(tapp_at_web_1())
    found.revisions.clear()
    del found.pods["web-2"]
    play(found)
    assert image_tags(found) == "11-"
    missing = condition(found.parent["status"], "RevisionsNotFound")
    assert missing is not None
    assert "instance 2 could run" in missing["message"]


# --- never back and forth -------------------------------------------------------------------------


def test_return_that_makes_no_progress_stops() -> None:
    """The revision before does not come up either: the instances stay at it."""
    found = play(tapp_at_web_1().change(template=template("web:bad")))
    play(wait(found), broken="web:")
    for _ in range(5):
        play(wait(found), broken="web:")
        assert image_tags(found) == "111"
    reason, message = stalled(found)
    assert reason == "RolledBack"
    assert "The return has made no progress since" in message
    assert "a person has to repair these instances" in message


def test_failed_revision_is_rolled_out_again_only_after_a_retry() -> None:
    found = retry(fail(tapp_at_web_1()))
    found.sync()
    assert rolled_back(found) == []
    play(found, broken="nothing")
    assert image_tags(found) == "bad" * 3
    assert stalled(found) == ("", "")
    assert found.parent["status"]["currentRevision"] == found.parent["status"]["updateRevision"]


def test_retry_has_its_own_deadline_and_serves_for_one_rollback_only() -> None:
    found = play(retry(fail(tapp_at_web_1())))
    assert image_tags(found) == "bad11"
    play(wait(found, LIMIT - 1))
    assert image_tags(found) == "bad11"
    play(wait(found, 1))
    assert image_tags(found) == "111"
    assert "rolled back at 2026-01-05T11:20:00Z" in stalled(found)[1]


def test_another_revision_is_rolled_out_after_a_rollback() -> None:
    found = play(fail(tapp_at_web_1()).change(template=template("web:2")))
    assert image_tags(found) == "222"
    assert rolled_back(found) == []
    assert stalled(found) == ("", "")


def test_failed_revision_counts_as_failed_until_a_rollout_completes() -> None:
    """An edit to another revision and back again is no retry."""
    found = fail(fail(tapp_at_web_1(), "bad"), "bad2")
    assert len(rolled_back(found)) == 2
    play(found.change(template=template("web:bad")), rounds=3)
    assert image_tags(found) == "111"
    assert stalled(found)[0] == "RolledBack"
    # A complete rollout ends all rollbacks.
    play(found.change(template=template("web:2")))
    assert rolled_back(found) == []
    play(found.change(template=template("web:bad")))
    assert image_tags(found) == "bad22"


def test_edit_back_to_the_old_template_ends_the_rollback() -> None:
    found = play(fail(tapp_at_web_1()).change(template=template("web:1")))
    assert image_tags(found) == "111"
    assert rolled_back(found) == []
    assert condition(found.parent["status"], "Ready")["status"] == "True"  # type: ignore[index]


def test_on_deadline_stop_rolls_the_revision_out_again() -> None:
    found = play(fail(tapp_at_web_1()).change(updateStrategy={}))
    assert image_tags(found) == "bad11"
    assert rolled_back(found) == []


@pytest.mark.parametrize("lost", [["rolledBack"], ["rolledBack", "conditions", "progressed"], None])
def test_lost_note_leads_to_another_deadline_and_no_more(lost: list[str] | None) -> None:
    found = fail(tapp_at_web_1())
    status = {} if lost is None else dict(found.parent["status"])
    for key in lost or ():
        status.pop(key, None)
    found.parent = {**found.parent, "status": status}
    play(found)
    assert image_tags(found).count("bad") <= 1
    play(wait(found))
    assert image_tags(found) == "111"


@pytest.mark.parametrize("note", [5, {"": "x"}, {"v1-x": 5}, ["x"], {"v1-x": "x: y"}, "x"])
def test_status_that_is_no_note_is_ignored(note: Any) -> None:
    found = tapp_at_web_1()
    found.parent = {**found.parent, "status": {**found.parent["status"], "rolledBack": note}}
    assert image_tags(fail(found)) == "111"


# --- with other features --------------------------------------------------------------------------


def test_new_instances_get_the_revision_before() -> None:
    found = play(fail(tapp_at_web_1()).change(replicas=5))
    assert image_tags(found) == "11111"
    assert stalled(found)[0] == "RolledBack"


def test_lost_pod_comes_back_at_the_revision_before() -> None:
    found = fail(tapp_at_web_1())
    del found.pods["web-1"]
    assert image_tags(play(found)) == "111"


def test_killed_instance_starts_at_the_revision_before() -> None:
    found = fail(tapp_at_web_1(statuses={"0": "Killed"}))
    assert image_tags(found) == "-11"
    assert image_tags(play(found.change(statuses={}))) == "111"


def test_partition_keeps_its_instances_and_the_others_return() -> None:
    found = tapp_at_web_1(4, {"partition": 2})
    play(found.change(template=template("web:bad")))
    assert image_tags(found) == "bad111"
    kept = found.parent["status"]["kept"]
    play(wait(found))
    assert image_tags(found) == "1111"
    assert found.parent["status"]["kept"] == kept
    assert stalled(found)[0] == "RolledBack"


def test_force_group_is_not_rolled_back() -> None:
    pool = {"other": template("other:1")}
    found = tapp_at_web_1(3, templatePool=pool, templates={"2": "other"})
    play(found.change(template=template("web:bad"), templatePool={"other": template("other:2")}))
    play(wait(found))
    assert image_tags(found) == "112"


def test_stuck_force_group_alone_begins_no_rollback() -> None:
    pool = {"other": template("other:1")}
    found = tapp_at_web_1(3, templatePool=pool, templates={"2": "other"})
    play(found.change(templatePool={"other": template("other:bad")}))
    play(wait(found))
    assert image_tags(found) == "11bad"
    assert rolled_back(found) == []


def test_pod_on_hold_keeps_the_failed_revision() -> None:
    found = play(tapp_at_web_1().change(template=template("web:bad")))
    found.modify(0, annotated(HOLD, "debugging"))
    found.modify(1, annotated(HOLD, "working"))
    # The hold begins while instance 0 has the new revision, so it keeps the new revision.
    assert found.parent["status"].get("rolledBack") is None
    play(wait(found))
    assert image_tags(found) == "bad11"


def test_paused_rollout_is_not_rolled_back() -> None:
    found = play(tapp_at_web_1().change(template=template("web:bad")))
    found.change(updateStrategy={**ROLLBACK, "paused": True})
    play(wait(found))
    assert image_tags(found) == "bad11"
    assert rolled_back(found) == []


def test_paused_return_stops_and_goes_on_afterwards() -> None:
    found = wait(play(tapp_at_web_1().change(template=template("web:bad"))))
    found.sync()
    found.change(updateStrategy={**ROLLBACK, "paused": True})
    assert image_tags(play(found)) == "bad11"
    found.change(updateStrategy=ROLLBACK)
    assert image_tags(play(found)) == "111"


def test_return_of_available_instances_spends_the_budget() -> None:
    """Instances 0 and 1 run the new revision and are available; only instance 2 is broken."""
    found = tapp_at_web_1()
    found.change(template=template("web:bad"))
    for _ in range(8):
        play(found, rounds=1, broken="nothing")
        if image_tags(found) == "badbadbad":
            found.pods["web-2"] = running(found.pod(2), ready=False)
    assert image_tags(found) == "badbadbad"
    wait(found).sync()
    assert rolled_back(found)
    found.sync()
    assert found.writes == ["update Pod/web-2"]
    found.kubelet()
    for id in (0, 1):
        found.sync()
        assert found.writes == [f"update Pod/web-{id}"]
        found.sync()
        assert found.writes == []
        found.kubelet()
    assert image_tags(found) == "111"


def test_values_return_with_the_revision() -> None:
    templates = {"template": template("web:$(tapp.values.tag)")}
    found = tapp_at_web_1(3, **templates, defaultValues={"tag": "1"})
    play(found.change(defaultValues={"tag": "bad"}))
    assert image_tags(found) == "bad11"
    play(wait(found))
    assert image_tags(found) == "111"
    play(found.change(replicas=4))
    assert image_tags(found) == "1111"


def test_claims_and_service_of_the_revision_before_come_back() -> None:
    """A new pod of the returned instance has the claims that its last complete revision had."""

    def mounting(image: str, *claims: str) -> Document:
        mounts = [{"name": name, "mountPath": f"/{name}"} for name in claims]
        return template(image, container={"volumeMounts": mounts})

    found = tapp_at_web_1(
        2,
        template=mounting("web:1", "data"),
        volumeClaimTemplates=[claim_template("data")],
        serviceName="old",
    )
    found.change(
        template=mounting("web:bad", "data", "more"),
        volumeClaimTemplates=[claim_template("data"), claim_template("more")],
        serviceName="new",
    )
    play(wait(play(found)))
    assert image_tags(found) == "11"
    spec = found.pod(0)["spec"]
    assert [volume["name"] for volume in spec["volumes"]][:-1] == ["data"]  # the last: its token
    assert spec["subdomain"] == "old"
    assert "more-web-0" in found.claims  # no claim is deleted


def test_sync_that_may_not_show_the_last_update_takes_no_available_instance() -> None:
    """The first sync of the return may lack an update of the last sync, so only instances that are
    not available return in it.
    """
    found = tapp_at_web_1(3, {"maxUnavailable": 1})
    play(found.change(template=template("web:bad")))
    # Instance 0 becomes available just after the deadline.
    wait(found).sync()
    play(found, rounds=0)
    found.kubelet()
    assert found.decisions()[0] == "Keep/SpecJustChanged"
    assert found.sync()["resyncAfterSeconds"] == 1
    assert found.decisions()[0] == "UpdateInPlace/TemplateChanged"


def test_rollout_of_one_instance_is_rolled_back_if_a_stale_cache_lacked_its_progress() -> None:
    """The sync after the update may get the TApp without the status that the update sync wrote."""
    found = tapp_at_web_1(1).change(template=template("web:bad"))
    stale = found.parent
    play(found, rounds=1)
    found.parent = stale
    play(found)
    assert found.parent["status"]["progressed"]
    assert image_tags(play(wait(found))) == "1"


def test_service_without_the_field_writes_no_note() -> None:
    """A field that is not set changes nothing in any answer."""
    found = fail(tapp_at_web_1(updateStrategy={}))
    assert "rolledBack" not in found.parent["status"]
