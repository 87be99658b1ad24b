"""The status of a TApp: the fields that the service reads, and descriptions for the CRD."""

from typing import Annotated, Any, ClassVar, Final

from pydantic import BeforeValidator, ConfigDict, Field

from tapp.declared.fields import Value
from tapp.kube.parts import map_of, text_of
from tapp.words.conditions import ALWAYS, KSTATUS, REFUSED
from tapp.words.notes import REVISION
from tapp.words.times import is_written

# `observedGeneration` of a new TApp, whose status the service has not written yet. The CRD sets it
# by default.
#
# Flux's own kinds do the same. Without this value, tools that compare the field with
# `metadata.generation` would consider a TApp finished that has just been created.
NEVER: Final = -1


def _generation(value: Any) -> int | None:
    """Returns the value of `observedGeneration`: the generation that the status is about.

    Returns None if the value is not a positive number. The value is -1 if the service has not
    written the status yet.
    """
    return value if type(value) is int and value > 0 else None


def _revision(value: Any) -> str:
    """Returns the value if it is the name of a revision, or an empty string if it is not."""
    return value if isinstance(value, str) and REVISION.fullmatch(value) else ""


def _time(value: Any) -> str:
    """Returns the value if it is a time (RFC 3339), or an empty string if it is not."""
    return value if isinstance(value, str) and is_written(value) else ""


def _texts(value: Any) -> dict[str, str]:
    """Returns the entries of a mapping whose values are texts; empty if `value` is no mapping."""
    return {key: item for key, item in map_of(value).items() if isinstance(item, str)}


def _counts(value: Any) -> dict[str, int]:
    """Returns the entries of a mapping whose values are valid numbers of failures."""
    found = map_of(value).items()
    return {key: item for key, item in found if type(item) is int and 0 < item <= _MOST_FAILURES}


# The highest number of failures that the service counts for an instance (`pace.py`).
_MOST_FAILURES = 1_000


def _noted(value: Any) -> dict[str, str]:
    """Returns the entries of a mapping whose values are times (RFC 3339); empty if there are
    none.
    """
    return {key: item for key, item in _texts(value).items() if is_written(item)}


def _since(value: Any) -> dict[str, str]:
    """Returns the entries of a mapping whose keys are times (RFC 3339); empty if there are none."""
    return {key: item for key, item in _texts(value).items() if is_written(key)}


def _conditions(value: Any) -> list[dict[str, str]]:
    """Returns the conditions in a list, each with its fields that are texts.

    Returns an empty list if `value` is not a list. An invalid `lastTransitionTime` is left out.
    """
    found = [_texts(item) for item in value] if isinstance(value, list) else []
    for condition in found:
        if not is_written(condition.get(_TURNED, "")):
            condition.pop(_TURNED, None)
    return found


_TURNED = "lastTransitionTime"
Text = Annotated[str, BeforeValidator(text_of)]
Texts = Annotated[dict[str, str], BeforeValidator(_texts)]
Noted = Annotated[dict[str, str], BeforeValidator(_noted)]
Since = Annotated[dict[str, str], BeforeValidator(_since)]
Time = Annotated[str, BeforeValidator(_time)]
Revision = Annotated[str, BeforeValidator(_revision)]
Count = Annotated[int, Field(ge=0)]
Generation = Annotated[int, Field(json_schema_extra={"format": "int64"})]


class ObservedCondition(Value):
    """An entry of `status.conditions` as the service last wrote it."""

    type: str = Field(
        default="",
        description=f"{', '.join(ALWAYS)}; and, only while it is True: "
        f"{', '.join((*REFUSED, *KSTATUS))}.",
    )
    status: str = Field(default="", json_schema_extra={"enum": ["True", "False", "Unknown"]})
    """True, False or Unknown."""
    reason: str = ""
    """The cause, as one CamelCase word."""
    message: str = ""
    """A sentence with the details."""
    last_transition_time: str = Field(default="", json_schema_extra={"format": "date-time"})
    """When status last changed."""
    observed_generation: ClassVar[Generation]
    """The metadata.generation that this condition is about."""


class TemplateCounts(Value):
    """An entry of `status.templates`, which the service writes and does not read."""

    replicas: Count
    """Number of pods."""
    ready_replicas: Count
    """Number of pods that are Ready."""
    updated_replicas: Count
    """Number of pods that run the template's latest revision."""


