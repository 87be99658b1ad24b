"""Bugs of the old controller: none of them may come back.

Some cannot exist here, and why:

* Grace-0 deletes of pods on healthy nodes: a hook cannot force a deletion at all; the refusal
  of `forceDeletePod` is tested in `test_spec_fields.py`.
* Ready set by the controller, cached pods changed in place: a hook writes neither a
  pod's status nor anything else; Metacontroller does, from a snapshot.
* Errors only logged: an error is a 4xx or 5xx, on which Metacontroller backs off and retries;
  tested in `tests/contract/test_http_errors.py`.
* A v1beta1 CRD, admission and lock: the CRD is v1 (`tests/contract/test_crd.py`), there is no
  admission webhook and no leader election.
* Pods found by selectors, all of them broken by one: Metacontroller finds children by owner
  and generated selector.
"""

from tests.builders import (
    Document,
    claim_template,
    completed,
    crashing,
    running,
    tapp,
    template,
    terminating,
)
from tests.reading import bare, desired
from tests.unit.world import Hook, World, settled

NEW = template("nginx:2", container={"command": ["run"]})


def actions(world: World) -> list[str]:
    """The action on each instance."""
    return [text.split("/")[0] for text in world.decisions().values()]


def test_unknown_template_name_deletes_nothing() -> None:
    world = settled(replicas=3).change(defaultTemplateName="typo")
    before = world.uids()
    for _ in range(3):
        world.sync()
        world.kubelet()
    assert world.uids() == before


def test_broken_instances_can_be_force_fixed() -> None:
    """With one replica that crashes, or with all of them broken, the force budget still acts."""
    pool = {"v1": template(), "v2": NEW}
    for replicas in (1, 3):
        world = settled(
            replicas=replicas,
            templatePool=pool,
            defaultTemplateName="v1",
            updateStrategy={"template": "other", "forceUpdate": {"maxUnavailable": 1}},
        )
        for id in range(replicas):
            world.modify(id, crashing)
        assert actions(world.change(defaultTemplateName="v2")) == ["Recreate"] * replicas


def test_a_scarce_force_budget_goes_to_the_lowest_numbers() -> None:
    pool = {"v1": template(), "v2": NEW, "other": template()}
    strategy = {"template": "other", "forceUpdate": {"maxUnavailable": 3}}
    world = settled(
        replicas=12, templatePool=pool, defaultTemplateName="v1", updateStrategy=strategy
    )
    world.change(defaultTemplateName="v2")
    world.pods = dict(reversed(world.pods.items()))
    assert actions(world) == ["Recreate"] * 3 + ["Keep"] * 9


def test_another_default_template_rolls_at_the_rolling_budget() -> None:
    """The rolling template's name is the default's of today, never one that was written back."""
    pool = {"v1": template(), "v2": NEW}
    world = settled(replicas=5, templatePool=pool, defaultTemplateName="v1")
    assert actions(world.change(defaultTemplateName="v2")) == ["Recreate"] + ["Keep"] * 4


def test_a_pool_template_without_labels_is_noticed_when_it_changes() -> None:
    def pool(image: str) -> Document:
        body = template(image)
        del body["metadata"]
        return {"v1": body}

    world = settled(replicas=2, templatePool=pool("app:1"), defaultTemplateName="v1")
    before = world.uids()
    world.change(templatePool=pool("app:2")).settle()
    assert [world.container(id)["image"] for id in (0, 1)] == ["app:2", "app:2"]
    assert world.uids() == before


def test_the_image_name_that_the_runtime_reports_does_not_matter() -> None:
    def reported(pod: Document) -> Document:
        status = running(pod)["status"]
        statuses = [
            {**item, "image": "docker.io/library/" + item["image"], "imageID": ""}
            for item in status["containerStatuses"]
        ]
        return {**pod, "status": {**status, "containerStatuses": statuses}}

    world = settled(replicas=2).change(template=template("nginx:2"))
    world.sync()
    world.modify(0, reported)
    assert world.hook.sync(world.request())["status"]["statuses"]["0"] == "Running"
    assert actions(world) == ["Keep", "UpdateInPlace"]


def test_a_changed_init_image_makes_a_new_pod() -> None:
    def version(image: str) -> Document:
        return template(initContainers=[{"name": "init", "image": image}])

    world = settled(template=version("init:1"))
    before = world.uids()
    world.change(template=version("init:2")).settle()
    assert world.uids() != before
    assert world.container(0, "init")["image"] == "init:2"


def test_never_migrate_is_about_completed_pods_and_keeps_them() -> None:
    """Its meaning is kept; a change of the spec still makes a new pod of a running instance."""
    world = settled(replicas=2, neverMigrate=True).modify(0, lambda pod: completed(pod, "Failed"))
    assert actions(world.change(template=NEW)) == ["Keep", "Recreate"]


