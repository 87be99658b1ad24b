"""Tests which containers an update restarts on a real kubelet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.builders import claim_template

from .kube import Json
from .realnode.images import app as image
from .realnode.trial import Trial
from .realnode.volumes import CLASS, Volumes
from .realnode.workloads import container, environment, real_template

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


def restarts(real: Trial) -> dict[str, int]:
    """Returns the restarts of the containers of all instances, by container name."""
    counts: dict[str, int] = {}
    for pod in real.app.pods.values():
        for group in ("initContainerStatuses", "containerStatuses"):
            for each in pod["status"].get(group) or []:
                counts[each["name"]] = counts.get(each["name"], 0) + each["restartCount"]
    return counts


def test_update_restarts_only_the_changed_container(real: Trial) -> None:
    """The process of the other container must survive the update."""
    real.create(container("1"), container("1", "side"))
    born = real.app.uids()
    kept = {each.id for each in real.witness.now(real.app.namespace) if each.container == "main"}
    real.roll(container("1"), container("2", "side"))
    running = real.witness.now(real.app.namespace)
    assert {each.id for each in running if each.container == "main"} == kept
    assert {each.image for each in running if each.container == "side"} == {image("2")}
    assert restarts(real) == {"main": 0, "side": 3}
    assert real.app.uids() == born
    assert real.never_fewer_than(3)


def test_update_restarts_both_changed_containers(real: Trial) -> None:
    real.create(container("1"), container("1", "side"), counted=("main", "side"))
    real.roll(container("2"), container("3", "side"))
    assert restarts(real) == {"main": 3, "side": 3}
    assert real.never_fewer_than(2)


def test_sidecar_is_updated_in_place(real: Trial) -> None:
    """The main container must continue to run."""

    def sidecar(tag: str) -> dict[str, Any]:
        return {"initContainers": [container(tag, "side", restartPolicy="Always")]}

    real.create("1", counted=("main", "side"), pod=sidecar("1"))
    born = real.app.uids()
    real.roll("1", **sidecar("2"))
    assert real.app.uids() == born
    assert restarts(real) == {"main": 0, "side": 3}
    assert real.never_fewer_than(2)
    assert set(real.runs().values()) == {"1", "2"}


def test_changed_init_container_replaces_the_pod(real: Trial) -> None:
    """The kubelet would accept the new image, but would never run it."""

    def first(tag: str) -> dict[str, Any]:
        return {"initContainers": [container(tag, "first", env=environment(EXIT_AFTER=0))]}

    real.create("1", pod=first("1"))
    born = real.app.uids()
    real.roll("1", **first("2"))
    assert set(real.app.uids().values()).isdisjoint(born.values())
    assert real.never_fewer_than(2)


def test_changed_labels_restart_nothing(real: Trial) -> None:
    real.create("1")
    ids = {each.id for each in real.witness.now(real.app.namespace)}
    labelled = real_template("1")
    labelled["metadata"]["labels"]["tier"] = "front"
    real.app.patch(template=labelled).settle()
    assert {pod["metadata"]["labels"]["tier"] for pod in real.app.pods.values()} == {"front"}
    assert {each.id for each in real.witness.now(real.app.namespace)} == ids
    assert real.never_fewer_than(3)


@pytest.mark.parametrize(
    "other", [image("2-again"), "mirror.local/app:2"], ids=["another tag", "another registry"]
)
def test_image_with_another_name_restarts_the_container_once(real: Trial, other: str) -> None:
    """The kubelet restarts the container, but the status keeps the first name that it knows."""
    real.create("2")
    born = real.app.uids()
    real.roll(other)
    assert restarts(real) == {"main": 3}
    assert real.app.uids() == born
    assert real.never_fewer_than(2)
    real.roll("3")
    assert real.never_fewer_than(2)
    assert real.tags() == "3 3 3"


def test_ephemeral_containers_stay_through_an_update_and_do_not_delay_it(real: Trial) -> None:
    """A user has added the ephemeral containers, so the service neither removes nor counts them,
    even if one cannot start.
    """
    real.create("1")
    born = real.app.uids()
    for number, tag in ((0, "missing"), (1, "1")):
        debug = {"spec": {"ephemeralContainers": [container(tag, "debug")]}}
        real.app.edit(number, debug, "ephemeralcontainers")
    real.app.until(lambda: "web-1/debug" in real.runs(), "the ephemeral container runs", 120)
    real.roll("2")
    assert real.app.uids() == born
    assert "web-1/debug" in real.runs()
    assert real.never_fewer_than(2)
    assert real.app.idle()


def resize(real: Trial, number: int, cpu: str) -> None:
    """Sets another CPU limit and request of a container, and waits for the kubelet."""
    where = "/spec/containers/0/resources"
    kinds = ("limits", "requests")
    patch = [{"op": "replace", "path": f"{where}/{kind}/cpu", "value": cpu} for kind in kinds]
    real.app.edit(number, patch, "resize")
    real.app.until(
        lambda: (real.container(number).get("resources") or {}).get("limits", {}).get("cpu") == cpu,
        "the kubelet has resized the container",
        60,
    )
    real.app.quiet()


def sized(tag: str, cpu: str) -> Json:
    """Returns a container with an image and limits."""
    return container(tag, resources={"limits": {"cpu": cpu, "memory": "64Mi"}})


def test_resources_set_by_a_user_stay_through_an_update(real: Trial) -> None:
    """The user's resources stay until the template changes them."""
    real.create(sized("1", "200m"))
    born = real.app.uids()
    resize(real, 1, "300m")
    real.roll(sized("2", "200m"))
    assert real.app.uids() == born
    assert real.never_fewer_than(2)


@pytest.fixture
def volumes(real: Trial) -> Iterator[Volumes]:
    """Volumes with contents for the test's claims."""
    made = Volumes(real.app.kube, real.app.namespace, real.node.space.directory / "volumes")
    yield made
    made.remove()


def test_data_of_claims_survives_updates_replacements_and_kills(
    real: Trial, volumes: Volumes
) -> None:
    claim = claim_template()
    claim["spec"]["storageClassName"] = CLASS

    def storing(tag: str, **values: object) -> Json:
        mounts = [{"name": "data", "mountPath": "/data"}]
        return container(tag, volumeMounts=mounts, env=environment(DATA="/data", **values))

    volumes.make(2)
    real.create(storing("1"), replicas=2, volumeClaimTemplates=[claim])
    claims = real.app.claims()
    real.roll(storing("2"))
    assert volumes.read("data-web-1", "starts") == ["1", "2"]
    real.roll(storing("2", OTHER=1))
    assert volumes.read("data-web-1", "starts") == ["1", "2", "2"]
    assert real.never_fewer_than(1)
    real.app.patch(statuses={"1": "Killed"}).settle()
    real.app.until(lambda: "web-1/main" not in real.runs(), "instance 1 has ended", 120)
    real.app.patch(statuses={"1": None}).settle()
    assert volumes.read("data-web-1", "starts") == ["1", "2", "2", "2"]
    assert volumes.read("data-web-0", "starts") == ["1", "2", "2"]
    assert real.app.claims() == claims
