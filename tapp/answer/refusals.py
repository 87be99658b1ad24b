"""Refusals: conditions that say what the service does not do, and what a user can do about it.

A refusal stays in the status as long as its cause exists. Each function in `_CHECKS` looks for one
cause and returns the condition, or None if the cause does not exist. The enumeration `Type` defines
the order of the conditions.
"""

from collections.abc import Callable

from tapp.answer import claim_refusals, mistakes
from tapp.answer.kstatus import stalled
from tapp.answer.mistakes import place, refused
from tapp.decide.missing import overdue, since_text
from tapp.decide.overdue import Overdue, claims_sentence, pods_sentence, services_sentence
from tapp.decide.partition import UNKNOWN, revision_phrase
from tapp.declared.metadata import authors_metadata, edits
from tapp.plan import Plan
from tapp.words.conditions import Finding, Type
from tapp.words.digits import is_whole
from tapp.words.kinds import DISRUPTION_BUDGET, SERVICE
from tapp.words.quoted import quoted, short
from tapp.words.ranges import each_instance, instance_list, joined, name_list
from tapp.words.reasons import Reason
from tapp.words.vocabulary import RESTART_IN_PLACE


def refusals(plan: Plan) -> list[Finding]:
    """Returns the refusals of a sync, sorted in the order of the enumeration `Type`."""
    found = [finding for check in _CHECKS if (finding := check(plan)) is not None]
    found += not_deleted(plan.findings.overdue, plan.world.tapp.metadata.namespace)
    return sorted(found, key=lambda finding: _PLACES[finding.type])


def _pods_not_created(plan: Plan) -> Finding | None:
    """Returns the condition about pods that were requested long ago and still do not exist.

    Returns None if there are no such pods.
    """
    since = since_text(overdue(plan.findings.missing.pods, plan.now))
    message = since and (
        f"pods that the TApp service has requested do not exist: {since}. If the API server "
        f"refuses them, `kubectl describe tapp {place(plan)}` shows its error in the Events. "
        "Otherwise pods of these names exist and do not belong to this TApp: "
        f"`kubectl tapp adopt {place(plan)}` adopts those without an owner"
    )
    return refused(Type.PODS_NOT_CREATED, Reason.MISSING, message)


def not_deleted(overdue: Overdue, namespace: str) -> list[Finding]:
    """Returns the conditions about overdue deletions: one for pods, one for claims, one for
    Services.

    A kind of object without an overdue deletion gets no condition. `namespace` is the namespace of
    the TApp, for commands in the messages.
    """
    pods = pods_sentence(overdue.pods, namespace)
    claims = claims_sentence(overdue.claims, namespace)
    services = services_sentence(overdue.services, namespace)
    found = (
        refused(Type.PODS_NOT_DELETED, Reason.OVERDUE, pods),
        refused(Type.CLAIMS_NOT_DELETED, Reason.OVERDUE, claims),
        refused(Type.SERVICES_NOT_DELETED, Reason.OVERDUE, services),
    )
    return [finding for finding in found if finding is not None]


def _images_edited(plan: Plan) -> Finding | None:
    """Returns the condition about images that somebody other than this service set in pods, or
    None.
    """
    edited = plan.by_reason.get(Reason.IMAGES_EDITED, [])
    texts = [f"instance {case.instance.id}: {case.decision.message}" for case in edited]
    message = joined(texts, " instances")
    return refused(Type.IMAGES_EDITED, Reason.EDITED, message)


