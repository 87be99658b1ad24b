"""Tests `updateStrategy.domain`: updates take down instances of one failure domain at a time.

A domain is the value of a label of the pods. Most tests use a zone, which admission copies from the
node when the pod is bound.
"""

import json

import pytest

from tests.builders import Document, completed, crashing, running, tapp, template, terminating
from tests.counting import calls
from tests.unit.decide.pods import annotated
from tests.unit.decide.zones import (
    IMAGE,
    OTHER,
    ZONE,
    Zones,
    begun,
    in_zones,
    labeled,
    message_of,
    released,
    turns,
    waiting,
)
from tests.unit.world import condition


@pytest.mark.parametrize("body", [OTHER, IMAGE], ids=["new pods", "in place"])
@pytest.mark.parametrize(
    ("zones", "expected"),
    [
        pytest.param("a", [[0]], id="one instance"),
        pytest.param("abc", [[0], [1], [2]], id="three instances"),
        pytest.param("cba", [[0], [1], [2]], id="the first instance decides, not the name"),
        pytest.param("abcabcabcabc", [[0, 3, 6, 9], [1, 4, 7, 10], [2, 5, 8, 11]], id="twelve"),
        pytest.param("aaab", [[0, 1, 2], [3]], id="unequal domains"),
    ],
)
def test_domains_are_updated_one_after_the_other(
    zones: str, expected: list[list[int]], body: Document
) -> None:
    assert turns(in_zones(zones).change(template=body)) == expected


def test_unset_domain_changes_no_decision() -> None:
    world = in_zones("abc", key="").change(template=OTHER)
    assert begun(world) == [0, 1, 2]
    assert waiting(world) == []


def test_setting_a_domain_writes_nothing() -> None:
    world = in_zones("abc", key="")
    before = world.uids()
    world.change(updateStrategy={"domain": ZONE}).sync()
    assert world.writes == []
    assert world.uids() == before


def test_budget_holds_within_a_domain() -> None:
    world = in_zones("ababab", updateStrategy={"maxUnavailable": 2}).change(template=OTHER)
    assert world.decisions() == {
        0: "Recreate/TemplateChanged",
        1: "Keep/WaitingForDomain",
        2: "Recreate/TemplateChanged",
        3: "Keep/WaitingForDomain",
        4: "Keep/WaitingForBudget",
        5: "Keep/WaitingForDomain",
    }
    assert turns(world) == [[0, 2], [4], [1, 3], [5]]


def test_waiting_instance_names_instances_and_domain() -> None:
    world = in_zones("aab").change(template=OTHER)
    assert message_of(world, 2) == (
        "the update waits until instances 0, 1 of domain a (spec.updateStrategy.domain: "
        f"{ZONE}) are updated and available"
    )
    answer = world.sync()
    progressing = condition(answer, "Progressing")
    assert progressing is not None
    assert (
        "instance 2 waits for another failure domain, until instances 0, 1 of domain a"
        in (progressing["message"])
    )
    assert progressing["reason"] == "Updating"


def test_next_domain_waits_until_the_updated_pods_are_available() -> None:
    world = in_zones("ab").change(template=OTHER)
    world.sync()
    world.kubelet()  # removes the old pod
    world.sync()
    world.kubelet()
    world.modify(0, lambda pod: running(pod, ready=False))
    assert begun(world) == []
    assert "instance 0 of domain a" in message_of(world, 1)
    world.kubelet()
    assert begun(world) == [1]


def test_update_that_breaks_the_first_domain_does_not_go_on() -> None:
    world = in_zones("aabb").change(template=OTHER)
    for _ in range(6):
        world.sync()
        world.kubelet()
        for id in (0, 1):
            if f"web-{id}" in world.pods:
                world.modify(id, crashing)
        assert begun(world) in ([], [0, 1])
    assert waiting(world) == [2, 3]
    # The next template repairs the first domain at once, and then the others follow.
    world.change(template=template("nginx:3", container={"command": ["run"]}))
    assert begun(world) == [0, 1]
    assert turns(world)[-1] == [2, 3]


def test_broken_instance_is_updated_in_whatever_domain_it_is() -> None:
    world = in_zones("aabb").modify(3, crashing).change(template=OTHER)
    assert begun(world) == [3]
    # While it is not available, no instance that serves is taken down in another domain.
    assert "instance 3 of domain b" in message_of(world, 0)
    assert turns(world) == [[3], [0, 1], [2]]


def test_unavailable_instance_of_a_later_domain_keeps_the_first_one_waiting() -> None:
    world = in_zones("aabb").change(template=OTHER)
    world.pods["web-3"] = running(world.pods["web-3"], ready=False)
    world.zones[3] = "b"
    assert begun(world) == [3]
    world.sync()
    world.kubelet()
    world.sync()  # creates the pod, which has no node
    assert begun(world) == []
    assert "instance 3, whose domain is not known before its pod has a node" in message_of(world, 0)


