"""Changes pods as a kubelet or a user does."""

from collections.abc import Callable

from tests.builders import Document


def with_digest(pod: Document) -> Document:
    """Returns the pod with a digest of its image in the status of its only container."""
    (status,) = pod["status"]["containerStatuses"]
    name = pod["spec"]["containers"][0]["image"].partition(":")[0]
    status = {**status, "imageID": f"docker.io/library/{name}@sha256:{'a' * 64}"}
    return {**pod, "status": {**pod["status"], "containerStatuses": [status]}}


def annotated(key: str, text: str) -> Callable[[Document], Document]:
    """Returns a function that sets an annotation of a pod."""

    def change(pod: Document) -> Document:
        notes = {**pod["metadata"]["annotations"], key: text}
        return {**pod, "metadata": {**pod["metadata"], "annotations": notes}}

    return change