def _metadata_edited(plan: Plan) -> Finding | None:
    """Returns the condition about labels and annotations of pods that differ from their template.

    Only up-to-date pods are compared. Returns None if none of them differs from its template.
    """
    found: dict[str, list[int]] = {}
    for instance in plan.instances:
        pod, template = instance.pod, instance.template
        if pod is None or not instance.updated or template is None:
            continue
        if pod.spec.metadata and pod.spec.metadata != template.metadata:
            different = [*edits(pod.spec.metadata, template.metadata)]
            if any(not edit.is_there for edit in different):
                # The summary in `pod.spec` is based on Metacontroller's copy of the pod. If a key
                # was removed and put back, only the pod's own metadata has the key.
                manifest = plan.world.manifests[pod.name]
                whole = {"labels": manifest.labels, "annotations": manifest.annotations}
                different = [*edits(authors_metadata(whole).summary(), template.metadata)]
            for edit in different:
                found.setdefault(edit.text, []).append(instance.id)
    parts = [f"{instance_list(ids)}: {text}" for text, ids in sorted(found.items())]
    message = joined(parts, " keys")
    if message:
        message += (
            ". An update in place does not change these keys until their value in the template "
            "changes; a new pod gets the values of the template"
        )
    return refused(Type.METADATA_EDITED, Reason.EDITED, message)


def _template_not_found(plan: Plan) -> Finding | None:
    """Returns the condition about instances whose template is missing or unusable, or None."""
    lost: dict[str, tuple[list[int], list[int]]] = {}
    for case in plan.notable:
        instance, decided = case.instance, case.instance.decided
        if not instance.wanted or decided is None:
            continue
        if decided.reason is Reason.TEMPLATE_NOT_FOUND:
            kept, missing = lost.setdefault(decided.message, ([], []))
            if instance.pod is not None:
                kept.append(instance.id)
            elif instance.should_run:
                missing.append(instance.id)
    parts = []
    for text, (kept, missing) in sorted(lost.items()):
        if kept:
            keep = "keeps its pod" if len(kept) == 1 else "keep their pods"
            parts.append(f"{text}: {instance_list(kept)} {keep} unchanged")
        if missing:
            get = "gets" if len(missing) == 1 else "get"
            parts.append(f"{text}: {instance_list(missing)} {get} no pod")
    return refused(Type.TEMPLATE_NOT_FOUND, Reason.UNRESOLVED, "; ".join(parts))


def _invalid_budget(plan: Plan) -> Finding | None:
    """Returns the condition about a `maxUnavailable` that is neither number nor percentage, or
    None.
    """
    problems = [b.problem for b in (plan.budgets.force, plan.budgets.rolling) if b.problem]
    message = "; ".join(problems)
    if message:
        message += "; instances with this budget are not updated until the field is corrected"
    return refused(Type.INVALID_BUDGET, Reason.NOT_A_BUDGET, message)


def _revisions_not_found(plan: Plan) -> Finding | None:
    """Returns the condition about instances that are kept at an unrecorded revision, or None.

    A partition keeps them, or a rollback. The history has no ControllerRevision of that revision,
    so these instances get no pod.
    """
    missing, rollback = plan.partition.missing, plan.rollback
    recorded = plan.world.declared.revisions and plan.world.tapp.spec.revision_history_limit
    texts = []
    if missing:
        parts = [
            f"{instance_list(ids)} at {revision_phrase(revision)}"
            for revision, ids in sorted(missing.items())
        ]
        text = (
            f"spec.updateStrategy.partition keeps {joined(parts, ' revisions')}, which is not in "
            "the history, so no pod can be created. Lower the partition to create pods from the "
            "newest template"
        )
        restore = recorded and missing.keys() != {UNKNOWN}
        texts.append(text + (", or restore the ControllerRevision" if restore else ""))
    if rollback.missing:
        texts.append(
            f"revision {rollback.update} was rolled back, and the history has no revision "
            f"{rollback.to} that {instance_list(rollback.missing)} could run, so no pod can be "
            "created. Change the template, or restore the ControllerRevision"
        )
    return refused(Type.REVISIONS_NOT_FOUND, Reason.NOT_RECORDED, ". ".join(texts))