def test_unbound_pod_keeps_all_domains_waiting() -> None:
    world = in_zones("abab").change(template=OTHER, updateStrategy={"domain": ZONE})
    world.unbound = {0}
    for _ in range(4):
        world.sync()
        world.kubelet()
    assert "web-0" in world.pods
    assert "nodeName" not in world.pod(0)["spec"]
    assert begun(world) == []
    world.unbound = set()
    world.kubelet()
    assert begun(world) == [2]


def test_pod_that_comes_back_in_another_zone_never_mixes_two_domains() -> None:
    """The pod of instance 0 is created again in zone c, and of instance 3 in zone a."""
    world = in_zones("abcabc").change(template=OTHER)
    world.zones |= {0: "c", 3: "a"}
    assert turns(world) == [[0, 3], [2, 5], [1, 4]]


def test_pods_without_the_label_are_updated_alone_and_last() -> None:
    world = in_zones("-b-bb").change(template=OTHER)
    answer = world.hook.sync(world.request())
    found = condition(answer, "DomainLabelMissing")
    assert found is not None
    assert found["reason"] == "NotLabeled"
    assert found["message"].startswith(
        f"spec.updateStrategy.domain: pods have no label '{ZONE}' (instances 0, 2), so"
    )
    assert condition(answer, "Degraded")["status"] == "False"  # type: ignore[index]
    assert turns(world) == [[1, 3, 4], [0], [2]]


def test_mistyped_key_updates_one_instance_at_a_time() -> None:
    """Kubernetes 1.34 copies no zones to pods, which looks the same."""
    world = in_zones("aab", key="topology.kubernetes.io/zon").change(template=OTHER)
    assert turns(world) == [[0], [1], [2]]


def test_empty_label_counts_as_missing() -> None:
    world = in_zones("--", key="rack")
    for id in (0, 1):
        world.modify(id, lambda pod: labeled(pod, "", "rack"))
    assert begun(world.change(template=OTHER)) == [0]


def test_condition_goes_when_the_pods_have_the_label() -> None:
    world = in_zones("-a")
    world.zones[0] = "b"
    assert condition(world.sync(), "DomainLabelMissing") is not None
    world.change(template=OTHER)
    assert turns(world) == [[1], [0]]
    assert condition(world.sync(), "DomainLabelMissing") is None


def test_label_of_the_template_with_a_placeholder_names_the_domain() -> None:
    def body(image: str) -> Document:
        return template(image, labels={"app": "web", "zone": "$(tapp.values.zone)"})

    world = in_zones(
        "----",
        key="zone",
        template=body("nginx:1"),
        defaultValues={"zone": "a"},
        values={"0": {"zone": "b"}, "3": {"zone": "b"}},
    )
    assert condition(world.sync(), "DomainLabelMissing") is None
    world.change(template=body("nginx:2"))
    assert turns(world) == [[0, 3], [1, 2]]


def test_missing_pod_is_in_the_domain_of_its_template() -> None:
    body = template(labels={"app": "web", "zone": "$(tapp.index)"})
    world = in_zones("--", key="zone", template=body)
    world.change(template=template("nginx:2", labels={"app": "web", "zone": "$(tapp.index)"}))
    del world.pods["web-1"]
    assert world.decisions()[1] == "Create/NoPod"
    assert "instance 1 of domain 1 " in message_of(world, 0)


def test_partition_keeps_instances_of_any_domain_and_the_others_follow_the_domains() -> None:
    world = in_zones("abab", updateStrategy={"partition": 1}).change(template=OTHER)
    assert turns(world) == [[0, 2], [1]]
    world.change(updateStrategy={"domain": ZONE})
    assert turns(world) == [[3]]


def test_descending_order_begins_with_the_domain_of_the_last_instance() -> None:
    world = in_zones("abc", updateStrategy={"order": "Descending"}).change(template=OTHER)
    assert turns(world) == [[2], [1], [0]]


def test_priority_moves_the_domain_of_its_instance_to_the_front() -> None:
    world = in_zones("abcabc").modify(4, annotated("apps.tkestack.io/update-priority", "9"))
    assert turns(world.change(template=OTHER)) == [[1, 4], [0, 3], [2, 5]]


def test_ordered_ready_creates_pods_in_order_while_domains_wait() -> None:
    world = in_zones("abab", podManagementPolicy="OrderedReady").change(template=OTHER)
    played = turns(world)
    assert sorted(id for ids in played for id in ids) == [0, 1, 2, 3]
    assert played[0] == [0, 2]


def test_pod_on_hold_is_passed_over_and_does_not_mix_two_domains_later() -> None:
    world = in_zones("aabb").modify(1, annotated("apps.tkestack.io/hold", "match"))
    world.change(template=OTHER)
    assert begun(world) == [0]
    world.sync()
    assert begun(world) == [0] or waiting(world) == [2, 3]
    for _ in range(3):
        world.kubelet()
        world.sync()
    # The hold ends while the second domain is updated: its update waits for that domain.
    world.modify(1, released)
    assert "web-2" not in world.pods or begun(world) == []
    assert turns(world)[-1] == [1]


