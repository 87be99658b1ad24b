"""Checks that the conditions of a TApp fit each other and the rest of the status.

`contradictions` is the entry point; `tests.invariants` calls it for every status that a sync
returns. The allowed combinations are in `TABLE`, and in docs/troubleshooting.md ("Which conditions
go together").
"""

from typing import Any

Document = dict[str, Any]

HARMLESS = {
    "UnusedInstances",
    "ClaimsBeingModified",
    "RollingTemplateUnused",
    "UnusedTemplates",
    "PullersNotRun",
    "MetadataEdited",
    "DomainLabelMissing",
    "InvalidUpdatePriority",
    "InvalidHoldFor",
}
"""Types of conditions that do not make the TApp Degraded: all instances can still be as the spec
asks.
"""
LATE = ("ProgressDeadlineExceeded", "RolledBack")
"""Reasons of Progressing and Stalled after a deadline."""
BROKEN = ("InstancesBroken", "NodesSilent")
"""Reasons of Degraded that are not the type of a refusal."""
ALWAYS = ("Available", "Progressing", "Ready", "Degraded")
KSTATUS = ("Reconciling", "Stalled")

TABLE: tuple[tuple[str, str, str, str, str], ...] = (
    # Progressing, Degraded, Ready, Available (status and reason), and the other conditions that are
    # True
    ("False Complete", "False", "True AsSpecified", "True", "none"),
    ("False Complete", "False", "True PartitionReached", "True", "none"),
    ("False Complete", "True", "False, as Degraded", "True", "Stalled"),
    ("False Paused", "False", "False, as Progressing", "any", "none"),
    ("False Paused", "True", "False, as Degraded", "any", "Stalled"),
    ("False ProgressDeadlineExceeded", "True", "False, as Degraded", "any", "Stalled"),
    ("False RolledBack", "True", "False, as Degraded", "any", "Stalled"),
    ("False Stuck", "True", "False, as Degraded", "any", "Stalled"),
    ("True", "False", "False, as Progressing", "any", "Reconciling"),
    ("True", "True", "False, as Degraded", "any", "Reconciling or Stalled"),
)
"""Every allowed combination of Progressing, Degraded, Ready, Available, and Reconciling or
Stalled.
"""

WAITED: tuple[tuple[str, str, str, str], ...] = (
    # the TApp; and its state for `kubectl tapp wait`, kstatus and Argo CD
    ("its newest spec is not answered", "waits", "InProgress", "Progressing"),
    ("`Reconciling` is True", "waits", "InProgress", "Progressing"),
    ("`Ready` is True", "done", "Current", "Healthy"),
    ("`Ready` is False with reason `Paused`", "paused", "InProgress", "Suspended"),
    ("`Stalled` is True", "stuck", "Failed", "Degraded"),
    ("it is being deleted", "gone", "Terminating", "Progressing"),
)
"""The states of a TApp that `kubectl tapp wait`, kstatus and Argo CD show."""

_SERVED = {"Running", "Succ", "Killed"}
"""Values of `status.statuses` that an instance may have if the TApp is Ready."""


def contradictions(status: Document) -> list[str]:
    """Returns a sentence for each contradiction between the conditions and the other fields of a
    status.

    The list is empty if the status is consistent or has no conditions.
    """
    known = {item["type"]: item for item in status.get("conditions") or []}
    if not known:
        return []
    missing = [type for type in ALWAYS if type not in known]
    if missing:
        return [f"no condition {missing}"]
    ready, degraded = known["Ready"], known["Degraded"]
    problems = []
    if not any(_fits(row, known) for row in TABLE):
        shown = [f"{type} {known[type]['status']} {known[type]['reason']}" for type in ALWAYS]
        problems.append(f"these contradict each other: {shown}")
    refused = [type for type in known if type not in (*ALWAYS, *KSTATUS)]
    reason = known.get("Stalled", {}).get("reason")
    late = reason in LATE
    if (known["Progressing"]["reason"] in LATE) != late or (
        late and reason != known["Progressing"]["reason"]
    ):
        problems.append("Progressing says that a roll is too late, and Stalled does not, or so")
    problems += [
        f"{type} is said in other words than {source}"
        for type, source in (("Reconciling", "Progressing"), ("Stalled", "Degraded"))
        if type in known and not (late or _said(known[type]) == _said(known[source]))
    ]
    lateness = ["Stalled"] if late else []
    harmful = [type for type in refused if type not in HARMLESS]
    if any(known[type]["status"] != "True" for type in known if type not in ALWAYS):
        problems.append(f"what is refused is True or absent: {refused}")
    if harmful and degraded["status"] != "True":
        problems.append(f"{harmful} are True, and Degraded is not")
    if degraded["status"] == "True" and degraded["reason"] not in {*harmful, *lateness, *BROKEN}:
        problems.append(f"Degraded is True because of {degraded['reason']}, which is not there")
    if degraded["status"] == "False" and degraded["reason"] != "AsExpected":
        problems.append(f"Degraded is False with reason {degraded['reason']}")
    problems += [
        f"{type} says that all is well, and Ready is False"
        for type in ("Progressing", "Ready")
        if ready["status"] == "False" and "as the spec asks" in known[type]["message"]
    ]
    return problems + (_of_ready(status) if ready["status"] == "True" else [])


def _said(condition: Document) -> tuple[str, str]:
    return condition["reason"], condition["message"]


def _fits(row: tuple[str, str, str, str, str], known: dict[str, Document]) -> bool:
    progressing, degraded, ready, available, beside = row
    seen = known["Ready"]
    if ready.startswith("False, as "):
        other = known[ready.removeprefix("False, as ")]
        if not (seen["status"] == "False" and _said(seen) == _said(other)):
            return False
    elif f"{seen['status']} {seen['reason']}" != ready:
        return False
    now = known["Progressing"]
    return (
        progressing in (now["status"], f"{now['status']} {now['reason']}")
        and known["Degraded"]["status"] == degraded
        and available in ("any", known["Available"]["status"])
        and ([type for type in KSTATUS if type in known] or ["none"]) in _choices(beside)
    )


def _choices(beside: str) -> list[list[str]]:
    return [[type] for type in beside.split(" or ")]


def _of_ready(status: Document) -> list[str]:
    """Returns a sentence for each field of a status that contradicts Ready. The condition Ready
    must be True.
    """
    problems = []
    odd = sorted(set(status["statuses"].values()) - _SERVED)
    if odd:
        problems.append(f"Ready is True, and instances are {odd}")
    problems += [
        f"Ready is True, and status.{field} is {status[field]}"
        for field in ("outdated", "notCreated", "failures", "progressed")
        if status.get(field)
    ]
    running, wanted = status["ready"].split("/")
    if running != wanted or str(status["availableReplicas"]) != wanted:
        problems.append(f"Ready is True, and {status['ready']} are ready")
    return problems
