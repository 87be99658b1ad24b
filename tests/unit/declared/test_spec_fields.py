"""Every field of `spec` keeps the meaning that the old controller gave it (docs/reference.md)."""

from typing import Any

import pytest

from tests.builders import Document, claim_template, tapp, template
from tests.reading import desired
from tests.unit.world import World, condition, settled

POOL = {"v1": template("app:v1"), "v2": template("app:v2")}


def first_pods(**spec: Any) -> dict[str, Document]:
    """The pods that the first sync of a TApp creates."""
    return desired(World(tapp(**spec)).sync(), "Pod")


def images(**spec: Any) -> list[str]:
    """The image of each instance of a new TApp."""
    return [pod["spec"]["containers"][0]["image"] for pod in first_pods(**spec).values()]


def test_instances_are_numbered_from_zero_to_replicas() -> None:
    assert list(first_pods(replicas=3)) == ["web-0", "web-1", "web-2"]


def test_replicas_default_to_one() -> None:
    assert list(first_pods(replicas=None)) == ["web-0"]


def test_zero_replicas_mean_no_pod() -> None:
    assert first_pods(replicas=0) == {}


def test_the_selector_is_accepted_and_plays_no_part() -> None:
    assert list(first_pods(selector={"matchLabels": {"other": "app"}})) == ["web-0"]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, "nginx:1.25", id="spec.template is the template called default"),
        pytest.param({"templates": {"0": "v1"}}, "app:v1", id="templates names one for an id"),
        pytest.param({"templates": {"1": "v1"}}, "nginx:1.25", id="other ids keep the default"),
        pytest.param({"templates": {"0": "default"}}, "nginx:1.25", id="default can be named"),
        pytest.param({"defaultTemplateName": "v2"}, "app:v2", id="defaultTemplateName"),
        pytest.param({"DefaultTemplateName": "v2"}, "app:v2", id="the old documented spelling"),
        pytest.param(
            {"DefaultTemplateName": "v1", "defaultTemplateName": "v2"},
            "app:v2",
            id="lower case wins",
        ),
        pytest.param(
            {"defaultTemplateName": "v2", "templates": {"0": "v1"}}, "app:v1", id="templates wins"
        ),
        pytest.param({"defaultTemplateName": ""}, "nginx:1.25", id="an empty name is no name"),
        pytest.param(
            {"template": None, "templatePool": {**POOL, "default": template("app:pool")}},
            "app:pool",
            id="the pool may hold the default",
        ),
    ],
)
def test_an_instance_runs_the_template_it_is_given(spec: Document, expected: str) -> None:
    assert images(**{"templatePool": POOL, **spec}) == [expected]


def test_every_instance_may_run_a_template_of_its_own() -> None:
    spec = {"replicas": 3, "templatePool": POOL, "templates": {"0": "v1", "2": "v2"}}
    assert images(**spec) == ["app:v1", "nginx:1.25", "app:v2"]


def test_killed_stops_an_instance_and_removing_the_entry_starts_it() -> None:
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
def test_other_values_in_statuses_change_nothing(value: str) -> None:
    assert settled().change(statuses={"0": value}).decisions() == {0: "Keep/UpToDate"}


def test_scaling_down_removes_the_highest_numbers_and_keeps_their_claims() -> None:
    world = settled(replicas=3, volumeClaimTemplates=[claim_template()]).change(replicas=1)
    assert world.decisions() == {0: "Keep/UpToDate", 1: "Delete/ScaledDown", 2: "Delete/ScaledDown"}
    world.settle()
    assert sorted(world.pods) == ["web-0"]
    assert len(world.claims) == 3


def test_paused_stops_updates_but_neither_creates_nor_deletes_nor_kills() -> None:
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


def test_paused_holds_back_an_unavailable_instance_too() -> None:
    world = settled()
    world.kubelet(ready=False)
    world.change(template=template("nginx:2"), updateStrategy={"paused": True})
    assert world.decisions() == {0: "Keep/Paused"}


