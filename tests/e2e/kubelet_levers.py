"""What a test can make the fake kubelet do: delays, failures, and their defaults."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field


@dataclass
class Levers:
    """How containers behave. Change the attributes at any time; they count from the next step on.

    Images are named as the pod's spec spells them, pods as `namespace/name`.
    """

    pull_seconds: float = 0.05
    pulls: dict[str, float] = field(default_factory=dict)
    """Seconds that pulling this image takes, instead of `pull_seconds`."""
    start_seconds: float = 0.05
    ready_seconds: float = 0.0
    init_seconds: float = 0.05
    stop_seconds: float = 0.1
    stop_code: int = 0
    """Exit code of a container that was asked to stop."""
    bad_images: set[str] = field(default_factory=set)
    """Images whose pull fails (ErrImagePull, ImagePullBackOff) while they are in here."""
    unready_images: set[str] = field(default_factory=set)
    """Images whose containers run and never become ready."""
    crashing: dict[str, int] = field(default_factory=dict)
    """Images whose containers exit with this code `crash_seconds` after they started."""
    crash_seconds: float = 0.2
    init_codes: dict[str, int] = field(default_factory=dict)
    """Exit codes of init containers by image; 0 where none is given."""
    backoff_seconds: float = 0.5
    backoff_limit: float = 4.0
    digests: dict[str, str] = field(default_factory=dict)
    """Image to digest, for two names of one image; other images have digests of their own."""
    silent_pulls: bool = False
    """As a real kubelet: while a container is replaced its pod worker is busy, and the API keeps
    showing the old container, running and ready, until the pull has ended."""
    refuse: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Pods that the kubelet refuses on arrival: (reason, message)."""
    hang_deletion: set[str] = field(default_factory=set)
    """Pods that stay Terminating while they are in here (then call `FakeKubelet.poke`)."""

    def reset(self) -> None:
        """Puts every lever back to rest."""
        vars(self).update(vars(Levers()))

    def pull_time(self, image: str) -> float:
        """How long pulling this image takes."""
        return self.pulls.get(image, self.pull_seconds)

    def backoff(self, failures: int) -> float:
        """How long to wait after this many failures in a row (from 1 on)."""
        return float(min(self.backoff_seconds * 2 ** (failures - 1), self.backoff_limit))

    def image_id(self, image: str) -> str:
        """The imageID of a container that runs this image."""
        digest = self.digests.get(image) or hashlib.sha256(normal(image).encode()).hexdigest()
        repository = re.sub(r"(:[^/:]*)?(@.*)?$", "", normal(image))
        return f"{repository}@sha256:{digest.removeprefix('sha256:')}"


def normal(image: str) -> str:
    """The image name as a container runtime reports it: nginx is docker.io/library/nginx:latest."""
    first, slash, _ = image.partition("/")
    if not slash:
        image = f"docker.io/library/{image}"
    elif "." not in first and ":" not in first and first != "localhost":
        image = f"docker.io/{image}"
    last = image.rpartition("/")[2]
    return image if ":" in last or "@" in last else f"{image}:latest"
