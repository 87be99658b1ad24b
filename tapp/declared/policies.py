"""The policies in a TApp's spec: update strategy, evictions and retention.

Like `model.py`, this module is a source of the CRD.
"""

from typing import Literal

from pydantic import Field

from tapp.declared.fields import BUDGET, LABEL_KEY, NAME, PORTION, Value, Whole

Retention = Literal["Retain", "Delete"]


class ForceUpdate(Value):
    """`spec.updateStrategy.forceUpdate`: the budget of instances that do not run the rolling
    template.
    """

    max_unavailable: int | str = Field(default="100%", json_schema_extra=BUDGET)
    """How many instances may be unavailable while instances of this group are updated. A number, or
    a percentage of the instances that should run, rounded up. Unset: 100%."""

    @property
    def is_written(self) -> bool:
        """True if the spec sets this budget, False if the budget has its default value."""
        return "max_unavailable" in self.model_fields_set


class InPlaceUpdateStrategy(Value):
    """The policy for updates in place (`spec.updateStrategy.inPlaceUpdateStrategy`)."""

    grace_period_seconds: Whole = 0
    """How many seconds an instance is out of its Services before its containers are updated in
    place. Needs the readiness gate apps.tkestack.io/InPlaceUpdateReady in the template, and the
    component pod-status. With 0 the containers are updated at once. Unset: 0."""
    pre_pull: bool = False
    """Pull the new images on an instance's node before the instance is updated in place. Then no
    container stops for an image that cannot be pulled. Needs image volumes (Kubernetes 1.35).
    Unset: false."""
    resources: Literal["Ignore", "InPlace"] | None = None
    """What happens if the template's resources of containers or native sidecars change. Ignore:
    nothing, another controller such as a vertical autoscaler sets the resources of pods; new pods
    get those of the template. InPlace: a change of cpu or memory resizes the running pods; needs
    the component resize. Unset: pods are replaced, unless they already have these resources."""


class UpdateStrategy(Value):
    """The policy for updates (`spec.updateStrategy`)."""

    template: str = Field(default="", json_schema_extra=NAME)
    """Name of the rolling template. Instances that run it are updated within
    updateStrategy.maxUnavailable, all other instances within forceUpdate.maxUnavailable. Unset: the
    default template."""
    max_unavailable: int | str = Field(default=1, json_schema_extra=BUDGET)
    """How many instances may be unavailable while instances of the rolling template are updated. A
    number, or a percentage of the instances that should run, rounded up. Unset: 1."""
    order: Literal["Ascending", "Descending"] = "Ascending"
    """Which of several waiting instances is updated first: the one with the lowest number
    (Ascending) or the one with the highest (Descending). Instances that do not run the rolling
    template go before all others. Within both groups, instances with a higher annotation
    apps.tkestack.io/update-priority go first. Unset: Ascending."""
    partition: int | str = Field(default=0, json_schema_extra=PORTION)
    """How many instances of the rolling template keep the revision that they have. A number, or a
    percentage of these instances, rounded up. Below 100%, at least one of several is updated. The
    last instances in the order are kept. A kept instance that loses its pod gets a new pod of the
    same revision. Unset: 0."""
    domain: str = Field(default="", json_schema_extra=LABEL_KEY)
    """Key of a label of pods whose value names the failure domain, such as
    topology.kubernetes.io/zone. The rolling template is updated in one domain at a time: an update
    begins if all instances of the domains before are updated and available, and those of the
    domains behind are available. Unset: all domains are updated at the same time."""
    force_update: ForceUpdate = ForceUpdate()
    """Updates of instances that do not run the rolling template. Unset: maxUnavailable 100%."""
    in_place_update_strategy: InPlaceUpdateStrategy = InPlaceUpdateStrategy()
    """How instances are updated in place. Unset: gracePeriodSeconds 0."""
    hold_timeout_seconds: Whole | None = None
    """For how many seconds the annotation apps.tkestack.io/hold of a pod prevents an update of the
    pod. The time counts from when the update became due. With 0 updates are never prevented. Unset:
    no limit."""
    on_deadline: Literal["Rollback", "Stop"] = "Stop"
    """What happens if a rollout exceeds progressDeadlineSeconds. Stop: it waits until it can go on.
    Rollback: the instances of the rolling template return to status.currentRevision, and the spec
    stays as it is. The failed revision is rolled out again after kubectl tapp retry, or after the
    rollout of another revision has completed. Unset: Stop."""
    paused: bool = False
    """Stop updates. Instances are still created, deleted, killed and started. Unset: false."""


class DisruptionBudget(Value):
    """The budget of evictions (`spec.disruptionBudget`)."""

    max_unavailable: int | str = Field(default=1, json_schema_extra=PORTION)
    """How many of the instances that should run may be unavailable for an eviction to be allowed: a
    number, or a percentage of these instances, rounded up. Unavailable for any reason counts, so
    evictions and updates share the number. With 0 no eviction is allowed. Unset: 1."""


class RetentionPolicy(Value):
    """Retention of claims, as in StatefulSet (`spec.persistentVolumeClaimRetentionPolicy`)."""

    when_deleted: Retention = "Retain"
    """What happens to the claims when the TApp is deleted. Unset: Retain."""
    when_scaled: Retention = "Retain"
    """What happens to an instance's claims when replicas is lowered so that the instance is
    removed. Unset: Retain."""


class ServiceRetentionPolicy(Value):
    """Retention of the instances' Services (`spec.serviceRetentionPolicy`)."""

    when_killed: Retention = "Retain"
    """What happens to an instance's Service while the instance is killed. Unset: Retain."""
