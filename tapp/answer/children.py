"""The children in a response: the objects that Metacontroller creates, updates or keeps.

They have a fixed order: ControllerRevisions, claims, Services, PodDisruptionBudget, pods, pullers.

Metacontroller deletes a child that the response leaves out, so the response includes every child
that stays. A pod that the plan does not change is included as `Pod.unchanged`, JSON that leaves the
pod as it is.
"""

from typing import Any

import msgspec
from msgspec import Raw

from tapp.answer import render
from tapp.answer.claim_answers import grown_claim, modified_claim, new_claims
from tapp.answer.pullers import new_puller
from tapp.decide.cases import Case
from tapp.decide.changes import Adopt, Create, Mark, Resize, Update
from tapp.decide.new_pod import NewPods
from tapp.decide.verdicts import Action
from tapp.plan import Plan
from tapp.pod.update import record_of

Child = dict[str, Any] | Raw


class NamespaceMissingError(Exception):
    """Claims have to be created, but the request lacks the Namespace, which has to co-own them.

    Without the Namespace as second owner, the garbage collector would delete the claims, and so the
    data, together with the TApp.
    """


def desired_children(plan: Plan) -> list[Child]:
    """Returns the children of a response: all objects that Metacontroller creates, updates or
    keeps.

    Raises NamespaceMissingError if a claim has to be created and the request lacks the Namespace,
    which protects the claim as its owner.
    """
    world, findings = plan.world, plan.findings
    tapp, storage, manifests = world.tapp, findings.storage, world.manifests
    history, services = storage.history, storage.services
    evictions = storage.disruption_budget
    children: list[Child] = [render.kept_revision(revision) for revision in history.keep]
    children += [render.new_revision(tapp, record) for record in history.create]
    children += _claims(plan)
    children += [render.kept_plain(service) for service in services.keep]
    children += services.apply.values()
    children += [render.kept_plain(budget) for budget in evictions.keep]
    children += [] if evictions.apply is None else [evictions.apply]
    for case in plan.cases:
        decision = case.decision
        if (change := decision.change) is not None:
            children.append(_changed(plan, case, change))
        elif decision.action is Action.KEEP and (pod := case.instance.pod) is not None:
            unchanged: Child | None = pod.unchanged
            if unchanged is None:
                template = case.instance.template if case.instance.updated else None
                unchanged = render.kept_pod(manifests[pod.name], template)
            children.append(unchanged)
    children += [render.unchanged_pod(pod, manifests) for pod in world.foreign]
    children += [render.unchanged_pod(pod, manifests) for pod in findings.pulls.keep]
    image = plan.options.puller_image
    children += [new_puller(tapp, puller, image) for puller in findings.pulls.create]
    return children


def _claims(plan: Plan) -> list[Child]:
    """Returns the claims of the response: unchanged claims, changed claims, and new claims.

    Raises NamespaceMissingError if a claim has to be created and the request lacks the Namespace.
    """
    world, storage = plan.world, plan.findings.storage
    growth, modification = storage.growth.to, storage.modification.to
    # Only the claims that change are decoded.
    changed: dict[str, dict[str, Any]] = {
        name: msgspec.json.decode(world.unchanged_claims[name])
        for name in {**growth, **modification}
    }
    for name, size in growth.items():
        changed[name] = grown_claim(changed[name], size)
    for name, class_name in modification.items():
        changed[name] = modified_claim(changed[name], class_name)
    names = [claim.metadata.name for claim in storage.claims.keep]
    children: list[Child] = [changed.get(name, world.unchanged_claims[name]) for name in names]
    if storage.claims.create:
        metadata = world.tapp.metadata
        if not world.namespace_uid:
            raise NamespaceMissingError(
                f"the request lacks Namespace {metadata.namespace!r}, an owner of the claims of "
                f"TApp {metadata.name!r}: check that the CompositeController calls /customize"
            )
        children += new_claims(world.tapp, storage.claims.create, world.namespace_uid)
    return children


def _changed(plan: Plan, case: Case, change: Create | Adopt | Mark | Update | Resize) -> Child:
    """Returns the manifest of an instance's pod with the change that the plan has decided on."""
    instance, tapp, manifests = case.instance, plan.world.tapp, plan.world.manifests
    match change:
        case Create(template):
            volumes = plan.findings.storage.claims.volumes.get(instance.id, {})
            return NewPods(tapp, plan.options.toleration_seconds).of(instance, template, volumes)
        case Resize(pod):
            return render.unchanged_pod(pod, manifests)
        case Mark(pod):
            return render.marked_pod(manifests[pod.name], change)
        case Adopt(pod, template):
            manifest, before = manifests[pod.name], instance.metadata_before
            return render.overlaid_pod(manifest, instance.id, template, {}, None, before)
        case Update(pod, template, images, restarts):
            record = None
            if images:
                now, update = plan.now, instance.update
                record = record_of(pod, template.revision, images, restarts, update, now)
            manifest, before = manifests[pod.name], instance.metadata_before
            return render.overlaid_pod(manifest, instance.id, template, images, record, before)
