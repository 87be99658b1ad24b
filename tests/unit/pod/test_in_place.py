"""In-place updates: when, by which container, and when they have finished."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.builders import (
    NOW,
    Document,
    completed,
    running,
    tapp,
    template,
    terminated,
    without_last_applied,
)
from tests.policies import inject_sidecar, rewrite_images
from tests.reading import bare
from tests.unit.world import World, settled

RECORD = "apps.tkestack.io/in-place-update"
SIDE = {"name": "side", "image": "side:1"}
MESH = {"name": "mesh", "image": "mesh:9"}


def recorded(world: World, id: int = 0) -> Document:
    """The record that the last update left on a pod."""
    record: Document = json.loads(world.pod(id)["metadata"]["annotations"][RECORD])
    return record


def status(world: World, id: int = 0) -> str:
    """The instance's status as the next sync would write it."""
    answer = world.hook.sync(world.request())
    return str(answer["status"]["statuses"][str(id)])


def container_id(world: World, name: str = "app") -> str:
    """The images that run now."""
    statuses = world.pod(0)["status"]["containerStatuses"]
    return str(next(item["containerID"] for item in statuses if item["name"] == name))


def kubelet_wrote(pod: Document, time: str) -> Document:
    """The pod after a status write of its kubelet at that time."""
    entry = {"manager": "kubelet", "operation": "Update", "subresource": "status", "time": time}
    meta = pod["metadata"]
    return {**pod, "metadata": {**meta, "managedFields": [*meta["managedFields"], entry]}}


def wait(world: World) -> World:
    """The roll-out, until nothing changes; no pod is replaced on the way."""
    before = world.uids()
    world.settle()
    assert world.uids() == before
    return world


# --- which container ------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("strip", [True, False])
def test_an_injected_sidecar_never_gets_the_image_of_the_app(first: bool, strip: bool) -> None:
    policies = (inject_sidecar(MESH, first=first),)
    world = World(tapp(), policies=policies, strip=strip).settle()
    wait(world.change(template=template("nginx:2")))
    assert world.container(0, "app")["image"] == "nginx:2"
    assert world.container(0, "mesh")["image"] == "mesh:9"


def test_a_template_without_metadata_is_updated_as_any_other() -> None:
    """The old controller did not notice that such a template of the pool had changed."""

    def pool(image: str) -> Document:
        return {"v1": {"spec": template(image)["spec"]}}

    world = settled(replicas=2, templatePool=pool("app:1"), defaultTemplateName="v1")
    before = world.uids()
    world.change(templatePool=pool("app:2")).settle()
    assert [world.container(id)["image"] for id in (0, 1)] == ["app:2", "app:2"]
    assert world.uids() == before


def test_only_the_container_whose_image_changed_is_touched() -> None:
    world = settled(template=template(sidecars=[SIDE]))
    side = container_id(world, "side")
    wait(world.change(template=template("nginx:2", sidecars=[SIDE])))
    assert container_id(world, "side") == side
    assert list(recorded(world)["containers"]) == ["app"]


def test_images_that_admission_rewrote_are_left_alone() -> None:
    policies = (rewrite_images(lambda image: image if "/" in image else f"mirror/{image}"),)
    world = World(tapp(template=template(sidecars=[SIDE])), policies=policies).settle()
    assert world.container(0, "side")["image"] == "mirror/side:1"
    side = container_id(world, "side")
    wait(world.change(template=template("nginx:2", sidecars=[SIDE])))
    assert world.container(0, "app")["image"] == "mirror/nginx:2"
    assert list(recorded(world)["containers"]) == ["app"]
    assert container_id(world, "side") == side
    assert status(world) == "Running"


def test_a_metadata_update_restarts_nothing_although_admission_rewrote_the_image() -> None:
    policies = (rewrite_images(lambda image: image if "/" in image else f"mirror/{image}"),)
    world = World(tapp(), policies=policies).settle()
    before = container_id(world)
    wait(world.change(template=template(annotations={"note": "new"})))
    assert RECORD not in world.pod(0)["metadata"]["annotations"]
    assert container_id(world) == before


def test_a_changed_image_of_a_plain_init_container_makes_a_new_pod() -> None:
    def with_init(image: str) -> Document:
        return template(initContainers=[{"name": "init", "image": image}])

    world = settled(template=with_init("init:1")).change(template=with_init("init:2"))
    assert world.decisions() == {0: "Recreate/TemplateChanged"}


