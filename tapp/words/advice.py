"""The advice for each reason: the event behind the reason, and what a person can do.

`ADVICE` is the only table. `kubectl tapp why`, `status` and `wait`, the page, and the tables of
docs/troubleshooting.md show its texts. A word in braces, such as `{rollback}`, names a remedy
(`remedies.py`). In a terminal and in the documentation a command is shown in its place, and on the
page the name of a button.
"""

from typing import Final

from tapp.words.conditions import Type
from tapp.words.reasons import Reason, Standing
from tapp.words.remedies import NOTHING, WAIT, Advice

_UNDO = "To undo the change, go back to the previous revision: {rollback}."
_WHY = "To see what is wrong with each instance: {why}."
_IMAGE = "To set another image: {image}. The service then updates broken instances at once."

_OF_PROGRESS: Final = (
    Advice(
        Reason.ENOUGH, (Type.AVAILABLE,), "enough instances are available", NOTHING
    ),
    Advice(
        Reason.TOO_FEW, (Type.AVAILABLE,),
        "fewer instances are available than the rolling budget demands",
        "While the first pods start, wait. To see why pods are not Ready: {why}.",
    ),
    Advice(Reason.CREATING, (Type.PROGRESSING,), "pods are being created", WAIT),
    Advice(Reason.UPDATING, (Type.PROGRESSING,), "instances are being updated", WAIT),
    Advice(
        Reason.DELETING, (Type.PROGRESSING, Type.READY),
        "pods are ending. If the TApp is [being deleted](deletion.md#the-end-of-a-tapp), the "
        "message names what it waits for, and Available is Unknown",
        WAIT,
    ),
    Advice(
        Reason.PULLING, (Type.PROGRESSING,),
        "nodes [pull images](in-place.md#pull-the-image-first) before any container stops", WAIT,
    ),
    Advice(
        Reason.WAITING_FOR_BUDGET, (Type.PROGRESSING,),
        "as many instances are unavailable as `maxUnavailable` allows; the message names them",
        "Wait until the unavailable instances are available, or repair them. "
        f"{_WHY} To update more instances at a time, raise `spec.updateStrategy.maxUnavailable`: "
        "{budget}.",
    ),
    Advice(
        Reason.WAITING_FOR_DOMAIN, (Type.PROGRESSING,),
        "instances wait for instances of another [failure domain](failure-domains.md); the message "
        "names them and their domain",
        f"Wait until these instances are updated and available, or repair them. {_WHY} To update "
        "all domains at the same time, remove `spec.updateStrategy.domain`.",
    ),
    Advice(
        Reason.WAITING_FOR_ORDER, (Type.PROGRESSING,),
        "instances wait for an instance that [comes first](order.md#one-after-another), such as "
        "one with a lower number under `podManagementPolicy: OrderedReady`",
        f"Wait until the instance that comes first is available, or repair it. {_WHY}",
    ),
    Advice(
        Reason.WAITING_FOR_INSTANCES, (Type.PROGRESSING,),
        "pods are not available yet. After half a minute the message says "
        "[what each pod waits for](progress.md#what-a-pod-waits-for), and since when",
        "Wait. If it takes too long, see `kubectl describe pod`.",
    ),
    Advice(
        Reason.HELD, (Type.PROGRESSING,),
        "only [pods on hold](hold.md) are left: they have the annotation "
        "`apps.tkestack.io/hold`",
        "Wait until the program that set the holds removes them. To remove them yourself: "
        "{release}. To see their reasons: {why}.",
    ),
    Advice(
        Reason.PAUSED, (Type.PROGRESSING,),
        "`spec.updateStrategy.paused` is true, and instances wait for updates",
        "To resume the updates: {resume}.",
    ),
    Advice(
        Reason.PROGRESS_DEADLINE_EXCEEDED, (Type.PROGRESSING, Type.STALLED),
        "a rollout has made no progress for "
        "[`spec.progressDeadlineSeconds`](progress.md#the-deadline); the message says what it "
        "waits for. The rollout continues by itself as soon as it can",
        f"{_UNDO} {_IMAGE} If the rollout only needs more time, raise "
        "`spec.progressDeadlineSeconds` (0: no deadline).",
    ),
    Advice(
        Reason.ROLLED_BACK, (Type.PROGRESSING, Type.STALLED),
        "a rollout made no progress for "
        "[`spec.progressDeadlineSeconds`](progress.md#the-deadline), and its revision "
        "[was rolled back](automatic-rollback.md); the message says when and why",
        f"Repair the template. {_IMAGE} If the cause lay elsewhere, roll the revision out once "
        "more: {retry}.",
    ),
    Advice(
        Reason.STUCK, (Type.PROGRESSING,), "nothing can be done",
        "See the condition `Degraded`, which says why.",
    ),
    Advice(Reason.COMPLETE, (Type.PROGRESSING,), "nothing is left to be done", NOTHING),
    Advice(
        Reason.NODES_SILENT, (Type.DEGRADED,),
        "the TApp is being deleted, and the nodes of these pods have stopped reporting. The pods "
        "go when their nodes report again or are [lost](lost-nodes.md)",
        "Bring the nodes back. If a machine is gone for good, delete its Node object.",
    ),
    Advice(
        Reason.AS_SPECIFIED, (Type.READY,),
        "every instance is as the spec asks. While Ready is False, it has the reason and message "
        "of Degraded if Degraded is True, and otherwise of Progressing",
        NOTHING,
    ),
    Advice(
        Reason.REACHED, (Type.READY,),
        "Ready is True: a rollout has reached [the partition](partition.md) "
        "`spec.updateStrategy.partition`. The message names the instances that keep an older "
        "revision",
        "To continue the rollout: {advance}. If the new revision is bad, go back: {rollback}.",
    ),
    Advice(Reason.AS_EXPECTED, (Type.DEGRADED,), "nothing is refused or broken", NOTHING),
    Advice(
        Reason.BROKEN, (Type.DEGRADED,),
        "an instance has Failed; its node has stopped reporting (without `forceDeletePod`); a "
        "container keeps crashing, cannot start, or has failed for good while others of its pod "
        "run; a pod has waited [too long](progress.md#what-a-pod-waits-for) for a node, its "
        "kubelet, volumes, or the start of its containers; or its kubelet refuses it",
        f"{_UNDO} {_IMAGE} {_WHY}",
    ),
)  # fmt: skip
_REFUSED: Final = (
    Advice(
        Reason.MISSING, (Type.PODS_NOT_CREATED,),
        "pods that were requested 30 or more seconds ago do not exist: the API server refuses "
        "them, or a pod of that name belongs to another owner",
        "The Events show the API server's error: {describe}. If there is no Event, pods of these "
        'names have another owner: see "[Lost ownership](#lost-ownership)" in Troubleshooting.',
    ),
    Advice(
        Reason.OVERDUE, (Type.PODS_NOT_DELETED,),
        "a pod still exists 30 s after the end of its grace period, or its node has stopped "
        "reporting: [deletions that do not end](#deletions-that-do-not-end)",
        "Run the command that the message of the condition names for the node or the finalizer.",
    ),
    Advice(
        Reason.OVERDUE, (Type.CLAIMS_NOT_DELETED,),
        "a claim still exists 30 s after its deletion: a finalizer keeps it, or a running pod uses "
        "it. In the second case **its data go with that pod**",
        "If a pod still uses the claim, save the data first, because the data go with the pod. "
        "Then replace the pod: {restart}. If a finalizer keeps the claim, see the log of its "
        "controller. If the controller is gone, remove its finalizer with the command in the "
        "message.",
    ),
    Advice(
        Reason.OVERDUE, (Type.SERVICES_NOT_DELETED,),
        "a Service still exists 30 s after its deletion: a finalizer keeps it",
        "See the log of the finalizer's controller. If the controller is gone, remove its "
        "finalizer with the command in the message.",
    ),
    Advice(
        Reason.UNRESOLVED, (Type.TEMPLATE_NOT_FOUND,),
        "a template does not exist, or no pod can be made from it. Instances keep their pods; "
        "missing pods are not created",
        "Correct the template's name in `spec.templates`, or put the template back into "
        "`spec.templatePool`.",
    ),
    Advice(
        Reason.NOT_A_BUDGET, (Type.INVALID_BUDGET,),
        "`maxUnavailable` is neither a number of at least 1 nor a percentage from 1% to 100%. The "
        "instances that it applies to are not updated",
        "Correct `maxUnavailable`, which the message quotes: {budget}.",
    ),
    Advice(
        Reason.NOT_A_PARTITION, (Type.INVALID_PARTITION,),
        "`updateStrategy.partition` is neither a number of at least 0 nor a percentage, so no "
        "instance of the rolling template is updated. Or `updateStrategy.template` does not exist "
        "and there is a partition, so no instance at all is updated",
        "Correct `spec.updateStrategy.partition` or `spec.updateStrategy.template`. To remove the "
        "partition: {advance}.",
    ),
    Advice(
        Reason.NOT_RECORDED, (Type.REVISIONS_NOT_FOUND,),
        "instances without a pod are [kept](partition.md) at a revision that the "
        "history no longer has. They wait",
        "To give the instances the newest template, lower the partition: {advance}. To go back to "
        "an earlier revision: {rollback}. Or restore the ControllerRevision from a backup.",
    ),
    Advice(
        Reason.BLOCKED, (Type.CREATION_BLOCKED,),
        "the instance's claim is still being deleted; or "
        "[no pod could be made](invalid-templates.md) from its "
        "template; or a [placeholder](values.md) has no value that its field can take; "
        "or one variable stands in `env` twice, and cannot be merged; or something is "
        "[beyond a limit](invalid-templates.md) of the API server, or "
        "an image is no reference. No pod is deleted, and none is updated",
        "If the message names a claim, wait until the claim is gone. Otherwise correct the field "
        "that the message quotes. To correct an image: {image}.",
    ),
    Advice(
        Reason.NOT_MERGEABLE, (Type.DUPLICATE_MERGE_KEYS,),
        "a list in the pod has two entries with one merge key, such as one port on TCP and UDP. "
        "The API server refuses updates of that pod",
        "Install the [admission policies](sizing.md#leaner-pods), then stop and start the "
        "instances.",
    ),
    Advice(
        Reason.NOT_OWNED, (Type.CLAIMS_NOT_OWNED,),
        "pods use claims that do not belong to this TApp: the claims do not grow, and "
        "`whenDeleted: Delete` does not delete them",
        'See "[Lost ownership](#lost-ownership)" in Troubleshooting. '
        "To adopt claims without an owner: {adopt}.",
    ),
    Advice(
        Reason.NOT_EXPANDABLE, (Type.CLAIMS_NOT_GROWN,),
        "a claim template asks for more, and these claims cannot grow: their StorageClass is "
        "missing or does not allow it, or they have a lower `limits.storage`",
        "Set `allowVolumeExpansion: true` in the class if its driver can expand volumes, or set "
        "the claim template back.",
    ),
    Advice(
        Reason.INFEASIBLE, (Type.CLAIMS_NOT_GROWN,),
        "the storage driver of the claims has reported that this size is infeasible; the message "
        "names the command that shows why",
        'Take the size back: see "[Volumes that grow](#volumes-that-grow)" in Troubleshooting.',
    ),
    Advice(
        Reason.INFEASIBLE, (Type.CLAIMS_NOT_MODIFIED,),
        "the storage driver of the claims has refused the VolumeAttributesClass of the claim "
        "template; the message names the command that shows why",
        "Name the class that the volumes have now, or another one, in the claim template: see "
        '"[When a class does not arrive](volume-attributes.md#when-a-class-does-not-arrive)".',
    ),
    Advice(
        Reason.MODIFYING, (Type.CLAIMS_BEING_MODIFIED,),
        "claims request the VolumeAttributesClass of their claim template, and their volumes do "
        "not have it yet. The pods run on, and the TApp may be Ready",
        "Wait. If it takes longer than the storage driver usually needs, see "
        '"[When a class does not arrive](volume-attributes.md#when-a-class-does-not-arrive)".',
    ),
    Advice(
        Reason.NOT_REGISTERED, (Type.SERVICES_NOT_CREATED,),
        "`serviceTemplate` is set, and the component [services](install.md#components) is not "
        "installed",
        "Install the component, or remove `serviceTemplate`.",
    ),
    Advice(
        Reason.NO_SERVICE, (Type.SERVICES_NOT_CREATED,),
        "a Service has not been as requested for 30 seconds; or a Service of that name has another "
        "owner; or `serviceTemplate` [makes no Service](service-each.md)",
        "The message or the Events show the cause: {describe}. If another Service has the name, "
        "delete that Service.",
    ),
    Advice(
        Reason.NOT_REGISTERED, (Type.DISRUPTION_BUDGET_NOT_APPLIED,),
        "`disruptionBudget` is set, and the component "
        "[disruption-budgets](install.md#components) is not installed, so nothing limits evictions",
        "Install the component, or remove `disruptionBudget`.",
    ),
    Advice(
        Reason.NOT_A_BUDGET, (Type.DISRUPTION_BUDGET_NOT_APPLIED,),
        "`disruptionBudget.maxUnavailable` is neither a number of at least 0 nor a percentage from "
        "0% to 100%. A PodDisruptionBudget that exists stays as it is",
        "Correct `disruptionBudget.maxUnavailable`.",
    ),
    Advice(
        Reason.NO_DISRUPTION_BUDGET, (Type.DISRUPTION_BUDGET_NOT_APPLIED,),
        "the PodDisruptionBudget has not existed for 30 seconds; or a PodDisruptionBudget of that "
        "name has [another owner](disruption-budget.md)",
        "Read the message and the Events of the TApp: {describe}. Delete a PodDisruptionBudget "
        "that is in the way.",
    ),
    Advice(
        Reason.EDITED, (Type.IMAGES_EDITED,),
        "a user or a program has set another image in a pod (`kubectl set image pod/...`). The "
        "image stays until the template changes for that container. Not detected in "
        "[lean pods](sizing.md#leaner-pods)",
        "To keep the image, write it into the template: {image}. To return to the template's "
        "image, replace the pod: {restart}.",
    ),
    Advice(
        Reason.EDITED, (Type.METADATA_EDITED,),
        "a user or a program has changed or removed a label or an annotation of a pod that its "
        "template has. [The pod keeps it](in-place.md) until its value in the template "
        "changes. The TApp is not Degraded",
        "Nothing, if a program intends it. Otherwise write the value back, or replace the pod: "
        "{restart}.",
    ),
    Advice(
        Reason.UNREADABLE, (Type.UNREADABLE_PODS,),
        "the TApp service cannot read a pod, because a field has an unexpected type. It does "
        "not change the pod",
        "Repair the field of the pod that the message names, or delete the pod.",
    ),
    Advice(
        Reason.NO_INSTANCE, (Type.FOREIGN_PODS,),
        "the TApp owns a pod whose name is not that of an instance. The service does not change "
        "the pod",
        "Delete the pod, or remove its ownerReference.",
    ),
    Advice(
        Reason.PULL_FAILED, (Type.IMAGES_NOT_PULLED,),
        "with [`prePull`](in-place.md#pull-the-image-first): a node cannot pull an image; the "
        "message quotes the registry",
        "To correct the image: {image}. If the registry denies access, add the pull secret to the "
        f"template. {_UNDO}",
    ),
    Advice(
        Reason.NO_PULLER, (Type.PULLERS_NOT_RUN,),
        "with `prePull`: the pod that is to pull images does not run. Image volumes are not "
        "supported, or the pod is refused, or `TAPP_PULLER_IMAGE` cannot be pulled or has no "
        "numeric user. For an hour, updates continue without pulling first",
        "See the Events of the pod that the message names, or those of the TApp: {describe}. After "
        "the repair, remove `prePull` and set it again.",
    ),
    Advice(
        Reason.RESIZE_DEFERRED, (Type.PODS_NOT_RESIZED,),
        "with `resources: InPlace`: the nodes have had no room for a minute. The pods run with "
        "their old resources, and keep their places in the budget",
        "Make room on the nodes, or set other resources in the template.",
    ),
    Advice(
        Reason.NOT_RESIZED, (Type.PODS_NOT_RESIZED,),
        "the API server or the kubelet has not carried out a resize for a minute. The message "
        "quotes the kubelet; the log of the TApp service quotes the API server",
        "Set other resources in the template, or remove `resources: InPlace`.",
    ),
    Advice(
        Reason.NO_CONTAINER, (Type.UNKNOWN_CONTAINERS,),
        "an annotation `apps.tkestack.io/restart-in-place.CONTAINER` names no container, or a "
        "plain init container",
        "Correct the annotation, or remove it.",
    ),
    Advice(
        Reason.NOT_A_NUMBER, (Type.UNKNOWN_INSTANCES,),
        "a key of `templates`, `statuses` or `values` is not an instance number",
        "Correct the key that the message quotes.",
    ),
    Advice(
        Reason.NOT_KILLED, (Type.UNKNOWN_STATUSES,),
        "a value of `statuses`, such as `killed`, has no effect",
        "Write `Killed`, or remove the entry.",
    ),
    Advice(
        Reason.NOT_BELOW_REPLICAS, (Type.UNUSED_INSTANCES,),
        "`templates`, `statuses` or `values` name an instance that is not below `replicas`",
        "Nothing, if you are about to scale up. Otherwise correct the number.",
    ),
    Advice(
        Reason.NOT_READ, (Type.UNUSED_VALUES,),
        "no template reads a key of `values` or `defaultValues`",
        "Correct the key in the template or in the values, or remove it.",
    ),
    Advice(
        Reason.NOT_FOUND, (Type.ROLLING_TEMPLATE_UNUSED,),
        "`updateStrategy.template` does not exist: [which budget applies](design.md#the-budget)",
        "Correct the name.",
    ),
    Advice(
        Reason.UNUSED, (Type.ROLLING_TEMPLATE_UNUSED,),
        "no instance is to run the rolling template: [which budget applies](design.md#the-budget)",
        "Nothing, or name the template that the instances run in `updateStrategy.template`.",
    ),
    Advice(
        Reason.UNUSED, (Type.UNUSED_TEMPLATES,),
        "`autoDeleteUnusedTemplate` is set, nothing refers to these templates, and the admission "
        "policy is not installed",
        "Remove the templates, or install the policy.",
    ),
    Advice(
        Reason.NOT_SERVED, (Type.POD_STATUS_NOT_WRITTEN,),
        "for 30 to 60 seconds, no component has opened or closed a readiness gate of a pod, or "
        "marked a lost pod as Failed",
        "Install [pod-status](install.md#pod-status), or look at the Events of the pods.",
    ),
    Advice(
        Reason.GUARDED, (Type.MOST_NODES_SILENT,),
        "[more than half of the nodes](lost-nodes.md) have stopped reporting. No instance "
        "is started on another node",
        "Check the network between the control plane and the nodes. Pods on those nodes keep "
        "running.",
    ),
    Advice(
        Reason.NOT_SECONDS, (Type.INVALID_LOST_NODE_SECONDS,),
        "the annotation `apps.tkestack.io/lost-node-seconds` is not a whole number. It is ignored",
        "Correct the annotation.",
    ),
    Advice(
        Reason.NOT_LABELED, (Type.DOMAIN_LABEL_MISSING,),
        "pods lack the label that [`updateStrategy.domain`](failure-domains.md) names. Each of "
        "their instances is updated alone, after all domains. The TApp is not Degraded",
        "Correct the key of the label in `updateStrategy.domain`. Pods get the labels of zone and "
        "region from Kubernetes 1.35 on, when they are bound to a node. A pod that is older than "
        "that gets them when it is replaced: {restart}.",
    ),
    Advice(
        Reason.NOT_A_PRIORITY, (Type.INVALID_UPDATE_PRIORITY,),
        "an annotation `apps.tkestack.io/update-priority` is not an integer of at most 9 digits. "
        "It is ignored",
        "Correct the annotation, or remove it.",
    ),
    Advice(
        Reason.NOT_A_HOLD, (Type.INVALID_HOLD_FOR,),
        "an annotation `apps.tkestack.io/hold-for` of a pod is neither `update` nor `delete`. The "
        "[hold](hold.md) prevents both",
        "Correct the annotation, or remove it.",
    ),
)  # fmt: skip
_OF_DECISIONS: Final = (
    Advice(Reason.SPEC_JUST_CHANGED, (), "", WAIT),
    Advice(Reason.RESTART_WAITS, (), "", WAIT),
    Advice(
        Reason.NODE_SILENT, (), "",
        "Bring the node back. If the machine is gone for good, delete its Node object.",
    ),
    Advice(
        Reason.NEVER_MIGRATE, (), "",
        "Delete the pod if the instance is to run again, or set `spec.neverMigrate` to false.",
    ),
    Advice(
        Reason.BACK_OFF, (), "",
        f"To see why its containers end: {{why}}. {_UNDO} {_IMAGE}",
    ),
)  # fmt: skip
ADVICE: Final = (*_OF_PROGRESS, *_REFUSED, *_OF_DECISIONS)
"""The advice of every reason, in the order of the documentation."""
ROLLOUT: Final = (
    Reason.PAUSED, Reason.REACHED, Reason.HELD, Reason.WAITING_FOR_BUDGET,
    Reason.WAITING_FOR_DOMAIN, Reason.WAITING_FOR_ORDER, Reason.BROKEN,
    Reason.PROGRESS_DEADLINE_EXCEEDED, Reason.ROLLED_BACK,
)  # fmt: skip
"""The usual reasons why a rollout does not continue."""

