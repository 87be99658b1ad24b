"""The API server's refusals, in its own words: `SyncError` events of a TApp.

Metacontroller tries each child, and puts all refusals of a sync into one event: `Sync error: can't
reconcile children for tapps NAMESPACE/NAME: [pods "web-1" is forbidden: ..., pods "web-0" ...]`,
after ten different ones with `(combined from similar events): ` before it. Between two events of a
TApp that has had many there are five minutes. Whose name is taken is refused without an event.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest

from kubectl_tapp.base.observed import Document
from kubectl_tapp.base.reading import last_time, times
from tapp.words.quoted import short

REASON = "SyncError"
_HEAD = re.compile(r"^(?:\(combined from similar events\): )?(?:Sync error: )?")
_CHILDREN = re.compile(r"can't reconcile children for [^\s:]+ [^\s:]+: ")
_ABOUT = re.compile(
    r"(?:^|, |: )(?:can't delete \S+ \S+: )?"
    r'(pod|persistentvolumeclaim|controllerrevision)s?(?:\.apps)? "([^"]+)" (?=is |not )',
    re.IGNORECASE,
)
_SHOWN = 5  # Each event tells all that its sync was refused; more of them are of earlier syncs

Child = tuple[str, str]  # `pod`, `persistentvolumeclaim` or `controllerrevision`, and a name
WHOLE: Child = ("sync", "")  # In place of a child: the sync ended before any was tried


@dataclass(frozen=True)
class Refusal:
    """One thing that was refused."""

    about: Child | None  # the child; None where the API server names none, as admission webhooks do
    text: str  # the API server's words
    at: float  # when it was said last, in seconds since the epoch
    count: int  # how often


def refusals(events: Iterable[Document], uid: str) -> list[Refusal]:
    """Reads in events what Metacontroller was refused of late about a TApp, the newest first."""
    ours = [
        event
        for event in events
        if event.get("reason") == REASON and (event.get("involvedObject") or {}).get("uid") == uid
    ]
    found = []
    for event in sorted(ours, key=last_time, reverse=True)[:_SHOWN]:
        text = _HEAD.sub("", " ".join(str(event.get("message") or "").split()), count=1)
        children = _CHILDREN.match(text)
        told = [(WHOLE, text)] if children is None else _parts(text[children.end() :])
        at, count = last_time(event), times(event)
        found += [Refusal(about, short(said), at, count) for about, said in told]
    return found


def _parts(text: str) -> Iterator[tuple[Child | None, str]]:
    """The refusals of one sync, each with the child that it is about, None where it names none."""
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    found = list(_ABOUT.finditer(text))
    head = text[: found[0].start()] if found else text
    if head:
        yield None, head
    for match, after in zip_longest(found, found[1:]):
        said = text[match.end() : after and after.start()].removeprefix("is ")
        yield (match[1].lower(), match[2]), said