def test_a_claim_per_instance_and_template_is_mounted_under_its_template_name() -> None:
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


def test_a_claim_takes_precedence_over_a_template_volume_of_its_name() -> None:
    volumes = [{"name": "data", "emptyDir": {}}, {"name": "tmp", "emptyDir": {}}]
    pod = first_pods(template=template(volumes=volumes), volumeClaimTemplates=[claim_template()])
    assert pod["web-0"]["spec"]["volumes"] == [
        {"name": "tmp", "emptyDir": {}},
        {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-0"}},
    ]


def test_service_name_gives_every_pod_a_stable_host_name() -> None:
    spec = first_pods(serviceName="web-headless")["web-0"]["spec"]
    assert (spec["hostname"], spec["subdomain"]) == ("web-0", "web-headless")


def test_without_service_name_the_host_name_is_left_to_kubernetes() -> None:
    assert not {"hostname", "subdomain"} & first_pods()["web-0"]["spec"].keys()


def test_pods_carry_their_number_and_both_revisions() -> None:
    labels = first_pods(replicas=2)["web-1"]["metadata"]["labels"]
    assert labels["tapp_instance_key"] == "1"
    assert labels["apps.kubernetes.io/pod-index"] == "1"
    assert labels["app"] == "web"
    assert labels["tapp_template_hash_key"]
    assert labels["tapp_uniq_hash_key"]


@pytest.mark.parametrize(
    ("used", "expected"),
    [
        pytest.param({}, "spare, v1, v2", id="nothing refers to any"),
        pytest.param({"templates": {"0": "v1"}}, "spare, v2", id="a value of templates"),
        pytest.param({"templates": {"9": "v1"}}, "spare, v2", id="of an id that does not exist"),
        pytest.param({"defaultTemplateName": "v1"}, "spare, v2", id="the default"),
        pytest.param({"DefaultTemplateName": "v1"}, "spare, v2", id="the default, old spelling"),
        pytest.param({"updateStrategy": {"template": "v1"}}, "spare, v2", id="the rolling one"),
    ],
)
def test_unused_templates_are_named_where_they_should_be_removed(
    used: Document, expected: str
) -> None:
    pool = {**POOL, "spare": template()}
    world = World(tapp(templatePool=pool, autoDeleteUnusedTemplate=True, **used))
    found = condition(world.sync(), "UnusedTemplates")
    assert found is not None
    assert f"nothing refers to {expected};" in found["message"]


def test_unused_templates_are_nobodys_business_unless_asked() -> None:
    assert condition(World(tapp(templatePool=POOL)).sync(), "UnusedTemplates") is None


def test_nulls_in_a_spec_are_absent_fields() -> None:
    nulls = ("templatePool", "templates", "statuses", "updateStrategy", "serviceName", "selector")
    parent = tapp()
    parent["spec"] |= dict.fromkeys(nulls)
    assert World(parent).decisions() == {0: "Create/NoPod"}


def test_an_entry_that_is_null_is_no_entry() -> None:
    parent = tapp(replicas=2)
    parent["spec"] |= {
        "templatePool": {"a": None, "b": template("nginx:b")},
        "templates": {"0": None, "1": "b"},
        "statuses": {"0": None},
    }
    assert World(parent).decisions() == {0: "Create/NoPod", 1: "Create/NoPod"}


def test_a_field_that_kubernetes_may_add_one_day_reaches_the_pod() -> None:
    pod = first_pods(template=template(container={"futureField": {"a": 1}}, futureSpec="x"))
    assert pod["web-0"]["spec"]["containers"][0]["futureField"] == {"a": 1}
    assert pod["web-0"]["spec"]["futureSpec"] == "x"


def test_min_ready_seconds_beyond_an_int32_are_refused() -> None:
    """A number too large for the clock's arithmetic would be an error of ours."""
    world = World(tapp(minReadySeconds=10**400))
    response = world.hook.post("/sync", world.request())
    assert response.status_code == 400
    assert b"parent.spec.minReadySeconds" in response.data
