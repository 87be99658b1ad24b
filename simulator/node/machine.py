"""The machine of a node: the state that all its pods share, such as the images that it has."""

import random
from dataclasses import dataclass, field

from simulator.node.container import FormatTime
from simulator.node.levers import Levers
from tapp.kube.images import canonical_name


@dataclass
class Node:
    """The state that all pods of one node share.

    Attributes:
        levers: how the containers and the kubelet of the node behave.
        rng: the source of random numbers.
        format_time: turns seconds of the simulated clock into a timestamp.
    """

    levers: Levers
    rng: random.Random
    format_time: FormatTime
    names: dict[str, str] = field(default_factory=dict)
    """Digest -> the first name by which the node knew an image; the node reports this name."""
    pulled: set[str] = field(default_factory=set)  # images that were pulled for an image volume

    def name_of(self, image: str) -> str:
        """Returns the name that the node reports for an image.

        This is the first name by which the node knew an image with the same digest.
        """
        digest = self.levers.digest(image)
        return self.names.setdefault(
            digest, self.levers.known_names.get(digest, canonical_name(image))
        )

    def spread(self, seconds: float) -> float:
        """Returns `seconds` plus a random share of them; the share is at most `Levers.jitter`."""
        return seconds * (1 + self.rng.random() * self.levers.jitter)
