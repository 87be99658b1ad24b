"""Replaces commands by the page's words, in texts that are written for the terminal.

`in_page_words` is the entry point. For example, `kubectl tapp rollback web -n default` becomes the
name of the button that opens the same change. Commands that the page does not offer stay as they
are.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

BUTTONS: Final = (
    "image", "rollback", "retry", "pause", "resume", "partition", "advance", "promote", "abort",
    "budget", "restart", "kill", "start", "template", "hold", "release", "adopt",
    "replicas",
)  # fmt: skip
"""The names of the changes that the page offers, in the order of their buttons."""

_OTHER_VERBS = {"set image": "image", "use": "template", "scale": "replicas"}
_PLACES = {
    "tapp why": "a click on the tile", "tapp status": "this page", "tapp wait": "the timeline",
    "describe tapp": "the timeline",
}  # fmt: skip
"""Words of a command after `kubectl` -> the place on the page that shows the output of this
command.
"""
_COMMAND = re.compile(r"`kubectl (tapp set image|tapp [a-z]+|describe tapp)\b[^`]*`")
_PHRASES: Final = (
    (re.compile(r"repeat the command to see a new plan"), "plan again"),
    (re.compile(r", --copy-as gives this one another name"), ""),
    (
        re.compile(r"--template (\S+) goes back with the others"),
        r'choose a revision of \1 in the field "Back to"',
    ),
)
"""Phrases about options that no form of the page has -> the phrases that replace them."""


def label_of(change: str) -> str:
    """Returns the text of the button for a change: `Rollback` for the change `rollback`."""
    return change.capitalize()


def in_page_words(value: Any) -> Any:
    """Replaces commands and options of `kubectl tapp` by the page's buttons and fields.

    Returns `value` with the replaced texts. `value` is a text, or a list or mapping of any depth
    that contains texts. Keys of mappings, and values that are no texts, stay unchanged.
    """
    if isinstance(value, str):
        value = _COMMAND.sub(_place, value)
        for phrase, own in _PHRASES:
            value = phrase.sub(own, value)
        return value
    if isinstance(value, Mapping):
        return {key: in_page_words(each) for key, each in value.items()}
    return [in_page_words(each) for each in value] if isinstance(value, list | tuple) else value


def _place(found: re.Match[str]) -> str:
    command = found[1]
    verb = command.removeprefix("tapp ")
    change = _OTHER_VERBS.get(verb, verb)
    if change in BUTTONS:
        return f'"{label_of(change)}"'
    return _PLACES.get(command, found[0])
