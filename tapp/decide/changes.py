"""Changes that a decision writes: it creates, adopts, updates, resizes or marks a pod."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from tapp.declared.templates import Template
from tapp.pod.pod import Pod


class Create(msgspec.Struct, frozen=True, gc=False):
    """Creates a pod from a template."""

    template: Template


class Adopt(msgspec.Struct, frozen=True, gc=False):
    """Writes our labels on a pod that the template already describes."""

    pod: Pod
    template: Template


class Update(msgspec.Struct, frozen=True, gc=False):
    """Brings a pod to a template in place."""

    pod: Pod
    template: Template
    images: Mapping[str, str]  # container name -> new image, for each container that restarts
    # those of them that keep their image and restart because it is written by another name
    restarts: tuple[str, ...] = ()


class Resize(msgspec.Struct, frozen=True, gc=False):
    """Changes the resources of containers through the subresource `resize`.

    The pod stays as it is in the answer; the service sends the patch itself.
    """

    pod: Pod
    template: Template
    resources: Mapping[str, Any]  # container name -> all its resources


class HoldMarkers(NamedTuple):
    """The markers on a pod about its hold; "" removes a marker."""

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