class ObservedStatus(Value):
    """The status of a TApp, as the service last wrote it.

    The service only writes the fields that are a ClassVar. It reads all other fields in later
    syncs, because it has no memory of its own. Examples are the time since when a sync waits for a
    pod, and the instances that a partition keeps.

    Users may have changed the status. So a value of a wrong shape counts as absent, and no sync
    fails because of it. Python's spelling of a field's name (`not_created`) is not accepted either.

    In the CRD, only the status of a condition has an enum. The API server would refuse or drop a
    value outside of an enum, and the service would then write the status again at every sync.
    """

    model_config = ConfigDict(populate_by_name=False)

    observed_generation: Annotated[int | None, BeforeValidator(_generation)] = Field(
        default=None, json_schema_extra={"format": "int64", "default": NEVER}
    )
    """The metadata.generation that this status is about; -1 if the service has not seen the TApp
    yet."""
    ready: ClassVar[str]
    """Number of instances whose pod is Ready, of the instances that should run, such as 3/5."""
    replicas: ClassVar[Count]
    """Number of pods."""
    ready_replicas: ClassVar[Count]
    """Number of pods that are Ready."""
    updated_replicas: ClassVar[Count]
    """Number of pods that run their template's latest revision."""
    current_revision: Revision = ""
    """The revision of the rolling template before the current rollout, or the one that a partition
    keeps. It is the label tapp_template_hash_key of the ControllerRevision and, if the template has
    no placeholders, of its pods. If the template reads values, a digest of these follows."""
    update_revision: Revision = ""
    """The newest revision of the rolling template, in the form of currentRevision. Equal to
    currentRevision when a rollout is complete."""
    available_replicas: ClassVar[Count]
    """Number of pods that have been Ready for minReadySeconds."""
    scale_label_selector: ClassVar[str]
    """Label selector of the pods, for a HorizontalPodAutoscaler."""
    app_status: ClassVar[str]
    """Pending, Running, Failed, Succ or Killed."""
    statuses: Texts = Field(default_factory=dict)
    """Instance number -> NotCreated, Pending, Running, Updating, PodFailed, PodSucc, Killing,
    Killed, Failed, Succ or Unknown."""
    templates: ClassVar[dict[str, Annotated[TemplateCounts, Field(description="Counts of pods.")]]]
    """Template name -> counts of the pods that run the template."""
    replacing: Texts = Field(default_factory=dict)
    """Instance number -> uid of its pod. Listed while a pod that was not available is being
    replaced, and the service may not have seen its deletion yet."""
    failures: Annotated[dict[str, Count], BeforeValidator(_counts)] = Field(default_factory=dict)
    """Instance number -> number of consecutive pods that failed soon after their creation. Listed
    while the next pod is not created yet. The wait before the next pod grows with this number."""
    outdated: Text = ""
    """Instances whose pod does not run its template's latest revision and will be updated, as
    ranges, such as 0-3,7."""
    held: Text = ""
    """Instances that have a pending action because their pod is on hold, as ranges."""
    settling: Noted = Field(default_factory=dict)
    """Instance/generation of its pod -> since when only the passing of time can prove that the
    pod's update in place has finished."""
    pulling: Noted = Field(default_factory=dict)
    """Pod that pulls images on a node, or `asked for: POD` if it does not exist yet -> since when
    it is waited for. `refused: IMAGE` or `refused: IMAGE on NODE`, with the image of the pods that
    pull -> when it turned out that such a pod cannot run. `stuck: POD` -> since when the pod has
    failed for a reason other than the images."""
    resizing: Noted = Field(default_factory=dict)
    """Instance/revision -> since when its pod waits to be resized."""
    turned: Texts = Field(default_factory=dict)
    """Instance/generation of its pod -> the containers that the kubelet was about to restart when
    it had seen the pod's newest spec. Listed until the pod itself shows that they have
    restarted."""
    unserved: Noted = Field(default_factory=dict)
    """Instance number -> since when the pod's status should have changed: nobody opens its
    readiness gate, or acts on the loss of its node. Instance/True or instance/False, if the pod's
    condition Ready has no usable time -> since when the pod has been Ready, or its node has been
    silent."""
    not_created: Since = Field(default_factory=dict)
    """Time -> the instances, as ranges, whose pod has been requested since then and does not
    exist."""
    not_owned: Since = Field(default_factory=dict)
    """Time -> the instances, as ranges, whose pod has used a claim since then that does not belong
    to the TApp."""
    not_exposed: Since = Field(default_factory=dict)
    """Time -> the instances, as ranges, whose Service has been requested since then and does not
    exist, or still differs from the request."""
    unguarded: Time = ""
    """Since when the PodDisruptionBudget of disruptionBudget has been requested and does not exist.
    Absent if it exists or is not wanted."""
    progressed: Noted = Field(default_factory=dict)
    """Generation/updates begun/instances available -> since when the current rollout has been at
    this point."""
    rolled_back: Texts = Field(default_factory=dict)
    """Revision that updateStrategy.onDeadline has rolled back -> when and why, as `TIME: REASON`.
    Listed until a rollout completes, or until the annotation apps.tkestack.io/retry of the TApp
    names REVISION/TIME."""
    kept: Texts = Field(default_factory=dict)
    """Revision -> the instances, as ranges, that updateStrategy.partition keeps at the revision.
    Instances that were scaled down stay listed, for the case that they come back."""
    conditions: Annotated[
        list[
            Annotated[
                ObservedCondition,
                Field(
                    description="One observation.",
                    json_schema_extra={"required": ["type", "status"]},
                ),
            ]
        ],
        BeforeValidator(_conditions),
    ] = Field(
        default_factory=list,
        description=f"The latest observations: {', '.join(ALWAYS)}, and one for each situation "
        "that needs attention.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    )
