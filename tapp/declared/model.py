"""The TApp as its author wrote it: a typed view of the parent object, and the source of the CRD.

Templates stay opaque mappings: Kubernetes adds fields, and none may be dropped on the way (the old
controller dropped them). What each field means is its description, which docs/reference.md shows.
"""

from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field

from tapp.declared import rules
from tapp.declared.fields import (
    BY_INSTANCE,
    ENTRIES,
    NAME,
    VALUES,
    Entries,
    Name,
    OwnValue,
    Value,
    Whole,
)
from tapp.declared.observed import NEVER, ObservedStatus
from tapp.declared.policies import RetentionPolicy, ServiceRetentionPolicy, UpdateStrategy
from tapp.kube.parts import map_of
from tapp.words.vocabulary import DEFAULT_TEMPLATE, MAX_REPLICAS

Mapping = dict[str, Any]
Wanted = Annotated[str, Field(json_schema_extra={**NAME, **rules.WANTED_STATUS})]
OwnValues = Annotated[
    Entries[OwnValue], Field(description="The values of one instance.", json_schema_extra=VALUES)
]
MOST_CLAIMS: Final = 100
"""Claim templates of a TApp: each is looked at for each instance."""


class TAppSpec(Value):
    """`spec`, field by field."""

    replicas: int = Field(default=1, ge=0, le=MAX_REPLICAS, json_schema_extra={"default": 1})
    """Number of instances; they are numbered from 0 to replicas-1."""
    selector: Mapping | None = None
    """Accepted and kept, for manifests that set it. Pods are selected by the label controller-uid,
    so it is not needed."""
    template: Mapping | None = None
    """The pod template named 'default'."""
    template_pool: Entries[Mapping] = Field(default_factory=dict, json_schema_extra=ENTRIES)
    """Further pod templates by name. Their fields are those of spec.template."""
    templates: Entries[Name] = Field(default_factory=dict, json_schema_extra=BY_INSTANCE)
    """Instance number -> name of the template it runs: a key of templatePool, or 'default'.
    Instances not listed run the default template."""
    values: Entries[OwnValues] = Field(default_factory=dict, json_schema_extra=BY_INSTANCE)
    """Instance number -> its own values, by key. In a pod template or a claim template,
    $(tapp.values.KEY) stands for the instance's value, $(tapp.index) for its number, $(tapp.name)
    for its pod's name and $(tapp.namespace) for the namespace; $$(tapp. is the text itself."""
    default_values: Entries[OwnValue] = Field(
        default_factory=dict, json_schema_extra={**VALUES, "nullable": True, **rules.VALUE_KEYS}
    )
    """The values of instances that have none of that key in values."""
    default_template_name: str = Field(default="", json_schema_extra=NAME)
    """Name of the template that instances not listed in templates run: a key of templatePool, or
    'default'. Unset: 'default'."""
    default_template_name_old: str = Field(
        default="", alias="DefaultTemplateName", json_schema_extra=NAME
    )
    """The spelling of defaultTemplateName in older manifests; where both are set, this one is
    ignored. Unset: 'default'."""
    statuses: Entries[Wanted] = Field(default_factory=dict, json_schema_extra=BY_INSTANCE)
    """Instance number -> wanted status. Killed stops the instance: its pod goes, its claims stay.
    Removing the entry starts it again. No other value is accepted; one that a TApp had before the
    CRD checked this has no effect."""
    update_strategy: UpdateStrategy = UpdateStrategy()
    """How a changed template reaches the instances that run it. Unset: maxUnavailable 1, and
    forceUpdate.maxUnavailable 100%."""
    force_delete_pod: bool = False
    """Start instances elsewhere when their node has not been heard of for TAPP_LOST_NODE_SECONDS
    (300; for one TApp the annotation apps.tkestack.io/lost-node-seconds). Such an instance may run
    twice until the old node is back. Needs the component pod-status. Unset: false."""
    auto_delete_unused_template: bool = False
    """Remove entries of templatePool that nothing refers to. Needs the admission policy of the same
    name; without it, unused names are reported in the status. Unset: false."""
    never_migrate: bool = False
    """Never replace a pod that has completed. Unset: false."""
    volume_claim_templates: list[Mapping] = Field(
        default_factory=list,
        json_schema_extra={
            "maxItems": MOST_CLAIMS,
            "x-kubernetes-list-type": "atomic",
            **rules.CLAIM_NAMES,
        },
    )
    """Claims that each instance gets, named CLAIM-TAPP-NUMBER and mounted as a volume under the
    claim template's name. A claim takes precedence over a volume of the same name in the template.
    A larger storage request reaches claims that are there, where their StorageClass allows
    expansion; no other change does."""
    service_name: str = Field(default="", json_schema_extra={**NAME, **rules.SERVICE_NAME})
    """Name of the headless Service that gives each pod a DNS name: POD.SERVICENAME. Unset: pods
    have none."""
    service_template: Mapping | None = None
    """A Service for each instance, named as its pod, which it selects; $(tapp.index) and the other
    placeholders stand for the instance's own, in ports, too. Needs the component services. Unset:
    no Service."""
    service_retention_policy: ServiceRetentionPolicy = ServiceRetentionPolicy()
    """What happens to Services of serviceTemplate while they are not needed. Unset: they are
    retained."""
    revision_history_limit: Whole = 10
    """How many superseded templates are kept as ControllerRevisions, beyond the newest one of each
    template. With 0 there is no history. Unset: 10."""
    min_ready_seconds: Whole = 0
    """How long a pod must have been Ready before it counts as available. Unset: 0."""
    progress_deadline_seconds: Whole = 600
    """After how many seconds in which a roll came no further it counts as failed: Progressing turns
    False, with the reason ProgressDeadlineExceeded, until it goes on. What minReadySeconds,
    gracePeriodSeconds and the termination grace period of pods that are stopped take is added.
    Nothing is taken back by itself. With 0 there is no deadline. Unset: 600."""
    deletion_hold_timeout_seconds: Whole | None = None
    """For how many seconds the annotation apps.tkestack.io/hold of a pod holds back what deletes it
    for good: its instance is killed or scaled down, or the TApp is deleted; from when that is
    wanted on. With 0 nothing is held back. Unset: without end."""
    pod_management_policy: Literal["OrderedReady", "Parallel"] = "Parallel"
    """Whether pods are made and taken away at once or one after another, as in a StatefulSet.
    OrderedReady: a pod is made when all lower numbers that should run are available; of pods beyond
    replicas the highest goes first, the next one when it is gone. Updates and kills are not ordered
    by it. May be changed at any time. Unset: Parallel."""
    persistent_volume_claim_retention_policy: RetentionPolicy = RetentionPolicy()
    """What happens to claims that are no longer needed. Unset: they are retained."""

    @property
    def default_name(self) -> str:
        """The name of the default template: the lower-case spelling wins."""
        return self.default_template_name or self.default_template_name_old or DEFAULT_TEMPLATE

    @property
    def ignores_resources(self) -> bool:
        """True if the resources of running containers are left to others, and are no update."""
        return self.update_strategy.in_place_update_strategy.resources == "Ignore"

    @property
    def resizes(self) -> bool:
        """True if other resources in a template are given to the pods that run."""
        return self.update_strategy.in_place_update_strategy.resources == "InPlace"

    @property
    def ordered(self) -> bool:
        """True if pods are made and taken away one after another."""
        return self.pod_management_policy == "OrderedReady"

    @property
    def rolling_name(self) -> str:
        """The name of the rolling template: computed anew at each sync, never written back."""
        return self.update_strategy.template or self.default_name

    def template_name(self, instance: int) -> str:
        """The name of the template that `instance` runs."""
        return self.templates.get(str(instance)) or self.default_name

    def find_template(self, name: str) -> Mapping | None:
        """The body of the template called `name`, or None where there is no such template.

        `default` is `spec.template`; the pool's entry of that name serves where that is empty.
        """
        pooled = self.template_pool.get(name)
        if name != DEFAULT_TEMPLATE or not self.template:
            return pooled
        spec = self.template.get("spec")
        usable = isinstance(spec, dict) and spec.get("containers")
        return self.template if usable or pooled is None else pooled

    def unused_templates(self) -> list[str]:
        """Names in the pool that nothing refers to, sorted (`autoDeleteUnusedTemplate`)."""
        used = {
            *self.templates.values(),
            self.default_template_name,
            self.default_template_name_old,
            self.default_name,
            self.update_strategy.template,
        }
        return sorted(set(self.template_pool) - used)


