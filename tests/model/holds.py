"""Judges holds on the true cluster: no update or deletion may interrupt a program that works under
a hold.

A hold is an annotation on a pod that asks the service not to change the pod. `tests/holds.py`
judges each response alone: pods that the request shows on hold do not change. A hold that is set
between the request and the deletion comes too late. So a careful program first sets its hold, and
starts its work only when the service has labeled the pod. From then on no write of Metacontroller
may interrupt the program, even if the request did not show the hold.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from simulator.api.store import Event
from simulator.metacontroller.hook_calls import HookCall
from simulator.objects.clock import EPOCH
from simulator.world import World
from tests.holds import HELD, HOLD, HOLD_FOR, RECREATE, UPDATE, action_of_deletion, covers, is_kept
from tests.hook_calls import images, note
from tests.invariants import ViolationError

Document = dict[str, Any]


@dataclass
class HoldJudge:
    """Judges the holds on the pods of one TApp.

    Attributes:
        world: the simulated cluster.
        counts: counters of what the judge has seen; the judge adds to them.
        begun: uid of a pod -> the hold with which its program has started its work.
    """

    world: World
    counts: Counter[str]
    begun: dict[str, tuple[bool, str]] = field(default_factory=dict)
    _set: dict[str, tuple[bool, str]] = field(default_factory=dict)
    _call: HookCall | None = None

    def on_call(self, call: HookCall) -> None:
        """Stores the last hook call, because Metacontroller's writes until the next call depend on
        it.
        """
        if call.hook in ("sync", "finalize"):
            self._call = call

    def check(self, event: Event, *, mine: bool) -> None:
        """Judges a change of a pod; raises ViolationError if it interrupts a program that works
        under a hold.

        `mine` is True if Metacontroller has written the change.
        """
        old, new = event.old, event.new
        if mine and old is not None and self._call is not None:
            self._judge(old, new, self._call)
        if new is None:
            self.begun.pop(event.object["metadata"]["uid"], None)
        else:
            self._note(old, new)

    def _judge(self, old: Document, new: Document | None, call: HookCall) -> None:
        gone = new is None or bool(new["metadata"].get("deletionTimestamp"))
        if old["metadata"].get("deletionTimestamp") or not note(old, HOLD):
            return
        if not gone and images(old) == images(new or {}):
            return
        action = action_of_deletion(call.request, old) if gone else UPDATE
        now = EPOCH.timestamp() + call.time
        kept = is_kept(old, call.request["parent"]["spec"], action, now)
        began = old["metadata"]["uid"] in self.begun
        self.counts[f"on hold, {action}: {'too late' if kept else 'past its limit'}"] += 1
        if kept and began:
            name = old["metadata"]["name"]
            raise ViolationError(f"{name} is cut off ({action}), on hold by {note(old, HOLD)!r}")

    def _note(self, old: Document | None, new: Document) -> None:
        uid = new["metadata"]["uid"]
        hold = bool(note(new, HOLD)), note(new, HOLD_FOR)  # the reason may change
        label = (new["metadata"].get("labels") or {}).get(HELD)
        before = (False, "") if old is None else (bool(note(old, HOLD)), note(old, HOLD_FOR))
        if hold != before:
            self.begun.pop(uid, None)
            self._set.pop(uid, None)
            if hold[0] and not label:
                self._set[uid] = hold
        if label and self._set.get(uid) == hold and covers(new, RECREATE):
            self.begun[uid] = self._set.pop(uid)
            self.counts["programs that began on the service's word"] += 1
