"""The hook of the DecoratorController for pods: decides on the status of one pod.

Metacontroller replaces the pod's whole status by the one in the response if they differ (its
documentation, "DecoratorController", and pkg/controller/decorator).
"""

from typing import Any

import msgspec
from msgspec import Raw

from hooks.wire.decode import decoded
from hooks.wire.observe import observe_alone
from tapp.answer.changed_status import status_of_pod
from tapp.decide.status_change import NOTHING, owner_of, pod_status
from tapp.kube import objects
from tapp.kube.depth import is_too_deep

Document = dict[str, Any]


class _Request(msgspec.Struct, frozen=True):
    """A request of the DecoratorController; `object` is the JSON of a pod."""

    object: Raw


class _Meta(msgspec.Struct, frozen=True, rename="camel"):
    """The labels and the ownerReferences of a pod, of any shape."""

    labels: Any = None
    owner_references: Any = None


class _Object(msgspec.Struct, frozen=True):
    """The labels, the ownerReferences and the status in the JSON of a pod."""

    metadata: _Meta
    status: Raw = Raw(b"null")


_decode_request = msgspec.json.Decoder(_Request).decode
_decode_object = msgspec.json.Decoder(_Object).decode
_decode_status = msgspec.json.Decoder(dict[str, Any] | None).decode


def answer_pod_status(body: bytes, now: float) -> Document:
    """Handles a sync call of the DecoratorController about one pod.

    The response has `status`. If the passing of time may change the status, it also has
    `resyncAfterSeconds`. Raises WireError if the body is no such request.

    Args:
        body: the body of the request; its `object` is the pod.
        now: the time in seconds since the epoch.
    """
    text = decoded(_decode_request, body, "").object
    pod = observe_alone(text, "object")
    observed = decoded(_decode_object, text, "object")
    status = decoded(_decode_status, observed.status, "object.status")
    if is_too_deep(status):
        # A part of the status is lost, so Metacontroller must not write it: null changes nothing.
        return {"status": None}
    meta = observed.metadata
    try:
        objects.decode_conditions(pod.conditions_text or b"null")  # also for a pod without a status
        change = pod_status(pod, owner_of(meta.labels, meta.owner_references), now)
    except (msgspec.DecodeError, UnicodeDecodeError):
        change = NOTHING
    answer: Document = {"status": status_of_pod(change, status, pod, now)}
    if change.wait is not None:
        answer["resyncAfterSeconds"] = change.wait
    return answer
