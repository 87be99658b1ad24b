"""A kept instance comes back as it was: with its claims and in its Service, not in today's."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from tests.builders import Document, claim_template, tapp, template
from tests.reading import desired
from tests.unit.world import World, condition

Step = Callable[[World], Any]
RECORD = "ControllerRevision"
KEEP_2 = {"partition": 2, "maxUnavailable": 1}


def web(tag: int, *mounts: str, **spec: Any) -> Document:
    """A template that mounts these, each at its name."""
    found = [{"name": name, "mountPath": f"/{name}"} for name in mounts]
    spec = {"terminationGracePeriodSeconds": tag, **spec}  # no update in place
    return template(f"web:{tag}", container={"volumeMounts": found}, **spec)


def claims(*names: str) -> list[Document]:
    return [claim_template(name) for name in names]


def world(*names: str, replicas: int = 3, **spec: Any) -> World:
    """Three instances with claims `data` and `logs`, both mounted, at rest."""
    names = names or ("data", "logs")
    first = {"template": web(1, *names), "volumeClaimTemplates": claims(*names), **spec}
    return World(tapp(replicas=replicas, **first), history=True).settle()


def edit(**spec: Any) -> Step:
    return lambda found: found.change(**spec).settle()


def lose(*ids: int) -> Step:
    def change(found: World) -> None:
        for id in ids:
            del found.pods[f"web-{id}"]
        found.settle()

    return change


def silent(found: World) -> None:
    """The records are those of an earlier release."""
    for record in found.revisions.values():
        record["data"] = {"template": record["data"]["template"]}


NO_LOGS = {
    "template": web(2, "data"),
    "volumeClaimTemplates": claims("data"),
    "updateStrategy": KEEP_2,
}


def play(steps: Iterable[Step], found: World) -> World:
    for step in steps:
        step(found)
    return found.settle()


def made_of(found: World, id: int) -> str:
    """The makings of an instance's pod: `1 data=data-web-0 logs=logs-web-0 in web`."""
    spec = found.pods[f"web-{id}"]["spec"]
    parts = [spec["containers"][0]["image"].rpartition(":")[2]]
    for volume in spec.get("volumes") or []:
        if "persistentVolumeClaim" in volume:
            parts.append(f"{volume['name']}={volume['persistentVolumeClaim']['claimName']}")
        elif not volume["name"].startswith("kube-api-access"):
            parts.append(f"{volume['name']}:{next(key for key in volume if key != 'name')}")
    return " ".join(parts) + (f" in {spec['subdomain']}" if "subdomain" in spec else "")


BOTH_2 = "1 data=data-web-2 logs=logs-web-2"


@pytest.mark.parametrize("record", [[], [silent]], ids=["recorded", "record of earlier releases"])
@pytest.mark.parametrize(
    "lost",
    [
        [lose(2)],
        [lose(1, 2)],
        [edit(statuses={"2": "Killed"}), edit(statuses={})],
        [edit(replicas=2), edit(replicas=3)],
        [edit(volumeClaimTemplates=claims("data", "more")), lose(2)],
    ],
    ids=["its pod", "two pods", "kill and start", "scaled away and back", "after another edit"],
)
def test_a_claim_whose_template_has_gone_is_mounted_again(
    record: list[Step], lost: list[Step]
) -> None:
    """The pod of a kept instance has the mounts that it had, with the claims that it had."""
    found = play([*record, edit(**NO_LOGS), *lost], world())
    assert made_of(found, 2) == BOTH_2
    assert made_of(found, 0) == "2 data=data-web-0"
    assert condition(found.parent["status"], "Ready")["status"] == "True"
    assert "keeps instances 1, 2" in condition(found.parent["status"], "Ready")["message"]
    assert {"logs-web-0", "logs-web-1", "logs-web-2"} <= found.claims.keys()


@pytest.mark.parametrize("policy", ["Parallel", "OrderedReady"])
def test_a_pod_that_is_lost_in_the_very_edit_comes_back_as_it_was(policy: str) -> None:
    """The edit and the loss are seen by one sync."""
    found = world(podManagementPolicy=policy)
    found.change(**NO_LOGS)
    del found.pods["web-2"]
    assert made_of(found.settle(), 2) == BOTH_2


