"""Changes that a decision writes: a pod to make, to adopt, to update, to resize or to mark."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from tapp.declared.templates import Template
from tapp.pod.pod import Pod


class Create(msgspec.Struct, frozen=True, gc=False):
    """A pod to make from a template."""

    template: Template


class Adopt(msgspec.Struct, frozen=True, gc=False):
    """A pod to write our labels on."""

    pod: Pod
    template: Template


class Update(msgspec.Struct, frozen=True, gc=False):
    """A pod to bring to a template in place."""

    pod: Pod
    template: Template  # what it shall run
    images: Mapping[str, str]  # container name -> new image, for each container that restarts
    restarts: tuple[str, ...] = ()  # those of them whose image stays the same, by another name


class Resize(msgspec.Struct, frozen=True, gc=False):
    """A pod whose containers get other resources: for its subresource, not for the answer."""

    pod: Pod  # the pod, which stays as it is in the answer
    template: Template  # what it shall run
    resources: Mapping[str, Any]  # container -> its resources, whole


class HoldMarks(NamedTuple):
    """Marks that tell a pod of a hold on it; "" takes each of them back."""

    label: str = ""  # the label of pods that are on hold
    wanted: str = ""  # the annotation that says what is wanted of it
    since: str = ""  # the annotation that says since when


class Mark(msgspec.Struct, frozen=True, gc=False):
    """A pod that stays, with what it is to carry (`marks.py`)."""

    pod: Pod
    drain: str  # the annotation that asks to take it out of its Services; "" takes that back
    lost: str  # the annotation that says since when its node is lost; "" takes that back
    watched: bool  # whether its status is to be written
    tolerate: bool  # whether it is to tolerate a node that is not heard of without limit
    # whether the record of its last update goes, because that is over: the kubelet has not seen the
    # toleration for a moment, and the update would look unfinished
    forget: bool = False
    told: HoldMarks = HoldMarks()  # what it is told of a hold on it
