"""Changes from the page: the verbs' own functions, planned first, then carried out."""

import inspect
import secrets
import threading
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from kubectl_tapp.base.arguments import read_partition
from kubectl_tapp.base.errors import CommandError, Exit, UsageError
from kubectl_tapp.cluster.session import Session
from kubectl_tapp.commands import hold, restart, verbs
from kubectl_tapp.commands.proposal import Proposal
from kubectl_tapp.commands.verb_options import Verb

_KEPT = 32  # Plans that are remembered; older ones have to be made again
_SECONDS = 8.0  # Seconds that an answer waits for a change; then the timeline tells


def partition(verb: Verb, to: str) -> None:
    """Keeps so many instances of the rolling template as they are."""
    verb.do(verb.edits.partitioned(verb.tapp, read_partition(to)))


OFFERED: Mapping[str, Callable[..., None]] = {
    "image": verbs.image, "replicas": verbs.scale, "kill": verbs.kill, "start": verbs.start,
    "template": verbs.use, "partition": partition, "advance": verbs.advance, "pause": verbs.pause,
    "resume": verbs.resume, "restart": restart.restart, "hold": hold.hold,
    "release": hold.release, "promote": verbs.promote, "abort": verbs.abort,
    "rollback": verbs.rollback,
}  # fmt: skip
"""A change that the page may ask for -> the function of the verb."""


class Changes:
    """Plans that were shown, each good for one write."""

    def __init__(self, session: Session, tell: Callable[[str, str, str], None]) -> None:
        """`tell` writes into the timeline of a TApp: namespace, name, text."""
        self._session, self._tell = session, tell
        self._planned: dict[str, tuple[str, str, str, Proposal]] = {}

    def plan(self, namespace: str, name: str, change: str, values: object) -> dict[str, str]:
        """The plan of a change, and the key to do it. Raises CommandError: it cannot be done."""
        session = self._session.narrowed(namespace=namespace)
        found = Proposal(session, name, OFFERED.get(change, _unknown), _read(change, values))
        key = secrets.token_urlsafe(16) if found.can_be_done else ""
        if key:
            self._planned[key] = namespace, name, change, found
            for old in [*self._planned][:-_KEPT]:
                self._planned.pop(old, None)
        return {"text": found.text, "key": key}

    def do(self, key: str) -> dict[str, Any]:
        """Carries out what was planned, or raises a CommandError: plan again (`Exit.CHANGED`)."""
        planned = self._planned.pop(key, None)  # at once: of two clicks one does it
        if planned is None:
            raise CommandError("this plan was done, or is forgotten: plan again", Exit.CHANGED)
        namespace, name, change, found = planned
        errors: list[CommandError] = []

        def run() -> None:
            try:
                found.do()
            except CommandError as error:
                errors.append(error)
            self._tell(namespace, name, f"{change}: {errors[0] if errors else 'asked for here'}")

        work = threading.Thread(target=run, daemon=True)
        work.start()
        work.join(_SECONDS)
        if errors:
            raise errors[0]
        return {"text": found.heard.out.getvalue(), "going": work.is_alive()}


def _unknown(_verb: Verb) -> None:
    raise UsageError("there is no such change")


def _read(change: str, values: object) -> dict[str, Any]:
    signature = inspect.signature(OFFERED.get(change, _unknown), eval_str=True)
    known = dict([*signature.parameters.items()][1:])
    if not isinstance(values, dict) or not values.keys() <= known.keys():
        raise UsageError(f"{change!r} takes {', '.join(known) or 'nothing'}, and no more")
    try:
        given = {key: msgspec.convert(each, known[key].annotation) for key, each in values.items()}
        signature.bind(None, **given)
    except (msgspec.ValidationError, TypeError) as error:
        raise UsageError(f"{change}: {error}") from None
    return given
