"""Tests that a Ready condition alone does not prove availability: restarts, probes, and clocks.

After a restart, Ready may still describe the previous container until a probe has run.
"""

import pytest

from tapp.words.vocabulary import IN_PLACE_UPDATE
from tests.builders import CREATED, NOW, Document, crashing, running, template
from tests.unit.pod.updates import decisions_in_order
from tests.unit.world import World, settled

RESTARTED = "2026-01-05T10:59:50Z"
PROBED = {"tcpSocket": {"port": 80}}
BOTH = {"startupProbe": PROBED, "readinessProbe": {**PROBED, "periodSeconds": 1}}
PROBES = ("startupProbe", "readinessProbe")
ALL = ("no probe", *PROBES, "both")
HOOKED: Document = {"lifecycle": {"postStart": {"sleep": {"seconds": 5}}}}


def restarted_without_unready(pod: Document, at: str = RESTARTED) -> Document:
    """Returns the pod after a restart of its container at `at`, during which Ready stayed True."""
    item = {**pod["status"]["containerStatuses"][0], "state": {"running": {"startedAt": at}}}
    return {**pod, "status": {**pod["status"], "containerStatuses": [item]}}


def available(world: World) -> tuple[int, float | None]:
    answer = world.hook.sync(world.request())
    return answer["status"]["availableReplicas"], answer.get("resyncAfterSeconds")


def test_min_ready_seconds_count_from_the_start_of_the_running_container() -> None:
    world = settled(minReadySeconds=15).modify(0, restarted_without_unready)
    assert available(world) == (0, 6)  # 10:59:50Z may be almost 10:59:51
    world.hook.now = NOW + 6
    assert available(world) == (1, None)


@pytest.mark.parametrize(("kind", "away"), [("startupProbe", 0), ("readinessProbe", 60)])
@pytest.mark.parametrize(
    ("probe", "seconds"),
    [
        ({}, 32),
        ({"periodSeconds": 13}, 41),
        ({"periodSeconds": 3, "initialDelaySeconds": 20, "timeoutSeconds": 4}, 37),
        ({"failureThreshold": 1}, 12),
        ({"failureThreshold": 2**31 - 1, "periodSeconds": 2**31 - 1}, 2**32),
    ],
    ids=["defaults", "period", "delay and timeout", "one failure", "maximum"],
)
def test_pod_that_stayed_ready_is_available_after_a_probe_had_time_to_fail(
    kind: str, away: int, probe: Document, seconds: int
) -> None:
    """Ready has stayed True during a restart: the pod is available after all attempts of the probe.

    A restarted kubelet reports Ready until then, and it may have been away for a minute.
    """
    body = template(container={kind: {"tcpSocket": {"port": 80}, **probe}})
    world = settled(template=body).modify(0, restarted_without_unready)
    missing = min(seconds + away, 2**32 + away) - 10
    assert available(world) == (0, missing)
    world.hook.now = NOW + missing
    assert available(world) == (1, None)


@pytest.mark.parametrize(
    ("least", "missing"), [(0, 28), (15, 43)], ids=["no minReadySeconds", "minReadySeconds"]
)
def test_time_for_probes_counts_from_the_first_status_write_of_a_restarted_kubelet(
    least: int, missing: int
) -> None:
    """A kubelet restarts during an update: the time for its probes counts from its first write of
    the status.

    The first probe may have run then, and minReadySeconds count from the last one.
    """
    probed = {"readinessProbe": PROBED}
    world = settled(template=template(container=probed), minReadySeconds=least)
    world.change(template=template("nginx:2", container=probed)).sync()
    wrote = {"manager": "kubelet", "subresource": "status", "time": "2026-01-05T10:59:56Z"}

    def taken_over(pod: Document) -> Document:
        pod = restarted_again(running(pod), at="2026-01-05T10:59:40Z")
        return {**pod, "metadata": {**pod["metadata"], "managedFields": [wrote]}}

    world.modify(0, taken_over)
    assert available(world) == (0, missing)


def managed_field(manager: str, time: str, *fields: str) -> Document:
    """Returns an entry of managedFields: `manager` has last written these annotations of a pod at
    `time`.
    """
    owned = {"f:metadata": {"f:annotations": {f"f:{field}": {} for field in fields}}}
    return {"manager": manager, "operation": "Update", "time": time, "fieldsV1": owned}


