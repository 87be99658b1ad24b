"""Implements `kubectl apply` for the fake kubectl: client-side, server-side, and kubectl's text of
a refusal.
"""

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
    """Returns the object `live` after a server-side apply of `document`.

    `last` is the document that the same field manager applied last; fields that are no longer in
    the document are removed. As in kubectl's dry run, fields of a client-side apply are not taken
    over.
    """
    notes = annotations_of(live)
    known = with_meta(live, annotations={**notes, KUBECTL_APPLIED: json.dumps(last)})
    merged = kubectl_applied(known, document)
    return dict(with_meta(merged, annotations={**annotations_of(merged), **notes}))


def managed(live: Document, managers: Iterable[str]) -> Document:
    """Returns the TApp with managed fields, as if these field managers had applied it on the server
    side.

    The entry of a client-side apply, if there is one, is older.
    """
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
def refused_as_by_kubectl(document: Document) -> Iterator[None]:
    """Turns an error of the API server within the block into kubectl's message, which contains the
    patch.

    Source: k8s.io/kubectl, `AddSourceToErr`.
    """
    try:
        yield
    except ApiError as error:
        where = f'Resource: "tapps"\nName: "web"\nfor: "STDIN": {error}'
        text = f"error when applying patch:\n{json.dumps(document, indent=1)}\nto:\n{where}"
        raise RefusedError(f"Error from server ({error.reason}): {text}") from None
