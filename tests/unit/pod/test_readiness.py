"""Facts that Ready does not tell: since when a container runs, and whether a probe has seen it."""

import pytest

from tapp.words.vocabulary import IN_PLACE_UPDATE
from tests.builders import CREATED, NOW, Document, crashing, running, template
from tests.unit.pod.test_availability import verdicts
from tests.unit.world import World, settled

RESTARTED = "2026-01-05T10:59:50Z"
PROBED = {"tcpSocket": {"port": 80}}
BOTH = {"startupProbe": PROBED, "readinessProbe": {**PROBED, "periodSeconds": 1}}
PROBES = ("startupProbe", "readinessProbe")
ALL = ("no probe", *PROBES, "both")
HOOKED: Document = {"lifecycle": {"postStart": {"sleep": {"seconds": 5}}}}


def restarted(pod: Document, at: str = RESTARTED) -> Document:
    """The pod whose container was started anew; Ready never turned False."""
    item = {**pod["status"]["containerStatuses"][0], "state": {"running": {"startedAt": at}}}
    return {**pod, "status": {**pod["status"], "containerStatuses": [item]}}


def available(world: World) -> tuple[int, float | None]:
    answer = world.hook.sync(world.request())
    return answer["status"]["availableReplicas"], answer.get("resyncAfterSeconds")


def test_min_ready_seconds_count_from_the_start_of_what_runs() -> None:
    world = settled(minReadySeconds=15).modify(0, restarted)
    assert available(world) == (0, 6)  # :50Z may be almost :51
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
)
def test_where_ready_has_not_turned_a_probe_must_have_had_the_time_to_fail(
    kind: str, away: int, probe: Document, seconds: int
) -> None:
    """A kubelet that was started anew calls it ready until then, and may have been away so long."""
    body = template(container={kind: {"tcpSocket": {"port": 80}, **probe}})
    world = settled(template=body).modify(0, restarted)
    missing = min(seconds + away, 2**32 + away) - 10
    assert available(world) == (0, missing)
    world.hook.now = NOW + missing
    assert available(world) == (1, None)


@pytest.mark.parametrize(
    ("least", "missing"), [(0, 28), (15, 43)], ids=["at once", "minReadySeconds"]
)
def test_a_kubelet_that_tells_when_it_was_back_is_waited_for_from_then_on(
    least: int, missing: int
) -> None:
    """It may have run the first probe then, and minReadySeconds count from the last one."""
    probed = {"readinessProbe": PROBED}
    world = settled(template=template(container=probed), minReadySeconds=least)
    world.change(template=template("nginx:2", container=probed)).sync()
    wrote = {"manager": "kubelet", "subresource": "status", "time": "2026-01-05T10:59:56Z"}

    def taken_over(pod: Document) -> Document:
        pod = again(running(pod), at="2026-01-05T10:59:40Z")
        return {**pod, "metadata": {**pod["metadata"], "managedFields": [wrote]}}

    world.modify(0, taken_over)
    assert available(world) == (0, missing)


def written(manager: str, time: str, *fields: str) -> Document:
    """An entry of managedFields: when somebody last wrote these annotations of a pod."""
    owned = {"f:metadata": {"f:annotations": {f"f:{field}": {} for field in fields}}}
    return {"manager": manager, "operation": "Update", "time": time, "fieldsV1": owned}


@pytest.mark.parametrize("probes", [{}, *({kind: PROBED} for kind in PROBES), BOTH], ids=ALL)
@pytest.mark.parametrize("least", [0, 15])
@pytest.mark.parametrize("hook", [{}, HOOKED], ids=["no hook", "postStart"])
def test_a_pod_that_others_annotate_stays_what_it_is(
    probes: Document, least: int, hook: Document
) -> None:
    """It was updated in place long ago; a tool may write to it every few seconds for ever."""
    container = probes | hook
    world = settled(template=template(container=container), minReadySeconds=least)
    world.change(template=template("nginx:2", container=container)).sync()
    world.hook.now = NOW + 1000

    def annotated(pod: Document) -> Document:
        pod = again(running(pod, since="2026-01-05T11:00:05Z"), at="2026-01-05T11:00:03Z")
        entries = [
            written("metacontroller", "2026-01-05T10:59:59Z", IN_PLACE_UPDATE),
            written("somebody", "2026-01-05T11:16:39Z", "example.com/checked-at"),
        ]
        return {**pod, "metadata": {**pod["metadata"], "managedFields": entries}}

    assert available(world.modify(0, annotated)) == (1, None)


def test_what_a_kubelet_writes_later_does_not_make_a_container_new() -> None:
    """Ready never turns of one that was taken over; a minute after its start it was published."""
    probed = {"readinessProbe": PROBED}
    world = settled(template=template(container=probed))
    world.change(template=template("nginx:2", container=probed)).sync()
    world.hook.now = NOW + 1000
    wrote = {"manager": "kubelet", "subresource": "status", "time": "2026-01-05T11:16:39Z"}

    def taken_over(pod: Document) -> Document:
        pod = again(running(pod), at="2026-01-05T11:00:03Z")
        return {**pod, "metadata": {**pod["metadata"], "managedFields": [wrote]}}

    assert available(world.modify(0, taken_over)) == (1, None)


