"""What a run of a TApp's decisions came to: what each sync saw, and what was written."""

from dataclasses import dataclass, field

from tapp.decide.judge import Verdict
from tapp.plan import Plan


@dataclass(frozen=True)
class Moment:
    """What one sync saw.

    Attributes:
        at: when, in seconds since the epoch.
        unavailable: how many instances are to run and do not serve.
    """

    at: float
    unavailable: int


@dataclass(frozen=True)
class Act:
    """One write of Metacontroller, with the verdict that asked for it.

    Attributes:
        at: when, in seconds since the epoch.
        verb: `create`, `update`, `delete` or `status`.
        kind: the child's kind.
        name: the child's name.
        outcome: `ok`, `no-op` or the reason of the refusal.
        message: the refusal's words.
        paths: the fields that an update changed.
        instance: the pod's instance; None for other children.
        verdict: the instance's verdict.
    """

    at: float
    verb: str
    kind: str
    name: str
    outcome: str = "ok"
    message: str = ""
    paths: tuple[str, ...] = ()
    instance: int | None = None
    verdict: Verdict | None = None


@dataclass
class Record:
    """What a run came to."""

    looks: list[Moment] = field(default_factory=list)
    acts: list[Act] = field(default_factory=list)
    states: dict[int, list[tuple[float, str]]] = field(default_factory=dict)
    """Instance -> since when it was in which state: what a timeline shows."""
    first: Plan | None = None
    last: Plan | None = None
    ended: float = 0.0
    """When the last thing changed, in seconds since the epoch."""
    refused: str = ""
    """Why the hooks cannot read the TApp at all."""
    gave_up: bool = False
    played: bool = True
    """Whether it was run to its end; else this is one decision, and what it means to whom."""


def unavailable(plan: Plan) -> int:
    """How many instances are to run and do not serve: the one meaning of the word in every form."""
    return plan.budgets.should_run - len(plan.available)
