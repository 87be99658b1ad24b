"""The API server's refusals, in its own words: `SyncError` events of a TApp.

Metacontroller tries each child, and puts all refusals of a sync into one event: `Sync error: can't
reconcile children for tapps NAMESPACE/NAME: [pods "web-1" is forbidden: ..., pods "web-0" ...]`,
after ten different ones with `(combined from similar events): ` before it. Between two events of a
TApp that has had many there are five minutes. Whose name is taken is refused without an event.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import zip_longest

from kubectl_tapp.base.observed import Document
from kubectl_tapp.base.reading import last_time, times

REASON = "SyncError"
_HEAD = re.compile(r"^(?:\(combined from similar events\): )?(?:Sync error: )?")
_CHILDREN = re.compile(r"can't reconcile children for [^\s:]+ [^\s:]+: ")
_ABOUT = re.compile(
    r"(?:^|, |: )(?:can't delete \S+ \S+: )?"
    r'(pod|persistentvolumeclaim|controllerrevision)s?(?:\.apps)? "([^"]+)" (?=is |not )',
    re.IGNORECASE,
)
_SHOWN = 5
"""Each event tells all that its sync was refused; more of them are of earlier syncs."""
_LONGEST = 300
"""Characters of what an API server said."""

Key = tuple[str, str]
"""`pod`, `persistentvolumeclaim` or `controllerrevision`, and a name."""


@dataclass(frozen=True)
class Refusal:
    """A sentence, when it was said last, in seconds since the epoch, and how often."""

    text: str
    at: float
    count: int = 1


@dataclass
class Refusals:
    """The refusals that the events of one TApp tell of, the newest of each.

    Attributes:
        named: what was refused to one child.
        unnamed: what was refused to children that it does not name, as admission webhooks do.
        whole: what ended a sync before any child was tried, such as a service that is away.
    """

    named: dict[Key, Refusal] = field(default_factory=dict)
    unnamed: list[Refusal] = field(default_factory=list)
    whole: list[Refusal] = field(default_factory=list)


def refused(events: Iterable[Document], uid: str) -> Refusals:
    """Reads what Metacontroller was refused of late.

    Args:
        events: warnings of the namespace.
        uid: of the TApp.
    """
    ours = [
        event
        for event in events
        if event.get("reason") == REASON and (event.get("involvedObject") or {}).get("uid") == uid
    ]
    result = Refusals()
    for event in sorted(ours, key=last_time, reverse=True)[:_SHOWN]:
        at, text = last_time(event), " ".join(str(event.get("message") or "").split())
        text = _HEAD.sub("", text, count=1)
        children = _CHILDREN.match(text)
        if children is None:
            result.whole.append(Refusal(short(text), at, times(event)))
            continue
        for key, said in _parts(text[children.end() :]):
            if key is None:
                result.unnamed.append(Refusal(said, at))
            else:
                result.named.setdefault(key, Refusal(said, at))
    return result


def _parts(text: str) -> Iterator[tuple[Key | None, str]]:
    """The refusals of one sync, each with the child that it is about, None where it names none."""
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    found = list(_ABOUT.finditer(text))
    head = text[: found[0].start()] if found else text
    if head:
        yield None, short(head)
    for match, after in zip_longest(found, found[1:]):
        said = text[match.end() : after and after.start()].removeprefix("is ")
        yield (match[1].lower(), match[2]), short(said)


def short(text: str, most: int = _LONGEST) -> str:
    """No more than a person reads."""
    return text if len(text) <= most else f"{text[:most].rstrip()}..."
