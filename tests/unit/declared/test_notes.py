"""Tests the notes that a sync keeps in the status for later syncs: encoding and decoding."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapp.declared.templates import TemplateOrigin
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
    "progress of a rollout": st.builds(ReachedNote, GENERATIONS, COUNTS, COUNTS),
    "puller": st.builds(PullerNote, NAMES, st.booleans()),
    "failing puller": st.builds(StuckNote, NAMES),
    "image without a puller": st.builds(UnableNote, IMAGES, NAMES | st.just("")),
}
TIMES = st.integers(0, 4_000_000_000).map(written)
NOW = 4_000_000_001.0


@pytest.mark.parametrize("notes", NOTES.values(), ids=NOTES)
@given(data=st.data())
def test_note_is_decoded_as_it_was_encoded(
    notes: st.SearchStrategy[Note], data: st.DataObject
) -> None:
    note = data.draw(notes)
    assert type(note).decode(note.encode()) == note
    assert decoded(type(note), encoded({note: "x"})) == {note: "x"}


@given(st.builds(GateNote, TIMES, st.none() | GENERATIONS))
def test_note_of_a_gate_is_decoded_as_it_was_encoded(note: GateNote) -> None:
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
    st.builds(TemplateOrigin, REVISIONS, REVISIONS),
)
def test_annotations_of_a_pod_are_decoded_as_they_were_encoded(
    record: InPlaceRecord, origin: TemplateOrigin
) -> None:
    assert decode_record(encode_record(record, "v1-1")) == record
    assert TemplateOrigin.decode(origin.encode()) == origin


@given(st.lists(NAMES, min_size=1))
def test_container_names_are_decoded_in_their_order(names: list[str]) -> None:
    assert decode_names(encode_names(names)) == names


@given(st.dictionaries(IDS, TIMES, max_size=30), st.dictionaries(IDS, REVISIONS, max_size=30))
def test_ranges_of_instances_are_decoded_as_they_were_encoded(
    since: Mapping[int, str], kept: Mapping[int, str]
) -> None:
    assert decode_since(encode_groups(_grouped(since)), NOW) == since
    assert decode_kept(encode_groups(_grouped(kept))) == kept


def _grouped(texts: Mapping[int, str]) -> dict[str, list[int]]:
    return {text: [id for id, each in texts.items() if each == text] for text in texts.values()}


@given(st.text() | st.from_regex(r"(refused: |asked for: )?\d*/?\d*/?\w*( on \w*)?"))
def test_random_texts_are_decoded_without_an_error(text: str) -> None:
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
    ids=[
        "leading zeros",
        "third part",
        "negative number",
        "other digits",
        "generation too long",
        "no revision",
        "third part of a resize",
        "fourth part of a resize",
        "no third part",
        "negative generation",
        "rollout generation too long",
        "refusal as a puller",
        "failing puller as a puller",
        "puller as a failing one",
        "puller as an image",
    ],
)
def test_text_of_another_form_is_not_decoded_as_a_note(kind: type[Note], text: str) -> None:
    """Decodes texts that resemble a note: the result is None, and they are left out of a map."""
    assert kind.decode(text) is None
    assert decoded(kind, {text: "x"}) == {}