class ManagedFields(Value):
    """One entry of `metadata.managedFields`: only the time of the write is read."""

    time: str = ""


class ParentMeta(Value):
    """The parent's `metadata`: identity is required, the rest is optional."""

    name: str = Field(min_length=1)
    namespace: str = Field(min_length=1)
    uid: str = Field(min_length=1)
    generation: int = 0
    annotations: dict[str, Any] = Field(default_factory=dict)
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None
    finalizers: list[str] = Field(default_factory=list)
    managed_fields: list[ManagedFields] = Field(default_factory=list)


class Parent(Value):
    """Identity of the parent, without a look at its spec and status: enough for finalize."""

    api_version: str = Field(pattern=r"^apps\.tkestack\.io/")
    kind: Literal["TApp"]
    metadata: ParentMeta


class TApp(Parent):
    """The whole parent."""

    spec: TAppSpec = Field(json_schema_extra=rules.TEMPLATES)
    """What should run: numbered instances, each with its own template and status."""
    status: Annotated[ObservedStatus, BeforeValidator(map_of)] = Field(
        default=ObservedStatus(), json_schema_extra={"default": {"observedGeneration": NEVER}}
    )
    """What was observed when the TApp was last looked at."""


class ClaimPolicy(Value):
    """The part of a spec that finalize reads; it stands although the rest may be invalid."""

    persistent_volume_claim_retention_policy: RetentionPolicy = RetentionPolicy()


class HoldPolicy(Value):
    """Another part that finalize reads."""

    deletion_hold_timeout_seconds: Whole | None = None


class LostPolicy(Value):
    """Another part that finalize reads."""

    force_delete_pod: bool = False
    never_migrate: bool = False
