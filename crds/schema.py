"""The schema of a TApp: its own fields, and Kubernetes' schemas for the templates."""

from typing import Any, Final

from crds import rules
from crds.kubernetes_schema import CORE, META, Schema, structural, with_placeholders
from crds.parts import count, flag, map_of, object_of, text
from crds.status import status
from tapp.spec.beside import MOST_CLAIMS
from tapp.spec.placeholders import SERVICE_NUMBERS
from tapp.spec.values import LONGEST

MAX_REPLICAS: Final = 50_000
"""The same as in tapp/spec/model.py; also the limit of every map that lists instances or templates.

The API server takes a CEL rule only if its worst case is bounded.
"""
MAX_VALUES: Final = 64
"""Keys of one instance."""
MAX_NAME: Final = 253


def _values(description: str, **more: Any) -> Schema:
    value = {"type": "string", "maxLength": LONGEST, "pattern": r"^[^\x00]*$"}
    return map_of(description, value, maxProperties=MAX_VALUES, **more)


def _number_or_percentage(description: str, rule: list[rules.Rule]) -> Schema:
    return {
        "x-kubernetes-int-or-string": True,
        "description": description,
        "maxLength": 16,
        rules.KEY: rule,
    }


def _budget(description: str) -> Schema:
    return _number_or_percentage(description, rules.BUDGET)


def _retention(description: str) -> Schema:
    return text(description, enum=["Retain", "Delete"])


