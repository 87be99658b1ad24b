"""Tests updates in place: when they are possible, what restarts, and when they are complete."""

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
from tests.hook_calls import bare
from tests.policies import inject_sidecar, rewrite_images
from tests.unit.pod.updates import RECORD, settle_in_place, update_record, with_kubelet_write
from tests.unit.world import World, settled

SIDE = {"name": "side", "image": "side:1"}
MESH = {"name": "mesh", "image": "mesh:9"}


def status_of_instance(world: World, id: int = 0) -> str:
    """Returns the status word of an instance in the response to the next sync."""
    answer = world.hook.sync(world.request())
    return str(answer["status"]["statuses"][str(id)])


def container_id(world: World, name: str = "app") -> str:
    """Returns the ID of the container with this name in the pod of instance 0."""
    statuses = world.pod(0)["status"]["containerStatuses"]
    return str(next(item["containerID"] for item in statuses if item["name"] == name))


# --- which container restarts ---------------------------------------------------------------------


@pytest.mark.parametrize("first", [True, False], ids=["sidecar first", "sidecar last"])
@pytest.mark.parametrize("strip", [True, False], ids=["last-applied stripped", "last-applied kept"])
def test_injected_sidecar_never_gets_the_image_of_the_app(first: bool, strip: bool) -> None:
    policies = (inject_sidecar(MESH, first=first),)
    world = World(tapp(), policies=policies, strip=strip).settle()
    settle_in_place(world.change(template=template("nginx:2")))
    assert world.container(0, "app")["image"] == "nginx:2"
    assert world.container(0, "mesh")["image"] == "mesh:9"


def test_template_without_metadata_is_updated_in_place() -> None:
    """Changes the image in a pool template without metadata: both pods are updated in place.

    The old controller did not notice such a change.
    """

    def pool(image: str) -> Document:
        return {"v1": {"spec": template(image)["spec"]}}

    world = settled(replicas=2, templatePool=pool("app:1"), defaultTemplateName="v1")
    before = world.uids()
    world.change(templatePool=pool("app:2")).settle()
    assert [world.container(id)["image"] for id in (0, 1)] == ["app:2", "app:2"]
    assert world.uids() == before


def test_only_the_container_with_the_changed_image_restarts() -> None:
    world = settled(template=template(sidecars=[SIDE]))
    side = container_id(world, "side")
    settle_in_place(world.change(template=template("nginx:2", sidecars=[SIDE])))
    assert container_id(world, "side") == side
    assert list(update_record(world)["containers"]) == ["app"]


def test_image_that_admission_has_rewritten_does_not_restart_its_container() -> None:
    policies = (rewrite_images(lambda image: image if "/" in image else f"mirror/{image}"),)
    world = World(tapp(template=template(sidecars=[SIDE])), policies=policies).settle()
    assert world.container(0, "side")["image"] == "mirror/side:1"
    side = container_id(world, "side")
    settle_in_place(world.change(template=template("nginx:2", sidecars=[SIDE])))
    assert world.container(0, "app")["image"] == "mirror/nginx:2"
    assert list(update_record(world)["containers"]) == ["app"]
    assert container_id(world, "side") == side
    assert status_of_instance(world) == "Running"


def test_metadata_update_restarts_no_container_whose_image_admission_has_rewritten() -> None:
    policies = (rewrite_images(lambda image: image if "/" in image else f"mirror/{image}"),)
    world = World(tapp(), policies=policies).settle()
    before = container_id(world)
    settle_in_place(world.change(template=template(annotations={"note": "new"})))
    assert RECORD not in world.pod(0)["metadata"]["annotations"]
    assert container_id(world) == before


def test_changed_image_of_an_init_container_replaces_the_pod() -> None:
    def with_init(image: str) -> Document:
        return template(initContainers=[{"name": "init", "image": image}])

    world = settled(template=with_init("init:1")).change(template=with_init("init:2"))
    assert world.decisions() == {0: "Recreate/TemplateChanged"}


