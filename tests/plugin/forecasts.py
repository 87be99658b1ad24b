"""Compares a forecast of the plugin with the writes that follow in the simulated cluster.

`foretell` returns the forecast, and `differences_between` compares: each child must get the same
writes in the same order.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from kubectl_tapp.base.observed import Observed
from kubectl_tapp.cluster.registration import Registration
from kubectl_tapp.forecast.forecast import Assumptions, Forecast
from kubectl_tapp.forecast.foresee import forecast
from simulator.objects.kinds import NAMESPACE, UnknownKindError
from tapp.kube.merges import kubectl_applied, merge_patch
from tapp.world import Options
from tests.e2e.edits import Step
from tests.scenarios.life import Document, Life, manifest

Writes = dict[str, list[str]]
"""Kind and name of a child -> its writes, in order."""
PASSING = ("Conflict", "NotFound", "no-op")
"""Outcomes of writes that are decided again in a later sync, so that their number depends on timing
only.
"""
ONCE = ("Invalid",)
"""Outcomes of writes that are repeated as often as time allows, so that only the first one is
compared.
"""


def observe(life: Life, name: str = "") -> Observed:
    """Returns the objects of a simulated cluster as the plugin would read them with kubectl.

    `name` is the name of the TApp; an empty name stands for the life's own TApp.
    """
    world = life.world
    try:
        revisions = world.list("ControllerRevision")
        classes = world.list("StorageClass")
    except UnknownKindError:
        revisions, classes = [], []
    return Observed(
        world.get("TApp", name or life.name),
        pods=world.list("Pod"),
        claims=world.list("PersistentVolumeClaim"),
        revisions=revisions,
        storage_classes=classes,
        namespace=world.cluster.get(NAMESPACE, "", "default"),
    )


def registered(options: Options) -> Registration:
    """Returns the shipped CompositeController, together with the given options of the service."""
    return Registration(manifest("metacontroller/base/composite-controller.yaml"), options)


def foretell(
    life: Life, edited: Document, *, broken: tuple[str, ...] = (), resize: bool = False
) -> Forecast:
    """Returns the plugin's forecast of an edit, beginning with the present state of the cluster.

    Args:
        life: the simulated cluster.
        edited: the TApp after the edit.
        broken: images that the forecast assumes to be missing.
        resize: True if the component resize is installed.
    """
    return forecast(
        observe(life),
        edited,
        registered(Options(resize=resize)),
        life.world.clock.unix(),
        Assumptions(broken=broken),
    )


def edited_by(live: Document, step: Step) -> Document | None:
    """Returns the TApp after a step of a story; None if the step does not edit the TApp.

    `live` is the TApp before the step.
    """
    if step.what == "patch":
        merged: Document = merge_patch(live, step.patch)
        return merged
    tapps = [each for each in step.documents if each["kind"] == "TApp"]
    return kubectl_applied(live, tapps[0]) if step.what == "apply" and tapps else None


NOTES = ("update", "update metadata.annotations.metacontroller.k8s.io/last-applied-configuration")
"""Updates that change only Metacontroller's annotation of a pod that was just resized."""


def differences_between(
    found: Forecast, writes: Sequence[Any], life: Life, *, ignored: Sequence[str] = ()
) -> list[str]:
    """Returns a line for each difference between a forecast and the writes that followed.

    Args:
        found: the forecast.
        writes: Metacontroller's writes since the edit, in order.
        life: the simulated cluster; its stored writes (`news`) are consumed.
        ignored: texts of writes that depend on timing only.
    """
    there, here = (
        {child: [line for line in lines if line not in ignored] for child, lines in each.items()}
        for each in (foretold(found), happened(life))
    )
    lines = [
        f"{child}: foretold {there.get(child)}, happened {here.get(child)}"
        for child in sorted({*there, *here})
        if there.get(child, []) != here.get(child, [])
    ]
    disturbing = ("update", "delete")
    before, after = order(found.writes, disturbing), order(writes, disturbing)
    if before != after:
        lines.append(f"order: foretold {before}, happened {after}")
    return lines


def foretold(found: Forecast) -> Writes:
    """Returns the writes of a forecast, by child."""
    return _by_child([(w.verb, w.kind, w.name, w.paths, w.outcome) for w in found.writes])


def happened(life: Life) -> Writes:
    """Returns the writes to children in the simulated cluster since the last call, by child."""
    writes = [w for w in life.news() if w.kind != "TApp"]
    return _by_child([(w.verb, w.kind, w.name, w.paths, w.outcome) for w in writes])


def order(found: Sequence[Any], verbs: tuple[str, ...]) -> list[str]:
    """Returns the pods with a successful write by one of these verbs, each once, in the order of
    the writes.
    """
    names = [f"{w.kind} {w.name}" for w in found if w.verb in verbs and w.outcome == "ok"]
    return list(dict.fromkeys(name for name in names if name.startswith("Pod")))


def _by_child(writes: list[tuple[Any, ...]]) -> Writes:
    found: Writes = defaultdict(list)
    for verb, kind, name, paths, outcome in writes:
        if outcome in PASSING:
            continue
        told = " ".join([verb, *sorted(paths), *([outcome] if outcome != "ok" else [])])
        if outcome in ONCE and told in found[f"{kind} {name}"]:
            continue
        found[f"{kind} {name}"].append(told)
    return {child: lines for child, lines in found.items() if lines}
