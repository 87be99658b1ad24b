"""The hook of the DecoratorController on pods: one pod -> its status.

Metacontroller writes `status` whole where it differs from what it observed (its documentation,
"DecoratorController", and pkg/controller/decorator). So the observed status is answered with the
one thing changed, and exactly as it was where nothing is to change.
"""

from typing import Any

import msgspec
from msgspec import Raw

from hooks.wire.decode import decoded
from hooks.wire.observe import observe_alone
from tapp.answer.pod_status import status_of_pod
from tapp.decide.pod_status import NOTHING, owner_of, pod_status
from tapp.kube import objects
from tapp.kube.depth import is_too_deep

Document = dict[str, Any]


class _Request(msgspec.Struct, frozen=True):
    object: Raw


class _Meta(msgspec.Struct, frozen=True, rename="camel"):
    labels: Any = None
    owner_references: Any = None


class _Object(msgspec.Struct, frozen=True):
    metadata: _Meta
    status: Raw = Raw(b"null")


_decode_request = msgspec.json.Decoder(_Request).decode
_decode_object = msgspec.json.Decoder(_Object).decode
_decode_status = msgspec.json.Decoder(dict[str, Any] | None).decode


def answer_pod_status(body: bytes, now: float) -> Document:
    """Answers a decorator's sync call: the pod is its `object`.

    The answer has `status`, null where it cannot be read whole, and `resyncAfterSeconds` where time
    alone may change it. Raises WireError: the request is not one.
    """
    text = decoded(_decode_request, body, "").object
    pod = observe_alone(text, "object")
    observed = decoded(_decode_object, text, "object")
    status = decoded(_decode_status, observed.status, "object.status")
    if is_too_deep(status):
        return {"status": None}  # leaves it alone: what is written is written whole
    meta = observed.metadata
    try:
        objects.decode_conditions(pod.conditions_text or b"null")  # a pod without a status has none
        wish = pod_status(pod, owner_of(meta.labels, meta.owner_references), now)
    except (msgspec.DecodeError, UnicodeDecodeError):
        wish = NOTHING
    answer: Document = {"status": status_of_pod(wish, status, pod, now)}
    if wish.wait is not None:
        answer["resyncAfterSeconds"] = wish.wait
    return answer
