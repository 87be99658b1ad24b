"""The schema of a TApp: its own fields, and Kubernetes' schemas for the templates."""

from typing import Any, Final

from crds import rules
from crds.kubernetes_schema import CORE, META, Schema, structural
from tapp.words.conditions import ALWAYS, REFUSED

MAX_REPLICAS: Final = 50_000
"""The same as in tapp/spec/model.py; also the limit of every map that lists instances or templates.

The API server takes a CEL rule only if its worst case is bounded.
"""
MAX_CLAIMS: Final = 100
MAX_NAME: Final = 253


def _text(description: str, **more: Any) -> Schema:
    return {"type": "string", "description": description, **more}


def _flag(description: str) -> Schema:
    return {"type": "boolean", "description": description}


def _count(description: str, **more: Any) -> Schema:
    return {"type": "integer", "format": "int32", "description": description, "minimum": 0, **more}


def _object(description: str, properties: dict[str, Schema], **more: Any) -> Schema:
    return {"type": "object", "description": description, "properties": properties, **more}


def _map(description: str, values: Schema, **more: Any) -> Schema:
    return {
        "type": "object", "description": description, "additionalProperties": values, **more
    }  # fmt: skip


def _texts(description: str) -> Schema:
    return _map(description, {"type": "string"})


def _budget(description: str) -> Schema:
    return {
        "x-kubernetes-int-or-string": True,
        "description": description,
        "maxLength": 16,
        rules.KEY: rules.BUDGET,
    }


def _retention(description: str) -> Schema:
    return _text(description, enum=["Retain", "Delete"])


def _update_strategy() -> Schema:
    return _object(
        "How a changed template reaches the instances that run it. Unset: maxUnavailable 1, and "
        "forceUpdate.maxUnavailable 100%.",
        {
            "template": _text(
                "Name of the rolling template. The instances that run it are updated within "
                "updateStrategy.maxUnavailable, all others within forceUpdate.maxUnavailable. "
                "Unset: the default template.",
                maxLength=MAX_NAME,
            ),
            "maxUnavailable": _budget(
                "How many instances of the rolling template may be unavailable during an update: "
                "a number, or a percentage of the instances that should run, rounded up. "
                "Unset: 1."
            ),
            "forceUpdate": _object(
                "Updates of instances whose template is not the rolling template. Unset: "
                "maxUnavailable 100%.",
                {
                    "maxUnavailable": _budget(
                        "How many instances may be unavailable during an update of these: a "
                        "number, or a percentage of the instances that should run, rounded up. "
                        "Unset: 100%."
                    )
                },
            ),
            "inPlaceUpdateStrategy": _object(
                "How instances are updated in place. Unset: gracePeriodSeconds 0.",
                {
                    "gracePeriodSeconds": _count(
                        "How long an instance is out of its Services before its containers are "
                        "updated in place. Needs the readiness gate "
                        "apps.tkestack.io/InPlaceUpdateReady in the template, and the component "
                        "pod-status. With 0 they are updated at once. Unset: 0.",
                        maximum=2**31 - 1,
                    ),
                    "prePull": _flag(
                        "Whether the new images are pulled on an instance's node before it is "
                        "updated in place: nothing stops for an image that cannot be had. Needs "
                        "image volumes (Kubernetes 1.35). Unset: false."
                    ),
                    "resources": _text(
                        "Ignore leaves the resources of containers and native sidecars to others, "
                        "such as a vertical autoscaler: another value in the template is no "
                        "update, and only new pods have it. InPlace gives another value of cpu or "
                        "memory to the pod that runs; needs the component resize. Unset: another "
                        "value means a new pod, unless the pod has these resources already.",
                        enum=["Ignore", "InPlace"],
                    ),
                },
            ),
            "paused": _flag(
                "Stops updates. Instances are still created, deleted, killed and started. "
                "Unset: false."
            ),
        },
    )


def _claim_template() -> Schema:
    claim = structural(CORE + "PersistentVolumeClaim")
    # The rules compare names, and a rule's worst case must be bounded.
    claim["properties"]["metadata"]["properties"]["name"]["maxLength"] = MAX_NAME
    return claim


