"""A TApp's own words: all that can be shown where its pods may not be read."""

from kubectl_tapp.base.observed import Observed
from kubectl_tapp.base.reading import conditions, generation_seen
from kubectl_tapp.decide.inspection import Row
from tapp.words.conditions import KSTATUS
from tapp.words.ranges import numbers
from tapp.words.vocabulary import DEFAULT_TEMPLATE

_UNKNOWN = "?"
_COUNTS = {"ready": "ready", "updatedReplicas": "up to date", "availableReplicas": "available"}


def rows_of_status(observed: Observed) -> list[Row]:
    """A row an instance, of its spec and of the status that was last written."""
    spec, status = observed.tapp.get("spec") or {}, observed.tapp.get("status") or {}
    old = spec.get("defaultTemplateName") or spec.get("DefaultTemplateName")
    default = old or DEFAULT_TEMPLATE
    named, statuses = spec.get("templates") or {}, status.get("statuses") or {}
    outdated = set(numbers(status.get("outdated") or ""))
    return [
        Row(
            id=id,
            template=named.get(str(id)) or default,
            outdated=id in outdated,
            state=statuses.get(str(id), _UNKNOWN),
        )
        for id in range(spec.get("replicas", 1))
    ]


def counts_of_status(observed: Observed) -> list[str]:
    """Its state in a word, and the counts that `list` shows, as far as anybody has counted."""
    metadata, status = observed.tapp["metadata"], observed.tapp.get("status") or {}
    parts = [str(status.get("appStatus", "nobody has looked at it yet"))]
    parts += [f"{status[key]} {word}" for key, word in _COUNTS.items() if key in status]
    kept = status.get("kept") or {}
    parts += [f"kept: {ids} at {revision}" for revision, ids in kept.items()]
    if generation_seen(observed.tapp) not in (0, metadata.get("generation")):
        parts.append("its newest spec has not been looked at yet")
    return parts


def sentences_of_status(observed: Observed) -> list[str]:
    """The conditions that say more than that all is well."""
    return [
        f"{type} is {each.get('status')}: {each.get('message')}"
        for type, each in conditions(observed.tapp).items()
        if each.get("message")
        and (type == "Ready" or each.get("status") == "True")
        and type not in KSTATUS  # they repeat the others
    ]
