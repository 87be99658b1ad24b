"""The data of a forecast, which `foresee.py` and `meaning.py` produce and `show/` prints."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from kubectl_tapp.decide.budget import Limit
from kubectl_tapp.forecast.run_log import Write
from tapp.declared.differences import Difference


class Outcome(StrEnum):
    """The effect of an edit on one instance, as a word that the plan prints."""

    UNCHANGED = "unchanged"
    LABELLED = "labels only"  # Labels or annotations of its pod change; nothing restarts
    IN_PLACE = "in place"
    RECREATED = "recreated"
    CREATED = "created"
    DELETED = "deleted"
    WAITING = "waiting"  # It should change, but waits for an event that does not come without help


@dataclass(frozen=True)
class TemplateChange:
    """The changes that an edit makes to one template."""

    name: str  # the template's name
    how: str  # `changed`, `added` or `removed`
    differences: tuple[Difference, ...] = ()  # the fields that differ, if the template is changed
    instances: tuple[int, ...] = ()  # numbers of the instances that run it after the edit


@dataclass(frozen=True)
class InstanceForecast:
    """The effect of an edit on one instance: its outcome, its times, and the reasons."""

    id: int  # the instance's number
    outcome: Outcome  # the effect on the instance
    template: str = ""  # name of the template that the instance runs after the edit
    containers: tuple[str, ...] = ()  # names of the containers that restart in place
    fields: tuple[str, ...] = ()  # fields of the template that require a new pod
    reason: str = ""  # reason of the decision that changes it, such as `TemplateChanged`, or empty
    message: str = ""  # message of this decision
    # when it is first written to, in seconds from now; None if never, or in `rest`
    began: float | None = None
    # when it is available again or deleted, in seconds from now; None if unknown
    done: float | None = None
    waits_for: str = ""  # a sentence about the event that it still waits for at the end, or empty
    # claim name to its effect: `kept`, `created`, `grown`, `modified` or `deleted`
    claims: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Step:
    """The writes that happen at one time of a simulated rollout."""

    at: float  # the time, in seconds from now
    created: tuple[int, ...] = ()  # instances whose pod is created
    updated: tuple[int, ...] = ()  # instances whose pod is updated in place
    recreated: tuple[int, ...] = ()  # instances whose pod is deleted so that a new one replaces it
    deleted: tuple[int, ...] = ()  # instances whose pod is deleted without a replacement
    unavailable: int = 0  # the most instances that are unavailable until the next step


@dataclass(frozen=True)
class Rest:
    """Instances whose updates were not simulated, because they repeat the simulated ones.

    The plan shows their number, and an estimate of how long their updates take.
    """

    instances: tuple[int, ...]  # their numbers; their outcomes are in `Forecast.instances`
    at: float  # when the simulated updates are complete, in seconds from now
    seconds: float  # estimated seconds that the rest takes after that


@dataclass(frozen=True)
class Forecast:
    """The effects of an edit of a TApp: on its templates, instances, claims and Services, and over
    time.
    """

    name: str  # name of the TApp
    namespace: str
    templates: tuple[TemplateChange, ...] = ()  # the templates that change
    # other fields of the spec that change: path, old and new value
    fields: tuple[tuple[str, Any, Any], ...] = ()
    # the instances before and after the edit, by number
    instances: tuple[InstanceForecast, ...] = ()
    steps: tuple[Step, ...] = ()  # the simulated writes in order of time
    # the simulated writes to children; of repeated refusals only the first
    writes: tuple[Write, ...] = ()
    # updates that follow and were not simulated; None if all were simulated
    rest: Rest | None = None
    limits: tuple[Limit, ...] = ()  # the budgets that apply
    domain: str = ""  # the label whose values are the failure domains of updates
    should_run: int = 0  # number of instances that should run after the edit
    unavailable_before: int = 0  # number of unavailable instances now
    unavailable_worst: int = 0  # the most instances that are unavailable at one time
    # number of unavailable instances over time: seconds from now, and the number
    unavailable: tuple[tuple[float, int], ...] = ()
    duration: float = 0.0  # seconds until the last change
    # a sentence for each template about its assumed times and their sources
    pace: tuple[str, ...] = ()
    # sentences about instances that never reach their goal, with the reason
    stuck: tuple[str, ...] = ()
    # sentences about instances that wait only because updates are paused
    paused: tuple[str, ...] = ()
    refusals: tuple[tuple[str, str], ...] = ()  # conditions that the edit causes: type and message
    # sentences about the edit itself, such as fields that do not affect existing pods
    remarks: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()  # sentences about assumptions
    refused: tuple[str, ...] = ()  # why the edit is refused as a whole, in the API server's words
    # instance number to its states over time: seconds from now, and the state
    states: dict[int, tuple[tuple[float, str], ...]] = field(default_factory=dict)
    # claim name to its effect: `kept`, `created`, `grown`, `modified` or `deleted`
    claims: dict[str, str] = field(default_factory=dict)
    # Service name to its effect: `created`, `changed` or `deleted`
    services: dict[str, str] = field(default_factory=dict)
    # the effect on the PodDisruptionBudget of the TApp, such as `PodDisruptionBudget created
    # (minAvailable 2)`; empty if it stays
    disruption_budget: str = ""
    at_once: str = ""  # a phrase about instances off the rolling template that are updated together
    # True if it was simulated; False if it is one decision, without order and times
    played: bool = True

    def of(self, outcome: Outcome) -> list[InstanceForecast]:
        """Returns the forecasts of the instances with this outcome."""
        return [each for each in self.instances if each.outcome is outcome]


@dataclass(frozen=True)
class Assumptions:
    """Facts that a forecast takes for granted, because the cluster does not show them."""

    broken: tuple[str, ...] = ()  # images that the simulated kubelets cannot start
    refused: tuple[str, ...] = ()  # the API server's refusal of the edit, from a dry run
    made_up: bool = False  # True if the pods are simulated, so that their times show nothing
    remarks: tuple[str, ...] = ()  # sentences about the edit, for `Forecast.remarks`
