"""Tests that tests use all public inputs: commands, options, values, settings and fields.

The list of inputs is read from the programs, so nobody has to update this file. If an option fails
here, no test uses it together with its command: add one, for example in tests/plugin/test_verbs.py.
"""

import argparse
import importlib
import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from hooks.service.settings import Settings
from kubectl_tapp.base.global_options import GLOBAL_OPTIONS
from kubectl_tapp.main import command
from tests.commands import PAGES
from tests.scenarios.life import manifest
from tests.tested_inputs import typed

ROOT = Path(__file__).parents[2]
Words = tuple[str | tuple[str, ...], ...]


def options_of_the_plugin() -> Iterator[Words]:
    """Yields each option of each command as words: the command, the spellings, and each value of a
    choice.
    """
    for name, each in commands(command()):
        for parameter in each.params:
            if parameter.param_type_name != "option" or parameter.name in (*GLOBAL_OPTIONS, "help"):
                continue
            for spellings in filter(None, (parameter.opts, parameter.secondary_opts)):
                yield (*name, tuple(spellings))
            kind = parameter.type_descriptor.annotation
            if isinstance(kind, type) and issubclass(kind, Enum):
                for value in kind:
                    yield (*name, tuple(parameter.opts), str(value.value))


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yields the commands of a group: the words of each command, and the command itself."""
    for name, each in group.commands.items():
        if hasattr(each, "commands"):
            yield from commands(each, (*path, name))
        else:
            yield (*path, name), each


PROGRAMS = ("migration.__main__", "release.__main__", "release.man", "release.plugin")


class _FoundError(Exception):
    """Carries the argument parser of a program out of the place where it would parse its command
    line.
    """


def options_of_a_program(name: str, patched: pytest.MonkeyPatch) -> Iterator[Words]:
    """Yields the spellings of each option of a program that starts with `python -m`."""

    def found(parser: argparse.ArgumentParser, *_: Any, **__: Any) -> None:
        raise _FoundError(parser)

    patched.setattr(argparse.ArgumentParser, "parse_args", found)
    with pytest.raises(_FoundError) as raised:
        importlib.import_module(name).main([])
    for action in raised.value.args[0]._actions:
        if action.option_strings and "--help" not in action.option_strings:
            yield (tuple(action.option_strings),)


def test_every_option_of_the_plugin_is_used_in_tests() -> None:
    """Each option of each command, and each value of a choice, occurs in a test together with its
    command.
    """
    assert [words for words in options_of_the_plugin() if not typed(*words)] == []


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_option_of_a_program_is_used(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each option of a program occurs in a test, in a target of make, or in a workflow."""
    files = [ROOT / "Makefile", *ROOT.glob("tests/*/targets.mk"), *ROOT.glob(".github/workflows/*")]
    made = " ".join(file.read_text(encoding="utf-8") for file in files)
    offered = list(options_of_a_program(name, monkeypatch))
    assert [words for words in offered if not typed(*words) and not _is_in(made, words)] == []


def _is_in(text: str, words: Words) -> bool:
    found = re.findall(r"(?<![\w-])-[\w-]+", text)
    return any(spelling in found for word in words for spelling in word)


def test_every_condition_of_fail_if_is_used_in_tests() -> None:
    """Each condition in the table of docs/kubectl-tapp.md occurs in a test with `plan
    --fail-if`.
    """
    page = (ROOT / "docs" / "kubectl-tapp.md").read_text(encoding="utf-8")
    table = page.partition("| condition | holds if |")[2].partition("\n\n")[0]
    words = re.findall(r"`([a-z-]+)", " ".join(row.split("|")[1] for row in table.splitlines()[2:]))
    assert len(words) > 5
    assert [word for word in words if not typed("plan", "--fail-if", word)] == []


SHOWN = re.compile(r"kubectl[ -]tapp ((?:[^`\n|;#\\]|\\\n)+)")
"""A command in the documentation, in a line of a block or in a sentence."""


def shown() -> Iterator[tuple[str, tuple[str, ...], str]]:
    """Yields page, command and option for the options of `kubectl tapp` in the documentation."""
    known = dict(commands(command()))
    for page in PAGES:
        for line in SHOWN.findall((ROOT / page).read_text(encoding="utf-8")):
            words = line.split()
            name = next((tuple(words[:n]) for n in (2, 1) if tuple(words[:n]) in known), ())
            for word in words:
                option = re.fullmatch(r"(--[a-z][a-z-]*|-[A-Za-z])(=.*)?", word.strip("().,:"))
                if option:
                    yield page, name, option[1]


def test_documented_options_exist() -> None:
    known = {name: _options_of(each) for name, each in commands(command())}
    known[()] = _options_of(command())
    found = list(shown())
    assert len(found) > 25
    assert [each for each in found if each[2] not in known[each[1]]] == []


def _options_of(each: Any) -> set[str]:
    return {"--help", *(word for p in each.params for word in (*p.opts, *p.secondary_opts))}


def test_every_setting_of_the_service_is_used_in_tests() -> None:
    """Each setting occurs in a test, as its variable or as its name."""
    names = [(name, f"TAPP_{name.upper()}") for name in Settings.model_fields]
    assert [words for words in names if not typed(words)] == []


def fields(schema: dict[str, Any]) -> Iterator[str]:
    """Yields the names of all fields in a schema of TApp, without those of pod templates."""
    for name, each in (schema.get("properties") or {}).items():
        yield name
        if name not in OF_KUBERNETES:
            for part in (each, each.get("items"), each.get("additionalProperties")):
                if isinstance(part, dict):
                    yield from fields(part)


OF_KUBERNETES = ("metadata", "serviceTemplate", "template", "templatePool", "volumeClaimTemplates")


def test_every_field_of_a_tapp_is_used_in_tests() -> None:
    """Each field of spec and status occurs in a test: in a manifest, an edit, or an assertion."""
    crd = manifest("crds/tapp.yaml")
    found = set(fields(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]))
    assert len(found) > 50
    assert sorted(name for name in found if not typed(name)) == []
