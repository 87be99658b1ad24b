"""Carries out a verb in two steps without a terminal: first its plan, later its write.

The web page uses this module. `Proposal` makes the plan, and `Proposal.do` writes the change unless
the TApp has changed since the plan.
"""

import io
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from rich.console import Console

from kubectl_tapp.base.arguments import read_ids
from kubectl_tapp.base.errors import printable
from kubectl_tapp.base.observed import Document, Observed
from kubectl_tapp.cluster.session import Session
from kubectl_tapp.commands.act import changed_error, is_no_change, outdated_plan_error, print_notes
from kubectl_tapp.commands.options import NOTHING_WRITTEN, Choices, DryRun
from kubectl_tapp.commands.verb_options import Verb
from kubectl_tapp.edit import applied, edits
from kubectl_tapp.edit.trial import try_children
from kubectl_tapp.forecast.forecast import Assumptions, Forecast
from kubectl_tapp.forecast.foresee import forecast
from tapp.words.vocabulary import HOLD, HOLD_FOR, MAX_REPLICAS

_WIDTH = 110  # Width of the plan on the page, in characters


@dataclass
class RecordedSession(Session):
    """A session that records its output in `out`, for the page, and cannot ask the user."""

    out: io.StringIO = field(default_factory=io.StringIO)

    @cached_property
    def console(self) -> Console:
        """A console whose output is recorded in `out`."""
        return Console(file=self.out, width=_WIDTH, highlight=False, emoji=False, color_system=None)

    def say(self, text: str = "") -> None:
        self.out.write(printable(text) + "\n")

    def note(self, text: str) -> None:  # type: ignore[override]
        """Records a note together with the other output, because the page shows only one text."""
        self.say(text)


class _PlannedVerb(Verb):
    """A verb that forecasts its edit instead of writing it. Its notes name fields of the page
    instead of options.

    `forecast` has the result; None if the edit changes nothing or the verb edits other objects than
    the TApp.
    """

    forecast: Forecast | None = None

    def way_to_change_template(self, name: str) -> str:
        return f'choose {name} in the field "Template" to change it'

    def way_to_limit_canaries(self) -> str:
        return '"Budget" limits how many are updated at a time'

    def do(self, edited: Document) -> None:
        session, seen = self.session, self.seen
        operations = edits.json_patch(seen.tapp, edited)
        if is_no_change(session, self.name, operations, self.notes):
            return
        edited, refused = applied.dry_run_result(session, seen, edited, None)
        registration = session.cluster.registration(seen)
        if not refused:
            seconds = registration.options.toleration_seconds
            refused = try_children(session.cluster, seen, edited, seconds).refused
        assumptions = Assumptions(refused=refused)
        self.forecast = forecast(seen, edited, registration, session.now(), assumptions)
        print_notes(session, seen, operations, self.notes)


class Proposal:
    """One change of one TApp that the user of the page may confirm, with its plan.

    Attributes:
        forecast: the effects of an edit of the TApp; None for another change, such as a hold.
        text: the notes about an edit of the TApp, or the plan of another change as text.
        can_be_done: False if the change is refused or would write nothing.
        heard: the session that records the output of `do`.
    """

    def __init__(
        self,
        session: Session,
        name: str,
        function: Callable[..., None],
        values: dict[str, Any],
        *,
        must_match: bool = False,
    ) -> None:
        """Plans the change that a verb makes. Nothing is written.

        Raises CommandError if the verb refuses the arguments.

        Args:
            session: the run of the command, whose user and cluster the verb uses.
            name: the name of the TApp.
            function: the function of the verb, such as `kill` or `hold`.
            values: the arguments of the function.
            must_match: True if `do` plans the change again and writes it only if the plan is the
                same. Needed if the verb changes objects that do not belong to the TApp.
        """
        self._session, self._function, self._values = session, function, values
        self._must_match = must_match
        heard = self._new()
        self._seen = heard.observed(name)
        verb = _PlannedVerb(heard, self._seen, Choices(dry_run=DryRun.SERVER))
        function(verb, **values)
        self.text = heard.out.getvalue().removesuffix(f"{NOTHING_WRITTEN}\n")
        self.forecast = verb.forecast
        # A verb that changes other objects than the TApp ends its plan with this sentence, unless
        # there is no object to change.
        has_plan = self.text != heard.out.getvalue()
        self.can_be_done = has_plan if verb.forecast is None else not verb.forecast.refused
        self.heard = self._new()

    def do(self) -> None:
        """Writes the change to the cluster.

        Raises CommandError if the change is refused. The error has the exit code `Exit.CHANGED` if
        the TApp or the pods have changed since the plan was made.
        """
        now = self.heard.observed(self._seen.name)
        if error := changed_error(self._seen.tapp, now.tapp):
            raise error
        if self._named_pods(self._seen) != self._named_pods(now):
            raise outdated_plan_error("these pods")
        if self._must_match:
            name, function, values = self._seen.name, self._function, self._values
            if Proposal(self._session, name, function, values).text != self.text:
                raise outdated_plan_error("these pods and claims")
        self._function(Verb(self.heard, self._seen, Choices(yes=True)), **self._values)

    def _new(self) -> RecordedSession:
        session = self._session
        return RecordedSession(
            session.runner, session.now, session.global_options, session.sleep, session.first_call
        )

    def _named_pods(self, observed: Observed) -> list[tuple[str, ...]]:
        """Returns the names, uids and holds of the pods of the instances that the change names,
        sorted by name.

        `do` compares the pods at the time of the plan with the pods now, and refuses the change if
        they differ. The TApp's generation does not show that a pod was replaced, or that its hold
        was changed.
        """
        texts = self._values.get("ids")
        ids = read_ids(texts, MAX_REPLICAS) if texts else []
        names = {f"{observed.name}-{id}" for id in ids}
        found = [each["metadata"] for each in observed.pods if each["metadata"]["name"] in names]
        notes = [each.get("annotations") or {} for each in found]
        return sorted(
            (each["name"], each["uid"], own.get(HOLD, ""), own.get(HOLD_FOR, ""))
            for each, own in zip(found, notes, strict=True)
        )
