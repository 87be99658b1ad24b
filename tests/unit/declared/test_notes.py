"""Notes that a sync leaves for later ones: read as they were written, and never an error."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapp.declared.templates import Written
from tapp.kube.objects import InPlaceRecord, RanImage, decode_record, encode_record
from tapp.words.notes import (
    GateNote,
    Note,
    PullerNote,
    ReachedNote,
    ResizeNote,
    StuckNote,
    UnableNote,
    UpdateNote,
    decode_kept,
    decode_names,
    decode_since,
    decoded,
    encode_groups,
    encode_names,
    encoded,
)
from tapp.words.times import seconds, written

KINDS: tuple[Any, ...] = (
    *(UpdateNote, ResizeNote, ReachedNote, PullerNote, StuckNote, UnableNote),
)
IDS = st.integers(0, 49_999)
COUNTS = st.integers(0, 10**6 - 1)
GENERATIONS = st.integers(0, 2**63 - 1)
NAMES = st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,20}[a-z0-9])?", fullmatch=True)
REVISIONS = st.from_regex(r"[A-Za-z0-9._-]{1,30}", fullmatch=True)
IMAGES = st.from_regex(r"[a-z0-9./:@-]{1,30}", fullmatch=True)
NOTES = {
    "update": st.builds(UpdateNote, IDS, GENERATIONS),
    "resize": st.builds(ResizeNote, IDS, REVISIONS | st.just(""), st.booleans()),
    "point of a roll": st.builds(ReachedNote, GENERATIONS, COUNTS, COUNTS),
    "puller": st.builds(PullerNote, NAMES, st.booleans()),
    "puller in trouble": st.builds(StuckNote, NAMES),
    "no puller": st.builds(UnableNote, IMAGES, NAMES | st.just("")),
}
TIMES = st.integers(0, 4_000_000_000).map(written)
NOW = 4_000_000_001.0


@pytest.mark.parametrize("notes", NOTES.values(), ids=NOTES)
@given(data=st.data())
def test_a_key_is_read_as_it_was_written(
    notes: st.SearchStrategy[Note], data: st.DataObject
) -> None:
    """Each note comes back from its key, alone and in a map of the status."""
    note = data.draw(notes)
    assert type(note).decode(note.encode()) == note
    assert decoded(type(note), encoded({note: "x"})) == {note: "x"}


@given(st.builds(GateNote, TIMES, st.none() | GENERATIONS))
def test_the_note_of_a_gate_is_read_as_it_was_written(note: GateNote) -> None:
    """Time and generation come back from the fields of the condition."""
    fields = note.encode()
    assert GateNote.decode(fields["lastProbeTime"], fields["observedGeneration"]) == note


@given(
    st.builds(
        InPlaceRecord,
        TIMES | st.just(""),
        st.dictionaries(
            NAMES,
            st.builds(
                RanImage,
                st.text(max_size=9),
                st.text(max_size=9),
                st.lists(IMAGES, max_size=2),
                st.booleans(),
            ),
            max_size=3,
        ),
        st.dictionaries(NAMES | st.just(""), REVISIONS, max_size=2),
    ),
    st.builds(Written, REVISIONS, REVISIONS),
)
def test_annotations_of_a_pod_are_read_as_they_were_written(
    record: InPlaceRecord, origin: Written
) -> None:
    """The record of an update, and of which template with placeholders a pod's own is."""
    assert decode_record(encode_record(record, "v1-1")) == record
    assert Written.decode(origin.encode()) == origin


@given(st.lists(NAMES, min_size=1))
def test_names_of_containers_are_read_as_they_were_written(names: list[str]) -> None:
    """The list comes back in its order."""
    assert decode_names(encode_names(names)) == names


@given(st.dictionaries(IDS, TIMES, max_size=30), st.dictionaries(IDS, REVISIONS, max_size=30))
def test_numbers_in_ranges_are_read_as_they_were_written(
    since: Mapping[int, str], kept: Mapping[int, str]
) -> None:
    """Each instance has its time, or its revision, again."""
    assert decode_since(encode_groups(_grouped(since)), NOW) == since
    assert decode_kept(encode_groups(_grouped(kept))) == kept


def _grouped(of: Mapping[int, str]) -> dict[str, list[int]]:
    return {what: [id for id, each in of.items() if each == what] for what in of.values()}


@given(st.text() | st.from_regex(r"(refused: |asked for: )?\d*/?\d*/?\w*( on \w*)?"))
def test_any_text_may_stand_in_a_status(text: str) -> None:
    """A key is of a kind or not; never an error, and the same when it is written again."""
    for kind in KINDS:
        note = kind.decode(text)
        assert note is None or kind.decode(note.encode()) == note
    assert not (PullerNote.decode(text) and UnableNote.decode(text))
    assert GateNote.decode(text, None) in (None, GateNote(text, None))
    assert all(seconds(at) <= NOW for at in decode_since({text: text}, NOW).values())
    assert all(id < 50_000 for id in decode_kept({text: text, "a": text}))


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (UpdateNote, "00/1"),
        (UpdateNote, "0/1/"),
        (UpdateNote, "-1/1"),
        (UpdateNote, "\u0661/1"),
        (UpdateNote, f"0/{'9' * 5000}"),
        (ResizeNote, "0"),
        (ResizeNote, "0/a/b"),
        (ResizeNote, "0/a/refused/refused"),
        (ReachedNote, "1/1"),
        (ReachedNote, "-1/0/0"),
        (ReachedNote, f"{'9' * 5000}/1/1"),
        (PullerNote, "refused: reg/pause:3"),
        (PullerNote, "stuck: web-pull-x1"),
        (StuckNote, "web-pull-x1"),
        (UnableNote, "asked for: web-pull-x1"),
    ],
)
def test_a_key_that_nobody_writes_is_no_note(kind: type[Note], text: str) -> None:
    """What is of another form is left out, and not taken for the note that it resembles."""
    assert kind.decode(text) is None
    assert decoded(kind, {text: "x"}) == {}
