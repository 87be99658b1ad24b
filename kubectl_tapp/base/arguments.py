"""Parses the arguments and option values of the command line: instances, images, values, shares.

Each `read_...` function returns the parsed value, or raises UsageError with one sentence that says
what is wrong and what to write instead.
"""

import difflib
import re
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from kubectl_tapp.base.errors import UsageError
from kubectl_tapp.base.words import plural
from tapp.words.digits import whole
from tapp.words.groups import grouped
from tapp.words.ranges import id_list, instance_list, name_list
from tapp.words.vocabulary import DEFAULT_TEMPLATE, MAX_REPLICAS, VALUE_KEY

if TYPE_CHECKING:
    from tapp.declared.model import TAppSpec

# At most six digits are allowed, because `read_ids` expands a range before it compares the numbers
# with the number of instances.
_ID_OR_RANGE = re.compile(r"(\d{1,6})(?:-(\d{1,6}))?", re.ASCII)
_RANGE = re.compile(r"\d{1,6}-\d{1,6}", re.ASCII)
_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s?)?", re.ASCII)
_KEY = re.compile(VALUE_KEY)


def name_suggestion(name: str, names: Iterable[str]) -> str:
    """Returns the second part of an error message that begins with "there is no NAME".

    This part suggests the most similar of the existing `names`. If no name is similar, it lists all
    existing names.
    """
    known = sorted(names)
    folded = {each.casefold(): each for each in known}
    close = difflib.get_close_matches(name.casefold(), folded, 1, 0.5)
    if close:
        return f"; did you mean {folded[close[0]]!r}?"
    if not known:
        return "; there are none"
    return f"; known names: {name_list([repr(each) for each in known])}"


def read_ids(texts: Iterable[str], replicas: int) -> list[int]:
    """Returns the instance numbers that the texts name, sorted and without duplicates.

    Each text is a number (`3`), a list (`0-3,7`) or `all`. `replicas` is the number of instances of
    the TApp. Raises UsageError if a text has none of these forms, or if an instance number is not
    below `replicas`.
    """
    found: set[int] = set()
    for part in ",".join(texts).replace(" ", "").split(","):
        if part == "all":
            found.update(range(replicas))
            continue
        match = _ID_OR_RANGE.fullmatch(part)
        # A text of another form gets the numbers 1 and 0. It is then refused in the same way as a
        # range in the wrong order, such as `7-3`.
        first, last = (match[1], match[2] or match[1]) if match else ("1", "0")
        if int(first) > int(last):
            raise UsageError(f"{part!r} is not a list of instances: write 3, 0-3,7 or all")
        found.update(range(int(first), int(last) + 1))
    unknown = [id for id in found if id >= replicas]
    if unknown:
        there = f"the instances are 0 to {replicas - 1}"
        there = there if replicas else "spec.replicas is 0"
        there = "the only instance is 0" if replicas == 1 else there
        no = "is no instance" if len(unknown) == 1 else "are no instances"
        raise UsageError(f"there {no} {id_list(unknown)}: {there}")
    return sorted(found)


def read_replicas(text: str | int) -> int:
    """Parses a number of instances and returns it.

    Raises UsageError unless the text is an integer from 0 to MAX_REPLICAS.
    """
    number = whole(str(text))
    if number is None or number > MAX_REPLICAS:
        raise UsageError(
            f"{str(text)!r} is not a number of instances: write a number from 0 to {MAX_REPLICAS}"
        )
    return number


def read_images(texts: Iterable[str]) -> dict[str, str]:
    """Returns container name -> image, parsed from texts of the form `CONTAINER=IMAGE`.

    The container name `*` stands for all containers. Raises UsageError if a text has another form,
    or if two texts name the same container.
    """
    images: dict[str, str] = {}
    for text in texts:
        name, equals, image = text.partition("=")
        if not (name and equals and image) or image != image.strip():
            raise UsageError(f"{text!r} does not set an image: write CONTAINER=IMAGE")
        if name in images:
            raise UsageError(f"container {name!r} is given two images")
        images[name] = image
    return images


def read_values(texts: Iterable[str]) -> tuple[list[str], dict[str, str | None]]:
    """Separates the texts into instance arguments and values, and returns both.

    A value fills placeholders in the templates of an instance. `KEY=TEXT` sets a value. `KEY-`
    removes a value, as in `kubectl label`; the result then has None for this key. All other texts
    are instance arguments, which `read_ids` can parse. Raises UsageError if no text sets or removes
    a value, if a key is invalid, or if two texts have the same key.
    """
    words, values = list[str](), dict[str, str | None]()
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals and not (text.endswith("-") and _KEY.fullmatch(text[:-1])):
            words.append(text)
            continue
        key = key if equals else text[:-1]
        if not _KEY.fullmatch(key):
            message = f"{key!r} is not a valid key: use 1 to 63 letters, digits, '-', '_' and '.'"
            raise UsageError(message)
        if key in values:
            raise UsageError(f"the value {key!r} is given twice")
        values[key] = value if equals else None
    if not values:
        raise UsageError("no value is given: write KEY=TEXT to set a value, or KEY- to remove it")
    return words, values