def test_changed_image_of_a_native_sidecar_is_updated_in_place() -> None:
    def with_sidecar(image: str) -> Document:
        sidecar = {"name": "proxy", "image": image, "restartPolicy": "Always"}
        return template(initContainers=[{"name": "init", "image": "init:1"}, sidecar])

    world = settled(template=with_sidecar("proxy:1"))
    settle_in_place(world.change(template=with_sidecar("proxy:2")))
    assert world.container(0, "proxy")["image"] == "proxy:2"
    assert world.container(0, "init")["image"] == "init:1"


def first_has_ended(code: int) -> Callable[[Document], Document]:
    """Returns a function that ends the first container of a pod with this exit code."""

    def change(pod: Document) -> Document:
        first, *others = pod["status"]["containerStatuses"]
        statuses = [terminated(first, code), *others]
        return {**pod, "status": {**pod["status"], "containerStatuses": statuses}}

    return change


@pytest.mark.parametrize(
    ("policy", "code"),
    [("Never", 0), ("Never", 1), ("OnFailure", 0)],
    ids=["Never succeeded", "Never failed", "OnFailure succeeded"],
)
def test_container_that_will_not_run_again_is_updated_by_replacing_the_pod(
    policy: str, code: int
) -> None:
    def version(image: str) -> Document:
        return template(image, sidecars=[SIDE], restartPolicy=policy)

    world = settled(template=version("job:1")).modify(0, first_has_ended(code))
    assert world.change(template=version("job:2")).decisions() == {0: "Recreate/NotInPlace"}


@pytest.mark.parametrize("policy", ["Always", "OnFailure"])
def test_crashed_container_is_updated_in_place(policy: str) -> None:
    """Updates a container between its crash and its next start, when its state is `terminated`,
    too.
    """

    def version(image: str) -> Document:
        return template(image, sidecars=[SIDE], restartPolicy=policy)

    world = settled(template=version("web:1")).modify(0, first_has_ended(1))
    assert world.change(template=version("web:2")).decisions() == {
        0: "UpdateInPlace/TemplateChanged"
    }


def test_running_container_next_to_an_ended_one_is_updated_in_place() -> None:
    def version(image: str) -> Document:
        return template("job:1", sidecars=[{**SIDE, "image": image}], restartPolicy="Never")

    world = settled(template=version("side:1")).modify(0, first_has_ended(0))
    assert world.change(template=version("side:2")).decisions() == {
        0: "UpdateInPlace/TemplateChanged"
    }


@pytest.mark.parametrize("policy", ["Never", "OnFailure", "Always"])
def test_running_container_is_updated_in_place_with_every_restart_policy(policy: str) -> None:
    world = settled(template=template(restartPolicy=policy))
    settle_in_place(world.change(template=template("nginx:2", restartPolicy=policy)))
    assert world.container(0)["image"] == "nginx:2"


# --- labels and annotations -----------------------------------------------------------------------


@pytest.mark.parametrize("strip", [True, False], ids=["last-applied stripped", "last-applied kept"])
def test_labels_and_annotations_removed_from_the_template_are_removed_from_the_pod(
    strip: bool,
) -> None:
    old = template(labels={"app": "web", "old": "1"}, annotations={"gone": "1", "stays": "1"})
    new = template(labels={"app": "web", "new": "1"}, annotations={"stays": "2"})
    world = World(tapp(template=old), strip=strip).settle()
    before = container_id(world)
    settle_in_place(world.change(template=new))
    meta = world.pod(0)["metadata"]
    assert "old" not in meta["labels"]
    assert meta["labels"]["new"] == "1"
    assert "gone" not in meta["annotations"]
    assert meta["annotations"]["stays"] == "2"
    assert container_id(world) == before


