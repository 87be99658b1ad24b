"""The writes to a pod that a decision may contain: create, adopt, update, resize or mark a pod."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from tapp.declared.templates import Template
from tapp.pod.pod import Pod


class Create(msgspec.Struct, frozen=True, gc=False):
    """The creation of an instance's pod from a template."""

    template: Template


class Adopt(msgspec.Struct, frozen=True, gc=False):
    """The labels of this service for a pod that already corresponds to its template.

    Nothing else of the pod changes. Another controller has created such a pod, or its template was
    written in another form.
    """

    pod: Pod
    template: Template


class Update(msgspec.Struct, frozen=True, gc=False):
    """An update in place: the labels, annotations and images of `template` for an existing pod."""

    pod: Pod
    template: Template
    images: Mapping[str, str]  # container name -> new image, for each container that restarts
    # those of them that keep their image and restart because it is written by another name
    restarts: tuple[str, ...] = ()


class Resize(msgspec.Struct, frozen=True, gc=False):
    """New resources for containers of a running pod, through the pod's subresource `resize`.

    The response of the hook leaves the pod unchanged; the service sends the patch itself.
    """

    pod: Pod
    template: Template
    resources: Mapping[str, Any]  # container name -> all its resources


class HoldMarkers(NamedTuple):
    """The label and annotations that the service writes to a pod on hold.

    They tell a user or a program what the service will do with the pod when the hold is removed,
    and keep autoscalers from removing the pod's node. An empty value stands for a label or
    annotation that the pod does not have.
    """

    label: str = ""  # the label of pods that are on hold
    wanted: str = ""  # the annotation with the pending action
    since: str = ""  # the annotation that says since when the action is pending
    autoscalers: tuple[str, ...] = ()  # keys of the annotations for autoscalers


class Mark(msgspec.Struct, frozen=True, gc=False):
    """Labels, annotations and a toleration for a pod that otherwise stays as it is.

    By these *markers* the service requests an action of its pod-status hook, such as taking the pod
    out of its Services. A marker never restarts a container (`markers.py`).
    """

    pod: Pod
    drain: str  # the annotation that takes the pod out of its Services; "" removes it
    lost: str  # the annotation that says since when the pod's node is lost; "" removes it
    watched: bool  # whether the pod-status hook has to look at the pod
    tolerate: bool  # whether the pod gets a toleration without time limit for a silent node
    # True if the record of the last update is removed because that update is over. Otherwise a new
    # toleration, which the kubelet sees a moment later, would make the update look unfinished.
    forget: bool = False
    hold: HoldMarkers = HoldMarkers()
