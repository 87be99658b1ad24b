"""The schema of a TApp's status."""

from typing import Final

from crds.kubernetes_schema import Schema
from crds.parts import count, map_of, object_of, text, texts
from tapp.words.conditions import ALWAYS, KSTATUS, REFUSED

NEVER: Final = -1
"""The generation of a status that nobody has written, as of Flux's own kinds.

Without it, tools that compare it with `metadata.generation` take a TApp for finished that has just
been created.
"""


def _conditions() -> Schema:
    return {
        "type": "array",
        "description": f"The latest observations: {', '.join(ALWAYS)}, and one for each "
        "situation that needs attention.",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": object_of(
            "One observation.",
            {
                "type": text(
                    f"{', '.join(ALWAYS)}; and, only while it is True: "
                    f"{', '.join((*REFUSED, *KSTATUS))}."
                ),
                "status": text("True, False or Unknown.", enum=["True", "False", "Unknown"]),
                "reason": text("The cause, in one CamelCase word."),
                "message": text("The details, for people."),
                "lastTransitionTime": text("When status last changed.", format="date-time"),
                "observedGeneration": {
                    "type": "integer",
                    "format": "int64",
                    "description": "The metadata.generation that the observation is about.",
                },
            },
            required=["type", "status"],
        ),
    }


def status() -> Schema:
    """The schema of `status`."""
    # No enums and no unknown fields: the hook writes it, and a refused or pruned status would be
    # written anew at every sync.
    return object_of(
        "What was observed when the TApp was last looked at.",
        {
            "observedGeneration": {
                "type": "integer",
                "format": "int64",
                "description": "The metadata.generation that this status is about; -1 where nobody "
                "has looked at the TApp yet.",
                "default": NEVER,
            },
            "ready": text("Pods that are Ready, of the instances that should run, such as 3/5."),
            "replicas": count("Number of pods that exist."),
            "readyReplicas": count("Number of pods that are Ready."),
            "updatedReplicas": count("Number of pods that run their template's latest revision."),
            "currentRevision": text(
                "The revision of the rolling template before the roll that is under way, or that a "
                "partition keeps: the label tapp_template_hash_key of its ControllerRevision and, "
                "where placeholders do not make them differ, its pods; where it reads values, "
                "with their digest behind."
            ),
            "updateRevision": text(
                "The newest revision of the rolling template, as in currentRevision. The same as "
                "that when a roll is complete."
            ),
            "availableReplicas": count("Number of pods that are Ready for minReadySeconds."),
            "scaleLabelSelector": text("Selects the pods, for a HorizontalPodAutoscaler."),
            "appStatus": text("Pending, Running, Failed, Succ or Killed."),
            "statuses": texts(
                "Instance number -> NotCreated, Pending, Running, Updating, PodFailed, PodSucc, "
                "Killing, Killed, Failed, Succ or Unknown."
            ),
            "templates": map_of(
                "Template name -> counts of the pods that run it.",
                object_of(
                    "Counts of pods.",
                    {
                        "replicas": count("Number of pods that exist."),
                        "readyReplicas": count("Number of pods that are Ready."),
                        "updatedReplicas": count("Number of pods at the latest revision."),
                    },
                ),
            ),
            "replacing": texts(
                "Instance number -> uid of its pod, while a pod that was not available is replaced "
                "and its deletion may not be seen yet."
            ),
            "failures": map_of(
                "Instance number -> pods in a row that failed soon after they were made, while the "
                "next one is not made yet: the more there were, the later it follows.",
                {"type": "integer", "format": "int32", "minimum": 0},
            ),
            "outdated": text(
                "Instances whose pod is to be updated to its template's latest revision, as "
                "ranges, such as 0-3,7."
            ),
            "held": text(
                "Instances that a hold on their pod keeps from what they need, as ranges."
            ),
            "settling": texts(
                "Instance/generation of its pod -> since when only the passing of time can prove "
                "that its update in place has finished."
            ),
            "pulling": texts(
                "Pod that pulls images on a node, or `asked for: POD` if it is not there -> since "
                "when it is waited for; `refused: IMAGE` or `refused: IMAGE on NODE`, the image of "
                "those pods, where none could run -> when that was found out."
            ),
            "resizing": texts("Instance/revision -> since when its pod waits to be resized."),
            "turned": texts(
                "Instance/generation of its pod -> the containers that its kubelet was seen to be "
                "about to start again in place, while nothing in the pod tells that it has."
            ),
            "unserved": texts(
                "Instance number -> since when its pod's status should say something else: its "
                "readiness gate is not served, or nobody acts on the loss of its node."
            ),
            "notCreated": texts(
                "Since when -> the instances, as ranges, whose pod was requested and does not "
                "exist."
            ),
            "notOwned": texts(
                "Since when -> the instances, as ranges, whose pod uses a claim that is not among "
                "the TApp's own."
            ),
            "notExposed": texts(
                "Since when -> the instances, as ranges, whose Service does not exist, or is not "
                "yet as it was requested."
            ),
            "progressed": texts(
                "Generation/updates begun/instances available -> since when a roll has come that "
                "far, while it is under way."
            ),
            "kept": texts(
                "Revision -> the instances, as ranges, that updateStrategy.partition keeps at it; "
                "also of numbers that were scaled away, for when they come back."
            ),
            "conditions": _conditions(),
        },
        default={"observedGeneration": NEVER},
    )
