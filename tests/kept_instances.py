"""Checks the instances that `updateStrategy.partition` keeps at an older revision.

`kept_wrongly` is the entry point: the function checks that the response keeps the right instances
and that these run their older revision. All functions read JSON documents and use no code of the
service.
"""

import math
import re
from typing import Any

from tests.hook_calls import (
    BESIDE,
    RECORD,
    claim_templates,
    content_of,
    desired,
    images,
    note,
    number,
    observed,
    own_template,
    rolling_name,
    template,
    template_name,
)

Document = dict[str, Any]
CLAIM = "persistentVolumeClaim"


def kept_size(request: Document) -> int:
    """Returns the number of instances that the TApp's partition keeps at an older revision.

    An invalid partition, or one whose template does not exist, keeps all instances.
    """
    spec = request["parent"]["spec"]
    value = (spec.get("updateStrategy") or {}).get("partition")
    group = len(_group(request))
    if _is_unnamed(spec) and value not in (None, 0, "0%"):
        return group
    if value is None or isinstance(value, int):
        return group if (value or 0) < 0 else min(value or 0, group)
    found = re.fullmatch(r"([0-9]+)%", value)
    if found is None or int(found[1]) > 100:
        return group
    size = math.ceil(group * int(found[1]) / 100)
    return size - 1 if int(found[1]) < 100 and size == group > 1 else size


def _is_unnamed(spec: Document) -> bool:
    """Returns True if the rolling template's name is a typo: no template has it, and no instance
    runs it.
    """
    ids, name = range(spec.get("replicas", 1)), rolling_name(spec)
    return template(spec, name) is None and name not in {template_name(spec, id) for id in ids}


def _group(request: Document) -> set[int]:
    """Returns the numbers of the instances to which the partition applies.

    These are the instances that run the rolling template. If that template's name is a typo, they
    are the instances that have a pod or were kept before.
    """
    parent = request["parent"]
    spec = parent["spec"]
    ids = range(spec.get("replicas", 1))
    if not _is_unnamed(spec):
        return {id for id in ids if template_name(spec, id) == rolling_name(spec)}
    pods = {number(request, name) for name in observed(request, "Pod")}
    return {id for id in ids if id in pods or id in kept_in(parent.get("status") or {})}


def kept_in(status: Document) -> dict[int, str]:
    """Returns instance number -> revision for the kept instances in a TApp's status."""
    noted = status.get("kept")
    return {
        id: revision
        for revision, text in (noted if isinstance(noted, dict) else {}).items()
        for first, last in re.findall(r"(\d{1,5})(?:-(\d{1,5}))?", str(text))
        for id in range(int(first), int(last or first) + 1)
    }


def recorded(request: Document, revision: str) -> Document | None:
    """Returns the parts of a spec that the history has recorded for a revision: the template,
    values and so on.

    Returns None if no ControllerRevision of the request has this revision.
    """
    for found in observed(request, "ControllerRevision").values():
        template, label, digest = content_of(found)
        if template and revision == (f"{label}-{digest}" if digest else label):
            data = found["data"]
            values = {key: data.get(key) or {} for key in ("values", "defaultValues")}
            beside = {key: data[key] for key in BESIDE if key in data}
            return {"template": data["template"], **values, **beside}
    return None


def kept_template(request: Document, status: Document, id: int) -> Document | None:
    """Returns the template that an instance has to run according to a status, with its values
    filled in.

    A kept instance runs the template that its revision has recorded, any other instance runs the
    newest. Returns None if the template or the revision does not exist.
    """
    revision, spec = kept_in(status).get(id, ""), request["parent"]["spec"]
    if id in _returned(request, status):
        revision = status["currentRevision"]
    newest = own_template(spec, id)
    # If the newest template does not resolve (a typo), the history has the previous one.
    if not revision or (revision == status.get("updateRevision") and newest is not None):
        return newest
    past = recorded(request, revision)
    return None if past is None else own_template(past, id)


