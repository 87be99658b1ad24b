"""Readers of the command line's words: what is invalid is refused in a sentence (`Exit.USAGE`)."""

import difflib
import re
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from kubectl_tapp.base.errors import UsageError
from tapp.words.digits import whole
from tapp.words.groups import grouped
from tapp.words.ranges import id_list, name_list
from tapp.words.vocabulary import DEFAULT_TEMPLATE, MAX_REPLICAS, VALUE_KEY

if TYPE_CHECKING:
    from tapp.declared.model import TAppSpec

_PART = re.compile(r"(\d{1,6})(?:-(\d{1,6}))?", re.ASCII)
_RANGE = re.compile(r"\d{1,6}-\d{1,6}", re.ASCII)
_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s?)?", re.ASCII)
_KEY = re.compile(VALUE_KEY)


def nearest(name: str, names: Iterable[str]) -> str:
    """Words to put after "there is no NAME": the name that was meant, or those that there are."""
    known = sorted(names)
    folded = {each.casefold(): each for each in known}
    close = difflib.get_close_matches(name.casefold(), folded, 1, 0.5)
    if close:
        return f"; did you mean {folded[close[0]]!r}?"
    if not known:
        return "; there is none at all"
    return f"; there is {name_list([repr(each) for each in known])}"


def read_ids(texts: Iterable[str], replicas: int) -> list[int]:
    """The instances that are meant: `3`, `0-3,7`, `all`, or several of these; ascending, each once.

    Raises CommandError: it is none of these, or there is no such instance.
    """
    found: set[int] = set()
    for part in ",".join(texts).replace(" ", "").split(","):
        if part == "all":
            found.update(range(replicas))
            continue
        match = _PART.fullmatch(part)
        first, last = (match[1], match[2] or match[1]) if match else ("1", "0")
        if int(first) > int(last):
            raise UsageError(f"{part!r} names no instances: write 3, or 0-3,7, or all")
        found.update(range(int(first), int(last) + 1))
    strange = [id for id in found if id >= replicas]
    if strange:
        there = f"there are 0 to {replicas - 1}" if replicas else "there are none (replicas is 0)"
        there = "there is 0" if replicas == 1 else there
        raise UsageError(f"there is no instance {id_list(strange)}: {there}")
    return sorted(found)


def read_replicas(text: str | int) -> int:
    """A number of instances. Raises CommandError: it is none, or more than a TApp may have."""
    number = whole(str(text))
    if number is None or number > MAX_REPLICAS:
        raise UsageError(f"{str(text)!r} is no number of instances: from 0 to {MAX_REPLICAS}")
    return number


def read_images(texts: Iterable[str]) -> dict[str, str]:
    """Container -> image, of `CONTAINER=IMAGE` each, `*` for all; CommandError: wrong, or twice."""
    images: dict[str, str] = {}
    for text in texts:
        name, equals, image = text.partition("=")
        if not (name and equals and image) or image != image.strip():
            raise UsageError(f"{text!r} sets no image: write CONTAINER=IMAGE")
        if name in images:
            raise UsageError(f"container {name!r} is given two images")
        images[name] = image
    return images


def read_values(texts: Iterable[str]) -> tuple[list[str], dict[str, str | None]]:
    """Instances as words, and values: `KEY=TEXT`, `KEY-`; CommandError: none, wrong, or twice."""
    words, values = list[str](), dict[str, str | None]()
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals and not (text.endswith("-") and _KEY.fullmatch(text[:-1])):
            words.append(text)
            continue
        key = key if equals else text[:-1]
        if not _KEY.fullmatch(key):
            message = f"{key!r} is no key of a value: 1 to 63 letters, digits, '-', '_' and '.'"
            raise UsageError(message)
        if key in values:
            raise UsageError(f"the value {key!r} is given twice")
        values[key] = value if equals else None
    if not values:
        raise UsageError("no value is given: write KEY=TEXT, or KEY- to take one away")
    return words, values


def read_use(text: str, spec: "TAppSpec") -> tuple[str, list[int]]:
    """A template and its instances, of `TEMPLATE=IDS`. CommandError: not so, or no instance."""
    name, equals, ids = text.rpartition("=")
    if not equals or not name:
        message = f"{text!r} gives no template to instances: write TEMPLATE=IDS, such as v2=0,3-5"
        raise UsageError(message)
    return name, read_ids([ids], spec.replicas)


def read_canary_ids(text: str, replicas: int) -> list[int] | None:
    """Returns the instances of `1,4-6`, `4,` or `2-3`; None if the text is a share: `3`, `10%`.

    A comma or a range makes the text a list of instances; a single number is always a share. Raises
    UsageError if an instance is named twice or does not exist.
    """
    if "," not in text and not _RANGE.fullmatch(text):
        return None
    parts = [part.strip() for part in text.removesuffix(",").split(",")]
    if any(part.endswith("%") for part in parts):
        message = f"{text!r} mixes a share with instances: write 10%, or 1,4-6"
        raise UsageError(message)
    found = Counter(id for part in parts for id in read_ids([part], replicas))
    twice = sorted(id for id, times in found.items() if times > 1)
    if twice:
        raise UsageError(f"{text!r} names {id_list(twice)} twice")
    return sorted(found)


def read_share(text: str, of: int) -> int:
    """The size of a canary, `3` or `10%` rounded up; CommandError: neither, none, or too many."""
    from tapp.decide.rollout import portion  # noqa: PLC0415 - it costs start time

    number = whole(text)
    try:
        share = portion(text if number is None else number, of, 1)
    except ValueError:
        share = 0
    if not 1 <= share <= of:
        message = f"{text!r} is no share of {of} instances: write a number such as 1, or 10%"
        raise UsageError(message)
    return share


def read_budget(text: str) -> int | str:
    """Returns a maxUnavailable, a number or a percentage from 1. Raises UsageError otherwise."""
    from tapp.decide.rollout import portion  # noqa: PLC0415 - it costs start time

    number = whole(text)
    value = text if number is None else number
    try:
        portion(value, 1, 1)
    except ValueError as error:
        raise UsageError(f"--max-unavailable {error}") from None
    return value


def read_partition(text: str) -> int | str:
    """The instances that a partition keeps, a number or a percentage; else a CommandError."""
    from tapp.decide.partition import partition_size  # noqa: PLC0415 - it costs start time

    number = whole(text)
    value = text if number is None else number
    try:
        partition_size(value, 1)
    except ValueError as error:
        raise UsageError(f"partition {error}") from None
    return value


def read_duration(text: str) -> float:
    """Seconds of `90`, `90s`, `10m` or `1h30m`. Raises CommandError: none of these, or no time."""
    found = _DURATION.fullmatch(text)
    hours, minutes, rest = (int(each or 0) for each in found.groups()) if found else (0, 0, 0)
    total = float(3600 * hours + 60 * minutes + rest)
    if not total:
        raise UsageError(f"{text!r} is no time to wait: write 90s, 10m or 1h30m")
    return total


def template_users(spec: "TAppSpec") -> dict[str, list[int]]:
    """Template -> the instances that are to run it, ascending; one that does not exist, too."""
    return grouped((spec.template_name(id), id) for id in range(spec.replicas))


def template_names(spec: "TAppSpec") -> list[str]:
    """The names of all templates that are written, sorted."""
    names = set(spec.template_pool)
    return sorted(names | ({DEFAULT_TEMPLATE} if spec.template else set()))