def _spec() -> Schema:
    return _object(
        "What should run: numbered instances, each with its own template and status.",
        {
            "replicas": _count(
                "Number of instances; they are numbered from 0 to replicas-1.",
                default=1,
                maximum=MAX_REPLICAS,
            ),
            "selector": structural(META + "LabelSelector")
            | {
                "description": "Accepted and kept, for manifests that set it. Pods are selected by "
                "the label controller-uid, so it is not needed."
            },
            "template": structural(CORE + "PodTemplateSpec")
            | {"description": "The pod template named 'default'."},
            "templatePool": _map(
                "Further pod templates by name. Their fields are those of spec.template.",
                structural(CORE + "PodTemplateSpec", described=False)
                | {rules.KEY: rules.CONTAINERS},
                maxProperties=MAX_REPLICAS,
                nullable=True,
            ),
            "templates": _map(
                "Instance number -> name of the template it runs: a key of templatePool, or "
                "'default'. Instances not listed run the default template.",
                {"type": "string", "maxLength": MAX_NAME},
                maxProperties=MAX_REPLICAS,
                nullable=True,
                **{rules.KEY: rules.INSTANCE_IDS},
            ),
            "defaultTemplateName": _text(
                "Name of the template that instances not listed in templates run: a key of "
                "templatePool, or 'default'. Unset: 'default'.",
                maxLength=MAX_NAME,
            ),
            "DefaultTemplateName": _text(
                "The spelling of defaultTemplateName in older manifests; where both are set, this "
                "one is ignored. Unset: 'default'.",
                maxLength=MAX_NAME,
            ),
            "statuses": _map(
                "Instance number -> wanted status. Killed stops the instance: its pod goes, its "
                "claims stay. Removing the entry starts it again. No other value is accepted; "
                "one that a TApp had before the CRD checked this has no effect.",
                {"type": "string", "maxLength": MAX_NAME, rules.KEY: rules.WANTED_STATUS},
                maxProperties=MAX_REPLICAS,
                nullable=True,
                **{rules.KEY: rules.INSTANCE_IDS},
            ),
            "updateStrategy": _update_strategy(),
            "forceDeletePod": _flag(
                "Start instances elsewhere when their node has not been heard of for "
                "TAPP_LOST_NODE_SECONDS (300; for one TApp the annotation "
                "apps.tkestack.io/lost-node-seconds). Such an instance may run twice until the old "
                "node is back. Needs the component pod-status. Unset: false."
            ),
            "autoDeleteUnusedTemplate": _flag(
                "Remove entries of templatePool that nothing refers to. Needs the admission "
                "policy of the same name; without it, unused names are reported in the status. "
                "Unset: false."
            ),
            "neverMigrate": _flag("Never replace a pod that has completed. Unset: false."),
            "volumeClaimTemplates": {
                "type": "array",
                "description": "Claims that each instance gets, named CLAIM-TAPP-NUMBER and "
                "mounted as a volume under the claim template's name. A claim takes precedence "
                "over a volume of the same name in the template. A larger storage request reaches "
                "claims that are there, where their StorageClass allows expansion; no other "
                "change does.",
                "items": _claim_template(),
                "maxItems": MAX_CLAIMS,
                "x-kubernetes-list-type": "atomic",
                rules.KEY: rules.CLAIM_NAMES,
            },
            "serviceName": _text(
                "Name of the headless Service that gives each pod a DNS name: POD.SERVICENAME. "
                "Unset: pods have none.",
                maxLength=MAX_NAME,
                **{rules.KEY: rules.SERVICE_NAME},
            ),
            "revisionHistoryLimit": _count(
                "How many superseded templates are kept as ControllerRevisions, beyond the newest "
                "one of each template. With 0 there is no history. Unset: 10.",
                maximum=2**31 - 1,
            ),
            "minReadySeconds": _count(
                "How long a pod must have been Ready before it counts as available. Unset: 0.",
                maximum=2**31 - 1,
            ),
            "persistentVolumeClaimRetentionPolicy": _object(
                "What happens to claims that are no longer needed. Unset: they are retained.",
                {
                    "whenDeleted": _retention("When the TApp is deleted. Unset: Retain."),
                    "whenScaled": _retention(
                        "When replicas is lowered so far that the instance goes. Unset: Retain."
                    ),
                },
            ),
        },
        **{rules.KEY: rules.TEMPLATES},
    )