_CONDITIONS_OF_DECISIONS: Final = {
    Reason.TEMPLATE_NOT_FOUND: Type.TEMPLATE_NOT_FOUND,
    Reason.REVISION_NOT_FOUND: Type.REVISIONS_NOT_FOUND,
    Reason.INVALID_BUDGET: Type.INVALID_BUDGET,
    Reason.UNREADABLE_POD: Type.UNREADABLE_PODS,
    Reason.IMAGES_EDITED: Type.IMAGES_EDITED,
}
"""The condition with the advice of a decision's reason, if the condition has another reason."""


def advice_for(type: Type, reason: str) -> Advice:
    """Returns the advice for a condition with the given type and reason.

    Raises LookupError if a condition of this type cannot have this reason.
    """
    for each in ADVICE:
        if each.reason == reason and type in each.types:
            return each
    raise LookupError(f"there is no advice for {type} with reason {reason}")


def advice_on(reason: Reason) -> Advice:
    """Returns the advice for a decision with the given reason.

    If there is no advice for the reason, the result says to wait, or that nothing has to be done.
    """
    other = _CONDITIONS_OF_DECISIONS.get(reason)
    for each in ADVICE:
        if other in each.types if other else each.reason is reason:
            return each
    do = WAIT if reason.standing is Standing.PROGRESSING else NOTHING
    return Advice(reason, (), "", do)
