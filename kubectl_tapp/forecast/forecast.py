"""The values of an edit's forecast (`foresee.py`); every reason is the deciding code's own."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from kubectl_tapp.decide.budget import Limit
from kubectl_tapp.forecast.run_log import Write
from tapp.declared.differences import Difference


class Outcome(StrEnum):
    """An instance's fate."""

    UNCHANGED = "unchanged"
    LABELLED = "labels only"  # Its pod gets other labels or annotations; nothing restarts
    IN_PLACE = "in place"
    RECREATED = "recreated"
    CREATED = "created"
    DELETED = "deleted"
    WAITING = "waiting"  # It is to change, and does not: what it waits for does not come by itself


@dataclass(frozen=True)
class TemplateChange:
    """The changes in one template."""

    name: str  # the template's name
    how: str  # `changed`, `added` or `removed`
    differences: tuple[Difference, ...] = ()  # field by field, of one that is changed
    instances: tuple[int, ...] = ()  # numbers of the instances that are to run it, after the edit


@dataclass(frozen=True)
class InstanceForecast:
    """The fate of one instance."""

    id: int  # its number
    outcome: Outcome  # what becomes of it
    template: str = ""  # name of the template that it is to run
    containers: tuple[str, ...] = ()  # those that restart in place
    fields: tuple[str, ...] = ()  # the template's fields because of which it is recreated
    reason: str = ""  # its first verdict that changes it, such as `TemplateChanged`, or ""
    message: str = ""  # the same in the deciding code's words
    began: float | None = None  # when first touched, seconds from now; None: not, or in `rest`
    done: float | None = None  # when it is available again, or gone
    waits_for: str = ""  # what it still waits for in the end, in a sentence; "" for nothing
    claims: dict[str, str] = field(default_factory=dict)  # `kept`, `created`, `grown` or `deleted`


@dataclass(frozen=True)
class Step:
    """All that is written at one time."""

    at: float  # when, in seconds from now
    created: tuple[int, ...] = ()  # instances whose pod is created
    updated: tuple[int, ...] = ()  # instances whose pod is updated in place
    recreated: tuple[int, ...] = ()  # instances whose pod is deleted, and made anew
    deleted: tuple[int, ...] = ()  # instances whose pod goes for good
    unavailable: int = 0  # how many are to run and do not serve after it


@dataclass(frozen=True)
class Rest:
    """Instances whose turns are like those that were played, and follow them."""

    instances: tuple[int, ...]  # their numbers; what becomes of each stands with the others
    at: float  # when what was played is done, in seconds from now
    seconds: float  # that they take about, from then on


@dataclass(frozen=True)
class Forecast:
    """The effects of an edit."""

    name: str  # the TApp
    namespace: str
    templates: tuple[TemplateChange, ...] = ()  # what changes in which template
    fields: tuple[tuple[str, Any, Any], ...] = ()  # elsewhere in the spec: path, before, after
    instances: tuple[InstanceForecast, ...] = ()  # by number, those of before and those of after
    steps: tuple[Step, ...] = ()  # what is written, in order, as far as it was played
    writes: tuple[Write, ...] = ()  # to children, as far as played; of refused ones the first
    rest: Rest | None = None  # who follows in the same way; None: it was played to its end
    limits: tuple[Limit, ...] = ()  # the budgets that hold
    should_run: int = 0  # how many instances should run in the end
    unavailable_before: int = 0  # how many are to run and do not serve now (`record.unavailable`)
    unavailable_worst: int = 0  # the most that are to run and do not serve at one time
    unavailable: tuple[tuple[float, int], ...] = ()  # how many these are, from which time on
    duration: float = 0.0  # seconds until nothing more changes
    pace: tuple[str, ...] = ()  # what the times are from, a sentence for each template
    stuck: tuple[str, ...] = ()  # what does not come to its end, and why, in sentences
    paused: tuple[str, ...] = ()  # what waits only because a person paused updates, in sentences
    refusals: tuple[tuple[str, str], ...] = ()  # new conditions: type, message
    remarks: tuple[str, ...] = ()  # on the edit itself: whom it does not reach, how it is applied
    notes: tuple[str, ...] = ()  # what was assumed of what is not known
    refused: tuple[str, ...] = ()  # it cannot be made at all, in the refuser's words
    # instance -> (seconds from now, state): what a timeline shows of what was played
    states: dict[int, tuple[tuple[float, str], ...]] = field(default_factory=dict)
    claims: dict[str, str] = field(default_factory=dict)  # `kept`, `created`, `grown` or `deleted`
    services: dict[str, str] = field(default_factory=dict)  # `created`, `changed` or `deleted`
    at_once: str = ""  # how many instances off the rolling template go down together
    played: bool = True  # whether it was played; else it is one decision, without order and times

    def of(self, outcome: Outcome) -> list[InstanceForecast]:
        """The instances with this outcome."""
        return [each for each in self.instances if each.outcome is outcome]


@dataclass(frozen=True)
class Assumptions:
    """Knowledge that a person has and the cluster does not."""

    broken: tuple[str, ...] = ()  # images that will not come up
    refused: tuple[str, ...] = ()  # what the API server said to the edit, tried by a dry run
    made_up: bool = False  # the pods are simulated ones, whose times tell nothing
    remarks: tuple[str, ...] = ()  # what is to be known of the edit itself
