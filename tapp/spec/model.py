"""The TApp as its author wrote it: a typed view of the parent object.

Templates stay opaque mappings: Kubernetes adds fields, and none may be dropped on the way (the old
controller dropped them). What each field means: docs/reference.md.
"""

import re
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from tapp.words.times import is_written
from tapp.words.vocabulary import DEFAULT_TEMPLATE, MAX_REPLICAS

Mapping = dict[str, Any]
Retention = Literal["Retain", "Delete"]


class Value(BaseModel):
    """Base of all models: immutable, strict about types, silent about fields it does not know.

    A JSON null is an absent field, as in Go's decoder.
    """

    model_config = ConfigDict(
        frozen=True, strict=True, extra="ignore", alias_generator=to_camel, populate_by_name=True
    )

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, value: Any) -> Any:
        return _without_nulls(value)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict) and None in value.values():
        return {key: item for key, item in value.items() if item is not None}
    return value


T = TypeVar("T")
Entries = Annotated[dict[str, T], BeforeValidator(_without_nulls)]
"""A map in which an entry that is null is none, as a map that is null has none."""


class ForceUpdate(Value):
    """`spec.updateStrategy.forceUpdate`: the budget of instances off the rolling template."""

    max_unavailable: int | str = "100%"

    @property
    def is_written(self) -> bool:
        """Whether its author wrote this budget, or it is the default."""
        return "max_unavailable" in self.model_fields_set


class InPlaceUpdateStrategy(Value):
    """`spec.updateStrategy.inPlaceUpdateStrategy`."""

    grace_period_seconds: int = Field(default=0, ge=0, le=2**31 - 1)
    pre_pull: bool = False
    resources: Literal["Ignore", "InPlace"] | None = None


class UpdateStrategy(Value):
    """`spec.updateStrategy`."""

    template: str = ""
    max_unavailable: int | str = 1
    order: Literal["Ascending", "Descending"] = "Ascending"
    partition: int | str = 0
    force_update: ForceUpdate = ForceUpdate()
    in_place_update_strategy: InPlaceUpdateStrategy = InPlaceUpdateStrategy()
    hold_timeout_seconds: int | None = Field(default=None, ge=0, le=2**31 - 1)
    paused: bool = False


class RetentionPolicy(Value):
    """`spec.persistentVolumeClaimRetentionPolicy`, as in StatefulSet."""

    when_deleted: Retention = "Retain"
    when_scaled: Retention = "Retain"


class ServiceRetentionPolicy(Value):
    """`spec.serviceRetentionPolicy`."""

    when_killed: Retention = "Retain"


class TAppSpec(Value):
    """`spec`, field by field as in docs/reference.md."""

    replicas: int = Field(default=1, ge=0, le=MAX_REPLICAS)
    selector: Mapping | None = None
    template: Mapping | None = None
    template_pool: Entries[Mapping] = Field(default_factory=dict)
    templates: Entries[str] = Field(default_factory=dict)
    values: Entries[Entries[str]] = Field(default_factory=dict)
    default_values: Entries[str] = Field(default_factory=dict)
    default_template_name: str = ""
    default_template_name_old: str = Field(default="", alias="DefaultTemplateName")
    statuses: Entries[str] = Field(default_factory=dict)
    update_strategy: UpdateStrategy = UpdateStrategy()
    force_delete_pod: bool = False
    auto_delete_unused_template: bool = False
    never_migrate: bool = False
    volume_claim_templates: list[Mapping] = Field(default_factory=list)
    service_name: str = ""
    service_template: Mapping | None = None
    service_retention_policy: ServiceRetentionPolicy = ServiceRetentionPolicy()
    revision_history_limit: int = Field(default=10, ge=0, le=2**31 - 1)
    min_ready_seconds: int = Field(default=0, ge=0, le=2**31 - 1)
    progress_deadline_seconds: int = Field(default=600, ge=0, le=2**31 - 1)
    deletion_hold_timeout_seconds: int | None = Field(default=None, ge=0, le=2**31 - 1)
    pod_management_policy: Literal["OrderedReady", "Parallel"] = "Parallel"
    persistent_volume_claim_retention_policy: RetentionPolicy = RetentionPolicy()

    @property
    def default_name(self) -> str:
        """The name of the default template: the lower-case spelling wins."""
        return self.default_template_name or self.default_template_name_old or DEFAULT_TEMPLATE

    @property
    def ignores_resources(self) -> bool:
        """Whether the resources of running containers are left to others, and are no update."""
        return self.update_strategy.in_place_update_strategy.resources == "Ignore"

    @property
    def resizes(self) -> bool:
        """Whether other resources in a template are given to the pods that run."""
        return self.update_strategy.in_place_update_strategy.resources == "InPlace"

    @property
    def ordered(self) -> bool:
        """Whether pods are made and taken away one after another."""
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


