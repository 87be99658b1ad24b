"""The output of `kubectl tapp status` and `why` as objects, for `-o json` and `-o yaml`."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import msgspec

from hooks.explain import explain
from kubectl_tapp.decide.events import failing_syncs
from kubectl_tapp.decide.inspection import Inspection, Row
from kubectl_tapp.decide.phrases import budget_lines
from kubectl_tapp.show.next_steps import next_steps_document
from kubectl_tapp.show.status import reasons_by_instances
from kubectl_tapp.show.why import explain_instances
from tapp.words.remedies import Remedy
from tapp.words.times import written


def status_document(view: Inspection) -> dict[str, Any]:
    """Returns the object that `status -o json` prints: the state of the TApp and the next steps."""
    return {**state_document(view), "nextSteps": next_steps_document(view)}


def state_document(view: Inspection) -> dict[str, Any]:
    """Returns the state of the TApp as an object: instances, reasons for waiting, budget, refusals
    and Events.
    """
    return {
        **_head(view),
        "instances": [_row(row) for row in view.rows],
        "waits": [{"instances": ids, "message": text} for text, ids in reasons_by_instances(view)],
        **_tail(view),
    }


def why_document(view: Inspection, ids: Iterable[int]) -> dict[str, Any]:
    """Returns the object that `why -o json` prints for the instances `ids`.

    It has the explanation of each instance, then the budget of the TApp and the next steps.
    """
    return {
        **_head(view),
        "instances": instance_documents(view, ids),
        **_tail(view),
        "nextSteps": next_steps_document(view, without=(Remedy.WHY,)),
    }


def instance_documents(view: Inspection, ids: Iterable[int]) -> list[dict[str, Any]]:
    """Returns the explanations of the instances `ids`: state, decision, containers and Events."""
    return [
        {
            **_row(case.row),
            "available": case.available,
            "action": case.action,
            "reason": case.reason,
            "message": case.text,
            "containers": list(case.containers),
            "events": list(case.events),
        }
        for case in explain_instances(view, ids)
    ]


def _head(view: Inspection) -> dict[str, Any]:
    return {
        "name": view.name,
        "namespace": view.namespace,
        "appStatus": view.plan.app_status,
        "idle": view.idle,
        "outdated": [row.id for row in view.rows if row.outdated],
    }


def _tail(view: Inspection) -> dict[str, Any]:
    explanation = explain(view.plan)
    return {
        "budget": explanation["budget"] | {"sentences": budget_lines(view)},
        "refused": msgspec.to_builtins(explanation["refused"]),
        "events": failing_syncs(view),
        "unread": dict(view.observed.unread),
    }


def _row(row: Row) -> dict[str, Any]:
    document = asdict(row)
    document["since"] = None if row.since is None else written(row.since)
    return document
