"""Checks the order and the deadline of a rollout, for `tests.invariants`, from JSON documents.

With `podManagementPolicy: OrderedReady` the order of creations and deletions is checked, too.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from simulator.api.apply import LAST_APPLIED
from tests.conditions import LATE
from tests.hook_calls import (
    available,
    desired,
    note,
    number,
    observed,
    own_template,
    rolling_name,
    should_run,
    template_name,
)
from tests.kept_instances import kept_in
from tests.metacontroller_merge import Merged

Document = dict[str, Any]
PRIORITY = "apps.tkestack.io/update-priority"
PATIENCE = 30
"""Seconds within which a broken instance may recover, so that the TApp is not Stalled before."""
_TAKEN = {"UpdateInPlace", "Recreate"}


def out_of_turn(request: Document, plan: Document) -> str:
    """Returns a sentence about an available instance that is updated before an instance whose turn
    is first.

    Returns "" if the order is right. `plan` is the response of `/plan`.
    """
    spec = request["parent"]["spec"]
    strategy = spec.get("updateStrategy") or {}
    if request["finalizing"] or (strategy.get("inPlaceUpdateStrategy") or {}).get("resources"):
        return ""  # a resize uses the budget before it has ended
    taken = dict[bool, list[int]]()
    waiting = dict[bool, list[int]]()
    kept = kept_in(request["parent"].get("status") or {})
    for item in plan["instances"]:
        if item["id"] in kept:
            continue  # it restarts, in the order of another template
        rolling = template_name(spec, item["id"]) == rolling_name(spec)
        if item["available"] and item["action"] in _TAKEN:
            taken.setdefault(rolling, []).append(item["id"])
        elif item["available"] and item["reason"] == "WaitingForBudget":
            waiting.setdefault(rolling, []).append(item["id"])
    for rolling in taken.keys() & waiting.keys():
        last = max(taken[rolling], key=lambda id: _turn(request, id))
        first = min(waiting[rolling], key=lambda id: _turn(request, id))
        if _turn(request, last) > _turn(request, first):
            return f"{last} is updated, and {first} waits, whose turn it is"
    return ""


def _turn(request: Document, id: int) -> tuple[int, int]:
    spec = request["parent"]["spec"]
    falls = (spec.get("updateStrategy") or {}).get("order") == "Descending"
    pod = observed(request, "Pod")[f"{request['parent']['metadata']['name']}-{id}"]
    body = own_template(spec, id) or {}
    of_template = ((body.get("metadata") or {}).get("annotations") or {}).get(PRIORITY) or ""
    of_template = of_template.replace("$(tapp.index)", str(id))
    copied = f'"{PRIORITY}":' in note(pod, LAST_APPLIED)
    texts = ["" if copied else note(pod, PRIORITY), of_template]
    found = [int(text) for text in texts if re.fullmatch(r"[-+]?[0-9]{1,9}", text)]
    return -found[0] if found else 0, -id if falls else id


def _hasty(noted: Document, limit: float, now: float | None) -> str:
    """Returns why it is too early for the condition Stalled, or "" if it is not.

    `noted` is `status.progressed`: the time of the last progress. `limit` is the progress deadline
    in seconds, and `now` the time in seconds since the epoch, or None if unknown.
    """
    least = min(limit, PATIENCE)
    for since in noted.values():
        if now is not None and now - datetime.fromisoformat(since).timestamp() < least:
            return f"it is called stalled, and a roll has come further at {since}"
    return ""


def out_of_order(
    request: Document, answer: Document, after: Mapping[str, Merged], now: float | None
) -> str:
    """Returns why OrderedReady forbids a creation or deletion of a response, or "" if none is
    forbidden.

    Args:
        request: the request to the hook.
        answer: the response of the hook.
        after: observed pods that the response keeps, after Metacontroller's merge, by name.
        now: seconds since the epoch at the request, for `minReadySeconds`; None if unknown.
    """
    spec = request["parent"].get("spec") or {}
    if request["finalizing"] or spec.get("podManagementPolicy") != "OrderedReady":
        return ""
    pods, stays = observed(request, "Pod"), desired(answer, "Pod")
    ids = {name: id for name in {*pods, *stays} if (id := number(request, name)) is not None}
    surplus = {ids[name]: name for name in ids if ids[name] >= spec.get("replicas", 1)}
    made = {id for name, id in ids.items() if name not in pods}
    going = {
        id
        for id, name in surplus.items()
        if name not in stays and "deletionTimestamp" not in pods[name]["metadata"]
    }
    if not made and not going:
        return ""
    serving = available(request, now)
    serving -= {ids[name] for name in ids.keys() & pods if name not in stays}
    serving -= {ids[name] for name in ids.keys() & after.keys() if after[name].updates}
    missing = should_run(request) - serving
    if len(made) > 1 or len(going) > 1:
        return f"{sorted(made)} are made at once, {sorted(going)} go at once"
    for id in made:
        if min(missing, default=id) < id:
            return f"{id} is made, and {min(missing)} is not available"
    for id in going:
        if id != max(surplus) or missing:
            return f"{id} goes before {max(surplus)}, while {sorted(missing)} are not available"
    return ""


def untimely(request: Document, answer: Document, now: float | None) -> str:
    """Returns why the response reports progress or an exceeded progress deadline wrongly, or "".

    If `now` is None, the time limits are not checked.
    """
    spec, status = request["parent"].get("spec") or {}, answer["status"]
    if request["finalizing"]:
        return ""
    limit = spec.get("progressDeadlineSeconds")
    limit = 600 if limit is None else limit
    noted = status.get("progressed") or {}
    if len(noted) > 1 or (noted and not limit):
        return f"noted of a roll: {noted}, its deadline is {limit}"
    stalled = next((c for c in status.get("conditions") or [] if c["type"] == "Stalled"), None)
    if stalled is None:
        return ""
    if stalled["reason"] != LATE:
        return _hasty(noted, limit, now)
    if not noted or (spec.get("updateStrategy") or {}).get("paused"):
        return f"a roll is too late that is paused, or none: {noted}"
    since = datetime.fromisoformat(next(iter(noted.values()))).timestamp()
    least = limit + spec.get("minReadySeconds", 0)
    if now is not None and now - since < least:
        return f"a roll is too late after {now - since:.1f} s of {least}"
    return ""