def test_a_changed_image_of_a_native_sidecar_is_updated_in_place() -> None:
    def with_sidecar(image: str) -> Document:
        sidecar = {"name": "proxy", "image": image, "restartPolicy": "Always"}
        return template(initContainers=[{"name": "init", "image": "init:1"}, sidecar])

    world = settled(template=with_sidecar("proxy:1"))
    wait(world.change(template=with_sidecar("proxy:2")))
    assert world.container(0, "proxy")["image"] == "proxy:2"
    assert world.container(0, "init")["image"] == "init:1"


def first_has_ended(code: int) -> Callable[[Document], Document]:
    """Lets a pod's first container end."""

    def change(pod: Document) -> Document:
        first, *others = pod["status"]["containerStatuses"]
        statuses = [terminated(first, code), *others]
        return {**pod, "status": {**pod["status"], "containerStatuses": statuses}}

    return change


@pytest.mark.parametrize(("policy", "code"), [("Never", 0), ("Never", 1), ("OnFailure", 0)])
def test_a_container_that_has_ended_for_good_needs_a_new_pod(policy: str, code: int) -> None:
    def version(image: str) -> Document:
        return template(image, sidecars=[SIDE], restartPolicy=policy)

    world = settled(template=version("job:1")).modify(0, first_has_ended(code))
    assert world.change(template=version("job:2")).decisions() == {0: "Recreate/NotInPlace"}


@pytest.mark.parametrize("policy", ["Always", "OnFailure"])
def test_a_container_that_is_about_to_be_restarted_is_updated_in_place(policy: str) -> None:
    """Between a crash and the next start its state is `terminated`, too."""

    def version(image: str) -> Document:
        return template(image, sidecars=[SIDE], restartPolicy=policy)

    world = settled(template=version("web:1")).modify(0, first_has_ended(1))
    assert world.change(template=version("web:2")).decisions() == {
        0: "UpdateInPlace/TemplateChanged"
    }


def test_another_container_of_a_pod_in_which_one_has_ended_is_updated_in_place() -> None:
    def version(image: str) -> Document:
        return template("job:1", sidecars=[{**SIDE, "image": image}], restartPolicy="Never")

    world = settled(template=version("side:1")).modify(0, first_has_ended(0))
    assert world.change(template=version("side:2")).decisions() == {
        0: "UpdateInPlace/TemplateChanged"
    }


@pytest.mark.parametrize("policy", ["Never", "OnFailure", "Always"])
def test_a_running_container_is_updated_in_place_under_every_policy(policy: str) -> None:
    world = settled(template=template(restartPolicy=policy))
    wait(world.change(template=template("nginx:2", restartPolicy=policy)))
    assert world.container(0)["image"] == "nginx:2"


# --- labels and annotations -----------------------------------------------------------------------


@pytest.mark.parametrize("strip", [True, False])
def test_labels_and_annotations_that_left_the_template_leave_the_pod(strip: bool) -> None:
    old = template(labels={"app": "web", "old": "1"}, annotations={"gone": "1", "stays": "1"})
    new = template(labels={"app": "web", "new": "1"}, annotations={"stays": "2"})
    world = World(tapp(template=old), strip=strip).settle()
    before = container_id(world)
    wait(world.change(template=new))
    meta = world.pod(0)["metadata"]
    assert "old" not in meta["labels"]
    assert meta["labels"]["new"] == "1"
    assert "gone" not in meta["annotations"]
    assert meta["annotations"]["stays"] == "2"
    assert container_id(world) == before


def test_labels_and_annotations_of_others_stay() -> None:
    def foreign(pod: Document) -> Document:
        meta = pod["metadata"]
        labels = {**meta["labels"], "mesh": "on"}
        annotations = {**meta["annotations"], "cni/ip": "10.1.0.7"}
        return {**pod, "metadata": {**meta, "labels": labels, "annotations": annotations}}

    world = settled().modify(0, foreign)
    wait(world.change(template=template("nginx:2", labels={"app": "web2"})))
    meta = world.pod(0)["metadata"]
    assert meta["labels"]["mesh"] == "on"
    assert meta["labels"]["app"] == "web2"
    assert meta["annotations"]["cni/ip"] == "10.1.0.7"


def test_a_metadata_update_finishes_at_once() -> None:
    world = settled(replicas=2).change(template=template(labels={"app": "web", "tier": "x"}))
    world.sync()
    assert RECORD not in world.pod(0)["metadata"]["annotations"]
    assert status(world) == "Running"
    assert world.decisions()[1] == "UpdateInPlace/TemplateChanged"


# --- the record, and the end of an update ---------------------------------------------------------