def _generation(value: Any) -> int | None:
    """None where nobody has answered yet: the API server fills in -1."""
    return value if type(value) is int and value > 0 else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


REVISION = re.compile(r"[A-Za-z0-9._-]{1,150}")
"""What may be the name of a template's content (`storage/records.py`)."""


def _revision(value: Any) -> str:
    return value if isinstance(value, str) and REVISION.fullmatch(value) else ""


def _entries(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _texts(value: Any) -> dict[str, str]:
    return {key: item for key, item in _entries(value).items() if isinstance(item, str)}


def _counts(value: Any) -> dict[str, int]:
    entries = _entries(value).items()
    return {key: item for key, item in entries if type(item) is int and 0 < item <= _MOST_FAILURES}


_MOST_FAILURES = 1_000
"""No count of failures goes higher (`pace.py`)."""


def _noted(value: Any) -> dict[str, str]:
    """Something -> a time."""
    return {key: item for key, item in _texts(value).items() if is_written(item)}


def _since(value: Any) -> dict[str, str]:
    """A time -> something."""
    return {key: item for key, item in _texts(value).items() if is_written(key)}


def _conditions(value: Any) -> list[dict[str, str]]:
    found = [_texts(item) for item in value] if isinstance(value, list) else []
    for condition in found:
        if not is_written(condition.get(_TURNED, "")):
            condition.pop(_TURNED, None)
    return found


_TURNED = "lastTransitionTime"
Texts = Annotated[dict[str, str], BeforeValidator(_texts)]
Noted = Annotated[dict[str, str], BeforeValidator(_noted)]
Since = Annotated[dict[str, str], BeforeValidator(_since)]
Revision = Annotated[str, BeforeValidator(_revision)]


class ObservedCondition(Value):
    """One entry of `status.conditions` as it was last written."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""


class ObservedStatus(Value):
    """What of `status` is read back.

    The memory of finished instances, of pods whose deletion may not be seen yet, of how often pods
    have failed, of how far a roll has come, of what a partition keeps, of who is on hold, of
    whose pods are outdated, and of the times of conditions. Whoever wrote it: what is of a wrong
    shape is absent, and no sync fails because of it. What is spelled as attributes are here
    (`not_created`) is not read, either.
    """

    model_config = ConfigDict(populate_by_name=False)

    observed_generation: Annotated[int | None, BeforeValidator(_generation)] = None
    statuses: Texts = Field(default_factory=dict)
    replacing: Texts = Field(default_factory=dict)
    failures: Annotated[dict[str, int], BeforeValidator(_counts)] = Field(default_factory=dict)
    settling: Noted = Field(default_factory=dict)
    pulling: Noted = Field(default_factory=dict)
    resizing: Noted = Field(default_factory=dict)
    turned: Texts = Field(default_factory=dict)
    unserved: Noted = Field(default_factory=dict)
    not_created: Since = Field(default_factory=dict)
    not_owned: Since = Field(default_factory=dict)
    not_exposed: Since = Field(default_factory=dict)
    progressed: Noted = Field(default_factory=dict)
    kept: Texts = Field(default_factory=dict)
    current_revision: Revision = ""
    update_revision: Revision = ""
    held: Annotated[str, BeforeValidator(_text)] = ""
    outdated: Annotated[str, BeforeValidator(_text)] = ""
    conditions: Annotated[list[ObservedCondition], BeforeValidator(_conditions)] = Field(
        default_factory=list
    )


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
    """Who the parent is, without a look at its spec and status: enough for finalize."""

    api_version: str = Field(pattern=r"^apps\.tkestack\.io/")
    kind: Literal["TApp"]
    metadata: ParentMeta


class TApp(Parent):
    """The whole parent."""

    spec: TAppSpec
    status: Annotated[ObservedStatus, BeforeValidator(_entries)] = ObservedStatus()


class ClaimPolicy(Value):
    """The part of a spec that finalize reads; it stands although the rest may be invalid."""

    persistent_volume_claim_retention_policy: RetentionPolicy = RetentionPolicy()


class HoldPolicy(Value):
    """Another part that finalize reads."""

    deletion_hold_timeout_seconds: int | None = Field(default=None, ge=0, le=2**31 - 1)


class LostPolicy(Value):
    """Another part that finalize reads."""

    force_delete_pod: bool = False
    never_migrate: bool = False
