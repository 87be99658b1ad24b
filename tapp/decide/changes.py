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
    """A pod to bring to a template in place.

    Attributes:
        pod: the pod.
        template: what it shall run.
        images: container name -> new image, for each container that restarts.
        restarts: those of them whose image stays the same, by another name.
    """

    pod: Pod
    template: Template
    images: Mapping[str, str]
    restarts: tuple[str, ...] = ()


class Resize(msgspec.Struct, frozen=True, gc=False):
    """A pod whose containers are to have other resources: for its subresource, not for the answer.

    Attributes:
        pod: the pod, which stays as it is in the answer.
        template: what it shall run.
        resources: container -> its resources, whole.
    """

    pod: Pod
    template: Template
    resources: Mapping[str, Any]


class HoldMarks(NamedTuple):
    """Marks that tell a pod of a hold on it; "" takes each of them back.

    Attributes:
        label: the label of pods that are on hold.
        wanted: the annotation that says what is wanted of it.
        since: the annotation that says since when.
    """

    label: str = ""
    wanted: str = ""
    since: str = ""


class Mark(msgspec.Struct, frozen=True, gc=False):
    """A pod that stays, with what it is to carry (`marks.py`).

    Attributes:
        pod: the pod.
        drain: the annotation that asks to take it out of its Services; "" takes that back.
        lost: the annotation that says since when its node is lost; "" takes that back.
        watched: whether its status is to be written.
        tolerate: whether it is to tolerate a node that is not heard of without limit.
        forget: whether the record of its last update goes, because that is over: the kubelet has
            not seen the toleration for a moment, and the update would look unfinished.
        told: what it is told of a hold on it.
    """

    pod: Pod
    drain: str
    lost: str
    watched: bool
    tolerate: bool
    forget: bool = False
    told: HoldMarks = HoldMarks()