def test_an_update_records_its_target_and_what_ran_before() -> None:
    world = settled()
    before = container_id(world)
    world.change(template=template("nginx:2")).sync()
    record = recorded(world)
    assert record["revision"] == world.pod(0)["metadata"]["labels"]["tapp_template_hash_key"]
    assert record["containers"]["app"]["id"] == before


def test_an_update_has_finished_when_the_wanted_image_runs_whatever_readiness_does_later() -> None:
    world = settled().change(template=template("nginx:2"))
    world.sync()
    assert status(world) == "Updating"  # nothing restarted yet, the pod still says Ready
    world.modify(0, lambda pod: running(pod, ready=False))
    assert status(world) == "Pending"  # restarted, not Ready
    world.modify(0, running)
    assert status(world) == "Running"


@pytest.mark.parametrize("generation", [None, 2])
def test_a_kubelet_that_has_not_restarted_it_has_not_updated_it(generation: int | None) -> None:
    """Before Kubernetes 1.34 it does not say what it has seen; since then it may say so early."""

    def seen(pod: Document) -> Document:
        return {**pod, "status": {**pod["status"], "observedGeneration": generation}}

    world = settled()
    world.change(template=template("nginx:2")).sync()
    world.modify(0, seen)
    assert world.pod(0)["metadata"]["generation"] == 2
    assert status(world) == "Updating"
    world.modify(0, lambda pod: seen(running(pod)))
    assert status(world) == "Running"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("nginx", "docker.io/library/nginx:latest", id="an alias of the same image"),
        pytest.param("app:v1", "app:v1-again", id="two tags of one digest"),
        pytest.param("reg:5000/app", "reg:5000/app:latest", id="a registry with a port"),
    ],
)
def test_another_name_of_the_image_is_believed_when_it_has_outlasted_the_kubelet(
    old: str, new: str
) -> None:
    """The runtime reports what name it likes; an image in between would have been stopped.

    Somebody annotates the pod meanwhile, as some tools do all the time: that is no update.
    """
    owned = {"f:metadata": {"f:annotations": {"f:example.com/checked-at": {}}}}
    other = {"manager": "somebody", "time": "2026-01-05T11:00:44Z", "fieldsV1": owned}

    def annotated(pod: Document) -> Document:
        meta = pod["metadata"]
        return {**pod, "metadata": {**meta, "managedFields": [*meta["managedFields"], other]}}

    def normalised(pod: Document) -> Document:
        status = running(pod)["status"]
        statuses = [
            {**item, "image": "sha256:1", "imageID": "sha256:1"}
            for item in status["containerStatuses"]
        ]
        return {**pod, "status": {**status, "containerStatuses": statuses}}

    world = settled(template=template(old, terminationGracePeriodSeconds=30))
    world.change(template=template(new, terminationGracePeriodSeconds=30)).sync()
    assert status(world) == "Updating"
    world.modify(0, normalised)
    world.modify(0, lambda pod: annotated(kubelet_wrote(pod, "2026-01-05T11:00:00Z")))
    for world.hook.now, word in ((NOW, "Updating"), (NOW + 44, "Updating"), (NOW + 45, "Running")):
        assert status(world) == word
    world.hook.now = NOW + 40
    assert world.hook.sync(world.request())["resyncAfterSeconds"] == 5


def test_a_container_that_does_not_run_has_not_been_updated() -> None:
    world = settled(template=template(sidecars=[SIDE]))
    world.change(template=template("nginx:2", sidecars=[SIDE])).sync()

    def waiting(pod: Document) -> Document:
        first, *others = running(pod)["status"]["containerStatuses"]
        first = {**first, "state": {"waiting": {"reason": "ImagePullBackOff"}}}
        return {**pod, "status": {**pod["status"], "containerStatuses": [first, *others]}}

    assert status(world.modify(0, waiting)) == "Updating"


def test_a_rollback_before_the_kubelet_saw_the_update_finishes() -> None:
    """No restart will come: the container already runs the image of the spec."""
    world = settled(replicas=2)
    before = container_id(world)
    world.change(template=template("nginx:2")).sync()
    world.change(template=template())
    for _ in range(3):
        world.sync()
    assert world.container(0)["image"] == "nginx:1.25"
    world.modify(0, lambda pod: {**pod, "status": _seen(pod)})
    assert status(world) == "Running"
    assert container_id(world) == before
    wait(world)


def _seen(pod: Document) -> dict[str, Any]:
    generation = pod["metadata"]["generation"]
    return {**pod["status"], "observedGeneration": generation}