@pytest.mark.parametrize("probes", [{}, *({kind: PROBED} for kind in PROBES), BOTH], ids=ALL)
@pytest.mark.parametrize("least", [0, 15], ids=["no minReadySeconds", "minReadySeconds"])
@pytest.mark.parametrize("hook", [{}, HOOKED], ids=["no hook", "postStart"])
def test_annotations_by_other_tools_do_not_make_a_pod_unavailable(
    probes: Document, least: int, hook: Document
) -> None:
    """Another tool has just written an annotation of a pod that was updated long ago: it stays
    available.

    Such a tool may write to the pod every few seconds forever.
    """
    container = probes | hook
    world = settled(template=template(container=container), minReadySeconds=least)
    world.change(template=template("nginx:2", container=container)).sync()
    world.hook.now = NOW + 1000

    def annotated(pod: Document) -> Document:
        pod = restarted_again(running(pod, since="2026-01-05T11:00:05Z"), at="2026-01-05T11:00:03Z")
        entries = [
            managed_field("metacontroller", "2026-01-05T10:59:59Z", IN_PLACE_UPDATE),
            managed_field("somebody", "2026-01-05T11:16:39Z", "example.com/checked-at"),
        ]
        return {**pod, "metadata": {**pod["metadata"], "managedFields": entries}}

    assert available(world.modify(0, annotated)) == (1, None)


def test_later_status_writes_of_the_kubelet_do_not_make_a_pod_unavailable() -> None:
    """The kubelet has just written the status of a pod that was updated long ago: it stays
    available.

    Ready stayed True when the kubelet restarted, and the container was published long ago.
    """
    probed = {"readinessProbe": PROBED}
    world = settled(template=template(container=probed))
    world.change(template=template("nginx:2", container=probed)).sync()
    world.hook.now = NOW + 1000
    wrote = {"manager": "kubelet", "subresource": "status", "time": "2026-01-05T11:16:39Z"}

    def taken_over(pod: Document) -> Document:
        pod = restarted_again(running(pod), at="2026-01-05T11:00:03Z")
        return {**pod, "metadata": {**pod["metadata"], "managedFields": [wrote]}}

    assert available(world.modify(0, taken_over)) == (1, None)


@pytest.mark.parametrize("kind", PROBES)
def test_change_of_ready_is_found_although_the_clock_of_the_node_is_slow(kind: str) -> None:
    """Ready has changed after a restart, and so the pod is available, although its times are before
    the update.

    The node's clock is five minutes behind the API server's, which has the time of the update.
    """
    probed = {kind: PROBED | {"failureThreshold": 60}}
    world = settled(template=template(container=probed))
    world.change(template=template("nginx:2", container=probed)).sync()
    world.hook.now = NOW + 60

    def served(pod: Document) -> Document:
        pod = restarted_again(running(pod, since="2026-01-05T10:55:09Z"), at="2026-01-05T10:55:02Z")
        entry = managed_field("metacontroller", "2026-01-05T11:00:00Z", IN_PLACE_UPDATE)
        return {**pod, "metadata": {**pod["metadata"], "managedFields": [entry]}}

    assert available(world.modify(0, served)) == (1, None)


def restarted_again(pod: Document, at: str = RESTARTED) -> Document:
    """Returns the pod after a restart at `at` that the restart count of its container shows."""
    pod = restarted_without_unready(pod, at)
    item = {**pod["status"]["containerStatuses"][0], "restartCount": 1}
    return {**pod, "status": {**pod["status"], "containerStatuses": [item]}}


ONE_SECOND_LATER = "2026-01-05T10:59:51Z"


def test_pod_is_available_if_its_readiness_probe_succeeded_after_the_restart() -> None:
    world = settled(template=template(container={"readinessProbe": PROBED}))
    world.modify(0, lambda pod: restarted_again(running(pod, since=ONE_SECOND_LATER)))
    assert available(world) == (1, None)


@pytest.mark.parametrize("probes", [{"startupProbe": PROBED}, BOTH], ids=["startup", "both"])
@pytest.mark.parametrize("least", [0, 1, 5], ids="minReadySeconds {}".format)
def test_restarted_container_is_available_after_its_startup_probe_had_time_to_run(
    probes: Document, least: int
) -> None:
    """A restarted container with a startup probe is available only after the probe had time to run.

    Until then, `started` and Ready may still be those of the previous container.
    """
    world = settled(template=template(container=probes), minReadySeconds=least)
    world.modify(0, lambda pod: restarted_again(running(pod, since=ONE_SECOND_LATER)))
    assert available(world) == (0, 2)
    world.hook.now = NOW + 2
    assert available(world) == (1, None)


