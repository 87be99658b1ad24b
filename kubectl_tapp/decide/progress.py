"""The progress of a TApp towards its spec, for `--wait` and the page.

`Progress` groups the instances by how they stand: done, progressing, waiting or blocked.
"""

from collections.abc import Collection, Iterable

from kubectl_tapp.base.observed import Document
from kubectl_tapp.base.reading import conditions_by_type, observed_generation
from kubectl_tapp.base.words import instances_phrase
from kubectl_tapp.decide.inspection import Inspection
from kubectl_tapp.decide.instance_views import InstanceView
from tapp.plan import Plan
from tapp.words.conditions import Type
from tapp.words.groups import grouped
from tapp.words.quoted import short
from tapp.words.ranges import about
from tapp.words.reasons import Standing

Ids = list[int]
_WAITING = (Standing.WAITING, Standing.ON_HOLD)  # Waiting for other instances, or for a person
# Limits: the number of reasons in a sentence, the number of reasons on a progress line, and the
# characters of a reason on that line
_MAX_REASONS, _MAX_REASONS_IN_LINE, _MAX_CHARACTERS = 5, 2, 160


class Progress:
    """The progress of a TApp towards its spec at one moment: which instances are done, and which
    not.

    Attributes:
        answered: True if the service has acted on the present generation of the spec. Otherwise
            `ready` and `has_minimum` are False and `stalled_message` is empty, because the
            conditions are outdated.
        ready: True if the condition Ready is True.
        has_minimum: True if the condition Available is True.
        stalled_message: the message of the condition Stalled; empty if it is not True.
        paused: True if updates are paused.
        fingerprint: a number that changes when the TApp or a child is written, or a child is
            created, deleted, started or reports a new status.
    """

    def __init__(self, view: Inspection) -> None:
        """Computes the progress of a TApp from an inspection, which has the decisions about its
        instances.
        """
        tapp, plan = view.observed.tapp, view.plan
        self._views = [*view.standings.values()]
        self.generation = int(tapp["metadata"].get("generation") or 0)
        # A TApp without a generation does not show whether the service has acted on the spec, so it
        # counts as not answered.
        self.answered = 0 < self.generation <= observed_generation(tapp)
        told = {
            type: str(each.get("message"))
            for type, each in conditions_by_type(tapp).items()
            if self.answered and each.get("status") == "True"
        }
        self.ready, self.has_minimum = "Ready" in told, "Available" in told
        self.stalled_message = told.get(Type.STALLED, "")
        self.paused = plan.budgets.strategy.paused
        self.fingerprint = _fingerprint(plan, tapp)

    def grouped_by_brief(self, *standings: Standing) -> dict[str, Ids]:
        """Groups the instances that have one of the given standings by their short reason.

        Returns short reason -> the numbers of the instances. Instances with another standing are
        left out.
        """
        return grouped((x.brief, x.id) for x in self._views if x.standing in standings)

    @property
    def progressing(self) -> dict[str, Ids]:
        """Short reason -> the numbers of the instances that progress for this reason."""
        return self.grouped_by_brief(Standing.PROGRESSING)

    def is_done(self, ids: Collection[int] | None) -> bool:
        """Returns True if the instances `ids` are as the spec asks, and the service has acted on
        the present spec.

        If `ids` is None, all instances are checked, and the result is also False if the TApp is
        Stalled.
        """
        return (
            self.answered
            and not self.unfinished(ids)
            and not (ids is None and self.stalled_message)
        )

    def unfinished(self, ids: Collection[int] | None) -> Ids:
        """Returns the numbers of the instances that are not as the spec asks.

        Only the instances `ids` are checked, or all instances of the TApp if `ids` is None.
        """
        return [each.id for each in self._unfinished(ids)]

    def _unfinished(self, ids: Collection[int] | None) -> list[InstanceView]:
        return [
            each
            for each in self._views
            if each.standing is not Standing.DONE and (ids is None or each.id in ids)
        ]

    def stuck_reason(self, ids: Collection[int] | None) -> str:
        """Returns why the instances `ids` that are not done cannot progress without help; "" if
        they may progress.

        None means all instances. While any instance of the TApp progresses, it may free its part of
        a budget for others, so the result is "". The TApp as a whole is also stuck if its condition
        Stalled says so. Instances on hold do not count as stuck, because a person will remove the
        hold.
        """
        left = [each for each in self._unfinished(ids) if not each.on_hold]
        blocked = self.grouped_by_brief(Standing.BLOCKED)
        on_hold = any(each.on_hold for each in self._views)
        if left and not self.progressing and (blocked or not on_hold):
            return self._reasons_of(left)
        return self.stalled_message if ids is None else ""

    @property
    def is_waiting(self) -> bool:
        """True if at least one instance waits for other instances or for a person."""
        return bool(self.grouped_by_brief(*_WAITING))

    @property
    def is_blocked(self) -> bool:
        """True if at least one instance makes no progress until a person helps."""
        return bool(self.grouped_by_brief(Standing.BLOCKED))

    def _reasons_of(self, left: Iterable[InstanceView]) -> str:
        """Returns the reasons why the instances `left` do not progress, as one text.

        An instance that waits for a budget waits for all instances that use up the budget, so the
        reasons of those instances come first.
        """
        held = [each for each in left if each.standing.waits]
        whose = self._views if held else left
        blocked = [each for each in whose if each.standing is Standing.BLOCKED]
        named, waiting = _sentences(blocked), _sentences(held)
        more = [f"and {len(named) - _MAX_REASONS} more"] if len(named) > _MAX_REASONS else []
        return "; ".join([*named[:_MAX_REASONS], *more, *waiting])

    def line(self, ids: Collection[int] | None) -> str:
        """Returns the progress of the instances `ids` as one line; None means all instances.

        Example: `3 of 6 done; instance 2: starting; instance 4: the update waits for ...`.
        """
        total = len(self._views) if ids is None else len(ids)
        parts = [f"{total - len(self.unfinished(ids))} of {total} done"]
        parts += [] if self.answered else ["no controller has acted on its newest spec yet"]
        parts += [f"{instances_phrase(found)}: {what}" for what, found in self.progressing.items()]
        held = self.grouped_by_brief(*_WAITING)
        parts += [about(found, why) for why, found in held.items()]
        blocked = list(self.grouped_by_brief(Standing.BLOCKED).items())[:_MAX_REASONS_IN_LINE]
        parts += [about(found, short(why, _MAX_CHARACTERS)) for why, found in blocked]
        return "; ".join(parts)


def _sentences(left: Iterable[InstanceView]) -> list[str]:
    found = grouped((each.text, each.id) for each in left)
    return [about(ids, text) for text, ids in found.items()]


def _fingerprint(plan: Plan, tapp: Document) -> int:
    """Returns a number that changes when the TApp is written or one of its pods or claims
    changes.
    """
    pods = frozenset(
        (pod.uid, pod.generation, pod.terminating, pod.phase, pod.ready)
        for instance in plan.instances
        if (pod := instance.pod) is not None
    )
    return hash((tapp["metadata"].get("resourceVersion"), pods, frozenset(plan.world.claims)))
