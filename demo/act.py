"""Acts, and the world that their goals look at."""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

from demo.stage import Stage, is_ready

Spec = dict[str, Any]


@dataclass(frozen=True)
class Goal:
    """A goal of an act: its words, and its test."""

    text: str
    reached: bool


Play = Generator[Spec | None, None, list[Goal]]


@dataclass(frozen=True)
class Act:
    """One change and what a person should know before it."""

    title: str
    text: str
    play: Callable[[Stage], Play]
    brief: bool = False  # True if it belongs to the few that show why TApp exists


def ready(stage: Stage) -> set[int]:
    """Instances whose pod is Ready."""
    return {number for number, pod in stage.pods.items() if is_ready(pod)}


def images(stage: Stage) -> dict[int, str]:
    """Instance -> the image that its container runs."""
    return {
        number: status["image"].removeprefix("docker.io/library/")
        for number, pod in stage.pods.items()
        for status in pod["status"].get("containerStatuses") or []
    }


def complete(stage: Stage) -> Goal:
    """The status says so, too."""
    condition = stage.condition("Ready")
    return Goal("the status condition Ready is True", condition.get("status") == "True")
