"""Parts of the spec that say how things are done: the update strategy, and what is retained."""

from typing import Literal

from pydantic import Field

from tapp.declared.fields import BUDGET, NAME, PARTITION, Value, Whole

Retention = Literal["Retain", "Delete"]


class ForceUpdate(Value):
    """`spec.updateStrategy.forceUpdate`: the budget of instances off the rolling template."""

    max_unavailable: int | str = Field(default="100%", json_schema_extra=BUDGET)
    """How many instances may be unavailable during an update of these: a number, or a percentage of
    the instances that should run, rounded up. Unset: 100%."""

    @property
    def is_written(self) -> bool:
        """True if its author wrote this budget, or it is the default."""
        return "max_unavailable" in self.model_fields_set


class InPlaceUpdateStrategy(Value):
    """`spec.updateStrategy.inPlaceUpdateStrategy`."""

    grace_period_seconds: Whole = 0
    """How long an instance is out of its Services before its containers are updated in place. Needs
    the readiness gate apps.tkestack.io/InPlaceUpdateReady in the template, and the component
    pod-status. With 0 they are updated at once. Unset: 0."""
    pre_pull: bool = False
    """Whether the new images are pulled on an instance's node before it is updated in place:
    nothing stops for an image that cannot be had. Needs image volumes (Kubernetes 1.35). Unset:
    false."""
    resources: Literal["Ignore", "InPlace"] | None = None
    """Ignore leaves the resources of containers and native sidecars to others, such as a vertical
    autoscaler: another value in the template is no update, and only new pods have it. InPlace gives
    another value of cpu or memory to the pod that runs; needs the component resize. Unset: another
    value means a new pod, unless the pod has these resources already."""


class UpdateStrategy(Value):
    """`spec.updateStrategy`."""

    template: str = Field(default="", json_schema_extra=NAME)
    """Name of the rolling template. The instances that run it are updated within
    updateStrategy.maxUnavailable, all others within forceUpdate.maxUnavailable. Unset: the default
    template."""
    max_unavailable: int | str = Field(default=1, json_schema_extra=BUDGET)
    """How many instances of the rolling template may be unavailable during an update: a number, or
    a percentage of the instances that should run, rounded up. Unset: 1."""
    order: Literal["Ascending", "Descending"] = "Ascending"
    """Which number goes first where several instances wait for an update: Ascending, the lowest;
    Descending, the highest. Instances on another than the rolling template go before all others,
    and within both groups those with a higher annotation apps.tkestack.io/update-priority. Unset:
    Ascending."""
    partition: int | str = Field(default=0, json_schema_extra=PARTITION)
    """How many instances of the rolling template keep the revision that they have, the last in the
    order: a number, or a percentage of these instances, rounded up (but below 100% at least one of
    several is updated). One that loses its pod comes back with that revision. Unset: 0."""
    force_update: ForceUpdate = ForceUpdate()
    """Updates of instances whose template is not the rolling template. Unset: maxUnavailable
    100%."""
    in_place_update_strategy: InPlaceUpdateStrategy = InPlaceUpdateStrategy()
    """How instances are updated in place. Unset: gracePeriodSeconds 0."""
    hold_timeout_seconds: Whole | None = None
    """For how many seconds an update is held back by the annotation apps.tkestack.io/hold of a pod,
    from when it is wanted on. With 0 no update is. Unset: without end."""
    paused: bool = False
    """Stops updates. Instances are still created, deleted, killed and started. Unset: false."""


class RetentionPolicy(Value):
    """`spec.persistentVolumeClaimRetentionPolicy`, as in StatefulSet."""

    when_deleted: Retention = "Retain"
    """When the TApp is deleted. Unset: Retain."""
    when_scaled: Retention = "Retain"
    """When replicas is lowered so far that the instance goes. Unset: Retain."""


class ServiceRetentionPolicy(Value):
    """`spec.serviceRetentionPolicy`."""

    when_killed: Retention = "Retain"
    """While the instance is killed. Unset: Retain."""
