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

    Nothing else of the pod changes. Such a pod was created by another controller, or from a
    template that described the same pod in another notation.
    """

    pod: Pod
    template: Template


class Update(msgspec.Struct, frozen=True, gc=False):
    """An update in place: the labels, annotations and images of `template` for an existing pod."""

    pod: Pod
    template: Template
    images: Mapping[str, str]  # container name -> new image, for each container that restarts
    # Names of the containers in `images` that keep their image and only have to restart: `images`
    # has another name of the same image for them
    restarts: tuple[str, ...] = ()


class Resize(msgspec.Struct, frozen=True, gc=False):
    """New resources for containers of a running pod, through the pod's subresource `resize`.

    The response of the hook leaves the pod unchanged; the service sends the patch itself.
    """

    pod: Pod
    template: Template
    resources: Mapping[str, Any]  # container name -> its complete `resources` after the resize


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
    """Labels, annotations and a toleration to write to a pod; nothing else of the pod changes.

    These *markers* request an action, such as taking the pod out of its Services. The hook
    `/pod-status` of this service carries out the action. A marker never restarts a container
    (`markers.py`).
    """

    pod: Pod
    drain: str  # the annotation that takes the pod out of its Services; "" removes it
    lost: str  # the annotation that says since when the pod's node is lost; "" removes it
    watched: bool  # True if the pod gets the label that selects it for the hook `/pod-status`
    tolerate: bool  # True if the pod gets a toleration, without time limit, of a silent node
    # True if the record of the last update in place is removed because that update is over. With
    # the record, the update would look unfinished until the kubelet has seen the new toleration.
    forget: bool = False
    hold: HoldMarkers = HoldMarkers()  # the label and annotations about a hold on the pod
