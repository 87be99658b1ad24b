"""Reads refusals of the API server from the `SyncError` Events of a TApp.

Metacontroller tries to write each child, and reports all refusals of a sync in one Event: `Sync
error: can't reconcile children for tapps NAMESPACE/NAME: [pods "web-1" is forbidden: ..., pods
"web-0" ...]`. `refusals` is the entry point. After ten different messages, client-go's recorder
puts `(combined from similar events): ` before the message. After many Events about a TApp, the
recorder sends only one every five minutes. Metacontroller writes no Event if another object already
has the child's name.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest

from kubectl_tapp.base.observed import Document
from kubectl_tapp.base.reading import event_count, last_seen
from tapp.words.quoted import short

REASON = "SyncError"
_PREFIX = re.compile(r"^(?:\(combined from similar events\): )?(?:Sync error: )?")
_CHILDREN = re.compile(r"can't reconcile children for [^\s:]+ [^\s:]+: ")
_CHILD_REFUSED = re.compile(
    r"(?:^|, |: )(?:can't delete \S+ \S+: )?"
    r'(pod|persistentvolumeclaim|controllerrevision)s?(?:\.apps)? "([^"]+)" (?=is |not )',
    re.IGNORECASE,
)
# Largest number of Events that are evaluated; each Event has all refusals of one sync
_MAX_EVENTS = 5

# The kind (`pod`, `persistentvolumeclaim` or `controllerrevision`) and the name of a child
Child = tuple[str, str]
# Stands for a sync that failed before Metacontroller wrote any child
WHOLE_SYNC: Child = ("sync", "")


@dataclass(frozen=True)
class Refusal:
    """One write that the API server refused, as Metacontroller has reported it in an Event."""

    # the child that was not written; None if the message does not name it, as messages of admission
    # webhooks
    about: Child | None
    text: str  # the API server's message
    at: float  # when the refusal was reported last, in seconds since the epoch
    count: int  # how often the refusal was reported


def refusals(events: Iterable[Document], uid: str) -> list[Refusal]:
    """Returns the refusals in the newest SyncError Events of a TApp, newest first.

    `events` may contain Events of other objects; `uid` is the uid of the TApp.
    """
    ours = [
        event
        for event in events
        if event.get("reason") == REASON and (event.get("involvedObject") or {}).get("uid") == uid
    ]
    found = []
    for event in sorted(ours, key=last_seen, reverse=True)[:_MAX_EVENTS]:
        text = _PREFIX.sub("", " ".join(str(event.get("message") or "").split()), count=1)
        children = _CHILDREN.match(text)
        told = (
            [(WHOLE_SYNC, text)] if children is None else _refusals_by_child(text[children.end() :])
        )
        at, count = last_seen(event), event_count(event)
        found += [Refusal(about, short(said), at, count) for about, said in told]
    return found


def _refusals_by_child(text: str) -> Iterator[tuple[Child | None, str]]:
    """Yields the refusals in the message of one sync: the child that was not written, and the API
    server's reason.

    The child is None if the text names no child.
    """
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    found = list(_CHILD_REFUSED.finditer(text))
    head = text[: found[0].start()] if found else text
    if head:
        yield None, head
    for match, after in zip_longest(found, found[1:]):
        said = text[match.end() : after and after.start()].removeprefix("is ")
        yield (match[1].lower(), match[2]), said
