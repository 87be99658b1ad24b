"""Records real calls of the hooks, reduced and scrubbed, for replays without a cluster.

`tests/contract/test_recorded.py` replays them. This test checks that a real cluster still sends
such calls. To record them again with the real Metacontroller:

    E2E_RECORD=1 METACONTROLLER_BIN=... make e2e E2E_ARGS='-k recording'
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable

import pytest

from tests.contract.recordings import RECORDED, replay

from .app import App, tapp, template
from .cluster import Cluster
from .kube import Json
from .kubelet_controls import Levers
from .metacontroller import Controller
from .policies import lean_everywhere
from .proxy import Call, HookProxy
from .scrub import Scrubber, shape

pytestmark = pytest.mark.e2e
CLAIM: Json = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
OPEN: Json = {"operator": "Exists", "effect": "NoSchedule", "key": "spot"}


def pods(request: Json) -> list[Json]:
    """Returns the pods of a request."""
    return list(request["children"]["Pod.v1"].values())


def version(request: Json) -> str:
    """Returns the tag of the TApp's image."""
    image: str = request["parent"]["spec"]["template"]["spec"]["containers"][0]["image"]
    return image.partition(":")[2]


def new_images(request: Json) -> int:
    """Returns the number of pods with the new image."""
    return sum(pod["spec"]["containers"][0]["image"] == "app:2" for pod in pods(request))


def settled(request: Json) -> bool:
    """Returns True if two pods exist and the status counts them as available."""
    status = request["parent"].get("status") or {}
    return bool(status.get("availableReplicas") == 2 and len(pods(request)) == 2)


EITHER_WAY = {".parent.metadata.finalizers[]"}
"""An event of the Namespace lets Metacontroller customize a parent before its first sync."""
OURS = (
    ".parent.status.",
    ".children.ControllerRevision.apps/v1",
    ".related.StorageClass.storage.k8s.io/v1",
)
"""Paths that the service itself wrote or requested.

Newer versions do more than the recorded one.
"""
# For each name: the hook, a description, and a function that selects the call.
WANTED: dict[str, tuple[str, str, Callable[[Json], bool]]] = {
    "customize": ("customize", "before the first sync", lambda _: True),
    "created": ("sync", "a TApp that was just created", lambda r: not pods(r)),
    "settled": ("sync", "nothing is to be done", lambda r: version(r) == "1" and settled(r)),
    "update-begins": ("sync", "a new image", lambda r: version(r) == "2" and not new_images(r)),
    "update-under-way": ("sync", "one of two pods has been updated", lambda r: new_images(r) == 1),
    "deleted": ("finalize", "its pods are there", lambda r: len(pods(r)) == 2),
    "gone": ("finalize", "its pods are gone", lambda r: not pods(r)),
}


def choose(calls: list[Call], name: str) -> Json:
    """Returns the record of the first successful call that fits the description `name` in `WANTED`;
    fails without such a call.
    """
    hook, about, fits = WANTED[name]
    for call in calls:
        if call.status == 200 and call.path == f"/{hook}":
            request = json.loads(call.request)
            if fits(request):
                answer = json.loads(call.answer)
                return {"about": about, "hook": hook, "request": request, "answer": answer}
    raise AssertionError(f"no call is {name!r}: {about}")


def timeless(answer: Json) -> Json:
    """Returns the response without times of the rollout, which depend on the time of the call."""
    given = answer.get("status") or {}
    status = {key: item for key, item in given.items() if key != "progressed"}
    if status == given:
        return answer
    return {"status": status, "children": answer["children"]}


@pytest.fixture
def recent(needs: Callable[[int, str], None]) -> None:
    """Skips unless pods have `observedGeneration` and are plain, as in the records."""
    needs(34, "status.observedGeneration of pods")
    if lean_everywhere():
        pytest.skip("the records are of plain pods")


@pytest.mark.usefixtures("recent")
def test_recording_of_real_calls_matches_the_stored_records(
    app: App, hook_proxy: HookProxy, levers: Levers, cluster: Cluster, tapps: Controller
) -> None:
    """The calls are those of a creation, an update in place and a deletion."""
    levers.pull_seconds = 0.3
    hook_proxy.reset()
    spec = {"template": template(tolerations=[OPEN]), "volumeClaimTemplates": [CLAIM]}
    app.apply(tapp(replicas=2, **spec)).settle()
    app.trigger_sync()
    app.patch(template=template("app:2")).settle()
    app.delete()
    mine = app.namespace.encode()
    calls = [call for call in hook_proxy.calls if mine in call.request]
    plane = cluster.control_plane
    for name in WANTED:
        record = choose(calls, name) | {"now": int(time.time())}
        record["kubernetes"] = plane.version if plane is not None else "unknown"
        assert timeless(replay(record)) == timeless(record["answer"]), name
        # The record has no registration. Older registrations declared less, and their responses
        # must stay the same.
        record = Scrubber(app.namespace).record(record)
        record["answer"] = replay(record)
        file = RECORDED / f"real-{name}.json"
        if os.environ.get("E2E_RECORD") == "1":
            assert tapps.real, "records are made with the real Metacontroller"
            file.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")
        before = json.loads(file.read_text())
        paths = shape(record["request"]) ^ shape(before["request"])
        differs = {path for path in paths if not path.startswith(OURS)}
        assert differs <= EITHER_WAY, f"record {name} anew?"
