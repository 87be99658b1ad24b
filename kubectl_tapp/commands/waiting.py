"""Waits until a TApp is as it should be, or will not get on; shows how far it is meanwhile."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from hooks.wire.memo import Memo
from kubectl_tapp.base.errors import CommandError, Exit, plain
from kubectl_tapp.base.hints import hint
from kubectl_tapp.base.observed import Document, Observed
from kubectl_tapp.base.words import age, instances
from kubectl_tapp.cluster.kubectl import KubectlError
from kubectl_tapp.cluster.session import Session
from kubectl_tapp.decide.decisions import MEMORY
from kubectl_tapp.decide.inspection import inspect
from kubectl_tapp.decide.progress import Progress
from tapp.pod.trouble import TROUBLE_AFTER

_PASSING = ("Unreachable", "Timeout", "ServiceUnavailable", "TooManyRequests", "InternalError")
"""The words of an API server that is being restarted or has too much to do."""

Show = Callable[[str, float], None]  # A text, and the seconds that it has taken


@dataclass
class WaitGoal:
    """The goal of a wait."""

    name: str  # of the TApp
    ids: Collection[int] | None  # the instances that matter; None for all
    timeout: float  # seconds after which to give up
    message: str = "done"  # what to say when it is reached
    state: str = "done"  # what the TApp has not become if the time is over, behind "is not"
    goal: Callable[[Progress], bool] | None = None  # when it is, if not when these are as asked
    stuck_is_reached: bool = False  # whether being stuck is what is waited for

    def is_reached(self, now: Progress) -> bool:
        """Tell whether the TApp has come to what is waited for."""
        return now.is_done(self.ids) if self.goal is None else self.goal(now)


def wait(session: Session, watch: WaitGoal) -> None:
    """Waits until the goal is reached; `Exit.STUCK` with a reason: not at all, or in time."""
    begun, name, cluster = session.now(), watch.name, session.cluster
    registration, memo = cluster.registration(), Memo(MEMORY)
    stuck_since: float | None = None
    seen: Observed | None = None
    fingerprint, stuck = 0, ""

    def attempt() -> str:
        nonlocal seen, stuck_since, fingerprint, stuck
        try:
            seen = session.observed(name, seen)
            current = Progress(inspect(cluster, seen, session.now(), registration, memo))
        except KubectlError as error:
            if error.reason not in _PASSING:
                raise
            return f"no answer from the cluster, trying again: {error}"
        if watch.is_reached(current):
            return ""
        if watch.stuck_is_reached and current.is_done(watch.ids):
            raise CommandError(_never_stuck(watch), Exit.STUCK)
        why, now = _stuck(current, watch, seen.tapp), session.now()
        # The answer is noted after all children are written: until then, whoever writes one acts
        # on the spec.
        moves = not current.answered and current.fingerprint != fingerprint
        fingerprint = current.fingerprint
        stuck_since = (stuck_since or now) if why and not moves else None
        paused = current.answered and current.paused
        if stuck_since is not None and (
            now - stuck_since >= TROUBLE_AFTER or (paused and current.is_waiting)
        ):
            if watch.stuck_is_reached:
                stuck = why
                return ""
            how = "paused" if paused and not current.is_blocked else "stuck"
            raise CommandError(f"{name} is {how}: {why}", Exit.STUCK)
        return current.line(watch.ids)

    late = f"{name} is not {watch.state} after {{}}: {{}}"
    until_done(session, watch.timeout, attempt, f"{name}: {{}}", late)
    took = age(session.now() - begun)
    session.say(f"{name}: {stuck}" if stuck else f"{name}: {watch.message}, after {took}")


def until_done(
    session: Session, timeout: float, attempt: Callable[[], str], waits: str, late: str
) -> None:
    """Tries until `attempt` has no reason any more why it is not done; its reasons are shown.

    `waits` has a place for the reason. After so many seconds (`timeout`) a CommandError says
    `late`, which has places for that time and the reason.
    """
    begun = session.now()
    with shown(session) as show:
        for _ in session.looks():
            if not (why := attempt()):
                return
            waited = session.now() - begun
            show(waits.format(why), waited)
            if waited >= timeout:
                raise CommandError(late.format(age(timeout), why), Exit.STUCK)


def _stuck(current: Progress, watch: WaitGoal, tapp: Document) -> str:
    if not current.answered:
        place = tapp["metadata"]["namespace"]
        events = hint("describe", "tapp", watch.name, namespace=place, plugin=False)
        return (
            f"nobody has acted on its generation {current.generation}: are Metacontroller and the "
            f"service running? {events} shows what they complain of"
        )
    return current.stuck(watch.ids)


def _never_stuck(watch: WaitGoal) -> str:
    """The error for what is complete: it gets stuck only after somebody changes something."""
    who = "all its instances are"
    if watch.ids is not None:
        who = f"{instances(sorted(watch.ids))} {'is' if len(watch.ids) == 1 else 'are'}"
    return f"{watch.name} is not stuck: {who} as the spec asks, and nothing is under way"


@contextmanager
def shown(session: Session) -> Iterator[Show]:
    """One line that changes on a terminal, else a line per change."""
    from rich.text import Text  # noqa: PLC0415 - it costs start time

    console, last = session.console, ""

    def show_change(text: str, elapsed: float) -> None:
        nonlocal last
        if text != last:
            session.say(f"{age(elapsed):>10}  {text}")
            last = text

    if not console.is_terminal:
        yield show_change
        return
    with console.status("looking") as status:
        # No markup, and nothing that a terminal obeys: a kubelet's own words.
        yield lambda text, elapsed: status.update(Text(f"{plain(text)}  {age(elapsed)}"))
