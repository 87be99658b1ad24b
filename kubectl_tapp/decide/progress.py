"""The progress of a TApp, from how its instances stand."""

from collections.abc import Collection, Iterable

from kubectl_tapp.base.observed import Document
from kubectl_tapp.base.reading import conditions, generation_seen
from kubectl_tapp.base.words import instances
from kubectl_tapp.decide.inspection import Inspection
from kubectl_tapp.decide.standing import Standing
from tapp.plan import Plan
from tapp.words.conditions import Type
from tapp.words.groups import grouped
from tapp.words.quoted import short
from tapp.words.ranges import id_list
from tapp.words.reasons import Disposition

Ids = list[int]
_SHOWN, _FEW, _LONGEST = 5, 2, 60  # Of progress, a line; the whole of a reason is told in the end
_PREFIX = "spec.updateStrategy."


class Progress:
    """The progress of a TApp at one moment.

    `answered`: the service has answered for this spec; only then `ready`, `enough` and `stalled`
    are of its conditions. Another `fingerprint` is where anything was created, deleted, started or
    reported.
    """

    def __init__(self, view: Inspection) -> None:
        """Reads an inspection."""
        tapp, plan = view.observed.tapp, view.plan
        self._standings = [*view.standings.values()]
        self.generation = int(tapp["metadata"].get("generation") or 0)
        # A spec without a number was acted on by nobody, as far as anybody can tell.
        self.answered = 0 < self.generation <= generation_seen(tapp)
        told = {
            type: str(each.get("message"))
            for type, each in conditions(tapp).items()
            if self.answered and each.get("status") == "True"
        }
        self.ready, self.enough = "Ready" in told, "Available" in told
        self.stalled = told.get(Type.STALLED, "")
        self.paused = plan.budgets.strategy.paused
        self.fingerprint = _fingerprint(plan, tapp)

    def of(self, disposition: Disposition) -> dict[str, Ids]:
        """Few words -> the instances that they are about, of all that stand so."""
        return grouped((x.brief, x.id) for x in self._standings if x.disposition is disposition)

    @property
    def moving(self) -> dict[str, Ids]:
        """Whatever happens -> the instances that it happens to."""
        return self.of(Disposition.MOVING)

    def is_done(self, ids: Collection[int] | None) -> bool:
        """Tell whether these instances, or all, are as asked; of all, that nothing is Stalled."""
        return self.answered and not self.left(ids) and not (ids is None and self.stalled)

    def left(self, ids: Collection[int] | None) -> Ids:
        """The instances, of these or of all, that are not as the spec asks."""
        return [each.id for each in self._left(ids)]

    def _left(self, ids: Collection[int] | None) -> list[Standing]:
        return [
            each
            for each in self._standings
            if each.disposition is not Disposition.DONE and (ids is None or each.id in ids)
        ]

    def stuck(self, ids: Collection[int] | None) -> str:
        """A sentence why nothing will change for what is left of these, "" if something will.

        As long as any instance moves, a budget may be free again; unless the TApp itself is waited
        for, and says that it comes no further. A pod on hold will be let go, and then those go on
        that come after it.
        """
        left = [each for each in self._left(ids) if not each.on_hold]
        blocked = self.of(Disposition.BLOCKED)
        on_hold = any(each.on_hold for each in self._standings)
        if left and not self.moving and (blocked or not on_hold):
            return self._described(left)
        return self.stalled if ids is None else ""

    @property
    def is_waiting(self) -> bool:
        """Tell whether any instance waits for others, or for a person."""
        return bool(self.of(Disposition.HELD))

    @property
    def is_blocked(self) -> bool:
        """Tell whether any instance does not get on by itself."""
        return bool(self.of(Disposition.BLOCKED))

    def _described(self, left: Iterable[Standing]) -> str:
        """Sentences about what holds these; who waits for a budget waits for all that spent it."""
        held = [each for each in left if each.disposition is Disposition.HELD]
        whose = self._standings if held else left
        blocked = [each for each in whose if each.disposition is Disposition.BLOCKED]
        named, waiting = _named(blocked), _named(held)
        more = [f"and {len(named) - _SHOWN} more"] if len(named) > _SHOWN else []
        return "; ".join([*named[:_SHOWN], *more, *waiting])

    def line(self, ids: Collection[int] | None) -> str:
        """One line: `3 of 6 done; starting: 2; waiting: 4,5 (maxUnavailable ...)`."""
        total = len(self._standings) if ids is None else len(ids)
        parts = [f"{total - len(self.left(ids))} of {total} done"]
        parts += [] if self.answered else ["its newest spec has not been looked at yet"]
        parts += [f"{what}: {id_list(found)}" for what, found in self.moving.items()]
        held = [(why.removeprefix(_PREFIX), x) for why, x in self.of(Disposition.HELD).items()]
        parts += [f"waiting: {id_list(found)} ({why})" for why, found in held]
        blocked = list(self.of(Disposition.BLOCKED).items())[:_FEW]
        parts += [f"{id_list(found)}: {short(why, _LONGEST)}" for why, found in blocked]
        return "; ".join(parts)


def _named(left: Iterable[Standing]) -> list[str]:
    found = grouped((each.text, each.id) for each in left)
    return [f"{instances(ids)}: {text}" for text, ids in found.items()]


def _fingerprint(plan: Plan, tapp: Document) -> int:
    """A number for all that shows whether anybody does anything."""
    pods = frozenset(
        (pod.uid, pod.generation, pod.terminating, pod.phase, pod.ready)
        for instance in plan.instances
        if (pod := instance.pod) is not None
    )
    return hash((tapp["metadata"].get("resourceVersion"), pods, frozenset(plan.world.claims)))