def _returned(request: Document, status: Document) -> set[int]:
    """Returns the numbers of the instances that a rollback at the deadline brings back.

    They run `status.currentRevision`. A rollback that the sync itself decides counts from the next
    sync on.
    """
    parent = request["parent"]
    strategy = parent["spec"].get("updateStrategy") or {}
    noted = (parent.get("status") or {}).get("rolledBack")
    newest, current = status.get("updateRevision"), status.get("currentRevision")
    text = noted.get(newest) if isinstance(noted, dict) else None
    at = (
        re.match(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)(: |$)", text)
        if isinstance(text, str)
        else None
    )
    if strategy.get("onDeadline") != "Rollback" or at is None or current in {None, newest}:
        return set()
    retry = (parent["metadata"].get("annotations") or {}).get("apps.tkestack.io/retry")
    if retry == f"{newest}/{at[1]}":
        return set()
    return _group(request) - kept_in(status).keys()


def kept_wrongly(request: Document, answer: Document) -> str:
    """Returns a sentence about the first fault in the instances that a response keeps, or "" if all
    is right.
    """
    if request["finalizing"]:
        return ""
    spec, before = request["parent"]["spec"], request["parent"].get("status") or {}
    group, size, status = _group(request), kept_size(request), answer["status"]
    had, kept = kept_in(before), kept_in(status)
    mine = {id: kept[id] for id in kept if id < spec.get("replicas", 1)}
    if len(mine) != size or not mine.keys() <= group:
        return f"{sorted(mine)} are kept, of {sorted(group)} so many should be: {size}"
    changed = {id: (had[id], mine[id]) for id in mine if had.get(id, mine[id]) != mine[id]}
    pods = {number(request, name) for name in observed(request, "Pod")}
    lost = {id: both for id, both in changed.items() if id not in pods}
    if lost:
        return f"kept at another revision than they had: {lost}"
    same_roll = before.get("updateRevision") == status.get("updateRevision")
    let_go = (had.keys() & group) - mine.keys()
    if same_roll and let_go and len(had.keys() & group) <= size:
        return f"{sorted(let_go)} are kept no longer, and nobody asked for that"
    # A revision that was rolled back is never rolled out again by itself.
    returned = dict.fromkeys(_returned(request, status), status.get("currentRevision", ""))
    return _touched(request, answer, mine | returned)


def _touched(request: Document, answer: Document, mine: dict[int, str]) -> str:
    """Returns a sentence about a kept instance that a response moves to another revision, or "".

    `mine` maps the number of each kept instance to its revision.
    """
    pods, newest = observed(request, "Pod"), answer["status"].get("updateRevision")
    for name, child in desired(answer, "Pod").items():
        id = number(request, name)
        if id not in mine or "spec" not in child or mine[id] == newest:
            continue
        had = images(pods[name]) if name in pods else {}
        brought = {key: image for key, image in images(child).items() if had.get(key) != image}
        body = kept_template(request, answer["status"], id)
        wanted = {} if body is None else images(body)
        wrong = {key: image for key, image in brought.items() if wanted.get(key) != image}
        again = '"again":true' in note(child, RECORD)  # the same image by another name
        if wrong and not again:
            return f"{name} is kept at {mine[id]}, and gets {wrong}"
        if name not in pods and (other := _difference_to_record(request, child, mine[id])):
            return f"{name} is kept at {mine[id]}, and {other}"
    return ""


def _are_objects(items: Any) -> bool:
    return isinstance(items, list) and all(isinstance(each, dict) for each in items)


def _difference_to_record(request: Document, pod: Document, revision: str) -> str:
    """Returns how a kept instance's new pod differs from the recorded revision, or "".

    The Service name and the claims are compared; "" is also returned if the revision does not
    record them.
    """
    past, spec = recorded(request, revision) or {}, pod["spec"]
    service, claims = (past.get(key) for key in BESIDE)
    if not isinstance(service, str) or not _are_objects(claims):
        return ""  # nothing is recorded, or nothing readable
    if service != spec.get("subdomain", ""):
        return f"is in {spec.get('subdomain')}"
    names = {each["metadata"]["name"] for each in claim_templates(past)}
    lacks = names - {each["name"] for each in spec.get("volumes") or [] if CLAIM in each}
    return f"lacks its claims {lacks}" if lacks else ""