@pytest.mark.parametrize(
    ("since", "reported", "missing"),
    [
        (ONE_SECOND_LATER, "", 3),
        ("2026-01-05T10:59:58Z", "2026-01-05T10:59:59Z", 10),
        (CREATED, "2026-01-05T10:59:56Z", 28),
        (CREATED, "", 22),
    ],
    ids=["Ready changes", "Ready changes late", "Ready stays", "no report"],
)
def test_time_for_the_startup_probe_counts_from_the_end_of_the_post_start_hook(
    since: str, reported: str, missing: int
) -> None:
    """A restarted container has a postStart hook: the time for the startup probe begins after the
    hook.

    The kubelet publishes the container only after its postStart hook.
    """
    hooked = {"startupProbe": PROBED, "lifecycle": {"postStart": {"sleep": {"seconds": 5}}}}
    world = settled(template=template(container=hooked))
    world.change(template=template("nginx:2", container=hooked)).sync()
    kubelet = {"manager": "kubelet", "subresource": "status", "time": reported}

    def begun(pod: Document) -> Document:
        pod = restarted_again(running(pod, since=since))
        return {**pod, "metadata": {**pod["metadata"], "managedFields": [kubelet]}}

    world.modify(0, begun)
    assert available(world) == (0, missing)


def test_min_ready_seconds_count_from_the_success_of_the_startup_probe() -> None:
    """The startup probe made the pod Ready a second ago: four of five minReadySeconds are left."""
    world = settled(template=template(container=BOTH), minReadySeconds=5)
    world.modify(0, lambda pod: restarted_again(running(pod, since="2026-01-05T10:59:59Z")))
    assert available(world) == (0, 4)


def test_first_container_is_available_when_its_startup_probe_succeeds() -> None:
    """The first container of a pod became Ready a second after its start: the instance is
    available.

    Ready cannot still describe an earlier container, because there was none.
    """
    world = settled(template=template(container=BOTH))
    world.modify(0, lambda pod: restarted_without_unready(running(pod, since=ONE_SECOND_LATER)))
    assert available(world) == (1, None)


def test_startup_probe_of_a_native_sidecar_counts() -> None:
    side = {"name": "side", "image": "side:1", "startupProbe": PROBED, "restartPolicy": "Always"}
    world = settled(template=template(initContainers=[side]))

    def begun(pod: Document) -> Document:
        status = restarted_again(running(pod, since=ONE_SECOND_LATER))["status"]
        item = {**status["containerStatuses"][0], "name": "side", "image": "side:1"}
        return {**pod, "status": {**status, "initContainerStatuses": [item]}}

    world.modify(0, begun)
    assert available(world) == (0, 2)


@pytest.mark.parametrize("probed", ["app", "second"])
def test_containers_that_were_updated_together_count_from_the_start_of_the_last_one(
    probed: str,
) -> None:
    """Two containers restart one after the other: the time for the probe begins with the second
    one.

    While it starts the second container, the kubelet does not probe the first one.
    """
    first = {"name": "app", "image": "nginx:1"}
    second = {"name": "second", "image": "nginx:1"}
    both = [
        item | ({"startupProbe": PROBED} if item["name"] == probed else {})
        for item in (first, second)
    ]
    world = settled(template=template(containers=both))
    world.change(template=template(containers=[item | {"image": "nginx:2"} for item in both]))
    world.sync()

    def begun(pod: Document) -> Document:
        pod = running(pod, since=ONE_SECOND_LATER)
        times = ("2026-01-05T10:59:20Z", RESTARTED)
        statuses = [
            {**item, "restartCount": 1, "state": {"running": {"startedAt": time}}}
            for item, time in zip(pod["status"]["containerStatuses"], times, strict=True)
        ]
        return {**pod, "status": {**pod["status"], "containerStatuses": statuses}}

    world.modify(0, begun)
    assert available(world) == (0, 2)


def test_container_counts_from_its_update_if_the_clock_of_the_node_is_slow() -> None:
    """The start time of a container is before its update: minReadySeconds count from the update.

    The node's clock is five minutes behind.
    """

    def slow(pod: Document) -> Document:
        return restarted_without_unready(running(pod), "2026-01-05T10:54:59Z")

    world = settled(minReadySeconds=15)
    world.change(template=template("nginx:2")).sync()
    entry = {"manager": "metacontroller", "operation": "Update", "time": "2026-01-05T10:59:55Z"}
    world.modify(
        0, lambda pod: {**pod, "metadata": {**pod["metadata"], "managedFields": [entry]}}
    ).modify(0, slow)
    assert available(world) == (0, 11)


def test_restarted_pod_that_is_not_available_yet_waits_for_the_budget() -> None:
    """A restarted pod, whose probe has not run yet, probably serves, so its update waits while
    another one is broken.
    """
    body = template(container={"startupProbe": {"tcpSocket": {"port": 80}}})
    world = (
        settled(replicas=3, template=body).modify(0, restarted_without_unready).modify(1, crashing)
    )
    new = template("nginx:2", container={"startupProbe": {"tcpSocket": {"port": 80}}})
    assert decisions_in_order(world.change(template=new)) == [
        "Keep/WaitingForBudget",
        "UpdateInPlace/TemplateChanged",
        "Keep/WaitingForBudget",
    ]