def _creation_blocked(plan: Plan) -> Finding | None:
    """Returns the condition about instances whose pod cannot be created, or None.

    An instance that still has a pod also counts if a new pod could not be created for it.
    """
    found = {
        case.instance.id: case.decision.message for case in plan.by_reason.get(Reason.BLOCKED, [])
    }
    requested = {id for ids in plan.findings.missing.pods.values() for id in ids}
    for id, why in plan.problems.new_pod.items():
        if id in plan.world.pods or id in requested:
            found.setdefault(id, why)
    parts = []
    if found:
        first = min(found)
        others = len(found) - 1
        more = f" (and {others} more instance{'s'[: others != 1]})" if others else ""
        parts.append(f"instance {first}: {found[first]}{more}")
    message = "; ".join([*parts, *plan.problems.claims_alone])
    return refused(Type.CREATION_BLOCKED, Reason.BLOCKED, message)


def _duplicate_merge_keys(plan: Plan) -> Finding | None:
    """Returns the condition about pods with a list that Metacontroller cannot merge, or None.

    Two entries of such a list have the same merge key, such as two ports of the same number.
    """
    doubled = {
        instance.id: instance.pod.spec.unmergeable
        for instance in plan.instances
        if instance.wanted and instance.pod is not None and instance.pod.spec.unmergeable
    }
    if not doubled:
        return None
    message = (
        f"{instance_list(doubled)}: {next(iter(doubled.values()))} has two entries with the same "
        "merge key, which Metacontroller cannot apply; install the admission policy that "
        "removes its last-applied annotation from pods, then stop and start these instances "
        "(`kubectl tapp kill`, `kubectl tapp start`)"
    )
    return refused(Type.DUPLICATE_MERGE_KEYS, Reason.NOT_MERGEABLE, message)


def _services_not_created(plan: Plan) -> Finding | None:
    """Returns the condition about missing or outdated Services of the instances, or None."""
    if plan.world.tapp.spec.service_template is None:
        return None
    if SERVICE not in plan.world.declared.plain:
        message = (
            "no Service is created, because spec.serviceTemplate needs the component services, "
            "which is not installed: install metacontroller/components/services"
        )
        return refused(Type.SERVICES_NOT_CREATED, Reason.NOT_REGISTERED, message)
    findings = plan.findings
    services, absent = findings.storage.services, overdue(findings.missing.services, plan.now)
    parts = [
        f"spec.serviceTemplate{f', {instance_list(ids)}' if ids else ''}: {problem}"
        for problem, ids in services.problems.items()
    ]
    if services.taken:
        parts.append(
            f"{instance_list(services.taken)}: a Service with the name of the pod exists and does "
            "not belong to this TApp; delete that Service, and the instance gets its own"
        )
    if absent:
        parts.append(
            "Services that the TApp service has requested do not exist or differ: "
            f"{since_text(absent)}. `kubectl describe tapp {place(plan)}` shows the error of the "
            "API server in the Events; a Service that exists already does not belong to this TApp"
        )
        # No request says which version the API server has, so an early warning might be wrong.
        if is_whole(plan.world.tapp.metadata.name[:1]):
            parts[-1] += (
                ". Kubernetes before 1.36 refuses Services whose names begin with a digit, as "
                "these do: upgrade the cluster, create the TApp again with a name that begins "
                "with a letter, or remove spec.serviceTemplate"
            )
    return refused(Type.SERVICES_NOT_CREATED, Reason.NO_SERVICE, joined(parts, " problems"))


