"""The documentation of events says what is true."""

from hooks.service.events import Outcome
from tapp.answer.events import EventReason
from tests.contract.test_docs import WATCH, WORD, rows, section


def test_events_are_documented_as_they_are() -> None:
    part = section(WATCH, "Events")
    reasons, outcomes = part.split("| `outcome` |")
    named = {cells[0].strip("`") for cells in rows(reasons)}
    assert {word for word in named if WORD.fullmatch(word)} == set(EventReason)
    assert {cells[0].strip("`") for cells in rows(f"| head |{outcomes}")} == set(Outcome)
