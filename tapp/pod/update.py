"""An update in place: the containers that it changes, its obstacles, and the record that it writes.

An update in place changes the images of containers, and the kubelet restarts these. Some containers
have to restart without a new image: the template requests it, or their environment reads metadata
that changes (`tapp/declared/reads.py`). They get another name of the image that they run. A record
on the pod says which containers the update replaces. `inplace.py` reads the record to decide when
the update is finished.
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
    """Returns container name -> new image, for the images that an update in place changes.

    An image is changed if the template's image differs from the one at the last write
    (`template_images`). So an image that admission has rewritten stays until the template changes
    it. Without that annotation (an adopted pod) the template is compared with the pod's own image.
    `spec` is the pod's spec.
    """
    return {
        name: image
        for name, image in template.images.items()
        if spec.images.get(name) != image and spec.template_images.get(name) != image
    }


def edited_images(pod: Pod) -> str:
    """Returns a text that names the images which another writer has set; empty if there are none.

    The caller has checked that the pod has the revision of its template. Images without a known
    writer are left out. Admission may have changed them, for example to a mirror, and managed
    fields attribute such a change to the sender of the request.
    """
    spec = pod.spec
    return ", ".join(
        f"container {short(name)} has image {short(spec.images[name])}, set by "
        f"{short(pod.image_writers[name])}, and its template has {short(image)}"
        for name, image in spec.template_images.items()
        if name in pod.image_writers and spec.images.get(name, image) != image
    )


def restarts_of(spec: PodSpec, template: Template, before: Metadata | None) -> list[str]:
    """Returns the containers that have to restart even if their image stays the same.

    A container has to restart if the template or an annotation on the pod requests that, or if its
    environment reads metadata that the update changes. Containers that the template lacks are left
    out.

    Args:
        spec: the pod's spec.
        template: the template that the update brings the pod to.
        before: labels and annotations of the template that the pod was created from; None if
            unknown. If a key has the same value in both templates, the update does not write it and
            no container restarts for it, even if the pod has another value.
    """
    requested = [
        n for n in template.images if "" in spec.pending_requests or n in spec.pending_requests
    ]
    # The two revisions differ only in whether resources count, so the template itself is the same.
    # A container that reads the revision label need not restart for that.
    only_revision_differs = spec.template_hash == template.other_revision != template.revision
    by_metadata = {} if only_revision_differs else restarting(spec.reads, template.reads)
    if before is not None:
        now = Metadata(template.labels, template.annotations)
        by_metadata = {
            name: entries
            for name, entries in by_metadata.items()
            if any(_is_written(entry, before, now) for entry in entries)
        }
    return list(dict.fromkeys([*by_metadata, *requested]))


def _is_written(entry: str, before: Metadata, now: Metadata) -> bool:
    """Returns True if an update writes this label or annotation.

    Args:
        entry: the label or annotation, such as `labels/app`.
        before: labels and annotations of the template that the pod was created from.
        now: labels and annotations of the new template.
    """
    part, _, key = entry.partition("/")
    return key == TEMPLATE_HASH or before.of(part).get(key) != now.of(part).get(key)


class Restart(NamedTuple):
    """The restart of containers in place, or the reason why they cannot restart now.

    The service gives each container another name of the same image. The kubelet then restarts it.
    """

    # Container name -> another name of its image; empty if the restart is not possible now.
    images: Mapping[str, str]
    delay: str = ""  # Reason why the restart has to wait; empty if it need not.
    obstacle: str = ""  # Reason why the restart is not possible in place; empty if it is.


def plan_restart(
    pod: Pod, names: Iterable[str], update: Progress, images: Mapping[str, str]
) -> Restart:
    """Returns the images with which the kubelet restarts containers without changing their image.

    Args:
        pod: the pod.
        names: the containers that restart and keep their image.
        update: the progress of the pod's last update in place.
        images: container name -> new image that the same update sets. If there are any, the update
            may be the repair of a broken pod. So a restart then does not wait for a container that
            does not run: such a container is an obstacle to the update in place.
    """
    found = {}
    for name in names:
        image_in_spec, status = pod.spec.images[name], pod.container(name)
        # A container that was stopped for an update and does not run again has no digest that could
        # be used.
        if not status.container_id or (name in update.unfinished and status.now.running is None):
            why = f"container {quoted(name)} does not run"
            return Restart({}, obstacle=why) if images else Restart({}, delay=f"{why} yet")
        if name in update.unfinished or pod.kubelet_is_behind:
            return Restart({}, delay=f"the last update of container {quoted(name)} is not finished")
        # The digest in the status can be used only if it is the digest of the image that the spec
        # names.
        known = runs_image(image_in_spec, status.image, status.image_id)
        names = pinned(image_in_spec, status.image_id, pod.spec.template_images.get(name, ""))
        # The kubelet restarts a container only if the text of its image changes.
        spellings = [text for text in names if known and text != image_in_spec]
        if not spellings:
            return Restart(
                {}, obstacle=f"the digest of container {quoted(name)}'s image is not known"
            )
        found[name] = spellings[0]
    return Restart(found)


def obstacle_to(names: Iterable[str], pod: Pod) -> str:
    """Returns why the given containers cannot restart in place, or an empty string.

    The caller has checked that an update in place can make all other changes of the template.
    `names` are the containers that the update restarts.
    """
    spec = pod.spec
    if spec.unmergeable:
        return (
            f"Metacontroller cannot merge {short(spec.unmergeable)} "
            "(two entries with the same merge key)"
        )
    for name in (names := list(names)):
        if name not in spec.images:
            return f"its pod has no container {quoted(name)}"
    for name in names:
        # The kubelet does not restart an ended container for a new image: it follows the restart
        # policy (pkg/kubelet/container/helpers.go, ShouldContainerBeRestarted).
        ended = pod.container(name).now.terminated
        if ended is not None and not spec.starts_again(name, ended.exit_code):
            return (
                f"container {quoted(name)} has terminated and the kubelet would not start it again"
            )
    return ""


def record_of(  # noqa: PLR0913, PLR0917 - independent inputs
    pod: Pod,
    revision: str,
    images: Mapping[str, str],
    restarts: Iterable[str],
    update: Progress,
    now: float,
) -> str:
    """Returns the record of an update in place as JSON, for an annotation of the pod.

    The record has the containers before the update. Later syncs compare the pod with it.

    Args:
        pod: the pod before the update.
        revision: the revision that the update brings the pod to.
        images: container name -> new image, for all containers that the update restarts.
        restarts: the containers of `images` that only get another name of the image that they run.
        update: the progress of the pod's previous update.
        now: the time of this sync, in seconds since the epoch.
    """
    containers = dict(update.unfinished)
    for name in images:
        containers[name] = _container_record(pod, name, update.unfinished.get(name))
    for name in restarts:
        # The kubelet may be starting this container by the old spec, under the old name of the
        # image.
        if pod.container(name).now.running is None:
            ran = containers[name]
            containers[name] = RanImage(ran.id, ran.image, [pod.spec.images[name]])
        containers[name] = msgspec.structs.replace(containers[name], again=True)
    # The time of the write matters only if `observedGeneration` is missing.
    at = "" if pod.reports_generation else written(now)
    return encode_record(InPlaceRecord(at, containers, dict(pod.spec.restart_requests)), revision)


def _container_record(pod: Pod, name: str, before: RanImage | None) -> RanImage:
    """Returns a container's entry in the record of an update: its image and the overtaken images.

    An overtaken image was requested by an update before this one, and the kubelet may still start
    it before the new image.

    Args:
        pod: the pod before the update.
        name: the name of the container.
        before: the container's entry in the unfinished previous update; None if that is finished.
    """
    status, image_in_spec = pod.container(name), pod.spec.images[name]
    id = status.container_id or ""
    if before is None:
        # The kubelet has not seen the newest spec, so the container may still run an older image.
        return RanImage(id, "" if pod.kubelet_is_behind else image_in_spec)
    # The image of the previous update may still be started before the one of this update.
    overtaken = [image for image in before.overtaken if image != image_in_spec] + [image_in_spec]
    if id and id == before.id:
        return RanImage(id, before.image, overtaken[-_MAX_OVERTAKEN:])
    # Another container than the recorded one: its image is known only if the status names the
    # wanted one.
    image = image_in_spec if runs_image(image_in_spec, status.image, status.image_id) else ""
    return RanImage(id, image, overtaken[-_MAX_OVERTAKEN:])


# Overtaken images that a record keeps. A pod worker is at most one spec behind, so these are
# enough.
_MAX_OVERTAKEN = 3
