"""What a TApp tells by itself: all that can be shown where its pods may not be read."""

from kubectl_tapp.look import Row
from kubectl_tapp.observed import Observed
from tapp.model import DEFAULT_TEMPLATE
from tapp.ranges import numbers

_UNKNOWN = "?"


def told_rows(observed: Observed) -> list[Row]:
    """A row an instance, of its spec and of the status that was last written."""
    spec, status = observed.tapp.get("spec") or {}, observed.tapp.get("status") or {}
    old = spec.get("defaultTemplateName") or spec.get("DefaultTemplateName")
    default = old or DEFAULT_TEMPLATE
    named, statuses = spec.get("templates") or {}, status.get("statuses") or {}
    outdated = numbers(status.get("outdated") or "")
    return [
        Row(
            id=id,
            template=named.get(str(id)) or default,
            outdated=id in outdated,
            state=statuses.get(str(id), _UNKNOWN),
        )
        for id in range(spec.get("replicas", 1))
    ]


def told_sentences(observed: Observed) -> list[str]:
    """The conditions that say more than that all is well."""
    conditions = (observed.tapp.get("status") or {}).get("conditions") or []
    return [
        f"{each.get('type')} is {each.get('status')}: {each.get('message')}"
        for each in conditions
        if each.get("message") and (each.get("type") == "Ready" or each.get("status") == "True")
    ]
