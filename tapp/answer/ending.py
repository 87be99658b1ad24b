"""The status of a TApp that is going: as it was, but for what holds its end up."""

from collections.abc import Mapping
from typing import Any

from tapp.answer.kstatus import for_kstatus
from tapp.decide.teardown import Teardown
from tapp.kube.parts import maps_of
from tapp.words.conditions import Finding, Type
from tapp.words.ranges import name_list
from tapp.words.reasons import Reason
from tapp.words.vocabulary import HOLD


def status_of(teardown: Teardown, before: Mapping[str, Any]) -> Mapping[str, Any]:
    """The status that is answered: `before`, whatever it looks like, or with other conditions.

    These tell of pods on silent nodes or on hold that are waited for, and once that is over. What
    was refused of the spec does not stand there any more then.
    """
    known: dict[str, Any] = {
        item["type"]: item
        for item in maps_of(before.get("conditions"))
        if isinstance(item.get("type"), str)
    }
    was_silent = known.get(Type.DEGRADED, {}).get("reason") == Reason.NODES_SILENT
    was_held = known.get(Type.PROGRESSING, {}).get("reason") == Reason.HELD
    if not (known or teardown.held):
        return before  # nobody has said anything yet that would have to be taken back
    if not (teardown.silent or teardown.held or was_silent or was_held):
        return before
    since = max([*teardown.silent, *(time for time, _ in teardown.held.values())], default="")
    progressing, ready, degraded = _findings(teardown)
    findings = [progressing, ready, degraded, *for_kstatus(progressing, degraded, 0.0)]
    found = [_written(finding, known, since) for finding in findings]
    available = known.get(Type.AVAILABLE) or _UNCOUNTED.document(since)
    return {**before, "conditions": [available, *found]}


def _findings(teardown: Teardown) -> tuple[Finding, Finding, Finding]:
    names = [name for names in teardown.silent.values() for name in names]
    if not names and teardown.held:
        message = _held(teardown)
        return (
            Finding(Type.PROGRESSING, "True", Reason.HELD, message),
            Finding(Type.READY, "False", Reason.HELD, message),
            Finding(Type.DEGRADED, "False", Reason.AS_EXPECTED, _NOTHING),
        )
    if not names:
        message = "the TApp is being deleted, and nothing holds that up"
        return (
            Finding(Type.PROGRESSING, "True", Reason.DELETING, message),
            Finding(Type.READY, "False", Reason.DELETING, message),
            Finding(Type.DEGRADED, "False", Reason.AS_EXPECTED, message),
        )
    message = (
        f"the TApp is being deleted and waits for pods {name_list(names)}: nothing "
        "is heard of their nodes. They go when these are back, when they count as lost "
        "(forceDeletePod), or when their Node objects are deleted"
    )
    if teardown.held:
        message += f". Beside that, {_held(teardown)}"
    return (
        Finding(Type.PROGRESSING, "True", Reason.DELETING, message),
        Finding(Type.READY, "False", Reason.NODES_SILENT, message),
        Finding(Type.DEGRADED, "True", Reason.NODES_SILENT, message),
    )


_UNCOUNTED = Finding(
    Type.AVAILABLE, "Unknown", Reason.DELETING, "nobody had counted when the TApp was deleted"
)
_NOTHING = "nothing is refused and nothing is known to be broken"


def _held(teardown: Teardown) -> str:
    """Whom the end waits for, and how a person goes on without."""
    name, (since, text) = next(iter(teardown.held.items()))
    told = f"{text}; it was told so at {since}" if since else text
    return (
        f"the TApp is being deleted and waits for pods {name_list(list(teardown.held))}, which are "
        f"on hold; of {name}: {told}. They go when the annotation {HOLD} is removed "
        "from them; a spec.deletionHoldTimeoutSeconds of 0, or a number of seconds, ends all "
        "holds of this TApp, also now"
    )


def _written(finding: Finding, known: Mapping[str, Any], since: str) -> dict[str, Any]:
    old = known.get(finding.type, {})
    time = old.get("lastTransitionTime") if old.get("status") == finding.status else since
    return finding.document(time)
