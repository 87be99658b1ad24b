"""Short stories of plain pods for a real kubelet and the fake one, and their comparison.

The container's environment (`realnode/images.py`) and the tag of its image decide what it does. The
fake kubelet's levers read both. The steps are seconds apart, so that a busy machine changes the
times of events, but not their order.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from simulator.objects.objects import Object
from tapp.kube.restarts import COMPLETED

from .kube import Json
from .kubelet_controls import Levers
from .pods import is_ready
from .realnode.images import BEHAVIOURS, app
from .realnode.workloads import BOOT, PROBE, container, environment, real_spec

SETTLED = 7.0
"""Seconds after which an edit has taken effect, in addition to the time that the container needs to
stop.
"""
PATIENT = PROBE | {"periodSeconds": 4, "failureThreshold": 30}
SAME = (app("2"), app("2-again"))


@dataclass(frozen=True)
class Event:
    """An action on the pod, `after` seconds after the previous one."""

    after: float
    tag: str = ""
    """The tag of the new image; empty if the process is killed."""


@dataclass(frozen=True)
class Story:
    """The life of a pod, from its start to the end of the story."""

    number: int
    what: str
    events: tuple[Event, ...]
    lasts: float = SETTLED
    """Seconds between the last event and the end."""
    first: str = "1"
    policy: str = "Always"
    grace: int = 12
    env: tuple[tuple[str, str], ...] = ()
    probes: Json = field(default_factory=dict)
    own: Json = field(default_factory=dict)
    """The container's own restart policy and rules."""

    def __str__(self) -> str:
        events = ", ".join(f"+{each.after:g} {each.tag or 'kill'}" for each in self.events)
        policy = f"{self.policy} {self.own or ''}".strip()
        return f"{self.number} {self.what} [{policy} {dict(self.env)} {self.first} {events}]"

    def spec(self, **more: Any) -> Json:
        """Returns the pod's spec."""
        env = environment(**dict(self.env))
        one = container(self.first, env=env, **self.probes, **self.own)
        grace = {"terminationGracePeriodSeconds": self.grace, "restartPolicy": self.policy}
        return real_spec(one, **grace, **more)


def story(number: int) -> Story:
    """Returns the story with this number."""
    rng = random.Random(number)
    kinds = (
        *(_edits, _overtaken, _back_again, _typo, _ended),
        *(_killed, _crashes, _probed, _other_tag, _twice_probed, _own),
    )
    return kinds[number % len(kinds)](number, rng)


def _stopping(rng: random.Random) -> tuple[float, int, tuple[tuple[str, str], ...]]:
    """Returns the seconds until a container stops, the grace period, and the environment that
    causes them.
    """
    seconds = rng.choice([6, 8])
    if rng.random() < 0.5:
        return seconds, seconds, (("IGNORE_TERM", "1"),)
    return seconds, 30, (("TERM_SECONDS", str(seconds)),)


def _edits(number: int, rng: random.Random) -> Story:
    tags = rng.sample(["2", "3", "slow", "1"], 2)
    policy = rng.choice(["Always", "OnFailure", "Never"])
    events = (Event(1, tags[0]), *(Event(SETTLED, tag) for tag in tags[1:]))
    return Story(number, "edits one by one", events, policy=policy)


def _overtaken(number: int, rng: random.Random) -> Story:
    seconds, grace, env = _stopping(rng)
    between = rng.choice(["2", "slow"])
    events = (Event(1, between), Event(seconds / 2, "3"))
    lasts = 1.5 * seconds + 2 * SETTLED
    return Story(number, "an edit while it stops", events, lasts, grace=grace, env=env)


def _back_again(number: int, rng: random.Random) -> Story:
    seconds, grace, env = _stopping(rng)
    events = (Event(1, "2"), Event(seconds / 2, "1"))
    lasts = 1.5 * seconds + 2 * SETTLED
    return Story(number, "taken back while it stops", events, lasts, grace=grace, env=env)


def _typo(number: int, rng: random.Random) -> Story:
    events = [Event(1, "missing")]
    if rng.random() < 0.7:
        events.append(Event(SETTLED, rng.choice(["2", "1"])))
    return Story(number, "an image that is not there", tuple(events))


def _ended(number: int, rng: random.Random) -> Story:
    policy, code = rng.choice([("Never", 0), ("Never", 4), ("OnFailure", 0), ("OnFailure", 4)])
    events = (Event(1, "missing"), Event(SETTLED, "2"))
    env = (("TERM_CODE", str(code)),)
    return Story(number, "a batch pod's image is not there", events, policy=policy, env=env)


def _killed(number: int, rng: random.Random) -> Story:
    policy = rng.choice(["Always", "OnFailure", "Never"])
    events = [Event(1)]
    if rng.random() < 0.5:
        events.append(Event(SETTLED, "2"))
    return Story(number, "a process is killed", tuple(events), policy=policy)


def _crashes(number: int, rng: random.Random) -> Story:
    policy = rng.choice(["Always", "OnFailure", "Never"])
    if rng.random() < 0.3:
        return Story(number, "it ends by itself", (), first="ends", policy="Never")
    events = (Event(1, "crash-late"), Event(12, "2"))
    return Story(number, "an image that crashes, repaired", events, policy=policy)