def read_use(text: str, spec: "TAppSpec") -> tuple[str, list[int]]:
    """Returns the template name and the instance numbers of a text of the form `TEMPLATE=IDS`.

    `spec` is the spec of the TApp, which says how many instances exist. The function does not check
    whether the template exists. Raises UsageError if the text has another form, or if an instance
    does not exist.
    """
    name, equals, ids = text.rpartition("=")
    if not equals or not name:
        message = f"{text!r} is not a template with instances: write TEMPLATE=IDS, such as v2=0,3-5"
        raise UsageError(message)
    return name, read_ids([ids], spec.replicas)


def read_canary_ids(text: str, replicas: int) -> list[int] | None:
    """Returns the instance numbers of a text such as `1,4-6`, `4,` or `2-3`, sorted.

    Returns None if the text is not a list of instances but a share, such as `3` or `10%`. Only a
    text with a comma or a range is a list, so a single number is always a share. `replicas` is the
    number of instances of the TApp. Raises UsageError if the text names an instance twice or an
    instance that does not exist.
    """
    if "," not in text and not _RANGE.fullmatch(text):
        return None
    parts = [part.strip() for part in text.removesuffix(",").split(",")]
    if any(part.endswith("%") for part in parts):
        message = f"{text!r} mixes a share with instances: write 10%, or 1,4-6"
        raise UsageError(message)
    # Each part is parsed alone, because `read_ids` would drop duplicates.
    found = Counter(id for part in parts for id in read_ids([part], replicas))
    twice = sorted(id for id, times in found.items() if times > 1)
    if twice:
        raise UsageError(f"{text!r} names {instance_list(twice)} twice")
    return sorted(found)


def read_share(text: str, total: int) -> int:
    """Returns the number of instances that a share such as `3` or `10%` of `total` instances means,
    rounded up.

    Raises UsageError if the text is not a share, or if the result is not between 1 and `total`.
    """
    from tapp.decide.rollout import portion  # noqa: PLC0415 - it costs start time

    number = whole(text)
    try:
        share = portion(text if number is None else number, total, 1)
    except ValueError:
        share = 0
    if not total:
        raise UsageError("there is no instance that could be a canary")
    if not 1 <= share <= total:
        most = "1" if total == 1 else f"a number from 1 to {total}"
        raise UsageError(
            f"{text!r} is not a share of {total} {plural(total, 'instance')}: write {most}, a "
            "percentage such as 10%, or a list of instances such as 1,4-6"
        )
    return share


def read_budget(text: str, option: str = "--max-unavailable") -> int | str:
    """Parses a value of maxUnavailable: a positive number, or a percentage such as `30%`.

    Returns an integer, or the percentage as text. Raises UsageError if the text is neither; the
    message then names `option`, the command-line option that has this value.
    """
    from tapp.decide.rollout import portion  # noqa: PLC0415 - it costs start time

    number = whole(text)
    value = text if number is None else number
    try:
        portion(value, 1, 1)
    except ValueError as error:
        raise UsageError(f"{option} {error}") from None
    return value


def read_partition(text: str) -> int | str:
    """Parses a value of `updateStrategy.partition`: a number, or a percentage such as `30%`.

    Returns an integer, or the percentage as text. Raises UsageError if the text is neither.
    """
    from tapp.decide.partition import partition_size  # noqa: PLC0415 - it costs start time

    number = whole(text)
    value = text if number is None else number
    try:
        partition_size(value, 1)
    except ValueError as error:
        raise UsageError(f"partition {error}") from None
    return value


def read_duration(text: str) -> float:
    """Returns the seconds of a duration such as `90`, `90s`, `10m` or `1h30m`.

    Raises UsageError if the text is not a duration, or if the duration is zero.
    """
    found = _DURATION.fullmatch(text)
    hours, minutes, rest = (int(each or 0) for each in found.groups()) if found else (0, 0, 0)
    total = float(3600 * hours + 60 * minutes + rest)
    if not total:
        raise UsageError(f"{text!r} is not a duration: write 90s, 10m or 1h30m")
    return total


def template_users(spec: "TAppSpec") -> dict[str, list[int]]:
    """Returns template name -> the sorted numbers of the instances that run the template.

    A name that spec.templates gives to an instance is included even if the spec has no template
    with this name.
    """
    return grouped((spec.template_name(id), id) for id in range(spec.replicas))


def template_names(spec: "TAppSpec") -> list[str]:
    """Returns the sorted names of all templates in the spec: the default template and the pool."""
    names = set(spec.template_pool)
    return sorted(names | ({DEFAULT_TEMPLATE} if spec.template else set()))
