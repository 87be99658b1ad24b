"""Writes the manual page `kubectl-tapp.1` and docs/commands.md from the plugin's `--help`.

`python -m release.man` writes both pages; `--check` only checks whether they are up to date. The
manual page is in the repository because the wheel contains it.
"""

import argparse
import sys
from collections.abc import Iterator
from typing import Any

from hooks.version import VERSION
from kubectl_tapp.base.global_options import GLOBAL_OPTIONS
from kubectl_tapp.main import command

from .kustomize import ROOT

PAGE = ROOT / "docs" / "man" / "kubectl-tapp.1"
COMMANDS = ROOT / "docs" / "commands.md"
_NAME = "kubectl tapp"
_FILES = """.SH ENVIRONMENT
.TP
.B KUBECTL
Another kubectl than the one on PATH, as it would be typed: k3s kubectl.
.SH SEE ALSO
.BR kubectl (1)
"""


def page() -> str:
    """Returns the text of the manual page, in the format of roff's man macros."""
    whole = command()
    lines = [
        f'.TH KUBECTL\\-TAPP 1 "" "TApp {VERSION}" "User Commands"',
        ".SH NAME",
        f"kubectl\\-tapp \\- {_roff(_first_sentence(whole.help))}",
        ".SH SYNOPSIS",
        f".B {_roff(_NAME)}",
        ".I command",
        "[options]",
        ".SH DESCRIPTION",
        *_paragraphs(whole.help),
        ".SH OPTIONS",
        "Every command takes these behind its name.",
        *_options(whole, _NAME),
        ".SH COMMANDS",
    ]
    for name, each in commands(whole, _NAME):
        lines += [f'.SS "{_roff(name)}"', f".B {_roff(_usage(each, name))}", ".PP"]
        lines += [*_paragraphs(each.help), *_options(each, name), *_examples(each)]
    codes = whole.epilog.removeprefix("Exit codes: ").rstrip(".").split(", ")
    lines.append(".SH EXIT STATUS")
    for code in codes:
        number, _, meaning = code.partition(" ")
        lines += [".TP", f".B {number}", _roff(meaning)]
    return "\n".join(lines) + "\n" + _FILES


def commands_page() -> str:
    """Returns the Markdown of docs/commands.md, with all commands and options."""
    lines = [
        "# Commands and options of kubectl tapp",
        "",
        "<!-- python -m release.man writes this page from the texts of `kubectl tapp --help`. -->",
        "[CLI reference](kubectl-tapp.md) explains the commands by tasks.",
        "",
        "## Options of all commands",
        *_table(command(), _NAME),
    ]
    for name, each in commands(command(), _NAME):
        lines += ["", f"## {name.removeprefix(_NAME + ' ')}", each.help.strip(), ""]
        lines += ["```sh", f"{_usage(each, name)}", "```", *_table(each, name), "", "```sh"]
        lines += [*each.epilog.replace("\b\n", "").replace("  ", "").split("\n")[1:], "```"]
    return "\n".join(lines) + "\n"


def _table(each: Any, name: str) -> list[str]:
    rows = [f"| `{_cell(term)}` | {_cell(text)} |" for term, text in _records(each, name)]
    return ["", "| argument or option | meaning |", "|---|---|", *rows] if rows else []


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("*", "\\*")


def commands(group: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yields the full name and the command of each command in a group.

    Instead of an inner group, its commands are yielded. Hidden commands are left out. `path` is the
    full name of the group.
    """
    for name, each in group.commands.items():
        if each.hidden:
            continue
        if hasattr(each, "commands"):
            yield from commands(each, f"{path} {name}")
        else:
            yield f"{path} {name}", each


def _usage(each: Any, name: str) -> str:
    found: str = each.get_usage(_context(each, name))
    return " ".join(found.removeprefix("Usage: ").split())


def _options(each: Any, name: str) -> list[str]:
    """Returns the lines of roff for the arguments and options of a command.

    `.TP` starts the entry of each argument or option. `name` is the full name of the command.
    """
    records = _records(each, name)
    return [
        line
        for term, text in records
        for line in (".TP", f".B {_roff(term)}", _roff(text) or "\\&")
    ]


def _records(each: Any, name: str) -> Iterator[tuple[str, str]]:
    """Yields each argument and option of a command as the user types it, and its help text.

    Options that all commands share are yielded only for the main command. `name` is the full name
    of the command.
    """
    context = _context(each, name)
    for parameter in each.get_params(context):
        record = parameter.get_help_record(context)
        shared = each is not command() and parameter.name in (*GLOBAL_OPTIONS, "help")
        if record is not None and not shared and parameter.name not in _COMPLETION:
            yield record


def _examples(each: Any) -> list[str]:
    """Returns the lines of roff for the examples of a command, with the line breaks of its help."""
    text = each.epilog.replace("\b\n", "").replace("\\", "\\e").replace("-", "\\-")
    return [".PP", ".nf", *(line or ".sp" for line in text.split("\n")), ".fi"]


_COMPLETION = ("install_completion", "show_completion")


def _context(each: Any, name: str) -> Any:
    """Returns the click context of a call of a command, which click needs for help texts.

    The context has the settings of the main command, such as the option `-h`. `name` is the full
    name of the command.
    """
    return each.context_class(each, info_name=name, **command().context_settings)


def _first_sentence(text: str) -> str:
    """Returns the first sentence of a help text without its full stop, for the tool `whatis`."""
    return text.partition(". ")[0].rstrip(".")


def _paragraphs(text: str) -> list[str]:
    parts = [" ".join(part.split()) for part in text.replace("\b", "").split("\n\n")]
    return [line for part in parts if part for line in (_roff(part), ".PP")][:-1]


def _roff(text: str) -> str:
    """Returns the text on one line, with the characters escaped that are special in roff."""
    found = " ".join(text.split()).replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    return f"\\&{found}" if found.startswith((".", "'")) else found


def main(arguments: list[str] | None = None) -> int:
    """Writes or checks both pages, and returns the exit code.

    `arguments` are those of the command line; None reads them from the process. The exit code is 1
    if `--check` finds a page that is out of date.
    """
    parser = argparse.ArgumentParser(prog="python -m release.man")
    parser.add_argument("--check", action="store_true", help="write nothing")
    is_check, stale = parser.parse_args(arguments).check, False
    for path, wanted in ((PAGE, page()), (COMMANDS, commands_page())):
        if not is_check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(wanted, encoding="utf-8")
            print(f"wrote {path}")
        elif not path.exists() or path.read_text(encoding="utf-8") != wanted:
            stale = True
            print(f"{path.relative_to(ROOT)} is stale: run `make generate`", file=sys.stderr)
    return int(stale)


if __name__ == "__main__":
    raise SystemExit(main())
