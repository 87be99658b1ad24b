"""Takes over pods of another kubelet: the fake kubelet reads their containers from the status."""

from simulator.node.container import Run
from simulator.node.local_pod import LocalPod
from simulator.node.pod_plan import specs_of
from simulator.node.pod_status import statuses_of
from tapp.kube.restarts import COMPLETED

from .kube import Json


def adopt(local: LocalPod, now: float) -> None:
    """Adds the containers in the pod's status to the fake kubelet's pod, as if they had started
    now.
    """
    status = local.pod.get("status") or {}
    if status.get("phase") in COMPLETED:
        local.end = status["phase"], status.get("reason", ""), status.get("message", "")
    known, specs = statuses_of(local.pod), specs_of(local.pod)
    for one in local.all:
        if known.get(one.name, {}).get("containerID"):
            one.add(_adopted(specs[one.name]["image"], known[one.name], now))
    local.load_status()


def _adopted(image: str, status: Json, now: float) -> Run:
    ended = status["state"].get("terminated")
    return Run(
        id=status["containerID"],
        image=image,
        shown=status["image"],
        image_id=status["imageID"],
        restarts=status["restartCount"],
        started=now,
        ready_from=now,
        started_from=now,
        exit_code=0 if ended is None else ended["exitCode"],
        finished=None if "running" in status["state"] else now,
    )
