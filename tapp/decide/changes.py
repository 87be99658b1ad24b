"""The writes of a decision: it creates, adopts, updates, resizes or marks a pod."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from tapp.declared.templates import Template
from tapp.pod.pod import Pod


class Create(msgspec.Struct, frozen=True, gc=False):
    """Creates a pod from a template."""

    template: Template


class Adopt(msgspec.Struct, frozen=True, gc=False):
    """Writes this service's labels on a pod that already corresponds to its template."""

    pod: Pod
    template: Template


class Update(msgspec.Struct, frozen=True, gc=False):
    """Updates a pod to a template in place."""

    pod: Pod
    template: Template
    images: Mapping[str, str]  # container name -> new image, for each container that restarts
    # those of them that keep their image and restart because it is written by another name
    restarts: tuple[str, ...] = ()


class Resize(msgspec.Struct, frozen=True, gc=False):
    """Changes the resources of containers through the subresource `resize`.

    The response leaves the pod unchanged; the service sends the patch itself.
    """

    pod: Pod
    template: Template
    resources: Mapping[str, Any]  # container name -> all its resources


class HoldMarkers(NamedTuple):
    """The label and annotations on a pod that describe its hold; an empty value removes one."""

    label: str = ""  # the label of pods that are on hold
    wanted: str = ""  # the annotation with the pending action
    since: str = ""  # the annotation that says since when the action is pending


class Mark(msgspec.Struct, frozen=True, gc=False):
    """Writes markers on a pod that stays (`markers.py`)."""

    pod: Pod
    drain: str  # the annotation that takes the pod out of its Services; "" removes it
    lost: str  # the annotation that says since when the pod's node is lost; "" removes it
    watched: bool  # whether the pod-status hook has to look at the pod
    tolerate: bool  # whether the pod gets a toleration without time limit for a silent node
    # True if the record of the last update is removed because that update is over. Otherwise a new
    # toleration, which the kubelet sees a moment later, would make the update look unfinished.
    forget: bool = False
    hold: HoldMarkers = HoldMarkers()