def test_hold_on_a_whole_domain_does_not_stop_the_others() -> None:
    world = in_zones("ab").modify(0, annotated("apps.tkestack.io/hold", "match"))
    assert begun(world.change(template=OTHER)) == [1]


@pytest.mark.parametrize("ended", ["Killed", "finished"])
def test_instance_that_should_not_run_keeps_no_domain_waiting(ended: str) -> None:
    world = in_zones("aab", template=template(restartPolicy="OnFailure"))
    if ended == "Killed":
        world.change(statuses={"0": "Killed"})
    else:
        world.modify(0, lambda pod: completed(pod, "Succeeded"))
    world.settle()
    body = template(container={"command": ["run"]}, restartPolicy="OnFailure")
    assert turns(world.change(template=body)) == [[1], [2]]


def test_force_group_is_not_held_by_domains() -> None:
    pool = {"a": template(), "b": template()}
    world = in_zones("aabb", templatePool=pool, templates={"1": "a", "3": "b"})
    world.change(template=OTHER, templatePool={"a": OTHER, "b": OTHER})
    # The update of instance 3 takes it down, so the rolling group waits until it is available.
    assert begun(world) == [1, 3]
    assert waiting(world) == [0, 2]
    world.sync()
    world.kubelet()
    assert turns(world) == [[0], [2]]


def test_mistyped_rolling_template_does_not_widen_the_domain() -> None:
    world = in_zones("ab", updateStrategy={"template": "typo"}).change(template=OTHER)
    assert begun(world) == [0]


def test_paused_updates_say_that_they_are_paused() -> None:
    strategy = {"domain": ZONE, "paused": True}
    world = in_zones("ab").change(template=OTHER, updateStrategy=strategy)
    assert {*world.decisions().values()} == {"Keep/Paused"}


def test_images_of_a_later_domain_are_pulled_when_its_turn_comes() -> None:
    strategy = {"inPlaceUpdateStrategy": {"prePull": True}}
    world = in_zones("ab", updateStrategy=strategy).change(template=IMAGE)
    assert world.decisions() == {0: "Keep/PullingImages", 1: "Keep/WaitingForDomain"}


def test_spec_edited_in_mid_roll_begins_again_when_the_second_domain_is_available() -> None:
    world = in_zones("aabb").change(template=OTHER)
    for _ in range(4):
        world.sync()
        world.kubelet()
    assert begun(world) == [] or begun(world) == [2, 3]
    world.sync()
    world.change(template=template("nginx:3", container={"command": ["run"]}))
    world.kubelet()
    for first in turns(world):
        assert {*first} in ({0, 1}, {2, 3})


def test_instance_that_cannot_be_updated_keeps_the_next_domain_waiting() -> None:
    """The value that instance 0 lacks stops the rollout before it reaches another zone."""
    world = in_zones("aab")
    world.change(
        template=template("$(tapp.values.image)"), values={"1": {"image": "b"}, "2": {"image": "b"}}
    )
    assert world.decisions()[0].startswith("Keep/")
    assert begun(world) == [1]
    assert waiting(world) == [2]


def test_pool_template_as_rolling_template_follows_the_domains() -> None:
    pool = {"blue": template()}
    strategy = {"template": "blue"}
    world = in_zones("ab", templatePool=pool, defaultTemplateName="blue", updateStrategy=strategy)
    assert turns(world.change(templatePool={"blue": OTHER})) == [[0], [1]]


def test_terminating_pod_keeps_other_domains_waiting() -> None:
    world = in_zones("ab").modify(1, terminating).change(template=OTHER)
    assert begun(world) == []
    assert "instance 1 of domain b" in message_of(world, 0)


def test_stale_cache_begins_no_second_domain() -> None:
    world = in_zones("ab").change(template=OTHER)
    stale = world.request()
    world.sync()
    assert world.hook.decisions(stale)[1] == "Keep/WaitingForDomain"


def test_template_hash_does_not_depend_on_the_domain() -> None:
    hashes = {
        json.dumps(in_zones("a", key=key).pod(0)["metadata"]["labels"], sort_keys=True)
        for key in ("", ZONE)
    }
    assert len(hashes) == 1


@pytest.mark.parametrize("domains", [3, 1_000])
def test_work_is_linear_in_the_instances_whatever_the_number_of_domains(domains: int) -> None:
    def work(replicas: int) -> int:
        world = Zones(
            tapp(replicas=replicas, updateStrategy={"domain": ZONE, "maxUnavailable": "100%"}),
            {id: f"z{id % domains}" for id in range(replicas)},
        )
        world.sync()
        world.kubelet()
        world.sync()
        world.change(template=OTHER)
        body = world.request()
        decided = world.hook.decisions(body)
        expected = [id for id in range(replicas) if id % domains == 0]
        assert [id for id, text in decided.items() if text.startswith("Recreate")] == expected
        return calls(lambda: world.hook.answer("/sync", body))

    assert work(1_000) < 2.2 * work(500)