def _update_strategy() -> Schema:
    return object_of(
        "How a changed template reaches the instances that run it. Unset: maxUnavailable 1, and "
        "forceUpdate.maxUnavailable 100%.",
        {
            "template": text(
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
            "order": text(
                "Which number goes first where several instances wait for an update: Ascending, "
                "the lowest; Descending, the highest. Instances on another than the rolling "
                "template go before all others, and within both groups those with a higher "
                "annotation apps.tkestack.io/update-priority. Unset: Ascending.",
                enum=["Ascending", "Descending"],
            ),
            "partition": _number_or_percentage(
                "How many instances of the rolling template keep the revision that they have, the "
                "last in the order: a number, or a percentage of these instances, rounded up (but "
                "below 100% at least one of several is updated). One that loses its pod comes back "
                "with that revision. Unset: 0.",
                rules.PARTITION,
            ),
            "forceUpdate": object_of(
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
            "inPlaceUpdateStrategy": object_of(
                "How instances are updated in place. Unset: gracePeriodSeconds 0.",
                {
                    "gracePeriodSeconds": count(
                        "How long an instance is out of its Services before its containers are "
                        "updated in place. Needs the readiness gate "
                        "apps.tkestack.io/InPlaceUpdateReady in the template, and the component "
                        "pod-status. With 0 they are updated at once. Unset: 0.",
                        maximum=2**31 - 1,
                    ),
                    "prePull": flag(
                        "Whether the new images are pulled on an instance's node before it is "
                        "updated in place: nothing stops for an image that cannot be had. Needs "
                        "image volumes (Kubernetes 1.35). Unset: false."
                    ),
                    "resources": text(
                        "Ignore leaves the resources of containers and native sidecars to others, "
                        "such as a vertical autoscaler: another value in the template is no "
                        "update, and only new pods have it. InPlace gives another value of cpu or "
                        "memory to the pod that runs; needs the component resize. Unset: another "
                        "value means a new pod, unless the pod has these resources already.",
                        enum=["Ignore", "InPlace"],
                    ),
                },
            ),
            "holdTimeoutSeconds": count(
                "For how many seconds an update is held back by the annotation "
                "apps.tkestack.io/hold of a pod, from when it is wanted on. With 0 no update is. "
                "Unset: without end.",
                maximum=2**31 - 1,
            ),
            "paused": flag(
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


def _service_template() -> Schema:
    spec = structural(CORE + "ServiceSpec") | {rules.KEY: rules.NO_SELECTOR}
    template = object_of(
        "A Service for each instance, named as its pod, which it selects; $(tapp.index) and the "
        "other placeholders stand for the instance's own, in ports, too. Needs the component "
        "services. Unset: no Service.",
        {"metadata": structural(META + "ObjectMeta"), "spec": spec},
        required=["spec"],
    )
    return with_placeholders(template, SERVICE_NUMBERS)


def _spec() -> Schema:
    return object_of(
        "What should run: numbered instances, each with its own template and status.",
        {
            "replicas": count(
                "Number of instances; they are numbered from 0 to replicas-1.",
                default=1,
                maximum=MAX_REPLICAS,
            ),
            "selector": structural(META + "LabelSelector")
            | {
                "description": "Accepted and kept, for manifests that set it. Pods are selected by "
                "the label controller-uid, so it is not needed."
            },
            "template": with_placeholders(structural(CORE + "PodTemplateSpec"))
            | {"description": "The pod template named 'default'."},
            "templatePool": map_of(
                "Further pod templates by name. Their fields are those of spec.template.",
                with_placeholders(structural(CORE + "PodTemplateSpec", described=False))
                | {rules.KEY: rules.CONTAINERS},
                maxProperties=MAX_REPLICAS,
                nullable=True,
            ),
            "templates": map_of(
                "Instance number -> name of the template it runs: a key of templatePool, or "
                "'default'. Instances not listed run the default template.",
                {"type": "string", "maxLength": MAX_NAME},
                maxProperties=MAX_REPLICAS,
                nullable=True,
                **{rules.KEY: rules.INSTANCE_IDS},
            ),
            "values": map_of(
                "Instance number -> its own values, by key. In a pod template or a claim template, "
                "$(tapp.values.KEY) stands for the instance's value, $(tapp.index) for its number, "
                "$(tapp.name) for its pod's name and $(tapp.namespace) for the namespace; "
                "$$(tapp. is the text itself.",
                _values("The values of one instance."),
                maxProperties=MAX_REPLICAS,
                nullable=True,
                **{rules.KEY: rules.INSTANCE_IDS},
            ),
            "defaultValues": _values(
                "The values of instances that have none of that key in values.",
                nullable=True,
                **{rules.KEY: rules.VALUE_KEYS},
            ),
            "defaultTemplateName": text(
                "Name of the template that instances not listed in templates run: a key of "
                "templatePool, or 'default'. Unset: 'default'.",
                maxLength=MAX_NAME,
            ),
            "DefaultTemplateName": text(
                "The spelling of defaultTemplateName in older manifests; where both are set, this "
                "one is ignored. Unset: 'default'.",
                maxLength=MAX_NAME,
            ),
            "statuses": map_of(
                "Instance number -> wanted status. Killed stops the instance: its pod goes, its "
                "claims stay. Removing the entry starts it again. No other value is accepted; "
                "one that a TApp had before the CRD checked this has no effect.",
                {"type": "string", "maxLength": MAX_NAME, rules.KEY: rules.WANTED_STATUS},
                maxProperties=MAX_REPLICAS,
                nullable=True,
                **{rules.KEY: rules.INSTANCE_IDS},
            ),
            "updateStrategy": _update_strategy(),
            "forceDeletePod": flag(
                "Start instances elsewhere when their node has not been heard of for "
                "TAPP_LOST_NODE_SECONDS (300; for one TApp the annotation "
                "apps.tkestack.io/lost-node-seconds). Such an instance may run twice until the old "
                "node is back. Needs the component pod-status. Unset: false."
            ),
            "autoDeleteUnusedTemplate": flag(
                "Remove entries of templatePool that nothing refers to. Needs the admission "
                "policy of the same name; without it, unused names are reported in the status. "
                "Unset: false."
            ),
            "neverMigrate": flag("Never replace a pod that has completed. Unset: false."),
            "volumeClaimTemplates": {
                "type": "array",
                "description": "Claims that each instance gets, named CLAIM-TAPP-NUMBER and "
                "mounted as a volume under the claim template's name. A claim takes precedence "
                "over a volume of the same name in the template. A larger storage request reaches "
                "claims that are there, where their StorageClass allows expansion; no other "
                "change does.",
                "items": _claim_template(),
                "maxItems": MOST_CLAIMS,
                "x-kubernetes-list-type": "atomic",
                rules.KEY: rules.CLAIM_NAMES,
            },
            "serviceName": text(
                "Name of the headless Service that gives each pod a DNS name: POD.SERVICENAME. "
                "Unset: pods have none.",
                maxLength=MAX_NAME,
                **{rules.KEY: rules.SERVICE_NAME},
            ),
            "serviceTemplate": _service_template(),
            "serviceRetentionPolicy": object_of(
                "What happens to Services of serviceTemplate while they are not needed. Unset: "
                "they are retained.",
                {"whenKilled": _retention("While the instance is killed. Unset: Retain.")},
            ),
            "revisionHistoryLimit": count(
                "How many superseded templates are kept as ControllerRevisions, beyond the newest "
                "one of each template. With 0 there is no history. Unset: 10.",
                maximum=2**31 - 1,
            ),
            "minReadySeconds": count(
                "How long a pod must have been Ready before it counts as available. Unset: 0.",
                maximum=2**31 - 1,
            ),
            "progressDeadlineSeconds": count(
                "After how many seconds in which a roll came no further it counts as failed: "
                "Progressing turns False, with the reason ProgressDeadlineExceeded, until it goes "
                "on. What minReadySeconds, gracePeriodSeconds and the termination grace period of "
                "pods that are stopped take is added. Nothing is taken back by itself. With 0 "
                "there is no deadline. Unset: 600.",
                maximum=2**31 - 1,
            ),
            "deletionHoldTimeoutSeconds": count(
                "For how many seconds the annotation apps.tkestack.io/hold of a pod holds back "
                "what deletes it for good: its instance is killed or scaled down, or the TApp is "
                "deleted; from when that is wanted on. With 0 nothing is held back. Unset: "
                "without end.",
                maximum=2**31 - 1,
            ),
            "podManagementPolicy": text(
                "Whether pods are made and taken away at once or one after another, as in a "
                "StatefulSet. OrderedReady: a pod is made when all lower numbers that should run "
                "are available; of pods beyond replicas the highest goes first, the next one when "
                "it is gone. Updates and kills are not ordered by it. May be changed at any time. "
                "Unset: Parallel.",
                enum=["OrderedReady", "Parallel"],
            ),
            "persistentVolumeClaimRetentionPolicy": object_of(
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


def tapp() -> Schema:
    """The schema of the whole object."""
    return object_of(
        "TApp runs numbered instances, each of which may have its own pod template, and may be "
        "stopped, started and updated alone.",
        {
            "apiVersion": text("Version of this API: apps.tkestack.io/v1."),
            "kind": text("TApp."),
            "metadata": {"type": "object"},
            "spec": _spec(),
            "status": status(),
        },
        required=["spec"],
        **{rules.KEY: rules.POD_HOSTNAMES},
    )
