"""The documents of `status` and `why`, for programs."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import msgspec

from hooks.explain import explain
from kubectl_tapp.decide.events import failing_syncs
from kubectl_tapp.decide.look import Look, Row
from kubectl_tapp.decide.phrases import budget
from kubectl_tapp.show.status import waiting
from kubectl_tapp.show.why import cases
from tapp.words.times import written


def status_document(look: Look) -> dict[str, Any]:
    """All of `status`: a row an instance, the budget, what waits for what."""
    return {
        **_head(look),
        "instances": [_row(row) for row in look.rows],
        "waits": [{"instances": ids, "message": text} for text, ids in waiting(look)],
        **_tail(look),
    }


def why_document(look: Look, ids: Iterable[int]) -> dict[str, Any]:
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
        for case in cases(look, ids)
    ]
    return {**_head(look), "instances": found, **_tail(look)}


def _head(look: Look) -> dict[str, Any]:
    return {
        "name": look.name,
        "namespace": look.namespace,
        "appStatus": look.plan.app_status,
        "outdated": [row.id for row in look.rows if row.outdated],
    }


def _tail(look: Look) -> dict[str, Any]:
    explanation = explain(look.plan)
    return {
        "budget": msgspec.to_builtins(explanation.budget) | {"sentences": budget(look)},
        "refused": msgspec.to_builtins(explanation.refused),
        "events": failing_syncs(look),
        "unread": dict(look.observed.unread),
    }


def _row(row: Row) -> dict[str, Any]:
    document = asdict(row)
    document["since"] = None if row.since is None else written(row.since)
    return document