def test_labels_and_annotations_of_others_stay_after_an_update() -> None:
    def foreign(pod: Document) -> Document:
        meta = pod["metadata"]
        labels = {**meta["labels"], "mesh": "on"}
        annotations = {**meta["annotations"], "cni/ip": "10.1.0.7"}
        return {**pod, "metadata": {**meta, "labels": labels, "annotations": annotations}}

    world = settled().modify(0, foreign)
    settle_in_place(world.change(template=template("nginx:2", labels={"app": "web2"})))
    meta = world.pod(0)["metadata"]
    assert meta["labels"]["mesh"] == "on"
    assert meta["labels"]["app"] == "web2"
    assert meta["annotations"]["cni/ip"] == "10.1.0.7"


def test_metadata_update_is_complete_at_once() -> None:
    world = settled(replicas=2).change(template=template(labels={"app": "web", "tier": "x"}))
    world.sync()
    assert RECORD not in world.pod(0)["metadata"]["annotations"]
    assert status_of_instance(world) == "Running"
    assert world.decisions()[1] == "UpdateInPlace/TemplateChanged"


# --- the record and the completion of an update ---------------------------------------------------


def test_update_records_its_revision_and_the_old_containers() -> None:
    world = settled()
    before = container_id(world)
    world.change(template=template("nginx:2")).sync()
    record = update_record(world)
    assert record["revision"] == world.pod(0)["metadata"]["labels"]["tapp_template_hash_key"]
    assert record["containers"]["app"]["id"] == before


def test_update_is_complete_when_the_new_image_runs_although_the_pod_is_not_ready() -> None:
    world = settled().change(template=template("nginx:2"))
    world.sync()
    assert status_of_instance(world) == "Updating"  # the pod is still Ready
    world.modify(0, lambda pod: running(pod, ready=False))
    assert status_of_instance(world) == "Pending"  # restarted, but not Ready
    world.modify(0, running)
    assert status_of_instance(world) == "Running"


