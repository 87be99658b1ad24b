"""Tests the help of `kubectl tapp`: its examples, and the texts of its arguments and options."""

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest

from kubectl_tapp.cluster.session import Session
from kubectl_tapp.commands.help_texts import EXAMPLES, WAIT_UNTIL
from kubectl_tapp.main import command


def commands(group: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    for name, each in group.commands.items():
        if hasattr(each, "commands"):
            yield from commands(each, f"{path}{name} ")
        else:
            yield f"{path}{name}", each


COMMANDS = dict(commands(command()))
COMMAND_LINES = [each.command for examples in EXAMPLES.values() for each in examples]


@pytest.mark.parametrize("name", COMMANDS)
def test_help_ends_with_two_or_three_examples_of_the_command(name: str) -> None:
    each = COMMANDS[name]
    context = each.context_class(each, info_name=name)
    _, _, examples = each.get_help(context).rpartition("  Examples:\n")
    lines = re.findall(r"^    # [A-Z].*[^.]\n    (kubectl tapp .*)$", examples, re.MULTILINE)
    assert 2 <= len(lines) <= 3
    assert all(f"{line} ".startswith(f"kubectl tapp {name} ") for line in lines)


@pytest.mark.parametrize("line", COMMAND_LINES)
def test_example_is_accepted_by_the_parser(line: str) -> None:
    group: Any = command()
    words, parent = shlex.split(line), group.context_class(group, obj=Session())
    while hasattr(group, "commands"):
        name, group, words = group.resolve_command(parent, words)
        if hasattr(group, "commands"):
            parent = group.context_class(group, info_name=name, parent=parent)
    assert group.make_context(name, words, parent=parent).params


@pytest.mark.parametrize("name", COMMANDS)
def test_help_describes_each_argument_and_option_in_a_sentence(name: str) -> None:
    each = COMMANDS[name]
    texts = {
        parameter.name: parameter.help
        for parameter in each.params
        if parameter.name not in ("help", "install_completion", "show_completion")
    }
    assert {key: text for key, text in texts.items() if not re.fullmatch(r"[A-Z].+\.", text)} == {}


@pytest.mark.parametrize("name", [name for name in COMMANDS if " " not in name])
def test_first_sentence_of_help_fits_into_the_list_of_commands(name: str) -> None:
    """The list that `kubectl tapp --help` prints has the whole first sentence of each command.

    A longer sentence would be cut off.
    """
    group = command()
    listed = group.get_help(group.context_class(group))
    assert f"{COMMANDS[name].help.partition('.')[0]}.\n" in listed


def test_wait_says_for_each_verb_when_it_returns() -> None:
    texts = {
        name: parameter.help
        for name, each in COMMANDS.items()
        for parameter in each.params
        if parameter.name == "wait"
    }
    assert len(texts) == len(WAIT_UNTIL)
    unclear = {
        name: text
        for name, text in texts.items()
        if not text.startswith("Wait until ") or "code 4" not in text
    }
    assert unclear == {}
