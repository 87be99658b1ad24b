"""The documents of `status` and `why`, for programs."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import msgspec

from hooks.explain import explain
from kubectl_tapp.decide.events import failing_syncs
from kubectl_tapp.decide.inspection import Inspection, Row
from kubectl_tapp.decide.phrases import budget
from kubectl_tapp.show.status import waiting
from kubectl_tapp.show.why import cases
from tapp.words.times import written


def status_document(view: Inspection) -> dict[str, Any]:
    """All of `status`: a row an instance, the budget, what waits for what."""
    return {
        **_head(view),
        "instances": [_row(row) for row in view.rows],
        "waits": [{"instances": ids, "message": text} for text, ids in waiting(view)],
        **_tail(view),
    }


def why_document(view: Inspection, ids: Iterable[int]) -> dict[str, Any]:
    """All of `why`: the verdict on each instance, with what its pod and its events say."""
    found = [
        {
            **_row(case.row),
            "available": case.available,
            "action": case.action,
            "reason": case.reason,
            "message": case.text,
            "containers": list(case.containers),
            "events": list(case.events),
        }
        for case in cases(view, ids)
    ]
    return {**_head(view), "instances": found, **_tail(view)}


def _head(view: Inspection) -> dict[str, Any]:
    return {
        "name": view.name,
        "namespace": view.namespace,
        "appStatus": view.plan.app_status,
        "outdated": [row.id for row in view.rows if row.outdated],
    }


def _tail(view: Inspection) -> dict[str, Any]:
    explanation = explain(view.plan)
    return {
        "budget": explanation["budget"] | {"sentences": budget(view)},
        "refused": msgspec.to_builtins(explanation["refused"]),
        "events": failing_syncs(view),
        "unread": dict(view.observed.unread),
    }


def _row(row: Row) -> dict[str, Any]:
    document = asdict(row)
    document["since"] = None if row.since is None else written(row.since)
    return document