@pytest.mark.parametrize(
    ("after", "kept", "rolled"),
    [
        (
            {"template": web(2, "data", "files"), "volumeClaimTemplates": claims("data", "files")},
            BOTH_2,
            "2 data=data-web-0 files=files-web-0",
        ),
        (
            {
                "template": web(2, "data", "logs", volumes=[{"name": "logs", "emptyDir": {}}]),
                "volumeClaimTemplates": claims("data"),
            },
            BOTH_2,
            "2 logs:emptyDir data=data-web-0",
        ),
        (
            {
                "template": web(2, "data", "logs"),
                "volumeClaimTemplates": claims("data", "logs", "x"),
            },
            BOTH_2,
            "2 data=data-web-0 logs=logs-web-0 x=x-web-0",
        ),
        ({"template": web(2), "volumeClaimTemplates": None}, BOTH_2, "2"),
        (
            {"template": web(2, "data", "logs"), "serviceName": "new"},
            BOTH_2 + " in old",
            "2 data=data-web-0 logs=logs-web-0 in new",
        ),
        (
            {"template": web(2, "data", "logs"), "serviceName": None},
            BOTH_2 + " in old",
            "2 data=data-web-0 logs=logs-web-0",
        ),
    ],
    ids=[
        "renamed",
        "becomes an emptyDir",
        "one more",
        "none left",
        "another service",
        "no service",
    ],
)
def test_whatever_a_pod_is_made_of_is_kept(after: Document, kept: str, rolled: str) -> None:
    """Claims and Service of a kept instance are those of its revision, of others today's."""
    start = {"serviceName": "old"} if "serviceName" in after else {}
    found = play([edit(**after, updateStrategy=KEEP_2), lose(2)], world(**start))
    assert made_of(found, 2) == kept
    assert made_of(found, 0) == rolled
    assert condition(found.parent["status"], "Ready")["status"] == "True"
    gone = play([edit(updateStrategy={})], found)
    assert made_of(gone, 2) == rolled.replace("web-0", "web-2")


def test_an_empty_dir_that_becomes_a_claim_stays_one_for_who_is_kept() -> None:
    """No claim is made for an instance whose revision has none."""
    cache = [{"name": "cache", "emptyDir": {}}]
    first = World(tapp(replicas=3, template=web(1, "cache", volumes=cache)), history=True).settle()
    after = {"template": web(2, "cache"), "volumeClaimTemplates": claims("cache")}
    found = play([edit(**after, updateStrategy=KEEP_2), lose(2)], first)
    assert made_of(found, 2) == "1 cache:emptyDir"
    assert sorted(found.claims) == ["cache-web-0"]


def test_one_that_is_new_and_kept_gets_the_claims_of_its_revision() -> None:
    """The record has the claim template, so what is new is made as the others were."""
    found = play([edit(**{**NO_LOGS, "replicas": 5, "updateStrategy": {"partition": 4}})], world())
    assert made_of(found, 4) == "1 data=data-web-4 logs=logs-web-4"
    assert found.claims["logs-web-4"]["spec"] == found.claims["logs-web-2"]["spec"]


def zoned(name: str) -> Document:
    """A claim template with a value of the instance's own."""
    found = claim_template(name)
    found["spec"]["storageClassName"] = "$(tapp.values.class)"
    return found


@pytest.mark.parametrize("values", [{"class": "fast"}, None], ids=["values stay", "values go"])
def test_a_recorded_claim_template_has_the_values_of_today(values: Document | None) -> None:
    """With them gone, too, who has its claim needs none, and who is new waits for them."""
    both = [*claims("data"), zoned("logs")]
    found = world(volumeClaimTemplates=both, defaultValues={"class": "fast"})
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
    assert made_of(found, 2) == BOTH_2
    if values is not None:
        assert made_of(found, 3) == "1 data=data-web-3 logs=logs-web-3"
        assert found.claims["logs-web-3"]["spec"]["storageClassName"] == "fast"
    else:
        assert "web-3" not in found.pods
        blocked = condition(found.parent["status"], "CreationBlocked")["message"]
        assert "claim template 'logs'" in blocked
        assert "reads the value 'class', and the instance has none" in blocked


def test_an_edit_beside_the_template_alone_reaches_nobody_who_is_kept() -> None:
    """No roll begins, and who is kept still comes back as it was; the others get what is new."""
    steps = [edit(serviceName="new", updateStrategy=KEEP_2), lose(0, 2)]
    found = play(steps, world("data", serviceName="old"))
    assert made_of(found, 0) == "1 data=data-web-0 in new"
    assert made_of(found, 2) == "1 data=data-web-2 in old"
    play([edit(updateStrategy={}), lose(2)], found)
    assert made_of(found, 2) == "1 data=data-web-2 in new"


