"""An update in place: what it sets, what stands in its way, and what it records on the pod.

Containers restart for another image, or because their metadata says so (`tapp/declared/reads.py`):
these are started again with the image that they run, by another name of it. When they are updated
is in `inplace.py`.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from tapp.declared.metadata import Metadata
from tapp.declared.reads import restarting
from tapp.declared.templates import Template
from tapp.kube.images import pinned, runs_image
from tapp.kube.objects import InPlaceRecord, RanImage, encode_record
from tapp.pod.inplace import Progress
from tapp.pod.pod import Pod, PodSpec
from tapp.words.quoted import quoted, short
from tapp.words.times import written
from tapp.words.vocabulary import TEMPLATE_HASH


def changed_images(spec: PodSpec, template: Template) -> dict[str, str]:
    """Container name -> new image, for the containers whose image an in-place update sets.

    What the template said when the pod was last written is compared with what it says now, so that
    a container whose image admission rewrote is left alone unless its own template changed. Without
    that record (an adopted pod) the pod's own spec is compared. By name, never by index.
    """
    return {
        name: image
        for name, image in template.images.items()
        if spec.images.get(name) != image and spec.template_images.get(name) != image
    }


def edited(pod: Pod) -> str:
    """Images that somebody else has set in a pod that runs its template; "" where none are known.

    An image that differs from the template's may also be the work of admission (a mirror), which
    belongs to whoever sent the request.
    """
    spec = pod.spec
    return ", ".join(
        f"container {short(name)} has image {short(spec.images[name])}, set by "
        f"{short(pod.image_writers[name])}, and its template {short(image)}"
        for name, image in spec.template_images.items()
        if name in pod.image_writers and spec.images.get(name, image) != image
    )


def restarts_of(spec: PodSpec, template: Template, before: Metadata | None) -> list[str]:
    """The containers that shall start again, with whatever image: by their template, or asked for.

    Of those that the template has; what else is in the pod is somebody else's. `before` has the
    labels and annotations of the template that the pod was made of, None if that is not known: what
    has not changed since is not written, whatever the pod has.
    """
    asked = [n for n in template.images if "" in spec.asked or n in spec.asked]
    # What reads the revision itself may keep the one that the same template had.
    renamed = spec.template_hash == template.other_revision != template.revision
    reading = {} if renamed else restarting(spec.reads, template.reads)
    if before is not None:
        now = Metadata(template.labels, template.annotations)
        reading = {
            name: entries
            for name, entries in reading.items()
            if any(_is_changed(entry, before, now) for entry in entries)
        }
    return list(dict.fromkeys([*reading, *asked]))


def _is_changed(entry: str, before: Metadata, now: Metadata) -> bool:
    """Returns True if an update writes an entry of the metadata (`labels/app`)."""
    part, _, key = entry.partition("/")
    return key == TEMPLATE_HASH or before.of(part).get(key) != now.of(part).get(key)


class Restart(NamedTuple):
    """The way to start containers once more with the image that they run."""

    images: Mapping[str, str]  # container -> another name of its image
    waits: str = ""  # why that has to wait, or ""
    obstacle: str = ""  # why it cannot be done in place, or ""


def plan_restart(
    pod: Pod, names: Iterable[str], update: Progress, images: Mapping[str, str]
) -> Restart:
    """Finds how to start these containers once more, none with another image's content.

    `images` are set at the same time: what mends a pod does not wait for what does not run.
    """
    found = {}
    for name in names:
        asked, status = pod.spec.images[name], pod.container(name)
        if not status.container_id or (name in update.unfinished and status.now.running is None):
            why = f"container {quoted(name)} does not run"
            return Restart({}, obstacle=why) if images else Restart({}, waits=f"{why} yet")
        if name in update.unfinished or pod.kubelet_is_behind:
            return Restart({}, waits=f"the last update of container {quoted(name)} is not finished")
        known = runs_image(asked, status.image, status.image_id)
        names = pinned(asked, status.image_id, pod.spec.template_images.get(name, ""))
        other = [text for text in names if known and text != asked]
        if not other:
            return Restart(
                {}, obstacle=f"the digest of container {quoted(name)}'s image is not known"
            )
        found[name] = other[0]
    return Restart(found)


def obstacle_to(names: Iterable[str], pod: Pod) -> str:
    """The obstacle to a restart in place where nothing else differs; "" if there is none."""
    spec = pod.spec
    if spec.unmergeable:
        return (
            f"Metacontroller cannot merge {short(spec.unmergeable)} (two entries of one merge key)"
        )
    for name in (names := list(names)):
        if name not in spec.images:
            return f"its pod has no container {quoted(name)}"
    for name in names:
        ended = pod.container(name).now.terminated
        if ended is not None and not spec.starts_again(name, ended.exit_code):
            return (
                f"container {quoted(name)} has terminated and the kubelet would not start it again"
            )
    return ""


def record_of(  # noqa: PLR0913, PLR0917 - what is known of the update
    pod: Pod,
    revision: str,
    images: Mapping[str, str],
    restarts: Iterable[str],
    update: Progress,
    now: float,
) -> str:
    """The annotation for an update, as sorted JSON: what is to be replaced, and since when.

    `restarts` are those of `images` that stay the same, by another name; `update` is the last one.
    """
    containers = dict(update.unfinished)
    for name in images:
        containers[name] = _replaced(pod, name, update.unfinished.get(name))
    for name in restarts:
        if pod.container(name).now.running is None:  # the kubelet may be starting it as it was
            ran = containers[name]
            containers[name] = RanImage(ran.id, ran.image, [pod.spec.images[name]])
        containers[name] = msgspec.structs.replace(containers[name], again=True)
    at = "" if pod.tells_generation else written(now)
    return encode_record(InPlaceRecord(at, containers, dict(pod.spec.requests)), revision)


def _replaced(pod: Pod, name: str, before: RanImage | None) -> RanImage:
    """The entry of a container in the record: what it runs now, and what may follow first."""
    status, asked = pod.container(name), pod.spec.images[name]
    id = status.container_id or ""
    if before is None:
        # A kubelet that is behind has not seen somebody else's change: what it runs is not known.
        return RanImage(id, "" if pod.kubelet_is_behind else asked)
    overtaken = [image for image in before.overtaken if image != asked] + [asked]
    if id and id == before.id:
        return RanImage(id, before.image, overtaken[-_MOST_OVERTAKEN:])
    image = asked if runs_image(asked, status.image, status.image_id) else ""
    return RanImage(id, image, overtaken[-_MOST_OVERTAKEN:])


_MOST_OVERTAKEN = 3  # Images of overtaken writes in a record: a worker is one spec behind