def _conditions() -> Schema:
    return {
        "type": "array",
        "description": f"The latest observations: {', '.join(ALWAYS)}, and one for each "
        "situation that needs attention.",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": _object(
            "One observation.",
            {
                "type": _text(
                    f"{', '.join(ALWAYS)}; and, only while it is True: {', '.join(REFUSED)}."
                ),
                "status": _text("True, False or Unknown.", enum=["True", "False", "Unknown"]),
                "reason": _text("The cause, in one CamelCase word."),
                "message": _text("The details, for people."),
                "lastTransitionTime": _text("When status last changed.", format="date-time"),
                "observedGeneration": {
                    "type": "integer",
                    "format": "int64",
                    "description": "The metadata.generation that the observation is about.",
                },
            },
            required=["type", "status"],
        ),
    }


def _status() -> Schema:
    # No enums and no unknown fields: the hook writes it, and a refused or pruned status would be
    # written anew at every sync.
    return _object(
        "What was observed when the TApp was last looked at.",
        {
            "observedGeneration": {
                "type": "integer",
                "format": "int64",
                "description": "The metadata.generation that this status is about.",
            },
            "ready": _text("Pods that are Ready, of the instances that should run, such as 3/5."),
            "replicas": _count("Number of pods that exist."),
            "readyReplicas": _count("Number of pods that are Ready."),
            "updatedReplicas": _count("Number of pods that run their template's latest revision."),
            "availableReplicas": _count("Number of pods that are Ready for minReadySeconds."),
            "scaleLabelSelector": _text("Selects the pods, for a HorizontalPodAutoscaler."),
            "appStatus": _text("Pending, Running, Failed, Succ or Killed."),
            "statuses": _texts(
                "Instance number -> NotCreated, Pending, Running, Updating, PodFailed, PodSucc, "
                "Killing, Killed, Failed, Succ or Unknown."
            ),
            "templates": _map(
                "Template name -> counts of the pods that run it.",
                _object(
                    "Counts of pods.",
                    {
                        "replicas": _count("Number of pods that exist."),
                        "readyReplicas": _count("Number of pods that are Ready."),
                        "updatedReplicas": _count("Number of pods at the latest revision."),
                    },
                ),
            ),
            "replacing": _texts(
                "Instance number -> uid of its pod, while a pod that was not available is replaced "
                "and its deletion may not be seen yet."
            ),
            "failures": _map(
                "Instance number -> pods in a row that failed soon after they were made, while the "
                "next one is not made yet: the more there were, the later it follows.",
                {"type": "integer", "format": "int32", "minimum": 0},
            ),
            "outdated": _text(
                "Instances whose pod does not run its template's latest revision, as ranges, such "
                "as 0-3,7."
            ),
            "settling": _texts(
                "Instance/generation of its pod -> since when only the passing of time can prove "
                "that its update in place has finished."
            ),
            "pulling": _texts("Pod that pulls images on a node -> since when it is waited for."),
            "resizing": _texts("Instance/revision -> since when its pod waits to be resized."),
            "turned": _texts(
                "Instance/generation of its pod -> the containers that its kubelet was seen to be "
                "about to start again in place, while nothing in the pod tells that it has."
            ),
            "unserved": _texts(
                "Instance number -> since when its pod's status should say something else: its "
                "readiness gate is not served, or nobody acts on the loss of its node."
            ),
            "notCreated": _texts(
                "Since when -> the instances, as ranges, whose pod was requested and does not "
                "exist."
            ),
            "notOwned": _texts(
                "Since when -> the instances, as ranges, whose pod uses a claim that is not among "
                "the TApp's own."
            ),
            "conditions": _conditions(),
        },
    )


def tapp() -> Schema:
    """The schema of the whole object."""
    return _object(
        "TApp runs numbered instances, each of which may have its own pod template, and may be "
        "stopped, started and updated alone.",
        {
            "apiVersion": _text("Version of this API: apps.tkestack.io/v1."),
            "kind": _text("TApp."),
            "metadata": {"type": "object"},
            "spec": _spec(),
            "status": _status(),
        },
        required=["spec"],
        **{rules.KEY: rules.POD_HOSTNAMES},
    )