@pytest.mark.parametrize("tag", [1, 2], ids=["no roll", "a roll"])
@pytest.mark.parametrize(
    "after",
    [{"serviceName": "new"}, {"volumeClaimTemplates": claims("data")}],
    ids=["first service", "first claim"],
)
def test_who_is_kept_stays_without_what_its_revision_had_not(after: Document, tag: int) -> None:
    """The only one of its revision: no other pod shows that it had neither Service nor claims."""
    first = World(tapp(replicas=2, template=web(1)), history=True).settle()
    keep = {"partition": 1, "maxUnavailable": 2}
    found = play([edit(**after, template=web(tag), updateStrategy=keep), lose(0, 1)], first)
    assert made_of(found, 1) == "1"
    assert made_of(found, 0) != str(tag)


def test_a_rollback_mounts_the_claim_that_is_there_without_its_template() -> None:
    """A mount finds the instance's own claim of that name, whoever is kept."""
    found = play([edit(template=web(2, "data"), volumeClaimTemplates=claims("data"))], world())
    play([edit(template=web(1, "data", "logs")), lose(1)], found)
    assert {made_of(found, id) for id in range(3)} == {
        f"1 data=data-web-{id} logs=logs-web-{id}" for id in range(3)
    }


def test_a_rollback_leaves_what_is_recorded_for_who_is_kept() -> None:
    """The record is made again with another number, and says the same beside the template."""
    found = play([edit(**NO_LOGS), edit(template=web(1, "data", "logs"))], world())
    assert [each.get("volumeClaimTemplates") for each in recorded(found)] == [
        claims("data"), claims("data", "logs"),
    ]  # fmt: skip
    del found.claims["logs-web-2"]
    play([lose(0, 2)], found)
    assert made_of(found, 0) == "1 data=data-web-0 logs=logs-web-0"
    assert made_of(found, 2) == BOTH_2
    assert "logs-web-2" in found.claims


def test_a_claim_that_a_kept_instance_needs_is_never_lost() -> None:
    """With whenScaled Delete, too: what has no claim template stays."""
    policy = {"whenScaled": "Delete", "whenDeleted": "Retain"}
    start = world(persistentVolumeClaimRetentionPolicy=policy)
    found = play([edit(**NO_LOGS), lose(2), edit(replicas=2)], start)
    assert sorted(found.claims) == [
        "data-web-0", "data-web-1", "logs-web-0", "logs-web-1", "logs-web-2",
    ]  # fmt: skip
    play([edit(replicas=3)], found)
    assert made_of(found, 2) == BOTH_2


def sized(size: str, *names: str) -> list[Document]:
    found = [claim_template(name, size) for name in names]
    for each in found:
        each["spec"]["storageClassName"] = "fast"
    return found


def growing() -> World:
    """Three instances with two claims each, of a class that grows; the volumes are there."""
    fast = {"kind": "StorageClass", "metadata": {"name": "fast"}, "allowVolumeExpansion": True}
    first = tapp(replicas=3, template=web(1, "data", "logs"))
    first["spec"]["volumeClaimTemplates"] = sized("1Gi", "data", "logs")
    return bound(World(first, history=True, classes=[fast]).settle())


def bound(found: World, phase: str = "Bound") -> World:
    for claim in found.claims.values():
        claim["status"] = {"phase": phase}
    return found


def sizes(found: World, name: str) -> list[str]:
    """Requests of the claims of this name, by number."""
    claims = [found.claims[f"{name}-web-{id}"] for id in range(3)]
    return [claim["spec"]["resources"]["requests"]["storage"] for claim in claims]


def test_claims_of_who_is_kept_go_on_growing() -> None:
    """The size is today's template's, whatever is recorded."""
    steps = [edit(**{**NO_LOGS, "volumeClaimTemplates": sized("2Gi", "data")}), lose(2)]
    found = play(steps, growing())
    assert made_of(found, 2) == BOTH_2
    assert (sizes(found, "data"), sizes(found, "logs")) == (["2Gi"] * 3, ["1Gi"] * 3)


def test_a_claim_that_waits_to_grow_grows_although_its_template_has_gone() -> None:
    """As it was recorded, and for who is kept."""
    found = bound(growing(), "Pending")
    edit(volumeClaimTemplates=sized("2Gi", "data", "logs"))(found)
    edit(**{**NO_LOGS, "volumeClaimTemplates": sized("2Gi", "data")})(found)
    assert (sizes(found, "data"), sizes(found, "logs")) == (["1Gi"] * 3, ["1Gi"] * 3)
    bound(found).settle()
    assert (sizes(found, "data"), sizes(found, "logs")) == (["2Gi"] * 3, ["1Gi", "2Gi", "2Gi"])


