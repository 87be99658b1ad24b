"""Tests that every field of `spec` has the meaning that the old controller gave it
(docs/reference.md).
"""

from typing import Any

import pytest

from tests.builders import Document, claim_template, tapp, template
from tests.hook_calls import desired
from tests.unit.world import World, condition, settled

POOL = {"v1": template("app:v1"), "v2": template("app:v2")}


def first_pods(**spec: Any) -> dict[str, Document]:
    """Returns name -> pod for the pods that the first sync of a TApp creates."""
    return desired(World(tapp(**spec)).sync(), "Pod")


def images(**spec: Any) -> list[str]:
    """Returns the image of each instance of a new TApp, by instance number."""
    return [pod["spec"]["containers"][0]["image"] for pod in first_pods(**spec).values()]


def test_instances_are_numbered_from_zero() -> None:
    assert list(first_pods(replicas=3)) == ["web-0", "web-1", "web-2"]


def test_replicas_are_one_by_default() -> None:
    assert list(first_pods(replicas=None)) == ["web-0"]


def test_zero_replicas_create_no_pod() -> None:
    assert first_pods(replicas=0) == {}


def test_selector_is_accepted_and_ignored() -> None:
    assert list(first_pods(selector={"matchLabels": {"other": "app"}})) == ["web-0"]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, "nginx:1.25", id="spec.template by default"),
        pytest.param({"templates": {"0": "v1"}}, "app:v1", id="entry in templates"),
        pytest.param({"templates": {"1": "v1"}}, "nginx:1.25", id="entry of another instance"),
        pytest.param(
            {"templates": {"0": "default"}}, "nginx:1.25", id="entry with the name default"
        ),
        pytest.param({"defaultTemplateName": "v2"}, "app:v2", id="defaultTemplateName"),
        pytest.param({"DefaultTemplateName": "v2"}, "app:v2", id="DefaultTemplateName"),
        pytest.param(
            {"DefaultTemplateName": "v1", "defaultTemplateName": "v2"},
            "app:v2",
            id="defaultTemplateName before DefaultTemplateName",
        ),
        pytest.param(
            {"defaultTemplateName": "v2", "templates": {"0": "v1"}},
            "app:v1",
            id="templates before defaultTemplateName",
        ),
        pytest.param({"defaultTemplateName": ""}, "nginx:1.25", id="empty name"),
        pytest.param(
            {"template": None, "templatePool": {**POOL, "default": template("app:pool")}},
            "app:pool",
            id="default template in the pool",
        ),
    ],
)
def test_template_of_an_instance_depends_on_templates_and_default_name(
    spec: Document, expected: str
) -> None:
    assert images(**{"templatePool": POOL, **spec}) == [expected]


def test_each_instance_can_have_its_own_template() -> None:
    spec = {"replicas": 3, "templatePool": POOL, "templates": {"0": "v1", "2": "v2"}}
    assert images(**spec) == ["app:v1", "nginx:1.25", "app:v2"]


def test_killed_deletes_the_pod_and_removing_the_entry_creates_it_again() -> None:
    world = settled(replicas=2, volumeClaimTemplates=[claim_template()])
    world.change(statuses={"0": "Killed"})
    assert world.decisions() == {0: "Delete/Killed", 1: "Keep/UpToDate"}
    world.settle()
    assert sorted(world.pods) == ["web-1"]
    assert sorted(world.claims) == ["data-web-0", "data-web-1"]
    assert world.parent["status"]["statuses"] == {"0": "Killed", "1": "Running"}
    world.change(statuses=None).settle()
    assert sorted(world.pods) == ["web-0", "web-1"]


@pytest.mark.parametrize("value", ["Running", "killed", "Succ", ""])
def test_other_words_in_statuses_have_no_effect(value: str) -> None:
    assert settled().change(statuses={"0": value}).decisions() == {0: "Keep/UpToDate"}


def test_scale_down_deletes_the_highest_instances_and_keeps_their_claims() -> None:
    world = settled(replicas=3, volumeClaimTemplates=[claim_template()]).change(replicas=1)
    assert world.decisions() == {0: "Keep/UpToDate", 1: "Delete/ScaledDown", 2: "Delete/ScaledDown"}
    world.settle()
    assert sorted(world.pods) == ["web-0"]
    assert len(world.claims) == 3


def test_paused_blocks_updates_but_no_creations_and_no_kills() -> None:
    world = settled(replicas=3).change(
        replicas=4,
        template=template("nginx:2"),
        updateStrategy={"paused": True},
        statuses={"1": "Killed"},
    )
    assert world.decisions() == {
        0: "Keep/Paused",
        1: "Delete/Killed",
        2: "Keep/Paused",
        3: "Create/NoPod",
    }
    answer = world.settle().sync()
    progressing = condition(answer, "Progressing")
    assert progressing is not None
    assert progressing["reason"] == "Paused"
    world.change(updateStrategy=None).settle()
    assert world.container(0)["image"] == "nginx:2"


