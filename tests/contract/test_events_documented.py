"""Tests that the documentation of Events is true."""

from hooks.service.events import Outcome
from tapp.answer.events import EventReason
from tests.contract.pages import WATCH, WORD, rows, section


def test_documented_events_and_outcomes_are_those_of_the_code() -> None:
    part = section(WATCH, "Events")
    reasons, outcomes = part.split("| `outcome` |")
    named = {cells[0].strip("`") for cells in rows(reasons)}
    assert {word for word in named if WORD.fullmatch(word)} == set(EventReason)
    assert {cells[0].strip("`") for cells in rows(f"| head |{outcomes}")} == set(Outcome)