def _probed(number: int, rng: random.Random) -> Story:
    probes = rng.choice(
        [
            {"startupProbe": PATIENT},
            {"readinessProbe": PROBE},
            {"readinessProbe": PROBE | {"initialDelaySeconds": 3}},
        ]
    )
    events = (Event(6, rng.choice(["slow", "2"])),)
    return Story(number, "probes", events, 20, probes=probes)


def _twice_probed(number: int, rng: random.Random) -> Story:
    """Returns a story in which the readiness probe may run before the startup probe of the new
    container.
    """
    period = rng.choice([4, 6])
    probes = {"startupProbe": BOOT | {"periodSeconds": period}, "readinessProbe": PROBE}
    events = (Event(8, rng.choice(["late", "late", "2"])),)
    return Story(number, "both probes", events, 26, probes=probes)


def _other_tag(number: int, rng: random.Random) -> Story:
    tags = [rng.choice(["2", "2-again"]), "1", "2-again"]
    events = (Event(1, tags[0]), *(Event(SETTLED, tag) for tag in tags[1:]))
    return Story(number, "two tags of one image", events)


def _own(number: int, rng: random.Random) -> Story:
    """Returns a story in which a process is killed twice and the container's own policy applies."""
    own, rule = _OWN[number % len(_OWN)]
    words = {"restartPolicy": own, **({"restartPolicyRules": [rule]} if rule else {})}
    policy = rng.choice(["Always", "Never"])
    events = (Event(1), Event(SETTLED))
    return Story(number, "a policy of its own", events, policy=policy, own=words)


def _rule(action: str, operator: str, *codes: int) -> Json:
    return {"action": action, "exitCodes": {"operator": operator, "values": list(codes)}}


_OWN: list[tuple[str, Json]] = [
    ("Never", {}),
    ("Never", _rule("Restart", "In", 137)),
    ("Never", _rule("Restart", "NotIn", 0, 137)),
    ("Never", _rule("RestartAllContainers", "In", 137)),
    ("OnFailure", {}),
    ("OnFailure", _rule("RestartAllContainers", "NotIn", 0)),
    ("OnFailure", _rule("Restart", "In", 1)),
    ("Always", {}),
    ("Always", _rule("RestartAllContainers", "In", 137)),
    ("Always", _rule("RestartAllContainers", "In", 1)),
]


class Scripted(Levers):
    """Levers that let a fake node's containers behave as the real images do."""

    def __init__(self) -> None:
        super().__init__(
            relist_seconds=1.0,
            pull_seconds=0.0,
            start_seconds=0.3,
            backoff_seconds=10.0,
            backoff_limit=300.0,
            retry_seconds=10.0,
            bad_images={app("missing")},
            digests=dict.fromkeys(SAME, "2" * 64),
            known_names={f"sha256:{'2' * 64}": app("2")},
        )

    def seconds_to_stop(self, pod: Object, _image: str) -> tuple[float, int]:
        env = {one["name"]: one["value"] for one in pod["spec"]["containers"][0].get("env") or []}
        if "IGNORE_TERM" in env:
            return float("inf"), 0
        return float(env.get("TERM_SECONDS", 0)), int(env.get("TERM_CODE", 0))

    def seconds_until_ready(self, image: str) -> float:
        return float(_behaviour(image).get("START_SECONDS", 0))

    def seconds_until_started(self, image: str) -> float:
        return float(_behaviour(image).get("BOOT_SECONDS", 0))

    def spontaneous_exit(
        self,
        _pod: Object,
        _container: str,
        image: str,
        *,
        once: bool,  # noqa: ARG002
    ) -> tuple[float, int] | None:
        after, code = (_behaviour(image).get(key) for key in ("EXIT_AFTER", "EXIT_CODE"))
        return None if after is None else (float(after), int(code or 0))


def _behaviour(image: str) -> dict[str, str]:
    return BEHAVIOURS.get(image.rpartition(":")[2], {})


def lines_of(versions: Iterable[Json]) -> list[str]:
    """Returns a line for each change of a pod that matters for decisions.

    The lines omit how a container waits before its first start, and the reason why a container is
    down.
    """
    lines: list[str] = []
    for pod in versions:
        status = pod.get("status") or {}
        for one in status.get("containerStatuses") or []:
            line = _line(status, one)
            if one.get("containerID") and line not in lines[-1:]:
                lines.append(line)
    return lines


def _line(status: Json, one: Json) -> str:
    tag = one["image"].rpartition(":")[2]
    if status["phase"] in COMPLETED:
        ended = one["state"].get("terminated") or {}
        return f"{tag} {status['phase']} {ended.get('exitCode')}"
    up = "up" if "running" in one["state"] else "down"
    ready = " Ready" if is_ready({"status": status}) else ""
    return f"{status.get('observedGeneration')} {tag} {up}{ready}"


def are_alike(one: list[str], other: list[str]) -> bool:
    """Returns True if both lists of lines are equal; one of them may lack the last line."""
    shorter, longer = sorted((one, other), key=len)
    return bool(shorter) and longer[: len(shorter)] == shorter and len(longer) - len(shorter) <= 1