def test_a_rollback_after_the_restart_waits_for_the_second_restart() -> None:
    world = settled().change(template=template("nginx:2"))
    world.sync()
    world.kubelet()
    between = container_id(world)
    world.change(template=template()).sync()
    world.sync()
    assert status(world) == "Updating"
    world.kubelet()
    assert status(world) == "Running"
    assert container_id(world) != between


def test_a_second_template_in_the_middle_starts_over() -> None:
    world = settled()
    before = container_id(world)
    world.change(template=template("nginx:2")).sync()
    world.change(template=template("nginx:3")).sync()
    world.sync()
    assert world.container(0)["image"] == "nginx:3"
    assert recorded(world)["containers"]["app"]["id"] == before
    assert status(world) == "Updating"
    world.kubelet()
    assert status(world) == "Running"
    assert container_id(world) != before


def test_a_metadata_change_in_the_middle_does_not_forget_the_update() -> None:
    world = settled().change(template=template("nginx:2"))
    world.sync()
    world.change(template=template("nginx:2", labels={"app": "web", "tier": "x"})).sync()
    world.sync()
    assert world.pod(0)["metadata"]["labels"]["tier"] == "x"
    assert status(world) == "Updating"
    world.kubelet()
    assert status(world) == "Running"


def test_a_second_container_in_the_middle_waits_for_both() -> None:
    world = settled(template=template(sidecars=[SIDE]))
    world.change(template=template("nginx:2", sidecars=[SIDE])).sync()
    newer = {**SIDE, "image": "side:2"}
    world.change(template=template("nginx:2", sidecars=[newer])).sync()
    world.sync()
    assert sorted(recorded(world)["containers"]) == ["app", "side"]


def test_a_broken_record_is_no_record() -> None:
    def broken(pod: Document) -> Document:
        annotations = {**pod["metadata"]["annotations"], RECORD: "{not json"}
        return {**pod, "metadata": {**pod["metadata"], "annotations": annotations}}

    world = settled().modify(0, broken)
    assert status(world) == "Running"
    wait(world.change(template=template("nginx:2")))


def test_a_completed_pod_is_never_updated_in_place() -> None:
    world = settled(template=template(restartPolicy="Never"))
    world.modify(0, lambda pod: completed(pod, "Failed"))
    world.change(template=template("nginx:2", restartPolicy="Never"))
    assert world.decisions() == {0: "Keep/Finished"}


def test_a_pod_that_was_never_applied_is_updated_in_place_by_name() -> None:
    world = settled(template=template(sidecars=[SIDE])).modify(0, without_last_applied)
    others = bare(world.pod(0))["spec"]["containers"][1]
    wait(world.change(template=template("nginx:2", sidecars=[SIDE])))
    assert world.container(0)["image"] == "nginx:2"
    assert world.pod(0)["spec"]["containers"][1] == others


# --- restart --------------------------------------------------------------------------------------

RESTARTED = "kubectl.kubernetes.io/restartedAt"


def restarted(at: str, image: str = "nginx:1") -> Document:
    body = template(image)
    body["metadata"]["annotations"] = {RESTARTED: at} if at else {}
    return body


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("", "2026-01-02T00:00:00Z", "Recreate/RestartAsked"),
        ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "Recreate/RestartAsked"),
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "Keep/UpToDate"),
        ("2026-01-01T00:00:00Z", "", "UpdateInPlace/TemplateChanged"),
    ],
    ids=["first", "again", "from before", "taken away"],
)
def test_another_restarted_at_asks_for_new_pods(before: str, after: str, expected: str) -> None:
    """Within the budget, as `kubectl rollout restart` does it for a Deployment."""
    world = settled(replicas=3, template=restarted(before))
    decided = world.change(template=restarted(after)).decisions()
    assert decided[0] == expected
    if expected.startswith("Recreate"):
        assert decided[1] == "Keep/WaitingForBudget"


def test_a_restart_with_another_image_is_one_restart() -> None:
    world = settled(replicas=2, template=restarted(""))
    before = world.uids()
    world.change(template=restarted("2026-01-02T00:00:00Z", "nginx:2")).settle()
    assert not {*before.values()} & {*world.uids().values()}
    assert world.decisions() == {0: "Keep/UpToDate", 1: "Keep/UpToDate"}


def test_no_other_annotation_restarts_anything() -> None:
    world = settled(replicas=1)
    body = template()
    body["metadata"]["annotations"] = {"checksum/config": "abc"}
    assert world.change(template=body).decisions()[0] == "UpdateInPlace/TemplateChanged"
    wait(world)