@pytest.mark.parametrize("kind", PROBES)
def test_a_slow_clock_of_the_node_does_not_hide_that_ready_has_turned(kind: str) -> None:
    """Both times are the node's, five minutes behind; the update's is the API server's."""
    probed = {kind: PROBED | {"failureThreshold": 60}}
    world = settled(template=template(container=probed))
    world.change(template=template("nginx:2", container=probed)).sync()
    world.hook.now = NOW + 60

    def served(pod: Document) -> Document:
        pod = again(running(pod, since="2026-01-05T10:55:09Z"), at="2026-01-05T10:55:02Z")
        entry = written("metacontroller", "2026-01-05T11:00:00Z", IN_PLACE_UPDATE)
        return {**pod, "metadata": {**pod["metadata"], "managedFields": [entry]}}

    assert available(world.modify(0, served)) == (1, None)


def again(pod: Document, at: str = RESTARTED) -> Document:
    """The same, and the kubelet says that it is not the first container of its name."""
    pod = restarted(pod, at)
    item = {**pod["status"]["containerStatuses"][0], "restartCount": 1}
    return {**pod, "status": {**pod["status"], "containerStatuses": [item]}}


ONE_SECOND_LATER = "2026-01-05T10:59:51Z"


def test_a_readiness_probe_that_made_the_pod_ready_since_is_believed() -> None:
    world = settled(template=template(container={"readinessProbe": PROBED}))
    world.modify(0, lambda pod: again(running(pod, since=ONE_SECOND_LATER)))
    assert available(world) == (1, None)


@pytest.mark.parametrize("probes", [{"startupProbe": PROBED}, BOTH], ids=["startup", "both"])
@pytest.mark.parametrize("least", [0, 1, 5])
def test_a_restarted_container_counts_when_its_startup_probe_can_have_run(
    probes: Document, least: int
) -> None:
    """Until then `started` is left from the container before it, and so is all that follows."""
    world = settled(template=template(container=probes), minReadySeconds=least)
    world.modify(0, lambda pod: again(running(pod, since=ONE_SECOND_LATER)))
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
    ids=["Ready turns", "Ready turns late", "Ready stays", "nothing tells"],
)
def test_behind_a_hook_the_startup_probe_waits_until_the_container_is_shown(
    since: str, reported: str, missing: int
) -> None:
    """A postStart hook keeps the kubelet busy, which publishes the container after it."""
    hooked = {"startupProbe": PROBED, "lifecycle": {"postStart": {"sleep": {"seconds": 5}}}}
    world = settled(template=template(container=hooked))
    world.change(template=template("nginx:2", container=hooked)).sync()
    kubelet = {"manager": "kubelet", "subresource": "status", "time": reported}

    def begun(pod: Document) -> Document:
        pod = again(running(pod, since=since))
        return {**pod, "metadata": {**pod["metadata"], "managedFields": [kubelet]}}

    world.modify(0, begun)
    assert available(world) == (0, missing)


def test_min_ready_seconds_run_from_what_the_startup_probe_has_found() -> None:
    """It made the pod Ready as late as 1 s ago."""
    world = settled(template=template(container=BOTH), minReadySeconds=5)
    world.modify(0, lambda pod: again(running(pod, since="2026-01-05T10:59:59Z")))
    assert available(world) == (0, 4)


def test_the_first_container_of_a_pod_is_believed_when_its_startup_probe_says_so() -> None:
    """There is no container before it from which `started` could be left."""
    world = settled(template=template(container=BOTH))
    world.modify(0, lambda pod: restarted(running(pod, since=ONE_SECOND_LATER)))
    assert available(world) == (1, None)


@pytest.mark.parametrize(("policy", "missing"), [("Always", 2), (None, None)])
def test_a_native_sidecars_startup_probe_counts_and_an_init_containers_cannot_be(
    policy: str | None, missing: float | None
) -> None:
    side = {"name": "side", "image": "side:1", "startupProbe": PROBED}
    side |= {"restartPolicy": policy} if policy else {}
    world = settled(template=template(initContainers=[side]))

    def begun(pod: Document) -> Document:
        status = again(running(pod, since=ONE_SECOND_LATER))["status"]
        item = {**status["containerStatuses"][0], "name": "side", "image": "side:1"}
        return {**pod, "status": {**status, "initContainerStatuses": [item]}}

    world.modify(0, begun)
    assert available(world) == (0 if missing else 1, missing)


@pytest.mark.parametrize("probed", ["app", "second"])
def test_containers_that_were_updated_together_begin_with_the_last_of_them(probed: str) -> None:
    """While the kubelet pulls and starts the second one, it publishes and probes neither."""
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


def test_a_clock_that_is_behind_does_not_make_a_new_container_old() -> None:
    """The node's clock is five minutes slow; the write of the update is the earliest start."""

    def slow(pod: Document) -> Document:
        return restarted(running(pod), "2026-01-05T10:54:59Z")

    world = settled(minReadySeconds=15)
    world.change(template=template("nginx:2")).sync()
    entry = {"manager": "metacontroller", "operation": "Update", "time": "2026-01-05T10:59:55Z"}
    world.modify(
        0, lambda pod: {**pod, "metadata": {**pod["metadata"], "managedFields": [entry]}}
    ).modify(0, slow)
    assert available(world) == (0, 11)


def test_what_is_not_trusted_yet_is_not_free_to_be_taken() -> None:
    """It restarted by itself and most likely serves; something else is broken already."""
    body = template(container={"startupProbe": {"tcpSocket": {"port": 80}}})
    world = settled(replicas=3, template=body).modify(0, restarted).modify(1, crashing)
    new = template("nginx:2", container={"startupProbe": {"tcpSocket": {"port": 80}}})
    assert verdicts(world.change(template=new)) == [
        "Keep/WaitingForBudget",
        "UpdateInPlace/TemplateChanged",
        "Keep/WaitingForBudget",
    ]
