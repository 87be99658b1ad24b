"""Tests that no missing or odd time in an object ends a command with a fault of the plugin."""

from collections.abc import Callable

import pytest

from tests.plugin.clusters import running, unvalidated
from tests.plugin.fake_kubectl import Document, StandIn, kubectl_tapp

MISSING = object()
TIMES = {"null": None, "missing": MISSING, "no time": "soon", "future": "2099-01-01T00:00:00Z"}


def put(place: Document, key: str, value: object) -> None:
    if value is MISSING:
        place.pop(key, None)
    else:
        place[key] = value


def make_unready(pod: Document) -> None:
    for each in pod["status"]["conditions"]:
        if each["type"] in {"Ready", "ContainersReady"}:
            each["status"] = "False"


def crash(pod: Document, value: object) -> None:
    """Lets all containers of a pod crash, with `value` as the time of each start and end."""
    for each in pod["status"]["containerStatuses"]:
        ended: Document = {"exitCode": 1, "reason": "Error"}
        put(ended, "startedAt", value)
        put(ended, "finishedAt", value)
        waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}
        each |= {"ready": False, "state": waiting, "lastState": {"terminated": ended}}
    make_unready(pod)


def run_unready(pod: Document, value: object) -> None:
    """Lets all containers of a pod run without being ready, with `value` as their start."""
    for each in pod["status"]["containerStatuses"]:
        state: Document = {}
        put(state, "startedAt", value)
        each |= {"ready": False, "restartCount": 2, "state": {"running": state}}
    for each in pod["status"]["conditions"]:
        put(each, "lastTransitionTime", value)
    make_unready(pod)


PLACES: dict[str, tuple[str, Callable[[Document, object], None]]] = {
    "creation of pods": ("Pod", lambda it, value: put(it["metadata"], "creationTimestamp", value)),
    "start of pods": ("Pod", lambda it, value: put(it["status"], "startTime", value)),
    "crashes": ("Pod", crash),
    "containers that are not ready": ("Pod", run_unready),
    "creation of the TApp": (
        "TApp", lambda it, value: put(it["metadata"], "creationTimestamp", value)),
    "conditions of the TApp": ("TApp", lambda it, value: [
        put(each, "lastTransitionTime", value) for each in it["status"]["conditions"]]),
    "creation of revisions": (
        "ControllerRevision", lambda it, value: put(it["metadata"], "creationTimestamp", value)),
}  # fmt: skip
"""The name of a time -> the kind of the object, and a function that sets the time in it."""
CALLS = (["status", "web"], ["why", "web"], ["why", "web", "0", "-o", "json"], ["list"],
         ["history", "web"], ["wait", "web", "--timeout", "1"])  # fmt: skip


def said_by_all(cluster: StandIn) -> str:
    """Returns everything that the commands of `CALLS` print."""
    said = [kubectl_tapp(cluster, *words) for words in CALLS]
    return "".join(each.out + each.err for each in said)


@pytest.mark.parametrize("time", TIMES.values(), ids=TIMES)
@pytest.mark.parametrize("place", PLACES)
def test_commands_cope_with_an_odd_time(place: str, time: object) -> None:
    kind, change = PLACES[place]
    cluster = unvalidated(running(), kind, lambda it: change(it, time))
    text = said_by_all(cluster)
    assert "internal error of kubectl-tapp" not in text
    assert "web" in text


def test_age_of_a_tapp_without_a_time_is_unknown() -> None:
    kind, change = PLACES["creation of the TApp"]
    cluster = unvalidated(running(), kind, lambda it: change(it, None))
    assert kubectl_tapp(cluster, "list").lines[1].split()[-1] == "<unknown>"


@pytest.mark.parametrize("status", [None, {}])
def test_commands_cope_with_pods_without_a_status(status: object) -> None:
    cluster = unvalidated(running(), "Pod", lambda it: put(it, "status", status))
    assert "internal error of kubectl-tapp" not in said_by_all(cluster)
