"""`kubectl apply` of the stand-in: what either way makes of a file, and how a refusal reads."""

import contextlib
import json
from collections.abc import Iterable, Iterator
from typing import Any

from demo.kubectl import RefusedError
from simulator.api.store import ApiError
from simulator.objects.objects import annotations_of, with_meta
from tapp.kube.merges import KUBECTL_APPLIED, kubectl_applied

Document = dict[str, Any]


def by_server(live: Document, last: Document, document: Document) -> Document:
    """A server-side apply: what the manager applied last, and applies no more, goes.

    As in kubectl's dry run: what was applied by the client is not handed over.
    """
    notes = annotations_of(live)
    known = with_meta(live, annotations={**notes, KUBECTL_APPLIED: json.dumps(last)})
    merged = kubectl_applied(known, document)
    return dict(with_meta(merged, annotations={**annotations_of(merged), **notes}))


def managed(live: Document, managers: Iterable[str]) -> Document:
    """A TApp with managed fields: who applied by the server did it after the client."""
    found: list[Document] = [
        {"manager": manager, "operation": "Apply", "time": "2026-01-05T12:00:00Z"}
        for manager in managers
    ]
    if KUBECTL_APPLIED in annotations_of(live):
        at = "2026-01-05T11:00:00Z"
        fields = {"f:metadata": {"f:annotations": {f"f:{KUBECTL_APPLIED}": {}}}}
        found.append(
            {
                "manager": "kubectl-client-side-apply",
                "operation": "Update",
                "time": at,
                "fieldsV1": fields,
            }
        )
    return dict(with_meta(live, managedFields=found))


@contextlib.contextmanager
def in_its_words(document: Document) -> Iterator[None]:
    """A refusal comes behind the whole patch. Source: k8s.io/kubectl, `AddSourceToErr`."""
    try:
        yield
    except ApiError as error:
        where = f'Resource: "tapps"\nName: "web"\nfor: "STDIN": {error}'
        text = f"error when applying patch:\n{json.dumps(document, indent=1)}\nto:\n{where}"
        raise RefusedError(f"Error from server ({error.reason}): {text}") from None
