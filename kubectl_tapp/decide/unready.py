"""Why a pod that runs is not Ready: which probe has not passed, which gate is unmet."""

from collections.abc import Mapping
from typing import Any

from kubectl_tapp.base.observed import Document
from kubectl_tapp.base.reading import conditions, containers, statuses


def unready(pod: Document) -> list[str]:
    """What keeps a pod from being Ready while its containers run, a phrase each."""
    known = conditions(pod)
    result = [
        f"container {name}: its {probe} probe has not passed"
        for name, probe in unpassed(pod).items()
    ]
    for gate in (pod.get("spec") or {}).get("readinessGates") or []:
        type_ = gate.get("conditionType")
        if (condition := known.get(type_) or {}).get("status") != "True":
            result.append(f"its readiness gate {type_} {_unmet(condition)}")
    return result


def unpassed(pod: Document) -> dict[str, str]:
    """Container that runs and is not ready -> the probe that has not passed: startup, readiness.

    A container that never ran a probe says nothing; the kubelet's `started` tells which is asked.
    """
    bodies = {each["name"]: each for each in containers(pod.get("spec") or {})}
    found = {}
    for each in statuses(pod):
        if each.get("ready") or not (each.get("state") or {}).get("running"):
            continue
        probe = "readiness" if each.get("started") else "startup"
        if bodies.get(each.get("name"), {}).get(f"{probe}Probe"):
            found[str(each.get("name"))] = probe
    return found


def _unmet(condition: Mapping[str, Any]) -> str:
    if not condition:
        return "is unmet: nobody has set its condition yet"
    text = ": ".join(each for key in ("reason", "message") if (each := condition.get(key)))
    return f"is unmet: {text or 'its condition is ' + str(condition.get('status'))}"
