"""Tests the table of advice: it covers every reason, and its texts are complete in each medium."""

import pytest

from tapp.words.advice import ADVICE, ROLLOUT, advice_for, advice_on
from tapp.words.conditions import Type
from tapp.words.reasons import OF_DECISIONS, Reason, Standing
from tapp.words.remedies import COMMANDS, Advice, Remedy


def test_every_reason_of_a_condition_has_advice() -> None:
    """Each reason of a condition has advice; a reason that only decisions have may be without
    advice.

    The condition of a decision may have the advice instead.
    """
    known = {each.reason for each in ADVICE}
    assert {*Reason} - known <= {*OF_DECISIONS}
    assert {*ROLLOUT} <= known


@pytest.mark.parametrize("reason", OF_DECISIONS)
def test_advice_on_a_blocked_instance_says_more_than_to_wait(reason: Reason) -> None:
    if reason.standing is Standing.BLOCKED:
        assert advice_on(reason).is_needed


@pytest.mark.parametrize("advice", ADVICE, ids=lambda it: f"{it.reason} {'-'.join(it.types)}")
def test_advice_is_sentences_whose_remedies_have_commands(advice: Advice) -> None:
    """Fills in a command for each remedy in the text, and checks that the result consists of
    sentences.

    `filled` raises ValueError for an unknown remedy.
    """
    text = advice.filled(lambda remedy: " ".join(COMMANDS[remedy]))
    assert text[0].isupper() or text[0] == "`"
    assert text.endswith(".")
    assert "{" not in text


def test_advice_as_plain_text_has_no_links() -> None:
    found = advice_for(Type.SERVICES_NOT_CREATED, "NoService").sentences(lambda it: f"<{it}>")
    assert found == [
        "The message or the Events show the cause: <describe>.",
        "If another Service has the name, delete that Service.",
    ]
    assert "(#" not in str(advice_for(Type.PODS_NOT_CREATED, "Missing").sentences(lambda _: "x"))


def test_advice_leaves_out_sentences_whose_remedy_does_not_apply() -> None:
    advice = advice_for(Type.READY, "PartitionReached")
    found = advice.sentences(lambda it: "X" * (it == "advance"))
    assert found == ["To continue the rollout: X."]


def test_advice_for_an_unknown_pair_raises_lookup_error() -> None:
    with pytest.raises(LookupError, match="Ready"):
        advice_for(Type.READY, "Missing")


def test_remedies_are_in_the_order_of_the_text() -> None:
    found = advice_for(Type.DEGRADED, "InstancesBroken").remedies
    assert found == [Remedy.ROLLBACK, Remedy.IMAGE, Remedy.WHY]