def _disruption_budget_not_applied(plan: Plan) -> Finding | None:
    """Returns the condition about a PodDisruptionBudget that is missing, foreign or invalid, or
    None.
    """
    if plan.world.tapp.spec.disruption_budget is None:
        return None
    name = plan.world.tapp.metadata.name
    if DISRUPTION_BUDGET not in plan.world.declared.plain:
        message = (
            "no PodDisruptionBudget is created, because spec.disruptionBudget needs the component "
            "disruption-budgets, which is not installed: install "
            "metacontroller/components/disruption-budgets"
        )
        return refused(Type.DISRUPTION_BUDGET_NOT_APPLIED, Reason.NOT_REGISTERED, message)
    found = plan.findings.storage.disruption_budget
    if found.problem:
        message = f"{found.problem}; the PodDisruptionBudget {quoted(name)} is not changed"
        return refused(Type.DISRUPTION_BUDGET_NOT_APPLIED, Reason.NOT_A_BUDGET, message)
    since = "".join(overdue(plan.findings.missing.disruption_budget, plan.now))
    message = ""
    if found.is_taken:
        message = (
            f"a PodDisruptionBudget {quoted(name)} exists and does not belong to this TApp, so "
            "spec.disruptionBudget limits no evictions; delete that PodDisruptionBudget, and the "
            "TApp gets its own"
        )
    elif since:
        message = (
            f"the PodDisruptionBudget {quoted(name)} has been requested since {since} and does not "
            "exist, so spec.disruptionBudget limits no evictions. `kubectl describe tapp "
            f"{place(plan)}` shows the error of the API server in the Events; a "
            "PodDisruptionBudget of this name that exists already does not belong to this TApp"
        )
    return refused(Type.DISRUPTION_BUDGET_NOT_APPLIED, Reason.NO_DISRUPTION_BUDGET, message)


def _unreadable_pods(plan: Plan) -> Finding | None:
    """Returns the condition about pods whose JSON the service cannot read, or None."""
    left = [
        instance
        for case in plan.notable
        if (instance := case.instance).pod is not None and instance.pod.unreadable
    ]
    if not left:
        return None
    first = left[0].pod.unreadable if left[0].pod is not None else ""
    ids = instance_list([instance.id for instance in left])
    pods, them = ("pod", "it") if len(left) == 1 else ("pods", "them")
    message = f"{ids}: the TApp service cannot read the {pods} and does not change {them}: {first}"
    return refused(Type.UNREADABLE_PODS, Reason.UNREADABLE, message)


def _foreign_pods(plan: Plan) -> Finding | None:
    """Returns the condition about pods of the TApp whose name belongs to no instance, or None."""
    names = name_list([pod.name for pod in plan.world.foreign])
    message = names and (
        f"the TApp owns pods whose names are not the names of instances: {names}. The TApp service "
        "does not change them; delete them, or remove their ownerReferences"
    )
    return refused(Type.FOREIGN_PODS, Reason.NO_INSTANCE, message)


def _images_not_pulled(plan: Plan) -> Finding | None:
    """Returns the condition about images that pullers cannot pull, or None.

    A puller is a pod that pulls the images of an update on a node before the update (`prePull`).
    """
    failed = joined(plan.findings.pulls.failed)
    message = (
        failed
        and f"{failed}. The instances keep running as they are until the new images can be pulled"
    )
    return refused(Type.IMAGES_NOT_PULLED, Reason.PULL_FAILED, message)


def _pullers_not_run(plan: Plan) -> Finding | None:
    """Returns the condition about pullers that cannot run, or None.

    A puller is a pod that pulls the images of an update on a node before the update (`prePull`).
    """
    pulls = plan.findings.pulls
    if not pulls.unable:
        return None
    message = f"images are not pulled before updates (prePull): {joined(pulls.unable)}"
    if until := pulls.until:
        message += f". Updates continue without this until {until}; later updates try again"
    return refused(Type.PULLERS_NOT_RUN, Reason.NO_PULLER, message)


def _pods_not_resized(plan: Plan) -> Finding | None:
    """Returns the condition about resizes of pods that take too long, or None.

    The reason is `RESIZE_DEFERRED` if the kubelet has deferred every resize that takes too long.
    """
    resizes = plan.findings.resizes
    texts = [f"instance {id}: {why}" for id, why in resizes.overdue.items()]
    message = joined(texts, " instances")
    if resizes.deferred == set(resizes.overdue):
        return refused(Type.PODS_NOT_RESIZED, Reason.RESIZE_DEFERRED, message)
    return refused(Type.PODS_NOT_RESIZED, Reason.NOT_RESIZED, message)


