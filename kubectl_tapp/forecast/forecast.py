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
    # Only labels or annotations of the instance's pod change; no container restarts
    LABELLED = "labels only"
    IN_PLACE = "in place"
    RECREATED = "recreated"
    CREATED = "created"
    DELETED = "deleted"
    # The instance should change, but waits for an event that needs a person or another controller
    WAITING = "waiting"


@dataclass(frozen=True)
class TemplateChange:
    """The changes that an edit makes to one template."""

    name: str  # the template's name
    how: str  # `changed`, `added` or `removed`
    differences: tuple[Difference, ...] = ()  # the fields that differ, if the template is changed
    # numbers of the instances that run this template after the edit
    instances: tuple[int, ...] = ()


@dataclass(frozen=True)
class InstanceForecast:
    """The effect of an edit on one instance: its outcome, its times, and the reasons."""

    id: int  # the instance's number
    outcome: Outcome  # the effect on the instance
    template: str = ""  # name of the template that the instance runs after the edit
    containers: tuple[str, ...] = ()  # names of the containers that restart in place
    fields: tuple[str, ...] = ()  # fields of the template that require a new pod
    # reason of the decision that changes the instance, such as `TemplateChanged`, or empty
    reason: str = ""
    message: str = ""  # message of this decision
    # when the first write to the instance's pod happens, in seconds from now; None if there is no
    # write, or if the instance is in `Forecast.rest`
    began: float | None = None
    # when the instance is available again or deleted, in seconds from now; None if unknown
    done: float | None = None
    # a sentence about the event that the instance still waits for at the end of the forecast, or
    # empty
    waits_for: str = ""
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
    # the largest number of instances that are unavailable at one time until the next step
    unavailable: int = 0


@dataclass(frozen=True)
class Rest:
    """Instances whose updates were not simulated, because they repeat the simulated ones.

    The plan shows their number, and an estimate of how long their updates take.
    """

    # numbers of these instances; `Forecast.instances` has their outcomes
    instances: tuple[int, ...]
    at: float  # when the simulated updates are complete, in seconds from now
    seconds: float  # estimated seconds that the updates of these instances take after `at`


@dataclass(frozen=True)
class Forecast:
    """The effects of an edit of a TApp: on its templates, instances, claims and Services, and over
    time.
    """

    name: str  # name of the TApp
    namespace: str
    templates: tuple[TemplateChange, ...] = ()  # the templates that change
    # the changed fields of the spec outside the templates: path, old and new value
    fields: tuple[tuple[str, Any, Any], ...] = ()
    # the instances before and after the edit, by number
    instances: tuple[InstanceForecast, ...] = ()
    steps: tuple[Step, ...] = ()  # the simulated writes in order of time
    # the simulated writes to children; a write that is refused repeatedly is listed once
    writes: tuple[Write, ...] = ()
    # the updates of a long rollout that were not simulated; None if all updates were simulated
    rest: Rest | None = None
    limits: tuple[Limit, ...] = ()  # the budgets (maxUnavailable) that limit the updates
    domain: str = ""  # the label whose values are the failure domains of updates
    should_run: int = 0  # number of instances that should run after the edit
    unavailable_before: int = 0  # number of instances that are unavailable before the edit
    unavailable_worst: int = 0  # the largest number of instances that are unavailable at one time
    # each change of the number of unavailable instances: seconds from now, and the new number
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
    # (minAvailable 2)`; empty if it does not change
    disruption_budget: str = ""
    # a phrase about instances that run another template than the rolling one and are updated all
    # together; empty if there are none
    at_once: str = ""
    # True if the forecast comes from a simulation; False if it comes from a single decision and so
    # has no order and no times
    played: bool = True

    def of(self, outcome: Outcome) -> list[InstanceForecast]:
        """Returns the forecasts of the instances with this outcome."""
        return [each for each in self.instances if each.outcome is outcome]


@dataclass(frozen=True)
class Assumptions:
    """Facts that a forecast takes for granted, because the cluster does not show them."""

    broken: tuple[str, ...] = ()  # images that the simulated kubelets cannot start
    # why the API server refuses the edit, as a dry run showed; empty if it accepts the edit
    refused: tuple[str, ...] = ()
    # True if `as_running` has made up the pods of the TApp, so that their timestamps are no
    # measurements
    made_up: bool = False
    remarks: tuple[str, ...] = ()  # sentences about the edit, for `Forecast.remarks`
