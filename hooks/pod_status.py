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
from tapp.decide.pod_status import NOTHING, Wish, pod_status
from tapp.kube import objects
from tapp.pod.pod import Pod
from tapp.words.times import written
from tapp.words.vocabulary import GROUP, INSTANCE, KIND, NODE_LOST

Document = dict[str, Any]

_REASONS = {True: "NoUpdateInPlace", False: "UpdateInPlace"}
_UPDATED = "is updated in place"


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
    """Answers a decorator's sync call.

    Args:
        body: the request: the pod is its `object`.
        now: seconds since the epoch.

    Returns:
        `status`, and `resyncAfterSeconds` where time alone may change it.

    Raises:
        WireError: it is not one.
    """
    text = decoded(_decode_request, body, "").object
    pod = observe_alone(text, "object")
    observed = decoded(_decode_object, text, "object")
    status = decoded(_decode_status, observed.status, "object.status")
    wish, ours = NOTHING, _belongs(observed.metadata)
    if ours is not None and _readable(pod.conditions_text):
        wish = pod_status(pod if ours else _let_go(pod), now)
    answer: Document = {"status": _written(wish, status, pod, now)}
    if wish.wait is not None:
        answer["resyncAfterSeconds"] = wish.wait
    return answer


def _readable(conditions: bytes) -> bool:
    """Whether these are conditions at all; those of a pod without a status are."""
    try:
        objects.decode_conditions(conditions or b"null")
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return True


def _belongs(metadata: _Meta) -> bool | None:
    """Whether a TApp owns the pod; None: it is somebody else's, or never was an instance."""
    owners = metadata.owner_references if isinstance(metadata.owner_references, list) else []
    owner = next(
        (item for item in owners if isinstance(item, dict) and item.get("controller")), None
    )
    if owner is None:
        labels = metadata.labels
        return False if isinstance(labels, dict) and INSTANCE in labels else None
    ours = owner.get("kind") == KIND and str(owner.get("apiVersion")).partition("/")[0] == GROUP
    return True if ours else None


def _let_go(pod: Pod) -> Pod:
    """A pod whose TApp went and left it: nobody updates it any more, so nothing keeps it out."""
    told = msgspec.structs.replace(pod.told, drain="", lost="")
    return msgspec.structs.replace(pod, told=told, record=None)


def _written(wish: Wish, status: Document | None, pod: Pod, now: float) -> Document | None:
    """The status with what is wished for; as it was where that is nothing."""
    if not (wish.gates or wish.noted or wish.failed):
        return status
    document = status or {}
    if wish.failed:
        return {**document, "phase": "Failed", "reason": NODE_LOST, "message": wish.failed}
    conditions = [dict(item) for item in document.get("conditions") or []]
    for gate in wish.noted:
        known = next(item for item in conditions if item.get("type") == gate)
        known |= {"lastProbeTime": written(now), "observedGeneration": pod.generation}
    for gate, is_open in wish.gates.items():
        changed = {
            "type": gate,
            "status": str(is_open),
            "reason": _REASONS[is_open],
            "message": f"runs revision {pod.told.template_hash}" if is_open else _UPDATED,
            "lastTransitionTime": written(now),
        }
        places = [i for i, item in enumerate(conditions) if item.get("type") == gate]
        if places:
            conditions[places[0]] = changed
        else:
            conditions.append(changed)
    return {**document, "conditions": conditions}