@pytest.mark.parametrize("generation", [None, 2], ids=["not reported", "reported"])
def test_update_is_not_complete_before_the_restart_of_the_container(generation: int | None) -> None:
    """The old container still runs: the update is not complete, whether or not the generation is
    reported.

    The kubelet reports no generation before Kubernetes 1.34, and may report it early since.
    """

    def seen(pod: Document) -> Document:
        return {**pod, "status": {**pod["status"], "observedGeneration": generation}}

    world = settled()
    world.change(template=template("nginx:2")).sync()
    world.modify(0, seen)
    assert world.pod(0)["metadata"]["generation"] == 2
    assert status_of_instance(world) == "Updating"
    world.modify(0, lambda pod: seen(running(pod)))
    assert status_of_instance(world) == "Running"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("nginx", "docker.io/library/nginx:latest", id="full name of the same image"),
        pytest.param("app:v1", "app:v1-again", id="two tags of one digest"),
        pytest.param("reg:5000/app", "reg:5000/app:latest", id="registry with a port"),
    ],
)
def test_update_with_another_image_name_is_complete_after_some_time(old: str, new: str) -> None:
    """Updates to another name of the same image: the kubelet reports a name that proves nothing.

    45 seconds after the kubelet's last write, the update counts as complete. In that time the
    kubelet would have stopped a container with an image from an update in between. Annotations that
    other tools write in the meantime do not restart the time.
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
    assert status_of_instance(world) == "Updating"
    world.modify(0, normalised)
    world.modify(0, lambda pod: annotated(with_kubelet_write(pod, "2026-01-05T11:00:00Z")))
    for world.hook.now, word in ((NOW, "Updating"), (NOW + 44, "Updating"), (NOW + 45, "Running")):
        assert status_of_instance(world) == word
    world.hook.now = NOW + 40
    assert world.hook.sync(world.request())["resyncAfterSeconds"] == 5


def test_update_is_not_complete_while_the_container_waits() -> None:
    world = settled(template=template(sidecars=[SIDE]))
    world.change(template=template("nginx:2", sidecars=[SIDE])).sync()

    def waiting(pod: Document) -> Document:
        first, *others = running(pod)["status"]["containerStatuses"]
        first = {**first, "state": {"waiting": {"reason": "ImagePullBackOff"}}}
        return {**pod, "status": {**pod["status"], "containerStatuses": [first, *others]}}

    assert status_of_instance(world.modify(0, waiting)) == "Updating"


def test_rollback_before_the_kubelet_observed_the_update_is_complete() -> None:
    """Rolls back before the kubelet has seen the update: the container keeps running, and the
    update is complete.
    """
    world = settled(replicas=2)
    before = container_id(world)
    world.change(template=template("nginx:2")).sync()
    world.change(template=template())
    for _ in range(3):
        world.sync()
    assert world.container(0)["image"] == "nginx:1.25"
    world.modify(0, lambda pod: {**pod, "status": _seen(pod)})
    assert status_of_instance(world) == "Running"
    assert container_id(world) == before
    settle_in_place(world)


def _seen(pod: Document) -> dict[str, Any]:
    generation = pod["metadata"]["generation"]
    return {**pod["status"], "observedGeneration": generation}


def test_rollback_after_the_restart_is_complete_after_a_second_restart() -> None:
    world = settled().change(template=template("nginx:2"))
    world.sync()
    world.kubelet()
    between = container_id(world)
    world.change(template=template()).sync()
    world.sync()
    assert status_of_instance(world) == "Updating"
    world.kubelet()
    assert status_of_instance(world) == "Running"
    assert container_id(world) != between


def test_second_update_before_the_restart_needs_one_restart() -> None:
    world = settled()
    before = container_id(world)
    world.change(template=template("nginx:2")).sync()
    world.change(template=template("nginx:3")).sync()
    world.sync()
    assert world.container(0)["image"] == "nginx:3"
    assert update_record(world)["containers"]["app"]["id"] == before
    assert status_of_instance(world) == "Updating"
    world.kubelet()
    assert status_of_instance(world) == "Running"
    assert container_id(world) != before


def test_metadata_change_during_an_update_keeps_the_update_going() -> None:
    world = settled().change(template=template("nginx:2"))
    world.sync()
    world.change(template=template("nginx:2", labels={"app": "web", "tier": "x"})).sync()
    world.sync()
    assert world.pod(0)["metadata"]["labels"]["tier"] == "x"
    assert status_of_instance(world) == "Updating"
    world.kubelet()
    assert status_of_instance(world) == "Running"


def test_update_of_a_second_container_waits_for_both_containers() -> None:
    world = settled(template=template(sidecars=[SIDE]))
    world.change(template=template("nginx:2", sidecars=[SIDE])).sync()
    newer = {**SIDE, "image": "side:2"}
    world.change(template=template("nginx:2", sidecars=[newer])).sync()
    world.sync()
    assert sorted(update_record(world)["containers"]) == ["app", "side"]


def test_invalid_record_is_ignored() -> None:
    def broken(pod: Document) -> Document:
        annotations = {**pod["metadata"]["annotations"], RECORD: "{not json"}
        return {**pod, "metadata": {**pod["metadata"], "annotations": annotations}}

    world = settled().modify(0, broken)
    assert status_of_instance(world) == "Running"
    settle_in_place(world.change(template=template("nginx:2")))


def test_ended_pod_is_not_updated_in_place() -> None:
    world = settled(template=template(restartPolicy="Never"))
    world.modify(0, lambda pod: completed(pod, "Failed"))
    world.change(template=template("nginx:2", restartPolicy="Never"))
    assert world.decisions() == {0: "Keep/Finished"}


def test_pod_without_the_last_applied_annotation_is_updated_in_place() -> None:
    world = settled(template=template(sidecars=[SIDE])).modify(0, without_last_applied)
    others = bare(world.pod(0))["spec"]["containers"][1]
    settle_in_place(world.change(template=template("nginx:2", sidecars=[SIDE])))
    assert world.container(0)["image"] == "nginx:2"
    assert world.pod(0)["spec"]["containers"][1] == others
