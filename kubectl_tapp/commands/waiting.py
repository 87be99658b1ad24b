"""Waits until a TApp has reached a goal or is stuck, and shows the progress.

The entry point is `wait`. It reads the TApp and its objects again and again until the goal is
reached.
"""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from hooks.wire.memo import Memo
from kubectl_tapp.base.errors import CommandError, Exit, printable
from kubectl_tapp.base.hints import shell_command
from kubectl_tapp.base.observed import Document, Observed
from kubectl_tapp.base.words import instances_phrase, short_duration
from kubectl_tapp.cluster.kubectl import KubectlError
from kubectl_tapp.cluster.session import Session
from kubectl_tapp.decide.decisions import MEMORY
from kubectl_tapp.decide.inspection import inspect
from kubectl_tapp.decide.progress import Progress
from kubectl_tapp.show.next_steps import advice_now, lines_of
from tapp.pod.trouble import TROUBLE_AFTER

_TEMPORARY_REASONS = (
    "Unreachable",
    "Timeout",
    "ServiceUnavailable",
    "TooManyRequests",
    "InternalError",
)
"""Reasons of temporary errors: the API server is restarting or overloaded."""

Show = Callable[[str, float], None]  # Shows a text, and the number of seconds since the wait began


@dataclass
class WaitGoal:
    """The state of a TApp that a command waits for, with its timeout and its messages."""

    name: str  # the name of the TApp
    ids: Collection[int] | None  # the instances to wait for; None for all
    timeout: float  # the timeout in seconds
    message: str = "done"  # the message when the goal is reached
    state: str = "done"  # the word for the goal in the timeout message "web is not STATE"
    # returns True if the goal is reached; None if the goal is that the instances are as the spec
    # asks
    condition: Callable[[Progress], bool] | None = None
    stuck_is_reached: bool = False  # True if the goal is that the TApp is stuck

    def is_reached(self, now: Progress) -> bool:
        """Returns True if the TApp has reached the goal. `now` is its present state."""
        return now.is_done(self.ids) if self.condition is None else self.condition(now)


def wait(session: Session, goal: WaitGoal) -> None:
    """Waits until the TApp has reached the goal, and prints how long that took.

    Raises CommandError with `Exit.STUCK` and a reason if the TApp is stuck, or at the timeout. If
    the goal is that the TApp is stuck, being stuck is no error. Then the function raises
    CommandError when the TApp is as its spec asks, because the wait would never end.
    """
    begun, name, cluster = session.now(), goal.name, session.cluster
    registration, memo = cluster.registration(), Memo(MEMORY)
    stuck_since: float | None = None
    seen: Observed | None = None
    fingerprint, stuck = 0, ""

    def attempt() -> str:
        nonlocal seen, stuck_since, fingerprint, stuck
        try:
            seen = session.observed(name, seen)
            view = inspect(cluster, seen, session.now(), registration, memo)
            current = Progress(view)
        except KubectlError as error:
            if error.reason not in _TEMPORARY_REASONS:
                raise
            return f"no answer from the cluster, trying again: {error}"
        if goal.is_reached(current):
            return ""
        if goal.stuck_is_reached and current.is_done(goal.ids):
            raise CommandError(_never_stuck_message(goal), Exit.STUCK)
        why, now = _stuck_reason(current, goal, seen.tapp), session.now()
        # Metacontroller writes the status after all children. So while observedGeneration is old, a
        # change of any child shows that a sync of the new spec is being carried out.
        moves = not current.answered and current.fingerprint != fingerprint
        fingerprint = current.fingerprint
        stuck_since = (stuck_since or now) if why and not moves else None
        paused = current.answered and current.paused
        if stuck_since is not None and (
            now - stuck_since >= TROUBLE_AFTER or (paused and current.is_waiting)
        ):
            if goal.stuck_is_reached:
                stuck = why
                return ""
            how = "paused" if paused and not current.is_blocked else "stuck"
            steps = "\n".join(["", *lines_of(view, advice_now(view))])
            raise CommandError(f"{name} is {how}: {why}{steps}", Exit.STUCK)
        return current.line(goal.ids)

    late = f"{name} is not {goal.state} after {{}}: {{}}"
    poll_until_done(session, goal.timeout, attempt, f"{name}: {{}}", late)
    took = short_duration(session.now() - begun)
    session.say(f"{name}: {stuck}" if stuck else f"{name}: {goal.message}, after {took}")


def poll_until_done(
    session: Session, timeout: float, attempt: Callable[[], str], waits: str, late: str
) -> None:
    """Calls `attempt` again and again until it returns "".

    Args:
        session: the run of the command, which shows the reasons and sleeps between the calls.
        timeout: seconds after which a CommandError is raised.
        attempt: returns why the wait is not over, or "" if it is.
        waits: the format of the text that is shown while waiting; its argument is the result of
            `attempt`.
        late: the format of the message at the timeout; its arguments are the timeout and the last
            result of `attempt`.
    """
    begun = session.now()
    with progress_shower(session) as show:
        for _ in session.polls():
            if not (why := attempt()):
                return
            waited = session.now() - begun
            show(waits.format(why), waited)
            if waited >= timeout:
                raise CommandError(late.format(short_duration(timeout), why), Exit.STUCK)


def _stuck_reason(current: Progress, goal: WaitGoal, tapp: Document) -> str:
    if not current.answered:
        place = tapp["metadata"]["namespace"]
        events = shell_command("describe", "tapp", goal.name, namespace=place, plugin=False)
        return (
            f"no controller has acted on its generation {current.generation}. Check that "
            f"Metacontroller and the TApp service run; {events} shows their Events"
        )
    return current.stuck_reason(goal.ids)


def _never_stuck_message(goal: WaitGoal) -> str:
    """Returns the error message for a wait that would never end: the goal is that the TApp is
    stuck, but the TApp is as its spec asks.

    The wait would never end then.
    """
    who = "all its instances are"
    if goal.ids is not None:
        who = f"{instances_phrase(sorted(goal.ids))} {'is' if len(goal.ids) == 1 else 'are'}"
    return f"{goal.name} is not stuck: {who} as the spec asks, and no update is in progress"


@contextmanager
def progress_shower(session: Session) -> Iterator[Show]:
    """Yields a function that shows the progress of a wait: a text, and the seconds since the wait
    began.

    On a terminal the function changes one line. Otherwise it prints a line for each new text.
    """
    from rich.text import Text  # noqa: PLC0415 - it costs start time

    console, last = session.console, ""

    def show_change(text: str, elapsed: float) -> None:
        nonlocal last
        if text != last:
            session.say(f"{short_duration(elapsed):>10}  {text}")
            last = text

    if not console.is_terminal:
        yield show_change
        return
    with console.status("looking") as status:
        # The text may quote a kubelet. `Text` prevents that rich interprets markup in it, and
        # `plain` removes control characters.
        yield lambda text, elapsed: status.update(
            Text(f"{printable(text)}  {short_duration(elapsed)}")
        )