def test_paused_blocks_updates_of_unavailable_instances() -> None:
    world = settled()
    world.kubelet(ready=False)
    world.change(template=template("nginx:2"), updateStrategy={"paused": True})
    assert world.decisions() == {0: "Keep/Paused"}


def test_each_instance_has_a_volume_for_each_claim_template() -> None:
    mounts = {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    answer = World(
        tapp(
            replicas=2,
            template=template(container=mounts),
            volumeClaimTemplates=[claim_template(), claim_template("logs")],
        )
    ).sync()
    assert sorted(desired(answer, "PersistentVolumeClaim")) == [
        "data-web-0",
        "data-web-1",
        "logs-web-0",
        "logs-web-1",
    ]
    pod = desired(answer, "Pod")["web-1"]
    assert pod["spec"]["volumes"] == [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-1"}},
        {"name": "logs", "persistentVolumeClaim": {"claimName": "logs-web-1"}},
    ]


def test_claim_replaces_a_volume_of_the_same_name_in_the_template() -> None:
    volumes = [{"name": "data", "emptyDir": {}}, {"name": "tmp", "emptyDir": {}}]
    pod = first_pods(template=template(volumes=volumes), volumeClaimTemplates=[claim_template()])
    assert pod["web-0"]["spec"]["volumes"] == [
        {"name": "tmp", "emptyDir": {}},
        {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-0"}},
    ]


def test_service_name_sets_hostname_and_subdomain() -> None:
    spec = first_pods(serviceName="web-headless")["web-0"]["spec"]
    assert spec["hostname"] == "web-0"
    assert spec["subdomain"] == "web-headless"


def test_hostname_and_subdomain_are_not_set_without_a_service_name() -> None:
    assert not {"hostname", "subdomain"} & first_pods()["web-0"]["spec"].keys()


def test_pods_have_labels_with_their_number_and_both_revisions() -> None:
    labels = first_pods(replicas=2)["web-1"]["metadata"]["labels"]
    assert labels["tapp_instance_key"] == "1"
    assert labels["apps.kubernetes.io/pod-index"] == "1"
    assert labels["app"] == "web"
    assert labels["tapp_template_hash_key"]
    assert labels["tapp_uniq_hash_key"]


@pytest.mark.parametrize(
    ("used", "expected"),
    [
        pytest.param({}, "spare, v1, v2", id="all unused"),
        pytest.param({"templates": {"0": "v1"}}, "spare, v2", id="used in templates"),
        pytest.param(
            {"templates": {"9": "v1"}}, "spare, v2", id="used by an instance outside replicas"
        ),
        pytest.param({"defaultTemplateName": "v1"}, "spare, v2", id="used as default"),
        pytest.param(
            {"DefaultTemplateName": "v1"}, "spare, v2", id="used as default, old field name"
        ),
        pytest.param(
            {"updateStrategy": {"template": "v1"}}, "spare, v2", id="used as rolling template"
        ),
    ],
)
def test_unused_templates_are_named_with_auto_delete_unused_template(
    used: Document, expected: str
) -> None:
    pool = {**POOL, "spare": template()}
    world = World(tapp(templatePool=pool, autoDeleteUnusedTemplate=True, **used))
    found = condition(world.sync(), "UnusedTemplates")
    assert found is not None
    names = ", ".join(f"'{name}'" for name in expected.split(", "))
    assert f"no instance uses {names};" in found["message"]


def test_unused_templates_set_no_condition_by_default() -> None:
    assert condition(World(tapp(templatePool=POOL)).sync(), "UnusedTemplates") is None


def test_null_field_of_the_spec_counts_as_absent() -> None:
    nulls = ("templatePool", "templates", "statuses", "updateStrategy", "serviceName", "selector")
    parent = tapp()
    parent["spec"] |= dict.fromkeys(nulls)
    assert World(parent).decisions() == {0: "Create/NoPod"}


def test_null_entry_of_a_map_counts_as_absent() -> None:
    parent = tapp(replicas=2)
    parent["spec"] |= {
        "templatePool": {"a": None, "b": template("nginx:b")},
        "templates": {"0": None, "1": "b"},
        "statuses": {"0": None},
    }
    assert World(parent).decisions() == {0: "Create/NoPod", 1: "Create/NoPod"}


def test_unknown_field_of_a_template_reaches_the_pod() -> None:
    pod = first_pods(template=template(container={"futureField": {"a": 1}}, futureSpec="x"))
    assert pod["web-0"]["spec"]["containers"][0]["futureField"] == {"a": 1}
    assert pod["web-0"]["spec"]["futureSpec"] == "x"


def test_min_ready_seconds_beyond_an_int32_are_refused() -> None:
    """A huge number in minReadySeconds gets 400 with its path; it would overflow the arithmetic
    with times.
    """
    world = World(tapp(minReadySeconds=10**400))
    response = world.hook.post("/sync", world.request())
    assert response.status_code == 400
    assert b"parent.spec.minReadySeconds" in response.data