def test_finalizers_are_for_new_pods_and_no_revision() -> None:
    """Another list is no roll and no write; who gets another pod has it, but not who is kept."""
    body = web(1, "data")
    body["metadata"]["finalizers"] = ["example.com/old"]
    found = world("data", template=body)
    changed = {**body, "metadata": {**body["metadata"], "finalizers": ["example.com/new"]}}
    found.change(template=changed).sync()
    assert found.writes == []
    assert condition(found.parent["status"], "Ready")["status"] == "True"
    play([lose(0)], found)
    assert [found.pods[f"web-{id}"]["metadata"]["finalizers"] for id in (0, 1)] == [
        ["example.com/new"], ["example.com/old"],
    ]  # fmt: skip
    play([edit(template=web(2, "data"), updateStrategy={"partition": 2}), lose(2)], found)
    assert found.pods["web-2"]["metadata"]["finalizers"] == ["example.com/old"]


# --- what the history holds of it ---------------------------------------------------------------

NEITHER = {"serviceName": "", "volumeClaimTemplates": []}


def recorded(found: World) -> list[Document]:
    """The data of the records, oldest first, without their templates."""
    ordered = sorted(found.revisions.values(), key=lambda each: each["revision"])
    return [
        {key: each["data"][key] for key in each["data"] if key != "template"} for each in ordered
    ]


def test_a_record_has_what_is_beside_its_template() -> None:
    """In the fields of the spec; that a TApp had neither is said, too."""
    found = world("data", serviceName="web")
    assert recorded(found) == [{"serviceName": "web", "volumeClaimTemplates": claims("data")}]
    assert recorded(World(tapp(), history=True).settle()) == [NEITHER]
    assert recorded(World(tapp(serviceName="web"), history=True).settle()) == [
        {"serviceName": "web", "volumeClaimTemplates": []}
    ]


def test_a_record_is_made_again_when_that_changes_and_not_before() -> None:
    """Of the same revision one record stays; nothing is written where nothing has changed."""
    found = world("data", serviceName="web")
    edit(serviceName="other")(found)
    assert recorded(found) == [{"serviceName": "other", "volumeClaimTemplates": claims("data")}]
    assert [each["revision"] for each in found.revisions.values()] == [2]
    edit(replicas=4)(found)
    assert [each["revision"] for each in found.revisions.values()] == [2]


@pytest.mark.parametrize("more", [{}, {"updateStrategy": {"partition": 1}}], ids=["", "partition"])
def test_a_record_of_an_earlier_release_stays_as_it_is(more: Document) -> None:
    """An upgrade of the service writes nothing, with a partition or without one."""
    found = world("data", serviceName="web", **more)
    silent(found)
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
    ids=["service", "claims", "entries", "name"],
)
def test_odd_things_beside_a_recorded_template_hide_it_from_nobody(data: Document) -> None:
    """The template counts; what cannot be read is as if it were not there."""
    found = world()
    edit(**NO_LOGS)(found)
    first = min(found.revisions.values(), key=lambda each: each["revision"])
    first["data"] |= data
    play([lose(2)], found)
    assert made_of(found, 2) == BOTH_2


@pytest.mark.parametrize(("kept", "service"), [(1, "new"), (2, "old")], ids=["alone", "one of two"])
def test_what_is_not_recorded_is_seen_in_others_or_said(kept: int, service: str) -> None:
    """Another pod of its revision shows the Service; else it is today's, and that is said."""
    found = world("data", serviceName="old")
    silent(found)
    roll = {"template": web(2, "data"), "updateStrategy": {"partition": kept}}
    edit(**roll, serviceName="new")(found)
    del found.pods["web-2"]
    message = found.hook.answer("/plan", found.request())["instances"][2]["message"]
    assert ("no pod shows it: it gets that of today, new" in message) == (service == "new")
    assert desired(found.sync(), "Pod")["web-2"]["spec"]["subdomain"] == service


def test_what_it_has_that_the_spec_has_no_longer_is_said() -> None:
    """Instances that are kept or made anew: with which claim, and in which Service."""
    found = world(serviceName="old")
    edit(**NO_LOGS, serviceName=None)(found)
    del found.pods["web-2"]
    plan = found.hook.answer("/plan", found.request())["instances"]
    kept = next(iter(found.parent["status"]["kept"]))
    assert [plan[1]["message"], plan[2]["message"]] == [
        f"the partition keeps it at revision {kept}, with its claim logs, in Service old",
        f"create it from template 'default' as it was at revision {kept}, with its claim logs, in "
        "Service old",
    ]
