"""The status of a TApp: what of it is read back, and what the CRD says of all of it."""

from typing import Annotated, Any, ClassVar, Final

from pydantic import BeforeValidator, ConfigDict, Field

from tapp.declared.fields import Value
from tapp.kube.parts import map_of, text_of
from tapp.words.conditions import ALWAYS, KSTATUS, REFUSED
from tapp.words.notes import REVISION
from tapp.words.times import is_written

NEVER: Final = -1
"""The generation of a status that nobody has written, as of Flux's own kinds.

Without it, tools that compare it with `metadata.generation` take a TApp for finished that has just
been created.
"""


def _generation(value: Any) -> int | None:
    """None where nobody has answered yet: the API server fills in -1."""
    return value if type(value) is int and value > 0 else None


def _revision(value: Any) -> str:
    return value if isinstance(value, str) and REVISION.fullmatch(value) else ""


def _texts(value: Any) -> dict[str, str]:
    return {key: item for key, item in map_of(value).items() if isinstance(item, str)}


def _counts(value: Any) -> dict[str, int]:
    found = map_of(value).items()
    return {key: item for key, item in found if type(item) is int and 0 < item <= _MOST_FAILURES}


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
Text = Annotated[str, BeforeValidator(text_of)]
Texts = Annotated[dict[str, str], BeforeValidator(_texts)]
Noted = Annotated[dict[str, str], BeforeValidator(_noted)]
Since = Annotated[dict[str, str], BeforeValidator(_since)]
Revision = Annotated[str, BeforeValidator(_revision)]
Count = Annotated[int, Field(ge=0)]
Generation = Annotated[int, Field(json_schema_extra={"format": "int64"})]


class ObservedCondition(Value):
    """One entry of `status.conditions` as it was last written."""

    type: str = Field(
        default="",
        description=f"{', '.join(ALWAYS)}; and, only while it is True: "
        f"{', '.join((*REFUSED, *KSTATUS))}.",
    )
    status: str = Field(default="", json_schema_extra={"enum": ["True", "False", "Unknown"]})
    """True, False or Unknown."""
    reason: str = ""
    """The cause, in one CamelCase word."""
    message: str = ""
    """The details, for people."""
    last_transition_time: str = Field(default="", json_schema_extra={"format": "date-time"})
    """When status last changed."""
    observed_generation: ClassVar[Generation]
    """The metadata.generation that the observation is about."""


class TemplateCounts(Value):
    """One entry of `status.templates`; never read."""

    replicas: Count
    """Number of pods that exist."""
    ready_replicas: Count
    """Number of pods that are Ready."""
    updated_replicas: Count
    """Number of pods at the latest revision."""


class ObservedStatus(Value):
    """`status`; a field that is a ClassVar is written only, and never read back.

    What is read: the memory of finished instances, of pods whose deletion may not be seen yet, of
    how often pods have failed, of how far a roll has come, of what a partition keeps, of who is on
    hold, of whose pods are outdated, and of the times of conditions. Whoever wrote it: what is of a
    wrong shape is absent, and no sync fails because of it. What is spelled as attributes are here
    (`not_created`) is not read, either.

    No field has an enum in the CRD but the status of a condition, as a status that is refused or
    pruned would be written anew at every sync.
    """

    model_config = ConfigDict(populate_by_name=False)

    observed_generation: Annotated[int | None, BeforeValidator(_generation)] = Field(
        default=None, json_schema_extra={"format": "int64", "default": NEVER}
    )
    """The metadata.generation that this status is about; -1 where nobody has looked at the TApp
    yet."""
    ready: ClassVar[str]
    """Pods that are Ready, of the instances that should run, such as 3/5."""
    replicas: ClassVar[Count]
    """Number of pods that exist."""
    ready_replicas: ClassVar[Count]
    """Number of pods that are Ready."""
    updated_replicas: ClassVar[Count]
    """Number of pods that run their template's latest revision."""
    current_revision: Revision = ""
    """The revision of the rolling template before the roll that is under way, or that a partition
    keeps: the label tapp_template_hash_key of its ControllerRevision and, where placeholders do not
    make them differ, its pods; where it reads values, with their digest behind."""
    update_revision: Revision = ""
    """The newest revision of the rolling template, as in currentRevision. The same as that when a
    roll is complete."""
    available_replicas: ClassVar[Count]
    """Number of pods that are Ready for minReadySeconds."""
    scale_label_selector: ClassVar[str]
    """Selects the pods, for a HorizontalPodAutoscaler."""
    app_status: ClassVar[str]
    """Pending, Running, Failed, Succ or Killed."""
    statuses: Texts = Field(default_factory=dict)
    """Instance number -> NotCreated, Pending, Running, Updating, PodFailed, PodSucc, Killing,
    Killed, Failed, Succ or Unknown."""
    templates: ClassVar[dict[str, Annotated[TemplateCounts, Field(description="Counts of pods.")]]]
    """Template name -> counts of the pods that run it."""
    replacing: Texts = Field(default_factory=dict)
    """Instance number -> uid of its pod, while a pod that was not available is replaced and its
    deletion may not be seen yet."""
    failures: Annotated[dict[str, Count], BeforeValidator(_counts)] = Field(default_factory=dict)
    """Instance number -> pods in a row that failed soon after they were made, while the next one is
    not made yet: the more there were, the later it follows."""
    outdated: Text = ""
    """Instances whose pod is to be updated to its template's latest revision, as ranges, such as
    0-3,7."""
    held: Text = ""
    """Instances that a hold on their pod keeps from what they need, as ranges."""
    settling: Noted = Field(default_factory=dict)
    """Instance/generation of its pod -> since when only the passing of time can prove that its
    update in place has finished."""
    pulling: Noted = Field(default_factory=dict)
    """Pod that pulls images on a node, or `asked for: POD` if it is not there -> since when it is
    waited for; `refused: IMAGE` or `refused: IMAGE on NODE`, the image of those pods, where none
    could run -> when that was found out; `stuck: POD` -> since when it has
    trouble of its own."""
    resizing: Noted = Field(default_factory=dict)
    """Instance/revision -> since when its pod waits to be resized."""
    turned: Texts = Field(default_factory=dict)
    """Instance/generation of its pod -> the containers that its kubelet was seen to be about to
    start again in place, while nothing in the pod tells that it has."""
    unserved: Noted = Field(default_factory=dict)
    """Instance number -> since when its pod's status should say something else: its readiness gate
    is not served, or nobody acts on the loss of its node. Instance/True or instance/False, where
    the pod's condition Ready has no time that can be right -> since when the pod is seen to be
    Ready, or its node not to report."""
    not_created: Since = Field(default_factory=dict)
    """Since when -> the instances, as ranges, whose pod was requested and does not exist."""
    not_owned: Since = Field(default_factory=dict)
    """Since when -> the instances, as ranges, whose pod uses a claim that is not among the TApp's
    own."""
    not_exposed: Since = Field(default_factory=dict)
    """Since when -> the instances, as ranges, whose Service does not exist, or is not yet as it was
    requested."""
    progressed: Noted = Field(default_factory=dict)
    """Generation/updates begun/instances available -> since when a roll has come that far, while it
    is under way."""
    kept: Texts = Field(default_factory=dict)
    """Revision -> the instances, as ranges, that updateStrategy.partition keeps at it; also of
    numbers that were scaled away, for when they come back."""
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
