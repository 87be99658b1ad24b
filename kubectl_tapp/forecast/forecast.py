"""A forecast of an edit: what becomes of whom, why, in which order, how long, what gets stuck.

These are its values; `foresee.py` makes them. Every reason is the deciding code's own.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from kubectl_tapp.decide.budget import Limit
from kubectl_tapp.forecast.run_log import Write
from tapp.declared.differences import Difference


class Outcome(StrEnum):
    """An instance's fate."""

    UNCHANGED = "unchanged"
    LABELLED = "labels only"
    """Its pod gets other labels or annotations; nothing restarts."""
    IN_PLACE = "in place"
    RECREATED = "recreated"
    CREATED = "created"
    DELETED = "deleted"
    WAITING = "waiting"
    """It is to change, and does not: what it waits for does not come by itself."""


@dataclass(frozen=True)
class TemplateChange:
    """The changes in one template.

    Attributes:
        name: the template's name.
        how: `changed`, `added` or `removed`.
        differences: field by field, of one that is changed.
        instances: numbers of the instances that are to run it, after the edit.
    """

    name: str
    how: str
    differences: tuple[Difference, ...] = ()
    instances: tuple[int, ...] = ()


@dataclass(frozen=True)
class InstanceForecast:
    """The fate of one instance.

    Attributes:
        id: its number.
        outcome: what becomes of it.
        template: name of the template that it is to run.
        containers: those that restart in place.
        fields: the template's fields because of which it is recreated.
        reason: the first verdict that changes it, such as `TemplateChanged`; "" where nothing does.
        message: the same in the deciding code's words.
        began: when it is first touched, in seconds from now; None: it is not, or its turn comes
            with those of `Forecast.rest`.
        done: when it is available again, or gone.
        waits_for: what it still waits for in the end, in a sentence; "" for nothing.
        claims: claim -> `kept`, `created`, `grown` or `deleted`.
    """

    id: int
    outcome: Outcome
    template: str = ""
    containers: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    reason: str = ""
    message: str = ""
    began: float | None = None
    done: float | None = None
    waits_for: str = ""
    claims: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Step:
    """All that is written at one time.

    Attributes:
        at: when, in seconds from now.
        created: instances whose pod is created.
        updated: instances whose pod is updated in place.
        recreated: instances whose pod is deleted, and made anew.
        deleted: instances whose pod goes for good.
        unavailable: how many are to run and do not serve after it.
    """

    at: float
    created: tuple[int, ...] = ()
    updated: tuple[int, ...] = ()
    recreated: tuple[int, ...] = ()
    deleted: tuple[int, ...] = ()
    unavailable: int = 0


@dataclass(frozen=True)
class Rest:
    """Instances whose turns are like those that were played, and follow them.

    Attributes:
        instances: their numbers; what becomes of each stands with the others.
        at: when what was played is done, in seconds from now.
        seconds: that they take about, from then on.
    """

    instances: tuple[int, ...]
    at: float
    seconds: float


@dataclass(frozen=True)
class Forecast:
    """The effects of an edit.

    Attributes:
        name: the TApp.
        namespace: its namespace.
        templates: what changes in which template.
        fields: what else changes in the spec: path, before, after.
        instances: every instance, by its number: those of before and those of after.
        steps: what is written, in order, as far as it was played.
        writes: every write to a child, in order, as far as it was played; of refused ones the
            first.
        rest: who follows in the same way; None: it was played to its end.
        limits: the budgets that hold.
        should_run: how many instances should run in the end.
        unavailable_before: how many are to run and do not serve now (`record.unavailable`).
        unavailable_worst: the most that are to run and do not serve at one time.
        unavailable: how many these are, from which time on.
        duration: seconds until nothing more changes.
        pace: what the times are from, a sentence for each template.
        stuck: what does not come to its end, and why, in sentences.
        paused: what waits only because a person paused updates, in sentences.
        refusals: conditions that the edited spec raises and the one before did not: type, message.
        remarks: what is to be known of the edit itself: whom it does not reach, how it is applied.
        notes: what was assumed of what is not known.
        refused: the edit cannot be made at all, in the API server's or the service's words.
        states: instance -> (seconds from now, state): what a timeline shows of what was played.
        claims: claim -> `kept`, `created`, `grown` or `deleted`.
        services: Service -> `created`, `changed` or `deleted`.
        played: whether it was played; else it is one decision, without order and times.
    """

    name: str
    namespace: str
    templates: tuple[TemplateChange, ...] = ()
    fields: tuple[tuple[str, Any, Any], ...] = ()
    instances: tuple[InstanceForecast, ...] = ()
    steps: tuple[Step, ...] = ()
    writes: tuple[Write, ...] = ()
    rest: Rest | None = None
    limits: tuple[Limit, ...] = ()
    should_run: int = 0
    unavailable_before: int = 0
    unavailable_worst: int = 0
    unavailable: tuple[tuple[float, int], ...] = ()
    duration: float = 0.0
    pace: tuple[str, ...] = ()
    stuck: tuple[str, ...] = ()
    paused: tuple[str, ...] = ()
    refusals: tuple[tuple[str, str], ...] = ()
    remarks: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    states: dict[int, tuple[tuple[float, str], ...]] = field(default_factory=dict)
    claims: dict[str, str] = field(default_factory=dict)
    services: dict[str, str] = field(default_factory=dict)
    played: bool = True

    def of(self, outcome: Outcome) -> list[InstanceForecast]:
        """The instances with this outcome."""
        return [each for each in self.instances if each.outcome is outcome]


@dataclass(frozen=True)
class Assumptions:
    """Knowledge that a person has and the cluster does not.

    Attributes:
        broken: images that will not come up.
        refused: what the API server said to the edit, tried by a dry run.
        made_up: the pods are simulated ones, whose times tell nothing.
        remarks: what is to be known of the edit itself.
    """

    broken: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    made_up: bool = False
    remarks: tuple[str, ...] = ()