def test_a_sidecar_injected_in_front_keeps_its_image() -> None:
    world = settled()
    pod = world.pod(0)
    mesh = {**pod["spec"]["containers"][0], "name": "mesh", "image": "mesh:9"}
    spec = {**pod["spec"], "containers": [mesh, *pod["spec"]["containers"]]}
    world.pods["web-0"] = running({**pod, "spec": spec})
    world.change(template=template("nginx:2")).settle()
    assert [item["image"] for item in world.pod(0)["spec"]["containers"]] == ["mesh:9", "nginx:2"]


def test_labels_that_left_the_template_leave_the_pod() -> None:
    world = settled(template=template(labels={"app": "web", "old": "x"}))
    world.change(template=template(labels={"app": "web"})).settle()
    assert "old" not in world.pod(0)["metadata"]["labels"]


def test_fields_that_are_newer_than_the_code_reach_the_pod() -> None:
    body = template(
        container={"startupProbe": {"tcpSocket": {"port": 80}}},
        topologySpreadConstraints=[
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
        ],
        initContainers=[{"name": "p", "image": "p:1", "restartPolicy": "Always"}],
        fieldOfTheFuture={"a": [1]},
    )
    pod = desired(World(tapp(template=body)).sync(), "Pod")["web-0"]
    assert pod["spec"] == body["spec"]


def test_another_spelling_of_a_quantity_restarts_nothing() -> None:
    def asking(cpu: str) -> Document:
        return template(container={"resources": {"requests": {"cpu": cpu}}})

    world = settled(template=asking("0.5")).change(template=asking("500m"))
    world.sync()
    assert world.writes == []


def test_neither_surplus_nor_stopped_instances_count_as_replicas() -> None:
    world = settled(replicas=4, statuses={"0": "Killed"})
    world.change(replicas=3)
    status = world.hook.sync(world.request())["status"]
    assert status["replicas"] == 2
    assert sorted(status["statuses"]) == ["0", "1", "2"]


def test_an_in_place_update_can_be_seen_and_keeps_the_app_running() -> None:
    world = settled().change(template=template("nginx:2"))
    world.sync()
    status = world.hook.sync(world.request())["status"]
    assert status["statuses"] == {"0": "Updating"}
    assert status["appStatus"] == "Running"


def test_a_status_that_was_decided_is_not_overwritten() -> None:
    world = settled(template=template(restartPolicy="Never"))
    world.modify(0, lambda pod: terminating(completed(pod, "Failed")))
    assert world.hook.sync(world.request())["status"]["statuses"] == {"0": "Killing"}


def test_the_setting_does_what_its_name_says() -> None:
    """True: pods are deleted after the app has finished; false: each as it finishes."""
    for setting, left in ((True, ["web-0", "web-1"]), (False, ["web-1"])):
        hook = Hook(delete_pod_after_app_finish=setting)
        body = template(restartPolicy="Never")
        world = World(tapp(replicas=2, template=body), hook=hook).settle()
        world.modify(0, lambda pod: completed(pod, "Succeeded")).settle()
        assert sorted(world.pods) == left


def test_the_base_of_a_budget_is_what_should_run() -> None:
    """Killed and finished instances do not shrink or stretch it; new ones do count."""
    world = settled(replicas=4, statuses={"3": "Killed"})
    world.change(template=NEW, updateStrategy={"maxUnavailable": "67%"})
    assert actions(world) == ["Recreate", "Recreate", "Recreate", "Absent"]  # 67% of 3 is 3
    world = settled(replicas=4, statuses={"3": "Killed"})
    world.change(template=NEW, updateStrategy={"maxUnavailable": "67%"}, replicas=8)
    # Seven should run now and three are available: 67% of 7 is 5, so two must stay.
    assert actions(world) == ["Recreate", "Keep", "Keep", "Absent", *["Create"] * 4]


def test_the_spec_is_never_written_back() -> None:
    answer = World(tapp(autoDeleteUnusedTemplate=True, templatePool={"x": template()})).sync()
    assert answer.keys() <= {"status", "children", "resyncAfterSeconds"}
    assert {child["kind"] for child in answer["children"]} == {"Pod"}


def test_claims_outlive_their_tapp() -> None:
    world = settled(volumeClaimTemplates=[claim_template()])
    owners = world.claims["data-web-0"]["metadata"]["ownerReferences"]
    assert [ref["kind"] for ref in owners] == ["Namespace", "TApp"]
    world.pods = {}
    answer = world.hook.finalize(world.request(finalizing=True))
    assert sorted(desired(answer, "PersistentVolumeClaim")) == ["data-web-0"]
    assert answer["finalized"] is True


def test_a_claim_that_exists_already_is_no_failure() -> None:
    world = settled(volumeClaimTemplates=[claim_template()])
    del world.pods["web-0"]
    before = {name: bare(claim) for name, claim in world.claims.items()}
    world.settle()
    assert {name: bare(claim) for name, claim in world.claims.items()} == before