def _unknown_containers(plan: Plan) -> Finding | None:
    """Returns the condition about restart annotations of templates that restart no container, or
    None.
    """
    wrong = {
        template.name: template.not_restarted[0]
        for instance in plan.instances
        if instance.wanted
        and (template := instance.template) is not None
        and template.not_restarted
    }
    parts = [
        f"template {quoted(name)}: annotation {RESTART_IN_PLACE}.{short(container)} restarts "
        f"nothing, because the template has no container {quoted(container)} that keeps running"
        for name, container in wrong.items()
    ]
    return refused(Type.UNKNOWN_CONTAINERS, Reason.NO_CONTAINER, joined(parts, " templates"))


def _pod_status_not_written(plan: Plan) -> Finding | None:
    """Returns the condition about pods whose status the hook `/pod-status` has not changed in time.

    The hook should have opened or closed a readiness gate, or set the phase Failed of a pod on a
    lost node. Returns None if no pod has waited too long for the hook.
    """
    unserved = plan.findings.markers.unserved
    message = (
        f"{each_instance(unserved)}: the status of the pod is not written, so its readiness gate "
        "does not change, or the pod stays on its lost node. If the component pod-status is not "
        "installed, install metacontroller/components/pod-status. Otherwise the Events of the pod "
        "show why it does not work"
        if unserved
        else ""
    )
    return refused(Type.POD_STATUS_NOT_WRITTEN, Reason.NOT_SERVED, message)


def _most_nodes_silent(plan: Plan) -> Finding | None:
    """Returns the condition that most nodes have stopped reporting, or None.

    As long as the condition exists, no instance leaves a lost node for another node. Returns None
    if most nodes report, or if the TApp never leaves lost nodes.
    """
    nodes = plan.findings.markers.nodes
    if not nodes.guarded or plan.world.tapp.spec.never_migrate:
        return None
    message = (
        f"{nodes.silent} of {nodes.all} nodes have stopped reporting, probably because the network "
        "to the control plane is broken. Until most nodes report again, the TApp service does not "
        "count these nodes as lost and starts no instance on another node"
    )
    return refused(Type.MOST_NODES_SILENT, Reason.GUARDED, message)


def _invalid_lost_node_seconds(plan: Plan) -> Finding | None:
    """Returns the condition about an invalid time limit for lost nodes, or None.

    An annotation of the TApp sets that limit.
    """
    problem = plan.findings.markers.lost_seconds_problem
    return refused(Type.INVALID_LOST_NODE_SECONDS, Reason.NOT_SECONDS, problem)


def _stalled(plan: Plan) -> Finding | None:
    """Returns the condition Stalled of a rollout that has exceeded its deadline, or None.

    The condition stays while the revision of the rollout is rolled back.
    """
    if plan.rollback.active is not None:
        return refused(Type.STALLED, Reason.ROLLED_BACK, stalled(plan))
    return refused(Type.STALLED, Reason.PROGRESS_DEADLINE_EXCEEDED, stalled(plan))


_CHECKS: tuple[Callable[[Plan], Finding | None], ...] = (
    _pods_not_created, _template_not_found, _invalid_budget, _revisions_not_found,
    _creation_blocked, _duplicate_merge_keys, *claim_refusals.CHECKS,
    _services_not_created, _disruption_budget_not_applied, _images_edited, _metadata_edited,
    _unreadable_pods, _foreign_pods,
    _images_not_pulled, _pullers_not_run, _pods_not_resized, _unknown_containers,
    _pod_status_not_written, _most_nodes_silent, _invalid_lost_node_seconds, _stalled,
    *mistakes.CHECKS,
)  # fmt: skip
_PLACES = {type: place for place, type in enumerate(Type)}
