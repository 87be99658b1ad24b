"""What a sync notes in the TApp's status for later ones, as far as its instances tell.

docs/design.md, "What is remembered". `tapp/words/notes.py` has the form of each key.
"""

from tapp.decide.instances import Instance
from tapp.plan import Plan
from tapp.words.notes import ReadyNote, UpdateNote, encode_names, encoded
from tapp.words.times import UNKNOWN, noted_since, written


def failures(plan: Plan, wanted: list[Instance]) -> dict[str, int]:
    """Returns instance -> failed pods in a row, while no pod of it holds the number."""
    noted, result = plan.world.tapp.status.failures, {}
    for instance in wanted:
        if not instance.should_run:
            continue
        if instance.pace is not None:
            result[str(instance.id)] = instance.pace.failures
        elif noted and (instance.pod is None or instance.pod.terminating):
            before = noted.get(str(instance.id), 0)
            if before > 0:
                result[str(instance.id)] = before
    return result


def settling(plan: Plan) -> dict[str, str]:
    """Returns update -> since when only time can prove the update."""
    noted = plan.world.tapp.status.settling
    keys = [
        UpdateNote(instance.id, instance.pod.generation).encode()
        for instance in plan.instances
        if instance.update.start_clock and instance.pod is not None and instance.wanted
    ]
    return {key: noted_since(noted.get(key, ""), plan.now)[0] for key in keys}


def undated(plan: Plan) -> dict[str, str]:
    """Returns since when pods are seen as they are whose condition Ready has no usable time."""
    return encoded(
        {
            ReadyNote(instance.id, instance.pod.ready is True): written(instance.seen_since)
            for instance in plan.instances
            if instance.seen_since != UNKNOWN and instance.pod is not None
        }
    )


def turned(plan: Plan) -> dict[str, str]:
    """Returns update -> the containers that the kubelet has seen are to start again."""
    return encoded(
        {
            UpdateNote(instance.id, instance.pod.generation): encode_names(
                instance.update.seen_by_kubelet
            )
            for instance in plan.instances
            if instance.update.seen_by_kubelet and instance.pod is not None and instance.wanted
        }
    )
