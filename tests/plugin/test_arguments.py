"""Tests how arguments of the command line are parsed, and the errors for invalid ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_tapp.base import arguments
from kubectl_tapp.base.errors import CommandError, Exit
from kubectl_tapp.edit.edits import spec_of
from tapp.words.ranges import ranges
from tests.builders import tapp, template


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["3"], [3]),
        (["0-2,5"], [0, 1, 2, 5]),
        (["5", "0-1"], [0, 1, 5]),
        (["0, 1"], [0, 1]),
        (["3-3,3"], [3]),
        (["all"], [0, 1, 2, 3, 4, 5]),
    ],
    ids=[
        "one number",
        "range and number",
        "two texts",
        "space after the comma",
        "repeated number",
        "all",
    ],
)
def test_instances_are_parsed(texts: list[str], expected: list[int]) -> None:
    assert arguments.read_ids(texts, 6) == expected


@pytest.mark.parametrize("text", ["", "a", "-1", "3-1", "1-", "1..3", "0x1", "1,,2", "²", "every"])
def test_invalid_instances_are_errors(text: str) -> None:
    with pytest.raises(CommandError, match="is not a list of instances") as raised:
        arguments.read_ids([text], 6)
    assert raised.value.code is Exit.USAGE


@pytest.mark.parametrize(
    ("text", "replicas", "message"),
    [
        ("6", 6, "there is no instance 6: the instances are 0 to 5"),
        ("4-999999", 6, "there are no instances 6-999999: the instances are 0 to 5"),
        ("0", 0, r"there is no instance 0: spec.replicas is 0"),
    ],
)
def test_unknown_instance_is_an_error(text: str, replicas: int, message: str) -> None:
    with pytest.raises(CommandError, match=message):
        arguments.read_ids([text], replicas)


@given(st.sets(st.integers(0, 99), min_size=1))
def test_instances_are_parsed_in_the_format_of_the_status(ids: set[int]) -> None:
    assert arguments.read_ids([ranges(ids)], 100) == sorted(ids)


@pytest.mark.parametrize(
    ("text", "of", "expected"),
    [("1", 6, 1), ("10%", 6, 1), ("10%", 30, 3), ("34%", 3, 2), ("100%", 3, 3), ("3", 3, 3)],
)
def test_number_or_percentage_is_parsed(text: str, of: int, expected: int) -> None:
    assert arguments.read_share(text, of) == expected


@pytest.mark.parametrize("text", ["0", "0%", "7", "101%", "-1", "a", "", "1.5"])
def test_invalid_number_or_percentage_is_an_error(text: str) -> None:
    with pytest.raises(CommandError, match="not a share of 6 instances"):
        arguments.read_share(text, 6)


def test_images_are_parsed() -> None:
    found = arguments.read_images(["app=reg:5000/a@sha256:0", "*=b:1"])
    assert found == {"app": "reg:5000/a@sha256:0", "*": "b:1"}


@pytest.mark.parametrize(
    "texts",
    [["app"], ["=a"], ["app="], ["app= a"], ["app=a", "app=b"]],
    ids=[
        "no image",
        "no container",
        "empty image",
        "space before the image",
        "container given twice",
    ],
)
def test_invalid_image_is_an_error(texts: list[str]) -> None:
    with pytest.raises(CommandError, match=r"write CONTAINER=IMAGE|two images"):
        arguments.read_images(texts)


def test_instances_of_a_template_are_found() -> None:
    spec = spec_of(tapp(replicas=6, templatePool={"a=b": template()}))
    assert arguments.read_use("a=b=0,3-5", spec) == ("a=b", [0, 3, 4, 5])
    with pytest.raises(CommandError, match="TEMPLATE=IDS"):
        arguments.read_use("0,3", spec)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["web", "db"], "; did you mean 'web'?"),
        (["one", "two"], "; known names: 'one', 'two'"),
        ([], "; there are none"),
        ([f"x{n}" for n in range(10)], "and 2 more"),
    ],
    ids=["similar name", "no similar name", "no names", "too many names"],
)
def test_error_suggests_the_most_similar_name(names: list[str], expected: str) -> None:
    assert arguments.name_suggestion("wbe", names).endswith(expected)
