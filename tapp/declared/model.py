"""The TApp as a user wrote it: a typed view of Metacontroller's parent object.

The models are also the source of the CRD. The text below a field becomes the field's description in
the CRD and in docs/reference.md (`make generate`). Pod templates stay plain mappings, so that
fields are kept which Kubernetes adds in future versions.
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
from tapp.declared.policies import (
    DisruptionBudget,
    RetentionPolicy,
    ServiceRetentionPolicy,
    UpdateStrategy,
)
from tapp.kube.parts import map_of
from tapp.words.vocabulary import DEFAULT_TEMPLATE, MAX_REPLICAS

Mapping = dict[str, Any]
Wanted = Annotated[str, Field(json_schema_extra={**NAME, **rules.WANTED_STATUS})]
OwnValues = Annotated[
    Entries[OwnValue], Field(description="The values of one instance.", json_schema_extra=VALUES)
]
# Most claim templates of a TApp. The limit bounds the time of a sync, which looks at all claim
# templates for each instance.
MOST_CLAIMS: Final = 100


class TAppSpec(Value):
    """`spec` of a TApp."""

    replicas: int = Field(default=1, ge=0, le=MAX_REPLICAS, json_schema_extra={"default": 1})
    """Number of instances. They are numbered from 0 to replicas-1."""
    selector: Mapping | None = None
    """Not used. Accepted so that manifests which set it stay valid. Pods are selected by the label
    controller-uid."""
    template: Mapping | None = None
    """The pod template named 'default'."""
    template_pool: Entries[Mapping] = Field(default_factory=dict, json_schema_extra=ENTRIES)
    """Further pod templates by name. Their fields are those of spec.template."""
    templates: Entries[Name] = Field(default_factory=dict, json_schema_extra=BY_INSTANCE)
    """Instance number -> name of the template that the instance runs: a key of templatePool, or
    'default'. Instances that are not listed run the default template."""
    values: Entries[OwnValues] = Field(default_factory=dict, json_schema_extra=BY_INSTANCE)
    """Instance number -> the instance's own values, by key. In a pod template or a claim template,
    $(tapp.values.KEY) is replaced by the instance's value, and $(tapp.index) by its number.
    $(tapp.name) is replaced by the name of its pod, and $(tapp.namespace) by the namespace.
    $$(tapp. stands for the text $(tapp."""
    default_values: Entries[OwnValue] = Field(
        default_factory=dict, json_schema_extra={**VALUES, "nullable": True, **rules.VALUE_KEYS}
    )
    """Values for the instances whose entry in values lacks the key."""
    default_template_name: str = Field(default="", json_schema_extra=NAME)
    """Name of the template for instances that are not listed in templates: a key of templatePool,
    or 'default'. Unset: 'default'."""
    default_template_name_old: str = Field(
        default="", alias="DefaultTemplateName", json_schema_extra=NAME
    )
    """The spelling of defaultTemplateName in older manifests. Ignored if defaultTemplateName is
    set. Unset: 'default'."""
    statuses: Entries[Wanted] = Field(default_factory=dict, json_schema_extra=BY_INSTANCE)
    """Instance number -> wanted status. Killed stops the instance: its pod is deleted, its claims
    stay. Removing the entry starts the instance again. No other value is accepted. Another value
    from before the CRD checked this has no effect."""
    update_strategy: UpdateStrategy = UpdateStrategy()
    """How the instances are updated when their template changes. Unset: maxUnavailable 1, and
    forceUpdate.maxUnavailable 100%."""
    disruption_budget: DisruptionBudget | None = None
    """The limit of evictions, such as those of kubectl drain. The TApp gets a PodDisruptionBudget
    with its own name. Instances that are killed, finished or beyond replicas do not count. Needs
    the component disruption-budgets. Unset: no PodDisruptionBudget."""
    force_delete_pod: bool = False
    """Start an instance on another node when its node has not reported for TAPP_LOST_NODE_SECONDS
    (300; the annotation apps.tkestack.io/lost-node-seconds sets it for one TApp). The instance may
    run twice until the old node is back. Needs the component pod-status. Unset: false."""
    auto_delete_unused_template: bool = False
    """Remove entries of templatePool that no other field names. Needs the admission policy of the
    same name. Without the policy, unused templates are only reported in the status. Unset:
    false."""
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
    """PersistentVolumeClaims that each instance gets. A claim is named CLAIM-TAPP-NUMBER, and the
    pod mounts it as a volume with the name of the claim template. A claim takes precedence over a
    volume of the same name in the pod template. If the storage request grows, existing claims grow,
    too, provided that their StorageClass allows expansion. Other changes do not affect existing
    claims."""
    service_name: str = Field(default="", json_schema_extra={**NAME, **rules.SERVICE_NAME})
    """Name of the headless Service that gives each pod a DNS name: POD.SERVICENAME. Unset: pods get
    no DNS name."""
    service_template: Mapping | None = None
    """Template of a Service that each instance gets. The Service has the name of the instance's pod
    and selects that pod. Placeholders such as $(tapp.index) are filled in, also in ports. Needs the
    component services. Unset: no Services."""
    service_retention_policy: ServiceRetentionPolicy = ServiceRetentionPolicy()
    """What happens to the Services of serviceTemplate while they are not needed. Unset: they are
    retained."""
    revision_history_limit: Whole = 10
    """How many old revisions are kept as ControllerRevisions, in addition to the newest revision of
    each template. With 0 no revisions are kept. Unset: 10."""
    min_ready_seconds: Whole = 0
    """How many seconds a pod must have been Ready before it counts as available. Unset: 0."""
    progress_deadline_seconds: Whole = 600
    """Seconds without progress after which a rollout counts as failed: the condition Progressing
    turns False with the reason ProgressDeadlineExceeded, until the rollout makes progress again.
    The time that minReadySeconds, gracePeriodSeconds and the termination grace period of stopping
    pods take is added. updateStrategy.onDeadline says what happens then. With 0 there is no
    deadline. Unset: 600."""
    deletion_hold_timeout_seconds: Whole | None = None
    """For how many seconds the annotation apps.tkestack.io/hold of a pod prevents a final deletion
    of the pod. A deletion is final if the instance is killed or scaled down, or if the TApp is
    deleted. The time counts from when the deletion became due. With 0 such deletions are never
    prevented. Unset: no limit."""
    pod_management_policy: Literal["OrderedReady", "Parallel"] = "Parallel"
    """Whether pods are created and deleted all at once (Parallel) or one after another, as in a
    StatefulSet (OrderedReady). With OrderedReady a pod is created when all instances with lower
    numbers that should run are available. Pods beyond replicas are deleted from the highest number
    down, each after the previous one is gone. Updates and kills do not follow this order. May be
    changed at any time. Unset: Parallel."""
    persistent_volume_claim_retention_policy: RetentionPolicy = RetentionPolicy()
    """What happens to claims that are no longer needed. Unset: they are retained."""

    @property
    def default_name(self) -> str:
        """Name of the template for instances that `spec.templates` does not list.

        `defaultTemplateName` takes precedence over its older spelling `DefaultTemplateName`.
        """
        return self.default_template_name or self.default_template_name_old or DEFAULT_TEMPLATE

    @property
    def ignores_resources(self) -> bool:
        """True if a change of container resources in a template does not start an update."""
        return self.update_strategy.in_place_update_strategy.resources == "Ignore"

    @property
    def resizes(self) -> bool:
        """True if running containers are resized when the resources in their template change."""
        return self.update_strategy.in_place_update_strategy.resources == "InPlace"

    @property
    def ordered(self) -> bool:
        """True if pods are created and deleted one after another."""
        return self.pod_management_policy == "OrderedReady"

    @property
    def rolling_name(self) -> str:
        """Name of the rolling template: `updateStrategy.template`, or the default template if
        unset.
        """
        return self.update_strategy.template or self.default_name

    def template_name(self, instance: int) -> str:
        """Returns the name of the template that an instance runs, also if no such instance exists.

        `instance` is the number of the instance.
        """
        return self.templates.get(str(instance)) or self.default_name

    def find_template(self, name: str) -> Mapping | None:
        """Returns the template called `name` as a user wrote it, or None if it does not exist.

        The name `default` means `spec.template`. If `spec.template` has no containers, it means the
        entry `default` of `spec.templatePool`.
        """
        pooled = self.template_pool.get(name)
        if name != DEFAULT_TEMPLATE or not self.template:
            return pooled
        spec = self.template.get("spec")
        usable = isinstance(spec, dict) and spec.get("containers")
        return self.template if usable or pooled is None else pooled

    def unused_templates(self) -> list[str]:
        """Returns the names of templates in `templatePool` that no other field names, sorted."""
        used = {
            *self.templates.values(),
            self.default_template_name,
            self.default_template_name_old,
            self.default_name,
            self.update_strategy.template,
        }
        return sorted(set(self.template_pool) - used)


class ManagedFields(Value):
    """An entry of `metadata.managedFields`."""

    time: str = ""  # Time of the write, RFC 3339.


class ParentMeta(Value):
    """`metadata` of the TApp. Name, namespace and uid are required."""

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
    """A TApp without spec and status, for deletions.

    A TApp has to be deletable even if its spec or status is invalid.
    """

    api_version: str = Field(pattern=r"^apps\.tkestack\.io/")
    kind: Literal["TApp"]
    metadata: ParentMeta


class TApp(Parent):
    """A TApp with spec and status."""

    spec: TAppSpec = Field(json_schema_extra=rules.SPEC)
    """The instances that should run, each with its own template and status."""
    status: Annotated[ObservedStatus, BeforeValidator(map_of)] = Field(
        default=ObservedStatus(), json_schema_extra={"default": {"observedGeneration": NEVER}}
    )
    """The state of the TApp as the service last saw it."""


class ClaimPolicy(Value):
    """The retention policy of claims, for deletions.

    A deletion reads only this part of the spec, because other parts may be invalid.
    """

    persistent_volume_claim_retention_policy: RetentionPolicy = RetentionPolicy()


class HoldPolicy(Value):
    """The time limit of holds, for deletions.

    A deletion reads only this part of the spec, because other parts may be invalid.
    """

    deletion_hold_timeout_seconds: Whole | None = None


class LostPolicy(Value):
    """The policies for pods on lost nodes, for deletions.

    A deletion reads only this part of the spec, because other parts may be invalid.
    """

    force_delete_pod: bool = False
    never_migrate: bool = False
