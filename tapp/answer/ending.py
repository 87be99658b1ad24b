"""The status of a TApp that is going: as it was, but for what holds its end up."""

from collections.abc import Mapping
from typing import Any

from tapp.answer.kstatus import for_kstatus
from tapp.decide.teardown import Teardown
from tapp.words.conditions import Finding, Type
from tapp.words.ranges import listed
from tapp.words.reasons import Reason


def status_of(teardown: Teardown, before: Mapping[str, Any]) -> Mapping[str, Any]:
    """The status that is answered.

    Args:
        teardown: what was decided.
        before: `status` of the parent, however it looks.

    Returns:
        `before` itself, or with other conditions while pods on silent nodes are waited for, and
        once that is over. What was refused of the spec does not stand there any more then.
    """
    conditions = before.get("conditions")
    known: dict[str, Any] = {
        item["type"]: item
        for item in (conditions if isinstance(conditions, list) else [])
        if isinstance(item, dict) and isinstance(item.get("type"), str)
    }
    was_silent = known.get(Type.DEGRADED, {}).get("reason") == Reason.NODES_SILENT
    if not known or not (teardown.silent or was_silent):
        return before
    available = [known[Type.AVAILABLE]] if Type.AVAILABLE in known else []
    since = max(teardown.silent, default="")
    progressing, ready, degraded = _findings(teardown)
    summed = for_kstatus(progressing, degraded, 0.0)
    findings = [progressing, ready, degraded, *([summed] if summed is not None else [])]
    found = [_written(finding, known, since) for finding in findings]
    return {**before, "conditions": [*available, *found]}


def _findings(teardown: Teardown) -> tuple[Finding, Finding, Finding]:
    names = [name for names in teardown.silent.values() for name in names]
    if not names:
        message = "the TApp is being deleted; its nodes are heard of again"
        return (
            Finding(Type.PROGRESSING, "True", Reason.DELETING, message),
            Finding(Type.READY, "False", Reason.DELETING, message),
            Finding(Type.DEGRADED, "False", Reason.AS_EXPECTED, message),
        )
    message = (
        f"the TApp is being deleted and waits for pods {listed(names)}: nothing "
        "is heard of their nodes. They go when these are back, when they count as lost "
        "(forceDeletePod), or when their Node objects are deleted"
    )
    return (
        Finding(Type.PROGRESSING, "True", Reason.DELETING, message),
        Finding(Type.READY, "False", Reason.NODES_SILENT, message),
        Finding(Type.DEGRADED, "True", Reason.NODES_SILENT, message),
    )


def _written(finding: Finding, known: Mapping[str, Any], since: str) -> dict[str, Any]:
    old = known.get(finding.type, {})
    time = old.get("lastTransitionTime") if old.get("status") == finding.status else since
    return finding.document(time)
