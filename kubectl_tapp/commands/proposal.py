"""A verb in two steps, without a terminal: its plan, and later its own write, guarded by it."""

import io
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from rich.console import Console

from kubectl_tapp.base.arguments import read_ids
from kubectl_tapp.base.errors import plain
from kubectl_tapp.base.observed import Document, Observed
from kubectl_tapp.cluster.session import Session
from kubectl_tapp.commands.act import changed, is_no_change, out_of_date, tell
from kubectl_tapp.commands.options import NO_CHANGE, NOTHING_WRITTEN, Choices, DryRun
from kubectl_tapp.commands.verb_options import Verb
from kubectl_tapp.edit import applied, edits
from kubectl_tapp.edit.trial import tried_children
from kubectl_tapp.forecast.forecast import Assumptions
from kubectl_tapp.forecast.foresee import forecast
from kubectl_tapp.show.plan import print_plan
from tapp.words.vocabulary import HOLD, HOLD_FOR, MAX_REPLICAS

_WIDTH = 110


@dataclass
class RecordedSession(Session):
    """A session whose words are kept, and which has nobody to ask."""

    out: io.StringIO = field(default_factory=io.StringIO)

    @cached_property
    def console(self) -> Console:
        """A console that is heard, too."""
        return Console(file=self.out, width=_WIDTH, highlight=False, emoji=False, color_system=None)

    def say(self, text: str = "") -> None:
        """A line of the answer."""
        self.out.write(plain(text) + "\n")

    def note(self, text: str) -> None:  # type: ignore[override]
        """A line beside the answer."""
        self.say(text)


class _Planned(Verb):
    refused = False

    def do(self, edited: Document) -> None:
        session, seen = self.session, self.seen
        operations = edits.json_patch(seen.tapp, edited)
        if is_no_change(session, self.name, operations, self.notes):
            return
        edited, refused = applied.tried(session, seen, edited, None)
        registration = session.cluster.registration(seen)
        if not refused:
            seconds = registration.options.toleration_seconds
            refused = tried_children(session.cluster, seen, edited, seconds).refused
        assumptions = Assumptions(refused=refused)
        found = forecast(seen, edited, registration, session.now(), assumptions)
        print_plan(session.console, found)
        self.refused = bool(found.refused)
        tell(session, seen, operations, self.notes)


class Proposal:
    """One change of one TApp: its plan, whether it can be done, and what was heard of that."""

    def __init__(
        self, session: Session, name: str, function: Callable[..., None], values: dict[str, Any]
    ) -> None:
        """Plans what the verb's function does with these values, or raises a CommandError."""
        self._session, self._function, self._values = session, function, values
        heard = self._new()
        self._seen = heard.observed(name)
        verb = _Planned(heard, self._seen, Choices(dry_run=DryRun.SERVER))
        function(verb, **values)
        self.text = heard.out.getvalue().removesuffix(f"{NOTHING_WRITTEN}\n")
        self.can_be_done = not (verb.refused or self.text.endswith(f"{NO_CHANGE}\n"))
        self.heard = self._new()

    def do(self) -> None:
        """Carries it out; CommandError: refused, or (`Exit.CHANGED`) planned on something else."""
        now = self.heard.observed(self._seen.name)
        if error := changed(self._seen.tapp, now.tapp):
            raise error
        if self._named(self._seen) != self._named(now):
            raise out_of_date("these pods")
        self._function(Verb(self.heard, self._seen, Choices(yes=True)), **self._values)

    def _new(self) -> RecordedSession:
        session = self._session
        return RecordedSession(
            session.runner, session.now, session.targets, session.sleep, session.first_call
        )

    def _named(self, observed: Observed) -> list[tuple[str, ...]]:
        """The pods of the instances that are named, and their holds: no generation counts them."""
        texts = self._values.get("ids")
        ids = read_ids(texts, MAX_REPLICAS) if texts else []
        names = {f"{observed.name}-{id}" for id in ids}
        found = [each["metadata"] for each in observed.pods if each["metadata"]["name"] in names]
        notes = [each.get("annotations") or {} for each in found]
        return sorted(
            (each["name"], each["uid"], own.get(HOLD, ""), own.get(HOLD_FOR, ""))
            for each, own in zip(found, notes, strict=True)
        )
